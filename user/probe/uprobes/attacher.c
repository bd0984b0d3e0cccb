/*
 * user/probe/uprobes/attacher.c - our executable once more, with a thread for each attacher, and a socket over which its questions and
 * answers go.
 *
 * Where capabilities come with the file (AT_SECURE), whoever may run it could begin an attacher of his own, with those
 * capabilities and a socket of his: probes at any address. So there no process that was begun by exec is an attacher; it is
 * forked from us, who have read our own command line.
 */
#include "probe/uprobes/attacher.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>

#include "base/loop/cancel.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/sys/oom.h"
#include "base/sys/process.h"

extern char **environ;

/* It does not have our name: whoever kills all goprof-bpf by name does not mean this process. */
static const char name[] = "uprobe-attacher";

/* The number there of the socket over which attachers are asked for. */
enum { SOCK = 3 };
/* The number of links of one process is less, where there is room for so many files. */
enum { ABOVE = 2048 };

/* An attacher calls nothing that goes deep; its part is mapped, and only what it touches is there. */
enum { STACK = 256 << 10 };

/* attacher_main() was called with it: exec of a program that does not ask would begin it all over. */
static const struct attacher_job *the_job;

/* How often an attacher that does not answer is woken up. */
enum { WAKE_MS = 1000 };

/*
 * How often we look whether we were asked to stop, and how long after that we wait for all attachers
 * together.
 */
enum { LOOK_MS = 100, PATIENCE_MS = 1000 };

struct answer {
	int ret;
	bool exposed;
	struct err e;
};

/* ---- in the attacher ---- */

/* What our maker was started with, and did not open itself, must not live on in us. 0, 1 and 2 stay in use. */
static void close_others(void)
{
	const int keep[] = { 0, 1, 2, SOCK };

	(void)process_null_fds(SOCK);
	process_keep_fds(keep, ARRAY_LEN(keep));
}

/* Waits for a question, or for the end of the socket. */
static void wait_for_word(const struct attacher_job *job, int sock)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };

	int n;

	do
		n = poll(&p, 1, job->idle ? job->idle(job->arg) : -1);
	while (!n || (n < 0 && errno == EINTR));
}

/* Returns the bytes that came, 0 at the end; negative and errno. */
static ssize_t hear_word(int sock, void *ask, int *fds, size_t *nfds)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(ATTACHER_FDS * sizeof(int))];
	} control;
	struct iovec part = { .iov_base = ask, .iov_len = ATTACHER_WORDS };
	struct msghdr m = { .msg_iov = &part,
			    .msg_iovlen = 1,
			    .msg_control = control.space,
			    .msg_controllen = sizeof(control.space) };
	ssize_t n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	const struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;

	*nfds = 0;
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return n;
	*nfds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(*fds);
	memcpy(fds, CMSG_DATA(c), *nfds * sizeof(*fds));
	return n;
}

/* Serves until it is to end: one byte, or nobody at the other end of the socket. */
static void serve(const struct attacher_job *job, int sock)
{
	char ask[ATTACHER_WORDS], answer[ATTACHER_WORDS];
	int fds[ATTACHER_FDS];
	size_t nfds;
	ssize_t n;

	for (;;) {
		wait_for_word(job, sock);
		n = hear_word(sock, ask, fds, &nfds);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 1 || !job->serve)
			return;
		n = (ssize_t)job->serve(job->arg, ask, (size_t)n, fds, nfds, answer);
		if (send(sock, answer, (size_t)n, MSG_NOSIGNAL) != n)
			return;
	}
}

/* The process: how many of its threads are there. */
struct parts {
	pthread_mutex_t lock;
	pthread_cond_t all_over;
	size_t n;
	bool exposed;
};

/* A thread of the process, with its own socket and what it holds. */
struct attacher_thread {
	struct attacher_job job;
	int sock;
	struct parts *of;
};

static void count_part(struct parts *all, size_t more, size_t fewer)
{
	pthread_mutex_lock(&all->lock);
	all->n += more;
	all->n -= fewer;
	if (!all->n)
		pthread_cond_signal(&all->all_over);
	pthread_mutex_unlock(&all->lock);
}

