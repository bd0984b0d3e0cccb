/* tests/unit/test_process.c - what a child is rid of, and when it ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sys/process.h"

/* The child's verdict: 0, or which claim was wrong. */
static int only_those_are_open(const int *keep, size_t n)
{
	process_keep_fds(keep, n);
	for (int fd = 0; fd < 64; fd++) {
		bool kept = false;

		for (size_t i = 0; i < n; i++)
			kept |= keep[i] == fd;
		if ((fcntl(fd, F_GETFD) >= 0) != kept)
			return fd + 1;
	}
	return 0;
}

static void descriptors(void **state)
{
	/* not in order, one behind the other, and the lowest is not the first one that is open */
	static const int sets[][3] = { { 9, 2, 5 }, { 7, 6, 8 }, { 0, 1, 2 }, { 63, 0, 31 } };

	(void)state;
	for (size_t s = 0; s < ARRAY_LEN(sets); s++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (!pid) {
			for (int fd = 0; fd < 64; fd++)
				if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) < 0)
					_exit(100);
			_exit(only_those_are_open(sets[s], ARRAY_LEN(sets[s])));
		}
		assert_int_equal(process_wait(pid), 0);
	}
}

static void standard_descriptors_lead_nowhere(void **state)
{
	pid_t pid = fork();
	char byte;

	(void)state;
	assert_true(pid >= 0);
	if (!pid)
		_exit(!process_null_fds(3) || read(0, &byte, 1) != 0 || write(1, "x", 1) != 1);
	assert_int_equal(process_wait(pid), 0);
}

static void no_signal_but_kill(void **state)
{
	int ready[2];
	pid_t pid;
	char byte = 0;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		process_block_signals();
		if (write(ready[1], &byte, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	kill(pid, SIGTERM);
	kill(pid, SIGINT);
	usleep(20000);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	kill(pid, SIGKILL);
	assert_int_equal(WTERMSIG(process_wait(pid)), SIGKILL);
	close(ready[0]);
	close(ready[1]);
}

/* The maker ends while the child lives: its end of the pipe is closed, though it would wait for ever. */
static void it_dies_with_its_maker(void **state)
{
	int life[2];
	pid_t maker;
	char byte;

	(void)state;
	assert_int_equal(pipe(life), 0);
	maker = fork();
	assert_true(maker >= 0);
	if (!maker) {
		pid_t self = getpid();

		if (!fork()) {
			process_dies_with(self);
			byte = write(life[1], "x", 1) == 1;
			for (;;)
				pause();
		}
		_exit(read(life[0], &byte, 1) != 1);
	}
	close(life[1]);
	assert_int_equal(process_wait(maker), 0);
	assert_int_equal(read(life[0], &byte, 1), 0);
	close(life[0]);
}

static void it_ends_at_once_when_its_maker_has_gone(void **state)
{
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (!pid) {
		process_dies_with(1 + getppid());
		_exit(0);
	}
	assert_int_equal(WEXITSTATUS(process_wait(pid)), 1);
	assert_int_equal(process_wait(pid), -1); /* there is no such child any more */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(descriptors),
		cmocka_unit_test(standard_descriptors_lead_nowhere),
		cmocka_unit_test(no_signal_but_kill),
		cmocka_unit_test(it_dies_with_its_maker),
		cmocka_unit_test(it_ends_at_once_when_its_maker_has_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
