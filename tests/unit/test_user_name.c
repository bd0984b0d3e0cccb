/* tests/unit/test_user_name.c */
#include "base/sys/user_name.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

static void root_has_a_name(void **state)
{
	char name[64];

	(void)state;
	user_name(0, name, sizeof(name));
	assert_string_equal(name, "root");
}

static void of_who_is_not_known_the_number_is_told(void **state)
{
	char name[64];

	(void)state;
	user_name(3999999999u, name, sizeof(name));
	assert_string_equal(name, "3999999999");
}

static void nobody_knows_whose_it_is(void **state)
{
	char name[64];

	(void)state;
	user_name((uid_t)-1, name, sizeof(name));
	assert_string_equal(name, "?");
}

static void a_name_is_cut(void **state)
{
	char name[8] = "1234567";

	(void)state;
	user_name(0, name, 3);
	assert_string_equal(name, "ro");
	assert_string_equal(name + 3, "4567");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(root_has_a_name),
		cmocka_unit_test(of_who_is_not_known_the_number_is_told),
		cmocka_unit_test(nobody_knows_whose_it_is),
		cmocka_unit_test(a_name_is_cut),
	};

	return cmocka_run_group_tests_name("unit/test_user_name", tests, NULL, NULL);
}
