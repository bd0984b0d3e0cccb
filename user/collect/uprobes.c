/*
 * user/collect/uprobes.c - a keeper that attaches and detaches; the raw link-create call that
 * libbpf 1.1 has no name for.
 */
#include "collect/uprobes.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/caps.h"
#include "base/cleanup.h"

/* Source: include/uapi/linux/bpf.h, Linux 6.6, enum bpf_attach_type. */
#define ATTACH_UPROBE_MULTI 48

/* The part of union bpf_attr that BPF_LINK_CREATE reads for a multi uprobe; same source. */
struct link_create_uprobe_multi {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t cnt, multi_flags, pid, pad;
};
_Static_assert(sizeof(struct link_create_uprobe_multi) == 64, "kernel ABI");

static int link_create(int prog_fd, pid_t pid, const char *path, const uint64_t *offsets,
		       const uint64_t *cookies, size_t n)
{
	struct link_create_uprobe_multi a = {
		.prog_fd = (uint32_t)prog_fd,
		.attach_type = ATTACH_UPROBE_MULTI,
		.path = (uint64_t)(uintptr_t)path,
		.offsets = (uint64_t)(uintptr_t)offsets,
		.cookies = (uint64_t)(uintptr_t)cookies,
		.cnt = (uint32_t)n,
		.pid = (uint32_t)pid,
	};

	return (int)syscall(SYS_bpf, BPF_LINK_CREATE, &a, sizeof(a));
}

static int load_empty_program(void)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = ATTACH_UPROBE_MULTI);
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, NULL, "GPL", insns, 2, &opts);
}

/* The errno of an attempt that cannot succeed: "/" is not a file that can be probed. */
static int attempt(int prog, pid_t pid)
{
	uint64_t off = 0;
	int fd = link_create(prog, pid, "/", &off, NULL, 1);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

/*
 * A kernel that knows the link type gets as far as the path. The first ones filtered by
 * thread where a process was asked for; those that mend it also refuse a negative pid.
 * Source: bpf_uprobe_multi_link_attach in kernel/trace/bpf_trace.c, Linux 6.6 and 6.10.
 */
bool uprobes_have_multi(void)
{
	CLEANUP(closep) int prog = load_empty_program();

	return prog >= 0 && attempt(prog, 0) == EBADF && attempt(prog, -1) == EINVAL;
}

void uprobes_prepare(struct bpf_program *prog, bool multi)
{
	if (multi)
		bpf_program__set_expected_attach_type(prog, ATTACH_UPROBE_MULTI);
}

/* ---- in the keeper ---- */

struct group {
	struct uprobe_group g;	 /* its path is one that the keeper can open */
	int link_fd;		 /* multi; -1 none */
	struct bpf_link **links; /* one a place, when there is no multi link */
	size_t nlinks;
};

struct held {
	bool multi;
	pid_t pid;
	volatile struct gpb_open *open;
	struct uprobe_watch *watch;
	bool attached; /* until told otherwise */
	struct group group[UPROBE_GROUPS_MAX];
	size_t n;
};

static int attach_multi(struct held *h, struct group *u, struct err *e)
{
	CLEANUP(freep) uint64_t *offsets = calloc(u->g.n, sizeof(*offsets));
	CLEANUP(freep) uint64_t *cookies = calloc(u->g.n, sizeof(*cookies));

	if (!offsets || !cookies)
		return err_set(e, -ENOMEM, "no memory for probes");
	for (size_t i = 0; i < u->g.n; i++) {
		offsets[i] = u->g.sites[i].file_off;
		cookies[i] = u->g.sites[i].cookie;
	}
	u->link_fd = link_create(bpf_program__fd(u->g.prog), h->pid, u->g.path, offsets, cookies,
				 u->g.n);
	if (u->link_fd < 0 && errno == ESRCH)
		return err_set(e, -ESRCH, "the target exited");
	if (u->link_fd < 0)
		return err_sys(e, "attaching %zu uprobes to %s", u->g.n, u->g.path);
	return 0;
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

static int attach_each(struct held *h, struct group *u, struct err *e)
{
	u->links = calloc(u->g.n, sizeof(struct bpf_link *));
	if (!u->links)
		return err_set(e, -ENOMEM, "no memory for probes");
	for (size_t i = 0; i < u->g.n; i++) {
		LIBBPF_OPTS(bpf_uprobe_opts, opts, .bpf_cookie = u->g.sites[i].cookie);
		struct bpf_link *l = bpf_program__attach_uprobe_opts(u->g.prog, h->pid, u->g.path,
								     u->g.sites[i].file_off, &opts);

		if (!l)
			return refused_each(e, u->g.path, u->g.sites[i].file_off);
		u->links[u->nlinks++] = l;
	}
	return 0;
}

static void detach_group(struct group *u)
{
	if (u->link_fd >= 0)
		close(u->link_fd);
	u->link_fd = -1;
	for (size_t i = 0; i < u->nlinks; i++)
		bpf_link__destroy(u->links[i]);
	free(u->links);
	u->links = NULL;
	u->nlinks = 0;
}

static void detach_all(void *arg)
{
	struct held *h = arg;

	h->attached = false;
	for (size_t i = 0; i < h->n; i++)
		detach_group(&h->group[i]);
}

static int attach_all(struct held *h, struct err *e)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < h->n; i++)
		ret = h->multi ? attach_multi(h, &h->group[i], e) : attach_each(h, &h->group[i], e);
	if (ret)
		detach_all(h);
	return ret;
}

