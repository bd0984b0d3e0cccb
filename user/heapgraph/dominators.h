/*
 * user/heapgraph/dominators.h - who holds whom: the dominator tree.
 *
 * A node dominates another one if every way from the root to that one leads through it: were it
 * gone, all that it dominates could be freed.
 *
 * Method: Semi-NCA (Georgiadis: semidominators by path compression, as Lengauer and Tarjan's, then
 * nearest common ancestors), in nearly linear time. Numbers are those of a depth-first preorder.
 */
#ifndef HEAPGRAPH_DOMINATORS_H
#define HEAPGRAPH_DOMINATORS_H

#include "heapgraph/graph.h"

struct dominators {
	uint32_t n;	  /* nodes that can be reached from the root */
	uint32_t *node;	  /* by number, from 1 on; the root has 1 */
	uint32_t *number; /* by node; 0: it cannot be reached */
	uint32_t *dom;	  /* by number: the number of its dominator; that of the root is 0 */
	uint32_t *head;	  /* by number: the first of its heavy path; NULL: no longer needed */
};

/* @g is emptied: its memory is needed here. */
int dominators_find(struct dominators *d, struct graph *g, uint32_t root, struct err *e);
void dominators_fini(struct dominators *d);

/* The nearest common ancestor of two numbers. While there is @head. */
uint32_t dominators_join(const struct dominators *d, uint32_t a, uint32_t b);

#endif
