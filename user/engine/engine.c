/* user/engine/engine.c - slots for targets, and their lives within windows. */
#include "engine/engine.h"

#include <sys/epoll.h>
#include <time.h>

#include "base/nofile.h"
#include "base/vec.h"

enum { EVENTS = 64, LOOKS = 8 };

struct engine {
	struct collect_opts o;
	const struct engine_kind *kind;
	void *state;
	struct binaries binaries;
	VEC(struct engine_target *) at; /* all of this window */
	struct engine_target *slots[GPB_CPU_TARGETS];
	uint16_t generation[GPB_CPU_TARGETS];
	size_t on;   /* targets */
	size_t look; /* the target that is looked at next */
	int ep;
};

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts))
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- one target ---- */

static void target_forget(struct engine *en, struct engine_target *t)
{
	if (t->kept)
		en->kind->forget(en->state, t);
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

/* The part of the window that is its own begins. */
static void target_begin(struct engine_target *t)
{
	t->since_ns = now_ns(CLOCK_MONOTONIC);
	t->since_unix_ns = (int64_t)now_ns(CLOCK_REALTIME);
	t->base_ns = now_ns(t->clock);
	t->cpu_ns = t->until_ns = 0;
	t->cpu_exact = false;
}

/* The process' clock reads 0 when it is gone. */
static void target_read(struct engine_target *t)
{
	uint64_t ns = now_ns(t->clock);

	t->cpu_exact = ns >= t->base_ns && ns;
	if (t->cpu_exact)
		t->cpu_ns = ns - t->base_ns;
}

static void target_end(struct engine *en, struct engine_target *t, enum engine_state how)
{
	en->kind->remove(en->state, t);
	target_read(t);
	t->until_ns = now_ns(CLOCK_MONOTONIC);
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
		return err_set(e, -E2BIG, "more than %d processes at once", GPB_CPU_TARGETS);
	t->slot = (uint32_t)en->generation[i] << GPB_SLOT_GENERATION | i;
	target_begin(t);
	ret = en->kind->put(en->state, t, e);
	if (ret)
		return ret;
	t->nimages = t->subject->images.n;
	ret = watch(en, t->subject->target->pidfd, t, e);
	at = ret ? NULL : vec_add(&en->at, INT32_MAX);
	if (!at) {
		en->kind->remove(en->state, t);
		return ret ? ret : err_set(e, -ENOMEM, "no memory for a target");
	}
	*at = en->slots[i] = t;
	en->on++;
	return 0;
}

int engine_add(struct engine *en, pid_t pid, const struct engine_target **out, struct err *e)
{
	struct engine_target *t;
	int ret;

	if (target_of(en, pid))
		return err_set(e, -EEXIST, "pid %d is observed already", pid);
	t = calloc(1, sizeof(*t));
	if (!t)
		return err_set(e, -ENOMEM, "no memory for a target");
	ret = subject_open_shared(pid, &en->o, &en->binaries, &t->subject, e);
	if (!ret)
		ret = identify(t, pid, e);
	if (!ret)
		ret = enter(en, t, e);
	if (ret) {
		target_forget(en, t);
		binaries_trim(&en->binaries);
		return ret;
	}
	*out = t;
	return 0;
}

void engine_exec(struct engine *en, pid_t pid)
{
	struct engine_target *t = target_of(en, pid);

	if (t && target_alive(t->subject->target, NULL))
		target_end(en, t, t->subject->target->became ? ENGINE_BECAME : ENGINE_ENDED);
}

/* ---- the window ---- */

int engine_open(const struct collect_opts *o, const struct engine_kind *kind, unsigned expected,
		struct engine **out, struct err *e)
{
	CLEANUP(engine_freep) struct engine *en = calloc(1, sizeof(*en));
	int ret;

	if (!en)
		return err_set(e, -ENOMEM, "no memory for the engine");
	en->o = *o;
	en->kind = kind;
	nofile_raise();
	en->ep = epoll_create1(EPOLL_CLOEXEC);
	if (en->ep < 0)
		return err_sys(e, "epoll");
	ret = kind->open(o, expected, &en->state, e);
	if (!ret)
		ret = watch(en, kind->fd(en->state), NULL, e);
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
	if (en->state)
		en->kind->free(en->state);
	binaries_fini(&en->binaries);
	closep(&en->ep);
	free(en);
}

int engine_begin(struct engine *en, struct err *e)
{
	for (size_t i = 0; i < en->at.n; i++) {
		struct engine_target *t = en->at.at[i];

		/* What was kept of it went with the window before. */
		if (!t->kept && en->kind->put(en->state, t, NULL))
			target_end(en, t, ENGINE_ENDED);
		target_begin(t);
	}
	return en->kind->begin(en->state, e);
}

int engine_fd(const struct engine *en)
{
	return en->ep;
}

int engine_poll(struct engine *en, struct err *e)
{
	struct epoll_event ev[EVENTS];
	int n = epoll_wait(en->ep, ev, EVENTS, 0);

	for (int i = 0; i < n; i++) {
		struct engine_target *t = ev[i].data.ptr;
		int ret = t ? 0 : en->kind->poll(en->state, e);

		if (ret)
			return ret;
		if (t && t->state == ENGINE_ON)
			target_end(en, t, ENGINE_ENDED);
	}
	return 0;
}

/* An exec that nobody has told of, and plugins that were loaded. */
static void look_at(struct engine *en, struct engine_target *t)
{
	if (subject_alive(t->subject, NULL)) {
		target_end(en, t, t->subject->target->became ? ENGINE_BECAME : ENGINE_ENDED);
	} else if (t->subject->images.n != t->nimages) {
		en->kind->put(en->state, t, NULL);
		t->nimages = t->subject->images.n;
	}
}

int engine_tick(struct engine *en, struct err *e)
{
	for (size_t i = 0; i < en->at.n; i++)
		if (en->at.at[i]->state == ENGINE_ON)
			target_read(en->at.at[i]);
	for (int i = 0; i < LOOKS && en->at.n; i++) {
		struct engine_target *t = en->at.at[en->look++ % en->at.n];

		if (t->state == ENGINE_ON)
			look_at(en, t);
	}
	return en->kind->tick(en->state, en->on, e);
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

static void hand_over(struct engine *en, struct engine_target *t, engine_sink *sink, void *arg)
{
	CLEANUP(prof_freep) struct prof *p = NULL;
	struct err e = { "" };
	int ret = en->kind->profile(en->state, t, &p, &e);

	sink(arg, t, p, ret ? &e : NULL);
	if (t->kept)
		en->kind->forget(en->state, t);
	t->kept = NULL;
}

/* Their slots may be given to others: nothing of the old ones is left in the tables. */
static void forget_ended(struct engine *en)
{
	size_t n = 0;

	for (size_t i = 0; i < en->at.n; i++) {
		struct engine_target *t = en->at.at[i];
		uint32_t at = t->slot & ((1u << GPB_SLOT_GENERATION) - 1);

		if (t->state == ENGINE_ON) {
			en->at.at[n++] = t;
			continue;
		}
		en->slots[at] = NULL;
		en->generation[at]++;
		target_forget(en, t);
	}
	en->at.n = n;
	binaries_trim(&en->binaries);
}

int engine_reap(struct engine *en, engine_sink *sink, void *arg, struct err *e)
{
	int ret;

	if (en->at.n - en->on < ENGINE_REAP)
		return 0;
	ret = en->kind->drain(en->state, e);
	for (size_t i = 0; !ret && i < en->at.n; i++)
		if (en->at.at[i]->state != ENGINE_ON)
			hand_over(en, en->at.at[i], sink, arg);
	if (!ret)
		forget_ended(en);
	return ret;
}

int engine_end(struct engine *en, engine_sink *sink, void *arg, struct err *e)
{
	int ret;

	en->kind->stop(en->state);
	for (size_t i = 0; i < en->at.n; i++) {
		struct engine_target *t = en->at.at[i];

		if (t->state != ENGINE_ON)
			continue;
		target_read(t);
		t->until_ns = now_ns(CLOCK_MONOTONIC);
	}
	ret = en->kind->drain(en->state, e);
	for (size_t i = 0; !ret && i < en->at.n; i++)
		hand_over(en, en->at.at[i], sink, arg);
	if (!ret)
		ret = en->kind->done(en->state, e);
	forget_ended(en);
	return ret;
}
