/* user/heapgraph/path.c - breadth first from the program on. */
#include "heapgraph/path.h"

#include "base/cleanup.h"

void heap_path_fini(struct heap_path *p)
{
	vec_fini(&p->things);
	vec_fini(&p->holders);
}

void heap_path_objects(struct heap_path *p, const struct objects *o)
{
	p->found = objects_find(o, p->addr, &p->object);
}

static int add(struct heap_things *to, uint32_t thing, struct err *e)
{
	uint32_t *at = vec_add(to, UINT32_MAX);

	if (!at)
		return err_set(e, -ENOMEM, "no memory for a path");
	*at = thing;
	return 0;
}

int heap_path_points(struct heap_path *p, uint32_t thing, const struct object *to, struct err *e)
{
	if (!p->found || p->object.node || to->index != p->object.index)
		return 0;
	return add(&p->holders, thing, e);
}

/* What the search ends at: the object, or one of those that point to it. */
static bool *ends(const struct heap_path *p, uint32_t nodes)
{
	bool *at = spill_alloc((size_t)nodes + 1, sizeof(*at));

	if (!at)
		return NULL;
	if (p->object.node)
		at[p->object.nodes] = true;
	for (size_t i = 0; i < p->holders.n; i++)
		at[p->holders.at[i]] = true;
	return at;
}

/* @up: by node, the one that it was found from. Returns the end that was found; GRAPH_NONE: none. */
static uint32_t search(const struct graph *g, uint32_t program, const bool *end, uint32_t *up,
		       uint32_t *queue)
{
	size_t done = 0, n = 0;

	for (uint32_t i = 0; i < graph_nodes(g); i++) {
		spill_turn(i);
		up[i] = GRAPH_NONE;
	}
	up[program] = program;
	queue[n++] = program;
	while (done < n) {
		uint32_t node = queue[done++];

		spill_turn(done);
		if (end[node])
			return node;
		for (uint32_t i = g->first.at[node]; i < g->first.at[node + 1]; i++) {
			uint32_t to = g->edges.at[i];

			spill_turn(i);
			if (up[to] != GRAPH_NONE)
				continue;
			up[to] = node;
			queue[n++] = to;
		}
	}
	return GRAPH_NONE;
}

static void reverse(uint32_t *at, size_t n)
{
	for (size_t i = 0; i < n / 2; i++) {
		uint32_t other = at[i];

		at[i] = at[n - 1 - i];
		at[n - 1 - i] = other;
	}
}

int heap_path_find(struct heap_path *p, const struct graph *g, uint32_t program, uint32_t leaf,
		   struct err *e)
{
	uint32_t nodes = graph_nodes(g), at;
	CLEANUP(spill_freep) uint32_t *up = spill_alloc((size_t)nodes + 1, sizeof(*up));
	CLEANUP(spill_freep) uint32_t *queue = spill_alloc((size_t)nodes + 1, sizeof(*queue));
	CLEANUP(spill_freep) bool *end = ends(p, nodes);
	int ret = 0;

	if (!up || !queue || !end)
		return err_set(e, -ENOMEM, "no memory for a path among %u objects", nodes);
	at = p->found ? search(g, program, end, up, queue) : GRAPH_NONE;
	if (at == GRAPH_NONE)
		return 0;
	if (!p->object.node)
		ret = add(&p->things, leaf, e);
	for (; !ret && at != program; at = up[at])
		ret = add(&p->things, at, e);
	if (!ret)
		ret = add(&p->things, program, e);
	reverse(p->things.at, p->things.n);
	return ret;
}
