/* tests/unit/test_holdings.c - merged holders and shortest paths, against their definition. */
#include "heapgraph/holdings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct err e;

/* Things: first holders, globals, then objects of 16 bytes, some of which hold no pointers. */
enum { MOST = 24, HOLDERS = 3, BASE = 1 << 20, BYTES = 16, TYPES = 3 };

struct small {
	unsigned n;
	bool leaf[MOST];
	bool edge[MOST][MOST];
	uint16_t type[MOST];
	unsigned named, stride; /* fields with names (0: all), and bytes of an element */
};

struct world {
	const struct small *s;
	struct heapgraph h;
	struct heap_path path;
	struct classes c;
	struct holdings x;
};

static uint64_t addr_of(unsigned thing)
{
	return BASE + thing * BYTES;
}

static uint32_t thing(const struct heapgraph *h, unsigned i)
{
	struct object o;

	if (i < HOLDERS)
		return heapgraph_thing_of_holder(h, i);
	assert_true(objects_find(&h->objects, addr_of(i), &o));
	return heapgraph_thing_of(h, &o);
}

/* Objects first, holders last, as a source tells them; offsets are those of the edges. */
static void each_edge(struct world *w, void (*fn)(struct world *w, unsigned from, unsigned to),
		      void (*begin)(struct world *w, unsigned from))
{
	for (unsigned n = 0; n < w->s->n; n++) {
		unsigned i = (n + HOLDERS) % w->s->n;

		if (w->s->leaf[i])
			continue;
		if (begin)
			begin(w, i);
		for (unsigned k = HOLDERS; k < w->s->n; k++)
			if (w->s->edge[i][k])
				fn(w, i, k);
	}
}

static void begin(struct world *w, unsigned i)
{
	struct holder holder = { .kind = HOLDER_GLOBAL, .addr = i };

	assert_int_equal(i >= HOLDERS ? heapgraph_node(&w->h, &e) :
					heapgraph_holder(&w->h, &holder, &e),
			 0);
}

static void points(struct world *w, unsigned from, unsigned to)
{
	(void)from;
	assert_int_equal(heapgraph_points(&w->h, addr_of(to), &e), 0);
}

static void points_leaf(struct world *w, unsigned from, unsigned to)
{
	heapgraph_points_leaf(&w->h, thing(&w->h, from), addr_of(to));
}

static void holds(struct world *w, unsigned from, unsigned to)
{
	holdings_points(&w->x, thing(&w->h, from), to, addr_of(to));
}

static void holds_leaf(struct world *w, unsigned from, unsigned to)
{
	assert_int_equal(holdings_leaf(&w->x, thing(&w->h, from), to, addr_of(to), &e), 0);
}

/* Types "t1", "t2", ... whose field at offset N has the name "fN". */
static void make_classes(struct world *w)
{
	char name[16];
	bool made;

	assert_int_equal(classes_init(&w->c, w->h.names, w->h.objects.n, w->h.objects.bytes, &e),
			 0);
	for (unsigned t = 1; t <= 2 * TYPES; t++) {
		uint16_t class = classes_typed(&w->c, t, BYTES, HEAP_EXACT, &made);

		assert_int_equal(class, t);
		snprintf(name, sizeof(name), "t%u", t);
		w->c.all.at[class].name = strtab_puts(w->h.names, name);
		w->c.all.at[class].stride = w->s->stride;
		for (unsigned k = 0; k < MOST; k++) {
			bool named = !w->s->named || k < w->s->named;

			snprintf(name, sizeof(name), "f%u", k);
			assert_true(classes_field(&w->c, class, k,
						  named ? strtab_puts(w->h.names, name) : 0));
		}
	}
	for (unsigned i = HOLDERS; i < w->s->n; i++)
		classes_put(&w->c, i - HOLDERS, w->s->type[i]);
}

static void make(struct world *w, const struct small *s, unsigned target)
{
	*w = (struct world){ .s = s, .path = { .addr = addr_of(target) + 3 } };
	assert_int_equal(heapgraph_init(&w->h, &e), 0);
	w->h.path = &w->path;
	for (unsigned i = HOLDERS; i < s->n; i++)
		assert_int_equal(heapgraph_object(&w->h, addr_of(i), BYTES, !s->leaf[i], &e), 0);
	assert_int_equal(heapgraph_objects_end(&w->h, &e), 0);
	each_edge(w, points, begin);
	assert_int_equal(heapgraph_edges_end(&w->h, &e), 0);
	each_edge(w, points_leaf, NULL);
	assert_int_equal(heapgraph_end(&w->h, &e), 0);
	make_classes(w);
	assert_int_equal(holdings_init(&w->x, &w->h, &w->c, &e), 0);
	each_edge(w, holds, NULL);
	assert_int_equal(holdings_points_end(&w->x, &e), 0);
	each_edge(w, holds_leaf, NULL);
	assert_int_equal(holdings_end(&w->x, &e), 0);
	holdings_sum(&w->x);
}

