/* user/probe/uprobes/uprobes.c - what an attacher is to hold: it is told so, and again when another one follows. */
#include "probe/uprobes/uprobes.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/vec.h"
#include "probe/bpf_old.h"
#include "probe/uprobes/uprobe_link.h"
#include "probe/uprobes/uprobes_priv.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u /* include/uapi/linux/memfd.h, Linux 6.3 */
#endif

/* So long after its end a window is overdue: it is not waited for without waking the attacher. */
#define OVERDUE_NS 2000000000ull

struct plan_set {
	unsigned id;
	pid_t pid;
	struct uprobe_group groups[UPROBE_GROUPS_MAX];
	struct uprobe_site *sites; /* of all groups */
	size_t n;
};

struct uprobe_plan {
	VEC(struct plan_set *) sets;
	unsigned next_id;
	bool multi;
	struct uprobe_open open; /* .at NULL: there are no windows */
	int empty_fd;		 /* a program that does nothing, where one is needed; -1 */
	unsigned perf_type;	 /* of uprobes, where there is no multi link; 0: not known yet */
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

struct uprobe_open uprobe_open_in(const struct bpf_map *map, volatile void *at)
{
	size_t size;
	const char *begin = bpf_map__initial_value((struct bpf_map *)map, &size);

	return (struct uprobe_open){ .at = at,
				     .map_fd = bpf_map__fd(map),
				     .off = (size_t)((const volatile char *)at - begin) };
}

/* Memory with a descriptor. Kernels before 6.3 do not know the flag, and others may insist on it. */
static int shared_memory(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_NOEXEC_SEAL);

	return fd < 0 && errno == EINVAL ? memfd_create(name, MFD_CLOEXEC) : fd;
}

/*
 * Each attacher gets new memory, with what the last one's said: so no descriptor of it stays open. Returns one.
 */
static int share_watch(struct uprobes *u, struct err *e)
{
	CLEANUP(closep) int fd = shared_memory("uprobe-watch");
	void *m = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, sizeof(*u->watch)))
		m = mmap(NULL, sizeof(*u->watch), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (m == MAP_FAILED)
		return err_sys(e, "memory to share with the attacher of the probes");
	if (u->watch) {
		memcpy(m, u->watch, sizeof(*u->watch));
		munmap(u->watch, sizeof(*u->watch));
	}
	u->watch = m;
	return TAKE_FD(fd);
}

static int perf_type_of_uprobes(unsigned *type, struct err *e)
{
	static const char name[] = "/sys/bus/event_source/devices/uprobe/type";
	CLEANUP(fclosep) FILE *f = fopen(name, "re");

	if (!f)
		return err_sys(e, "this kernel has no uprobes: %s", name);
	return fscanf(f, "%u", type) == 1 ? 0 : err_set(e, -EBADMSG, "%s holds no number", name);
}

/* What stands in for a program where a group of a multi link has none. */
static int prepare_bare(struct uprobe_plan *p, const struct plan_set *s, struct err *e)
{
	bool bare = false;

	for (size_t i = 0; i < s->n; i++)
		bare |= !s->groups[i].prog;
	if (!bare || !p->multi || p->empty_fd >= 0)
		return 0;
	p->empty_fd = uprobe_empty_program();
	return p->empty_fd < 0 ? err_sys(e, "a BPF program that does nothing") : 0;
}

static void plan_set_free(struct plan_set *s)
{
	free(s->sites);
	free(s);
}
DEFINE_FREEP(struct plan_set, plan_set)

static void plan_free(struct uprobe_plan *p)
{
	if (!p)
		return;
	closep(&p->empty_fd);
	for (size_t i = 0; i < p->sets.n; i++)
		plan_set_free(p->sets.at[i]);
	vec_fini(&p->sets);
	free(p);
}
DEFINE_FREEP(struct uprobe_plan, plan)

/* ---- what the attacher is told ---- */

static int answer_of(struct uprobes *u, struct answer *a, struct err *e)
{
	int ret = attacher_answer(&u->attacher, a, sizeof(*a), e);

	if (ret)
		return ret;
	a->e.msg[sizeof(a->e.msg) - 1] = '\0';
	return a->ret ? err_set(e, a->ret, "%s", a->e.msg) : 0;
}

static int at_once(struct uprobes *u, const struct ask *ask, struct answer *a, struct err *e)
{
	int ret = attacher_ask(&u->attacher, ask, sizeof(*ask), 0, e);

	return ret ? ret : answer_of(u, a, e);
}

static int give(struct uprobes *u, const struct ask *ask, const int *fds, size_t nfds,
		struct err *e)
{
	struct answer a;
	int ret = attacher_give(&u->attacher, ask, sizeof(*ask), fds, nfds, e);

	return ret ? ret : answer_of(u, &a, e);
}

static int tell_shared(struct uprobes *u, struct err *e)
{
	const struct uprobe_plan *p = u->plan;
	CLEANUP(closep) int watch = share_watch(u, e);
	const int fds[] = { watch, p->open.map_fd };
	const struct ask ask = { .what = SHARE,
				 .share = { .windows = p->open.at != NULL,
					    .open_off = p->open.off,
					    .multi = p->multi,
					    .perf_type = p->perf_type } };

	return watch < 0 ? watch : give(u, &ask, fds, 1u + ask.share.windows, e);
}

