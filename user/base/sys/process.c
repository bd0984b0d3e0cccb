/* user/base/sys/process.c - descriptors, signals and the end of our helper processes. */
#include "base/sys/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"

enum { STATUS_MAX = 4096 };

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

/* The number behind @name in the text of a status file. */
static uint64_t number(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

/* How often it has run and stopped, while it waits in the kernel; 0: it does not wait, or is not there. */
static uint64_t switches_of(pid_t tid)
{
	CLEANUP(closep) int fd = -1;
	char text[STATUS_MAX], path[32];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = 0;
	if (!strstr(text, "\nState:\tD") && !strstr(text, "\nState:\tS"))
		return 0;
	return 1 + number(text, "\nvoluntary_ctxt_switches:") +
	       number(text, "\nnonvoluntary_ctxt_switches:");
}

uint64_t process_still_ms(struct still *s, pid_t tid)
{
	uint64_t now = now_ns(), switches = switches_of(tid);

	if (!switches || switches != s->switches)
		s->since_ns = now;
	s->switches = switches;
	return (now - s->since_ns) / NS_PER_MS;
}
