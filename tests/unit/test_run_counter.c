/* tests/unit/test_run_counter.c - steps of the runtime's count of runs: how long, how many, and was the sweeper at work. */
#include "collect/waits/engine/run_counter.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "target/target.h"

#define MS NS_PER_MS

/* ---- the target ---- */

static uint64_t now, cpu, runs;
static struct rtsweeper sweeper;
static int no_counters, no_runs, no_sweeper; /* errors */
static unsigned opened, freed, read_runs;

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	uint64_t ns = clock == CLOCK_MONOTONIC ? now : cpu;

	*ts = (struct timespec){ (time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S) };
	return 0;
}

int clock_getcpuclockid(pid_t pid, clockid_t *out)
{
	(void)pid;
	*out = CLOCK_PROCESS_CPUTIME_ID;
	return cpu ? 0 : ESRCH;
}

int rtcounters_open(struct gobin *b, const struct golayout *l, struct mem *m, uint64_t bias,
		    struct rtcounters **out, struct err *e)
{
	(void)b, (void)l, (void)m, (void)bias, (void)e;
	opened++;
	*out = no_counters ? NULL : (struct rtcounters *)&runs;
	return no_counters;
}

void rtcounters_free(struct rtcounters *c)
{
	freed += c != NULL;
}

int rtcounters_switches(struct rtcounters *c, uint64_t *out, struct err *e)
{
	(void)c, (void)e;
	read_runs++;
	*out = runs;
	return no_runs;
}

int rtcounters_sweeper(struct rtcounters *c, struct rtsweeper *out, struct err *e)
{
	(void)c, (void)e;
	*out = sweeper;
	return no_sweeper;
}

/* ---- what it says ---- */

static struct dilation_step last;
static unsigned steps;

void dilation_step(struct dilation *w, const struct dilation_step *s)
{
	(void)w;
	last = *s;
	steps++;
}

static struct target target = { .pid = 1 };
static struct subject subject = { .target = &target };
static struct run_counter counter;
static struct dilation to;

static int set_up(void **state)
{
	(void)state;
	now = NS_PER_S;
	cpu = 100 * MS;
	runs = 1000;
	sweeper = (struct rtsweeper){ .sweepgen = 8, .parked = true };
	no_counters = no_runs = no_sweeper = 0;
	opened = freed = read_runs = steps = 0;
	counter = (struct run_counter){ .s = &subject };
	to = (struct dilation){ 0 };
	return 0;
}

static void passes(uint64_t ms, uint64_t busy_ms, uint64_t more)
{
	now += ms * MS;
	cpu += busy_ms * MS;
	runs += more;
	run_counter_poll(&counter, &to);
}

/* ---- tests ---- */

static void a_step_lasts_for_five_milliseconds_or_more(void **state)
{
	(void)state;
	run_counter_begin(&counter);
	assert_int_equal(run_counter_due(&counter), now + 5 * MS);
	passes(4, 1, 10);
	assert_int_equal(steps, 0);
	passes(2, 1, 10);
	assert_int_equal(steps, 1);
	assert_true(last.ns == 6e6 && last.runs == 20 && last.busy_ns == 2e6 &&
		    last.end == (double)now);
	counter.every_ns = 15 * MS;
	passes(14, 1, 10);
	assert_int_equal(steps, 1);
	passes(1, 1, 10);
	assert_int_equal(steps, 2);
}

/* Nothing is read of what has not run: it counted nothing. */
static void one_that_has_not_run_is_not_read(void **state)
{
	unsigned reads;

	(void)state;
	run_counter_begin(&counter);
	reads = read_runs;
	passes(10, 0, 0);
	assert_int_equal(read_runs, reads);
	assert_true(steps == 1 && last.runs == 0);
}

