/*
 * user/collect/heap/heap_many.c - one BPF object, one ring and one table of stacks for all targets that are probed.
 *
 * The object is loaded when the first one needs it. A target has a slot of ours, with a generation, since slots are
 * used again. Targets share table and ring by quotas (probe/demux.h).
 */
#include "collect/heap/heap_many.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/epoll.h>
#include <time.h>

#include "collect/heap/heap_set.h"
#include "collect/reading.h"
#include "probe/bpf.h"
#include "probe/demux.h"
#include "target/pidns.h"

enum { MANY_SLOTS_MIN = 128 }; /* many more may start than there are at first */

/* Of the bound on what all kinds together may take of the targets' CPU time; the rest is for clocks. */
#define SETS_SHARE 0.9

struct many {
	struct collect_opts o;
	void *reading; /* engine_heap_read's */
	struct heap_sets sets;
	struct demux demux;
	int failed; /* why nothing can be probed: */
	struct err why;
	unsigned expected;
	uint32_t slots;
	uint16_t generation[GPB_CPU_TARGETS];
	size_t nprobed, joined; /* joined: in this window, those that have gone, too */
	uint64_t missed;	/* hits whose program never ran, before this window */
};

/* What is kept of a target: one of the two. */
struct many_kept {
	void *read;
	struct heap_member *probed;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- samples ---- */

/* A stack that there is no room for is left out, as where there is no room for one target's. */
static int add_stack(void *arg, struct demux_target *d, const struct gpb_stack *st)
{
	struct many *m = arg;
	struct heap_window *w = &((struct heap_member *)d->owner)->h->window;
	size_t at;
	int ret;

	if (!demux_has_room(&m->demux, d) && !tally_has(&w->tally, st, &at)) {
		w->sampled += st->count;
		w->crowded += st->count;
		return 0;
	}
	ret = heap_window_add(w, st, NULL);
	demux_keeps(&m->demux, d, w->tally.entries.n);
	return ret;
}

static int take_all(void *arg, struct err *e)
{
	struct many *m = arg;

	return m->sets.obj ? demux_take(&m->demux, e) : 0;
}

/* ---- the object ---- */

static int open_object(struct many *m, struct err *e)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct heap_bpf *obj;
	uint32_t ino;
	int ret = pidns_inode(&ino, e);

	if (ret)
		return ret;
	if (!uprobes_have_multi())
		return err_set(e, -ENOTSUP,
			       "this kernel has no uprobe links of many probes (Linux 6.10): it is "
			       "probed with -p alone");
	ret = heap_probe_open(&obj, true, m->slots, true, e);
	if (ret)
		return ret;
	m->sets.obj = obj;
	obj->rodata->pidns_ino = ino;
	demux_size(&m->demux, obj->maps.ring, obj->maps.stacks, m->expected);
	ret = heap_bpf__load(obj);
	if (ret)
		return bpf_load_error(e, ret, NULL);
	ret = demux_open(&m->demux, DEMUX_OBJECT(obj), add_stack, m, e);
	if (!ret && epoll_ctl(m->sets.ep, EPOLL_CTL_ADD, feed_fd(&m->demux.feed), &ev))
		ret = err_sys(e, "epoll");
	return ret;
}

static void close_object(struct many *m)
{
	demux_fini(&m->demux);
	heap_bpf__destroy(m->sets.obj);
	m->sets.obj = NULL;
}

/* What was opened halfway has no ring: nobody may find it. */
static int need_object(struct many *m, struct err *e)
{
	if (!m->sets.obj && !m->failed) {
		m->failed = open_object(m, &m->why);
		if (m->failed)
			close_object(m);
	}
	return m->failed ? err_set(e, m->failed, "%s", m->why.msg) : 0;
}