static void *keep(void *arg)
{
	struct attacher_thread *p = arg;
	struct parts *of = p->of;
	struct answer a = { .exposed = of->exposed };
	const char bye = 0;

	a.ret = p->job.begin(&p->job.arg, &a.e);
	if (send(p->sock, &a, sizeof(a), MSG_NOSIGNAL) == sizeof(a) && !a.ret)
		serve(&p->job, p->sock);
	p->job.end(p->job.arg);
	(void)send(p->sock, &bye, 1, MSG_NOSIGNAL);
	close(p->sock);
	free(p);
	count_part(of, 0, 1);
	return NULL;
}

static int begin_part(const struct attacher_job *job, int sock, struct parts *of)
{
	struct attacher_thread *p = malloc(sizeof(*p));
	pthread_attr_t attr;
	pthread_t thread;
	int ret;

	if (!p)
		return -ENOMEM;
	*p = (struct attacher_thread){ .job = *job, .sock = sock, .of = of };
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	count_part(of, 1, 0);
	ret = -pthread_create(&thread, &attr, keep, p);
	pthread_attr_destroy(&attr);
	if (!ret)
		return 0;
	count_part(of, 0, 1);
	free(p);
	return ret;
}

static void refuse(int sock, int ret)
{
	struct answer a = { .ret = ret };

	err_set(&a.e, ret, "a thread to keep probes: %s", strerror(-ret));
	(void)send(sock, &a, sizeof(a), MSG_NOSIGNAL);
	close(sock);
}

/*
 * A killed process' files are closed from the highest number down (close_files() in fs/file.c queues them, and task_work_run() in
 * kernel/task_work.c takes the last first; Linux 4.3). So its end is heard of before its links are closed, which takes a
 * busy machine's kernel a second.
 */
static int above_links(int sock)
{
	struct rlimit most = { .rlim_cur = 0 };
	int high;

	(void)getrlimit(RLIMIT_NOFILE, &most);
	high = fcntl(sock, F_DUPFD_CLOEXEC,
		     (int)(most.rlim_cur < 2 * ABOVE ? most.rlim_cur / 2 : ABOVE));
	if (high < 0)
		return sock;
	close(sock);
	return high;
}

/* Each socket that comes is an attacher's, until nobody is there who could ask for one. */
static void begin_parts(const struct attacher_job *job, struct parts *all)
{
	char word[ATTACHER_WORDS];
	int fds[ATTACHER_FDS];
	size_t nfds;
	ssize_t n;

	do {
		n = hear_word(SOCK, word, fds, &nfds);
		for (size_t i = 0; n > 0 && i < nfds; i++) {
			int sock = above_links(fds[i]), ret = begin_part(job, sock, all);

			if (ret)
				refuse(sock, ret);
		}
	} while (n > 0 || (n < 0 && errno == EINTR));
}

/*
 * SOCK is there, and nothing else is needed. The process gets a high priority: while an attacher waits for a CPU,
 * halfway through attaching or at a window's end, the target pays for hits that do not count. It needs a CPU for only some
 * 4 ms of a second.
 */
static _Noreturn void run(const struct attacher_job *job, int raised)
{
	const struct sched_param first = { .sched_priority = 1 };
	struct parts parts = { .lock = PTHREAD_MUTEX_INITIALIZER,
			       .all_over = PTHREAD_COND_INITIALIZER };

	prctl(PR_SET_NAME, name);
	fcntl(SOCK, F_SETFD, FD_CLOEXEC);
	close_others();
	(void)sched_setscheduler(0, SCHED_FIFO, &first);
	parts.exposed = oom_spare(OOM_FILE, raised);
	begin_parts(job, &parts);
	pthread_mutex_lock(&parts.lock);
	while (parts.n)
		pthread_cond_wait(&parts.all_over, &parts.lock);
	_exit(0);
}

void attacher_main(int argc, char **argv, const struct attacher_job *job)
{
	the_job = job;
	if (argc == 2 && !strcmp(argv[0], name) && fcntl(SOCK, F_GETFD) >= 0 &&
	    !getauxval(AT_SECURE))
		run(job, atoi(argv[1]));
}

