/*
 * user/ingest/heapdump/types.h - what types and itabs in a dump of Go 1.3 or 1.4 say of pointers.
 *
 * Go 1.3 writes with each type where it has pointers, and with each object no more than its type, and
 * whether it is one of it, an array or a channel. Both versions write for types and itabs whether the
 * second word of an interface with them is a pointer: before Go 1.4 it may be the value itself.
 * Source: dumpobj(), dumpobjs(), dumpefacetypes(), dumptype() and itab_callback() in
 * runtime/heapdump.c of Go 1.3 and 1.4.
 */
#ifndef INGEST_HEAPDUMP_TYPES_H
#define INGEST_HEAPDUMP_TYPES_H

#include "base/map.h"
#include "base/vec.h"
#include "ingest/heapdump/heapdump.h"

/* Of an object: one of its type, many side by side, the same after a channel's header, or unknown. */
enum { DUMPTYPES_ONE = 0, DUMPTYPES_ARRAY = 1, DUMPTYPES_CHAN = 2, DUMPTYPES_ANY = 127 };

struct dumptype {
	uint64_t size;
	uint32_t first, n; /* its places */
	bool told;	   /* these are known */
	bool pointer;	   /* the second word of an interface that holds one is a pointer */
};

/* A zeroed struct is empty. What there is no room for is unknown: then any word may be a pointer. */
struct dumptypes {
	VEC(struct dumptype) all;
	VEC(uint32_t) places; /* offset * 8 + kind */
	struct map types;     /* by address: index in all */
	struct map itabs;     /* by address: may the word be a pointer? */
	bool open;	      /* the last type is being told */
};

void dumptypes_fini(struct dumptypes *t);

/* Its places follow, then dumptypes_end(). What is told of a type a second time is ignored. */
void dumptypes_begin(struct dumptypes *t, uint64_t addr, uint64_t size, bool pointer);
void dumptypes_place(struct dumptypes *t, enum heapdump_field_kind kind, uint64_t offset);
/* @told: all places were. @word: the bytes of a pointer. */
void dumptypes_end(struct dumptypes *t, bool told, uint64_t word);
void dumptypes_itab(struct dumptypes *t, uint64_t addr, bool pointer);
/* NULL: unknown. Valid until the next one begins. */
const struct dumptype *dumptypes_get(const struct dumptypes *t, uint64_t addr);

/* May the second word of an interface be a pointer, by its first word? */
bool dumptypes_is_pointer(const struct dumptypes *t, enum heapdump_field_kind kind, uint64_t word);

/* The pointers of one object, as its type has them. */
struct dumptypes_walk {
	struct dumptype type;
	uint64_t base, end; /* of the value that is looked at, and of the object */
	uint64_t step;	    /* to the next value; 0: there is one value */
	uint32_t at;	    /* place */
};
/* @header: bytes before a channel's elements. False: any word may be a pointer. */
bool dumptypes_walk(const struct dumptypes *t, const struct heapdump_object *o, uint64_t header,
		    struct dumptypes_walk *w);
/* The places of the type itself. */
bool dumptypes_walk_type(const struct dumptypes *t, uint64_t addr, struct dumptypes_walk *w);
/* False: there are no more. A place may lie partly behind the object's end. */
bool dumptypes_next(const struct dumptypes *t, struct dumptypes_walk *w,
		    enum heapdump_field_kind *kind, uint64_t *offset);

#endif