static void fini(struct world *w)
{
	holdings_fini(&w->x);
	classes_fini(&w->c);
	heapgraph_fini(&w->h);
	heap_path_fini(&w->path);
}

static struct small random_graph(void)
{
	struct small s = { .n = HOLDERS + 1 + (unsigned)rand() % (MOST - HOLDERS) };
	unsigned edges = (unsigned)rand() % (3 * s.n);

	for (unsigned i = 0; i < s.n; i++) {
		s.leaf[i] = i >= HOLDERS && rand() % 3 == 0;
		s.type[i] = (uint16_t)(1 + rand() % TYPES + (s.leaf[i] ? TYPES : 0));
	}
	for (unsigned i = 0; i < edges; i++)
		s.edge[(unsigned)rand() % s.n][(unsigned)rand() % s.n] = true;
	return s;
}

/* ---- holdings ---- */

static uint32_t holding_of(const struct world *w, uint32_t t)
{
	return w->x.of[w->h.dom.number[t]];
}

/* What a holding has is what its topmost things retain. */
static void compare_sums(const struct world *w)
{
	uint64_t want[4 * MOST] = { heapgraph_retained(&w->h, w->h.program) };

	for (unsigned i = 0; i < w->s->n; i++) {
		uint32_t t = thing(&w->h, i), up;

		if (w->s->leaf[i] || !heapgraph_reached(&w->h, t))
			continue;
		up = heapgraph_dominator(&w->h, t);
		if (holding_of(w, t) != holding_of(w, up))
			want[holding_of(w, t)] += heapgraph_retained(&w->h, t);
	}
	for (size_t i = 0; i < w->x.all.n; i++) {
		const struct holding *k = &w->x.all.at[i];

		assert_true(i == 0 || k->parent < i);
		if (want[i])
			assert_int_equal(k->bytes, want[i]);
		assert_int_equal(k->bytes, k->objects * BYTES);
	}
	assert_int_equal(w->x.squeezed, 0);
}

/* ---- paths ---- */

/* Steps from any holder, which is one step from the program; 0: there is no way. */
static unsigned distance(const struct small *s, unsigned target)
{
	unsigned steps[MOST] = { 1, 1, 1 };

	for (unsigned at = 1; at <= s->n && !steps[target]; at++)
		for (unsigned i = 0; i < s->n; i++)
			for (unsigned k = HOLDERS; k < s->n; k++)
				if (steps[i] == at && !s->leaf[i] && s->edge[i][k] && !steps[k])
					steps[k] = at + 1;
	return steps[target];
}

static unsigned which(const struct world *w, uint32_t t)
{
	for (unsigned i = 0; i < w->s->n; i++)
		if (thing(&w->h, i) == t)
			return i;
	fail();
	return 0;
}

static void compare_path(const struct world *w, unsigned target)
{
	const struct heap_things *p = &w->path.things;
	unsigned want = distance(w->s, target);

	assert_true(w->path.found);
	assert_int_equal(w->path.object.addr, addr_of(target));
	assert_int_equal(p->n, want ? want + 1 : 0);
	if (!want)
		return;
	assert_int_equal(p->at[0], w->h.program);
	assert_true(which(w, p->at[1]) < HOLDERS);
	assert_int_equal(which(w, p->at[p->n - 1]), target);
	for (size_t i = 1; i + 1 < p->n; i++)
		assert_true(w->s->edge[which(w, p->at[i])][which(w, p->at[i + 1])]);
}

static void test_random_graphs(void **state)
{
	(void)state;
	srand(3);
	for (unsigned turn = 0; turn < 5000; turn++) {
		struct small s = random_graph();
		unsigned target = HOLDERS + (unsigned)rand() % (s.n - HOLDERS);
		struct world w;

		make(&w, &s, target);
		compare_sums(&w);
		compare_path(&w, target);
		fini(&w);
	}
}

/* ---- names ---- */

/* The names from the root down to the holding of this name and size. */
static void is_held(const struct world *w, const char *chain, uint64_t bytes)
{
	for (size_t i = 1; i < w->x.all.n; i++) {
		char text[256] = "", more[512];

		for (size_t k = i; k; k = w->x.all.at[k].parent) {
			snprintf(more, sizeof(more), "%s%s%s",
				 strtab_get(w->h.names, w->x.all.at[k].name), *text ? " > " : "",
				 text);
			snprintf(text, sizeof(text), "%.255s", more);
		}
		if (!strcmp(text, chain)) {
			assert_int_equal(w->x.all.at[i].bytes, bytes);
			return;
		}
	}
	fail_msg("no holding: %s", chain);
}

/*
 * Global 0 holds a list of three t1, each with a t2 of its own; a t3 is shared by two of these, and
 * another one by two globals.
 */
