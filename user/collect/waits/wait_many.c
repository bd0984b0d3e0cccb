/* user/collect/waits/wait_many.c - the part that each of many targets has of the probes on changes of a goroutine's status. */
#include "collect/waits/wait_many.h"

#include <bpf/libbpf.h>
#include <time.h>

#include "collect/waits/wait_priv.h"
#include "collect/waits/wait_table.h"
#include "engine/probed.h"
#include "probe/bpf.h"
#include "probe/quota.h"

/* Looks from outside are our own work: at all targets together they take so much of --host-budget's first bound, and never more than at one. */
#define LOOKS_SHARE 0.5

/* The runtime's counts of so many are read at the pace of one target's; of more each less often. */
#define COUNTED_OFTEN 4.0

enum { SWEEP_TICKS = 50 };

struct many {
	struct probed probed;
	struct wait_bpf *obj;
	size_t shared;	/* the quota of goroutines is for so many targets */
	bool gone;	/* goroutines of some that have gone may still be in the table */
	unsigned ticks; /* since those were taken out */
};

/* What is probed of a target. */
struct part {
	struct many *m;
	struct wait *w; /* owned */
	struct engine_target *t;
	uint32_t at; /* its slot */
	int failed;  /* why its looks, and with them its numbers, are broken: */
	struct err why;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static struct wait_engine *engine_of(void *part)
{
	return &((struct part *)part)->w->window.engine;
}

/* ---- the object ---- */

static int object_open(void *arg, struct probed *p, uint32_t slots, uint32_t pidns_ino,
		       struct err *e)
{
	struct many *m = arg;
	int ret = wait_object_open(&m->obj, true, slots, true, e);

	if (ret)
		return ret;
	m->obj->rodata->pidns_ino = pidns_ino;
	probed_size(p, m->obj->maps.ring, m->obj->maps.stacks);
	ret = wait_bpf__load(m->obj);
	if (ret)
		return bpf_load_error(e, ret, NULL);
	p->object = PROBED_OBJECT(m->obj);
	return 0;
}

static void object_close(void *arg)
{
	struct many *m = arg;

	wait_bpf__destroy(m->obj);
	m->obj = NULL;
}

/* Goroutines of the slot's last target are told from new ones by gpb_waiting.from. */
static int slot_clear(void *arg, uint32_t at, struct err *e)
{
	struct many *m = arg;

	m->obj->bss->wait_counted[at] = 0;
	return probed_zero(m->obj->maps.seen, at, e);
}

/* ---- the table of goroutines ---- */

/* Is it a goroutine of a target that has gone? Nothing of those is added any more. */
static bool is_gone(void *arg, uint32_t slot, uint64_t since)
{
	const struct many *m = arg;
	struct set_member *k = probed_member(&m->probed, slot);

	return !k || since < ((struct part *)k->part)->w->window.conf.from;
}

static void tend_table(struct many *m)
{
	struct wait_table t;

	if (!m->obj)
		return;
	t = (struct wait_table){ .fd = bpf_map__fd(m->obj->maps.standings),
				 .of = m->obj->bss->standings_of,
				 .all = (__u64 *)&m->obj->bss->standings_all };
	if (m->shared != m->probed.nprobed) {
		m->shared = m->probed.nprobed;
		m->obj->bss->standings_quota =
			quota_of(GPB_WAITS, (size_t)libbpf_num_possible_cpus(), m->shared);
	}
	if (!m->gone || ++m->ticks < SWEEP_TICKS)
		return;
	m->ticks = 0;
	m->gone = false;
	wait_table_sweep(&t, is_gone, m);
}

/* ---- a target's part ---- */

static int part_new(void *arg, struct engine_target *t, void **part, struct loss **loss,
		    struct err *e)
{
	struct part *k = calloc(1, sizeof(*k));
	struct many *m = arg;
	int ret;

