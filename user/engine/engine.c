/* user/engine/engine.c - slots for targets, and their lives within windows. */
#include "engine/engine.h"

#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"
#include "base/sys/nofile.h"
#include "base/vec.h"
#include "probe/uprobes/attacher.h"
#include "sampling/own_work.h"

enum { EVENTS = 64, LOOKS = 2 };

/* Of the bound on what all kinds together may take of the targets' CPU time: probes' part; the rest is for clocks. */
#define PROBES_SHARE 0.9

/* And of the bound on our own work: that of looks at targets that are in windows. */

#define STRETCH_CPU_NS 1000000000ull /* what may be used of this may be used at once */

struct engine {
	struct collect_opts o;
	struct {
		const struct engine_kind *kind;
		void *state;
		uint64_t taken_ns; /* its, at at_stretch */
	} kinds[ENGINE_KINDS_MAX];
	size_t nkinds;
	struct binaries binaries;
	struct worker *worker; /* asks processes and their files; NULL: nobody does just now */
	struct target_pool awake;
	struct attacher_process *
		attachers; /* of all kinds' probes, where nobody has one for them; NULL: there is none */
	VEC(struct engine_target *) at; /* all of this window */
	struct engine_target *slots[GPB_CPU_TARGETS];
	uint16_t generation[GPB_CPU_TARGETS];
	size_t on;	       /* targets */
	size_t look;	       /* the target that is looked at next */
	uint64_t forgotten_ns; /* CPU time in this window of targets that are forgotten */
	/* when the window began, and when the clocks were slowed down last; both as if counted from 0 */
	struct engine_cost at_begin, at_stretch, cost;
	struct own_work own;
	unsigned left_ppm; /* what probes leave of what may be taken of the targets' CPU time */
	int ep;
};

/* ---- one target, and what kinds have of it ---- */

static void parts_forget(struct engine *en, struct engine_target *t)
{
	for (size_t k = 0; k < en->nkinds; k++) {
		struct engine_part *p = &t->part[k];

		if (p->kept)
			en->kinds[k].kind->forget(en->kinds[k].state, t, p->kept);
		p->kept = NULL;
	}
}

static void parts_remove(struct engine *en, struct engine_target *t)
{
	for (size_t k = 0; k < en->nkinds; k++)
		if (t->part[k].on)
			en->kinds[k].kind->remove(en->kinds[k].state, t);
}

/* A kind that cannot observe it is left out, and says why when there is memory for that. */
static void part_refused(struct engine_part *p, int ret, const struct err *why)
{
	p->for_good = ret == -ENOTSUP;
	p->why = malloc(sizeof(*p->why));
	if (p->why)
		*p->why = *why;
}

/* For those that read it. One that has gone in the meantime tells that itself. */
static void wake(struct engine *en, struct engine_target *t)
{
	bool reads = false;

	for (size_t k = 0; k < en->nkinds; k++)
		reads |= en->kinds[k].kind->reads;
	if (reads)
		target_wake(t->subject->target, NULL);
}

/*
 * Has all kinds observe it that have nothing of it yet. An error is the first kind's, when none can.
 */
static int parts_put(struct engine *en, struct engine_target *t, struct err *e)
{
	bool any = false;
	int first = 0;

	wake(en, t);
	for (size_t k = 0; k < en->nkinds; k++) {
		struct engine_part *p = &t->part[k];
		struct err why = { "" };
		int ret = 0;

		if (!p->kept && !p->why) {
			ret = en->kinds[k].kind->put(en->kinds[k].state, t, &p->kept, &why);
			p->on = !ret;
		}
		any |= p->on;
		if (!ret)
			continue;
		if (ret !=
		    -ESRCH) /* an end is no refusal: the other kinds have its profiles up to then */
			part_refused(p, ret, &why);
		if (!first)
			first = err_set(e, ret, "%s", why.msg);
	}
	return any ? 0 : first ?: -ENOTSUP;
}

/* A new window: what had no room, or took too long, may do by now. */
static void parts_retry(struct engine *en, struct engine_target *t)
{
	for (size_t k = 0; k < en->nkinds; k++) {
		struct engine_part *p = &t->part[k];

		if (p->for_good)
			continue;
		free(p->why);
		p->why = NULL;
	}
}

/* Its images are others now. */
static void parts_renew(struct engine *en, struct engine_target *t)
{
	for (size_t k = 0; k < en->nkinds; k++)
		if (t->part[k].on)
			en->kinds[k].kind->put(en->kinds[k].state, t, &t->part[k].kept, NULL);
}

