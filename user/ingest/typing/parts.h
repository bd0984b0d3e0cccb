/*
 * user/ingest/typing/parts.h - parts of objects that are to be looked through as values of a type, each
 * byte once for each type.
 *
 * Slices may lead to each element of an array that is not known otherwise, and reach to its end: looked
 * through one after the other, that takes time by the square of its length. So ranges that were asked
 * for are kept, and of a new one only what they leave of it is looked through.
 */
#ifndef INGEST_TYPING_PARTS_H
#define INGEST_TYPING_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

/* Values side by side in one object. */
struct typing_part {
	uint64_t addr, count;
	uint32_t type;
	uint32_t object; /* its index */
};

struct typing_parts {
	size_t max; /* parts at a time; 0: as many as are right */
	/* private: */
	VEC(struct typing_part) todo;
	void *done;   /* ranges: a tree of tsearch(3) */
	size_t ndone; /* in it */
};

/* A zeroed struct has none. @size: of a value, not 0. False: there is no room, or no memory. */
bool typing_parts_add(struct typing_parts *p, const struct typing_part *part, uint64_t size);
/* False: there are no more for now. */
bool typing_parts_take(struct typing_parts *p, struct typing_part *out);
void typing_parts_fini(struct typing_parts *p);

#endif