/* Descriptors for the attacher: which of them are ours to close. */
struct parcel {
	int fds[ATTACHER_FDS];
	bool own[ATTACHER_FDS];
	size_t n;
};

static void parcel_fini(struct parcel *p)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->own[i])
			close(p->fds[i]);
}

static int32_t pack(struct parcel *p, int fd, bool own)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->fds[i] == fd)
			return (int32_t)i;
	p->fds[p->n] = fd;
	p->own[p->n] = own;
	return (int32_t)p->n++;
}

/* For reading; or O_PATH, where we may not read it. */
static int open_file(const char *path, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		fd = open(path, O_PATH | O_CLOEXEC);
	return fd < 0 ? err_sys(e, "%s, to probe it", path) : fd;
}

/* The files are opened here, because the attacher may see others under the same names. */
static int pack_group(const struct uprobe_plan *p, const struct plan_set *s, size_t i,
		      struct ask *ask, struct parcel *to, struct err *e)
{
	const struct uprobe_group *g = &s->groups[i];
	struct group_words *w = &ask->add.group[i];
	int prog = g->prog ? bpf_program__fd(g->prog) : p->empty_fd, file;

	*w = (struct group_words){ .sites = (uint32_t)g->n, .prog = -1, .counts = g->prog };
	if (prog >= 0)
		w->prog = pack(to, prog, false);
	for (size_t j = 0; j < i; j++)
		if (!strcmp(s->groups[j].path, g->path)) {
			w->file = ask->add.group[j].file;
			return 0;
		}
	file = open_file(g->path, e);
	if (file < 0)
		return file;
	w->file = pack(to, file, true);
	return 0;
}

/* A descriptor that holds the sites of all groups. */
static int pack_sites(const struct plan_set *s, struct parcel *to, struct err *e)
{
	int fd = shared_memory("uprobe-sites");
	size_t n = 0;

	if (fd < 0)
		return err_sys(e, "memory for the probes' sites");
	(void)pack(to, fd, true);
	for (size_t i = 0; i < s->n; i++)
		n += s->groups[i].n;
	if (write(fd, s->sites, n * sizeof(*s->sites)) != (ssize_t)(n * sizeof(*s->sites)))
		return err_sys(e, "memory for the probes' sites");
	return 0;
}

static int tell_set(struct uprobes *u, const struct plan_set *s, struct err *e)
{
	struct ask ask = { .what = ADD,
			   .tried = u->tried,
			   .set = s->id,
			   .add = { .pid = s->pid, .n = (uint32_t)s->n } };
	CLEANUP(parcel_fini) struct parcel to = { 0 };
	int ret = pack_sites(s, &to, e);

	for (size_t i = 0; !ret && i < s->n; i++)
		ret = pack_group(u->plan, s, i, &ask, &to, e);
	return ret ? ret : give(u, &ask, to.fds, to.n, e);
}

/* An added set whose file cannot be opened any more is left out. */
static int tell_again(struct uprobes *u, const struct plan_set *s, struct err *e)
{
	int ret = tell_set(u, s, e);

	return s->id && ret != -ECHILD ? 0 : ret;
}

/* Tells it all; nothing is attached then. */
static int start_attacher(struct uprobes *u, struct err *e)
{
	int ret = attacher_start(&u->attacher, u->all, 0, e);

	if (!ret)
		ret = tell_shared(u, e);
	for (size_t i = 0; !ret && i < u->plan->sets.n; i++)
		ret = tell_again(u, u->plan->sets.at[i], e);
	if (ret && ret != -ECHILD)
		(void)attacher_stop(&u->attacher);
	return ret;
}

static int plan_add(struct uprobe_plan *p, const struct uprobe_group *g, size_t n, pid_t pid,
		    struct err *e)
{
	CLEANUP(plan_set_freep) struct plan_set *s = calloc(1, sizeof(*s));
	struct plan_set **at;
	int ret;

	if (!s)
		return err_set(e, -ENOMEM, "no memory for probes");
	s->id = p->next_id++;
	s->pid = pid;
	ret = uprobe_groups_copy(s->groups, &s->sites, g, n, e);
	if (ret)
		return ret;
	s->n = n;
	ret = prepare_bare(p, s, e);
	for (size_t i = 0; !ret && i < n; i++)
		ret = cookies_put(g[i].prog, pid, g[i].sites, g[i].n, e);
	if (ret)
		return ret;
	at = vec_add(&p->sets, UPROBE_SETS_MAX);
	if (!at)
		return err_set(e, -E2BIG, "more than %d sets of probes", UPROBE_SETS_MAX);
	*at = TAKE(s);
	return 0;
}

static void plan_drop(struct uprobe_plan *p, unsigned id)
{
	size_t keep = 0;

	for (size_t i = 0; i < p->sets.n; i++) {
		if (p->sets.at[i]->id == id)
			plan_set_free(p->sets.at[i]);
		else
			p->sets.at[keep++] = p->sets.at[i];
	}
	p->sets.n = keep;
}

