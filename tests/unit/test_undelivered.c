/*
 * tests/unit/test_undelivered.c - ticks of CPUs' clocks that were due: what is counted as lost, and that chance is not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>

#include "collect/cpu/undelivered.h"

#define MS  1000000ull
#define SEC (1000 * MS)

static struct undelivered of(uint64_t ns, uint64_t weight, uint64_t came)
{
	struct undelivered u = { 0 };

	undelivered_add(&u, ns, 10 * MS, weight, came);
	return u;
}

static void each_cpu_is_counted(void **state)
{
	struct undelivered u = of(10 * SEC, 1, 990);

	(void)state;
	assert_int_equal(u.due, 1000);
	assert_int_equal(u.n, 10);
	undelivered_add(&u, 5 * SEC, 10 * MS, 1, 300);
	assert_int_equal(u.due, 1500);
	assert_int_equal(u.n, 210);
	/* One that ticked more often, as far as anybody knows, does not make up for another one. */
	undelivered_add(&u, 5 * SEC, 10 * MS, 1, 520);
	assert_int_equal(u.n, 210);
}

static void the_last_tick_may_be_late(void **state)
{
	(void)state;
	assert_int_equal(of(10 * SEC, 1, 1000).n, 0);
	assert_int_equal(of(10 * SEC, 1, 999).n, 0);
	assert_int_equal(of(10 * SEC, 1, 998).n, 2);
	assert_int_equal(of(10 * SEC + 9 * MS, 1, 999).n, 0);
	assert_int_equal(of(0, 1, 0).n, 0);
}

/* The period doubles now and then; each time the clock begins a whole new one. */
static void slowing_down_loses_none(void **state)
{
	(void)state;
	for (uint64_t weight = 2; weight <= 64; weight *= 2) {
		uint64_t ns = 0, came = 0;

		for (uint64_t w = 1; w <= weight; w *= 2) {
			uint64_t lasts = SEC + (uint64_t)(rand() % 1000) * MS;

			ns += lasts;
			came += lasts / (10 * MS * w) * w;
		}
		assert_int_equal(of(ns, weight, came).n, 0);
		assert_true(of(ns, weight, came / 2).n > 0);
	}
}

static void few_are_no_loss_and_known_ones_are_not_told_twice(void **state)
{
	struct undelivered u = { .due = 5000, .n = 100 };

	(void)state;
	assert_int_equal(undelivered_unknown(&u, 0), 0);
	u.n = 101;
	assert_int_equal(undelivered_unknown(&u, 0), 101);
	assert_int_equal(undelivered_unknown(&u, 1), 0);
	u.n = 1000;
	assert_int_equal(undelivered_unknown(&u, 700), 300);
	assert_int_equal(undelivered_unknown(&u, 950), 0);
	assert_int_equal(undelivered_unknown(&u, 1200), 0); /* known by chance only */
}

/* How often a process is met that takes @share of a CPU, where @lost of 100 ticks do not come. */
static uint64_t met(unsigned ticks, double share, int lost, unsigned weight)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < ticks / weight; i++)
		if (drand48() < share && rand() % 100 >= lost)
			n += weight;
	return n;
}

static uint64_t lacking(unsigned ticks, double share, int lost, unsigned weight)
{
	return ticks_lacking((uint64_t)(ticks * share * (double)(10 * MS)), 10 * MS, weight,
			     met(ticks, share, lost, weight));
}

static void chance_is_no_loss(void **state)
{
	(void)state;
	srand(1);
	srand48(1);
	for (int i = 0; i < 2000; i++) {
		double share = drand48();

		assert_int_equal(lacking(1 + (unsigned)rand() % 3000, share, 0, 1), 0);
		assert_int_equal(lacking(3000, share, 0, 1u << rand() % 7), 0);
		assert_int_equal(lacking(3000, share, 1, 1), 0);
	}
}

static void lost_ticks_are_told(void **state)
{
	(void)state;
	for (int i = 0; i < 200; i++) {
		uint64_t n = lacking(10000, 0.5, 40, 1);

		assert_in_range(n, 1600, 2400); /* of 2,000, and chance */
	}
	assert_int_equal(ticks_lacking(10 * SEC, 10 * MS, 1, 0), 1000);
	assert_int_equal(ticks_lacking(10 * SEC, 10 * MS, 1, 1100), 0);
	assert_int_equal(ticks_lacking(0, 10 * MS, 1, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_cpu_is_counted),
		cmocka_unit_test(the_last_tick_may_be_late),
		cmocka_unit_test(slowing_down_loses_none),
		cmocka_unit_test(few_are_no_loss_and_known_ones_are_not_told_twice),
		cmocka_unit_test(chance_is_no_loss),
		cmocka_unit_test(lost_ticks_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
