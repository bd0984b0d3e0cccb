/*
 * tests/unit/test_run_ratio.c - 100 goroutines that sleep for 0.5 ms each, observed by windows that met four fifths of that, and the
 * runtime's own count, which has all of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "collect/waits/engine/run_ratio.h"
#include "collect/waits/engine/wait_estimates.h"
#include "collect/waits/wait/wait_window.h"
#include "mksubject.h"

#define MS 1000000.0

enum { WINDOWS = 20, EACH = 10, WEIGHT = 100, SEEN = WINDOWS * EACH * WEIGHT };

static struct wait_window w;

static bool not_runtime(struct subject *s, const struct gpb_stack *st)
{
	(void)s;
	(void)st;
	return false;
}

static struct gpb_stack stack(unsigned kind, unsigned length, double ns)
{
	return (struct gpb_stack){
		.wait.kind = (uint8_t)kind,
		.wait.length = (uint8_t)length,
		.nfirst = 2,
		.pc = { 0x1000, 0x2000 },
		.count = GPB_COUNT_ONE,
		.delay = (uint64_t)ns,
	};
}

static void add(struct gpb_stack st, int times)
{
	for (int i = 0; i < times; i++)
		assert_int_equal(wait_window_add(&w, &st, NULL), 0);
}

/* What windows see of a world, each the same, but for @uneven in the first one. */
struct seen {
	int sleeps, runnable, shorts, calls; /* shorts: times runnable after short waits */
	double runs;			     /* that are not paced, in all */
	int uneven;
};

static void observe_all(const struct seen *in)
{
	double runs = in->runs / WINDOWS;
	const struct tally_window tw = { .weight = WEIGHT, .n = &runs };

	for (int i = 0; i < WINDOWS; i++) {
		int more = i ? 0 : in->uneven;

		add(stack(GPB_G_WAITING, GPB_WAIT_LONG, 0.5 * MS), in->sleeps + more);
		add(stack(GPB_G_RUNNABLE, GPB_WAIT_LONG, 1000), in->runnable + more);
		add(stack(GPB_G_RUNNABLE, GPB_WAIT_SHORT, 1000), in->shorts);
		add(stack(GPB_G_SYSCALL, GPB_WAIT_CALL, MS), in->calls);
		runs = in->runs / WINDOWS * (more + 1);
		tally_window(&w.engine.tally, &tw);
	}
}

static int set_up(void **state)
{
	(void)state;
	w = (struct wait_window){ .engine = { .s = &subject } };
	wait_window_init(&w, not_runtime);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	wait_window_fini(&w);
	return 0;
}

/* The runtime counted @counted, and of those in windows @paced were paced by a clock. */
static double ratio_of(const struct seen *in, double paced, double counted)
{
	observe_all(in);
	w.engine.paced = paced;
	w.engine.slow.switches = counted;
	w.engine.unplaced = run_unplaced(&w.engine);
	w.engine.ratio = run_ratio(&w.engine);
	return w.engine.ratio;
}

#define SLEEPERS .sleeps = EACH, .runnable = EACH, .runs = SEEN / 10

static void assert_near(double got, double want)
{
	if (fabs(got - want) > 1e-6 * want)
		fail_msg("%g, not %g", got, want);
}

static void as_many_as_the_runtime_counted(void **state)
{
	const struct seen s = { SLEEPERS };
	double told = 0;

	(void)state;
	assert_near(ratio_of(&s, SEEN, 1.25 * SEEN), 1.25);
	for (size_t i = 0; i < w.engine.tally.entries.n; i++)
		if (w.engine.tally.entries.at[i].parked)
			told += (double)wait_window_estimate(&w, i).count / GPB_COUNT_ONE;
	assert_near(told, 1.25 * SEEN);
}

/* Windows may say too many, too, where few waits began in them. */
static void or_as_few(void **state)
{
	const struct seen s = { SLEEPERS };

	(void)state;
	assert_near(ratio_of(&s, SEEN, 0.8 * SEEN), 0.8);
}

