/* Wait reasons: every version says its own number, and names go both ways. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "go/runtime/waitreason.h"

static void numbers_move_with_versions(void **state)
{
	static const struct {
		int minor, receive, mutex, select;
	} want[] = {
		{ 15, 14, -1, 9 },  { 18, 14, -1, 9 },	{ 19, 14, -1, 9 },  { 20, 14, 21, 9 },
		{ 23, 14, 21, 9 },  { 24, 14, 21, 9 },	{ 25, 14, 22, 9 },  { 26, 19, 22, 18 },
		{ 27, 19, 22, 18 }, { 40, 19, 22, 18 }, { -1, 19, 22, 18 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		int m = want[i].minor;

		assert_int_equal(waitreason_value(m, "chan receive"), want[i].receive);
		assert_int_equal(waitreason_value(m, "sync.Mutex.Lock"), want[i].mutex);
		assert_int_equal(waitreason_value(m, "select"), want[i].select);
	}
}

static void names_go_both_ways(void **state)
{
	(void)state;
	for (int minor = 15; minor <= 28; minor++)
		for (unsigned v = 0; waitreason_name(minor, v); v++)
			assert_int_equal(waitreason_value(minor, waitreason_name(minor, v)), v);
}

static void what_is_not_there_is_said(void **state)
{
	(void)state;
	assert_null(waitreason_name(14, 1));
	assert_null(waitreason_name(19, 27));
	assert_null(waitreason_name(21, 32));
	assert_string_equal(waitreason_name(22, 32), "flushing proc caches");
	assert_null(waitreason_name(27, 47));
	assert_null(waitreason_name(-1, UINT32_MAX));
	assert_int_equal(waitreason_value(27, "timer goroutine (idle)"), -1);
	assert_int_equal(waitreason_value(14, "select"), -1);
	assert_int_equal(waitreason_value(27, ""), 0);
}

/*
 * A reason has one name, whatever a version called it; that version's own spelling is only for
 * its own kind of output.
 */
static void spelling_is_the_versions_own(void **state)
{
	(void)state;
	assert_string_equal(waitreason_name(24, 43), "select (durable)");
	assert_string_equal(waitreason_spelt(24, 43), "select (synctest)");
	assert_string_equal(waitreason_spelt(25, 44), "select (durable)");
	assert_string_equal(waitreason_spelt(24, 9), "select");
	assert_null(waitreason_spelt(24, 44));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_move_with_versions),
		cmocka_unit_test(names_go_both_ways),
		cmocka_unit_test(what_is_not_there_is_said),
		cmocka_unit_test(spelling_is_the_versions_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
