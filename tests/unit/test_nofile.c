/* tests/unit/test_nofile.c - how many descriptors are left, whatever the order in which they were closed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/sys/nofile.h"

static void room_is_what_can_be_opened(void **state)
{
	const struct rlimit few = { 40, 40 };
	int last = -1, fd;

	(void)state;
	assert_true(nofile_room(20));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	while ((fd = open("/", O_PATH | O_CLOEXEC)) >= 0)
		last = fd;
	assert_int_equal(last, 39);
	assert_false(nofile_room(1));
	/* Holes: the lowest number that is free says nothing. */
	close(10);
	close(39);
	assert_true(nofile_room(2));
	assert_false(nofile_room(3));
	assert_int_equal(open("/", O_PATH | O_CLOEXEC), 10); /* none was kept */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(room_is_what_can_be_opened),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
