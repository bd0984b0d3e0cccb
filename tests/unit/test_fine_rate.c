/* tests/unit/test_fine_rate.c - how densely a light program is sampled, and at what price. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/fine_rate.h"
#include "profile/scale.h"

enum { BUDGET = 50000, GO_RATE = 512 << 10 };

static struct fine_seen of(double per_second, double bytes)
{
	const double ns = 8e6;
	double events = per_second * ns / 1e9;

	return (struct fine_seen){ .events = events, .bytes = events * bytes, .ns = ns };
}

/* Some 1,300 allocations a second of 100 bytes: enough of those in 6 s must be samples. */
static void a_light_program_is_sampled_densely(void **state)
{
	const struct fine_seen light = of(1300, 100);
	uint64_t rate = fine_heap_rate(&light, BUDGET, GO_RATE);

	(void)state;
	assert_true(7841 / scale_heap_one(100, (int64_t)rate) > 400);
	assert_true(7841 / scale_heap_one(100, GO_RATE) < 3); /* Go's own rate */
}

/*
 * At any pace samples take at most a fifth of the budget; for a tenth of a CPU that is 1 ms a
 * second.
 */
static void samples_keep_to_their_part_of_the_budget(void **state)
{
	(void)state;
	for (double pace = 1; pace < 1e7; pace *= 3) {
		for (double size = 16; size < 32768; size *= 4) {
			const struct fine_seen s = of(pace, size);
			uint64_t rate = fine_heap_rate(&s, BUDGET, UINT64_MAX);
			double samples = pace / scale_heap_one((int64_t)size, (int64_t)rate);

			assert_true(samples * 3000 <= 1.01e6);
			assert_true(fine_every(&s, BUDGET) >= 1);
		}
	}
}

static void what_was_asked_for_is_the_most(void **state)
{
	const struct fine_seen heavy = of(1e7, 1000), none = of(0, 0), unseen = {};

	(void)state;
	assert_int_equal(fine_heap_rate(&heavy, BUDGET, GO_RATE), GO_RATE);
	/* When a program did nothing in a few ms, nobody knows what it will do. */
	assert_in_range(fine_heap_rate(&none, BUDGET, GO_RATE), 128, 1024);
	assert_int_equal(fine_heap_rate(&unseen, BUDGET, GO_RATE), 16384);
	assert_int_equal(fine_heap_rate(&unseen, BUDGET, 100), 100);
}

/* What a look of 10 ms sees of waits whose lengths are @ns in turn, and what their rate then makes of them. */
static struct fine_waits waits_of(double per_second, const double *ns, size_t n, double most)
{
	struct fine_waits s = { .ns = 10e6 };

	for (; s.waits < per_second * s.ns / 1e9; s.waits++) {
		double d = ns[(size_t)s.waits % n];

		s.capped_ns += d < most ? d : most;
	}
	return s;
}

static double samples(double per_second, const double *ns, size_t n, double rate)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += ns[i] < rate ? ns[i] / rate : 1;
	return per_second * sum / (double)n;
}

enum { WAIT_RATE = 1000000, BLOCK_RATE = 10000, FRACTION = 10 };

/* 1,000 waits of 1 to 40 us a second: at the default rate one in a hundred would be seen. */
static void a_program_that_seldom_waits_is_sampled_densely(void **state)
{
	static const double ns[] = { 1e3, 5e3, 10e3, 40e3 };
	const struct fine_waits s = waits_of(1000, ns, 4, WAIT_RATE);
	const struct fine_waits few = waits_of(100, ns, 4, BLOCK_RATE);
	double before = samples(1000, ns, 4, WAIT_RATE);

	(void)state;
	assert_true(before < 15);
	assert_true(samples(1000, ns, 4, (double)fine_wait_rate(&s, BUDGET, WAIT_RATE)) > 150);
	assert_true(samples(100, ns, 4, (double)fine_wait_rate(&few, BUDGET, BLOCK_RATE)) > 60);
	assert_in_range(fine_mutex_fraction(&few, BUDGET, FRACTION), 1, 2);
}

/* Waits that the default rate always samples are more than the budget's part anyway: no more are. */
static void samples_of_waits_keep_to_the_budget(void **state)
{
	static const double ns[] = { 300, 2e3, 2e3, 9e3, 80e3, 700e3 };

	(void)state;
	for (double pace = 100; pace < 1e7; pace *= 3) {
		const struct fine_waits w = waits_of(pace, ns, 6, WAIT_RATE);
		uint64_t rate = fine_wait_rate(&w, BUDGET, WAIT_RATE);
		uint64_t fraction = fine_mutex_fraction(&w, BUDGET, UINT64_MAX);

		if (rate < WAIT_RATE)
			assert_true(samples(pace, ns, 6, (double)rate) * 3000 <= 1.01e6);
		assert_true(pace / (double)fraction * 3000 <= 1.01e6);
	}
}

static void of_waits_what_was_asked_for_is_the_most(void **state)
{
	const struct fine_waits none = { .ns = 10e6 }, unseen = {};
	const struct fine_waits heavy = { .waits = 1e4, .capped_ns = 1e8, .ns = 10e6 };

	(void)state;
	assert_int_equal(fine_wait_rate(&heavy, BUDGET, WAIT_RATE), WAIT_RATE);
	assert_int_equal(fine_mutex_fraction(&heavy, BUDGET, FRACTION), FRACTION);
	assert_in_range(fine_wait_rate(&none, BUDGET, WAIT_RATE), 1, 3000);
	assert_int_equal(fine_mutex_fraction(&none, BUDGET, FRACTION), 1);
	assert_int_equal(fine_wait_rate(&none, BUDGET, 1), 1);
	/* A command that is started: nobody has seen it yet. */
	assert_int_equal(fine_wait_rate(&unseen, BUDGET, WAIT_RATE), WAIT_RATE / 4);
	assert_int_equal(fine_mutex_fraction(&unseen, BUDGET, FRACTION), 3);
	assert_int_equal(fine_mutex_fraction(&unseen, BUDGET, 1), 1);
	assert_int_equal(fine_wait_rate(&unseen, BUDGET, 1), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_light_program_is_sampled_densely),
		cmocka_unit_test(samples_keep_to_their_part_of_the_budget),
		cmocka_unit_test(what_was_asked_for_is_the_most),
		cmocka_unit_test(a_program_that_seldom_waits_is_sampled_densely),
		cmocka_unit_test(samples_of_waits_keep_to_the_budget),
		cmocka_unit_test(of_waits_what_was_asked_for_is_the_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
