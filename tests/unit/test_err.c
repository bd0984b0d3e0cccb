/* tests/unit/test_err.c - messages: context in front, cut off at the end, never outside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/err.h"

static void test_wrap_puts_context_in_front(void **state)
{
	struct err e = { "" };

	(void)state;
	assert_int_equal(err_set(&e, -ENOENT, "no %s", "symbol"), -ENOENT);
	assert_int_equal(err_wrap(&e, -EBADMSG, "pid %d", 7), -EBADMSG);
	assert_string_equal(e.msg, "pid 7: no symbol");
	assert_int_equal(err_wrap(NULL, -EBADMSG, "pid %d", 7), -EBADMSG);
}

static void test_wrap_may_quote_the_message(void **state)
{
	struct err e = { "inner" };

	(void)state;
	err_wrap(&e, -EIO, "<%s>", e.msg);
	assert_string_equal(e.msg, "<inner>: inner");
}

/* Every length of context against every fill of the message: what is lost is the end. */
static void test_wrap_cuts_the_end_off(void **state)
{
	char context[2 * sizeof(((struct err *)0)->msg)], old[sizeof(((struct err *)0)->msg)];
	const size_t cap = sizeof(old);

	(void)state;
	memset(context, 'c', sizeof(context));
	memset(old, 'm', sizeof(old));
	for (size_t n = 0; n < sizeof(context); n += n < cap - 8 || n > cap + 8 ? 97 : 1) {
		struct err e;
		size_t kept = n < cap - 3 ? n : cap - 3;

		memcpy(e.msg, old, cap - 1);
		e.msg[cap - 1] = 0;
		err_wrap(&e, -EIO, "%.*s", (int)n, context);
		assert_int_equal(strlen(e.msg), cap - 1);
		assert_memory_equal(e.msg, context, kept);
		assert_memory_equal(e.msg + kept, ": ", 2);
		assert_memory_equal(e.msg + kept + 2, old, cap - 1 - kept - 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wrap_puts_context_in_front),
		cmocka_unit_test(test_wrap_may_quote_the_message),
		cmocka_unit_test(test_wrap_cuts_the_end_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