/* These have the regression. */
static void not_where_most_waits_are_short(void **state)
{
	const struct seen s = { .sleeps = 1, .runnable = 1, .shorts = EACH, .runs = SEEN };

	(void)state;
	assert_near(ratio_of(&s, SEEN / EACH, 1.25 * SEEN), 1);
	assert_near(w.engine.unplaced + 1, 1);
}

/* Runs of goroutines that slept already when the window began are after no short wait. */
static void runs_after_nothing_that_was_seen(void **state)
{
	const struct seen s = { .sleeps = EACH, .runnable = EACH, .runs = 2 * SEEN };

	(void)state;
	assert_near(ratio_of(&s, SEEN, 1.25 * SEEN), 1.25);
	assert_near(w.engine.unplaced, 2 * SEEN);
}

/* The subject is built with go1.27: there a system call's return is no run that the runtime counts. */
static void calls_are_no_runs(void **state)
{
	const struct seen s = { SLEEPERS, .calls = EACH };

	(void)state;
	assert_int_equal(gobin_info(subject.bin)->minor, 27);
	assert_near(ratio_of(&s, SEEN, 1.25 * SEEN), 1.25);
}

static void not_where_the_count_does_not_tell(void **state)
{
	const struct seen s = { SLEEPERS };

	(void)state;
	assert_near(ratio_of(&s, SEEN, -1), 1);
	w.engine.slow.switches = 0;
	assert_near(run_ratio(&w.engine), 1);
}

/* At a pace that no window met: whether these were waits is not known. */
static void not_where_there_were_storms(void **state)
{
	const struct seen s = { SLEEPERS };
	struct run_rates *r = &w.engine.slow.rates;

	(void)state;
	run_rates_window(r, 50, 50e6, 500e6);
	for (int i = 0; i < 100; i++)
		run_rates_step(r, i % 2 ? 5 : 5000, 5e6);
	assert_near(ratio_of(&s, SEEN, 250000), 1);
}

/* One window of twenty has nearly all: the number of runs that they tell is uncertain. */
static void not_where_windows_know_little(void **state)
{
	const struct seen s = { .sleeps = 1, .runnable = 1, .runs = SEEN, .uneven = 200 };

	(void)state;
	assert_near(ratio_of(&s, 1, 10 * SEEN), 1);
}

static void within_bounds(void **state)
{
	const struct seen s = { SLEEPERS };

	(void)state;
	assert_near(ratio_of(&s, SEEN, 1000.0 * SEEN), RUN_DILATED);
	w.engine.slow.switches = SEEN / 1000;
	assert_near(run_ratio(&w.engine), 1.0 / RUN_DILATED);
}

/* Of a place that has nearly all waits it is known, of another one it is as uncertain as it is large. */
static void how_certain_it_is(void **state)
{
	(void)state;
	assert_near(run_ratio_variance(1.25, 1000, 100, 1), 1.25 * 1.25 * 100);
	assert_near(run_ratio_variance(1.25, 1000, 0, 0.2), 200 * 200);
	assert_near(run_ratio_variance(0.8, 1000, 0, 0), 200 * 200);
	assert_near(run_ratio_variance(1, 1000, 100, 0), 100);
	assert_true(run_ratio_variance(1.25, 1000, -1, 0.5) < 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(as_many_as_the_runtime_counted),
		TEST(or_as_few),
		TEST(not_where_most_waits_are_short),
		TEST(runs_after_nothing_that_was_seen),
		TEST(calls_are_no_runs),
		TEST(not_where_the_count_does_not_tell),
		TEST(not_where_there_were_storms),
		TEST(not_where_windows_know_little),
		TEST(within_bounds),
		TEST(how_certain_it_is),
	};

	return cmocka_run_group_tests(tests, open_subject, close_subject);
}
