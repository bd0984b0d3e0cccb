/* tests/unit/test_uneven.c - a clock that falls into step with no program: simulated, beside one that does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdbool.h>

#include "base/random.h"
#include "sampling/uneven.h"

#define MS 1e6

enum { CPUS = 2, RUNS = 100 };
#define MEAN_NS	  (10 * MS)
#define ENGINE_NS (100 * MS) /* who asks for periods does so each 100 ms */
#define LASTS_NS  (30e3 * MS)

static uint64_t dice = 4711;

/* Ticks of one clock, and how many of them met the first half of a program's period. */
struct met {
	double ticks, first;
};

static void tick(struct met *m, double at, double period)
{
	m->ticks++;
	m->first += fmod(at, period) < period / 2;
}

/* @even: the clock has one period, @even times the mean. 0: it is uneven. */
static void run(struct met *m, double program, double even)
{
	struct uneven u = { .random = random_next(&dice) };
	double start = random_part(&dice) * program, period = even * MEAN_NS, next = period;

	for (double asked = 0; asked < LASTS_NS; asked += ENGINE_NS) {
		uint64_t drawn =
			even > 0 ? 0 : uneven_period(&u, (uint64_t)MEAN_NS, (uint64_t)(asked + 1));

		if (drawn) {
			period = (double)drawn;
			next = asked + period;
		}
		for (; next < asked + ENGINE_NS; next += period)
			tick(m, start + next, program);
	}
}

/* How far shares are from the truth, in standard errors of as many independent ticks: the root of the mean square. */
static double spread(double program, double even, double *ticks)
{
	double sum = 0, all = 0;

	for (int i = 0; i < RUNS; i++) {
		struct met m = { 0 };

		for (int cpu = 0; cpu < CPUS; cpu++)
			run(&m, program, even);
		sum += pow((m.first / m.ticks - 0.5) / (0.5 / sqrt(m.ticks)), 2);
		all += m.ticks;
	}
	*ticks = all / RUNS / CPUS / (LASTS_NS / MEAN_NS);
	return sqrt(sum / RUNS);
}

static const double programs_ms[] = {
	3, 10. / 3, 5, 9.9, 9.999, 10, 10.1, 13.7, 20, 30, 100, 1000
};

static void shares_are_as_of_independent_ticks(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(programs_ms) / sizeof(programs_ms[0]); i++) {
		double ticks, off = spread(programs_ms[i] * MS, 0, &ticks);

		if (off > 1.6 || fabs(ticks - 1) > 0.01)
			fail_msg("period of %.3f ms: %.2f standard errors off, %.3f of the ticks",
				 programs_ms[i], off, ticks);
	}
}

/* What it is for: the judge refuses a clock of one period, also of one that is 1 % longer. */
static void an_even_clock_falls_into_step(void **state)
{
	double ticks;

	(void)state;
	assert_true(spread(10 * MS, 1, &ticks) > 10);
	assert_true(spread(10.1 * MS, 1.01, &ticks) > 10);
}

static void a_period_lasts_some_ticks(void **state)
{
	struct uneven u = { .random = 1 };
	uint64_t now = 5000000000, first = uneven_period(&u, 1000000, now), second;

	(void)state;
	assert_in_range(first, 700000, 1640000);
	assert_int_equal(uneven_period(&u, 1000000, now + 12000000), 0);
	second = uneven_period(&u, 1000000, now + 38000000);
	assert_in_range(second, 700000, 1640000);
	/* a pair's rates have the mean as their mean, but for the half ticks that are lost */
	assert_true(fabs((1e6 / (double)first + 1e6 / (double)second) / 2 - 1 / 0.98) < 1e-3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares_are_as_of_independent_ticks),
		cmocka_unit_test(an_even_clock_falls_into_step),
		cmocka_unit_test(a_period_lasts_some_ticks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