static void many_free(void *state)
{
	struct many *m = state;

	close_object(m);
	closep(&m->sets.ep);
	vec_fini(&m->sets.lost);
	exes_fini(&m->sets.exes);
	if (m->reading)
		engine_heap_read.free(m->reading);
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
	int ret;

	(void)kind;
	if (!m)
		return err_set(e, -ENOMEM, "no memory");
	m->o = *o;
	m->o.say = NULL;
	m->o.fine_heap = false; /* what many samples cost us is not in a target's budget */
	m->o.budget_ppm = (unsigned)(SETS_SHARE * o->host_taken_ppm);
	m->o.budget_ahead_ns = 0;
	m->sets.o = m->o;
	m->sets.drain = take_all;
	m->sets.arg = m;
	m->expected = expected;
	m->slots = MANY_SLOTS_MIN;
	while (m->slots < GPB_CPU_TARGETS && m->slots < expected + 1)
		m->slots *= 2;
	m->sets.ep = epoll_create1(EPOLL_CLOEXEC);
	if (m->sets.ep < 0)
		return err_sys(e, "epoll");
	ret = engine_heap_read.open(&engine_heap_read, o, expected, &m->reading, e);
	if (ret)
		return ret;
	*state = TAKE(m);
	return 0;
}

static int many_fd(void *state)
{
	struct many *m = state;

	return m->sets.ep;
}

/* What finds no room in the table wakes us, too: so it is emptied as often as it fills. */
static int many_poll(void *state, struct err *e)
{
	struct many *m = state;
	int ret = 0;

	if (m->sets.obj)
		ret = demux_fills(&m->demux) ? take_all(m, e) : demux_poll(&m->demux, e);
	if (!ret)
		heap_sets_poll(&m->sets);
	return ret;
}

/* ---- targets ---- */

/* The slot is free, so nothing adds to what it has counted. */
static int clear_slot(struct many *m, uint32_t at, struct err *e)
{
	struct heap_bpf *obj = m->sets.obj;
	const struct bpf_map *const maps[] = { obj->maps.countdowns, obj->maps.classes };
	size_t cpus = (size_t)libbpf_num_possible_cpus();

	for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
		CLEANUP(freep) void *zeros = calloc(cpus, bpf_map__value_size(maps[i]));

		if (!zeros)
			return err_set(e, -ENOMEM, "no memory for a target");
		if (bpf_map_update_elem(bpf_map__fd(maps[i]), &at, zeros, BPF_ANY))
			return err_sys(e, "target table");
	}
	memset((void *)obj->bss->tallies[at].lost, 0, sizeof(obj->bss->tallies[at].lost));
	obj->bss->object_counts[at] = (struct gpb_objects){ 0 };
	obj->bss->nplacing[at] = 0;
	return 0;
}

static int take_slot(struct many *m, struct heap_member *k, struct err *e)
{
	uint32_t at = GPB_PRICED + 1;

	while (at < m->slots && m->demux.at[at])
		at++;
	if (at == m->slots)
		return err_set(e, -E2BIG, "more than %u processes are probed at once",
			       m->slots - 1);
	k->d = (struct demux_target){
		.slot = (uint32_t)m->generation[at] << GPB_SLOT_GENERATION | at,
		.s = k->t->subject,
		.loss = &k->h->loss,
		.owner = k,
	};
	demux_put(&m->demux, &k->d);
	return clear_slot(m, at, e);
}

static void member_free(struct many *m, struct heap_member *k)
{
	if (k->d.owner) { /* it has a slot */
		demux_forget(&m->demux, &k->d);
		m->generation[demux_index(k->d.slot)]++;
	}
	if (k->set) {
		heap_set_leave(k);
		heap_set_forget(k->set);
	}
	heap_probe_free(k->h);
	free(k);
}

static int begin_member(struct many *m, struct heap_member *k, struct err *e)
{
	uint32_t tgid = (uint32_t)k->t->id.pid;
	int ret;

	/* What is known of its file then comes from a copy, and nobody runs that. */
	if (!k->t->subject->target->exe_local)
		return err_set(e, -ENOTSUP,
			       "its executable is on a file system that may not answer: it is "
			       "probed with -p alone");
	if (k->t->subject->images.n > 1)
		return err_set(e, -ENOTSUP,
			       "it has loaded plugins, whose allocators are probed with -p alone");
	ret = heap_probe_new(k->t->subject, &m->o, false, &k->h, e);
	if (!ret)
		ret = take_slot(m, k, e);
	if (ret)
		return ret;
	err_set(&k->h->use.why_not, -ENOTSUP,
		"of many processes only what they allocate is probed");
	k->h->obj = m->sets.obj;
	k->h->multi = true;
	k->h->feed = &m->demux.feed;
	heap_probe_window(k->h, demux_index(k->d.slot));
	ret = heap_set_of(&m->sets, k->h, &k->set, e);
	if (!ret)
		ret = heap_set_join(k, e);
	if (ret)
		return ret;
	if (bpf_map_update_elem(bpf_map__fd(m->sets.obj->maps.slot_of_tgid), &tgid, &k->d.slot,
				BPF_ANY))
		return err_sys(e, "target table");
	demux_share(&m->demux, ++m->nprobed);
	m->joined++;
	return 0;
}

