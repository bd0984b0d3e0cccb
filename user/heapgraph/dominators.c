/* user/heapgraph/dominators.c - Semi-NCA over numbers in depth-first preorder. */
#include "heapgraph/dominators.h"

#include "base/cleanup.h"

/* Everything is indexed by preorder number, from 1 on. */
struct work {
	const struct graph *g;
	struct dominators *d;
	uint32_t *parent; /* in the depth-first tree; then the ancestor, compressed */
	uint32_t *semi;	 /* at first the stack: numbers of nodes; in the end heads of heavy paths */
	uint32_t *label; /* at first the stack: next edges; in the end heavy children */
	uint32_t *first; /* of its predecessors, in preds */
	uint32_t *preds;
};

static uint32_t *numbers(size_t n)
{
	return spill_alloc(n + 2, sizeof(uint32_t));
}

/* ---- depth first ---- */

static void enter(struct work *w, uint32_t node, uint32_t parent, size_t *depth)
{
	uint32_t number = ++w->d->n;

	w->d->number[node] = number;
	w->d->node[number] = node;
	w->parent[number] = parent;
	w->semi[*depth] = number;
	w->label[*depth] = w->g->first.at[node];
	++*depth;
}

static void depth_first(struct work *w, uint32_t root)
{
	size_t depth = 0;
	uint64_t turn = 0;

	enter(w, root, 0, &depth);
	while (depth) {
		uint32_t number = w->semi[depth - 1], node = w->d->node[number];
		uint32_t end = w->g->first.at[node + 1], at = w->label[depth - 1], to = 0;

		spill_turn(turn++);
		for (; at < end; at++) {
			to = w->g->edges.at[at];
			if (!w->d->number[to])
				break;
		}
		if (at == end) {
			depth--;
			continue;
		}
		w->label[depth - 1] = at + 1;
		enter(w, to, number, &depth);
	}
}

/* ---- predecessors ---- */

/* A node's parent in the depth-first tree needs no mention. */
static int turn_around(struct work *w, struct err *e)
{
	const struct dominators *d = w->d;
	uint32_t sum = 0;

	for (uint32_t v = 1; v <= d->n; v++) {
		uint32_t node = d->node[v];

		for (uint32_t i = w->g->first.at[node]; i < w->g->first.at[node + 1]; i++) {
			uint32_t to = w->g->edges.at[i];

			spill_turn(i);
			if (w->parent[d->number[to]] != v)
				w->first[d->number[to]]++;
		}
	}
	for (uint32_t v = 1; v <= d->n + 1; v++) {
		spill_turn(v);
		sum += w->first[v];
		w->first[v] = sum; /* the end of its part; filling makes it the beginning */
	}
	w->preds = numbers(sum);
	if (!w->preds)
		return err_set(e, -ENOMEM, "no memory for %u pointers", sum);
	for (uint32_t v = 1; v <= d->n; v++) {
		uint32_t node = d->node[v];

		for (uint32_t i = w->g->first.at[node]; i < w->g->first.at[node + 1]; i++) {
			uint32_t to = w->g->edges.at[i];

			spill_turn(i);
			if (w->parent[d->number[to]] != v)
				w->preds[--w->first[d->number[to]]] = v;
		}
	}
	return 0;
}

/* ---- semidominators ---- */

/*
 * The node with the least semidominator on the way from @v up to, and without, the part of the
 * tree that is not linked yet (numbers below @linked). The way is compressed: the label of each
 * node on it becomes what was found from there.
 */
static uint32_t eval(struct work *w, uint32_t v, uint32_t linked, uint32_t *path)
{
	size_t n = 0;

	if (w->parent[v] < linked)
		return w->label[v];
	do {
		spill_turn(n);
		path[n++] = v;
		v = w->parent[v];
	} while (w->parent[v] >= linked);
	for (uint32_t above = v; n--; above = v) {
		spill_turn(n);
		v = path[n];
		w->parent[v] = w->parent[above];
		if (w->semi[w->label[above]] < w->semi[w->label[v]])
			w->label[v] = w->label[above];
	}
	return w->label[v];
}

