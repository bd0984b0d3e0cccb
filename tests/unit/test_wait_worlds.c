/*
 * tests/unit/test_wait_worlds.c - numbers of waits in windows, made to agree with the runtime's count of runs:
 * are they unbiased, and does two standard errors cover the truth, whatever the program is like? Thousands of
 * simulated programs: steady ones, ones with bursts, phases, storms of yields or of waits that windows may or
 * may not meet, and programs of which windows see half.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "base/random.h"
#include "collect/waits/wait/wait_window.h"
#include "mksubject.h"

enum {
	PROGRAMS = 1000,
	/* Of 1,000 intervals that cover with 95 %, fewer than 930 would cover by chance in 3 of 1,000 runs. */
	COVERED_LEAST = 930,
	STRATA = 40,
	CELLS = 200, /* ms in a stratum */
	WINDOW = 10, /* ms of a window in which waits begin */
	ALL = STRATA * CELLS,
	STEP = RUN_STEP_NS / 1000000,
};

#define MS 1000000.0

static uint64_t seed;

/* A normal number, nearly, of mean 0 and variance 1. */
static double normal(void)
{
	double sum = 0;

	for (int i = 0; i < 4; i++)
		sum += random_part(&seed);
	return (sum - 2) * sqrt(3);
}

static double poisson(double mean)
{
	double n = floor(mean + sqrt(mean) * normal() + 0.5);

	return n > 0 ? n : 0;
}

struct world {
	const char *name;
	void (*make)(double *waits, double *others);
	double seen; /* the part of what happens that windows see */
	bool yields; /* what storms are of; otherwise of waits */
	bool storms; /* are there any? */
};

static void make_steady(double *waits, double *others)
{
	double mean = 5 + 20 * random_part(&seed), other = 2 + 10 * random_part(&seed);

	for (int i = 0; i < ALL; i++) {
		waits[i] = poisson(mean);
		others[i] = poisson(other);
	}
}

static void make_bursts(double *waits, double *others)
{
	make_steady(waits, others);
	for (double at = 0; (at += 20 - 80 * log(1 - random_part(&seed))) < ALL - 20;)
		for (int i = (int)at; i < (int)at + 20; i++)
			waits[i] += poisson(60);
}

/* While a storm lasts, nothing else gets to run. */
static void make_storms(double *waits, double *others)
{
	double pause = 300 + 3000 * random_part(&seed);

	make_steady(waits, others);
	for (double at = 0; (at += 10 - pause * log(1 - random_part(&seed))) < ALL - 8;)
		for (int i = (int)at; i < (int)at + 6; i++) {
			waits[i] = 0;
			others[i] = poisson(3000);
		}
}

static void make_phases(double *waits, double *others)
{
	double mean = 0, other = 0;

	for (int i = 0; i < ALL; i++) {
		if (!(i % 1000)) {
			mean = 3 + 40 * random_part(&seed);
			other = 10 * random_part(&seed);
		}
		waits[i] = poisson(mean);
		others[i] = poisson(other);
	}
}

/* The runtime's count up to now. It counts each eighth run of a goroutine, for all eight. */
struct counted {
	int ms;
	double left;
};

static void count_until(struct counted *c, struct wait_window *w, const double *waits,
			const double *others, int until)
{
	for (; c->ms + STEP <= until; c->ms += STEP) {
		double runs;

		for (int k = c->ms; k < c->ms + STEP; k++)
			c->left += waits[k] + others[k];
		runs = 8 * floor(c->left / 8);
		c->left -= runs;
		w->engine.slow.switches += runs;
		dilation_step(&w->engine.slow, &(struct dilation_step){ .end = (c->ms + STEP) * MS,
									.ns = RUN_STEP_NS,
									.runs = runs });
	}
}

static void add(struct wait_window *w, uint64_t pc, uint64_t status, double n)
{
	struct gpb_stack st = {
		.count = (uint64_t)n * GPB_COUNT_ONE,
		.nfirst = 2,
		.wait.kind = status,
		.pc = { pc, 0x2000 },
	};

	if (n >= 1)
		assert_int_equal(wait_window_add(w, &st, NULL), 0);
}

/* For how long waits may begin, and then end, in ms. */
#define OPEN (WINDOW + 7)

static void window(struct wait_window *w, const struct world *is, int at, const double *waits,
		   const double *others)
{
	const struct stretch st = { .window = true,
				    .asked = (uint64_t)(at * MS),
				    .opened = (uint64_t)(at * MS),
				    .closed = (uint64_t)((at + OPEN) * MS),
				    .weight = CELLS / (double)OPEN };
	struct wait_counts now = { .runs = w->engine.last.runs };
	double n = 0, y = 0;

	for (int i = at; i < at + WINDOW; i++) {
		n += waits[i];
		y += others[i];
	}
	n = floor(n * is->seen);
	y = floor(y * is->seen);
	add(w, 0x1000, GPB_G_WAITING, n);
	add(w, 0x5000, is->yields ? GPB_G_RUNNABLE : GPB_G_WAITING, y);
	now.runs += (uint64_t)(n + y);
	wait_engine_close(&w->engine, &st, &now);
}

