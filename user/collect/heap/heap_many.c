/*
 * user/collect/heap/heap_many.c - one BPF object, one ring and one table of stacks for all targets that are probed.
 *
 * The object is loaded when the first one needs it. A target has a slot of ours, with a generation, since slots are
 * used again. Targets share table and ring by quotas (bpf/quota.bpf.h).
 */
#include "collect/heap/heap_many.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/epoll.h>
#include <time.h>

#include "collect/heap/heap_set.h"
#include "collect/reading.h"
#include "probe/bpf.h"
#include "probe/quota.h"
#include "target/pidns.h"

enum {
	MANY_RING = 2 << 20,
	MANY_STACKS = 8192,	   /* room of the kernel's table */
	MANY_SLOTS_MIN = 128,	   /* many more may start than there are at first */
	MANY_LABELS_MAX = 1 << 14, /* label sets of one target and window */
	DRAIN_TICKS = 10,	   /* the table is emptied at least so often */
};

/* Of the bound on what all kinds together may take of the targets' CPU time; the rest is for clocks. */
#define SETS_SHARE 0.9

struct many {
	struct collect_opts o;
	void *reading; /* engine_heap_read's */
	struct heap_sets sets;
	struct feed feed;
	int failed; /* why nothing can be probed: */
	struct err why;
	uint32_t slots;
	uint16_t generation[GPB_CPU_TARGETS];
	struct heap_member *at[GPB_CPU_TARGETS];
	struct heap_member *current; /* whose record is being handled */
	size_t nprobed, shared;	     /* shared: for so many the quotas are */
	unsigned ticks;		     /* since the table was emptied */
	/* what rules and feed have counted that is some target's already */
	uint64_t cut, broken;
	uint64_t missed; /* hits whose program never ran, before this window */
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

static uint32_t index_of(uint32_t slot)
{
	return slot & (GPB_CPU_TARGETS - 1);
}

/* The target that has this slot; NULL: its generation is over. */
static struct heap_member *member_in(const struct many *m, uint32_t slot)
{
	struct heap_member *k = m->at[index_of(slot)];

	return k && k->slot == slot ? k : NULL;
}

/* ---- samples ---- */

/* One target's profile that cannot be made is no error of the others. */
static int add_stack(void *arg, const struct gpb_stack *st, struct err *e)
{
	struct heap_member *k = member_in(arg, st->slot);

	(void)e;
	if (k && heap_window_add(&k->h->window, st, NULL))
		k->h->loss.n[LOSS_STACKS_UNREADABLE] += st->count;
	return 0;
}

/* What was lost of the record that was handled last is its target's loss. */
static void attribute(struct many *m)
{
	const struct feed *f = &m->feed;

	if (m->current) {
		m->current->h->loss.n[LOSS_STACKS_CUT] += f->rules.cut - m->cut;
		m->current->h->loss.n[LOSS_STACKS_UNREADABLE] += f->rules.broken + f->frameless -
								 m->broken;
	}
	m->cut = f->rules.cut;
	m->broken = f->rules.broken + f->frameless;
	m->current = NULL;
}

static int take_stack(void *arg, const struct gpb_hash *key, const struct gpb_stack *st,
		      struct err *e)
{
	struct many *m = arg;
	struct heap_bpf *obj = m->sets.obj;
	struct heap_member *k;
	int ret;

	(void)key;
	obj->bss->taken[index_of(st->slot)].stacks++;
	__atomic_store_n(&obj->bss->stacks_taken, obj->bss->stacks_taken + 1, __ATOMIC_RELAXED);
	k = member_in(m, st->slot);
	if (!k)
		return 0;
	m->current = k;
	ret = rules_settle_bare(&m->feed.rules, k->t->subject, st, &st, e);
	if (!ret && feed_whole(&m->feed, st))
		ret = add_stack(m, st, e);
	attribute(m);
	return ret;
}

static struct subject *whose(void *arg, uint32_t slot, uint64_t type, size_t len)
{
	struct many *m = arg;
	struct heap_member *k = member_in(m, slot);

