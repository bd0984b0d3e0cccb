/*
 * user/ingest/heapdump/graph/classify.h - the class of an object by what its record tells: its size, where
 * it has pointers, and in dumps of Go 1.3 its type.
 */
#ifndef INGEST_HEAPDUMP_CLASSIFY_H
#define INGEST_HEAPDUMP_CLASSIFY_H

#include "heapgraph/classes.h"
#include "ingest/heapdump/heapdump.h"

/* Zero it but for @c. */
struct dumpclassify {
	struct classes *c; /* borrowed, as its names */
	/* private: */
	VEC(uint32_t) offsets; /* of the object that is read */
	struct map types;      /* of Go 1.3, by address: the name */
};

void dumpclassify_fini(struct dumpclassify *x);

/* A type of Go 1.3, before its objects. False: there is no memory. */
bool dumpclassify_type(struct dumpclassify *x, const struct heapdump_type *t);

/* An object without a layout: begin, and each of its pointers. False: there is no memory. */
void dumpclassify_begin(struct dumpclassify *x);
bool dumpclassify_pointer(struct dumpclassify *x, uint64_t offset);
/* The class of that one, or of one with a layout. */
uint16_t dumpclassify_class(struct dumpclassify *x, const struct heapdump_object *o);

/* The same, where most have one that was asked for before. */
static inline uint16_t dumpclassify_of(struct dumpclassify *x, const struct heapdump_object *o)
{
	return o->layout && o->layout->tag ? (uint16_t)(o->layout->tag - 1) :
					     dumpclassify_class(x, o);
}

#endif