/* ---- in this process ---- */

/* In a session of its own, and with all signals blocked from its first moment on. */
static int set_attributes(posix_spawnattr_t *attr)
{
	sigset_t all;

	sigfillset(&all);
	if (posix_spawnattr_setsigmask(attr, &all))
		return -1;
	return posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
}

/*
 * All descriptors of ours are closed by exec; it gets @sock. Our executable is the one that runs, also
 * when the file was replaced or removed. A capability that was handed on (ambient) is handed on again. Source:
 * capabilities(7), proc_pid_exe(5).
 */
static int spawn(pid_t *pid, int sock)
{
	char raised[16];
	char *argv[] = { (char *)(uintptr_t)name, raised, NULL };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	int ret;

	snprintf(raised, sizeof(raised), "%d", oom_raised());
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attr);
	ret = posix_spawn_file_actions_adddup2(&files, sock, SOCK) || set_attributes(&attr) ?
		      ENOMEM :
		      posix_spawn(pid, "/proc/self/exe", &files, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	return ret;
}

/* The same without exec. Returns an errno, as posix_spawn() does. */
static int fork_off(pid_t *pid, int sock)
{
	sigset_t all, before;
	int ret = 0;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	*pid = fork();
	if (*pid < 0)
		ret = errno;
	if (!*pid) {
		setsid();
		if (sock != SOCK && dup2(sock, SOCK) < 0)
			_exit(1);
		run(the_job, oom_raised());
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return ret;
}

/* Somebody may have stopped it; then we would wait for it for ever. */
static void wake(const struct attacher *k)
{
	if (k->pid)
		kill(k->pid, SIGCONT);
}

enum heard { ANSWERED, KILLED, LEFT };

/*
 * Waits until the attacher answers or closes its end of the socket, and kills it if that takes too long.
 * Once we were asked to stop, it is left alone after PATIENCE_MS: while it is inside the kernel nothing
 * interrupts it; when it comes back and finds our end of the socket closed, it takes the probes out and
 * exits.
 */
static enum heard hear(const struct attacher *k)
{
	struct pollfd p = { .fd = k->sock, .events = POLLIN };
	uint64_t begin = now_ns() / NS_PER_MS, woken = begin, now = begin;

	while (now - begin < (uint64_t)k->most_ms) {
		if (poll(&p, 1, LOOK_MS) > 0)
			return ANSWERED;
		now = now_ns() / NS_PER_MS;
		if (cancelled_for_ms() >= PATIENCE_MS)
			return LEFT;
		if (now - woken < WAKE_MS)
			continue;
		wake(k);
		woken = now;
	}
	kill(k->pid, SIGKILL);
	return KILLED;
}

static int watch(int ep, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
}

/* What is polled for an answer: the socket, and the time at which the answer is overdue. */
static int make_ready(struct attacher *k, struct err *e)
{
	if (k->ready >= 0)
		return 0;
	k->ready = epoll_create1(EPOLL_CLOEXEC);
	if (k->ready < 0 || watch(k->ready, k->sock))
		return err_sys(e, "a socket to the attacher of the probes");
	return 0;
}

int attacher_fd(struct attacher *k)
{
	return k->pid && !make_ready(k, NULL) ? k->ready : -1;
}

/* 0: never. Only while an answer is due there is a descriptor for that: a run has many attachers, which mostly rest. */
static int set_due(struct attacher *k, uint64_t ns, struct err *e)
{
	struct itimerspec at = { .it_value = { .tv_sec = (time_t)(ns / 1000000000),
					       .tv_nsec = (long)(ns % 1000000000) } };

	if (!k->pid)
		return 0;
	if (!ns) {
		if (k->timer >= 0) /* a child of ours may have it open for a while */
			epoll_ctl(k->ready, EPOLL_CTL_DEL, k->timer, NULL);
		closep(&k->timer);
		k->timer = -1;
		return 0;
	}
	if (k->timer < 0) {
		k->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
		if (k->timer < 0 || make_ready(k, e) || watch(k->ready, k->timer))
			return err_sys(e, "a timer for the attacher of the probes");
	}
	timerfd_settime(k->timer, TFD_TIMER_ABSTIME, &at, NULL);
	return 0;
}

static int gone(struct err *e)
{
	return err_set(e, -ECHILD, "the process that keeps the probes died");
}

int attacher_ask(struct attacher *k, const void *ask, size_t n, uint64_t due_ns, struct err *e)
{
	int ret = k->pid ? set_due(k, due_ns, e) : gone(e);

	BUG_ON(n <= 1 || n > ATTACHER_WORDS);
	if (ret)
		return ret;
	k->late_ms = 0;
	wake(k);
	if (send(k->sock, ask, n, MSG_NOSIGNAL) != (ssize_t)n)
		return gone(e);
	return 0;
}

/* False: nobody is there any more. */
static bool hand(int sock, const void *words, size_t n, const int *fds, size_t nfds)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(ATTACHER_FDS * sizeof(int))];
	} control = { .head = { .cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS,
				.cmsg_len = CMSG_LEN(nfds * sizeof(*fds)) } };
	struct iovec part = { .iov_base = (void *)words, .iov_len = n };
	struct msghdr m = { .msg_iov = &part,
			    .msg_iovlen = 1,
			    .msg_control = control.space,
			    .msg_controllen = CMSG_SPACE(nfds * sizeof(*fds)) };

	memcpy(CMSG_DATA(&control.head), fds, nfds * sizeof(*fds));
	return sendmsg(sock, &m, MSG_NOSIGNAL) == (ssize_t)n;
}

