/* user/cli/heapdump/heap_holders.h - who holds what of a dump, and as a profile. */
#ifndef CLI_HEAPDUMP_HEAP_HOLDERS_H
#define CLI_HEAPDUMP_HEAP_HOLDERS_H

#include <stdio.h>

#include "heapgraph/holdings.h"
#include "ingest/heapdump/graph/graph.h"
#include "profile/profile.h"

/* How often it reads the file. */
enum { HEAP_HOLDERS_PASSES = 2 };

/* Reads the dump's pointers again; @x holds no sums yet. */
int heap_holders_read(struct holdings *x, struct dumpgraph *g, const struct classes *c,
		      struct heapdump *d, struct err *e);

/*
 * A profile whose stacks lead from a root down to objects, and whose values are theirs. What cannot
 * be reached is one sample, so that the sum is all of the heap. Before holdings_sum().
 */
int heap_holders_profile(const struct holdings *x, const struct dumpgraph *g, struct prof **out,
			 struct err *e);

/* For Graphviz: the largest holdings, with all that hold them. After holdings_sum(). */
int heap_holders_dot(const struct holdings *x, FILE *f, struct err *e);

#endif