	if (!k)
		return err_set(e, -ENOMEM, "no memory for a target");
	*part = k;
	k->m = m;
	k->t = t;
	ret = wait_new(t->subject, &m->probed.o, &k->w, e);
	if (!ret)
		*loss = &k->w->loss;
	return ret;
}

/* For one more distinct stack in its profile. */
static bool has_room(void *part)
{
	const struct part *k = part;
	const struct probed *p = &k->m->probed;

	return demux_has_room(&p->demux, &probed_member(p, k->at)->d);
}

static int part_slot(void *part, uint32_t at, struct err *e)
{
	struct part *k = part;
	struct probed *p = &k->m->probed;
	struct wait_engine *en = engine_of(part);

	k->at = at;
	k->w->obj = k->m->obj;
	k->w->window.conf.from = now_ns();
	en->object = wait_object_of(k->m->obj, true);
	en->room = has_room;
	en->room_arg = k;
	wait_engine_share(en, at, &p->demux.feed, &p->sets.keepers, p->sets.ep);
	return wait_engine_target(en, e);
}

static void part_free(void *part)
{
	struct part *k = part;

	if (k)
		wait_free(k->w);
	free(k);
}

static int64_t add(void *part, const struct gpb_stack *st, bool room)
{
	int ret = wait_window_add(&((struct part *)part)->w->window, st, NULL);

	(void)room; /* it is asked when the stack is as it is filed */
	return ret ? ret : (int64_t)engine_of(part)->tally.entries.n;
}

/* ---- the sites of a file ---- */

struct site_list {
	struct uprobe_group group;
	struct uprobe_site at[WAITSITES_MAX];
};

static int find(void *part, uint32_t index, void **list, struct uprobe_group **groups, size_t *n,
		void **sites, struct err *e)
{
	struct wait *w = ((struct part *)part)->w;
	struct site_list *l = *list = calloc(1, sizeof(*l));
	size_t *nsites = *sites = calloc(1, sizeof(*nsites));
	int ret;

	if (!l || !nsites)
		return err_set(e, -ENOMEM, "no memory for probes");
	ret = wait_sites_in(w, 0, index, l->at, e);
	if (ret < 0)
		return ret;
	*nsites = w->nsites = (size_t)ret;
	l->group = (struct uprobe_group){ .prog = w->obj->progs.wait_status,
					  .sites = l->at,
					  .n = *nsites };
	*groups = &l->group;
	*n = 1;
	return 0;
}

static void found(void *part, void *sites)
{
	((struct part *)part)->w->nsites = *(const size_t *)sites;
}

static int price(void *part, struct keeper_process **keepers, struct price *out,
		 struct pricing **rest, struct err *e)
{
	const struct wait_engine *en = engine_of(part);