static int probe(struct many *m, struct engine_target *t, struct heap_member **out, struct err *e)
{
	struct heap_member *k;
	int ret = need_object(m, e);

	if (ret)
		return ret;
	k = calloc(1, sizeof(*k));
	if (!k)
		return err_set(e, -ENOMEM, "no memory for a target");
	k->t = t;
	ret = begin_member(m, k, e);
	if (ret)
		member_free(m, k);
	else
		*out = k;
	return ret;
}

/* What is recorded is read, unless probes were asked for. */
static int choose(struct many *m, struct engine_target *t, struct many_kept *k, struct err *e)
{
	int ret = m->o.source == SOURCE_PROBE ? -ENOTSUP :
						engine_heap_read.put(m->reading, t, &k->read, e);

	if (!ret || ret == -ESRCH || m->o.source == SOURCE_READ)
		return ret;
	return probe(m, t, &k->probed, e);
}

static int many_put(void *state, struct engine_target *t, void **kept, struct err *e)
{
	struct many *m = state;
	struct many_kept *k = *kept;
	int ret;

	if (k) /* a plugin came: what it allocates passes no probe, and the runtime's own counts tell */
		return k->probed ? heap_probe_put(k->probed->h, e) : 0;
	k = calloc(1, sizeof(*k));
	if (!k)
		return err_set(e, -ENOMEM, "no memory for a target");
	ret = choose(m, t, k, e);
	if (ret)
		free(k);
	else
		*kept = k;
	return ret;
}

static struct heap_member *probed_of(const struct many *m, const struct engine_target *t)
{
	for (size_t i = 0; i < m->slots; i++) {
		struct heap_member *k = m->demux.at[i] ? m->demux.at[i]->owner : NULL;

		if (k && k->t == t)
			return k;
	}
	return NULL;
}

static void many_remove(void *state, struct engine_target *t)
{
	struct many *m = state;
	struct heap_member *k = probed_of(m, t);
	uint32_t tgid = (uint32_t)t->id.pid;

	if (!k || !k->on)
		return;
	bpf_map_delete_elem(bpf_map__fd(m->sets.obj->maps.slot_of_tgid), &tgid);
	heap_set_pause(k);
	m->nprobed--;
}

static void many_forget(void *state, struct engine_target *t, void *kept)
{
	struct many *m = state;
	struct many_kept *k = kept;

	if (k->probed) {
		many_remove(m, t);
		member_free(m, k->probed);
	} else {
		engine_heap_read.forget(m->reading, t, k->read);
	}
	free(k);
}

/* ---- the window ---- */

static int many_begin(void *state, struct err *e)
{
	struct many *m = state;

	(void)e;
	m->demux.ticks = 0;
	m->missed = m->sets.obj ? feed_missed(m->sets.obj->obj) : 0;
	m->sets.lost.n = 0;
	heap_sets_begin(&m->sets);
	return 0;
}

static int many_tick(void *state, size_t targets, struct err *e)
{
	struct many *m = state;

	(void)targets;
	if (!m->sets.obj)
		return 0;
	demux_share(&m->demux, m->nprobed);
	return demux_tick(&m->demux, e);
}

/* The kernel does not tell whose they were. */
static uint64_t missed_hits(const struct many *m)
{
	return m->sets.obj ? feed_missed(m->sets.obj->obj) - m->missed : 0;
}

static struct loss lost_by_all(const struct many *m)
{
	struct loss loss = m->sets.of_all;

	loss.n[LOSS_PROBES_MISSED] = missed_hits(m);
	return loss;
}

static uint64_t many_taken_ns(void *state)
{
	struct many *m = state;

	return (uint64_t)heap_sets_spent_ns(&m->sets);
}

static void many_stop(void *state)
{
	struct many *m = state;
	struct loss loss;

	heap_sets_end(&m->sets);
	loss = lost_by_all(m);
	if (m->joined > 1)
		heap_sets_lost(&m->sets, "all programs that were probed", m->joined, &loss);
}

