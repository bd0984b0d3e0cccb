/* user/heapgraph/heapgraph.c - puts objects, edges and holders together. */
#include "heapgraph/heapgraph.h"

#include "base/cleanup.h"

int heapgraph_init(struct heapgraph *h, struct err *e)
{
	*h = (struct heapgraph){};
	return strtab_new(&h->names, e);
}

void heapgraph_fini(struct heapgraph *h)
{
	objects_fini(&h->objects);
	graph_fini(&h->graph);
	dominators_fini(&h->dom);
	spill_fini(&h->holders);
	strtab_free(h->names);
	spill_free(h->leaf);
	spill_free(h->retained);
	*h = (struct heapgraph){};
}

/* ---- the first round ---- */

int heapgraph_object(struct heapgraph *h, uint64_t addr, uint64_t size, bool pointers,
		     struct err *e)
{
	return objects_add(&h->objects, addr, size, pointers, e);
}

int heapgraph_objects_end(struct heapgraph *h, struct err *e)
{
	int ret = objects_seal(&h->objects, e);

	if (!ret && h->path)
		heap_path_objects(h->path, &h->objects);
	return ret;
}

/* ---- the second ---- */

int heapgraph_node(struct heapgraph *h, struct err *e)
{
	return graph_node(&h->graph, e);
}

int heapgraph_holder(struct heapgraph *h, const struct holder *holder, struct err *e)
{
	struct holder *to = spill_add(&h->holders, UINT32_MAX - 2 - h->objects.n);

	if (!to)
		return err_set(e, -ENOMEM, "no memory for %zu roots", h->holders.n);
	*to = *holder;
	return graph_node(&h->graph, e);
}

int heapgraph_points(struct heapgraph *h, uint64_t addr, struct err *e)
{
	struct object to;

	if (!addr || !objects_find(&h->objects, addr, &to))
		return 0;
	if (h->holders.n)
		h->holders.at[h->holders.n - 1].holds = true;
	if (to.node)
		return graph_edge(&h->graph, to.nodes, e);
	return h->path ? heap_path_points(h->path, (uint32_t)h->graph.first.n - 1, &to, e) : 0;
}

int heapgraph_has_frame(struct heapgraph *h, uint32_t frame, struct err *e)
{
	if (!h->holders.at[frame].holds)
		return 0;
	h->holders.at[h->holders.n - 1].holds = true;
	return graph_edge(&h->graph, heapgraph_thing_of_holder(h, frame), e);
}

int heapgraph_edges_end(struct heapgraph *h, struct err *e)
{
	int ret = graph_node(&h->graph, e);

	h->program = heapgraph_thing_of_holder(h, (uint32_t)h->holders.n);
	for (uint32_t i = 0; !ret && i < h->holders.n; i++) {
		spill_turn(i);
		if (h->holders.at[i].kind != HOLDER_FRAME && h->holders.at[i].holds)
			ret = graph_edge(&h->graph, heapgraph_thing_of_holder(h, i), e);
	}
	if (!ret)
		ret = graph_seal(&h->graph, e);
	if (!ret && h->path)
		ret = heap_path_find(h->path, &h->graph, h->program,
				     heapgraph_thing_of(h, &h->path->object), e);
	if (!ret)
		ret = dominators_find(&h->dom, &h->graph, h->program, e);
	if (ret)
		return ret;
	h->leaf = spill_alloc((size_t)(h->objects.n - h->objects.nnodes) + 1, sizeof(*h->leaf));
	return h->leaf ? 0 : err_set(e, -ENOMEM, "no memory for %u objects", h->objects.n);
}

/* ---- the third ---- */

void heapgraph_points_leaf(struct heapgraph *h, uint32_t thing, uint64_t addr)
{
	uint32_t number = h->dom.number[thing], *leaf;
	struct object to;

	if (!addr || !number || !objects_find(&h->objects, addr, &to) || to.node)
		return;
	leaf = &h->leaf[object_leaf(&to)];
	*leaf = *leaf ? dominators_join(&h->dom, *leaf, number) : number;
}

int heapgraph_end(struct heapgraph *h, struct err *e)
{
	struct objects_walk walk = {};
	struct object o;

	spill_free(h->dom.head);
	h->dom.head = NULL;
	h->retained = spill_alloc((size_t)h->dom.n + 1, sizeof(*h->retained));
	if (!h->retained)
		return err_set(e, -ENOMEM, "no memory for %u objects", h->dom.n);
	/* What has number 0 cannot be reached. */
	while (objects_next(&h->objects, &walk, &o)) {
		spill_turn(o.index);
		h->retained[o.node ? h->dom.number[o.nodes] : h->leaf[object_leaf(&o)]] += o.size;
	}
	for (uint32_t v = h->dom.n; v > 1; v--) {
		spill_turn(v);
		h->retained[h->dom.dom[v]] += h->retained[v];
	}
	return 0;
}

/* ---- asking ---- */

static bool is_leaf(const struct heapgraph *h, uint32_t thing)
{
	return thing > h->program;
}

static uint32_t leaf_of(const struct heapgraph *h, uint32_t thing)
{
	return thing - h->program - 1;
}

