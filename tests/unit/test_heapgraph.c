/* tests/unit/test_heapgraph.c - objects by address, and dominators against their definition. */
#include "heapgraph/heapgraph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static struct err e;

/* ---- objects ---- */

static void add(struct objects *o, uint64_t addr, uint64_t size)
{
	if (!objects_add_next(o, addr, size, addr & 16))
		assert_int_equal(objects_add(o, addr, size, addr & 16, &e), 0);
}

static uint64_t start(const struct objects *o, uint64_t addr)
{
	uint64_t out[2];

	objects_starts(o, (uint64_t[]){ 0, addr }, 2, out);
	assert_int_equal(out[0], 0);
	return out[1];
}

static void found(const struct objects *o, uint64_t addr, uint32_t want, uint64_t where)
{
	struct object got;

	assert_true(objects_find(o, addr, &got));
	assert_int_equal(start(o, addr), got.addr);
	assert_int_equal(got.index, want);
	assert_int_equal(addr - got.addr, where);
	assert_int_equal(got.node, (got.addr & 16) != 0);
}

static void missing(const struct objects *o, uint64_t addr)
{
	struct object got;

	assert_false(objects_find(o, addr, &got));
	assert_int_equal(start(o, addr), 0);
}

static void same(struct object a, struct object b)
{
	assert_int_equal(a.addr, b.addr);
	assert_int_equal(a.size, b.size);
	assert_int_equal(a.index, b.index);
	assert_int_equal(a.nodes, b.nodes);
	assert_int_equal(a.node, b.node);
}

/* From each run on come its objects first. */
static void walk_runs(const struct objects *o)
{
	struct objects_walk w;
	struct object at = {};
	uint32_t n = 0, nodes = 0;

	for (size_t run = 0; run < o->runs.n; run++) {
		objects_walk_run(o, &w, run);
		for (uint32_t i = objects_in_run(o, run); i; i--) {
			assert_true(objects_next(o, &w, &at));
			assert_int_equal(at.index, n++);
			same(objects_at(o, at.index), at);
			nodes += at.node;
		}
		assert_int_equal(nodes - o->runs.at[run].node, objects_nodes_in_run(o, run));
	}
	assert_int_equal(n, o->n);
}

/* Each way to come to an object leads to the same one. */
static void walk(const struct objects *o)
{
	struct objects_walk w = {};
	struct object at;
	uint32_t n = 0, nodes = 0;

	while (objects_next(o, &w, &at)) {
		assert_int_equal(at.index, n++);
		assert_int_equal(at.nodes, nodes);
		nodes += at.node;
		same(objects_at(o, at.index), at);
		same(at.node ? objects_node(o, at.nodes) : objects_leaf(o, object_leaf(&at)), at);
	}
	assert_int_equal(n, o->n);
	assert_int_equal(nodes, o->nnodes);
	walk_runs(o);
}

/* Spans come in any order; their objects side by side, with gaps. */
static void test_objects(void **state)
{
	struct objects o = {};

	(void)state;
	add(&o, 0xc000004000, 48);
	add(&o, 0xc000004030, 48);
	add(&o, 0xc000004090, 48); /* one is free in between */
	add(&o, 0xc000000000, 16);
	add(&o, 0xc000100000, 1 << 20);
	add(&o, 0xc000000010, 16);
	assert_int_equal(objects_seal(&o, &e), 0);
	assert_int_equal(o.n, 6);
	assert_int_equal(o.bytes, 3 * 48 + 2 * 16 + (1 << 20));
	found(&o, 0xc000004000, 0, 0);
	found(&o, 0xc00000402f, 0, 47);
	found(&o, 0xc000004030, 1, 0);
	missing(&o, 0xc000004060);
	found(&o, 0xc000004098, 2, 8);
	missing(&o, 0xc0000040c0);
	found(&o, 0xc000000008, 3, 8);
	found(&o, 0xc000000010, 5, 0);
	found(&o, 0xc0001fffff, 4, (1 << 20) - 1);
	missing(&o, 0xc000200000);
	missing(&o, 0xbfffffffff);
	missing(&o, 0);
	missing(&o, ~0ull);
	walk(&o);
	objects_fini(&o);
}

/* Many spans, of which a random part of the slots is taken: every object is where it was put. */
static void test_many_objects(void **state)
{
	enum { SPANS = 500 };
	static uint64_t addr[SPANS * 1024];
	struct objects o = {};
	uint32_t n = 0;

	(void)state;
	srand(1);
	for (unsigned s = 0; s < SPANS; s++) {
		uint64_t base = 0xc000000000 + (uint64_t)((s * 7919) % SPANS) * 8192;
		uint64_t size = 8ull << rand() % 8;

		for (uint64_t i = 0; i < 8192 / size; i++)
			if (rand() % 3) {
				addr[n++] = base + i * size;
				add(&o, base + i * size, size);
			}
	}
	assert_int_equal(objects_seal(&o, &e), 0);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(objects_at(&o, i).addr, addr[i]);
		found(&o, addr[i] + objects_at(&o, i).size - 1, i, objects_at(&o, i).size - 1);
	}
	walk(&o);
	objects_fini(&o);
}

