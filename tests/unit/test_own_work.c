/* tests/unit/test_own_work.c - our own work keeps to its bound, where all but readings leaves room for that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdbool.h>

#include "sampling/own_work.h"

#define NS_PER_S 1e9
#define TICK_NS	 100000000ull

static struct own_work w;
static uint64_t now, own_ns;
static double used; /* parts that have something to read */

/* For @s seconds: the rest takes @rest of a CPU, and readings what they get. Returns what all took, of one CPU. */
static double work(double s, double rest)
{
	uint64_t since = now, before = own_ns;

	while ((double)(now - since) < s * NS_PER_S) {
		uint64_t read = (uint64_t)(w.part * used * (double)TICK_NS);

		now += TICK_NS;
		w.read_ns += read;
		own_ns += read + (uint64_t)(rest * (double)TICK_NS);
		own_work_turn(&w, now, own_ns);
	}
	return (double)(own_ns - before) / (double)(now - since);
}

static int set_up(void **state)
{
	(void)state;
	w = (struct own_work){ .ppm = 20000, .parts = 5 };
	now = own_ns = 5000000000;
	used = 5;
	own_work_begin(&w, now, own_ns);
	return 0;
}

static bool about(double value, double truth)
{
	return fabs(value - truth) < 0.02 * truth;
}

static void readings_get_what_the_rest_leaves(void **state)
{
	(void)state;
	assert_true(about(w.part * 5, 0.02 * OWN_READ_LEAST));
	work(10, 0.002);
	assert_true(about(work(10, 0.002), 0.02) && about(w.part * 5, 0.018));
	work(10, 0.004);
	assert_true(about(work(10, 0.004), 0.02) && about(w.part * 5, 0.016));
	/* and again, when it is less */
	work(10, 0);
	assert_true(about(work(10, 0), 0.02));
}

/* What some do not take the others get, until they want it. */
static void nothing_is_left_over(void **state)
{
	(void)state;
	used = 2;
	work(10, 0.002);
	assert_true(about(work(10, 0.002), 0.02) && about(w.part, 0.009));
	used = 0;
	work(10, 0.002);
	assert_true(about(w.part, 0.018)); /* whoever comes may have all */
	used = 5;
	work(10, 0.002);
	assert_true(about(work(10, 0.002), 0.02) && about(w.part * 5, 0.018));
}

static void they_get_something_in_any_case(void **state)
{
	(void)state;
	work(10, 0.5);
	assert_true(about(w.part * 5, 0.02 * OWN_READ_LEAST));
}

static void what_a_moment_takes_is_no_rule(void **state)
{
	(void)state;
	work(10, 0.002);
	work(0.5, 0.006); /* as many that come at once */
	assert_true(w.part * 5 > 0.0165);
	work(5, 0.002);
	assert_true(about(work(1, 0.002), 0.02));
}

static void without_a_bound_there_is_none(void **state)
{
	(void)state;
	w.ppm = 0;
	own_work_begin(&w, now, own_ns);
	assert_true(w.part == 0);
	work(2, 0.5);
	assert_true(w.part == 0);
}

/* The clock of a child that has ended may be missing for a moment. */
static void clocks_that_go_back_are_no_work(void **state)
{
	(void)state;
	work(10, 0.002);
	own_ns -= 100000000;
	own_work_turn(&w, now += 1000000000, own_ns);
	assert_true(w.part <= 0.02 && w.part * 5 > 0.017);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(readings_get_what_the_rest_leaves, set_up),
		cmocka_unit_test_setup(nothing_is_left_over, set_up),
		cmocka_unit_test_setup(they_get_something_in_any_case, set_up),
		cmocka_unit_test_setup(what_a_moment_takes_is_no_rule, set_up),
		cmocka_unit_test_setup(without_a_bound_there_is_none, set_up),
		cmocka_unit_test_setup(clocks_that_go_back_are_no_work, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
