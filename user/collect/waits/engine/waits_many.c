/* user/collect/waits/engine/waits_many.c - parts of probed waits, the table that they share, and looks. */
#include "collect/waits/engine/waits_many.h"

#include <assert.h>
#include <bpf/libbpf.h>
#include <time.h>

#include "base/clock.h"
#include "probe/quota.h"

/* The parts of our own work that looks have, and readings of the runtimes' counts. */
enum { LOOKS_PARTS = 2, COUNTS_PARTS = 2 };
static_assert(LOOKS_PARTS + COUNTS_PARTS == WAITS_READERS, "");

enum { SWEEP_TICKS = 50 };

static struct wait_engine *engine_of(void *part)
{
	return ((struct waits_part *)part)->engine;
}

/* ---- the table of goroutines ---- */

/* Is it a goroutine of a target that has gone? Nothing of those is added any more. */
static bool is_gone(void *arg, uint32_t slot, uint64_t last)
{
	const struct waits_many *m = arg;
	struct set_member *k = probed_member(&m->probed, slot);

	return !k || last < ((struct waits_part *)k->part)->from;
}

static void tend_table(struct waits_many *m)
{
	if (!m->quota)
		return;
	if (m->shared != m->probed.nprobed) {
		m->shared = m->probed.nprobed;
		*m->quota = quota_of(GPB_WAITS, (size_t)libbpf_num_possible_cpus(), m->shared);
	}
	if (!m->gone || ++m->ticks < SWEEP_TICKS)
		return;
	m->ticks = 0;
	m->gone = false;
	wait_table_sweep(&m->table, is_gone, m);
}

/* ---- a target's part ---- */

int waits_part_new(struct waits_many *m, struct engine_target *t, void **part, struct err *e)
{
	struct waits_part *k = calloc(1, sizeof(*k));

	if (!k)
		return err_set(e, -ENOMEM, "no memory for a target");
	k->m = m;
	k->t = t;
	*part = k;
	return 0;
}

/* For one more distinct stack in its profile. */
static bool has_room(void *part)
{
	const struct waits_part *k = part;
	const struct probed *p = &k->m->probed;

	return demux_has_room(&p->demux, &probed_member(p, k->at)->d);
}

static bool labels_fit(void *part, const struct gpb_rec_labels *rec, size_t len)
{
	struct waits_part *k = part;
	struct probed *p = &k->m->probed;

	return demux_labels_fit(&p->demux, &probed_member(p, k->at)->d, rec, len);
}

int waits_part_slot(struct waits_part *k, uint32_t at, __u64 *from, struct err *e)
{
	struct probed *p = &k->m->probed;

	k->at = at;
	k->from = *from = now_ns();
	k->engine->room = has_room;
	k->engine->room_arg = k;
	k->engine->labels_room = (struct labels_room){ labels_fit, k };
	k->engine->looked.pair = &k->t->looked;
	wait_engine_share(k->engine, at, &p->demux.reports, p->sets.o->attachers, p->sets.ep);
	return wait_engine_target(k->engine, e);
}

int64_t waits_part_add(void *part, const struct gpb_hash *key, const struct gpb_stack *st,
		       bool room)
{
	struct wait_engine *w = engine_of(part);
	int ret = w->kind->add(w->arg, st, NULL);

	(void)key;
	(void)room; /* it is asked when the stack is as it is filed */
	return ret ? ret : (int64_t)w->tally.entries.n;
}

static int hit_cost(void *part, struct attacher_process **attachers, struct hit_cost *out,
		    struct cost_probes **rest, struct err *e)
{
	const struct wait_engine *w = engine_of(part);

	(void)attachers; /* it has them */
	return w->kind->hit_cost(w->arg, out, rest, e);
}

/* ---- stretches ---- */

static int joined(void *part, struct err *e)
{
	return wait_engine_put(engine_of(part), e);
}

/* One that comes while there are windows is looked at from then on. */
static int turn(void *part, const struct probe_set *s, const struct set_turn *t, struct err *e)
{
	struct waits_part *k = part;
	uint64_t since = t->since > k->from ? t->since : k->from;

	if (k->gone)
		return 0;
	k->engine->probing = s->probing;
	k->m->due_ns = 0;
	return wait_engine_turn(k->engine, t->windows, since, t->hit_ns, t->window_ns, e);
}

static void before(void *part, const struct stretch *st)
{
	wait_engine_before(engine_of(part), st);
}

static int after(void *part, const struct stretch *st, struct err *e)
{
	return wait_engine_after(engine_of(part), st, e);
}

static void ending(void *part)
{
	wait_engine_unwatch(engine_of(part));
}

static void leaves(void *part, const struct stretch *last)
{
	ending(part);
	if (!last)
		return;
	before(part, last);
	(void)after(part, last, NULL);
}

/* ---- looks from outside ---- */

/* Calls @each for all targets that are in windows. Returns how many they are. */
static size_t each_windowed(struct waits_many *m, void (*each)(struct set_member *k, uint64_t arg),
			    uint64_t arg)
{
	size_t n = 0;

	for (size_t i = 0; i < GPB_SETS; i++) {
		struct probe_set *s = m->probed.sets.at[i];

		if (!s || !s->turned || !s->turn.windows || s->ended_ns)
			continue;
		for (size_t k = 0; k < s->members.n; k++, n++)
			if (each)
				each(s->members.at[k], arg);
	}
	return n;
}