static void target_forget(struct engine *en, struct engine_target *t)
{
	parts_forget(en, t);
	for (size_t k = 0; k < en->nkinds; k++)
		free(t->part[k].why);
	if (t->subject)
		subject_free(t->subject);
	free(t);
}

static int identify(struct engine_target *t, pid_t pid, struct err *e)
{
	const struct target *p = t->subject->target;
	const struct gobin_info *info = gobin_info(t->subject->bin);

	t->id = (struct engine_identity){ .pid = pid,
					  .started = target_started(p),
					  .comm = t->subject->comm,
					  .exe = p->exe,
					  .build_id = info->build_id,
					  .module = *info->module ? info->module : info->path,
					  .go_version = info->version };
	target_cgroup(p, t->id.cgroup, sizeof(t->id.cgroup));
	if (clock_getcpuclockid(pid, &t->clock))
		return err_set(e, -ESRCH, "pid %d: it has ended", pid);
	return 0;
}

int engine_tell_identity(const struct engine_target *t, struct prof *p, struct err *e)
{
	return prof_comment(p, e, "process: %s%s, started %lld, cgroup %s", t->id.exe,
			    t->subject->target->exe_deleted ? " (deleted or replaced since)" : "",
			    (long long)t->id.started, *t->id.cgroup ? t->id.cgroup : "?");
}

/* The part of the window that is its own begins. */
static void target_begin(struct engine_target *t)
{
	t->since_ns = now_ns();
	t->since_unix_ns = (int64_t)clock_ns(CLOCK_REALTIME);
	t->base_ns = clock_ns(t->clock);
	t->cpu_ns = t->until_ns = 0;
	t->cpu_exact = false;
}

/* The clock is found by the process' number, which another process may have by now. */
static void target_read(struct engine_target *t)
{
	uint64_t ns = clock_ns(t->clock);

	t->cpu_exact = ns >= t->base_ns && ns && target_has_number(t->subject->target);
	if (t->cpu_exact)
		t->cpu_ns = ns - t->base_ns;
}

static void target_end(struct engine *en, struct engine_target *t, enum engine_state how)
{
	target_read(t);
	parts_remove(en, t);
	t->until_ns = now_ns();
	t->state = how;
	epoll_ctl(en->ep, EPOLL_CTL_DEL, t->subject->target->pidfd, NULL);
	en->on--;
}

/* ---- slots ---- */

static uint32_t free_slot(const struct engine *en)
{
	uint32_t i = 0;

	while (i < GPB_CPU_TARGETS && en->slots[i])
		i++;
	return i;
}

static struct engine_target *target_of(const struct engine *en, pid_t pid)
{
	for (size_t i = 0; i < en->at.n; i++)
		if (en->at.at[i]->id.pid == pid && en->at.at[i]->state == ENGINE_ON)
			return en->at.at[i];
	return NULL;
}

static int watch(struct engine *en, int fd, struct engine_target *t, struct err *e)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = t };

	return epoll_ctl(en->ep, EPOLL_CTL_ADD, fd, &ev) ? err_sys(e, "cannot wait") : 0;
}

/* Gives @t a slot, and begins to observe it. */
static int enter(struct engine *en, struct engine_target *t, struct err *e)
{
	uint32_t i = free_slot(en);
	struct engine_target **at;
	int ret;

	if (i == GPB_CPU_TARGETS)
		return err_set(e, -E2BIG, "pid %d: more than %d processes at once", t->id.pid,
			       GPB_CPU_TARGETS);
	t->slot = (uint32_t)en->generation[i] << GPB_SLOT_GENERATION | i;
	target_begin(t);
	ret = parts_put(en, t, e);
	if (ret)
		return ret;
	t->nimages = t->subject->images.n;
	ret = watch(en, t->subject->target->pidfd, t, e);
	at = ret ? NULL : vec_add(&en->at, INT32_MAX);
	if (!at) {
		parts_remove(en, t);
		return ret ? ret : err_set(e, -ENOMEM, "no memory for a target");
	}
	*at = en->slots[i] = t;
	en->on++;
	return 0;
}

/* That it cannot be looked at just now does not end it. */
static bool is_over(const struct target *t, int alive)
{
	return alive == -ESRCH || t->became;
}

