/* user/base/process.c - descriptors, signals and the end of our helper processes. */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

void process_keep_fds(const int *keep, size_t n)
{
	int sorted[8], from = 0;

	BUG_ON(n > ARRAY_LEN(sorted));
	memcpy(sorted, keep, n * sizeof(*keep));
	qsort(sorted, n, sizeof(*sorted), by_number);
	for (size_t i = 0; i < n; i++) {
		if (from < sorted[i])
			(void)close_range((unsigned)from, (unsigned)sorted[i] - 1, 0);
		from = sorted[i] + 1;
	}
	(void)close_range((unsigned)from, ~0u, 0);
}

bool process_null_fds(int n)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd < n; fd++)
		if (null < 0 || dup2(null, fd) < 0)
			return false;
	return true;
}

void process_block_signals(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
}

void process_dies_with(pid_t maker)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != maker)
		_exit(1);
}

int process_wait(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return status;
}
