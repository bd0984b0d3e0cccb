/* user/probe/uprobes.c - a keeper that attaches and detaches. */
#include "probe/uprobes.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/caps.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "probe/uprobe_link.h"

/* Source: arch/x86/include/asm/uprobes.h; arm64 has 4. */
#define MAX_UINSN_BYTES 16

/* ---- in the keeper ---- */

/* So many are put in together even when it is not known how long one takes. */
enum { FEW_SITES = 3 };

/* Nobody takes a CPU away for so long. */
#define CERTAIN_NS (10 * UPROBE_WORK_MOST_NS)

struct group {
	struct uprobe_group g;	 /* its path is one that the keeper can open */
	int prog_fd;		 /* -1 none */
	int file_fd;		 /* of the file, for reading; or O_PATH, where we may not read it */
	int link_fd;		 /* of the multi link; -1: none */
	int first_fd;		 /* the same, of the first site alone */
	struct bpf_link **links; /* one for each site, when there is no multi link */
	int *events;		 /* the same, without a program */
	size_t nlinks;
};

struct held {
	bool multi;
	unsigned
		perf_type; /* of uprobes, for those without a program where there is no multi link */
	pid_t pid;
	volatile struct gpb_open *open;
	struct uprobe_watch *watch;
	bool attached;	  /* until told otherwise */
	bool tried;	  /* they were in before, and the kernel did not take too long */
	uint64_t each_ns; /* CPU time of a probe that was put in, the last time */
	bool mending;	  /* it may take as long as it needs */
	struct group group[UPROBE_GROUPS_MAX];
	size_t n;
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static uint64_t own_cpu_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/*
 * For each probe the kernel visits every mapping of the file, whoever made it. Our CPU time tells
 * how long that takes; the time in which we sleep delays nobody. @since: our CPU time before the @n
 * probes were put in.
 */
static int check_work(struct held *h, const struct group *u, uint64_t since, size_t n,
		      struct err *e)
{
	uint64_t each = (own_cpu_ns() - since) / n;

	h->each_ns = each;
	if (!u->g.prog || h->mending || each <= UPROBE_WORK_MOST_NS)
		return 0;
	return err_set(
		e, -EUSERS,
		"putting in one probe takes the kernel %.0f ms, in which no process of this "
		"machine can fork, since the file is mapped very often (/proc/*/maps tells by "
		"whom): above %d ms nothing is probed",
		(double)each / 1e6, (int)(UPROBE_WORK_MOST_NS / 1000000));
}

static int link_sites(const struct held *h, const struct group *u, const uint64_t *offsets,
		      const uint64_t *cookies, size_t n, int *fd, struct err *e)
{
	*fd = uprobe_link_create(u->prog_fd, h->pid, u->g.path, offsets, cookies, n);
	if (*fd < 0 && errno == ESRCH)
		return err_set(e, -ESRCH, "the target exited");
	return *fd < 0 ? err_sys(e, "attaching %zu uprobes to %s", n, u->g.path) : 0;
}

/*
 * Where there are more than a few, the first probe of all goes in alone, so that no more are put into a
 * file in which that takes too long. This needs a link of its own, which takes its time to close.
 */
static int attach_multi(struct held *h, struct group *u, bool first, struct err *e)
{
	uint64_t since = own_cpu_ns();
	size_t alone = first && u->g.n > FEW_SITES;
	int ret = 0;
	CLEANUP(freep) uint64_t *offsets = calloc(u->g.n, sizeof(*offsets));
	CLEANUP(freep) uint64_t *cookies = calloc(u->g.n, sizeof(*cookies));

	if (!offsets || !cookies)
		return err_set(e, -ENOMEM, "no memory for probes");
	for (size_t i = 0; i < u->g.n; i++) {
		offsets[i] = u->g.sites[i].file_off;
		cookies[i] = u->g.sites[i].cookie;
	}
	if (alone)
		ret = link_sites(h, u, offsets, cookies, 1, &u->first_fd, e);
	if (!ret && alone)
		ret = check_work(h, u, since, 1, e);
	if (!ret)
		ret = link_sites(h, u, offsets + alone, cookies + alone, u->g.n - alone,
				 &u->link_fd, e);
	return ret ? ret : check_work(h, u, since, u->g.n, e);
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
 * One probe without a program: it only counts. Config 1 and 2 are the path and the offset in the
 * file. Source: perf_uprobe_init() in kernel/trace/trace_event_perf.c, Linux 4.17 and newer.
 */
static int open_bare(const struct held *h, const char *path, uint64_t off)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = h->perf_type,
		.config1 = (uint64_t)(uintptr_t)path,
		.config2 = off,
	};

