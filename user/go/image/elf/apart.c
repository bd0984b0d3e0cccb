/* user/go/image/elf/apart.c - a child with limits on its time and memory. */
#include "go/image/elf/apart.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/sys/process.h"

struct answer {
	int rc;
	char msg[sizeof(((struct err *)0)->msg)];
};
_Static_assert(sizeof(struct answer) <= 4096, "one write to a pipe, whole or not at all");

/*
 * At most @more bytes beyond what it has now. Its address space is a copy of ours, whose size says
 * nothing.
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

static _Noreturn void child(const struct apart *a, int out, int to, pid_t maker)
{
	unsigned s = (a->ms + 999) / 1000;
	struct rlimit none = { 0, 0 }, cpu = { s, s + 1 };
	struct answer answer = { 0 };
	struct err e = { 0 };

	process_dies_with(maker);
	signal(SIGSEGV, SIG_DFL);
	signal(SIGABRT, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	setrlimit(RLIMIT_CORE, &none);
	setrlimit(RLIMIT_CPU, &cpu);
	limit_memory(a->more);
	answer.rc = a->work(a->arg, out, &e);
	snprintf(answer.msg, sizeof(answer.msg), "%s", e.msg);
	_exit(write(to, &answer, sizeof(answer)) == (ssize_t)sizeof(answer) ? 0 : 1);
}

/* Returns 1 when the whole answer came, 0 when the child ended without one, -ETIMEDOUT. */
static int receive(const struct apart *a, int from, struct answer *answer)
{
	int64_t end = (int64_t)(now_ns() / NS_PER_MS) + a->ms, left;

	while ((left = end - (int64_t)(now_ns() / NS_PER_MS)) > 0) {
		struct pollfd p = { .fd = from, .events = POLLIN };
		ssize_t n;

		if (poll(&p, 1, (int)left) <= 0)
			continue;
		n = read(from, answer, sizeof(*answer));
		if (n < 0 && errno == EINTR)
			continue;
		return n == (ssize_t)sizeof(*answer);
	}
	return -ETIMEDOUT;
}

static int judge(const struct apart *a, int got, struct answer *answer, int status, struct err *e)
{
	if (got == -ETIMEDOUT)
		return err_set(e, -E2BIG, "%s took more than %u s", a->what, a->ms / 1000);
	if (got == 0 && WIFEXITED(status) && WEXITSTATUS(status) == APART_NO_MEMORY)
		return err_set(e, -ENOMEM, "%s takes more than %llu MiB", a->what,
			       (unsigned long long)a->more >> 20);
	if (got == 0)
		return err_set(e, -EBADMSG, "%s ended with signal %d, status %d", a->what,
			       WIFSIGNALED(status) ? WTERMSIG(status) : 0,
			       WIFEXITED(status) ? WEXITSTATUS(status) : 0);
	answer->msg[sizeof(answer->msg) - 1] = '\0';
	return answer->rc < 0 ? err_set(e, answer->rc, "%s", answer->msg) : answer->rc;
}

int apart_run(const struct apart *a, int out, struct err *e)
{
	struct answer answer = { 0 };
	int pipefd[2], got;
	pid_t maker = getpid(), pid;

	if (pipe2(pipefd, O_CLOEXEC) < 0)
		return err_sys(e, "a pipe for %s", a->what);
	pid = fork();
	if (pid == 0)
		child(a, out, pipefd[1], maker);
	close(pipefd[1]);
	if (pid < 0) {
		close(pipefd[0]);
		return err_sys(e, "a process for %s", a->what);
	}
	got = receive(a, pipefd[0], &answer);
	close(pipefd[0]);
	if (got != 1)
		kill(pid, SIGKILL);
	return judge(a, got, &answer, process_wait(pid), e);
}
