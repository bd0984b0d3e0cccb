/*
 * tests/unit/test_survival.c - the error of what lives of a site, over simulated programs whose windows are few, or missing.
 *
 * A program allocates at one rate for TIME, and all its objects live equally long. A GC cycle ends each second. Each stratum has a
 * window that sees OBJECTS of them, but for those that are missing.
 */
#include "sampling/windows/survival.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/random.h"

#define TIME 24.0
enum { OBJECTS = 20, RUNS = 400, WINDOWS_MOST = 60 };

struct world {
	unsigned windows;
	double life;	   /* seconds */
	double at_random;  /* the part of windows that are missing */
	double at_the_end; /* the part of the time without windows */
};

struct run {
	double share, among; /* the variance by how much windows differ */
	struct survival s;
};

static bool is_missing(const struct world *w, unsigned i, uint64_t *seed)
{
	return i + 1 > w->windows * (1 - w->at_the_end) || random_part(seed) < w->at_random;
}

/* How many cycles an object outlives, and whether it dies of one. */
static void follow(const struct world *w, double at, double *lived, double *died)
{
	double gone = fmin(at + w->life, TIME);

	*lived += floor(gone) - floor(at);
	*died += at + w->life < TIME;
}

static struct run run(const struct world *w, uint64_t *seed)
{
	double of[WINDOWS_MOST], lived = 0, died = 0, sum = 0, cycle;
	struct run r = {};
	unsigned n = 0;

	for (unsigned i = 0; i < w->windows; i++) {
		double at = TIME * (i + random_part(seed)) / w->windows;

		if (is_missing(w, i, seed))
			continue;
		follow(w, at, &lived, &died);
		of[n] = at + w->life >= TIME;
		sum += of[n++];
	}
	r.share = n ? sum / n : 0;
	for (unsigned i = 0; i < n && n > 1; i++)
		r.among += (of[i] - r.share) * (of[i] - r.share) / n / (n - 1);
	cycle = (lived + 0.5) / (lived + died + 1);
	r.s = (struct survival){ .share = r.share,
				 .windows = survival_windows(n * (double)OBJECTS,
							     n * (double)OBJECTS * OBJECTS),
				 .once = cycle,
				 .always = pow(cycle, TIME),
				 .unseen = 1 - (double)n / w->windows };
	return r;
}

static double error_of(const struct run *r, bool known)
{
	double p = (r->share * OBJECTS * r->s.windows + 2) / (OBJECTS * r->s.windows + 4);
	double least = p * (1 - p) / (OBJECTS * r->s.windows + 4); /* by objects alone */

	if (known)
		least = fmax(least, survival_least(&r->s));
	return sqrt(fmax(r->among, least) + (known ? survival_unseen(&r->s) : 0));
}

/* In how many runs is the truth more than four standard errors off? */
static unsigned off(const struct world *w, bool known, double *mean_error)
{
	double truth = fmin(w->life / TIME, 1), errors = 0;
	uint64_t seed = 1;
	unsigned n = 0;

	for (unsigned i = 0; i < RUNS; i++) {
		struct run r = run(w, &seed);
		double error = error_of(&r, known);

		n += fabs(r.share - truth) > 4 * error;
		errors += error / RUNS;
	}
	*mean_error = errors;
	return n;
}

enum { BY_CHANCE = 2 }; /* of RUNS: none was seen */

static const double lives[] = { 0.01, 0.3, 1, 2, 4, 8, 30 };
static const unsigned windows[] = { 5, 10, 20, 60 };
static const struct world missing[] = { {}, { .at_random = 0.3 }, { .at_the_end = 0.3 } };

static void test_truth_within_errors(void **state)
{
	unsigned without = 0;
	double error;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lives) * ARRAY_LEN(windows) * ARRAY_LEN(missing); i++) {
		struct world w = missing[i % ARRAY_LEN(missing)];

		w.windows = windows[i / ARRAY_LEN(missing) % ARRAY_LEN(windows)];
		w.life = lives[i / ARRAY_LEN(missing) / ARRAY_LEN(windows)];
		assert_true(off(&w, true, &error) <= BY_CHANCE);
		without += off(&w, false, &error);
	}
	/* So a wrong error is seen here. */
	assert_true(without > 10 * RUNS);
}

/* Garbage, and what lives for ever: windows agree, and whether they can be believed is seen of each object. */
static void test_garbage_and_leaks_are_known(void **state)
{
	double error;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct world w = { .windows = 60, .life = i ? 30 : 0.01 };

		assert_int_equal(off(&w, true, &error), 0);
		assert_true(error < 0.005);
		w.at_the_end = 0.3;
		assert_int_equal(off(&w, true, &error), 0);
		assert_true(error < 0.01);
	}
}

/* With many windows, and none missing, how much they differ tells enough. */
static void test_many_windows_need_no_more(void **state)
{
	double with, without;

	(void)state;
	for (double life = 2; life < 20; life *= 2) {
		struct world w = { .windows = 60, .life = life };

		(void)off(&w, true, &with);
		(void)off(&w, false, &without);
		assert_true(with <= without * 1.06);
	}
}

static void test_windows_of_unequal_size(void **state)
{
	(void)state;
	assert_true(survival_windows(0, 0) == 0);
	assert_true(survival_windows(10, 100) == 1); /* one saw all ten */
	assert_true(survival_windows(40, 400) == 4);
	assert_true(fabs(survival_windows(3 + 1, 9 + 1) - 1.6) < 1e-12);
}

static void test_nothing_is_said_of_nothing(void **state)
{
	struct survival s = { .once = 0, .always = 1 };

	(void)state;
	assert_true(survival_least(&s) == 0);
	assert_true(survival_unseen(&s) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_truth_within_errors),
		cmocka_unit_test(test_garbage_and_leaks_are_known),
		cmocka_unit_test(test_many_windows_need_no_more),
		cmocka_unit_test(test_windows_of_unequal_size),
		cmocka_unit_test(test_nothing_is_said_of_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