int uprobes_hold(struct uprobes *u, const struct uprobe_group *g, size_t n, bool multi, pid_t pid,
		 const struct uprobe_open *open, struct err *e)
{
	CLEANUP(plan_freep) struct uprobe_plan *p = calloc(1, sizeof(*p));
	int ret = 0;

	if (!p)
		return err_set(e, -ENOMEM, "no memory for probes");
	*p = (struct uprobe_plan){ .multi = multi, .empty_fd = -1 };
	if (open)
		p->open = *open;
	if (!multi)
		ret = perf_type_of_uprobes(&p->perf_type, e);
	if (!ret)
		ret = plan_add(p, g, n, pid, e);
	if (ret)
		return ret;
	u->plan = TAKE(p);
	ret = start_attacher(u, e);
	return ret == -ECHILD ? uprobes_mend(u, e) : ret;
}

/* An attacher that is found dead here is followed by another one, which attaches nothing. */
int uprobes_add(struct uprobes *u, const struct uprobe_group *g, size_t n, pid_t pid, unsigned *set,
		struct err *e)
{
	struct uprobe_plan *p = u->plan;
	int ret = plan_add(p, g, n, pid, e);

	if (ret)
		return ret;
	*set = p->next_id - 1;
	ret = tell_set(u, p->sets.at[p->sets.n - 1], e);
	if (ret && ret != -ECHILD)
		plan_drop(p, *set);
	return ret;
}

int uprobes_drop(struct uprobes *u, unsigned set, struct err *e)
{
	const struct ask ask = { .what = DROP, .set = set };
	struct answer a;

	BUG_ON(!set);
	plan_drop(u->plan, set);
	return at_once(u, &ask, &a, e);
}

int uprobes_failed(struct uprobes *u, unsigned set, struct err *e)
{
	const struct ask ask = { .what = FAILED, .set = set };
	struct answer a;

	return at_once(u, &ask, &a, e);
}

int uprobes_attach(struct uprobes *u, struct err *e)
{
	const struct ask ask = { .what = ATTACH, .tried = u->tried };
	struct answer a;

	return at_once(u, &ask, &a, e);
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

int uprobes_detach_soon(struct uprobes *u, struct err *e)
{
	const struct ask ask = { .what = DETACH, .tried = u->tried };

	return attacher_ask(&u->attacher, &ask, sizeof(ask), now_ns() + OVERDUE_NS, e);
}

int uprobes_detached(struct uprobes *u, uint64_t *work_ns, struct err *e)
{
	struct answer a;
	int ret = answer_of(u, &a, e);

	if (!ret && work_ns)
		*work_ns = a.windowed.work_ns;
	return ret;
}

int uprobes_detach(struct uprobes *u, uint64_t *work_ns, struct err *e)
{
	int ret = uprobes_detach_soon(u, e);

	return ret ? ret : uprobes_detached(u, work_ns, e);
}

int uprobes_window(struct uprobes *u, const struct uprobe_window *w, struct err *e)
{
	struct ask ask = { .what = WINDOW, .tried = u->tried, .window = *w };
	uint64_t now = now_ns(), open = w->open > now ? w->open : now;

	/* Before the attacher is asked: we may be stopped at any moment from then on. */
	if (w->keep_until)
		uprobes_until(u, w->keep_until);
	return attacher_ask(&u->attacher, &ask, sizeof(ask), open + w->end + OVERDUE_NS, e);
}

int uprobes_fd(struct uprobes *u)
{
	return attacher_fd(&u->attacher);
}

bool uprobes_answered(struct uprobes *u)
{
	return attacher_answered(&u->attacher);
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

uint64_t uprobes_dead(const struct uprobes *u)
{
	return attacher_dead(&u->attacher);
}

int uprobes_mend(struct uprobes *u, struct err *e)
{
	uint64_t until_ns = now_ns() + LIMIT_ATTACHER_MS * NS_PER_MS;
	const struct ask ask = { .what = MEND, .tried = u->tried };
	struct answer a;
	int ret = -ECHILD;

	for (int i = 0; ret == -ECHILD && i < UPROBES_MENDS; i++) {
		if (now_ns() > until_ns)
			return err_set(e, -ETIMEDOUT, "no process that keeps the probes answers");
		(void)attacher_stop(&u->attacher);
		u->deaths++;
		ret = start_attacher(u, e);
		if (!ret)
			ret = at_once(u, &ask, &a, e);
	}
	return ret;
}

int uprobes_come_and_go(struct uprobes *u, struct err *e)
{
	const struct ask ask = { .what = MEND, .tried = u->tried };

	return attacher_ask(&u->attacher, &ask, sizeof(ask), 0, e);
}

void uprobes_leave(struct uprobes *u)
{
	attacher_end(&u->attacher);
}

void uprobes_free(struct uprobes *u)
{
	for (int i = 0; i < UPROBES_MENDS && attacher_stop(&u->attacher) && u->plan; i++)
		if (uprobes_mend(u, NULL))
			break;
	(void)attacher_stop(&u->attacher);
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