static void test_no_objects(void **state)
{
	struct objects o = {};

	(void)state;
	assert_int_equal(objects_seal(&o, &e), 0);
	missing(&o, 0);
	assert_int_equal(objects_add(&o, ~0ull, 8, false, &e), -EBADMSG);
	add(&o, 0xc000000000, 0); /* a dump may say so */
	assert_int_equal(objects_seal(&o, &e), 0);
	missing(&o, 0xc000000000);
	objects_fini(&o);
}

/* ---- dominators ---- */

/* Things: objects of 16 bytes, some of which hold no pointers, and what holds them. */
enum { MOST = 24, BASE = 1 << 20, BYTES = 16 };

struct small {
	unsigned n; /* things: the first is the only holder */
	bool leaf[MOST];
	bool edge[MOST][MOST];
};

static uint64_t addr_of(unsigned thing)
{
	return BASE + thing * BYTES;
}

static void reach(const struct small *s, unsigned from, unsigned without, bool *seen)
{
	if (from == without || seen[from])
		return;
	seen[from] = true;
	for (unsigned i = 1; i < s->n; i++)
		if (!s->leaf[from] && s->edge[from][i])
			reach(s, i, without, seen);
}

static void tell(struct heapgraph *h, const struct small *s)
{
	static const struct holder holder = { .kind = HOLDER_GLOBAL };

	assert_int_equal(heapgraph_init(h, &e), 0);
	for (unsigned i = 1; i < s->n; i++)
		assert_int_equal(heapgraph_object(h, addr_of(i), BYTES, !s->leaf[i], &e), 0);
	assert_int_equal(heapgraph_objects_end(h, &e), 0);
	for (unsigned n = 1; n <= s->n; n++) {
		unsigned i = n % s->n;

		if (s->leaf[i])
			continue;
		assert_int_equal(i ? heapgraph_node(h, &e) : heapgraph_holder(h, &holder, &e), 0);
		for (unsigned k = 1; k < s->n; k++)
			if (s->edge[i][k])
				assert_int_equal(heapgraph_points(h, addr_of(k) + i % BYTES, &e),
						 0);
	}
	assert_int_equal(heapgraph_edges_end(h, &e), 0);
}

static uint32_t thing(const struct heapgraph *h, unsigned i)
{
	struct object o;

	if (!i)
		return heapgraph_thing_of_holder(h, 0);
	assert_true(objects_find(&h->objects, addr_of(i), &o));
	return heapgraph_thing_of(h, &o);
}

static void tell_leaves(struct heapgraph *h, const struct small *s)
{
	for (unsigned i = 0; i < s->n; i++)
		for (unsigned k = 1; k < s->n; k++)
			if (!s->leaf[i] && s->edge[i][k])
				heapgraph_points_leaf(h, thing(h, i), addr_of(k));
	assert_int_equal(heapgraph_end(h, &e), 0);
}

/* What can be reached no longer without a thing is what it retains; thing 0 is no object. */
static uint64_t retains(const struct small *s, const bool *all, unsigned i)
{
	bool left[MOST] = {};
	uint64_t bytes = 0;

	reach(s, 0, i, left);
	for (unsigned k = 1; k < s->n; k++)
		bytes += all[k] && !left[k] ? BYTES : 0;
	return bytes;
}

/* The heaviest of those that each thing dominates immediately, and their order. */
static void compare_children(const struct heapgraph *h, unsigned n, unsigned i)
{
	uint32_t got[MOST];
	size_t want = 0, have = heapgraph_heaviest(h, thing(h, i), got, MOST);

	for (unsigned k = 1; k < n; k++)
		want += heapgraph_dominator(h, thing(h, k)) == thing(h, i);
	assert_int_equal(have, want);
	for (size_t k = 0; k < have; k++) {
		assert_int_equal(heapgraph_dominator(h, got[k]), thing(h, i));
		if (k)
			assert_true(heapgraph_retained(h, got[k]) <=
				    heapgraph_retained(h, got[k - 1]));
	}
}

static bool holds(const struct small *s)
{
	for (unsigned k = 1; k < s->n; k++)
		if (s->edge[0][k])
			return true;
	return false;
}