/* One whose exec or end nobody has told of is not in the way of what has its number now. */
static int is_new(struct engine *en, pid_t pid, struct err *e)
{
	struct engine_target *t = target_of(en, pid);

	if (t && is_over(t->subject->target, target_alive(t->subject->target, NULL)))
		target_end(en, t, t->subject->target->became ? ENGINE_BECAME : ENGINE_ENDED);
	return target_of(en, pid) ? err_set(e, -EEXIST, "pid %d is observed already", pid) : 0;
}

/* What was opened to understand it is closed: a host has many processes, and we have few descriptors. */
static int add(struct engine *en, struct subject *s, const struct engine_target **out,
	       struct err *e)
{
	struct engine_target *t = calloc(1, sizeof(*t));
	int ret;

	if (!t) {
		subject_free(s);
		return err_set(e, -ENOMEM, "no memory for a target");
	}
	t->subject = s;
	ret = identify(t, s->target->pid, e);
	if (!ret)
		ret = enter(en, t, e);
	if (ret) {
		target_forget(en, t);
	} else {
		target_rest(s->target);
		*out = t;
	}
	binaries_trim(&en->binaries);
	return ret;
}

int engine_add(struct engine *en, struct target *t, const struct golayout *known,
	       const struct engine_target **out, struct err *e)
{
	struct subject *s = NULL;
	int ret = is_new(en, t->pid, e);

	if (ret) {
		target_free(t);
	} else {
		target_by_worker(t, &en->worker);
		target_in_pool(t, &en->awake);
	}
	if (!ret)
		ret = subject_adopt(t, &en->o, &en->binaries, known, &s, e);
	return ret ? ret : add(en, s, out, e);
}

/* An exec up to opened_ns is the one that it was opened after. */
void engine_exec(struct engine *en, pid_t pid, uint64_t when_ns)
{
	struct engine_target *t = target_of(en, pid);
	struct target *p = t ? t->subject->target : NULL;

	if (!t)
		return;
	if (is_over(p, target_alive(p, NULL)))
		target_end(en, t, p->became ? ENGINE_BECAME : ENGINE_ENDED);
	else if (when_ns > p->opened_ns)
		target_end(en, t, ENGINE_BECAME);
}

/* ---- what it costs ---- */

/* A child that ends is counted by its maker, for a moment twice or not at all. */
static uint64_t own_ns(const struct engine *en)
{
	struct rusage r;
	uint64_t ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) +
		      attacher_process_cpu_ns(*en->o.attachers);

	if (getrusage(RUSAGE_CHILDREN, &r))
		return ns;
	return ns + (uint64_t)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000000u +
	       (uint64_t)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1000u;
}

static uint64_t taken_by(const struct engine *en, size_t k)
{
	const struct engine_kind *kind = en->kinds[k].kind;

	return kind->taken_ns ? kind->taken_ns(en->kinds[k].state) : 0;
}

static struct engine_cost cost_now(const struct engine *en)
{
	struct engine_cost c = { .lasted_ns = now_ns(),
				 .own_ns = own_ns(en),
				 .cpu_ns = en->forgotten_ns };

	for (size_t i = 0; i < en->at.n; i++)
		c.cpu_ns += en->at.at[i]->cpu_ns;
	for (size_t k = 0; k < en->nkinds; k++)
		c.taken_ns += taken_by(en, k);
	return c;
}

/* From @from to @to. */
static struct engine_cost cost_since(const struct engine_cost *from, const struct engine_cost *to)
{
	return (struct engine_cost){ .lasted_ns = to->lasted_ns - from->lasted_ns,
				     .own_ns = to->own_ns > from->own_ns ?
						       to->own_ns - from->own_ns :
						       0,
				     .cpu_ns = to->cpu_ns - from->cpu_ns,
				     .taken_ns = to->taken_ns - from->taken_ns };
}

static bool above(uint64_t used_ns, unsigned ppm, uint64_t cpu_ns)
{
	uint64_t of = cpu_ns > STRETCH_CPU_NS ? cpu_ns : STRETCH_CPU_NS;

	return ppm && (double)used_ns > (double)ppm / 1e6 * (double)of;
}

static void begin_stretch(struct engine *en, const struct engine_cost *now)
{
	en->at_stretch = *now;
	for (size_t k = 0; k < en->nkinds; k++)
		en->kinds[k].taken_ns = taken_by(en, k);
}

