/*
 * tests/bpfhost/test_percpu.c - what a CPU counts for itself, while threads preempt each other in the
 * middle of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <pthread.h>

#define GPB_HOST
#include "goprof_abi.h"
#include "host.h"
#include "host_maps.h"

static uint32_t log2_table[GPB_LOG_STEPS + 1];

#include "go/countdown.bpf.h"
#include "clocks/ownclock.bpf.h"

enum { THREADS = 4, HITS = 100000, OTHERS = 5, HIT_NS = 7 };

static struct {
	struct gpb_spent spent;
	struct gpb_own_spent own;
	struct gpb_wait_clock clock;
	uint64_t opened, now;
} cpu;

static int reset(void **state)
{
	(void)state;
	memset(&cpu, 0, sizeof(cpu));
	host_preempt = 0;
	for (int i = 0; i <= GPB_LOG_STEPS; i++)
		log2_table[i] = (uint32_t)lround(log2(1.0 + (double)i / GPB_LOG_STEPS) * (1 << 26));
	return 0;
}

/* ---- counters: threads that run at the same time interleave in more ways than by preemption ---- */

static void *hits(void *barrier)
{
	pthread_barrier_wait(barrier);
	for (int i = 0; i < HITS; i++) {
		spent_hit(&cpu.spent, GPB_COOKIE_STEPPED);
		spent_walk(&cpu.spent, HIT_NS);
	}
	return NULL;
}

static void no_hit_is_lost(void **state)
{
	const uint64_t all = (uint64_t)THREADS * HITS;
	pthread_t threads[THREADS];
	pthread_barrier_t barrier;

	(void)state;
	pthread_barrier_init(&barrier, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, hits, &barrier), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&barrier);
	assert_int_equal(cpu.spent.hits, all);
	assert_int_equal(cpu.spent.stepped, all);
	assert_int_equal(cpu.spent.samples, all);
	assert_int_equal(cpu.spent.ns, all * HIT_NS);
}

/* ---- what consists of several words: preempted at each point ---- */

static void others(void (*hit)(void))
{
	for (int i = 0; i < OTHERS; i++)
		hit();
}

static void hit_booked(void)
{
	own_book(&cpu.own, cpu.opened, HIT_NS);
}

static void others_booked(void)
{
	others(hit_booked);
}

/* The first hit of a window sets the time back, and nothing else does. */
static void a_window_books_all_of_its_hits(void **state)
{
	int at = 0;

	host_other = others_booked;
	do {
		reset(state);
		cpu.own = (struct gpb_own_spent){ .since = 1000, .ns = 300 };
		cpu.opened = 2000;
		host_preempt = ++at;
		hit_booked();
		if (host_preempt)
			break;
		assert_int_equal(cpu.own.since, 2000);
		assert_int_equal(cpu.own.ns, (1 + OTHERS) * HIT_NS);
	} while (at < 100);
	assert_in_range(at, 8, 99);
	assert_true(own_book(&cpu.own, 1000, HIT_NS) == OWN_OVER);
}

static void hit_clocked(void)
{
	static const struct gpb_undilated own = { .ns = UINT64_MAX, .hit_ns = HIT_NS };

	cpu.now += 10;
	own_time_is_left(&cpu.clock, &own, GPB_SHARE_ONE, UINT64_MAX, cpu.opened, cpu.now);
}

static void others_clocked(void)
{
	others(hit_clocked);
}

/* Each nanosecond between two hits belongs to one of them. */
static void time_is_counted_once(void **state)
{
	int at = 0;

	host_other = others_clocked;
	do {
		reset(state);
		cpu.clock = (struct gpb_wait_clock){ .since = 1000, .last = 1500, .own = 300 };
		cpu.opened = cpu.now = 2000;
		host_preempt = ++at;
		hit_clocked();
		if (host_preempt)
			break;
		assert_int_equal(cpu.clock.since, 2000);
		assert_int_equal(cpu.clock.last, cpu.now);
		assert_int_equal(cpu.clock.own, cpu.now - 2000);
		assert_int_equal(cpu.clock.short_ns, cpu.clock.own);
		assert_in_range(cpu.clock.shorts, 1, 1 + OTHERS);
	} while (at < 100);
	assert_in_range(at, 12, 99);
}

/* A thread that was preempted in the last window goes on in this one. */
static void an_earlier_window_is_over(void **state)
{
	static const struct gpb_undilated own = { .ns = UINT64_MAX };

	(void)state;
	assert_true(own_time_is_left(&cpu.clock, &own, GPB_SHARE_ONE, 100, 1000, 1010));
	assert_false(own_time_is_left(&cpu.clock, &own, GPB_SHARE_ONE, 100, 500, 1020));
	assert_int_equal(cpu.clock.last, 1010);
	assert_int_equal(cpu.clock.own, 10);
}

static void a_walk_that_was_interrupted_took_as_long_as_others(void **state)
{
	(void)state;
	assert_int_equal(walk_took(&cpu.spent, 4000000, 1), 0);
	spent_walk(&cpu.spent, 2000);
	spent_walk(&cpu.spent, 4000);
	assert_int_equal(walk_took(&cpu.spent, 4000000, 1), 3000);
	assert_int_equal(walk_took(&cpu.spent, 4000000, 0), 4000000);
	/* another machine had the CPU */
	assert_int_equal(walk_took(&cpu.spent, 23000000, 0), 3000);
}

/* While the stack of a sample is walked, others allocate on this CPU: the next gap counts for them. */
static void the_next_gap_is_drawn_at_once(void **state)
{
	const struct gpb_heap h = { .rate = 10000, .large_rate = 10000, .round = 1 };
	struct gpb_countdown c = { 0 };

	(void)state;
	host_random = 0x9e3779b9; /* -ln(u) is 0.481 */
	for (int always = 0; always < 2; always++) {
		const __s64 *left = always ? &c.large_left : &c.left;
		int samples = 0;

		assert_false(due(&h, &c, 1000, always));
		assert_in_range(*left, 3800, 3830);
		assert_true(due(&h, &c, 5000, always));
		assert_in_range(*left, 4800, 4830);
		for (int i = 0; i < 48; i++)
			samples += due(&h, &c, 100, always);
		assert_int_equal(samples, 0);
		assert_true(due(&h, &c, 100, always));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(no_hit_is_lost, reset),
		cmocka_unit_test_setup(a_window_books_all_of_its_hits, reset),
		cmocka_unit_test_setup(time_is_counted_once, reset),
		cmocka_unit_test_setup(an_earlier_window_is_over, reset),
		cmocka_unit_test_setup(a_walk_that_was_interrupted_took_as_long_as_others, reset),
		cmocka_unit_test_setup(the_next_gap_is_drawn_at_once, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
