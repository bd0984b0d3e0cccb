/*
 * user/probe/uprobes/uprobe_attacher.c - in the attacher, which is a thread of a process with others: puts probes in and takes them
 * out, opens and closes windows.
 */
#include <bpf/bpf.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/sys/caps.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/vec.h"
#include "probe/bpf_old.h"
#include "probe/uprobes/link_release.h"
#include "probe/uprobes/uprobe_link.h"
#include "probe/uprobes/uprobes_priv.h"

/* Source: arch/x86/include/asm/uprobes.h; arm64 has 4. */
#define MAX_UINSN_BYTES 16

/* So many are put in together even when it is not known how long one takes. */
enum { FEW_SITES = 3 };

/* Nobody takes a CPU away for so long. */
#define CERTAIN_NS (10 * UPROBE_WORK_MOST_NS)

struct group {
	char path[32]; /* of file_fd */
	const struct uprobe_site *sites;
	size_t n;
	bool counts;	   /* a program of the owner's runs there */
	int prog_fd;	   /* -1 none */
	int file_fd;	   /* of the file, for reading; or O_PATH, where we may not read it */
	int link_fd;	   /* of the multi link; -1: none */
	int first_fd;	   /* the same, of the first site alone */
	struct each *each; /* one for each site, when there is no multi link */
	size_t neach;
};

/* One probe of its own. */
struct each {
	int event, link; /* -1: nothing runs there */
};

/* What was added at once. */
struct set {
	uint32_t id;
	pid_t pid;	  /* 0: all processes */
	bool tried;	  /* they were in before, and the kernel did not take too long */
	uint64_t each_ns; /* CPU time of a probe that was put in, the last time */
	int failed;	  /* the error that leaves it out, or 0 */
	struct err why;
	void *sites; /* mapped */
	size_t mapped;
	int fds[ATTACHER_FDS];
	size_t nfds;
	struct group group[UPROBE_GROUPS_MAX];
	size_t n;
};

struct held {
	bool multi;
	unsigned perf_type; /* of uprobes, where there is no multi link */
	volatile struct gpb_open *open;
	struct uprobe_watch *watch;
	bool attached; /* until told otherwise */
	bool mending;  /* it may take as long as it needs */
	VEC(struct set *) sets;
	struct link_releases releases; /* of links that were taken out */
};

/* Of this attacher: the process has others. */
static uint64_t own_cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/*
 * For each probe the kernel visits every mapping of the file, whoever made it. Our CPU time tells
 * how long that takes; the time in which we sleep delays nobody. @since: our CPU time before the @n
 * probes were put in.
 */
static int check_work(const struct held *h, struct set *s, const struct group *u, uint64_t since,
		      size_t n, struct err *e)
{
	uint64_t each = (own_cpu_ns() - since) / n;

	s->each_ns = each;
	if (!u->counts || h->mending || each <= UPROBE_WORK_MOST_NS)
		return 0;
	return err_set(
		e, -EUSERS,
		"putting in one probe takes the kernel %.0f ms, in which no process of this "
		"machine can fork, since the file is mapped very often (/proc/*/maps tells by "
		"whom): above %d ms nothing is probed",
		(double)each / 1e6, (int)(UPROBE_WORK_MOST_NS / 1000000));
}

static int link_sites(const struct set *s, const struct group *u, const uint64_t *offsets,
		      const uint64_t *cookies, size_t n, int *fd, struct err *e)
{
	*fd = uprobe_link_create(u->prog_fd, s->pid, u->path, offsets, cookies, n);
	if (*fd < 0 && errno == ESRCH)
		return err_set(e, -ESRCH, "the target exited");
	return *fd < 0 ? err_sys(e, "attaching %zu uprobes to %s", n, u->path) : 0;
}

/*
 * Where there are more than a few, the first probe of all goes in alone, so that no more are put into a
 * file in which that takes too long. This needs a link of its own, which takes its time to close.
 */
static int attach_multi(const struct held *h, struct set *s, struct group *u, bool first,
			struct err *e)
{
	uint64_t since = own_cpu_ns();
	size_t alone = first && u->n > FEW_SITES;
	int ret = 0;
	CLEANUP(freep) uint64_t *offsets = calloc(u->n, sizeof(*offsets));
	CLEANUP(freep) uint64_t *cookies = calloc(u->n, sizeof(*cookies));