	return (int)syscall(SYS_perf_event_open, &attr, h->pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static int attach_bare(struct held *h, struct group *u, struct err *e)
{
	u->events = calloc(u->g.n, sizeof(*u->events));
	if (!u->events)
		return err_set(e, -ENOMEM, "no memory for probes");
	for (size_t i = 0; i < u->g.n; i++) {
		int fd = open_bare(h, u->g.path, u->g.sites[i].file_off);

		if (fd < 0)
			return refused_each(e, u->g.path, u->g.sites[i].file_off);
		u->events[u->nlinks++] = fd;
	}
	return 0;
}

static int attach_each(struct held *h, struct group *u, struct err *e)
{
	uint64_t since = own_cpu_ns();
	int ret = 0;

	if (!u->g.prog)
		return attach_bare(h, u, e);
	u->links = calloc(u->g.n, sizeof(struct bpf_link *));
	if (!u->links)
		return err_set(e, -ENOMEM, "no memory for probes");
	for (size_t i = 0; !ret && i < u->g.n; i++) {
		LIBBPF_OPTS(bpf_uprobe_opts, opts, .bpf_cookie = u->g.sites[i].cookie);
		struct bpf_link *l = bpf_program__attach_uprobe_opts(u->g.prog, h->pid, u->g.path,
								     u->g.sites[i].file_off, &opts);

		if (!l)
			return refused_each(e, u->g.path, u->g.sites[i].file_off);
		u->links[u->nlinks++] = l;
		ret = check_work(h, u, since, i + 1, e);
	}
	return ret;
}

static void detach_group(struct group *u)
{
	closep(&u->first_fd);
	closep(&u->link_fd);
	u->first_fd = u->link_fd = -1;
	for (size_t i = 0; i < u->nlinks; i++)
		u->events ? (void)close(u->events[i]) : (void)bpf_link__destroy(u->links[i]);
	free(u->links);
	free(u->events);
	u->links = NULL;
	u->events = NULL;
	u->nlinks = 0;
}

static void detach_all(void *arg)
{
	struct held *h = arg;

	h->attached = false;
	for (size_t i = 0; i < h->n; i++)
		detach_group(&h->group[i]);
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

	for (size_t i = 0; i < u->g.n; i++)
		(void)!pread(u->file_fd, insn, sizeof(insn), (off_t)u->g.sites[i].file_off);
}

/* Of the groups of its file. What cannot be told is taken to be another file. */
static bool first_of_file(const struct held *h, size_t i)
{
	struct stat mine, other;

	if (fstat(h->group[i].file_fd, &mine))
		return true;
	for (size_t j = 0; j < i; j++)
		if (!fstat(h->group[j].file_fd, &other) && other.st_dev == mine.st_dev &&
		    other.st_ino == mine.st_ino)
			return false;
	return true;
}

static int try_to_attach(struct held *h, struct err *e)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < h->n; i++) {
		struct group *u = &h->group[i];
		bool first = u->g.prog && !h->tried && !h->mending && first_of_file(h, i);

		ret = h->multi ? attach_multi(h, u, first, e) : attach_each(h, u, e);
	}
	h->tried |= !ret;
	if (ret)
		detach_all(h);
	return ret;
}

/*
 * Our CPU time also contains what a hypervisor or an interrupt took from us. So, unless the kernel takes
 * very long, a file is refused only when it takes too long twice, the second time for a probe that goes
 * in alone.
 */
static int attach_all(struct held *h, struct err *e)
{
	int ret;

	for (size_t i = 0; i < h->n; i++)
		read_pages(&h->group[i]);
	ret = try_to_attach(h, e);
	if (ret != -EUSERS || h->each_ns > CERTAIN_NS)
		return ret;
	h->tried = false;
	return try_to_attach(h, e);
}

/* pause between attaching and opening, so that the disturbance is over; hits cost meanwhile */
#define SETTLE_NS     2000000
#define SETTLE_OWN_NS 200000
/* How often a window is checked that may end early; a check takes some 10 us of a CPU. */
#define OWN_LOOK_NS 500000