/* Probes keep to a budget of their own, in bursts. Who keeps to what they leave is not slowed down for them. */
static unsigned slow_down(struct engine *en, uint64_t cpu_ns)
{
	unsigned slowed = 0;

	for (size_t k = 0; k < en->nkinds; k++) {
		const struct engine_kind *kind = en->kinds[k].kind;

		if (kind->slow_down &&
		    above(taken_by(en, k) - en->kinds[k].taken_ns, en->left_ppm, cpu_ns))
			slowed += kind->slow_down(en->kinds[k].state);
	}
	return slowed;
}

/* A new stretch begins where something was slowed down: that it was above is over. */
static void keep_budget(struct engine *en)
{
	struct engine_cost now = cost_now(en), s = cost_since(&en->at_stretch, &now);
	unsigned before = en->cost.slowed, slowed;

	own_work_turn(&en->own, now.lasted_ns, now.own_ns);
	en->cost = cost_since(&en->at_begin, &now);
	en->cost.slowed = before;
	if (!above(s.taken_ns, en->o.host.taken_ppm, s.cpu_ns))
		return;
	slowed = slow_down(en, s.cpu_ns);
	if (slowed)
		begin_stretch(en, &now);
	en->cost.slowed += slowed;
}

static void begin_cost(struct engine *en)
{
	en->forgotten_ns = 0;
	en->at_begin = cost_now(en);
	begin_stretch(en, &en->at_begin);
	own_work_begin(&en->own, en->at_begin.lasted_ns, en->at_begin.own_ns);
	en->cost = (struct engine_cost){ 0 };
}

struct engine_cost engine_cost(const struct engine *en)
{
	return en->cost;
}

/* ---- the window ---- */

static int open_kind(struct engine *en, const struct engine_kind *kind, unsigned expected,
		     struct err *e)
{
	void *state = NULL;
	int ret, fd;

	for (size_t i = 0; i < en->nkinds; i++)
		if (en->kinds[i].kind == kind->with)
			state = en->kinds[i].state;
	ret = kind->open(kind, &en->o, expected, &state, e);
	if (ret)
		return ret;
	en->kinds[en->nkinds].kind = kind;
	en->kinds[en->nkinds++].state = state;
	fd = kind->fd(state);
	return fd < 0 ? 0 : watch(en, fd, NULL, e);
}

static bool is_first(const struct engine_kind *const *kinds, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (kinds[k] == kinds[i]->with)
			return false;
	return true;
}

/* Kinds that probe have equal parts of what probes may take. */
static void share_budget(struct engine *en, const struct engine_kind *const *kinds, size_t n)
{
	struct collect_opts *o = &en->o;
	unsigned probing = 0;

	en->own.ppm = o->host.own_ppm;
	o->host.own = &en->own;

	for (size_t i = 0; i < n; i++) {
		probing += kinds[i]->probes && is_first(kinds, i);
		en->own.parts += is_first(kinds, i) ? kinds[i]->readers : 0;
	}
	o->budget.ppm = (unsigned)(PROBES_SHARE * o->host.taken_ppm) / (probing ?: 1);
	en->left_ppm = o->host.taken_ppm - o->budget.ppm * probing;
}

static bool forget_file(void *arg, uint16_t number)
{
	struct engine *en = arg;
	bool all = true;

	for (size_t k = 0; k < en->nkinds; k++)
		if (en->kinds[k].kind->forget_file)
			all &= en->kinds[k].kind->forget_file(en->kinds[k].state, number);
	return all;
}

int engine_open(const struct collect_opts *o, const struct engine_kind *const *kinds, size_t n,
		unsigned expected, struct engine **out, struct err *e)
{
	CLEANUP(engine_freep) struct engine *en = calloc(1, sizeof(*en));
	int ret = 0;

	BUG_ON(n > ENGINE_KINDS_MAX);
	if (!en)
		return err_set(e, -ENOMEM, "no memory for the engine");
	en->o = *o;
	en->o.attachers = o->attachers ?: &en->attachers;
	en->binaries.forget = forget_file;
	en->binaries.arg = en;
	share_budget(en, kinds, n);
	nofile_raise();
	en->ep = epoll_create1(EPOLL_CLOEXEC);
	if (en->ep < 0)
		return err_sys(e, "epoll");
	for (size_t i = 0; !ret && i < n; i++)
		ret = open_kind(en, kinds[i], expected, e);
	if (ret)
		return ret;
	*out = TAKE(en);
	return 0;
}

