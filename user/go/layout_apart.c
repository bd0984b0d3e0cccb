/*
 * user/go/layout_apart.c - the DWARF reader in a process of its own.
 *
 * Malicious DWARF may make libdw crash, loop, or take memory without end. In a forked child that
 * costs one layout (the table answers then) and not the collector, and the child's memory is
 * given back when it ends.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"
#include "go/layout_priv.h"

enum { APART_MS = 3000 };

struct answer {
	int rc;
	uint32_t header_over;
	int32_t off[LAYOUT_COUNT];
	char msg[sizeof(((struct err *)0)->msg)];
};
_Static_assert(sizeof(struct answer) <= 4096, "one write to a pipe, whole or not at all");

/*
 * At most @more bytes beyond what it has now. Its address space is a copy of the collector's, whose
 * size says nothing.
 */
static void limit_memory(uint64_t more)
{
	CLEANUP(closep) int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	char text[64] = "";
	struct rlimit r;
	uint64_t pages;

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return;
	pages = strtoull(text, NULL, 10);
	r.rlim_cur = r.rlim_max = pages * (uint64_t)sysconf(_SC_PAGESIZE) + more;
	setrlimit(RLIMIT_AS, &r);
}

static _Noreturn void child(int fd, int to, uint64_t most_bytes)
{
	struct rlimit none = { 0, 0 }, cpu = { APART_MS / 1000, APART_MS / 1000 + 1 };
	struct answer a = { 0 };
	struct err e = { 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGSEGV, SIG_DFL);
	signal(SIGABRT, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	setrlimit(RLIMIT_CORE, &none);
	setrlimit(RLIMIT_CPU, &cpu);
	limit_memory(most_bytes);
	a.rc = layout_dwarf_read(fd, a.off, &a.header_over, &e);
	snprintf(a.msg, sizeof(a.msg), "%s", e.msg);
	_exit(write(to, &a, sizeof(a)) == (ssize_t)sizeof(a) ? 0 : 1);
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Returns 1 when the whole answer came, 0 when the child ended without one, -ETIMEDOUT. */
static int receive(int from, struct answer *a)
{
	int64_t end = now_ms() + APART_MS, left;

	while ((left = end - now_ms()) > 0) {
		struct pollfd p = { .fd = from, .events = POLLIN };
		ssize_t n;

		if (poll(&p, 1, (int)left) <= 0)
			continue;
		n = read(from, a, sizeof(*a));
		if (n < 0 && errno == EINTR)
			continue;
		return n == (ssize_t)sizeof(*a);
	}
	return -ETIMEDOUT;
}

static int judge(int got, struct answer *a, int status, uint64_t most_bytes, struct err *e)
{
	if (got == -ETIMEDOUT)
		return err_set(e, -E2BIG, "reading the DWARF took more than %d s", APART_MS / 1000);
	if (got == 0 && WIFEXITED(status) && WEXITSTATUS(status) == LAYOUT_EXIT_NO_MEMORY)
		return err_set(e, -ENOMEM, "reading the DWARF takes more than %llu MiB",
			       (unsigned long long)most_bytes >> 20);
	if (got == 0)
		return err_set(e, -EBADMSG, "reading the DWARF ended with signal %d, status %d",
			       WIFSIGNALED(status) ? WTERMSIG(status) : 0,
			       WIFEXITED(status) ? WEXITSTATUS(status) : 0);
	a->msg[sizeof(a->msg) - 1] = '\0';
	if (a->rc < 0)
		return err_set(e, a->rc, "%s", a->msg);
	return 0;
}

int layout_dwarf_within(int fd, uint64_t most_bytes, int32_t off[LAYOUT_COUNT],
			uint32_t *header_over, struct err *e)
{
	struct answer a = { 0 };
	int pipefd[2], status = 0, got, rc;
	pid_t pid;

	if (pipe2(pipefd, O_CLOEXEC) < 0)
		return err_sys(e, "a pipe for the DWARF reader");
	pid = fork();
	if (pid == 0)
		child(fd, pipefd[1], most_bytes);
	close(pipefd[1]);
	if (pid < 0) {
		close(pipefd[0]);
		return err_sys(e, "a process for the DWARF reader");
	}
	got = receive(pipefd[0], &a);
	close(pipefd[0]);
	if (got != 1)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	rc = judge(got, &a, status, most_bytes, e);
	if (rc < 0)
		return rc;
	memcpy(off, a.off, sizeof(a.off));
	*header_over = a.header_over;
	return 0;
}

int layout_dwarf_apart(int fd, int32_t off[LAYOUT_COUNT], uint32_t *header_over, struct err *e)
{
	return layout_dwarf_within(fd, (uint64_t)LIMIT_DWARF_IMAGE + LIMIT_DWARF_HEAP, off,
				   header_over, e);
}
