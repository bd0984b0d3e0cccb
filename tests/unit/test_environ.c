/*
 * tests/unit/test_environ.c - the environment that a process was started with, as the kernel
 * reports it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/wait.h>

#include "target/environ.h"

static void of_a_child(void **state)
{
	char *const args[] = { "/bin/cat", NULL };
	char *const env[] = { "A=1", "AB=two=2", "EMPTY=", "=", "LONG=0123456789", NULL };
	CLEANUP(target_freep) struct target *t = NULL;
	struct err e = { "" };
	char got[8] = "";
	int in[2];
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(in), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(in[0], 0);
		close(in[1]);
		execve(args[0], args, env);
		_exit(127);
	}
	/* Until the program has begun, the child still is this program. */
	for (int i = 0; i < 500 && !(t && target_environ(t, "A", got, sizeof(got)) == 0); i++) {
		usleep(10000);
		target_free(TAKE(t));
		assert_int_equal(target_open(pid, &t, &e), 0);
	}
	assert_string_equal(got, "1");
	assert_int_equal(target_environ(t, "AB", got, sizeof(got)), 0);
	assert_string_equal(got, "two=2");
	assert_int_equal(target_environ(t, "EMPTY", got, sizeof(got)), 0);
	assert_string_equal(got, "");
	assert_int_equal(target_environ(t, "LONG", got, sizeof(got)), -E2BIG);
	assert_int_equal(target_environ(t, "LON", got, sizeof(got)), -ENOENT);
	assert_int_equal(target_environ(t, "NOT_THERE", got, sizeof(got)), -ENOENT);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(in[1]);
	close(in[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_a_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