static int many_drain(void *state, struct err *e)
{
	struct many *m = state;

	return m->sets.obj ? demux_drain(&m->demux, e) : 0;
}

/* ---- profiles ---- */

/* What is said of a process among many, and of those that share its probes. */
static int comment(const struct heap_member *k, struct err *e)
{
	const struct engine_target *t = k->t;
	struct prof *p = k->h->prof;
	uint64_t others = heap_set_bystanders(k->set);
	int ret = prof_comment(
		p, e,
		"probes: in its file, for all that run it: hits and budget are of all; "
		"%llu hits of processes that are not profiled",
		(unsigned long long)others);

	if (!ret)
		ret = prof_comment(p, e, "process: %s, started %lld, cgroup %s", t->id.exe,
				   (long long)t->id.started, *t->id.cgroup ? t->id.cgroup : "?");
	return ret;
}

static int comment_lost(const struct loss *l, size_t targets, const char *of, struct prof *p,
			struct err *e)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < LOSS_COUNT; i++)
		if (l->n[i])
			ret = prof_comment(p, e, "lost by %zu processes together (%s): %llu %s",
					   targets, of, (unsigned long long)l->n[i],
					   loss_text((enum loss_kind)i));
	return ret;
}

/* Where it is alone what was lost is its own; else whose it is is not known, and it is told once (heap_sets_lost()). */
static int losses(struct many *m, struct heap_member *k, struct err *e)
{
	struct loss of_set = { 0 }, of_all;
	int ret = 0;

	bpf_losses((const struct gpb_tally *)&m->sets.obj->bss->tallies[demux_index(k->d.slot)],
		   &k->h->loss);
	k->h->loss.n[LOSS_UNFINISHED] += k->d.left;
	heap_set_losses(k->set, &of_set);
	of_all = lost_by_all(m);
	if (k->set->joined > 1)
		ret = comment_lost(&of_set, k->set->joined, "its file's probes", k->h->prof, e);
	else
		loss_merge(&k->h->loss, &of_set);
	if (!ret && m->joined > 1)
		ret = comment_lost(&of_all, m->joined, "all that are probed", k->h->prof, e);
	else if (!ret)
		loss_merge(&k->h->loss, &of_all);
	loss_merge(prof_loss(k->h->prof), &k->h->loss);
	return ret;
}

/* Its part of the window: from the later of its own beginning and that of the probes on, to the earlier of the ends. */
static void set_part(struct heap_member *k)
{
	const struct engine_target *t = k->t;
	struct heap_probe *h = k->h;
	uint64_t since = k->set->probing ? probing_since(k->set->probing) : 0;

	h->end_ns = (int64_t)(t->until_ns ?: now_ns());
	if (k->set->ended_ns && (int64_t)k->set->ended_ns < h->end_ns)
		h->end_ns = (int64_t)k->set->ended_ns;
	h->start_ns = since ? (int64_t)(since > t->since_ns ? since : t->since_ns) : h->end_ns;
	if (h->start_ns > h->end_ns)
		h->start_ns = h->end_ns;
	h->start_unix_ns = t->since_unix_ns + h->start_ns - (int64_t)t->since_ns;
}

static int many_profile(void *state, struct engine_target *t, void *kept, struct prof **out,
			struct err *e)
{
	struct many *m = state;
	struct many_kept *kp = kept;
	struct heap_member *k = kp->probed;
	int ret;

	if (!k)
		return engine_heap_read.profile(m->reading, t, kp->read, out, e);
	heap_set_leave(k);
	if (k->set->failed)
		return err_set(e, k->set->failed, "%s", k->set->why.msg);
	set_part(k);
	ret = heap_probe_finish(k->h, e);
	if (!ret)
		ret = comment(k, e);
	if (!ret)
		ret = losses(m, k, e);
	if (ret)
		return ret;
	*out = TAKE(k->h->prof);
	return 0;
}

static int many_done(void *state, struct err *e)
{
	struct many *m = state;

	m->joined = 0;
	return m->sets.obj ? demux_done(&m->demux, e) : 0;
}

static const struct engine_shared *many_shared(void *state, size_t *n)
{
	struct many *m = state;

	*n = m->sets.lost.n;
	return m->sets.lost.at;
}

const struct engine_kind engine_heap = {
	.name = "heap",
	.reads = true,
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