/* By definition. */
static void compare(const struct small *s)
{
	bool all[MOST] = {};
	struct heapgraph h;

	tell(&h, s);
	tell_leaves(&h, s);
	reach(s, 0, MOST, all);
	all[0] = holds(s); /* a holder of nothing is not in the graph */
	for (unsigned i = 0; i < s->n; i++) {
		uint32_t t = thing(&h, i);
		struct object o;

		assert_int_equal(heapgraph_reached(&h, t), all[i]);
		assert_int_equal(heapgraph_retained(&h, t), all[i] ? retains(s, all, i) : 0);
		assert_int_equal(heapgraph_object_of(&h, t, &o), i > 0);
		if (i)
			assert_int_equal(o.addr, addr_of(i));
		assert_int_equal(heapgraph_holder_of(&h, t) != NULL, !i);
		assert_int_equal(heapgraph_dominator(&h, t) != GRAPH_NONE, all[i]);
		compare_children(&h, s->n, i);
	}
	assert_int_equal(heapgraph_things(&h), s->n + 1);
	heapgraph_fini(&h);
}

static void test_random_graphs(void **state)
{
	(void)state;
	srand(2);
	for (unsigned turn = 0; turn < 20000; turn++) {
		struct small s = { .n = 1 + (unsigned)rand() % MOST };
		unsigned edges = (unsigned)rand() % (3 * s.n);

		for (unsigned i = 1; i < s.n; i++)
			s.leaf[i] = rand() % 3 == 0;
		for (unsigned i = 0; i < edges; i++)
			s.edge[(unsigned)rand() % s.n][(unsigned)rand() % s.n] = true;
		compare(&s);
	}
}

/* Nothing recurses, and nothing is quadratic: a list as long as this one, shared by a second one. */
static void test_long_lists(void **state)
{
	enum { LONG = 1 << 20 };
	struct dominators d;
	struct graph g = {};

	(void)state;
	for (uint32_t i = 0; i < 2 * LONG; i++) { /* each second node is what both lists share */
		assert_int_equal(graph_node(&g, &e), 0);
		if (i % 2)
			continue;
		assert_int_equal(graph_edge(&g, i + 1, &e), 0);
		if (i + 2 < 2 * LONG)
			assert_int_equal(graph_edge(&g, i + 2, &e), 0);
		if (i)
			assert_int_equal(graph_edge(&g, i - 2, &e), 0);
		if (!i)
			assert_int_equal(graph_edge(&g, 2 * LONG - 2, &e), 0);
	}
	assert_int_equal(graph_seal(&g, &e), 0);
	assert_int_equal(dominators_find(&d, &g, 0, &e), 0);
	assert_int_equal(d.n, 2 * LONG);
	assert_int_equal(d.node[d.dom[d.number[LONG]]], 0);
	assert_int_equal(d.node[d.dom[d.number[LONG + 1]]], LONG);
	dominators_fini(&d);
}

/* ---- records that come again ---- */

static void follows(const struct objects *o, struct objects_follow *f, uint64_t addr, uint64_t size,
		    uint32_t want)
{
	struct object got;

	assert_true(objects_follow(o, f, addr, size, &got));
	assert_int_equal(got.addr, addr);
	assert_int_equal(got.index, want);
}

static void test_follow(void **state)
{
	struct objects o = {};
	struct objects_follow f = {};
	struct object got;

	(void)state;
	add(&o, 0xc000002000, 32);
	add(&o, 0xc000002040, 32);
	add(&o, 0xc000000000, 48); /* spans need not rise */
	assert_int_equal(objects_seal(&o, &e), 0);
	assert_false(o.overlap);
	assert_int_equal(o.end, 0xc000002060);
	follows(&o, &f, 0xc000002000, 32, 0);
	assert_false(objects_follow(&o, &f, 0xc000002020, 32, &got)); /* a slot without an object */
	follows(&o, &f, 0xc000002040, 32, 1);
	assert_false(objects_follow(&o, &f, 0xc000000000, 64, &got));
	follows(&o, &f, 0xc000000000, 48, 2);
	assert_true(objects_leads_to(&o, &(struct object){ .addr = 0xc000000000, .index = 2 }));
	assert_false(objects_follow(&o, &f, 0xc000000000, 48, &got));
	objects_fini(&o);
}

static void test_overlap(void **state)
{
	struct objects o = {};
	struct objects_follow f = {};
	struct object got;
	uint32_t led = 0;

	(void)state;
	add(&o, 0xc000000000, 0x2000);
	add(&o, 0xc000001000, 16);
	add(&o, 0xc000001000, 16);
	assert_int_equal(objects_seal(&o, &e), 0);
	assert_true(o.overlap);
	follows(&o, &f, 0xc000000000, 0x2000, 0);
	follows(&o, &f, 0xc000001000, 16, 1);
	follows(&o, &f, 0xc000001000, 16, 2);
	/* Of two at one address one is meant. */
	for (uint32_t i = 1; i < 3; i++) {
		got = objects_at(&o, i);
		led += objects_leads_to(&o, &got);
	}
	assert_int_equal(led, 1);
	objects_fini(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_follow),	   cmocka_unit_test(test_overlap),
		cmocka_unit_test(test_objects),	   cmocka_unit_test(test_many_objects),
		cmocka_unit_test(test_no_objects), cmocka_unit_test(test_random_graphs),
		cmocka_unit_test(test_long_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
