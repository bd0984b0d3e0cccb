/* user/collect/price.c - a child runs over a probe, with it and without it. */
#include "collect/price.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "arch/landmark.h"
#include "base/cleanup.h"
#include "collect/uprobes.h"
#include "target/target.h"

/* Hits of one round, and rounds, of which the median counts. */
enum { HITS = 4000, STEPPED_HITS = 150, ROUNDS = 7 };

static double round_ns(unsigned hits)
{
	struct timespec a, b;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	landmark_call(hits, 32);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	return ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / hits;
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* In the child: answers each word with its median round, until nobody is there any more. */
static void __attribute__((noreturn)) walk(int sock)
{
	sigset_t all;
	unsigned hits;

	sigfillset(&all); /* Ctrl-C does not end this process: the end of the socket does */
	sigprocmask(SIG_SETMASK, &all, NULL);
	while (recv(sock, &hits, sizeof(hits), 0) == sizeof(hits)) {
		double ns[ROUNDS];

		for (int i = 0; i < ROUNDS; i++)
			ns[i] = round_ns(hits);
		qsort(ns, ROUNDS, sizeof(*ns), by_size);
		if (send(sock, &ns[ROUNDS / 2], sizeof(*ns), MSG_NOSIGNAL) != sizeof(*ns))
			break;
	}
	_exit(0);
}

static int ask(int sock, unsigned hits, double *ns, struct err *e)
{
	if (send(sock, &hits, sizeof(hits), MSG_NOSIGNAL) != sizeof(hits) ||
	    recv(sock, ns, sizeof(*ns), 0) != sizeof(*ns))
		return err_set(e, -ECHILD,
			       "the process that a probe's price is measured with died");
	return 0;
}

/* @addr of ours, as a place in our executable. */
static int site_of(uint64_t addr, struct uprobe_site *out, struct err *e)
{
	CLEANUP(target_freep) struct target *self = NULL;
	const struct mapping *m;
	int ret;

	if (!addr)
		return err_set(e, -ENOTSUP, "a probe's price cannot be measured on this machine");
	ret = target_open(getpid(), &self, e);
	if (ret)
		return ret;
	m = maps_find(&self->maps, addr);
	if (!m)
		return err_set(e, -ENOENT, "our own code is not among our mappings");
	out->file_off = addr - m->start + m->offset;
	return 0;
}

/* The subject: a process of ours that runs over the landmark when it is asked. */
struct subject_process {
	pid_t pid;
	int sock;
	struct bpf_program *prog;
	bool multi;
	double bare; /* ns of a call without a probe */
};

/* What a hit at @addr costs it. */
static int cost_at(struct subject_process *p, uint64_t addr, uint64_t cookie, unsigned hits,
		   double *ns, struct err *e)
{
	struct uprobe_site site = { .cookie = cookie };
	struct uprobes u = {};
	double probed = 0;
	int ret = site_of(addr, &site, e);

	if (!ret)
		ret = uprobes_put(&u, p->prog, p->multi, p->pid, "/proc/self/exe", &site, 1, e);
	if (!ret)
		ret = ask(p->sock, hits, &probed, e);
	uprobes_free(&u);
	if (!ret && probed <= p->bare)
		ret = err_set(e, -EAGAIN, "a probe costs nothing");
	if (!ret)
		*ns = probed - p->bare;
	return ret;
}

static int measure(struct subject_process *p, uint64_t cookie, struct price *out, struct err *e)
{
	double hit, stepped;
	int ret = ask(p->sock, HITS, &p->bare, e);

	if (!ret)
		ret = cost_at(p, landmark_site(), cookie, HITS, &hit, e);
	if (!ret)
		ret = cost_at(p, landmark_return(), cookie, STEPPED_HITS, &stepped, e);
	if (ret)
		return ret;
	*out = (struct price){ .hit_ns = hit, .stepped_ns = stepped > hit ? stepped - hit : 0 };
	return 0;
}

int price_measure(struct bpf_program *prog, bool multi, uint64_t cookie, struct price *out,
		  struct err *e)
{
	struct subject_process p = { .prog = prog, .multi = multi };
	int sock[2], ret;

	if (!landmark_site())
		return err_set(e, -ENOTSUP, "a probe's price cannot be measured on this machine");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock))
		return err_sys(e, "a socket");
	p.sock = sock[1];
	p.pid = fork();
	if (!p.pid) {
		close(sock[1]);
		walk(sock[0]);
	}
	close(sock[0]);
	ret = p.pid < 0 ? err_sys(e, "a process to measure a probe's price with") :
			  measure(&p, cookie, out, e);
	close(sock[1]);
	while (p.pid > 0 && waitpid(p.pid, NULL, 0) < 0 && errno == EINTR)
		;
	return ret;
}