void engine_free(struct engine *en)
{
	if (!en)
		return;
	for (size_t i = 0; i < en->at.n; i++)
		target_forget(en, en->at.at[i]);
	vec_fini(&en->at);
	for (size_t k = en->nkinds; k-- > 0;)
		en->kinds[k].kind->free(en->kinds[k].state);
	binaries_fini(&en->binaries);
	worker_free(en->worker);
	closep(&en->ep);
	free(en);
}

int engine_begin(struct engine *en, struct err *e)
{
	int ret = 0;

	for (size_t i = 0; i < en->at.n; i++) {
		struct engine_target *t = en->at.at[i];

		/* What was kept of it went with the window before. */
		parts_retry(en, t);
		if (parts_put(en, t, NULL))
			target_end(en, t, ENGINE_ENDED);
		target_rest(t->subject->target);
		target_begin(t);
	}
	for (size_t k = 0; !ret && k < en->nkinds; k++)
		ret = en->kinds[k].kind->begin(en->kinds[k].state, e);
	begin_cost(en);
	return ret;
}

int engine_fd(const struct engine *en)
{
	return en->ep;
}

int engine_poll(struct engine *en, struct err *e)
{
	struct epoll_event ev[EVENTS];
	int n = epoll_wait(en->ep, ev, EVENTS, 0), ret = 0;

	for (int i = 0; !ret && i < n; i++) {
		struct engine_target *t = ev[i].data.ptr;

		for (size_t k = 0; !t && !ret && k < en->nkinds; k++)
			ret = en->kinds[k].kind->poll(en->kinds[k].state, e);
		if (t && t->state == ENGINE_ON)
			target_end(en, t, ENGINE_ENDED);
	}
	return ret;
}

/* An exec that nobody has told of, and plugins that were loaded. */
static void look_at(struct engine *en, struct engine_target *t)
{
	int ret = subject_alive(t->subject, NULL);

	if (is_over(t->subject->target, ret)) {
		target_end(en, t, t->subject->target->became ? ENGINE_BECAME : ENGINE_ENDED);
	} else if (!ret && t->subject->images.n != t->nimages) {
		parts_renew(en, t);
		t->nimages = t->subject->images.n;
	}
}

int engine_tick(struct engine *en, struct err *e)
{
	int ret = 0;

	for (size_t i = 0; i < en->at.n; i++)
		if (en->at.at[i]->state == ENGINE_ON)
			target_read(en->at.at[i]);
	binaries_trim(&en->binaries);
	for (int i = 0; i < LOOKS && en->at.n; i++) {
		struct engine_target *t = en->at.at[en->look++ % en->at.n];

		if (t->state == ENGINE_ON)
			look_at(en, t);
	}
	for (size_t k = 0; !ret && k < en->nkinds; k++)
		ret = en->kinds[k].kind->tick(en->kinds[k].state, en->on, e);
	keep_budget(en);
	return ret;
}

bool engine_is_full(const struct engine *en)
{
	return free_slot(en) == GPB_CPU_TARGETS;
}

size_t engine_targets(const struct engine *en)
{
	return en->on;
}

size_t engine_ntargets(const struct engine *en)
{
	return en->at.n;
}

const struct engine_target *engine_target_at(const struct engine *en, size_t i)
{
	return en->at.at[i];
}

static bool is_probed(const struct engine *en, size_t k, const struct engine_part *p)
{
	const struct engine_kind *kind = en->kinds[k].kind;

	return p->on && p->kept && kind->probed && kind->probed(p->kept);
}

static const struct prof *first_of(const struct engine *en, size_t k, const struct engine_part *p)
{
	const struct engine_kind *kind = en->kinds[k].kind;

	return p->on && p->kept && kind->first ? kind->first(en->kinds[k].state, p->kept) : NULL;
}

static void hand_over(struct engine *en, struct engine_target *t, engine_sink *sink, void *arg)
{
	struct engine_result results[ENGINE_KINDS_MAX] = { 0 };
	struct err e[ENGINE_KINDS_MAX] = { 0 };

	wake(en, t);
	for (size_t k = 0; k < en->nkinds; k++) {
		struct engine_part *p = &t->part[k];
		struct prof *prof = NULL;
		int ret = p->on ? en->kinds[k].kind->profile(en->kinds[k].state, t, p->kept, &prof,
							     &e[k]) :
				  0;

		results[k] = (struct engine_result){ .prof = prof,
						     .failed = ret ? &e[k] : p->why,
						     .refused = !p->on,
						     .probed = is_probed(en, k, p),
						     .first = first_of(en, k, p) };
	}
	sink(arg, t, results);
	t->handed_over = t->state != ENGINE_ON;
	for (size_t k = 0; k < en->nkinds; k++)
		prof_free(results[k].prof);
	parts_forget(en, t);
	target_rest(t->subject->target);
}