	if (!offsets || !cookies)
		return err_set(e, -ENOMEM, "no memory for probes");
	for (size_t i = 0; i < u->n; i++) {
		offsets[i] = u->sites[i].file_off;
		cookies[i] = u->sites[i].cookie;
	}
	if (alone)
		ret = link_sites(s, u, offsets, cookies, 1, &u->first_fd, e);
	if (!ret && alone)
		ret = check_work(h, s, u, since, 1, e);
	if (!ret)
		ret = link_sites(s, u, offsets + alone, cookies + alone, u->n - alone, &u->link_fd,
				 e);
	return ret ? ret : check_work(h, s, u, since, u->n, e);
}

/*
 * A perf uprobe takes CAP_PERFMON from Linux 5.8 on, and CAP_SYS_ADMIN again since 2025, in stable
 * kernels too ("perf: Revert to requiring CAP_SYS_ADMIN for uprobes"); tried on 6.18.
 */
static int refused_each(struct err *e, const char *path, uint64_t off)
{
	static const int admin[] = { CAP_SYS_ADMIN };

	if (errno == ESRCH)
		return err_set(e, -ESRCH, "the target exited");
	if ((errno == EACCES || errno == EPERM) && !caps_have(CAP_SYS_ADMIN))
		return caps_refused(e, "the kernel refused a uprobe", admin, 1);
	return err_sys(e, "attaching a uprobe to %s+0x%llx", path, (unsigned long long)off);
}

/*
 * Events of no process are of a CPU, but programs on them run wherever the probe is hit. Source: __uprobe_perf_func() in
 * kernel/trace/trace_uprobe.c, Linux 5.15 to 6.18.
 */
static int any_cpu(void)
{
	int cpu = sched_getcpu();

	return cpu < 0 ? 0 : cpu;
}

/*
 * One probe: it only counts. Config 1 and 2 are the path and the offset in the file. Source:
 * perf_uprobe_init() in kernel/trace/trace_event_perf.c, Linux 4.17 and newer.
 */
static int open_event(const struct held *h, const struct set *s, const char *path, uint64_t off)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = h->perf_type,
		.config1 = (uint64_t)(uintptr_t)path,
		.config2 = off,
	};

	return (int)syscall(SYS_perf_event_open, &attr, s->pid ? s->pid : -1,
			    s->pid ? -1 : any_cpu(), -1, PERF_FLAG_FD_CLOEXEC);
}

/* -1 and errno */
static int attach_one(const struct held *h, const struct set *s, struct group *u, size_t i)
{
	struct each *p = &u->each[u->neach];

	p->link = -1;
	p->event = open_event(h, s, u->path, u->sites[i].file_off);
	if (p->event < 0)
		return -1;
	u->neach++;
	if (u->prog_fd < 0)
		return 0;
	return bpf_put_on(u->prog_fd, p->event, u->sites[i].cookie, &p->link, NULL) ? -1 : 0;
}

static int attach_each(const struct held *h, struct set *s, struct group *u, struct err *e)
{
	uint64_t since = own_cpu_ns();
	int ret = 0;

	u->each = calloc(u->n, sizeof(*u->each));
	if (!u->each)
		return err_set(e, -ENOMEM, "no memory for probes");
	for (size_t i = 0; !ret && i < u->n; i++) {
		if (attach_one(h, s, u, i))
			return refused_each(e, u->path, u->sites[i].file_off);
		ret = check_work(h, s, u, since, i + 1, e);
	}
	return ret;
}

static void detach_group(struct held *h, struct group *u)
{
	link_release(&h->releases, TAKE_FD(u->first_fd));
	link_release(&h->releases, TAKE_FD(u->link_fd));
	for (size_t i = 0; i < u->neach; i++) {
		closep(&u->each[i].link);
		closep(&u->each[i].event);
	}
	free(u->each);
	u->each = NULL;
	u->neach = 0;
}

static void detach_set(struct held *h, struct set *s)
{
	for (size_t i = 0; i < s->n; i++)
		detach_group(h, &s->group[i]);
	link_releases_out(&h->releases);
}

/* Returns the CPU time that it took. */
static uint64_t detach_all(struct held *h)
{
	uint64_t cpu = own_cpu_ns();

	h->attached = false;
	for (size_t i = 0; i < h->sets.n; i++)
		for (size_t j = 0; j < h->sets.at[i]->n; j++)
			detach_group(h, &h->sets.at[i]->group[j]);
	return link_releases_out(&h->releases) + own_cpu_ns() - cpu;
}

