/*
 * user/go/rtmaker.h - which function of the runtime asked the allocator, and for what.
 *
 * The allocator is told a type, but not whether it makes one or many of them, and no type
 * where the object has no pointers. That its caller knows: makeslice makes a slice of them,
 * rawstring the bytes of a string.
 *
 * Source: callers of mallocgc, newobject and newarray in runtime, internal/runtime/maps
 * and reflect, Go 1.18 to 1.27.
 */
#ifndef GO_RTMAKER_H
#define GO_RTMAKER_H

#include "go/probesite.h"

enum made_kind {
	MADE_OTHER,	/* no maker: whoever calls it has made one object of the type */
	MADE_ALLOCATOR, /* the allocator's own: ask its caller */
	MADE_ONE,	/* one of the type, unless its caller is a maker of channels */
	MADE_SLICE,	/* of the type */
	MADE_CHAN,  /* what it is called with is the channel's type; the allocator gets another */
	MADE_KNOWN, /* always the same: made.name */
	MADE_BOXED, /* a value in an interface, of a type that only the caller knows; see rtbox.h */
};

/* What the values of MADE_BOXED have in common. */
enum made_box { BOX_NONE, BOX_2, BOX_4, BOX_8 /* bytes without pointers */, BOX_STRING, BOX_SLICE };

struct made {
	enum made_kind kind;
	const char *name; /* static; of MADE_KNOWN; of MADE_BOXED, when nobody tells the type */
	enum made_box box;
};

/* By the function's name, as pclntab and the inline tree have it. */
struct made rtmaker_of(const char *func);

/* Where a maker is called: the type is its argument @arg, the first is 0. */
struct maker_site {
	struct probesite site;
	unsigned int arg;
};

/*
 * The makers that may pass the allocator another type than their own, or none: growslice,
 * makechan, makeslicecopy; those of them that this binary has and that have a stack check.
 * Their number, or an error of @b.
 */
enum { MAKER_SITES_MAX = 3 };
int rtmaker_sites(struct gobin *b, struct maker_site out[MAKER_SITES_MAX], struct err *e);

#endif
