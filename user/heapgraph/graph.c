/* user/heapgraph/graph.c - adjacency lists, one behind the other. */
#include "heapgraph/graph.h"

#include "base/cleanup.h"

#define MOST (UINT32_MAX - 2)

int graph_node(struct graph *g, struct err *e)
{
	uint32_t *first = spill_add(&g->first, MOST);

	if (!first)
		return err_set(e, -ENOMEM, "no memory for %zu objects", g->first.n);
	*first = (uint32_t)g->edges.n;
	return 0;
}

int graph_edge(struct graph *g, uint32_t to, struct err *e)
{
	uint32_t *edge = spill_add(&g->edges, MOST);

	if (!edge)
		return err_set(e, -ENOMEM, "no memory for %zu pointers", g->edges.n);
	*edge = to;
	return 0;
}

int graph_seal(struct graph *g, struct err *e)
{
	size_t nodes = g->first.n;

	for (size_t i = 0; i < g->edges.n; i++) {
		spill_turn(i);
		if (g->edges.at[i] >= nodes)
			return err_set(e, -EBADMSG, "a pointer to object %u of %zu", g->edges.at[i],
				       nodes);
	}
	return graph_node(g, e);
}

void graph_fini(struct graph *g)
{
	spill_fini(&g->first);
	spill_fini(&g->edges);
}