static int drain(struct engine *en, struct err *e)
{
	int ret = 0;

	for (size_t k = 0; !ret && k < en->nkinds; k++)
		ret = en->kinds[k].kind->drain(en->kinds[k].state, e);
	return ret;
}

/* So long the kernel may take to tell the rest of a process that has ended. */
#define TELLS_NS (NS_PER_S / 2)

static bool awaits(const struct engine *en, const struct engine_target *t)
{
	bool any = false;

	for (size_t k = 0; k < en->nkinds && t->state != ENGINE_ON; k++)
		any |= t->part[k].kept && en->kinds[k].kind->awaits &&
		       en->kinds[k].kind->awaits(en->kinds[k].state, t);
	return any && now_ns() - t->until_ns < TELLS_NS;
}

/* Where one ended just before the window did. */
static void await_all(const struct engine *en)
{
	const struct timespec step = { .tv_nsec = NS_PER_S / 200 };

	for (size_t i = 0; i < en->at.n; i++)
		while (awaits(en, en->at.at[i]))
			nanosleep(&step, NULL);
}

/* Their slots may be given to others: nothing of the old ones is left in the tables. */
static void forget_ended(struct engine *en, bool awaited_too)
{
	size_t n = 0;

	for (size_t i = 0; i < en->at.n; i++) {
		struct engine_target *t = en->at.at[i];
		uint32_t at = t->slot & ((1u << GPB_SLOT_GENERATION) - 1);

		if (t->state == ENGINE_ON || !(t->handed_over || awaited_too)) {
			en->at.at[n++] = t;
			continue;
		}
		en->forgotten_ns += t->cpu_ns;
		en->slots[at] = NULL;
		en->generation[at]++;
		target_forget(en, t);
	}
	en->at.n = n;
	binaries_trim(&en->binaries);
}

static bool is_ready(const struct engine *en, const struct engine_target *t)
{
	return t->state != ENGINE_ON && !awaits(en, t);
}

static bool any_ready(const struct engine *en)
{
	for (size_t i = 0; i < en->at.n; i++)
		if (is_ready(en, en->at.at[i]))
			return true;
	return false;
}

int engine_reap(struct engine *en, size_t least, engine_sink *sink, void *arg, struct err *e)
{
	int ret;

	if (en->at.n - en->on < least || !any_ready(en))
		return 0;
	ret = drain(en, e);
	for (size_t i = 0; !ret && i < en->at.n; i++)
		if (is_ready(en, en->at.at[i]))
			hand_over(en, en->at.at[i], sink, arg);
	if (!ret)
		forget_ended(en, false);
	return ret;
}

const struct engine_shared *engine_shared(const struct engine *en, size_t kind, size_t *n)
{
	const struct engine_kind *k = en->kinds[kind].kind;

	*n = 0;
	return k->shared ? k->shared(en->kinds[kind].state, n) : NULL;
}

/* Probes are taken out after that, which may take seconds: no CPU time of them is in the window. */
static void close_window(struct engine *en)
{
	for (size_t i = 0; i < en->at.n; i++) {
		struct engine_target *t = en->at.at[i];

		if (t->state != ENGINE_ON)
			continue;
		target_read(t);
		t->until_ns = now_ns();
	}
	for (size_t k = 0; k < en->nkinds; k++)
		if (en->kinds[k].kind->close)
			en->kinds[k].kind->close(en->kinds[k].state);
}

int engine_end(struct engine *en, engine_sink *sink, void *arg, struct err *e)
{
	uint64_t closed_ns = now_ns();
	int ret;

	close_window(en);
	for (size_t k = 0; k < en->nkinds; k++)
		if (en->kinds[k].kind->stop)
			en->kinds[k].kind->stop(en->kinds[k].state);
	keep_budget(en);
	en->cost.lasted_ns = closed_ns - en->at_begin.lasted_ns;
	ret = drain(en, e);
	await_all(en);
	for (size_t i = 0; !ret && i < en->at.n; i++)
		hand_over(en, en->at.at[i], sink, arg);
	for (size_t k = 0; !ret && k < en->nkinds; k++)
		ret = en->kinds[k].kind->done(en->kinds[k].state, e);
	forget_ended(en, true);
	return ret;
}
