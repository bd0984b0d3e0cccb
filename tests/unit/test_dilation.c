/*
 * tests/unit/test_dilation.c - whose waits windows stand for: a runtime that counts, and begins, exits and is
 * observed in full at moments that the test chooses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect/waits/engine/run_counter.h"

/* The runtime's count; found: its counters can be found; alive: it can be read. */
static struct {
	uint64_t count;
	bool found, alive;
	int opens, reads;
} runtime;

int rtcounters_open(struct gobin *b, const struct golayout *l, struct mem *m, uint64_t bias,
		    struct rtcounters **out, struct err *e)
{
	(void)b;
	(void)l;
	(void)m;
	(void)bias;
	runtime.opens++;
	if (!runtime.found)
		return err_set(e, -ENOTSUP, "not yet");
	*out = malloc(1);
	return 0;
}

int rtcounters_switches(struct rtcounters *c, uint64_t *out, struct err *e)
{
	(void)c;
	if (!runtime.alive)
		return err_set(e, -ESRCH, "it has exited");
	runtime.reads++;
	*out = runtime.count;
	return 0;
}

int rtcounters_sweeper(struct rtcounters *c, struct rtsweeper *out, struct err *e)
{
	(void)c;
	*out = (struct rtsweeper){ .parked = true };
	return runtime.alive ? 0 : err_set(e, -ESRCH, "it has exited");
}

void rtcounters_free(struct rtcounters *c)
{
	free(c);
}

static struct target target = { .pid = -1 };
static struct subject subject = { .target = &target };

static struct run_counter begun(void)
{
	runtime.count = 1000;
	runtime.found = runtime.alive = true;
	runtime.opens = 0;
	return (struct run_counter){ .s = &subject };
}

/* What happens while probes are taken out and a price is measured belongs to windows. */
static void windows_begin_where_full_observation_ended(void **state)
{
	struct run_counter r = begun();
	struct dilation w = {};

	(void)state;
	run_counter_mark(&r);
	runtime.count += 300;
	run_counter_begin(&r);
	runtime.count += 50;
	run_counter_end(&r, &w);
	assert_true(w.switches == 350);
	/* Where nothing was observed in full, they begin now. */
	runtime.count += 1000;
	run_counter_begin(&r);
	runtime.count += 25;
	run_counter_end(&r, &w);
	assert_true(w.switches == 375);
	run_counter_fini(&r);
}

static void an_exit_leaves_what_was_read_last(void **state)
{
	struct run_counter r = begun();
	struct dilation w = {};

	(void)state;
	run_counter_begin(&r);
	runtime.count += 4000;
	run_counter_read(&r, &w);
	runtime.count += 10;
	runtime.alive = false;
	run_counter_end(&r, &w);
	assert_true(w.switches == 4000);
	run_counter_fini(&r);
}

static void for_steps(struct run_counter *r, struct dilation *w, int n)
{
	for (int i = 0; i < n; i++) {
		usleep(6000);
		assert_true(run_counter_due(r) <= now_ns());
		run_counter_poll(r, w);
	}
}

/* Most of many processes sleep nearly all the time, and to read the memory of one costs more than to read its clock. */
static void one_that_has_not_run_is_not_read(void **state)
{
	int gate[2];
	char go;
	struct run_counter r = begun();
	struct dilation w = {};
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(gate), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (read(gate[0], &go, 1) == 1)
			;
		_exit(0);
	}
	usleep(50000);
	target.pid = pid;
	run_counter_begin(&r);
	assert_true(run_counter_due(&r) > now_ns());
	runtime.reads = 0;
	for_steps(&r, &w, 3);
	assert_true(runtime.reads == 0 && r.step_count == 1000);
	assert_int_equal(write(gate[1], "", 1), 1);
	usleep(50000);
	runtime.count += 7;
	for_steps(&r, &w, 3);
	assert_true(runtime.reads == 1 && r.step_count == 1007);
	run_counter_end(&r, &w);
	assert_true(run_counter_due(&r) == 0 && w.switches == 7);
	run_counter_fini(&r);
	target.pid = -1;
	close(gate[0]);
	close(gate[1]);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* A process that has just begun has no counters; one that never has any is not asked for ever. */
static void counters_are_looked_for_again(void **state)
{
	struct run_counter r = begun();
	struct dilation w = {};

	(void)state;
	runtime.found = false;
	run_counter_mark(&r);
	runtime.found = true;
	run_counter_begin(&r);
	runtime.count += 7;
	run_counter_end(&r, &w);
	assert_true(w.switches == 7);
	run_counter_fini(&r);
	r = begun();
	runtime.found = false;
	for (int i = 0; i < 1000; i++)
		run_counter_mark(&r);
	assert_in_range(runtime.opens, 2, 20);
	run_counter_begin(&r);
	run_counter_end(&r, &w);
	assert_true(w.switches < 0);
	run_counter_fini(&r);
}

/*
 * Full observation counts parks and nothing that tells how they follow each other. Taken for a window's,
 * they say that the program is as fast as without probes.
 */
static void full_observation_tells_nothing_of_windows(void **state)
{
	const struct gpb_wait_clock full = { .parks = 600000 };
	const struct gpb_wait_clock window = { .shorts = 12000,
					       .short_ns = 7200000,
					       .parks = full.parks + 6000 };
	struct dilation w = {};

	(void)state;
	dilation_skip(&w, &full);
	dilation_begin(&w, 500);
	dilation_learn(&w, &window, 0, 0, 1, 1);
	/* 600 ns from hit to hit, of which 500 are ours. */
	assert_true(w.now > 5.9 && w.now < 6.1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_begin_where_full_observation_ended),
		cmocka_unit_test(an_exit_leaves_what_was_read_last),
		cmocka_unit_test(one_that_has_not_run_is_not_read),
		cmocka_unit_test(counters_are_looked_for_again),
		cmocka_unit_test(full_observation_tells_nothing_of_windows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
