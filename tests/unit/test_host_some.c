/* tests/unit/test_host_some.c - one line for many processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "cli/run/host/host_some.h"

static void says(size_t n, const char *want)
{
	struct some s = { 0 };
	struct err first = { "no slot" }, later = { "another" };
	char buf[SOME_TEXT];

	for (size_t i = 0; i < n; i++)
		some_add(&s, 11 + (pid_t)i, i == 1 ? NULL : "api", i ? &later : &first);
	assert_int_equal(s.n, n);
	assert_string_equal(s.why.msg, "no slot");
	assert_string_equal(some_text(&s, buf), want);
}

static void the_first_are_named(void **state)
{
	(void)state;
	says(1, "pid 11 (api)");
	says(2, "pid 11 (api) and 12");
	says(3, "pid 11 (api), 12 and 13 (api)");
	says(5, "pid 11 (api), 12, 13 (api), 14 (api) and 15 (api)");
	says(6, "pid 11 (api), 12, 13 (api), 14 (api), 15 (api) and 1 other");
	says(523, "pid 11 (api), 12, 13 (api), 14 (api), 15 (api) and 518 others");
}

static void long_names_have_room(void **state)
{
	struct some s = { 0 };
	struct err e = { "" };
	char buf[SOME_TEXT];

	(void)state;
	for (int i = 0; i < 1000; i++)
		some_add(&s, 2147483647, "123456789012345678901234567890", &e);
	some_text(&s, buf);
	assert_non_null(strstr(buf, "2147483647 (123456789012345) and 995 others"));
}

static void those_without_a_pid_are_others(void **state)
{
	struct some s = { 0 };
	struct err e = { "why" };
	char buf[SOME_TEXT];

	(void)state;
	some_count(&s, 4);
	assert_string_equal(some_text(&s, buf), "");
	some_add(&s, 11, "api", &e);
	assert_int_equal(s.n, 5);
	assert_string_equal(s.why.msg, "why");
	assert_string_equal(some_text(&s, buf), "pid 11 (api) and 4 others");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(those_without_a_pid_are_others),
		cmocka_unit_test(the_first_are_named),
		cmocka_unit_test(long_names_have_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