	attribute(m);
	m->current = k;
	m->sets.obj->bss->taken[index_of(slot)].bytes += GPB_RING_RECORD(len);
	if (k && type == GPB_REC_LABELS && ++k->labels > MANY_LABELS_MAX)
		return NULL; /* its samples will say that their labels are missing */
	return k ? k->t->subject : NULL;
}

static int poll_ring(struct many *m, struct err *e)
{
	int ret = m->sets.obj ? feed_poll(&m->feed, e) : 0;

	attribute(m);
	return ret;
}

static int take_all(void *arg, struct err *e)
{
	struct many *m = arg;
	int ret = poll_ring(m, e);

	m->ticks = 0;
	if (ret || !m->sets.obj)
		return ret;
	return bpf_take_stacks(bpf_map__fd(m->sets.obj->maps.stacks), &m->sets.obj->bss->rounds,
			       take_stack, m, e);
}

/* ---- the object ---- */

/* What the CPUs may overdraw by together, each by one stack or record. */
static void share_out(struct many *m)
{
	size_t cpus = (size_t)libbpf_num_possible_cpus();

	if (m->shared == m->nprobed || !m->sets.obj)
		return;
	m->shared = m->nprobed;
	m->sets.obj->bss->stacks_quota = quota_of(MANY_STACKS, cpus, m->nprobed);
	m->sets.obj->bss->ring_quota =
		quota_of(MANY_RING, cpus * GPB_RING_RECORD(sizeof(struct gpb_rec_raw)), m->nprobed);
}

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
	bpf_map__set_max_entries(obj->maps.ring, MANY_RING);
	bpf_map__set_max_entries(obj->maps.stacks, MANY_STACKS);
	ret = heap_bpf__load(obj);
	if (ret)
		return bpf_load_error(e, ret, NULL);
	m->feed.whose = whose;
	m->feed.sent_fd = bpf_map__fd(obj->maps.labelsets);
	ret = feed_open(&m->feed, NULL, obj->maps.ring, obj->maps.rules, add_stack, m, e);
	if (!ret && epoll_ctl(m->sets.ep, EPOLL_CTL_ADD, feed_fd(&m->feed), &ev))
		ret = err_sys(e, "epoll");
	return ret;
}

static void close_object(struct many *m)
{
	feed_fini(&m->feed);
	memset(&m->feed, 0, sizeof(m->feed));
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

static bool table_fills(const struct many *m)
{
	return m->sets.obj &&
	       m->sets.obj->bss->stacks_put - m->sets.obj->bss->stacks_taken >= MANY_STACKS / 4;
}

/* What finds no room in the table wakes us, too: so it is emptied as often as it fills. */
static int many_poll(void *state, struct err *e)
{
	struct many *m = state;
	int ret = table_fills(m) ? take_all(m, e) : poll_ring(m, e);

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

	while (at < m->slots && m->at[at])
		at++;
	if (at == m->slots)
		return err_set(e, -E2BIG, "more than %u processes are probed at once",
			       m->slots - 1);
	m->at[at] = k;
	k->slot = (uint32_t)m->generation[at] << GPB_SLOT_GENERATION | at;
	return clear_slot(m, at, e);
}

static void member_free(struct many *m, struct heap_member *k)
{
	uint32_t at = index_of(k->slot);

	if (at && m->at[at] == k) {
		m->at[at] = NULL;
		m->generation[at]++;
	}
	if (m->current == k)
		m->current = NULL;
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
	k->h->feed = &m->feed;
	heap_probe_window(k->h, index_of(k->slot));
	ret = heap_set_of(&m->sets, k->h, &k->set, e);
	if (!ret)
		ret = heap_set_join(k, e);
	if (ret)
		return ret;
	if (bpf_map_update_elem(bpf_map__fd(m->sets.obj->maps.slot_of_tgid), &tgid, &k->slot,
				BPF_ANY))
		return err_sys(e, "target table");
	m->nprobed++;
	share_out(m);
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
	for (size_t i = 0; i < m->slots; i++)
		if (m->at[i] && m->at[i]->t == t)
			return m->at[i];
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
	m->ticks = 0;
	m->missed = m->sets.obj ? feed_missed(m->sets.obj->obj) : 0;
	heap_sets_begin(&m->sets);
	return 0;
}

static int many_tick(void *state, size_t targets, struct err *e)
{
	struct many *m = state;

	(void)targets;
	if (!m->sets.obj)
		return 0;
	share_out(m);
	return ++m->ticks < DRAIN_TICKS && !table_fills(m) ? 0 : take_all(m, e);
}

static uint64_t many_taken_ns(void *state)
{
	struct many *m = state;

	return (uint64_t)heap_sets_spent_ns(&m->sets);
}

static void many_stop(void *state)
{
	struct many *m = state;

	heap_sets_end(&m->sets);
}

static int many_drain(void *state, struct err *e)
{
	return take_all(state, e);
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
	if (ret)
		return ret;
	bpf_losses((const struct gpb_tally *)&m->sets.obj->bss->tallies[index_of(k->slot)],
		   &k->h->loss);
	k->h->loss.n[LOSS_PROBES_MISSED] += feed_missed(m->sets.obj->obj) - m->missed;
	loss_merge(prof_loss(k->h->prof), &k->h->loss);
	*out = TAKE(k->h->prof);
	return 0;
}

/* The ids of label sets that the kernel takes to be known here: they are not any more. */
static void forget_labels(struct many *m)
{
	int fd = bpf_map__fd(m->sets.obj->maps.labelsets);
	uint64_t id;

	while (!bpf_map_get_next_key(fd, NULL, &id) && !bpf_map_delete_elem(fd, &id))
		;
}

static int many_done(void *state, struct err *e)
{
	struct many *m = state;

	if (!m->sets.obj)
		return 0;
	labelsets_fini(&m->feed.labels);
	forget_labels(m);
	return labelsets_init(&m->feed.labels, e);
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
};