static void test_names(void **state)
{
	struct small s = { .n = 11 };
	struct world w;
	static const unsigned edges[][2] = { { 0, 3 }, { 3, 4 }, { 4, 5 }, { 3, 6 },  { 4, 7 },
					     { 5, 8 }, { 7, 9 }, { 8, 9 }, { 1, 10 }, { 2, 10 } };

	(void)state;
	for (size_t i = 0; i < sizeof(edges) / sizeof(*edges); i++)
		s.edge[edges[i][0]][edges[i][1]] = true;
	for (unsigned i = HOLDERS; i < s.n; i++)
		s.type[i] = i < 6 ? 1 : i < 9 ? 2 : 3;
	s.leaf[6] = s.leaf[9] = true;
	make(&w, &s, 9);
	is_held(&w, "global 0x0", 7 * BYTES);
	is_held(&w, "global 0x0 > t1", 7 * BYTES);
	is_held(&w, "global 0x0 > t1 > t1.f6: t2", BYTES);
	is_held(&w, "global 0x0 > t1 > t1 ...", 5 * BYTES); /* by two fields: f4 and f5 */
	is_held(&w, "global 0x0 > t1 > t1 ... > t1.f7: t2", BYTES);
	is_held(&w, "global 0x0 > t1 > t1 ... > t1.f8: t2", BYTES);
	is_held(&w, "global 0x0 > t1 > t1 ... > shared: t3", BYTES);
	is_held(&w, "shared: t3", BYTES);
	assert_int_equal(w.path.things.n, 6);
	fini(&w);
}

/* Of a large array the first elements' fields have names, which are those of all. */
static void test_elements(void **state)
{
	struct small s = { .n = 8, .named = 2, .stride = 2 };
	struct world w;

	(void)state;
	s.edge[0][3] = true;
	for (unsigned i = 3; i < s.n; i++) {
		s.edge[3][i] = i > 3;
		s.type[i] = i == 3 ? 1 : 2;
	}
	s.leaf[6] = s.leaf[7] = true;
	make(&w, &s, 7);
	is_held(&w, "global 0x0 > t1 > t1.f0: t2", 2 * BYTES);
	is_held(&w, "global 0x0 > t1 > t1.f1: t2", 2 * BYTES);
	fini(&w);
}

/* Types that hold each other in turn are no list of one type: what is too deep stays above. */
static void test_deep(void **state)
{
	enum { DEEP = 4 * HOLDINGS_DEPTH };
	struct heapgraph h;
	struct classes c;
	struct holdings x;
	struct holder holder = { .kind = HOLDER_GLOBAL };
	bool made;

	(void)state;
	assert_int_equal(heapgraph_init(&h, &e), 0);
	for (unsigned i = 0; i < DEEP; i++)
		assert_int_equal(heapgraph_object(&h, addr_of(i), BYTES, true, &e), 0);
	assert_int_equal(heapgraph_objects_end(&h, &e), 0);
	for (unsigned i = 0; i < DEEP; i++) {
		assert_int_equal(heapgraph_node(&h, &e), 0);
		assert_int_equal(heapgraph_points(&h, addr_of(i + 1), &e), 0);
	}
	assert_int_equal(heapgraph_holder(&h, &holder, &e), 0);
	assert_int_equal(heapgraph_points(&h, addr_of(0), &e), 0);
	assert_int_equal(heapgraph_edges_end(&h, &e), 0);
	assert_int_equal(heapgraph_end(&h, &e), 0);
	assert_int_equal(classes_init(&c, h.names, DEEP, DEEP * BYTES, &e), 0);
	for (unsigned t = 1; t <= 2; t++) {
		assert_int_equal(classes_typed(&c, t, BYTES, HEAP_EXACT, &made), t);
		c.all.at[t].name = strtab_puts(h.names, t == 1 ? "a" : "b");
	}
	for (unsigned i = 0; i < DEEP; i++)
		classes_put(&c, i, (uint16_t)(1 + i % 2));
	assert_int_equal(holdings_init(&x, &h, &c, &e), 0);
	assert_int_equal(holdings_points_end(&x, &e), 0);
	assert_int_equal(holdings_end(&x, &e), 0);
	holdings_sum(&x);
	assert_int_equal(x.all.n, HOLDINGS_DEPTH + 1);
	assert_int_equal(x.all.at[HOLDINGS_DEPTH].depth, HOLDINGS_DEPTH);
	assert_int_equal(x.all.at[HOLDINGS_DEPTH].bytes, (DEEP - HOLDINGS_DEPTH + 2) * BYTES);
	assert_int_equal(x.all.at[0].bytes, DEEP * BYTES);
	holdings_fini(&x);
	classes_fini(&c);
	heapgraph_fini(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_graphs),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_elements),
		cmocka_unit_test(test_deep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