/* The first of these is of time in which nobody had looked yet. */
static void the_sweeper_may_have_been_at_work(void **state)
{
	(void)state;
	run_counter_begin(&counter);
	passes(5, 1, 10);
	assert_true(steps == 1 && !last.swept);
	sweeper = (struct rtsweeper){ 10, true }; /* it came and went */
	passes(5, 1, 10);
	assert_true(steps == 2 && last.swept);
	passes(5, 1, 10);
	assert_true(steps == 3 && !last.swept);
	sweeper = (struct rtsweeper){ 12, false };
	passes(5, 1, 10);
	assert_true(steps == 4 && last.swept);
	passes(5, 0, 0); /* nor has it run */
	assert_true(steps == 5 && !last.swept);
	sweeper.parked = true; /* it was at work when this step began */
	passes(5, 1, 10);
	assert_true(steps == 6 && last.swept);
	passes(5, 1, 10);
	assert_true(steps == 7 && !last.swept);
}

/* What is not known is no excuse for a storm. */
static void of_an_unknown_sweeper_nothing_is_said(void **state)
{
	(void)state;
	no_sweeper = -EAGAIN;
	run_counter_begin(&counter);
	sweeper = (struct rtsweeper){ 10, false };
	passes(5, 1, 10);
	assert_true(steps == 1 && !last.swept);
	no_sweeper = 0;
	passes(5, 1, 10);
	assert_true(steps == 2 && !last.swept);
	passes(5, 1, 10);
	assert_true(steps == 3 && last.swept);
	no_sweeper = -ESRCH;
	passes(5, 1, 10);
	assert_true(steps == 4 && !last.swept);
}

static void what_was_counted_in_windows_is_added_up(void **state)
{
	(void)state;
	run_counter_mark(&counter); /* full observation ends */
	runs += 30;
	run_counter_begin(&counter);
	passes(5, 1, 100);
	runs += 7;
	run_counter_end(&counter, &to);
	assert_true(to.switches == 137);
	assert_int_equal(run_counter_due(&counter), 0);
	runs += 1000; /* nobody counts now */
	run_counter_begin(&counter);
	runs += 5;
	run_counter_end(&counter, &to);
	assert_true(to.switches == 142);
}

/* It has exited: what was read last is all that is known. */
static void one_that_has_gone_ends_with_the_last_reading(void **state)
{
	(void)state;
	run_counter_begin(&counter);
	passes(5, 1, 100);
	runs += 50;
	no_runs = -ESRCH;
	cpu = 0;
	run_counter_end(&counter, &to);
	assert_true(to.switches == 100 && steps == 1);
}

/* The total is not known where the count was never had, or seems to have gone down. */
static void without_a_count_there_is_no_total(void **state)
{
	(void)state;
	no_counters = -ENOTSUP;
	run_counter_begin(&counter);
	assert_int_equal(run_counter_due(&counter), 0);
	passes(50, 1, 100);
	assert_int_equal(steps, 0);
	run_counter_end(&counter, &to);
	assert_true(to.switches == -1);
	set_up(state);
	run_counter_begin(&counter);
	runs -= 1;
	passes(5, 1, 0);
	assert_int_equal(steps, 0);
	run_counter_end(&counter, &to);
	assert_true(to.switches == -1);
}

/* A process that has just begun has them a little later. */
static void counters_are_searched_for_again(void **state)
{
	(void)state;
	no_runs = -ENOTSUP;
	run_counter_begin(&counter);
	assert_true(opened == 1 && freed == 1 && !counter.counters);
	no_runs = 0;
	run_counter_mark(&counter);
	assert_true(opened == 2 && counter.marked == 1000);
	run_counter_fini(&counter);
	assert_int_equal(freed, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_step_lasts_for_five_milliseconds_or_more, set_up),
		cmocka_unit_test_setup(one_that_has_not_run_is_not_read, set_up),
		cmocka_unit_test_setup(the_sweeper_may_have_been_at_work, set_up),
		cmocka_unit_test_setup(of_an_unknown_sweeper_nothing_is_said, set_up),
		cmocka_unit_test_setup(what_was_counted_in_windows_is_added_up, set_up),
		cmocka_unit_test_setup(one_that_has_gone_ends_with_the_last_reading, set_up),
		cmocka_unit_test_setup(without_a_count_there_is_no_total, set_up),
		cmocka_unit_test_setup(counters_are_searched_for_again, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
