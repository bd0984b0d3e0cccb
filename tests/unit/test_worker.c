/* tests/unit/test_worker.c - what is left to a thread where it waits for ever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/loop/worker.h"

static struct worker *w;
static int dropped;

struct job {
	struct worker_job job;
	int in, out;
};

static void twice(struct worker_job *j)
{
	struct job *t = (struct job *)j;

	t->out = 2 * t->in;
}

static void drop(struct worker_job *j)
{
	free(j);
	__atomic_add_fetch(&dropped, 1, __ATOMIC_RELEASE);
}

static struct job *job(void (*run)(struct worker_job *j), int in)
{
	struct job *j = calloc(1, sizeof(*j));

	*j = (struct job){ .job = { .run = run, .drop = drop }, .in = in };
	return j;
}

static int teardown(void **state)
{
	(void)state;
	worker_free(w);
	w = NULL;
	dropped = 0;
	return 0;
}

static void jobs_are_done_one_after_the_other(void **state)
{
	(void)state;
	for (int i = 0; i < 1000; i++) {
		struct job *j = job(twice, i);

		assert_true(worker_do(&w, &j->job));
		assert_int_equal(j->out, 2 * i);
		free(j);
	}
	assert_int_equal(dropped, 0);
}

/* What vfork() waits for is not ended by a signal: as a page that does not come, and in the state D, too. */
static void waits_in_the_kernel(struct worker_job *j)
{
	struct job *t = (struct job *)j;
	pid_t child = vfork();

	if (!child) {
		usleep((unsigned)t->in * 1000);
		_exit(0);
	}
}

static void whoever_waits_is_left_behind(void **state)
{
	struct job *j = job(waits_in_the_kernel, 3 * LIMIT_STUCK_MS), *next;
	uint64_t begun = now_ns(), lasted;

	(void)state;
	assert_false(worker_do(&w, &j->job));
	lasted = (now_ns() - begun) / NS_PER_MS;
	assert_in_range(lasted, LIMIT_STUCK_MS, 2 * LIMIT_STUCK_MS + 500);
	assert_null(w);
	assert_int_equal(__atomic_load_n(&dropped, __ATOMIC_ACQUIRE), 0); /* it still uses it */
	next = job(twice, 4);
	assert_true(worker_do(&w, &next->job));
	assert_int_equal(next->out, 8);
	free(next);
	for (int i = 0; i < 100 && !__atomic_load_n(&dropped, __ATOMIC_ACQUIRE); i++)
		usleep(100000);
	assert_int_equal(dropped, 1);
}

/* The lock that it waits for is held by one who runs, or would: that is waited for longer. */
static void whoever_waits_for_one_that_runs_is_waited_for(void **state)
{
	struct job *j = job(waits_in_the_kernel, 2 * LIMIT_STUCK_MS);
	pid_t busy = fork();

	(void)state;
	if (!busy)
		for (;;)
			;
	j->job.asks = busy;
	assert_true(worker_do(&w, &j->job));
	free(j);
	kill(busy, SIGSTOP);
	usleep(10000);
	j = job(waits_in_the_kernel, 2 * LIMIT_STUCK_MS);
	j->job.asks = busy;
	assert_false(worker_do(&w, &j->job));
	kill(busy, SIGKILL);
	waitpid(busy, NULL, 0);
	dropped = 0;
	for (int i = 0; i < 100 && !__atomic_load_n(&dropped, __ATOMIC_ACQUIRE); i++)
		usleep(100000);
	assert_int_equal(dropped, 1);
}

/* It is not in a wait, it only takes its time. */
static void works(struct worker_job *j)
{
	uint64_t until = now_ns() + (uint64_t)((struct job *)j)->in * NS_PER_MS;

	while (now_ns() < until)
		;
	twice(j);
}

/* Many short waits, as of a disk. */
static void waits_often(struct worker_job *j)
{
	struct job *t = (struct job *)j;
	struct job one = { .in = LIMIT_STUCK_MS / 5 };

	for (int i = 0; i < t->in; i++)
		waits_in_the_kernel(&one.job);
	twice(j);
}

static void whoever_waits_often_is_waited_for(void **state)
{
	struct job *j = job(waits_often, 10);

	(void)state;
	assert_true(worker_do(&w, &j->job));
	assert_int_equal(j->out, 20);
	free(j);
}

static void whoever_works_is_waited_for(void **state)
{
	struct job *j = job(works, 2 * LIMIT_STUCK_MS);

	(void)state;
	assert_true(worker_do(&w, &j->job));
	assert_int_equal(j->out, 4 * LIMIT_STUCK_MS);
	free(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(jobs_are_done_one_after_the_other, teardown),
		cmocka_unit_test_teardown(whoever_waits_is_left_behind, teardown),
		cmocka_unit_test_teardown(whoever_waits_often_is_waited_for, teardown),
		cmocka_unit_test_teardown(whoever_works_is_waited_for, teardown),
		cmocka_unit_test_teardown(whoever_waits_for_one_that_runs_is_waited_for, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