/*
 * The kernel copies the instruction out of the file's page while it holds the target's memory for
 * writing, and reads a page that is not in the page cache from the disk then: slow for the target,
 * and a WARNING of ext4 on Linux 6.18. So they are read before. An instruction is as long as
 * MAX_UINSN_BYTES, and may lie on two pages. Source: copy_insn() in kernel/events/uprobes.c.
 */
static void read_pages(const struct group *u)
{
	char insn[MAX_UINSN_BYTES];

	for (size_t i = 0; i < u->n; i++)
		(void)!pread(u->file_fd, insn, sizeof(insn), (off_t)u->sites[i].file_off);
}

/* Of the groups of its file. What cannot be told is taken to be another file. */
static bool first_of_file(const struct set *s, size_t i)
{
	struct stat mine, other;

	if (fstat(s->group[i].file_fd, &mine))
		return true;
	for (size_t j = 0; j < i; j++)
		if (!fstat(s->group[j].file_fd, &other) && other.st_dev == mine.st_dev &&
		    other.st_ino == mine.st_ino)
			return false;
	return true;
}

static int try_to_attach(struct held *h, struct set *s, struct err *e)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < s->n; i++) {
		struct group *u = &s->group[i];
		bool first = u->counts && !s->tried && !h->mending && first_of_file(s, i);

		ret = h->multi ? attach_multi(h, s, u, first, e) : attach_each(h, s, u, e);
	}
	s->tried |= !ret;
	if (ret)
		detach_set(h, s);
	return ret;
}

/*
 * Our CPU time also contains what a hypervisor or an interrupt took from us. So, unless the kernel takes
 * very long, a file is refused only when it takes too long twice, the second time for a probe that goes
 * in alone.
 */
static int attach_set(struct held *h, struct set *s, struct err *e)
{
	int ret;

	for (size_t i = 0; i < s->n; i++)
		read_pages(&s->group[i]);
	ret = try_to_attach(h, s, e);
	if (ret != -EUSERS || s->each_ns > CERTAIN_NS)
		return ret;
	s->tried = false;
	return try_to_attach(h, s, e);
}

/* The first set fails all of them; another one is left out from then on. */
static int attach_all(struct held *h, struct err *e)
{
	for (size_t i = 0; i < h->sets.n; i++) {
		struct set *s = h->sets.at[i];
		int ret = s->failed && !h->mending ? 0 : attach_set(h, s, &s->why);

		if (!ret)
			continue;
		if (s->id) {
			s->failed = ret;
			continue;
		}
		detach_all(h);
		return err_set(e, ret, "%s", s->why.msg);
	}
	return 0;
}

/* pause between attaching and opening, so that the disturbance is over; hits cost meanwhile */
#define SETTLE_NS     2000000
#define SETTLE_OWN_NS 200000
/* How often a window is checked that may end early; a check takes some 10 us of a CPU. */
#define OWN_LOOK_NS 500000

/* So long after its end a window is overdue: it is not waited for without waking the attacher. */
#define OVERDUE_NS 2000000000ull