/* From attaching to opening: what that has disturbed is over. Hits cost meanwhile. */
#define SETTLE_NS     2000000
#define SETTLE_OWN_NS 200000
/* How often a window is looked at that may be over sooner: that takes some 10 us of a CPU. */
#define OWN_LOOK_NS 500000

#define NS_PER_MS   1000000ull
#define NS_PER_S    1000000000ull

enum what { ATTACH, DETACH, WINDOW };

struct ask {
	enum what what;
	struct uprobe_window window;
};

struct answer {
	int ret;
	struct uprobe_windowed windowed;
	struct err e;
};
_Static_assert(sizeof(struct ask) <= KEEPER_WORDS && sizeof(struct answer) <= KEEPER_WORDS,
	       "the keeper's socket has room");

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
	struct timespec ts = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

/* What comes after is of no use, and each hit costs the target as much as before. */
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
	int ret;

	out->asked = now_ns();
	ret = attach_all(h, e);
	if (ret)
		return ret;
	/*
	 * Nobody wakes up when it opens: that would push the target off the CPU just then, and
	 * the window would see too little of it.
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
	detach_all(h);
	out->detached = now_ns();
	return 0;
}

/* Nobody has told a later time: has it come? */
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

static size_t serve(void *arg, const void *words, size_t n, void *to)
{
	struct answer a = {};
	struct held *h = arg;
	struct ask ask;

	BUG_ON(n != sizeof(ask));
	memcpy(&ask, words, sizeof(ask));
	if (ask.what == ATTACH) {
		a.ret = attach_all(h, &a.e);
		h->attached = !a.ret;
	} else if (ask.what == DETACH) {
		detach_all(h);
	} else {
		a.ret = count_for_a_while(h, &ask.window, &a.windowed, &a.e);
	}
	memcpy(to, &a, sizeof(a));
	return sizeof(a);
}

/*
 * While it waits for a CPU, halfway through attaching or at a window's end, the target pays for
 * hits that count for nothing; and it needs one for some 4 ms of a second.
 */
static int begin(void *arg, struct err *e)
{
	const struct sched_param first = { .sched_priority = 1 };

	(void)sched_setscheduler(0, SCHED_FIFO, &first);
	(void)arg;
	(void)e;
	return 0;
}