int attacher_give(struct attacher *k, const void *ask, size_t n, const int *fds, size_t nfds,
		  struct err *e)
{
	BUG_ON(n <= 1 || n > ATTACHER_WORDS || !nfds || nfds > ATTACHER_FDS);
	wake(k);
	return k->pid && hand(k->sock, ask, n, fds, nfds) ? 0 : gone(e);
}

int attacher_answer(struct attacher *k, void *answer, size_t n, struct err *e)
{
	enum heard heard;
	ssize_t got = -1;

	set_due(k, 0, NULL);
	heard = hear(k);
	if (heard == LEFT)
		return err_set(e, -ECANCELED, "stopped while probes were put in or taken out");
	if (heard == ANSWERED)
		do
			got = recv(k->sock, answer, n, 0);
		while (got < 0 && errno == EINTR);
	if (got != (ssize_t)n)
		return gone(e);
	return 0;
}

bool attacher_answered(struct attacher *k)
{
	struct pollfd p = { .fd = k->sock, .events = POLLIN };
	if (!k->pid || poll(&p, 1, 0) || k->late_ms >= k->most_ms)
		return true;
	wake(k);
	k->late_ms += WAKE_MS;
	if (k->late_ms >= k->most_ms)
		kill(k->pid, SIGKILL);
	set_due(k, now_ns() + WAKE_MS * NS_PER_MS, NULL);
	return false;
}

uint64_t attacher_dead(const struct attacher *k)
{
	struct pollfd p = { .fd = k->sock, .events = POLLIN };

	if (!k->pid || poll(&p, 1, 0) != 1 || !(p.revents & POLLHUP))
		return 0;
	if (!k->process->dead_ns)
		k->process->dead_ns = now_ns();
	return k->process->dead_ns;
}

uint64_t attacher_process_cpu_ns(const struct attacher_process *p)
{
	return p ? process_cpu_ns(p->pid) : 0;
}

void attacher_end(struct attacher *k)
{
	const char word = 0;

	if (!k->pid || k->ending)
		return;
	k->ending = true;
	wake(k);
	send(k->sock, &word, 1, MSG_NOSIGNAL);
}

/* Until it says that it has undone everything, or is gone without. */
static enum heard hear_end(const struct attacher *k)
{
	char unread[ATTACHER_WORDS];
	enum heard heard;
	ssize_t n = 0;

