/*
 * user/heapgraph/path.h - a shortest path from a root to one object.
 *
 * The graph's edges live only until the dominators are known, so what is looked for must be told
 * before (heapgraph.path).
 */
#ifndef HEAPGRAPH_PATH_H
#define HEAPGRAPH_PATH_H

#include "heapgraph/graph.h"
#include "heapgraph/objects.h"

struct heap_things {
	uint32_t *at;
	size_t n, cap;
};

struct heap_path {
	uint64_t addr; /* in: in the object */
	bool found;    /* there is one, */
	struct object object;
	/* The way: things from the program, whose number is the first one, to the object. Empty: none. */
	struct heap_things things;
	struct heap_things holders; /* private: what points to an object without pointers */
};

void heap_path_fini(struct heap_path *p);

/* Private to heapgraph: */
void heap_path_objects(struct heap_path *p, const struct objects *o);
int heap_path_points(struct heap_path *p, uint32_t thing, const struct object *to, struct err *e);
/* @leaf: the thing that the object is, when it is no node. */
int heap_path_find(struct heap_path *p, const struct graph *g, uint32_t program, uint32_t leaf,
		   struct err *e);

#endif
