/* tests/unit/test_tally_weights.c - estimates of windows that have weights of their own. */
#include "collect/tally.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct gpb_stack stack_of(uint64_t pc, uint64_t count, uint64_t delay)
{
	struct gpb_stack st = { .count = count, .delay = delay, .nfirst = 1 };

	st.pc[0] = pc;
	return st;
}

static void add(struct tally *t, uint64_t pc, uint64_t count, double weight)
{
	struct gpb_stack st = stack_of(pc, count, 10 * count);
	struct err e;

	assert_int_equal(tally_add_weighted(t, &st, 0, weight, &e), 0);
}

static void test_full(void **state)
{
	struct tally t;

	(void)state;
	tally_init(&t);
	add(&t, 1, 5, 0);
	/* it was followed from an earlier window on, so it is no part of full observation */
	add(&t, 1, 2, 3.0);
	tally_full(&t);
	assert_int_equal(t.entries.at[0].count, 5);
	assert_int_equal(t.entries.at[0].delay, 50);
	tally_rest(&t);
	assert_int_equal(t.entries.at[0].count, 5);
	assert_true(t.entries.at[0].counts.x == 6);
	assert_true(t.entries.at[0].delays.x == 60);
	tally_fini(&t);
}

static double half(void *arg, const struct gpb_stack *st)
{
	(void)arg;
	return st->pc[0] == 2 ? 0.5 : 1;
}

static void test_weights(void **state)
{
	const struct tally_window w = { .weight = 100, .inverse = half };
	struct tally t;

	(void)state;
	tally_init(&t);
	add(&t, 1, 1, 0);
	add(&t, 2, 1, 0);
	add(&t, 1, 1, 7);
	tally_window(&t, &w);
	assert_true(tally_counts(&t, &t.entries.at[0], -1).value == 107);
	assert_true(tally_counts(&t, &t.entries.at[1], -1).value == 50);
	assert_true(tally_delays(&t, &t.entries.at[0]).value == 1070);
	assert_true(tally_delays(&t, &t.entries.at[1]).value == 500);
	tally_fini(&t);
}

/*
 * Site 1 follows what is known, at twice its number; site 2 is always the same. Windows saw half
 * of the total.
 */
static void test_regressed(void **state)
{
	static const double seen[] = { 10, 40, 20, 30 };
	struct tally_estimate a, b;
	struct tally t;

	(void)state;
	tally_init(&t);
	for (size_t i = 0; i < 4; i++) {
		double n = seen[i];
		const struct tally_window w = { .weight = 1, .n = &n };

		add(&t, 1, (uint64_t)(2 * n), 0);
		add(&t, 2, 3, 0);
		tally_window(&t, &w);
	}
	a = tally_regressed(&t, &t.entries.at[0], 200);
	b = tally_regressed(&t, &t.entries.at[1], 200);
	assert_true(a.value > 399.9 && a.value < 400.1);
	assert_true(a.variance >= 0 && a.variance < 0.1);
	assert_true(b.value > 11.9 && b.value < 12.1);
	tally_fini(&t);
}

/*
 * A wait that windows, each standing for 30 on average, did not meet may still have come once;
 * for one that they met, their spread tells the error.
 */
static void test_missed(void **state)
{
	const struct tally_window first = { .weight = 20 }, second = { .weight = 40 };
	struct tally t;

	(void)state;
	tally_init(&t);
	add(&t, 1, 5, 0);
	add(&t, 2, 5, 0);
	tally_full(&t);
	assert_true(tally_missed(&t, &t.entries.at[0]) == 0);
	add(&t, 2, 1, 0);
	tally_window(&t, &first);
	tally_window(&t, &second);
	assert_true(tally_missed(&t, &t.entries.at[0]) == 900);
	assert_true(tally_missed(&t, &t.entries.at[1]) == 0);
	tally_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_weights),
		cmocka_unit_test(test_missed),
		cmocka_unit_test(test_regressed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
