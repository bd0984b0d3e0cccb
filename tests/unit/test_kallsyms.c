/* tests/unit/test_kallsyms.c - lines of /proc/kallsyms, good and bad. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "target/host/kallsyms.h"

static bool parse(const char *s, struct kallsym_line *l)
{
	return kallsyms_parse_line(s, strlen(s), l);
}

static void good_lines(void **state)
{
	struct kallsym_line l;

	(void)state;
	assert_true(parse("ffffffff81000000 T _text", &l));
	assert_true(l.addr == 0xffffffff81000000ull && l.type == 'T');
	assert_int_equal(l.name_len, 5);
	assert_true(parse("ffffffffc0001000 t probe\t[mod]", &l));
	assert_int_equal(l.name_len, 5);
	assert_memory_equal(l.name, "probe", 5);
}

static void bad_lines(void **state)
{
	static const char *const bad[] = {
		"", " T x", "ff", "ff T", "ff T ", "ffTx", "11112222333344445 T x", "zz T x",
	};
	struct kallsym_line l;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(parse(bad[i], &l));
}

static void finds_a_function_of_this_kernel(void **state)
{
	CLEANUP(kallsyms_freep) struct kallsyms *k = NULL;
	struct err e = {};

	(void)state;
	assert_int_equal(kallsyms_open(&k, &e), 0);
	assert_null(kallsyms_find(k, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_lines),
		cmocka_unit_test(bad_lines),
		cmocka_unit_test(finds_a_function_of_this_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
