/* tests/unit/test_fine_rate.c - how densely a light program is sampled, and at what price. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/fine_rate.h"
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_light_program_is_sampled_densely),
		cmocka_unit_test(samples_keep_to_their_part_of_the_budget),
		cmocka_unit_test(what_was_asked_for_is_the_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
