/*
 * user/go/sites/rtmaker.h - which function of the runtime called the allocator (the maker), and for
 * what.
 *
 * The allocator is told a type, but not whether it makes one object of it or many, and it is told
 * no type where the object has no pointers. Its caller knows: makeslice makes a slice of such
 * objects, rawstring makes the bytes of a string.
 *
 * Source: callers of mallocgc, newobject and newarray in runtime, internal/runtime/maps and
 * reflect, Go 1.18 to 1.27.
 */
#ifndef GO_SITES_RTMAKER_H
#define GO_SITES_RTMAKER_H

#include "go/sites/probesite.h"

enum made_kind {
	MADE_OTHER,	/* this is no maker: its caller has made one object of the type */
	MADE_ALLOCATOR, /* this belongs to the allocator: ask its caller */
	MADE_ONE,	/* one object of the type, unless its caller is a maker of channels */
	MADE_SLICE,	/* a slice of the type */
	MADE_CHAN,	/* its argument is the channel's type; the allocator gets another one */
	MADE_KNOWN,	/* it always makes the same: made.name */
	MADE_BOXED, /* a value in an interface, of a type that only the caller knows; see rtbox.h */
};

/* What the values of MADE_BOXED have in common. */
enum made_box { BOX_NONE, BOX_2, BOX_4, BOX_8 /* bytes without pointers */, BOX_STRING, BOX_SLICE };

struct made {
	enum made_kind kind;
	/* static; set for MADE_KNOWN, and for MADE_BOXED where nobody tells the type */
	const char *name;
	enum made_box box;
};

/* Finds the maker by the function's name, as pclntab and the inline tree have it. */
struct made rtmaker_of(const char *func);

/* Where a maker is called. The type is its argument number @arg; the first is 0. */
struct maker_site {
	struct probesite site;
	unsigned int arg;
};

/*
 * Finds the makers that may pass the allocator another type than their own, or none: growslice,
 * makechan, makeslicecopy; of these, the ones that this binary has and that have a stack check.
 * Returns their number, or an error of @b.
 */
enum { MAKER_SITES_MAX = 3 };
int rtmaker_sites(struct gobin *b, struct maker_site out[MAKER_SITES_MAX], struct err *e);

#endif
