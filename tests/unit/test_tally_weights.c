/* tests/unit/test_tally_weights.c - estimates of windows that have weights of their own. */
#include "sampling/tally.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"

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

static struct tally_missed missed(const struct tally *t, size_t entry)
{
	return tally_part_missed(t, &t->sites.at[t->entries.at[entry].site].sums,
				 t->weights / (double)t->windows);
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
	assert_true(missed(&t, 0).count == 0);
	add(&t, 2, 1, 0);
	tally_window(&t, &first);
	tally_window(&t, &second);
	assert_true(missed(&t, 0).count == 900);
	assert_true(missed(&t, 1).count == 0);
	tally_fini(&t);
}

/* ---- bursts that no window meets ---- */

enum { PROGRAMS = 4000, STRATA = 40, COVERED_LEAST = 93 /* of 100 */ };
#define MET 0.02 /* the part of a stratum in which its window sees what begins */

static uint64_t seed = 1;

/* How many there are of what comes at random, @mean of them on average. */
static unsigned poisson(double mean)
{
	unsigned n = 0;

	for (double at = 0; (at -= log(1 - random_part(&seed))) < mean; n++)
		;
	return n;
}

/*
 * A site waits in bursts of @size waits of 10 ns, at the same mean rate all the time: as many strata as @full
 * are observed in full, the others in windows. *lacks: what came in windows' strata. False: full observation
 * did not see it, or a window did.
 */
static bool bursts_missed(struct tally *t, unsigned size, double full, double rate, double *lacks)
{
	const struct tally_window window = { .weight = 1 / MET };
	unsigned seen = poisson(full * rate), came = poisson(STRATA * rate);

	tally_init(t);
	if (seen)
		add(t, 1, (uint64_t)seen * size * GPB_COUNT_ONE, 0);
	tally_full(t);
	t->full_ns = full;
	for (unsigned i = 0; i < STRATA; i++)
		tally_window(t, &window);
	t->windows_ns = STRATA;
	*lacks = came * (double)size;
	return seen && random_part(&seed) < pow(1 - MET, came);
}

/* Two standard errors cover what was missed, and errors are not so large that they cover anything. */
static void cover_missed(unsigned size, double full)
{
	unsigned programs = 0, covered = 0;
	double error = 0, off = 0;

	while (programs < PROGRAMS) {
		struct tally t;
		double lacks, rate = pow(10, -2 + 2 * random_part(&seed));

		if (bursts_missed(&t, size, full, rate, &lacks)) {
			struct tally_missed m = missed(&t, 0);

			programs++;
			covered += lacks <= 2 * sqrt(m.count);
			error += m.count;
			off += lacks * lacks;
			assert_true(fabs(m.delay - m.count * 100 * GPB_COUNT_ONE * GPB_COUNT_ONE) <=
				    1e-9 * m.delay);
		}
		tally_fini(&t);
	}
	print_message("bursts of %u, full %.1f: %.1f %% covered, errors %.2f times\n", size, full,
		      100.0 * covered / programs, sqrt(error / off));
	if (100 * covered < COVERED_LEAST * programs || sqrt(error / off) > 20)
		fail_msg("bursts of %u, full %.1f: %u of %u covered, errors %.2f times", size, full,
			 covered, programs, sqrt(error / off));
}

static void test_bursts_missed(void **state)
{
	(void)state;
	for (double full = 0.5; full < 100; full *= 5)
		for (unsigned size = 1; size <= 100; size *= 10)
			cover_missed(size, full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full),	  cmocka_unit_test(test_weights),
		cmocka_unit_test(test_missed),	  cmocka_unit_test(test_bursts_missed),
		cmocka_unit_test(test_regressed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
