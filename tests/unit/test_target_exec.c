/* tests/unit/test_target_exec.c - a process that is in the middle of exec has not exited. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/target.h"

enum { ROUNDS = 150 };

static int go[2];

/* The thread's exec makes a zombie of the leader for a moment. */
static void *exec_later(void *arg)
{
	char *argv[] = { (char[]){ "cat" }, NULL }, b;

	(void)arg;
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* it is the thread's own, and stays across exec */
	if (read(go[0], &b, 1) == 1)
		execv("/bin/cat", argv);
	_exit(7);
}

static pid_t execs_when_told(bool by_thread)
{
	pthread_t thread;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	if (!by_thread)
		exec_later(NULL);
	if (pthread_create(&thread, NULL, exec_later, NULL))
		_exit(6);
	for (;;)
		pause();
}

/* It is looked at without a pause, so that some looks fall into the exec. */
static void look_at_exec(bool by_thread)
{
	struct target *t = NULL;
	struct err e = { 0 };
	int in[2];
	pid_t pid;

	assert_int_equal(pipe(in), 0); /* what cat waits for */
	assert_int_equal(pipe(go), 0);
	assert_int_equal(dup2(in[0], 0), 0);
	pid = execs_when_told(by_thread);
	assert_int_equal(target_open(pid, &t, &e), 0);
	assert_int_equal(write(go[1], "", 1), 1);
	while (!target_alive(t, &e))
		;
	if (!strstr(e.msg, "became another program"))
		fail_msg("%s", e.msg);
	target_free(t);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	for (int i = 0; i < 2; i++) {
		close(in[i]);
		close(go[i]);
	}
}

static void exec_is_no_exit(void **state)
{
	(void)state;
	for (int i = 0; i < ROUNDS; i++)
		look_at_exec(i % 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exec_is_no_exit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
