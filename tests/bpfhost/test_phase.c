/*
 * tests/bpfhost/test_phase.c - which steps of a CPU clock are samples: with a clock that is set
 * by hand, and thread ids that are used again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define GPB_HOST
#include "goprof_abi.h"
#include "host.h"
#include "host_maps.h"

#include "phase.bpf.h"

#define MS 1000000ull
enum { STEPS = 10 };

static int reset(void **state)
{
	(void)state;
	host_maps_reset();
	threads_seen = 0;
	return 0;
}

/* A step of thread @tid, which began at @start and was switched out so often. */
static uint64_t step_of(uint32_t tid, uint64_t start, uint64_t ns, uint64_t switches,
			uint32_t random)
{
	host_task = (struct task_struct){
		.start_time = start,
		.nvcsw = switches / 2,
		.nivcsw = switches - switches / 2,
	};
	host_now_ns = ns;
	host_random = random;
	return samples_due(tid, STEPS, MS);
}

static void every_tenth_step(void **state)
{
	uint64_t taken = 0;

	(void)state;
	for (uint32_t i = 0; i < 1000; i++)
		taken += step_of(7, 5, i * MS, i, 3);
	assert_int_equal(taken, 100);
}

/*
 * Threads that run for a third of a period, with every possible first phase: a third of them are
 * seen.
 */
static void short_threads_are_seen_in_proportion(void **state)
{
	uint64_t taken = 0;

	for (uint32_t random = 0; random < STEPS; random++) {
		reset(state);
		for (uint32_t i = 0; i < 3; i++)
			taken += step_of(7, 5, i * MS, 0, random);
	}
	assert_int_equal(taken, 3);
}

/*
 * A thread was never switched out, and its clock was served late: the elapsed time tells how many
 * steps there were.
 */
static void late_steps_are_made_up_for(void **state)
{
	(void)state;
	assert_int_equal(step_of(7, 5, 1000 * MS, 4, 0), 1);
	assert_int_equal(step_of(7, 5, 1035 * MS, 4, 0), 3);
	/* It was switched out in between, so nobody knows how long it ran. */
	assert_int_equal(step_of(7, 5, 2035 * MS, 5, 0), 0);
}

/*
 * A thread ends, and minutes later another one has its id and was switched out as often. The new
 * one must not be given the time between, and its phase is its own.
 */
static void an_id_that_is_given_again(void **state)
{
	(void)state;
	assert_int_equal(step_of(7, 5 * MS, 10 * MS, 4, 0), 1);
	assert_int_equal(step_of(7, 300000 * MS, 300001 * MS, 4, 2), 0);
	assert_int_equal(step_of(7, 300000 * MS, 300002 * MS, 4, 2), 0);
	assert_int_equal(step_of(7, 300000 * MS, 300003 * MS, 4, 2), 1);
	assert_int_equal(threads_seen, 2);
}

/* Threads that run at the same time have a position each. */
static void every_thread_has_its_own(void **state)
{
	(void)state;
	assert_int_equal(step_of(7, 5 * MS, 10 * MS, 4, 1), 0);
	assert_int_equal(step_of(8, 5 * MS, 10 * MS, 4, 2), 0);
	assert_int_equal(step_of(7, 5 * MS, 11 * MS, 4, 0), 1);
	assert_int_equal(step_of(8, 5 * MS, 11 * MS, 4, 0), 0);
	assert_int_equal(step_of(8, 5 * MS, 12 * MS, 4, 0), 1);
	assert_int_equal(threads_seen, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(every_tenth_step, reset),
		cmocka_unit_test_setup(short_threads_are_seen_in_proportion, reset),
		cmocka_unit_test_setup(late_steps_are_made_up_for, reset),
		cmocka_unit_test_setup(an_id_that_is_given_again, reset),
		cmocka_unit_test_setup(every_thread_has_its_own, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
