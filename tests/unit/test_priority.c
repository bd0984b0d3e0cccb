/* tests/unit/test_priority.c - the nice value, in children, since it cannot be lowered again everywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sys/priority.h"

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

static void spin_until(uint64_t ns)
{
	while (now_ns() < ns)
		;
}

/* Another program of our session, which runs for @ns from 10 ms on, and then rests. */
static pid_t another(uint64_t ns)
{
	pid_t pid = fork();

	if (!pid) {
		usleep(10000);
		spin_until(now_ns() + ns);
		pause();
	}
	return pid;
}

/* 0: our session comes first beside it; 1: it does not; 2: and then its nice value is not given back. */
static int session_beside(uint64_t ns)
{
	pid_t other, restorer, again;

	if (setsid() < 0)
		return 3;
	other = another(ns);
	restorer = priority_prompt_session();
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	if (!restorer)
		return 1;
	priority_session_back(restorer);
	again = priority_prompt_session(); /* only where it is 0 */
	if (again)
		priority_session_back(again);
	return again ? 0 : 2;
}

static int alone(void)
{
	return session_beside(0);
}

static int beside_one_that_starts(void)
{
	return session_beside(1500000);
}

static int beside_a_busy_one(void)
{
	return session_beside(1000000000);
}

static void a_session_comes_first_where_nobody_is_busy(void **state)
{
	(void)state;
	if (in_child(alone) == 1)
		skip(); /* sessions have no nice value here, or it may not be lowered */
	assert_int_equal(in_child(beside_one_that_starts), 0);
	assert_int_equal(in_child(beside_a_busy_one), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_comes_first_where_it_may),
		cmocka_unit_test(a_value_that_somebody_chose_stays),
		cmocka_unit_test(a_session_comes_first_where_nobody_is_busy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
