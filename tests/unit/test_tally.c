/* tests/unit/test_tally.c - what windows saw, and the estimates made of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sampling/tally.h"

static double one(void *arg, const struct gpb_stack *st)
{
	(void)arg;
	(void)st;
	return 1;
}

static void add(struct tally *t, uint64_t pc, uint64_t count)
{
	struct gpb_stack st = { .nfirst = 1, .object.size = 64, .count = count, .pc = { pc } };

	assert_int_equal(tally_add(t, &st, 1, NULL), 0);
}

static void window(struct tally *t, double weight)
{
	const struct tally_window w = { .weight = weight, .inverse = one };

	tally_window(t, &w);
}

/* Windows of a stretch drain the same stacks again and again: they must not pile up. */
static void a_stack_is_seen_once_a_stretch(void **state)
{
	struct tally t;

	(void)state;
	tally_init(&t);
	for (int i = 0; i < 1000; i++) {
		add(&t, 0x1000, 1);
		add(&t, 0x2000, 2);
	}
	assert_int_equal(t.seen.n, 2);
	tally_full(&t);
	assert_int_equal(t.entries.at[0].count, 1000);
	assert_int_equal(t.entries.at[1].count, 2000);

	/* What it remembers of the last stretch must not be used in the next one. */
	add(&t, 0x3000, 5);
	add(&t, 0x2000, 7);
	add(&t, 0x1000, 1);
	add(&t, 0x1000, 1);
	tally_full(&t);
	assert_int_equal(t.entries.at[0].count, 1002);
	assert_int_equal(t.entries.at[1].count, 2007);
	assert_int_equal(t.entries.at[2].count, 5);
	tally_fini(&t);
}

/*
 * Half of the group is seen in each window: the estimate is half of the known total, and its only
 * error is that of the number seen.
 */
static void a_share_of_a_known_total(void **state)
{
	struct tally_estimate est;
	struct tally t;

	(void)state;
	tally_init(&t);
	for (int i = 0; i < 4; i++) {
		add(&t, 0x1000, 10);
		add(&t, 0x2000, 4);
		add(&t, 0x2000, 6);
		window(&t, 3);
	}
	est = tally_counts(&t, &t.entries.at[0], 1000);
	assert_true(est.value > 499.999 && est.value < 500.001);
	assert_true(est.variance > 0);
	est = tally_counts(&t, &t.entries.at[1], -1);
	assert_true(est.value > 119.999 && est.value < 120.001);
	assert_true(est.variance < 0.001);
	tally_fini(&t);
}

static void of_one_window_no_error_is_known(void **state)
{
	struct tally t;

	(void)state;
	tally_init(&t);
	add(&t, 0x1000, 10);
	window(&t, 3);
	assert_true(tally_counts(&t, &t.entries.at[0], 100).variance < 0);
	assert_true(tally_counts(&t, &t.entries.at[0], -1).variance < 0);
	tally_fini(&t);
}

/* One goroutine for each request, for a day: a full table is no reason to lose the rest. */
static void is_full_at_some_time(void **state)
{
	struct gpb_stack st = { .nfirst = 1, .object.size = 64, .count = 1 };
	const struct gpb_hash key = { .lo = 1 };
	struct tally t;
	int ret = 0;

	(void)state;
	tally_init(&t);
	while (!ret) {
		st.pc[0]++;
		ret = tally_add(&t, &st, 1, NULL);
	}
	assert_int_equal(ret, -E2BIG);
	assert_int_equal(tally_add(&t, &st, 1, NULL), -E2BIG);
	assert_int_equal(tally_key(&t, &key, &st, NULL), 0);
	assert_null(tally_find(&t, &key));
	assert_int_equal(t.sites.n, t.entries.n);
	st.pc[0]--;
	assert_int_equal(tally_add(&t, &st, 1, NULL), 0);
	tally_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stack_is_seen_once_a_stretch),
		cmocka_unit_test(a_share_of_a_known_total),
		cmocka_unit_test(of_one_window_no_error_is_known),
		cmocka_unit_test(is_full_at_some_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
