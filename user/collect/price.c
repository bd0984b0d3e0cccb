/* user/collect/price.c - a child that runs over a probe, with it and without. */
#include "collect/price.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "arch/landmark.h"
#include "base/cleanup.h"
#include "collect/uprobes.h"
#include "target/target.h"

/* Hits of one round; the middle one counts. */
enum { HITS = 4000, ROUNDS = 7 };

static double round_ns(void)
{
	struct timespec a, b;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	landmark_call(HITS, 32);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	return ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / HITS;
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* In the child: at each word its middle round, until there is nobody any more. */
static void __attribute__((noreturn)) walk(int sock)
{
	sigset_t all;
	char word;

	sigfillset(&all); /* Ctrl-C is not for us: the end of the socket is */
	sigprocmask(SIG_SETMASK, &all, NULL);
	while (recv(sock, &word, 1, 0) == 1) {
		double ns[ROUNDS];

		for (int i = 0; i < ROUNDS; i++)
			ns[i] = round_ns();
		qsort(ns, ROUNDS, sizeof(*ns), by_size);
		if (send(sock, &ns[ROUNDS / 2], sizeof(*ns), MSG_NOSIGNAL) != sizeof(*ns))
			break;
	}
	_exit(0);
}

static int ask(int sock, double *ns, struct err *e)
{
	char word = 0;

	if (send(sock, &word, 1, MSG_NOSIGNAL) != 1 ||
	    recv(sock, ns, sizeof(*ns), 0) != sizeof(*ns))
		return err_set(e, -ECHILD,
			       "the process that a probe's price is measured with died");
	return 0;
}

static int site_of_landmark(struct uprobe_site *out, struct err *e)
{
	CLEANUP(target_freep) struct target *self = NULL;
	const struct mapping *m;
	int ret;

	if (!landmark_site())
		return err_set(e, -ENOTSUP, "a probe's price cannot be measured on this machine");
	ret = target_open(getpid(), &self, e);
	if (ret)
		return ret;
	m = maps_find(&self->maps, landmark_site());
	if (!m)
		return err_set(e, -ENOENT, "our own code is not among our mappings");
	out->file_off = landmark_site() - m->start + m->offset;
	return 0;
}

static int with_child(pid_t child, int sock, struct bpf_program *prog, bool multi,
		      const struct uprobe_site *site, double *ns, struct err *e)
{
	struct uprobes u = {};
	double bare, probed = 0;
	int ret = ask(sock, &bare, e);

	if (!ret)
		ret = uprobes_put(&u, prog, multi, child, "/proc/self/exe", site, 1, e);
	if (!ret)
		ret = ask(sock, &probed, e);
	uprobes_free(&u);
	if (!ret && probed <= bare)
		ret = err_set(e, -EAGAIN, "a probe costs nothing");
	if (!ret)
		*ns = probed - bare;
	return ret;
}

int price_measure(struct bpf_program *prog, bool multi, uint64_t cookie, double *ns, struct err *e)
{
	struct uprobe_site site = { .cookie = cookie };
	int sock[2], ret = site_of_landmark(&site, e);
	pid_t child;

	if (ret)
		return ret;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock))
		return err_sys(e, "a socket");
	child = fork();
	if (!child) {
		close(sock[1]);
		walk(sock[0]);
	}
	close(sock[0]);
	ret = child < 0 ? err_sys(e, "a process to measure a probe's price with") :
			  with_child(child, sock[1], prog, multi, &site, ns, e);
	close(sock[1]);
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	return ret;
}