	(void)keepers; /* it has them */
	return en->kind->price(en->arg, out, rest, e);
}

/* ---- stretches ---- */

static int joined(void *part, struct err *e)
{
	return wait_engine_put(engine_of(part), e);
}

/* One that comes while there are windows is looked at from then on. */
static int turn(void *part, const struct probe_set *s, const struct set_turn *t, struct err *e)
{
	struct part *k = part;
	uint64_t from = k->w->window.conf.from, since = t->since > from ? t->since : from;

	engine_of(part)->probing = s->probing;
	return wait_engine_turn(engine_of(part), t->windows, since, t->hit_ns, t->window_ns, e);
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

static const struct probed_kind waits = {
	.set = { .what = "wait",
		 .parts = { .begin_ns = WAIT_BEGIN_NS,
			    .end_ns = WAIT_END_NS,
			    .most_ns = WAIT_MOST_NS },
		 .find = find,
		 .found = found,
		 .price = price,
		 .joined = joined,
		 .turn = turn,
		 .before = before,
		 .after = after,
		 .ending = ending,
		 .leaves = leaves },
	.open = object_open,
	.close = object_close,
	.clear = slot_clear,
	.part_new = part_new,
	.part_slot = part_slot,
	.part_free = part_free,
	.add = add,
};

/* ---- looks from outside ---- */

/* Calls @each for all targets that are in windows. Returns how many they are. */
static size_t each_windowed(struct many *m, void (*each)(struct set_member *k, size_t arg),
			    size_t arg)
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

/* One that has gone is told by its end. */
static void watch(struct set_member *k, size_t unused)
{
	struct part *part = k->part;

	(void)unused;
	if (!k->on || part->failed || target_wake(k->t->subject->target, NULL))
		return;
	part->failed = wait_engine_watch(engine_of(part), &part->why);
}

/* The more there are in windows, the less often each is looked at. */
static void set_share(struct set_member *k, size_t n)
{
	const struct many *m = ((struct part *)k->part)->m;
	double all = LOOKS_SHARE * m->probed.o.host_own_ppm / 1e6;

	if (!m->probed.o.host_own_ppm || all > LOOKS_SHARE_MOST)
		all = LOOKS_SHARE_MOST;
	wait_engine_look_seldom(engine_of(k->part), all / (double)n, (double)n / COUNTED_OFTEN);
}

static void share_looks(struct many *m)
{
	each_windowed(m, set_share, each_windowed(m, NULL, 0));
}

/* ---- the kind ---- */

static void many_free(void *state)
{
	struct many *m = state;

	probed_fini(&m->probed);
	free(m);
}

static void many_freep(struct many **m)
{
	if (*m)
		many_free(*m);
}

static int many_open(const struct engine_kind *kind, const struct collect_opts *o,
		     unsigned expected, void **state, struct err *e)
{
	CLEANUP(many_freep) struct many *m = calloc(1, sizeof(*m));
	struct collect_opts own = *o;
	int ret;

	(void)kind;
	if (!m)
		return err_set(e, -ENOMEM, "no memory");
	own.fine_wait = false; /* what many samples cost us is not in a target's budget */
	ret = probed_open(&m->probed, &waits, m, &own, expected, e);
	if (ret)
		return ret;
	*state = TAKE(m);
	return 0;
}

static int many_fd(void *state)
{
	return probed_fd(&((struct many *)state)->probed);
}

static int many_poll(void *state, struct err *e)
{
	struct many *m = state;
	int ret = probed_poll(&m->probed, e);

	if (!ret)
		each_windowed(m, watch, 0);
	return ret;
}

static int many_put(void *state, struct engine_target *t, void **kept, struct err *e)
{
	struct many *m = state;
	struct set_member *k = *kept;
	int ret;

	if (k) /* a plugin came, whose stacks are walked, too */
		return wait_engine_target(engine_of(k->part), e);
	ret = probed_add(&m->probed, t, &k, e);
	if (ret)
		return ret;
	*kept = k;
	tend_table(m);
	return 0;
}

static void many_remove(void *state, struct engine_target *t)
{
	struct many *m = state;

	probed_remove(&m->probed, t);
	m->gone = true;
}

static void many_forget(void *state, struct engine_target *t, void *kept)
{
	struct many *m = state;

	(void)t;
	probed_forget(&m->probed, kept);
	m->gone = true;
}

static int many_begin(void *state, struct err *e)
{
	struct many *m = state;

	(void)e;
	tend_table(m);
	probed_begin(&m->probed);
	share_looks(m);
	return 0;
}

static int many_tick(void *state, size_t targets, struct err *e)
{
	struct many *m = state;

	(void)targets;
	tend_table(m);
	share_looks(m);
	return probed_tick(&m->probed, e);
}

static uint64_t many_taken_ns(void *state)
{
	return probed_taken_ns(&((struct many *)state)->probed);
}

static void many_stop(void *state)
{
	probed_stop(&((struct many *)state)->probed);
}

static int many_drain(void *state, struct err *e)
{
	return probed_drain(&((struct many *)state)->probed, e);
}

static int many_profile(void *state, struct engine_target *t, void *kept, struct prof **out,
			struct err *e)
{
	struct many *m = state;
	struct set_member *k = kept;
	struct part *own = k->part;
	struct wait *w = own->w;
	struct probed_part part;
	int ret = probed_finish(&m->probed, k, &part, e);

	(void)t;
	if (!ret && own->failed)
		ret = err_set(e, own->failed, "%s", own->why.msg);
	if (ret)
		return ret;
	w->window.engine.probing = k->set->probing;
	w->start = (uint64_t)part.start_ns;
	w->end = (uint64_t)part.end_ns;
	w->start_unix_ns = part.start_unix_ns;
	wait_engine_end(&w->window.engine);
	ret = wait_finish(w, e);
	if (ret)
		return ret;
	wait_engine_lost(&w->window.engine, k->d.left, &w->loss);
	ret = probed_tell(&m->probed, k, w->out.prof, e);
	if (!ret)
		*out = wait_prof_take(&w->out);
	return ret;
}

static int many_done(void *state, struct err *e)
{
	return probed_done(&((struct many *)state)->probed, e);
}

static const struct engine_shared *many_shared(void *state, size_t *n)
{
	return probed_shared(&((struct many *)state)->probed, n);
}

const struct engine_kind engine_wait = {
	.name = "wait",
	.reads = true,
	.probes = true,
	.open = many_open,
	.free = many_free,
	.fd = many_fd,
	.poll = many_poll,
	.put = many_put,
	.remove = many_remove,
	.forget = many_forget,
	.begin = many_begin,
	.tick = many_tick,
	.taken_ns = many_taken_ns,
	.stop = many_stop,
	.drain = many_drain,
	.profile = many_profile,
	.done = many_done,
	.shared = many_shared,
};
