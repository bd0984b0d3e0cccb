/*
 * tests/bpfhost/test_phase.c - which steps of a CPU clock are samples: by what the clock has counted, whatever
 * the length of its steps; and, where that cannot be read, by a clock that is set by hand, and thread ids that are used
 * again.
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

#include "clocks/phase.bpf.h"

#define MS 1000000ull
enum { STEPS = 10, LONG_RUN = 100000 };
static const struct pace pace = { .period = STEPS * MS, .step = MS };

static int reset(void **state)
{
	(void)state;
	host_maps_reset();
	threads_seen = 0;
	return 0;
}

/* A step of thread @tid, which began at @start and was switched out so often; its clock cannot be read. */
static uint64_t step_of(uint32_t tid, uint64_t start, uint64_t ns, uint64_t switches,
			uint32_t random)
{
	const struct step s = { .key = { tid, start }, .at = ns, .switches = switches };
	struct phase *p;

	host_random = random;
	return samples_due(&s, &pace, &p);
}

/* A step of clock @id, which has counted @count. */
static uint64_t counted(uint64_t id, uint64_t count, uint32_t random)
{
	const struct step s = { .key = { .id = id }, .at = count, .counted = 1 };
	struct phase *p;

	host_random = random;
	return samples_due(&s, &pace, &p);
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
	uint64_t taken = 0, by_count = 0;

	for (uint32_t random = 0; random < STEPS; random++) {
		reset(state);
		for (uint32_t i = 0; i < 3; i++) {
			taken += step_of(7, 5, i * MS, 0, random * MS);
			by_count += counted(7, (i + 1) * MS, random * MS);
		}
	}
	assert_int_equal(taken, 3);
	assert_int_equal(by_count, 3);
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
	assert_int_equal(step_of(7, 300000 * MS, 300001 * MS, 4, 2 * MS), 0);
	assert_int_equal(step_of(7, 300000 * MS, 300002 * MS, 4, 2 * MS), 0);
	assert_int_equal(step_of(7, 300000 * MS, 300003 * MS, 4, 2 * MS), 1);
	assert_int_equal(threads_seen, 2);
}

/* Threads that run at the same time have a position each. */
static void every_thread_has_its_own(void **state)
{
	(void)state;
	assert_int_equal(step_of(7, 5 * MS, 10 * MS, 4, MS), 0);
	assert_int_equal(step_of(8, 5 * MS, 10 * MS, 4, 2 * MS), 0);
	assert_int_equal(step_of(7, 5 * MS, 11 * MS, 4, 0), 1);
	assert_int_equal(step_of(8, 5 * MS, 11 * MS, 4, 0), 0);
	assert_int_equal(step_of(8, 5 * MS, 12 * MS, 4, 0), 1);
	assert_int_equal(threads_seen, 2);
}

/*
 * A clock whose steps are short, long, late, and begun anew in the middle, in any order: at each of its steps the
 * samples are those that are due by then, one for each period behind the first one, which is anywhere.
 */
static void steps_of_any_length_lose_and_invent_nothing(void **state)
{
	for (uint32_t first = 0; first < STEPS; first++) {
		uint64_t now = 0, taken = 0, phase = first * MS + MS / 3;
		uint32_t dice = 88172645 + first;

		reset(state);
		for (int i = 0; i < LONG_RUN; i++) {
			dice = dice * 1664525 + 1013904223;
			now += i % 1000 < 500 || !i ? MS : STEPS * MS; /* short or long ... */
			now += dice >> 28 ? 0 : (dice >> 8) % MS * 17; /* ... late, or begun anew */
			taken += counted(7, now, (uint32_t)phase);
			assert_int_equal(taken,
					 now <= phase ? 0 : (now - phase - 1) / pace.period + 1);
		}
	}
}

/* Its position was forgotten, because the table was full: it must not be given all that it ever counted. */
static void a_forgotten_clock_is_a_new_one(void **state)
{
	(void)state;
	assert_int_equal(counted(7, MS, 0), 1);
	host_maps_reset();
	assert_int_equal(counted(7, 5000 * MS, 0), 1);
	assert_int_equal(counted(7, 5001 * MS, 0), 0);
	/* The first step of a new one may be late. */
	assert_int_equal(counted(8, 15 * MS, 0), 2);
}

/* While a clock does not count beside another one of its thread, its position stands still. */
static void time_that_does_not_count(void **state)
{
	const struct step other = { .key = { .id = 7 }, .at = 50 * MS, .counted = 1 };

	(void)state;
	assert_int_equal(counted(7, MS, 0), 1);
	phase_skip(&other);
	assert_int_equal(counted(7, 51 * MS, 0), 0);
	assert_int_equal(counted(7, 60 * MS, 0), 1);
}

/* A clock asks for long steps once a round, and for short ones when samples come late. */
static void it_asks_for_other_steps(void **state)
{
	struct phase p = { .left = 10 * MS - MS / 2 };

	(void)state;
	assert_true(phase_asks(&p, 1, &pace));
	p.asked = 1;
	assert_false(phase_asks(&p, 1, &pace));
	p.left = 7 * MS;
	assert_true(phase_asks(&p, 1, &pace));
	p.left = 10 * MS;
	assert_true(phase_asks(&p, 2, &pace));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(every_tenth_step, reset),
		cmocka_unit_test_setup(short_threads_are_seen_in_proportion, reset),
		cmocka_unit_test_setup(late_steps_are_made_up_for, reset),
		cmocka_unit_test_setup(an_id_that_is_given_again, reset),
		cmocka_unit_test_setup(every_thread_has_its_own, reset),
		cmocka_unit_test_setup(steps_of_any_length_lose_and_invent_nothing, reset),
		cmocka_unit_test_setup(a_forgotten_clock_is_a_new_one, reset),
		cmocka_unit_test_setup(time_that_does_not_count, reset),
		cmocka_unit_test_setup(it_asks_for_other_steps, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
