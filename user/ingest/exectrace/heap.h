/* user/ingest/exectrace/heap.h - what comes next of many: a binary heap. */
#ifndef INGEST_EXECTRACE_HEAP_H
#define INGEST_EXECTRACE_HEAP_H

#include "base/vec.h"

struct heap_item {
	int64_t key; /* the least comes first, */
	int64_t id;  /* of equal ones that with the least id */
	int64_t value;
};

struct heap {
	VEC(struct heap_item) items; /* items.at[0] is the first, if items.n */
};

void heap_fini(struct heap *h);
/* False: there is no memory. */
bool heap_push(struct heap *h, struct heap_item item);
/* The first one goes; there is one. */
struct heap_item heap_pop(struct heap *h);
/* The same, and another one comes. */
struct heap_item heap_replace(struct heap *h, struct heap_item item);

static inline bool heap_before(const struct heap_item *a, const struct heap_item *b)
{
	return a->key != b->key ? a->key < b->key : a->id < b->id;
}

#endif
