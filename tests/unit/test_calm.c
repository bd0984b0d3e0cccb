/*
 * tests/unit/test_calm.c - when steps of CPU clocks may be long: programs that make no thread, one now and then, and
 * many.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/cpu/calm.h"

#define MS 1000000ull

/* Ticks from @from to @to, in which no thread is born. */
static void pass(struct calm *c, uint64_t from, uint64_t to)
{
	for (uint64_t ms = from; ms <= to; ms += 100)
		calm_look(c, c->births, ms * MS);
}

static void after_a_second_without_births(void **state)
{
	struct calm c;

	(void)state;
	calm_begin(&c, 3, 0);
	assert_false(calm_look(&c, 3, 999 * MS));
	assert_true(calm_look(&c, 3, 1000 * MS));
	assert_true(c.is);
	assert_false(calm_look(&c, 3, 1100 * MS));
	assert_true(c.is);
}

static void a_birth_ends_it_at_once(void **state)
{
	struct calm c;

	(void)state;
	calm_begin(&c, 0, 0);
	pass(&c, 0, 5000);
	assert_true(calm_look(&c, 1, 5001 * MS));
	assert_false(c.is);
	/* The next one has to last twice as long. */
	pass(&c, 5100, 7000);
	assert_false(c.is);
	pass(&c, 7100, 7100);
	assert_true(c.is);
}

/* A thread every 5 s: of all that are born in an hour, three find long steps. */
static void births_now_and_then_end_it_for_good(void **state)
{
	struct calm c;
	int found = 0;

	(void)state;
	calm_begin(&c, 0, 0);
	for (uint64_t i = 1; i < 720; i++) {
		pass(&c, (i - 1) * 5000 + 1, i * 5000 - 1);
		found += c.is;
		calm_look(&c, i, i * 5000 * MS);
	}
	assert_int_equal(found, 3);
}

static void births_all_the_time_never_begin_it(void **state)
{
	struct calm c;

	(void)state;
	calm_begin(&c, 0, 0);
	for (uint64_t i = 1; i < 1000; i++)
		assert_false(calm_look(&c, i / 2, i * 400 * MS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(after_a_second_without_births),
		cmocka_unit_test(a_birth_ends_it_at_once),
		cmocka_unit_test(births_now_and_then_end_it_for_good),
		cmocka_unit_test(births_all_the_time_never_begin_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