static void semidominators(struct work *w, uint32_t *path)
{
	uint32_t n = w->d->n;

	for (uint32_t v = 1; v <= n; v++) {
		spill_turn(v);
		w->d->dom[v] = w->semi[v] = w->parent[v];
		w->label[v] = v;
	}
	for (uint32_t v = n; v > 1; v--) {
		spill_turn(v);
		for (uint32_t i = w->first[v]; i < w->first[v + 1]; i++) {
			uint32_t u = w->preds[i];
			uint32_t least = u <= v ? u : w->semi[eval(w, u, v + 1, path)];

			spill_turn(i);
			if (least < w->semi[v])
				w->semi[v] = least;
		}
	}
	/* A dominator is the nearest ancestor that is no younger than the semidominator. */
	for (uint32_t v = 2; v <= n; v++) {
		spill_turn(v);
		while (w->d->dom[v] > w->semi[v])
			w->d->dom[v] = w->d->dom[w->d->dom[v]];
	}
}

/* ---- common ancestors ---- */

/*
 * Heavy paths of the dominator tree: from each node on they lead to the child with the most nodes
 * below it, so that every way up changes paths at most 32 times. @count: room for numbers.
 */
static void heavy_paths(struct work *w, uint32_t *count)
{
	uint32_t n = w->d->n, *head = w->semi, *heavy = w->label;

	for (uint32_t v = 1; v <= n; v++) {
		spill_turn(v);
		heavy[v] = 0;
		count[v] = 1;
	}
	for (uint32_t v = n; v > 1; v--) {
		uint32_t up = w->d->dom[v];

		spill_turn(v);
		count[up] += count[v];
		if (!heavy[up] || count[v] > count[heavy[up]])
			heavy[up] = v;
	}
	head[1] = 1;
	for (uint32_t v = 2; v <= n; v++) {
		spill_turn(v);
		head[v] = heavy[w->d->dom[v]] == v ? head[w->d->dom[v]] : v;
	}
}

/* The dominator of a node has a lower number than the node. */
uint32_t dominators_join(const struct dominators *d, uint32_t a, uint32_t b)
{
	const uint32_t *head = d->head;

	while (head[a] != head[b])
		if (head[a] > head[b])
			a = d->dom[head[a]];
		else
			b = d->dom[head[b]];
	return a < b ? a : b;
}

/* ---- all of it ---- */

static void work_fini(struct work *w)
{
	spill_free(w->parent);
	spill_free(w->semi);
	spill_free(w->label);
	spill_free(w->first);
	spill_free(w->preds);
}

static int no_memory(uint32_t n, struct err *e)
{
	return err_set(e, -ENOMEM, "no memory for dominators of %u objects", n);
}

int dominators_find(struct dominators *d, struct graph *g, uint32_t root, struct err *e)
{
	uint32_t n = graph_nodes(g);
	CLEANUP(work_fini)
	struct work w = { .g = g,
			  .d = d,
			  .parent = numbers(n),
			  .semi = numbers(n),
			  .label = numbers(n),
			  .first = numbers(n) };
	CLEANUP(spill_freep) uint32_t *path = NULL;
	int ret;

	*d = (struct dominators){ .node = numbers(n), .number = numbers(n) };
	if (!w.parent || !w.semi || !w.label || !w.first || !d->node || !d->number)
		return no_memory(n, e);
	depth_first(&w, root);
	ret = turn_around(&w, e);
	if (ret)
		return ret;
	graph_fini(g);
	d->dom = numbers(d->n);
	path = numbers(d->n);
	if (!d->dom || !path)
		return no_memory(n, e);
	semidominators(&w, path);
	heavy_paths(&w, w.parent);
	d->head = TAKE(w.semi);
	return 0;
}

void dominators_fini(struct dominators *d)
{
	spill_free(d->node);
	spill_free(d->number);
	spill_free(d->dom);
	spill_free(d->head);
	*d = (struct dominators){};
}
