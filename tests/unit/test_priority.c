/* tests/unit/test_priority.c - the nice value, in children, since it cannot be lowered again everywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/priority.h"

static int nice_now(void)
{
	return getpriority(PRIO_PROCESS, 0);
}

/* What @does returns in a child. */
static int in_child(int (*does)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(does());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int may_be_prompt(void)
{
	return !setpriority(PRIO_PROCESS, 0, PRIORITY_PROMPT);
}

static int prompt(void)
{
	if (setpriority(PRIO_PROCESS, 0, 0))
		return 1;
	(void)priority_prompt();
	return nice_now() == PRIORITY_PROMPT ? 0 : 2;
}

static int as_was_chosen(void)
{
	if (setpriority(PRIO_PROCESS, 0, 19))
		return 1;
	(void)priority_prompt();
	return nice_now() == 19 ? 0 : 2;
}

/* Nobody but root may go below what he has. */
static int as_nobody(void)
{
	if (setpriority(PRIO_PROCESS, 0, 0) || setuid(65534))
		return 1;
	(void)priority_prompt();
	return nice_now() ? 2 : 0;
}

static void it_comes_first_where_it_may(void **state)
{
	(void)state;
	if (geteuid() || !in_child(may_be_prompt))
		skip(); /* may not lower a nice value here */
	assert_int_equal(in_child(prompt), 0);
	assert_int_equal(in_child(as_nobody), 0);
}

static void a_value_that_somebody_chose_stays(void **state)
{
	(void)state;
	assert_int_equal(in_child(as_was_chosen), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_comes_first_where_it_may),
		cmocka_unit_test(a_value_that_somebody_chose_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