static void sleep_until(uint64_t ns)
{
	struct timespec ts = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

/*
 * Sleeps until the window ends: hits after that are of no use, and cost the target as much as
 * before.
 */
static void sleep_in_window(struct held *h, const struct uprobe_window *w, uint64_t opened)
{
	uint64_t end = opened + w->end, until = opened;

	while (w->by_own && until + OWN_LOOK_NS < end) {
		sleep_until(until + OWN_LOOK_NS);
		until = h->open->until;
		if (until && until <= now_ns())
			return;
		until = now_ns();
	}
	sleep_until(end);
}

static int count_for_a_while(struct held *h, const struct uprobe_window *w,
			     struct uprobe_windowed *out, struct err *e)
{
	uint64_t cpu = own_cpu_ns();
	int ret;

	out->asked = now_ns();
	ret = attach_all(h, e);
	if (ret)
		return ret;
	out->work_ns = own_cpu_ns() - cpu;
	/*
	 * No timer wakes anybody up when the window opens: that would push the target off the CPU
	 * just then, and the window would see too little of it.
	 */
	out->opened = now_ns() + (w->by_own ? SETTLE_OWN_NS : SETTLE_NS);
	if (out->opened < w->open)
		out->opened = w->open;
	h->open->since = out->opened;
	h->open->until = 0;
	h->open->bits = w->begin ? GPB_OPEN : GPB_OPEN_END;
	if (w->begin) {
		sleep_until(out->opened + w->begin);
		h->open->bits = GPB_OPEN_END;
	}
	sleep_in_window(h, w, out->opened);
	h->open->bits = 0;
	out->closed = now_ns();
	if (w->keep_until) {
		/* What a hit that began in time files must be there before it is looked for. */
		sleep_until(out->closed + SETTLE_OWN_NS);
		h->attached = true;
		return 0;
	}
	out->work_ns += detach_all(h);
	out->detached = now_ns();
	return 0;
}

/* Has the time come, without a later one being set? */
static int let_go_in_time(void *arg)
{
	struct held *h = arg;
	uint64_t until = h->watch ? __atomic_load_n(&h->watch->until, __ATOMIC_ACQUIRE) : 0;
	uint64_t now = now_ns();

	if (!h->attached || !until)
		return -1;
	if (now < until)
		return until - now < NS_PER_S ? (int)((until - now) / NS_PER_MS) + 1 : 1000;
	if (h->open)
		h->open->bits = 0;
	__atomic_store_n(&h->watch->let_go, now, __ATOMIC_RELEASE);
	detach_all(h);
	return -1;
}

/* What was left behind is taken out however long that takes. */
static int come_and_go(struct held *h, struct err *e)
{
	int ret;

	h->mending = true;
	ret = attach_all(h, e);
	h->mending = false;
	for (size_t i = 0; i < h->sets.n; i++)
		h->sets.at[i]->tried = false;
	detach_all(h);
	return ret;
}

/* ---- sets ---- */

/* Its probes are out. */
static void set_free(struct set *s)
{
	for (size_t i = 0; i < s->nfds; i++)
		close(s->fds[i]);
	if (s->mapped)
		munmap(s->sites, s->mapped);
	free(s);
}
DEFINE_FREEP(struct set, set)

/* Of what was mapped. */
static void fill_groups(struct set *s, const struct ask *ask)
{
	const struct uprobe_site *at = s->sites;

	for (size_t i = 0; i < ask->add.n; i++) {
		const struct group_words *w = &ask->add.group[i];
		struct group *g = &s->group[s->n++];

		*g = (struct group){ .sites = at,
				     .n = w->sites,
				     .counts = w->counts,
				     .prog_fd = w->prog < 0 ? -1 : s->fds[w->prog],
				     .file_fd = s->fds[w->file],
				     .link_fd = -1,
				     .first_fd = -1 };
		snprintf(g->path, sizeof(g->path), "/proc/self/fd/%d", g->file_fd);
		at += w->sites;
	}
}

/* Where probes are in, those of the new one are put in, too; what fails is not held. */
static int add(struct held *h, const struct ask *ask, const int *fds, size_t nfds, struct err *e)
{
	CLEANUP(set_freep) struct set *s = calloc(1, sizeof(*s));
	struct set **at;
	size_t n = 0;
	int ret = 0;

	BUG_ON(!s || !nfds || ask->add.n > UPROBE_GROUPS_MAX);
	s->id = ask->set;
	s->pid = ask->add.pid;
	memcpy(s->fds, fds, nfds * sizeof(*fds));
	s->nfds = nfds;
	for (size_t i = 0; i < ask->add.n; i++)
		n += ask->add.group[i].sites;
	if (n) {
		s->sites = mmap(NULL, n * sizeof(struct uprobe_site), PROT_READ, MAP_SHARED, fds[0],
				0);
		if (s->sites == MAP_FAILED)
			return err_sys(e, "the probes' sites");
		s->mapped = n * sizeof(struct uprobe_site);
	}
	fill_groups(s, ask);
	s->tried = ask->tried;
	if (h->attached)
		ret = attach_set(h, s, e);
	if (ret)
		return ret;
	at = vec_add(&h->sets, UPROBE_SETS_MAX);
	if (!at) {
		detach_set(h, s);
		return err_set(e, -E2BIG, "more than %d sets of probes", UPROBE_SETS_MAX);
	}
	*at = TAKE(s);
	return 0;
}

static struct set *set_of(const struct held *h, uint32_t id)
{
	for (size_t i = 0; i < h->sets.n; i++)
		if (h->sets.at[i]->id == id)
			return h->sets.at[i];
	return NULL;
}

static void drop(struct held *h, uint32_t id)
{
	size_t keep = 0;

	for (size_t i = 0; i < h->sets.n; i++) {
		struct set *s = h->sets.at[i];

		if (s->id != id) {
			h->sets.at[keep++] = s;
			continue;
		}
		detach_set(h, s);
		set_free(s);
	}
	h->sets.n = keep;
}

static int failed(const struct held *h, uint32_t id, struct err *e)
{
	const struct set *s = set_of(h, id);

	if (!s)
		return err_set(e, -ENOENT, "there is no such set of probes");
	return s->failed ? err_set(e, s->failed, "%s", s->why.msg) : 0;
}

/* ---- questions ---- */

/* @size bytes from @off on, where a mapping must begin at a page. */
static void *map_shared(int fd, uint64_t off, size_t size)
{
	uint64_t in_page = off % (uint64_t)sysconf(_SC_PAGESIZE);
	char *m = mmap(NULL, size + in_page, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		       (off_t)(off - in_page));

	return m == MAP_FAILED ? NULL : m + in_page;
}

static void unmap_shared(void *at, size_t size)
{
	size_t in_page = (uintptr_t)at % (size_t)sysconf(_SC_PAGESIZE);

	if (at)
		munmap((char *)at - in_page, size + in_page);
}

static int share(struct held *h, const struct ask *ask, const int *fds, size_t nfds, struct err *e)
{
	BUG_ON(nfds != 1u + ask->share.windows);
	h->multi = ask->share.multi;
	h->perf_type = ask->share.perf_type;
	h->watch = map_shared(fds[0], 0, sizeof(*h->watch));
	if (h->watch && ask->share.windows)
		h->open = map_shared(fds[1], ask->share.open_off, sizeof(*h->open));
	for (size_t i = 0; i < nfds; i++)
		close(fds[i]);
	if (!h->watch || (ask->share.windows && !h->open))
		return err_sys(e, "memory to share with the attacher of the probes");
	return 0;
}

static int attach(struct held *h, struct err *e)
{
	int ret = attach_all(h, e);

	h->attached = !ret;
	return ret;
}

static int answer_to(struct held *h, const struct ask *ask, const int *fds, size_t nfds,
		     struct uprobe_windowed *windowed, struct err *e)
{
	switch (ask->what) {
	case SHARE:
		return share(h, ask, fds, nfds, e);
	case ADD:
		return add(h, ask, fds, nfds, e);
	case DROP:
		drop(h, ask->set);
		return 0;
	case FAILED:
		return failed(h, ask->set, e);
	case ATTACH:
		return attach(h, e);
	case DETACH:
		windowed->work_ns = detach_all(h);
		return 0;
	case WINDOW:
		return count_for_a_while(h, &ask->window, windowed, e);
	case MEND:
		return come_and_go(h, e);
	}
	return err_set(e, -EINVAL, "no such question");
}

static size_t serve(void *arg, const void *words, size_t n, const int *fds, size_t nfds, void *to)
{
	struct answer a = {};
	struct held *h = arg;
	struct ask ask;

	BUG_ON(n != sizeof(ask));
	memcpy(&ask, words, sizeof(ask));
	for (size_t i = 0; ask.tried && i < h->sets.n; i++)
		h->sets.at[i]->tried = true;
	a.ret = answer_to(h, &ask, fds, nfds, &a.windowed, &a.e);
	memcpy(to, &a, sizeof(a));
	return sizeof(a);
}

static int begin(void **arg, struct err *e)
{
	*arg = calloc(1, sizeof(struct held));
	return *arg ? 0 : err_set(e, -ENOMEM, "no memory for probes");
}

static void end(void *arg)
{
	struct held *h = arg;

	if (!h)
		return;
	detach_all(h);
	for (size_t i = 0; i < h->sets.n; i++)
		set_free(h->sets.at[i]);
	vec_fini(&h->sets);
	link_releases_over(&h->releases);
	unmap_shared(h->watch, sizeof(*h->watch));
	unmap_shared((void *)h->open, sizeof(*h->open));
	free(h);
}

void uprobes_main(int argc, char **argv)
{
	static const struct attacher_job job = {
		.begin = begin, .end = end, .serve = serve, .idle = let_go_in_time
	};

	attacher_main(argc, argv, &job);
}
