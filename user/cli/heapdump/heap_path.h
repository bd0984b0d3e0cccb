/* user/cli/heapdump/heap_path.h - how a root leads to one object: as text, as JSON, and as a graph. */
#ifndef CLI_HEAPDUMP_HEAP_PATH_H
#define CLI_HEAPDUMP_HEAP_PATH_H

#include <stdio.h>

#include "heapgraph/classes.h"
#include "ingest/heapdump/graph/graph.h"

enum {
	HEAP_PATH_PASSES = 1,
	HEAP_PATH_SHOWN = 24, /* steps at each end of a long path */
	HEAP_PATH_AROUND = 8, /* others that point to the object, and what it holds */
};

/* One thing of the path, or beside it, and the place in it that points on. */
struct heap_step {
	uint32_t thing;
	uint32_t next;	 /* the thing that it points to; GRAPH_NONE: it is the last one */
	uint64_t offset; /* of the pointer in it; UINT64_MAX: not known */
};

struct heap_path_view {
	const struct dumpgraph *graph;
	const struct classes *classes;
	const struct heap_path *path;
	size_t nsteps; /* without the program */
	struct heap_step steps[2 * HEAP_PATH_SHOWN];
	size_t nshown, before; /* of them those before the gap; before == nshown: there is none */
	struct heap_step others[HEAP_PATH_AROUND]; /* that point to the object as well, */
	uint64_t nothers;			   /* of so many pointers */
	uint32_t held[HEAP_PATH_AROUND];	   /* what it dominates, the heaviest */
	size_t nheld;
};

/* Reads the dump's pointers again, for the fields. -ENOENT: no object is at the address. */
int heap_path_view(struct heap_path_view *v, struct dumpgraph *g, const struct classes *c,
		   struct heapdump *d, struct err *e);

void heap_path_text(const struct heap_path_view *v);
/* The exit status. */
int heap_path_json(const struct heap_path_view *v, const char *file, int status);
/* For Graphviz: the path, who else points to the object, and what it holds. */
int heap_path_dot(const struct heap_path_view *v, FILE *f, struct err *e);

#endif
