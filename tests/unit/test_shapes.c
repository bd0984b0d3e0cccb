/* tests/unit/test_shapes.c - where types with long arrays have their pointers. */
#include "ingest/typing/shape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "heapgraph/classes.h"

static struct err e;

/*
 * type pair struct { n int; p *T }		type row struct { first *T; pairs [LONG]pair; n int }
 * type table [ROWS]row				type wide struct { rows table; any interface{} }
 */
enum { PLAIN, POINTER, PAIR, PAIRS, ROW, TABLE, EFACE, WIDE, ITSELF, LIAR, LIARS, TYPES };
enum { LONG = 5000, ROWS = 30, ROW_SIZE = 16 + 16 * LONG, POINTERS = ROWS * (LONG + 1) + 1 };

static const struct gofield fields[] = {
	{ 0, 0, PLAIN },
	{ 8, 0, POINTER },
	{ 0, 0, POINTER },
	{ 8, 0, PAIRS },
	{ 8 + 16 * LONG, 0, PLAIN },
	{ 0, 0, TABLE },
	{ ROWS * ROW_SIZE, 0, EFACE },
	{ 0, 0, PAIRS },
	{ 0, 0, PAIRS },
};

static const struct gotype types[TYPES] = {
	[PLAIN] = { .kind = GOTYPE_PLAIN, .size = 8 },
	[POINTER] = { .kind = GOTYPE_POINTER, .size = 8, .elem = PAIR },
	[PAIR] = { .kind = GOTYPE_STRUCT, .size = 16, .first = 0, .nfields = 2 },
	[PAIRS] = { .kind = GOTYPE_ARRAY, .size = 16 * LONG, .elem = PAIR, .count = LONG },
	[ROW] = { .kind = GOTYPE_STRUCT, .size = ROW_SIZE, .first = 2, .nfields = 3 },
	[TABLE] = { .kind = GOTYPE_ARRAY, .size = ROWS * ROW_SIZE, .elem = ROW, .count = ROWS },
	[EFACE] = { .kind = GOTYPE_EFACE, .size = 16 },
	[WIDE] = { .kind = GOTYPE_STRUCT, .size = ROWS * ROW_SIZE + 16, .first = 5, .nfields = 2 },
	/* What no compiler makes: an array of itself, and structs smaller than their fields. */
	[ITSELF] = { .kind = GOTYPE_ARRAY, .size = 800, .elem = ITSELF, .count = 100 },
	[LIAR] = { .kind = GOTYPE_STRUCT, .size = 8, .first = 7, .nfields = 2 },
	[LIARS] = { .kind = GOTYPE_ARRAY, .size = 1 << 20, .elem = LIAR, .count = 1 << 17 },
};

static const struct gotypes all = { .word = 8,
				    .types = types,
				    .ntypes = TYPES,
				    .fields = fields,
				    .nfields = sizeof(fields) / sizeof(fields[0]),
				    .text = "" };

static struct heap_field at[POINTERS];

/* Offsets by the definition of the types. */
static void fill(void)
{
	size_t n = 0;

	for (uint32_t r = 0; r < ROWS; r++) {
		at[n++].offset = r * ROW_SIZE;
		for (uint32_t i = 0; i < LONG; i++)
			at[n++].offset = r * ROW_SIZE + 8 + 16 * i + 8;
	}
	at[n++].offset = ROWS * ROW_SIZE + 8;
	assert_int_equal(n, POINTERS);
}

static void test_walk(void **state)
{
	const struct shape *s;
	const struct leaf *l;
	struct shape_walk w;
	struct shapes x;
	uint64_t base;
	size_t n = 0;

	(void)state;
	fill();
	assert_int_equal(shapes_init(&x, &all, &e), 0);
	s = shapes_get(&x, WIDE);
	assert_non_null(s);
	assert_int_equal(s->required, POINTERS);
	assert_in_range(s->n, 1, 64); /* none of the arrays is told one by one */
	for (shape_walk(&w, s); (l = shape_next(&w, &base)); n++)
		assert_int_equal(base + l->pointer, at[n].offset);
	assert_int_equal(n, POINTERS);
	assert_int_equal(x.cut, 0);
	shapes_fini(&x);
}

static void test_fit(void **state)
{
	const size_t some[] = { 0, 1, LONG, LONG + 1, 3 * LONG + 17, POINTERS - 2 };
	struct shapes x;

	(void)state;
	fill();
	assert_int_equal(shapes_init(&x, &all, &e), 0);
	assert_true(shapes_fit(&x, WIDE, 0, 1, at, POINTERS));
	assert_true(shapes_within(&x, WIDE, at, POINTERS));
	/* Not all of them. */
	assert_false(shapes_fit(&x, WIDE, 0, 1, at, POINTERS - 1));
	assert_false(shapes_fit(&x, WIDE, 0, 1, at + 1, POINTERS - 1));
	assert_false(shapes_within(&x, WIDE, at, POINTERS - 1));
	/* One in the place of a number. */
	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		fill();
		at[some[i]].offset += 8;
		assert_false(shapes_within(&x, WIDE, at, POINTERS));
		assert_false(shapes_fit(&x, WIDE, 0, 1, at, POINTERS));
	}
	shapes_fini(&x);
}

static void test_lies(void **state)
{
	struct shapes x;

	(void)state;
	assert_int_equal(shapes_init(&x, &all, &e), 0);
	assert_int_equal(shapes_get(&x, ITSELF)->n, 0);
	assert_true(shapes_get(&x, ITSELF)->cut);
	assert_int_equal(shapes_get(&x, LIARS)->n, 0);
	assert_true(shapes_get(&x, LIAR)->cut);
	assert_int_equal(x.cut, 3);
	shapes_fini(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_walk),
		cmocka_unit_test(test_fit),
		cmocka_unit_test(test_lies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