	do {
		heard = hear(k);
		if (heard == ANSWERED)
			n = recv(k->sock, unread, sizeof(unread), 0);
	} while (heard == ANSWERED && (n > 1 || (n < 0 && errno == EINTR)));
	return heard == ANSWERED && n <= 0 ? KILLED : heard;
}

/* The last attacher has gone. One that was left may hold the process up for long. */
static void process_free(struct attacher_process *p)
{
	close(p->sock);
	if (p->of && *p->of == p)
		*p->of = NULL;
	if (!p->left)
		process_wait(p->pid);
	free(p);
}

/*
 * It still takes out probes after its sockets are closed: it is waited for, and stays a zombie as long as other attachers
 * have its number.
 */
static void process_died(struct attacher_process *p)
{
	siginfo_t info;

	if (p->of && *p->of == p)
		*p->of = NULL;
	while (waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOWAIT) && errno == EINTR)
		;
}

bool attacher_stop(struct attacher *k)
{
	struct attacher_process *p = k->process;
	enum heard heard;

	if (!k->pid)
		return false;
	attacher_end(k);
	wake(k);
	heard = hear_end(k);
	p->left |= heard == LEFT;
	if (heard == KILLED)
		process_died(p);
	close(k->sock);
	closep(&k->timer);
	closep(&k->ready);
	*k = (struct attacher){ 0 };
	if (!--p->attachers)
		process_free(p);
	return heard == KILLED;
}

/* ---- beginning one ---- */

static int process_begin(struct attacher_process **of, struct attacher_process **out, struct err *e)
{
	struct attacher_process *p = calloc(1, sizeof(*p));
	int sock[2], ret;

	if (!p)
		return err_set(e, -ENOMEM, "no memory for a process to keep the probes");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock)) {
		free(p);
		return err_sys(e, "a socket to the process that keeps the probes");
	}
	*p = (struct attacher_process){ .sock = sock[1], .of = of };
	ret = getauxval(AT_SECURE) ? fork_off(&p->pid, sock[0]) : spawn(&p->pid, sock[0]);
	close(sock[0]);
	if (ret) {
		close(p->sock);
		free(p);
		return err_set(e, -ret, "a process to keep the probes: %s", strerror(ret));
	}
	if (of)
		*of = p;
	*out = p;
	return 0;
}

/* An attacher of that process; -ECHILD: that has gone. */
static int join(struct attacher *k, struct attacher_process *p, struct err *e)
{
	const char word = 0;
	int sock[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock))
		return err_sys(e, "a socket to the attacher of the probes");
	k->process = p;
	k->pid = p->pid;
	k->sock = sock[1];
	k->timer = k->ready = -1;
	p->attachers++;
	wake(k);
	hand(p->sock, &word, 1, &sock[0], 1);
	close(sock[0]);
	return 0;
}

/* Where somebody has killed the process that there was, there is another one. */
static int begin_attacher(struct attacher *k, struct attacher_process **all, struct err *e)
{
	struct attacher_process *p = all ? *all : NULL;
	struct pollfd alive = { .fd = p ? p->sock : -1 };
	int ret = 0;

	if (!p || poll(&alive, 1, 0))
		ret = process_begin(all, &p, e);
	if (!ret)
		ret = join(k, p, e);
	if (ret && p && !p->attachers)
		process_free(p);
	return ret;
}

int attacher_start(struct attacher *k, struct attacher_process **all, int most_ms, struct err *e)
{
	struct answer a = { 0 };
	int ret;

	BUG_ON(!the_job);
	ret = begin_attacher(k, all, e);
	if (ret)
		return ret;
	k->most_ms = most_ms ? most_ms : LIMIT_ATTACHER_MS;
	ret = attacher_answer(k, &a, sizeof(a), e);
	if (!ret && !a.ret) {
		k->exposed = a.exposed;
		if (a.exposed)
			(void)oom_above(OOM_FILE);
		return 0;
	}
	attacher_stop(k);
	a.e.msg[sizeof(a.e.msg) - 1] = '\0';
	return ret ? ret : err_set(e, a.ret, "%s", a.e.msg);
}