static bool not_runtime(struct subject *s, const struct gpb_stack *st)
{
	(void)s;
	(void)st;
	return false;
}

/* What is told of the place that always waits, and of all. */
struct told {
	double count, error, all, all_error, unmet;
	double truth, all_truth;
};

static struct told run(const struct world *is)
{
	static double waits[ALL], others[ALL];
	static struct target target = { .pid = 1 };
	const double one = GPB_COUNT_ONE;
	struct subject s = subject;
	struct wait_window w = {
		.engine = { .s = &s, .counter = { .s = &s, .open_again = { .at = UINT64_MAX } } }
	};
	struct counted c = { .left = 8 * random_part(&seed) };
	struct told out = {};

	s.target = &target;
	memset(others, 0, sizeof(others));
	wait_window_init(&w, not_runtime);
	w.conf.terms.own.ns = (uint64_t)(WINDOW * MS);
	w.conf.terms.begin_ns = w.conf.terms.own.ns + GPB_LONG_NS;
	is->make(waits, others);
	for (int i = 0; i < STRATA; i++) {
		int at = i * CELLS + (int)((CELLS - WINDOW) * random_part(&seed));

		count_until(&c, &w, waits, others, at + OPEN < ALL ? at + OPEN : ALL);
		window(&w, is, at, waits, others);
	}
	count_until(&c, &w, waits, others, ALL);
	for (int i = 0; i < ALL; i++) {
		out.truth += waits[i];
		out.all_truth += waits[i] + others[i];
	}
	for (size_t i = 0; i < w.engine.tally.entries.n; i++) {
		double n = (double)wait_window_estimate(&w, i).count / one;

		out.all += n;
		if (w.engine.tally.entries.at[i].st->pc[0] != 0x1000)
			continue;
		out.count += n;
		out.error = wait_window_site(&w, w.engine.tally.entries.at[i].site).count / one /
			    one;
	}
	out.all_error = wait_window_whole(&w).count / one / one;
	out.unmet = dilation_unmet(&w.engine.slow);
	wait_window_fini(&w);
	return out;
}

/* The runtime's count is nearly exact, and stated as exact. */
#define EXACTLY 0.001

static bool covers(double value, double variance, double truth)
{
	return fabs(value - truth) <= 2 * sqrt(variance) + EXACTLY * truth;
}

/* What no window met is told, and then the error of the sum is not known: nobody says how much of it is waits. */
static bool honest(const struct told *t)
{
	if (!t->unmet)
		return covers(t->all, t->all_error, t->all_truth);
	return t->all_error < 0 && fabs(t->all + t->unmet - t->all_truth) < 0.1 * t->all_truth;
}

/* Errors may be stated up to @error_most times too large: the spread between strata is in them, which windows do not have. */
static void world(const struct world *is, double error_most)
{
	double sum = 0, truth = 0, error = 0, off = 0;
	int covered = 0, whole = 0, unmet = 0;

	seed = 3;
	for (int i = 0; i < PROGRAMS; i++) {
		struct told t = run(is);

		covered += covers(t.count, t.error, t.truth);
		whole += honest(&t);
		unmet += t.unmet > 0;
		sum += t.count / t.truth;
		truth += 1;
		if (t.unmet >
		    0) /* it may have been waits of this place: then its error is far larger than need be */
			continue;
		error += t.error / t.truth / t.truth;
		off += (t.count / t.truth - 1) * (t.count / t.truth - 1);
	}
	print_message(
		"%s: %.3f of the truth; of %d programs %d covered, %d of the sum; runs that no window met in %d; "
		"errors %.2f times, %.1f %%\n",
		is->name, sum / truth, PROGRAMS, covered, whole, unmet, sqrt(error / off),
		100 * sqrt(off / (PROGRAMS - unmet)));
	if (covered < COVERED_LEAST || whole < COVERED_LEAST || fabs(sum / truth - 1) > 0.02 ||
	    sqrt(error / off) > error_most || (unmet && !is->storms))
		fail_msg("%s", is->name);
}

static void test_steady(void **state)
{
	(void)state;
	world(&(struct world){ "steady", make_steady, 1, false, false }, 1.5);
}

static void test_bursts(void **state)
{
	(void)state;
	world(&(struct world){ "bursts", make_bursts, 1, false, false }, 1.5);
}

static void test_yields(void **state)
{
	(void)state;
	world(&(struct world){ "storms of yields", make_storms, 1, true, true }, 1.5);
}

static void test_waits(void **state)
{
	(void)state;
	world(&(struct world){ "storms of waits", make_storms, 1, false, true }, 1.5);
}

static void test_phases(void **state)
{
	(void)state;
	world(&(struct world){ "phases", make_phases, 1, false, false }, 6);
}

/* The count still tells what windows lack where the program has to wait for a CPU in them. */
static void test_lacking(void **state)
{
	(void)state;
	world(&(struct world){ "windows see half", make_steady, 0.5, false, false }, 1.5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steady), cmocka_unit_test(test_bursts),
		cmocka_unit_test(test_yields), cmocka_unit_test(test_waits),
		cmocka_unit_test(test_phases), cmocka_unit_test(test_lacking),
	};

	return cmocka_run_group_tests(tests, open_subject, close_subject);
}
