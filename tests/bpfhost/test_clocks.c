/*
 * tests/bpfhost/test_clocks.c - which hits count of a thread that may have two CPU clocks, and of another
 * one that is given its id.
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

#include <bpf/bpf_core_read.h>

#include "clocks/clocks.bpf.h"

enum { TID = 7, BORN = 5, LATER = 9 };
enum { INHERITED, OWN };

/* User space has opened a clock for the thread. */
static int reset(void **state)
{
	const struct gpb_own_clock none = { 0 };
	uint32_t tid = TID;

	(void)state;
	host_maps_reset();
	return (int)bpf_map_update_elem(&own_clock, &tid, &none, BPF_ANY);
}

/* A clock of thread @tid, which began at @start, hits: does that count? */
static int counts(uint32_t tid, uint64_t start, int clock)
{
	host_task = (struct task_struct){ .start_time = start };
	host_cookie = clock == OWN;
	return clock_counts(NULL, tid);
}

static void threads_with_one_clock_count(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		assert_true(counts(TID + 1, BORN, INHERITED));
}

static void of_two_clocks_one_counts(void **state)
{
	(void)state;
	/* Until its own clock has hit, nobody knows since when it counts. */
	assert_false(counts(TID, BORN, INHERITED));
	for (int i = 0; i < 3; i++) {
		assert_true(counts(TID, BORN, OWN));
		assert_false(counts(TID, BORN, INHERITED));
	}
}

static void a_clock_alone_is_the_thread_s_own(void **state)
{
	(void)state;
	assert_true(counts(TID, BORN, OWN));
	assert_false(counts(TID, BORN, INHERITED));
	for (int i = 0; i < 3; i++)
		assert_true(counts(TID, BORN, INHERITED));
}

/* The thread has ended. Another one has its id, and one clock, which it inherited. */
static void an_id_that_is_given_again_counts(void **state)
{
	(void)state;
	assert_true(counts(TID, BORN, OWN));
	for (int i = 0; i < 3; i++)
		assert_true(counts(TID, LATER, INHERITED));
}

/* The count and number of a clock are the kernel's, and whether user space has opened it. */
static void a_clock_is_read(void **state)
{
	struct perf_event parent = { .id = 3 };
	struct perf_event ev = { .count = { 5000 }, .id = 4, .parent = &parent };
	struct bpf_perf_event_data_kern ctx = { .event = &ev };
	struct clock c;

	(void)state;
	assert_false(clock_read(&ctx, &c));
	*(uint32_t *)(uintptr_t)&reads_kernel = 1;
	assert_true(clock_read(&ctx, &c));
	assert_int_equal(c.count, 5000);
	assert_int_equal(c.id, 4);
	assert_false(c.opened);
	ev.parent = NULL;
	assert_true(clock_read(&ctx, &c));
	assert_true(c.opened);
	*(uint32_t *)(uintptr_t)&reads_kernel = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(threads_with_one_clock_count, reset),
		cmocka_unit_test_setup(of_two_clocks_one_counts, reset),
		cmocka_unit_test_setup(a_clock_alone_is_the_thread_s_own, reset),
		cmocka_unit_test_setup(an_id_that_is_given_again_counts, reset),
		cmocka_unit_test_setup(a_clock_is_read, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