/* So long after its end a window is overdue: it is not waited for without waking the keeper. */
#define OVERDUE_NS 2000000000ull

#define NS_PER_MS  1000000ull
#define NS_PER_S   1000000000ull

enum what { ATTACH, DETACH, WINDOW, MEND };

struct ask {
	enum what what;
	bool tried;
	struct uprobe_window window;
};

struct answer {
	int ret;
	struct uprobe_windowed windowed;
	struct err e;
};
_Static_assert(sizeof(struct ask) <= KEEPER_WORDS && sizeof(struct answer) <= KEEPER_WORDS,
	       "the keeper's socket has room");

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

/* Returns the CPU time that it took. */
static uint64_t detach_and_time(struct held *h)
{
	uint64_t cpu = own_cpu_ns();

	detach_all(h);
	return own_cpu_ns() - cpu;
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
	out->work_ns += detach_and_time(h);
	out->detached = now_ns();
	return 0;
}

/* Has the time come, without a later one being set? */
static int let_go_in_time(void *arg)
{
	struct held *h = arg;
	uint64_t until = __atomic_load_n(&h->watch->until, __ATOMIC_ACQUIRE), now = now_ns();

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
	h->mending = h->tried = false;
	detach_all(h);
	return ret;
}

static size_t serve(void *arg, const void *words, size_t n, void *to)
{
	struct answer a = {};
	struct held *h = arg;
	struct ask ask;

	BUG_ON(n != sizeof(ask));
	memcpy(&ask, words, sizeof(ask));
	h->tried |= ask.tried;
	if (ask.what == ATTACH) {
		a.ret = attach_all(h, &a.e);
		h->attached = !a.ret;
	} else if (ask.what == DETACH) {
		a.windowed.work_ns = detach_and_time(h);
	} else if (ask.what == MEND) {
		a.ret = come_and_go(h, &a.e);
	} else {
		a.ret = count_for_a_while(h, &ask.window, &a.windowed, &a.e);
	}
	memcpy(to, &a, sizeof(a));
	return sizeof(a);
}

/*
 * The keeper gets a high priority: while it waits for a CPU, halfway through attaching or at a
 * window's end, the target pays for hits that do not count. It needs a CPU for only some 4 ms of
 * a second.
 */
static int begin(void *arg, struct err *e)
{
	const struct sched_param first = { .sched_priority = 1 };

	(void)sched_setscheduler(0, SCHED_FIFO, &first);
	(void)arg;
	(void)e;
	return 0;
}

/* ---- in this process ---- */

struct uprobe_plan {
	struct uprobe_group groups[UPROBE_GROUPS_MAX];
	struct uprobe_site *sites; /* of all groups */
	size_t n;
	bool multi;
	pid_t pid;
	volatile struct gpb_open *open;
	int empty_fd; /* a program that does nothing, where one is needed; -1 */
	unsigned perf_type;
};

int uprobe_groups_copy(struct uprobe_group *to, struct uprobe_site **sites,
		       const struct uprobe_group *g, size_t n, struct err *e)
{
	struct uprobe_site *at;
	size_t total = 0;

	BUG_ON(n > UPROBE_GROUPS_MAX);
	for (size_t i = 0; i < n; i++)
		total += g[i].n;
	at = calloc(total ? total : 1, sizeof(*at));
	if (!at)
		return err_set(e, -ENOMEM, "no memory for probes");
	free(*sites);
	*sites = at;
	for (size_t i = 0; i < n; i++) {
		memcpy(at, g[i].sites, g[i].n * sizeof(*at));
		to[i] = g[i];
		to[i].sites = at;
		at += g[i].n;
	}
	return 0;
}

static int share_watch(struct uprobes *u, struct err *e)
{
	void *m = mmap(NULL, sizeof(*u->watch), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);

	if (m == MAP_FAILED)
		return err_sys(e, "memory to share with the keeper of the probes");
	u->watch = m;
	return 0;
}

static int perf_type_of_uprobes(unsigned *type, struct err *e)
{
	static const char name[] = "/sys/bus/event_source/devices/uprobe/type";
	CLEANUP(fclosep) FILE *f = fopen(name, "re");

	if (!f)
		return err_sys(e, "this kernel has no uprobes: %s", name);
	return fscanf(f, "%u", type) == 1 ? 0 : err_set(e, -EBADMSG, "%s holds no number", name);
}

