/*
 * user/heapgraph/graph.h - who points to whom: nodes with a list of those that each points to.
 *
 * Nodes are numbers. A source of graphs numbers objects first (objects.h), in the order in which
 * it tells their edges, and then what holds them: goroutines, frames, global variables; the last
 * node is the root of all.
 */
#ifndef HEAPGRAPH_GRAPH_H
#define HEAPGRAPH_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/sys/spill.h"

enum { GRAPH_NONE = -1u };

struct graph {
	VEC(uint32_t) first; /* by node: its first edge; one more when it is sealed */
	VEC(uint32_t) edges; /* what it points to */
};

/* The edges that are added next are those of the next node. */
int graph_node(struct graph *g, struct err *e);
int graph_edge(struct graph *g, uint32_t to, struct err *e);
/* All have been added. -EBADMSG: an edge leads to no node. */
int graph_seal(struct graph *g, struct err *e);
void graph_fini(struct graph *g);

static inline uint32_t graph_nodes(const struct graph *g)
{
	return (uint32_t)(g->first.n - 1);
}

static inline uint32_t graph_degree(const struct graph *g, uint32_t node)
{
	return g->first.at[node + 1] - g->first.at[node];
}

#endif