uint32_t heapgraph_things(const struct heapgraph *h)
{
	return h->program + 1 + h->objects.n - h->objects.nnodes;
}

uint32_t heapgraph_thing_of(const struct heapgraph *h, const struct object *o)
{
	return o->node ? o->nodes : h->program + 1 + object_leaf(o);
}

bool heapgraph_object_of(const struct heapgraph *h, uint32_t thing, struct object *out)
{
	if (is_leaf(h, thing))
		*out = objects_leaf(&h->objects, leaf_of(h, thing));
	else if (thing < h->objects.nnodes)
		*out = objects_node(&h->objects, thing);
	else
		return false;
	return true;
}

const struct holder *heapgraph_holder_of(const struct heapgraph *h, uint32_t thing)
{
	bool is = thing >= h->objects.nnodes && thing < h->program;

	return is ? &h->holders.at[thing - h->objects.nnodes] : NULL;
}

bool heapgraph_reached(const struct heapgraph *h, uint32_t thing)
{
	return is_leaf(h, thing) ? h->leaf[leaf_of(h, thing)] : h->dom.number[thing];
}

/* 0: it cannot be reached, or is the program. */
static uint32_t dominator_number(const struct heapgraph *h, uint32_t thing)
{
	return is_leaf(h, thing) ? h->leaf[leaf_of(h, thing)] : h->dom.dom[h->dom.number[thing]];
}

uint32_t heapgraph_dominator(const struct heapgraph *h, uint32_t thing)
{
	uint32_t number = dominator_number(h, thing);

	return number ? h->dom.node[number] : GRAPH_NONE;
}

uint64_t heapgraph_retained(const struct heapgraph *h, uint32_t thing)
{
	struct object o;

	if (!heapgraph_reached(h, thing))
		return 0;
	if (!is_leaf(h, thing))
		return h->retained[h->dom.number[thing]];
	return heapgraph_object_of(h, thing, &o) ? o.size : 0;
}

struct heaviest {
	uint32_t *thing;
	uint64_t bytes[64];
	size_t n, max;
};

static void offer(struct heaviest *t, uint32_t thing, uint64_t bytes)
{
	size_t i;

	if (t->n == t->max && bytes <= t->bytes[t->n - 1])
		return;
	for (i = t->n < t->max ? t->n++ : t->n - 1; i && t->bytes[i - 1] < bytes; i--) {
		t->bytes[i] = t->bytes[i - 1];
		t->thing[i] = t->thing[i - 1];
	}
	t->bytes[i] = bytes;
	t->thing[i] = thing;
}

size_t heapgraph_heaviest(const struct heapgraph *h, uint32_t thing, uint32_t *out, size_t max)
{
	struct heaviest t = { .thing = out, .max = max };
	uint32_t number = is_leaf(h, thing) ? 0 : h->dom.number[thing];
	struct objects_walk walk = {};
	struct object o;

	BUG_ON(!max || max > ARRAY_LEN(t.bytes));
	if (!number)
		return 0;
	for (uint32_t v = number + 1; v <= h->dom.n; v++) {
		spill_turn(v);
		if (h->dom.dom[v] == number)
			offer(&t, h->dom.node[v], h->retained[v]);
	}
	while (objects_next(&h->objects, &walk, &o)) {
		spill_turn(o.index);
		if (!o.node && h->leaf[object_leaf(&o)] == number)
			offer(&t, heapgraph_thing_of(h, &o), o.size);
	}
	return t.n;
}

int heapgraph_each_top(const struct heapgraph *h,
		       int (*fn)(void *arg, uint32_t thing, struct err *e), void *arg,
		       struct err *e)
{
	struct objects_walk walk = {};
	struct object o;
	int ret = 0;

	for (uint32_t v = 2; !ret && v <= h->dom.n; v++) {
		spill_turn(v);
		if (h->dom.dom[v] == 1)
			ret = fn(arg, h->dom.node[v], e);
	}
	while (!ret && objects_next(&h->objects, &walk, &o)) {
		spill_turn(o.index);
		if (!o.node && h->leaf[object_leaf(&o)] == 1)
			ret = fn(arg, heapgraph_thing_of(h, &o), e);
	}
	return ret;
}

int heapgraph_descend(const struct heapgraph *h, uint32_t thing, double share, uint32_t *out,
		      size_t max, size_t *n, struct err *e)
{
	CLEANUP(spill_freep) uint32_t *heavy = spill_alloc((size_t)h->dom.n + 1, sizeof(*heavy));
	uint32_t v = is_leaf(h, thing) ? 0 : h->dom.number[thing];

	if (!heavy)
		return err_set(e, -ENOMEM, "no memory for %u objects", h->dom.n);
	for (uint32_t i = 2; i <= h->dom.n; i++) {
		uint32_t *of = &heavy[h->dom.dom[i]];

		spill_turn(i);
		if (!*of || h->retained[i] > h->retained[*of])
			*of = i;
	}
	for (*n = 0; v && *n < max; v = heavy[v]) {
		uint32_t up = *n ? h->dom.dom[v] : 0;

		if (up && (double)h->retained[v] < share * (double)h->retained[up])
			break;
		out[(*n)++] = h->dom.node[v];
	}
	return 0;
}