/* What stands in for a program where a group has none. */
static int prepare_bare(struct uprobe_plan *p, struct err *e)
{
	bool bare = false;

	for (size_t i = 0; i < p->n; i++)
		bare |= !p->groups[i].prog;
	if (bare && !p->multi)
		return perf_type_of_uprobes(&p->perf_type, e);
	if (!bare)
		return 0;
	p->empty_fd = uprobe_empty_program();
	return p->empty_fd < 0 ? err_sys(e, "a BPF program that does nothing") : 0;
}

static void plan_free(struct uprobe_plan *p)
{
	if (!p)
		return;
	closep(&p->empty_fd);
	free(p->sites);
	free(p);
}
DEFINE_FREEP(struct uprobe_plan, plan)

/* The files are opened here, because the keeper may see others under the same names. */
static int open_group(const struct uprobe_plan *p, struct group *to, const struct uprobe_group *g,
		      struct err *e)
{
	*to = (struct group){ .g = *g, .link_fd = -1, .first_fd = -1, .file_fd = -1 };
	to->prog_fd = g->prog ? bpf_program__fd(g->prog) : p->empty_fd;
	to->file_fd = open(g->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (to->file_fd < 0)
		to->file_fd = open(g->path, O_PATH | O_CLOEXEC);
	if (to->file_fd < 0)
		return err_sys(e, "%s, to probe it", g->path);
	snprintf(to->g.path, sizeof(to->g.path), "/proc/self/fd/%d", to->file_fd);
	return 0;
}

static void heldp(struct held **h)
{
	for (size_t i = 0; *h && i < (*h)->n; i++)
		closep(&(*h)->group[i].file_fd);
	free(*h);
}

static int start_keeper(struct uprobes *u, struct err *e)
{
	CLEANUP(heldp) struct held *h = calloc(1, sizeof(*h));
	const struct uprobe_plan *p = u->plan;
	int fds[2 * UPROBE_GROUPS_MAX];
	struct keeper_job job = { .begin = begin,
				  .end = detach_all,
				  .serve = serve,
				  .idle = let_go_in_time,
				  .arg = h,
				  .fds = fds };
	int ret = 0;

	if (!h)
		return err_set(e, -ENOMEM, "no memory for probes");
	*h = (struct held){ .multi = p->multi,
			    .perf_type = p->perf_type,
			    .pid = p->pid,
			    .open = p->open,
			    .watch = u->watch };
	for (size_t i = 0; !ret && i < p->n; i++) {
		struct group *g = &h->group[h->n++];

		ret = open_group(p, g, &p->groups[i], e);
		if (g->prog_fd >= 0)
			fds[job.nfds++] = g->prog_fd;
		if (g->file_fd >= 0)
			fds[job.nfds++] = g->file_fd;
	}
	return ret ? ret : keeper_start(&u->keeper, &job, e);
}

int uprobes_hold(struct uprobes *u, const struct uprobe_group *g, size_t n, bool multi, pid_t pid,
		 volatile struct gpb_open *open, struct err *e)
{
	CLEANUP(plan_freep) struct uprobe_plan *p = calloc(1, sizeof(*p));
	int ret;

	if (!p)
		return err_set(e, -ENOMEM, "no memory for probes");
	*p = (struct uprobe_plan){
		.n = n, .multi = multi, .pid = pid, .open = open, .empty_fd = -1
	};
	ret = uprobe_groups_copy(p->groups, &p->sites, g, n, e);
	if (!ret)
		ret = prepare_bare(p, e);
	if (!ret)
		ret = share_watch(u, e);
	if (ret)
		return ret;
	u->plan = TAKE(p);
	ret = start_keeper(u, e);
	return ret == -ECHILD ? uprobes_mend(u, e) : ret;
}

static int answer_of(struct uprobes *u, struct answer *a, struct err *e)
{
	int ret = keeper_answer(&u->keeper, a, sizeof(*a), e);

	if (ret)
		return ret;
	a->e.msg[sizeof(a->e.msg) - 1] = '\0';
	return a->ret ? err_set(e, a->ret, "%s", a->e.msg) : 0;
}

static int at_once(struct uprobes *u, enum what what, struct answer *a, struct err *e)
{
	struct ask ask = { .what = what, .tried = u->tried };
	int ret = keeper_ask(&u->keeper, &ask, sizeof(ask), 0, e);

	return ret ? ret : answer_of(u, a, e);
}

int uprobes_attach(struct uprobes *u, struct err *e)
{
	struct answer a;

	return at_once(u, ATTACH, &a, e);
}

int uprobes_attach_again(struct uprobes *u, struct err *e)
{
	int ret = uprobes_dead(u) ? -ECHILD : uprobes_attach(u, e);

	for (int i = 0; ret == -ECHILD && i < UPROBES_MENDS; i++) {
		ret = uprobes_mend(u, e);
		if (!ret)
			ret = uprobes_attach(u, e);
	}
	return ret;
}

int uprobes_detach(struct uprobes *u, uint64_t *work_ns, struct err *e)
{
	struct answer a;
	int ret = at_once(u, DETACH, &a, e);

	if (!ret && work_ns)
		*work_ns = a.windowed.work_ns;
	return ret;
}

int uprobes_window(struct uprobes *u, const struct uprobe_window *w, struct err *e)
{
	struct ask ask = { .what = WINDOW, .tried = u->tried, .window = *w };
	uint64_t now = now_ns(), open = w->open > now ? w->open : now;

	/* Before the keeper is asked: we may be stopped at any moment from then on. */
	if (w->keep_until)
		uprobes_until(u, w->keep_until);
	return keeper_ask(&u->keeper, &ask, sizeof(ask), open + w->end + OVERDUE_NS, e);
}

int uprobes_fd(const struct uprobes *u)
{
	return u->keeper.pid ? u->keeper.ready : -1;
}

int uprobes_windowed(struct uprobes *u, struct uprobe_windowed *out, struct err *e)
{
	struct answer a;
	int ret = answer_of(u, &a, e);

	if (!ret)
		*out = a.windowed;
	return ret;
}

void uprobes_until(struct uprobes *u, uint64_t ns)
{
	__atomic_store_n(&u->watch->until, ns, __ATOMIC_RELEASE);
}

uint64_t uprobes_let_go(const struct uprobes *u)
{
	return u->watch ? __atomic_load_n(&u->watch->let_go, __ATOMIC_ACQUIRE) : 0;
}

bool uprobes_dead(const struct uprobes *u)
{
	struct pollfd p = { .fd = u->keeper.sock, .events = POLLIN };

	return u->keeper.pid && poll(&p, 1, 0) == 1 && p.revents & POLLHUP;
}

int uprobes_mend(struct uprobes *u, struct err *e)
{
	uint64_t until_ns = now_ns() + LIMIT_KEEPER_MS * NS_PER_MS;
	struct answer a;
	int ret = -ECHILD;

	for (int i = 0; ret == -ECHILD && i < UPROBES_MENDS; i++) {
		if (now_ns() > until_ns)
			return err_set(e, -ETIMEDOUT, "no process that keeps the probes answers");
		(void)keeper_stop(&u->keeper);
		u->deaths++;
		ret = start_keeper(u, e);
		if (!ret)
			ret = at_once(u, MEND, &a, e);
	}
	return ret;
}

void uprobes_leave(struct uprobes *u)
{
	keeper_end(&u->keeper);
}

void uprobes_free(struct uprobes *u)
{
	for (int i = 0; i < UPROBES_MENDS && keeper_stop(&u->keeper) && u->plan; i++)
		if (uprobes_mend(u, NULL))
			break;
	(void)keeper_stop(&u->keeper);
	if (u->watch)
		munmap(u->watch, sizeof(*u->watch));
	u->watch = NULL;
	plan_free(u->plan);
	u->plan = NULL;
}

int uprobes_put(struct uprobes *u, struct bpf_program *prog, bool multi, pid_t pid,
		const char *path, const struct uprobe_site *sites, size_t n, struct err *e)
{
	struct uprobe_group g = { .prog = prog, .sites = sites, .n = n };
	int ret;

	snprintf(g.path, sizeof(g.path), "%s", path);
	ret = uprobes_hold(u, &g, 1, multi, pid, NULL, e);
	return ret ? ret : uprobes_attach_again(u, e);
}