/* ---- here ---- */

/* Opened here, for the keeper may see other files under the same name. */
static int open_paths(struct held *h, int *fds, struct err *e)
{
	for (size_t i = 0; i < h->n; i++) {
		struct uprobe_group *g = &h->group[i].g;

		fds[2 * i] = bpf_program__fd(g->prog);
		fds[2 * i + 1] = open(g->path, O_PATH | O_CLOEXEC);
		if (fds[2 * i + 1] < 0)
			return err_sys(e, "%s, to probe it", g->path);
		snprintf(g->path, sizeof(g->path), "/proc/self/fd/%d", fds[2 * i + 1]);
	}
	return 0;
}

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

int uprobes_hold(struct uprobes *u, const struct uprobe_group *g, size_t n, bool multi, pid_t pid,
		 volatile struct gpb_open *open, struct err *e)
{
	CLEANUP(freep) struct held *h = calloc(1, sizeof(*h));
	int fds[2 * UPROBE_GROUPS_MAX], ret;
	struct keeper_job job = { .begin = begin,
				  .end = detach_all,
				  .serve = serve,
				  .idle = let_go_in_time,
				  .arg = h,
				  .fds = fds,
				  .nfds = 2 * n };

	BUG_ON(n > UPROBE_GROUPS_MAX);
	if (!h)
		return err_set(e, -ENOMEM, "no memory for probes");
	ret = share_watch(u, e);
	if (ret)
		return ret;
	*h = (struct held){ .multi = multi, .pid = pid, .open = open, .watch = u->watch, .n = n };
	for (size_t i = 0; i < n; i++) {
		h->group[i] = (struct group){ .g = g[i], .link_fd = -1 };
		fds[2 * i + 1] = -1;
	}
	ret = open_paths(h, fds, e);
	if (!ret)
		ret = keeper_start(&u->keeper, &job, e);
	for (size_t i = 0; i < n; i++)
		if (fds[2 * i + 1] >= 0)
			close(fds[2 * i + 1]);
	return ret;
}

static int answer_of(struct uprobes *u, struct answer *a, struct err *e)
{
	int ret = keeper_answer(&u->keeper, a, sizeof(*a), e);

	if (ret)
		return ret;
	a->e.msg[sizeof(a->e.msg) - 1] = '\0';
	return a->ret ? err_set(e, a->ret, "%s", a->e.msg) : 0;
}

static int at_once(struct uprobes *u, enum what what, struct err *e)
{
	struct ask ask = { .what = what };
	struct answer a;
	int ret = keeper_ask(&u->keeper, &ask, sizeof(ask), e);

	return ret ? ret : answer_of(u, &a, e);
}

int uprobes_attach(struct uprobes *u, struct err *e)
{
	return at_once(u, ATTACH, e);
}

int uprobes_detach(struct uprobes *u, struct err *e)
{
	return at_once(u, DETACH, e);
}

int uprobes_window(struct uprobes *u, const struct uprobe_window *w, struct err *e)
{
	struct ask ask = { .what = WINDOW, .window = *w };

	return keeper_ask(&u->keeper, &ask, sizeof(ask), e);
}

int uprobes_fd(const struct uprobes *u)
{
	return u->keeper.sock;
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

void uprobes_free(struct uprobes *u)
{
	keeper_stop(&u->keeper);
	if (u->watch)
		munmap(u->watch, sizeof(*u->watch));
	u->watch = NULL;
}

int uprobes_put(struct uprobes *u, struct bpf_program *prog, bool multi, pid_t pid,
		const char *path, const struct uprobe_site *sites, size_t n, struct err *e)
{
	struct uprobe_group g = { .prog = prog, .sites = sites, .n = n };
	int ret;

	snprintf(g.path, sizeof(g.path), "%s", path);
	ret = uprobes_hold(u, &g, 1, multi, pid, NULL, e);
	return ret ? ret : uprobes_attach(u, e);
}
