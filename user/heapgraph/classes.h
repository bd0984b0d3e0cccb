/*
 * user/heapgraph/classes.h - what objects are: a class for each, by its type or else by its layout.
 *
 * Objects of one class have one size, and pointers at the same offsets. A source that knows no types
 * gives layouts; one that does puts objects into the classes of their types.
 */
#ifndef HEAPGRAPH_CLASSES_H
#define HEAPGRAPH_CLASSES_H

#include "base/map.h"
#include "base/sys/spill.h"
#include "base/strtab.h"
#include "base/vec.h"

enum heap_certainty {
	HEAP_LAYOUT,   /* only its size is known, and where its pointers are */
	HEAP_INFERRED, /* something of a known type points to it */
	HEAP_EXACT,    /* the object itself says so, or an interface that points to it */
};

struct heap_field {
	uint32_t offset;
	uint32_t name; /* in names; 0: it has none */
};

struct heap_class {
	uint32_t name; /* in names: "main.node", "[]main.node", "48 B, pointers at 0 8" */
	enum heap_certainty certainty;
	uint64_t size;	/* of an object: what the allocator took for it */
	uint32_t count; /* objects */
	uint32_t first,
		nfields; /* its pointers, in fields, by offset; nfields 0: not told, or none */
	uint32_t base,
		stride; /* of an array: where its elements begin, and bytes of each; stride 0: none */
	uint32_t site;	  /* in names: who allocates most of them, by samples; 0: not known */
	uint64_t sampled; /* those of them that were sampled there */
};

/* No object has more classes than this: of those that come later each is in class 0. */
enum { CLASSES_MAX = UINT16_MAX };
/* A layout with more pointers is told by so many first ones. */
enum { LAYOUT_POINTERS_MAX = 1 << 20 };
enum { LAYOUTS_RECENT = 64 };

struct classes {
	VEC(struct heap_class) all; /* all.at[0]: "other", of which there are too many */
	VEC(struct heap_field) fields;
	struct strtab *names; /* borrowed */
	uint16_t *of;	      /* by object index */
	uint32_t nobjects, cap;
	uint64_t other_bytes; /* of the objects in class 0 */
	bool untold;	      /* there was no room for the fields of some class */
	struct map keys;      /* private, and so are layouts that were asked for lately: */
	uint16_t recent[LAYOUTS_RECENT];
};

/* @names outlives it. At first each of the objects, which have @bytes in all, is in class 0. */
int classes_init(struct classes *c, struct strtab *names, uint32_t nobjects, uint64_t bytes,
		 struct err *e);
void classes_fini(struct classes *c);
/* Room for more objects. */
bool classes_grow(struct classes *c);
/* One object more, of this class; of class 0 the size is not known otherwise. False: no memory. */
static inline bool classes_add(struct classes *c, uint16_t class, uint64_t size)
{
	if (c->nobjects == c->cap && !classes_grow(c))
		return false;
	c->of[c->nobjects++] = class;
	c->all.at[class].count++;
	if (!class)
		c->other_bytes += size;
	return true;
}

/* The class of all that have this size, and pointers at these offsets. 0: there are too many. */
uint16_t classes_layout(struct classes *c, uint64_t size, const uint32_t *offsets, size_t n);
/*
 * The class with this key, which is new if *made: then the caller sets its name and its fields
 * (classes_field, by offset).
 */
uint16_t classes_typed(struct classes *c, uint64_t key, uint64_t size,
		       enum heap_certainty certainty, bool *made);
bool classes_field(struct classes *c, uint16_t class, uint32_t offset, uint32_t name);
/* An object is of this class, whose size it has, and of no other one any more. Class 0 is final. */
void classes_put(struct classes *c, uint32_t index, uint16_t class);

/* So many objects of a class that were sampled come from @site: the most wins. */
void classes_sampled(struct classes *c, uint16_t class, uint32_t site, uint64_t objects);

/* Classes with one name together. */
struct class_sum {
	uint32_t name;
	enum heap_certainty certainty; /* the least of them */
	uint32_t site;		       /* of the first of them that has one */
	uint64_t objects, bytes;
	uint64_t by[3]; /* of the objects: how they are known, by enum heap_certainty */
};
/* By falling bytes; the caller frees *out. */
int classes_sums(const struct classes *c, struct class_sum **out, size_t *n, struct err *e);

#endif
