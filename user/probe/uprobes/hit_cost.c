/* user/probe/uprobes/hit_cost.c - a child runs over functions with a probe, and over one without. */
#include "probe/uprobes/hit_cost.h"

#include <signal.h>
#include <sys/socket.h>
#include <time.h>

#include "arch/landmark.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/sys/process.h"
#include "probe/uprobes/uprobes.h"
#include "target/target.h"

/* Hits of one round, and rounds, of which the median counts. */
enum { HITS = 1000, STEPPED_HITS = 40, ROUNDS = 7 };

/* ns of a call */
struct calls {
	double bare, hit, stepped;
};

struct cost_probes {
	pid_t pid; /* of the child */
	int sock;
	struct uprobes probes; /* on the child */
};

/* ---- in the child ---- */

static double round_ns(enum landmark which, unsigned hits)
{
	uint64_t began = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	landmark_call(which, hits, 32);
	return (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - began) / hits;
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(double ns[ROUNDS])
{
	qsort(ns, ROUNDS, sizeof(*ns), by_size);
	return ns[ROUNDS / 2];
}

/* Calls of all kinds by turns, so that whatever slows this machine down slows down all of them. */
static struct calls measure_calls(void)
{
	double bare[ROUNDS], hit[ROUNDS], stepped[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		bare[i] = round_ns(LANDMARK_BARE, HITS);
		hit[i] = round_ns(LANDMARK_BRANCH, HITS);
		stepped[i] = round_ns(LANDMARK_RETURN, STEPPED_HITS);
	}
	return (struct calls){ median(bare), median(hit), median(stepped) };
}

/* Answers each word, until nobody is there any more. */
static void __attribute__((noreturn)) walk(int sock)
{
	struct calls calls;
	const int keep[] = { 0, 1, 2, sock };
	char word;

	process_keep_fds(keep, ARRAY_LEN(keep));
	process_block_signals(); /* Ctrl-C does not end this process: the end of the socket does */
	while (recv(sock, &word, sizeof(word), 0) == sizeof(word)) {
		calls = measure_calls();
		if (send(sock, &calls, sizeof(calls), MSG_NOSIGNAL) != sizeof(calls))
			break;
	}
	_exit(0);
}

/* ---- in this process ---- */

static int ask(int sock, struct calls *out, struct err *e)
{
	const char word = 0;

	if (send(sock, &word, sizeof(word), MSG_NOSIGNAL) != sizeof(word) ||
	    recv(sock, out, sizeof(*out), 0) != sizeof(*out))
		return err_set(e, -ECHILD,
			       "the process that a probe's price is measured with died");
	return 0;
}

/* @addr of ours, as a place in our executable. */
static int offset_of(const struct target *self, uint64_t addr, uint64_t *out, struct err *e)
{
	const struct mapping *m = maps_find(&self->maps, addr);

	if (!m)
		return err_set(e, -ENOENT, "our own code is not among our mappings");
	*out = addr - m->start + m->offset;
	return 0;
}

/* Both probes at once: each is passed by calls of its own. */
static int put_probes(struct cost_probes *p, struct bpf_program *prog, bool multi, uint64_t cookie,
		      struct err *e)
{
	struct uprobe_site sites[] = {
		{ .addr = landmark_site(LANDMARK_BRANCH), .cookie = cookie },
		{ .addr = landmark_site(LANDMARK_RETURN), .cookie = cookie },
	};
	CLEANUP(target_freep) struct target *self = NULL;
	int ret = target_open(getpid(), &self, e);

	if (!ret)
		ret = offset_of(self, landmark_site(LANDMARK_BRANCH), &sites[0].file_off, e);
	if (!ret)
		ret = offset_of(self, landmark_site(LANDMARK_RETURN), &sites[1].file_off, e);
	if (ret)
		return ret;
	return uprobes_put(&p->probes, prog, multi, p->pid, "/proc/self/exe", sites, 2, e);
}

static int start_child(struct cost_probes *p, struct err *e)
{
	int sock[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock))
		return err_sys(e, "a socket");
	p->sock = sock[1];
	p->pid = fork();
	if (!p->pid) {
		close(sock[1]);
		walk(sock[0]);
	}
	close(sock[0]);
	return p->pid < 0 ? err_sys(e, "a process to measure a probe's price with") : 0;
}

static int hit_cost_of(const struct calls *c, struct hit_cost *out, struct err *e)
{
	if (c->hit <= c->bare || c->stepped <= c->bare)
		return err_set(e, -EAGAIN, "a probe costs nothing");
	*out = (struct hit_cost){ .hit_ns = c->hit - c->bare,
				  .stepped_ns = c->stepped > c->hit ? c->stepped - c->hit : 0 };
	return 0;
}

int hit_cost_measure(struct bpf_program *prog, bool multi, uint64_t cookie,
		     struct attacher_process **all, struct hit_cost *out, struct cost_probes **rest,
		     struct err *e)
{
	CLEANUP(cost_probes_freep) struct cost_probes *p = calloc(1, sizeof(*p));
	struct calls calls;
	int ret;

	if (!p)
		return err_set(e, -ENOMEM, "no memory");
	p->sock = -1;
	p->probes.all = all;
	if (!landmark_site(LANDMARK_BRANCH))
		return err_set(e, -ENOTSUP, "a probe's price cannot be measured on this machine");
	ret = start_child(p, e);
	if (!ret)
		ret = put_probes(p, prog, multi, cookie, e);
	if (!ret)
		ret = ask(p->sock, &calls, e);
	if (!ret)
		ret = hit_cost_of(&calls, out, e);
	if (ret)
		return ret;
	uprobes_leave(&p->probes);
	*rest = TAKE(p);
	return 0;
}

int cost_probes_fd(struct cost_probes *p)
{
	return uprobes_fd(&p->probes);
}

void cost_probes_free(struct cost_probes *p)
{
	if (!p)
		return;
	uprobes_free(&p->probes);
	/* A child of another pricing may have inherited this end, so closing it would not end the other one. */
	if (p->sock >= 0)
		shutdown(p->sock, SHUT_RDWR);
	closep(&p->sock);
	if (p->pid > 0)
		process_wait(p->pid);
	free(p);
}
