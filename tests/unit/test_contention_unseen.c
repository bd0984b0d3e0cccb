/* tests/unit/test_contention_unseen.c - block and mutex profiles in windows that met next to nothing say so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/waits/contention/contention_probe.h"
#include "collect/waits/contention/sched.h"

#define MS 1000000

static uint64_t lost(enum contention kind, struct sched_result r)
{
	contention_probe_unseen(kind, 500 * MS, &r);
	return r.loss.n[kind == CONTENTION_BLOCK ? LOSS_RUNS_UNMET : LOSS_LOCKS_UNSEEN];
}

/* By looks somebody waited for mutexes, and no window saw anybody unlock one. */
static void test_mutexes(void **state)
{
	(void)state;
	assert_int_equal(lost(CONTENTION_MUTEX,
			      (struct sched_result){ .windowed = true, .unseen_ns = 27 * MS }),
			 28);
	assert_int_equal(lost(CONTENTION_MUTEX,
			      (struct sched_result){ .windowed = true, .unseen_ns = 4 * MS }),
			 0);
	assert_int_equal(lost(CONTENTION_MUTEX, (struct sched_result){ .unseen_ns = 27 * MS }), 0);
}

/* Goroutines ran more often than next to any window, however many waits windows saw. */
static void test_waits(void **state)
{
	struct sched_result r = { .windowed = true, .unmet = 105752, .ended = 1 };

	(void)state;
	assert_int_equal(lost(CONTENTION_BLOCK, r), 105752);
	r.ended = 1000;
	assert_int_equal(lost(CONTENTION_BLOCK, r), 105752);
	contention_probe_unseen(CONTENTION_MUTEX, 500 * MS, &r);
	assert_int_equal(r.loss.n[LOSS_RUNS_UNMET], 105752);
	r.loss.n[LOSS_RUNS_UNMET] = 0;
	r.unmet = 0;
	assert_int_equal(lost(CONTENTION_BLOCK, r), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mutexes),
		cmocka_unit_test(test_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