/* One that has gone, or does not answer, is told by its end. */
static void watch_now(struct set_member *k, struct waits_part *part)
{
	struct target *t = k->t->subject->target;
	uint64_t cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	int ret = target_wake(t, &part->why);

	if (ret && ret != -ESRCH && !t->silent)
		part->failed = ret;
	else if (!ret)
		part->failed = ret = wait_engine_watch(part->engine, &part->why);
	if (ret)
		wait_engine_look_no_more(part->engine);
	part->m->probed.o.host.own->read_ns += clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
}

/* Of hundreds few have something to do each time that somebody wakes us. */
static void watch(struct set_member *k, uint64_t now)
{
	struct waits_part *part = k->part;
	uint64_t due;

	if (!k->on || part->failed)
		return;
	due = wait_engine_due(part->engine);
	if (due && due <= now) {
		watch_now(k, part);
		due = wait_engine_due(part->engine);
	}
	if (due && due < part->m->due_ns)
		part->m->due_ns = due;
}

/* Nobody else may wake us in time: a storm between two windows must not be hidden in a step that lasts much longer. */
static void watch_all(struct waits_many *m)
{
	uint64_t now = now_ns(), soon;

	wake_timer_heard(&m->timer, now);
	if (now < m->due_ns)
		return;
	m->due_ns = UINT64_MAX;
	each_windowed(m, watch, now);
	/* Looks, which have timers of their own, are not put off. */
	soon = now + RUN_STEP_NS;
	wake_timer_set(&m->timer, m->due_ns > soon ? m->due_ns : soon);
}

static void add_cost(struct set_member *k, uint64_t n)
{
	struct waits_part *part = k->part;

	(void)n;
	part->m->count_ns += wait_engine_count_ns(part->engine);
}

/*
 * Looks are our own work: at all targets together they take their parts of that, and never more than at one. The more there are
 * in windows, the less often each is looked at, and its count read.
 */
static void set_share(struct set_member *k, uint64_t n)
{
	const struct waits_many *m = ((struct waits_part *)k->part)->m;
	double part = m->probed.o.host.own->part, all = part * LOOKS_PARTS;

	if (all <= 0 || all > LOOKS_SHARE_MOST)
		all = LOOKS_SHARE_MOST;
	wait_engine_look_seldom(engine_of(k->part), all / (double)n,
				part > 0 ? (uint64_t)(m->count_ns / (part * COUNTS_PARTS)) : 0);
}

static void share_looks(struct waits_many *m)
{
	m->count_ns = 0;
	each_windowed(m, set_share, each_windowed(m, add_cost, 0));
	m->due_ns = 0;
}

/* ---- all of them ---- */

int waits_many_open(struct waits_many *m, const struct probed_kind *kind, void *arg,
		    const struct collect_opts *o, unsigned expected, struct err *e)
{
	struct set_kind *set = &m->kind.set;
	int ret;

	m->kind = *kind;
	set->parts = WAIT_PARTS;
	set->watched = true;
	set->hit_cost = hit_cost;
	set->joined = joined;
	set->turn = turn;
	set->before = before;
	set->after = after;
	set->ending = ending;
	set->leaves = leaves;
	ret = wake_timer_open(&m->timer, e);
	if (!ret)
		ret = probed_open(&m->probed, &m->kind, arg, o, expected, e);
	return ret ? ret : probed_watch(&m->probed, m->timer.fd, e);
}

void waits_many_fini(struct waits_many *m)
{
	wake_timer_close(&m->timer);
	probed_fini(&m->probed);
}

int waits_many_poll(void *state, struct err *e)
{
	struct waits_many *m = state;
	int ret = probed_poll(&m->probed, e);

	if (!ret)
		watch_all(m);
	return ret;
}

int waits_many_add(struct waits_many *m, struct engine_target *t, struct set_member **out,
		   struct err *e)
{
	int ret = probed_add(&m->probed, t, out, e);

	if (!ret)
		tend_table(m);
	return ret;
}

void waits_many_remove(void *state, struct engine_target *t)
{
	struct waits_many *m = state;

	/* Its timer would wake us for ever, and nobody reads it any more. */
	for (uint32_t i = 0; i < m->probed.slots; i++) {
		struct set_member *k = probed_member(&m->probed, i);

		if (!k || k->t != t)
			continue;
		((struct waits_part *)k->part)->gone = true;
		wait_engine_look_no_more(engine_of(k->part));
	}
	probed_remove(&m->probed, t);
	m->gone = true;
}

void waits_many_forget(struct waits_many *m, struct set_member *k)
{
	probed_forget(&m->probed, k);
	m->gone = true;
}

int waits_many_begin(void *state, struct err *e)
{
	struct waits_many *m = state;

	(void)e;
	tend_table(m);
	probed_begin(&m->probed);
	share_looks(m);
	return 0;
}

int waits_many_tick(void *state, size_t targets, struct err *e)
{
	struct waits_many *m = state;

	(void)targets;
	tend_table(m);
	share_looks(m);
	return probed_tick(&m->probed, e);
}

int waits_many_finish(struct waits_many *m, struct set_member *k, struct probed_part *part,
		      struct err *e)
{
	struct waits_part *own = k->part;
	int ret = probed_finish(&m->probed, k, part, e);

	if (!ret && own->failed)
		ret = err_set(e, own->failed, "%s", own->why.msg);
	if (!ret)
		own->engine->probing = k->set->probing;
	return ret;
}
