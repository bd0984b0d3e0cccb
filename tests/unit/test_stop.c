/* tests/unit/test_stop.c - the first signal asks, a later one ends the process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "cli/stop.h"

static bool readable(void)
{
	struct pollfd p = { .fd = stop_fd(), .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* Runs @body in a child and returns how it ended, as wait(2) has it. */
static int in_child(void (*body)(void))
{
	pid_t pid = fork();
	int status = 0;

	assert_true(pid >= 0);
	if (pid == 0) {
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void one_wish(void)
{
	if (stop_init(NULL) || stop_asked_ms() || readable())
		_exit(1);
	raise(SIGTERM);
	if (!stop_asked_ms() || !readable())
		_exit(2);
	raise(SIGTERM); /* what timeout(1) and others send in one breath is one wish */
	raise(SIGHUP);
	raise(SIGINT);
}

/* Whatever else asks a process to end. */
static void other_wishes(void)
{
	static const int signals[] = { SIGQUIT, SIGUSR1, SIGUSR2 };

	if (stop_init(NULL))
		_exit(1);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		raise(signals[i]);
	if (!stop_asked_ms())
		_exit(2);
}

static void second_wish(void)
{
	if (stop_init(NULL))
		_exit(1);
	raise(SIGINT);
	usleep(600000);
	raise(SIGINT);
}

static void hangup_stays_ignored(void)
{
	signal(SIGHUP, SIG_IGN);
	signal(SIGINT, SIG_IGN); /* as a shell without job control starts a background job */
	if (stop_init(NULL))
		_exit(1);
	raise(SIGHUP);
	if (stop_asked_ms() || readable())
		_exit(2);
	raise(SIGINT);
	if (!stop_asked_ms() || !readable())
		_exit(3);
}

/* A process that @sig ends, once it is ready for that. */
static pid_t mortal(int sig)
{
	int ready[2];
	pid_t pid;
	char c;

	if (pipe(ready))
		_exit(10);
	pid = fork();
	if (pid == 0) {
		signal(sig, SIG_DFL);
		(void)!write(ready[1], "", 1);
		for (;;)
			pause();
	}
	if (read(ready[0], &c, 1) != 1)
		_exit(11);
	return pid;
}

static bool died_of(pid_t pid, int sig)
{
	int status;

	return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == sig;
}

/* With a command, a signal that is sent to us goes to the command, and we do not end. */
static void passes_on(void)
{
	pid_t pid;

	if (stop_init_passing(NULL))
		_exit(1);
	pid = mortal(SIGTERM);
	raise(SIGTERM); /* there is no command yet: the signal is kept */
	stop_pass_to(pid);
	if (!died_of(pid, SIGTERM))
		_exit(2);
	stop_pass_to(0);
	if (stop_asked_ms() || readable())
		_exit(3);
	pid = mortal(SIGUSR2);
	stop_pass_to(pid);
	kill(getpid(), SIGUSR2);
	if (!died_of(pid, SIGUSR2))
		_exit(4);
	stop_pass_to(0);
	raise(SIGUSR2); /* it has no meaning for us */
	raise(SIGINT);	/* after the command's end these are wishes to stop again */
	if (!stop_asked_ms() || !readable())
		_exit(5);
}

static void passing(void **state)
{
	(void)state;
	assert_int_equal(in_child(passes_on), 0);
}

static void first_asks(void **state)
{
	(void)state;
	assert_int_equal(in_child(one_wish), 0);
	assert_int_equal(in_child(other_wishes), 0);
}

static void second_ends(void **state)
{
	int status = in_child(second_wish);

	(void)state;
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 128 + SIGINT);
}

static void nohup_is_respected(void **state)
{
	(void)state;
	assert_int_equal(in_child(hangup_stays_ignored), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_asks),
		cmocka_unit_test(second_ends),
		cmocka_unit_test(nohup_is_respected),
		cmocka_unit_test(passing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
