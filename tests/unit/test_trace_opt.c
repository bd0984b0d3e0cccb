/* tests/unit/test_trace_opt.c - times on the command line of trace. */
#include "cli/trace/trace_opt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void is(const char *s, int64_t want)
{
	int64_t ns = -1;

	assert_true(trace_opt_time(s, &ns));
	assert_int_equal(ns, want);
}

static void times(void **state)
{
	(void)state;
	is("0", 0);
	is("12", 12000000000);
	is("1.5s", 1500000000);
	is("12.000000001", 12000000001);
	is("20ms", 20000000);
	is("0.5us", 500);
	is("7ns", 7);
	is("2m", 120000000000);
	is("2.25m", 135000000000);
	is("999999999.999999999", 999999999999999999);
}

static void no_times(void **state)
{
	static const char *const all[] = { "",
					   "s",
					   ".5",
					   "1.",
					   "1.s",
					   "-1",
					   "+1",
					   " 1",
					   "1 s",
					   "1h",
					   "1.0000000001",
					   "1e3",
					   "0x1",
					   "soon",
					   "1s2",
					   "1234567890123",
					   "999999999999m" };
	int64_t ns = 5;

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		assert_false(trace_opt_time(all[i], &ns));
	assert_int_equal(ns, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(times), cmocka_unit_test(no_times) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
