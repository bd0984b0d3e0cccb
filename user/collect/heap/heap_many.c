/* user/collect/heap/heap_many.c - heaps of many: which are read, and the part that each has of what is probed. */
#include "collect/heap/heap_many.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "collect/heap/window/heap_counts.h"
#include "collect/heap/live/heap_looks.h"
#include "collect/heap/heap_probe_priv.h"
#include "collect/reading.h"
#include "engine/probed.h"
#include "probe/bpf.h"

/* In windows, of a target of which nothing is known: every few allocations of some 100 bytes. */
#define UNSEEN_RATE 1024

enum { PLACINGS = 4 * GPB_PLACING };

struct many {
	struct probed probed; /* first */
	void *reading;	      /* engine_heap_read's */
	struct heap_looks looks;
	struct heap_counts counts;
	struct heap_bpf *obj;
};

/* What is probed of a target. */
struct heap_part {
	struct many *m;
	struct heap_probe *h; /* owned */
	struct heap_counted counted;
	bool watched; /* heap_window_before() */
};

/* What is kept of a target: one of the two. */
struct many_kept {
	void *read;
	struct set_member *probed;
};

/* ---- the object ---- */

static int object_open(void *arg, struct probed *p, uint32_t slots, uint32_t pidns_ino,
		       struct err *e)
{
	struct many *m = arg;
	int ret = heap_probe_open(&m->obj, p->sets.multi, slots, true, e);

	if (ret)
		return ret;
	m->obj->rodata->pidns_ino = pidns_ino;
	bpf_map__set_max_entries(m->obj->maps.placings, PLACINGS);
	probed_size(p, m->obj->maps.ring, m->obj->maps.stacks);
	ret = heap_bpf__load(m->obj);
	if (ret)
		return bpf_load_error(e, ret, NULL);
	p->object = PROBED_OBJECT(m->obj);
	return 0;
}

static void object_close(void *arg)
{
	struct many *m = arg;

	heap_bpf__destroy(m->obj);
	m->obj = NULL;
}

static int slot_clear(void *arg, uint32_t at, struct err *e)
{
	struct many *m = arg;
	int ret = probed_zero(m->obj->maps.countdowns, at, e);

	m->obj->bss->object_counts[at] = (struct gpb_objects){ 0 };
	m->obj->bss->nplacing[at] = 0;
	return ret ? ret : probed_zero(m->obj->maps.classes, at, e);
}

/* ---- a target's part ---- */

static int part_new(void *arg, struct engine_target *t, void **part, struct loss **loss,
		    struct err *e)
{
	struct heap_part *k = calloc(1, sizeof(*k));
	struct many *m = arg;
	int ret;

	if (!k)
		return err_set(e, -ENOMEM, "no memory for a target");
	*part = k;
	k->m = m;
	ret = heap_probe_new(t->subject, &m->probed.o, &m->looks.room, &k->h, e);
	if (ret)
		return ret;
	*loss = &k->h->loss;
	return 0;
}

static int part_slot(void *part, uint32_t at, struct err *e)
{
	struct heap_part *k = part;

	(void)e;
	k->h->obj = k->m->obj;
	k->h->multi = k->m->probed.sets.multi;
	k->h->reports = &k->m->probed.demux.reports;
	heap_probe_window(k->h, at);
	k->counted.window = &k->h->window;
	heap_use_begin(&k->h->use, NULL, &k->h->window.tally);
	return 0;
}

/* What still waits for its place is nobody's, and the table is for all. */
static void drop_placings(struct heap_bpf *obj, uint32_t at)
{
	struct gpb_placing_key key, last;
	int fd = bpf_map__fd(obj->maps.placings), ret;

	if (!obj->bss->nplacing[at])
		return;
	for (ret = bpf_map_get_next_key(fd, NULL, &key); !ret;) {
		last = key;
		ret = bpf_map_get_next_key(fd, &last, &key);
		if (demux_index((uint32_t)last.slot) == at)
			bpf_map_delete_elem(fd, &last);
	}
}

static void part_free(void *part)
{
	struct heap_part *k = part;

	if (k && k->h && k->h->obj)
		drop_placings(k->h->obj, k->h->window.slot);
	if (k)
		heap_probe_free(k->h);
	free(k);
}

static int64_t add(void *part, const struct gpb_hash *key, const struct gpb_stack *st, bool room)
{
	struct heap_window *w = &((struct heap_part *)part)->h->window;
	size_t at;
	int ret = 0;

	if (room || tally_has(&w->tally, st, &at)) {
		ret = heap_window_add(w, st, NULL);
		if (!ret && key && w->keys)
			ret = tally_key(&w->tally, key, st, NULL);
	} else {
		w->sampled += st->count;
		w->crowded += st->count;
	}
	return ret ? ret : (int64_t)w->tally.entries.n;
}

static struct heap_live *live_of(void *part)
{
	return ((struct heap_part *)part)->h->use.live;
}

static struct heap_counted *counted_of(void *part)
{
	return &((struct heap_part *)part)->counted;
}

static void other(void *part, const void *rec, size_t len)
{
	struct heap_live *l = live_of(part);

	if (l)
		heap_live_record(l, rec, len);
}

/* ---- the sites of a file ---- */

struct sites {
	struct alloc_entry entries[ALLOC_ENTRIES_MAX];
	struct maker_site makers[MAKER_SITES_MAX];
	size_t nentries, nmakers;
	struct err no_use; /* why objects cannot be followed; "": they can */
	/* where GC cycles end; empty: that is not known */
	struct uprobe_group cycle;
	struct uprobe_site cycle_at;
};

static void refuse_use(struct heap_probe *h, const struct sites *s)
{
	if (!*s->no_use.msg)
		return;
	heap_use_refuse(&h->use, &s->no_use);
	h->window.keys = false;
}

/* Where the slots of objects become known is probed together with the entries. */
static int find_use(struct heap_probe *h, struct sites *s, struct err *e)
{
	int ret = h->use.live ? heap_live_find(h->use.live, &s->no_use) : 0;

	if (ret == -ENOMEM)
		return err_set(e, ret, "%s", s->no_use.msg);
	if (!h->use.live)
		s->no_use = h->use.why_not;
	refuse_use(h, s);
	return 0;
}

/* The other program, in the same probes; and the same site for itself, for windows. */
static void add_cycle(struct heap_probe *h, struct site_list *l, struct sites *s, uint32_t index)
{
	struct uprobe_site *at = &l->sites[l->n];

	if (!h->use.live || heap_sites_cycle(&h->s->images.at[0], at, NULL))
		return;
	at->cookie |= (uint64_t)index << GPB_COOKIE_SLOT_SHIFT;
	l->n++;
	s->cycle_at = *at;
	s->cycle = (struct uprobe_group){ .prog = h->obj->progs.heap_cycle,
					  .sites = &s->cycle_at,
					  .n = 1 };
	l->groups[l->ngroups] = s->cycle;
	l->groups[l->ngroups++].sites = at;
}

static struct uprobe_group *stays(void *sites)
{
	struct sites *s = sites;

	return s->cycle.n ? &s->cycle : NULL;
}

static int find(void *part, uint32_t index, void **list, struct uprobe_group **groups, size_t *n,
		void **sites, struct err *e)
{
	struct heap_probe *h = ((struct heap_part *)part)->h;
	struct site_list *l = *list = calloc(1, sizeof(*l));
	struct sites *s = *sites = calloc(1, sizeof(*s));
	int ret;

	if (!l || !s)
		return err_set(e, -ENOMEM, "no memory for probes");
	h->entries = s->entries;
	ret = heap_probe_entries(h, 0, e);
	if (!ret)
		ret = find_use(h, s, e);
	if (ret)
		return ret;
	memcpy(s->makers, h->makers[0], sizeof(s->makers));
	s->nentries = h->nentries[0];
	s->nmakers = h->nmakers[0];
	heap_probe_list(h, 0, index, l, NULL);
	add_cycle(h, l, s, index);
	if (h->use.live)
		heap_live_found(h->use.live);
	*groups = l->groups;
	*n = l->ngroups;
	return 0;
}

static void found(void *part, void *sites)
{
	struct heap_probe *h = ((struct heap_part *)part)->h;
	struct sites *s = sites;

	h->entries = s->entries;
	memcpy(h->makers[0], s->makers, sizeof(s->makers));
	h->nsites = h->nentries[0] = s->nentries;
	h->nmakers[0] = s->nmakers;
	heap_probe_place(h, 0);
	refuse_use(h, s);
}

static int hit_cost(void *part, struct attacher_process **attachers, struct hit_cost *out,
		    struct cost_probes **rest, struct err *e)
{
	struct heap_part *k = part;

	return heap_probe_hit_cost(k->m->obj, k->m->probed.sets.multi, &k->h->heap, attachers, out,
				   rest, e);
}

/* ---- stretches ---- */

static int joined(void *part, struct err *e)
{
	return heap_probe_put(((struct heap_part *)part)->h, e);
}

/* One that has not allocated yet, as far as anybody saw, would be sampled as rarely as in full observation. */
static void set_rate(struct heap_window *w)
{
	uint64_t allocs, bytes;

	if (w->rate_in_windows || heap_window_seen(w, &allocs, &bytes, NULL) || allocs)
		return;
	w->rate_in_windows = w->rate_most < UNSEEN_RATE ? w->rate_most : UNSEEN_RATE;
}

/* Nothing looks for bursts: in full observation the runtime's counters are read when a stretch ends, and not before. */
static void rest(struct heap_window *w)
{
	if (w->counters && !w->windows_since)
		rtcounters_rest(w->counters);
}

static int turn(void *part, const struct probe_set *s, const struct set_turn *t, struct err *e)
{
	struct heap_probe *h = ((struct heap_part *)part)->h;
	int ret;

	h->probing = s->probing;
	h->hit_cost = s->of->hit_cost;
	if (h->use.live)
		heap_live_watched(h->use.live, stays(s->sites) && (!t->windows || s->stands));
	if (t->windows)
		set_rate(&h->window);
	heap_counts_turn(&((struct heap_part *)part)->m->counts);
	ret = heap_probe_turn(h, t->windows, t->since, t->hit_ns, t->window_ns, e);
	/* The others have agreed on that already. */
	if (!ret && t->windows && s->own_ns > 0)
		ret = heap_probe_own(h, s->own_ns, e);
	rest(&h->window);
	return ret;
}

static void before(void *part, const struct stretch *st)
{
	struct heap_part *k = part;

	k->watched = heap_window_before(&k->h->window, st);
}

static int after(void *part, const struct stretch *st, struct err *e)
{
	struct heap_part *k = part;
	int ret = heap_window_after(&k->h->window, st, k->watched, e);
	bool again;

	rest(&k->h->window);
	/* Its memory can be read just now. */
	if (k->h->window.ending && live_of(part) && heap_live_last(live_of(part), 0, &again, NULL))
		heap_live_gone(live_of(part));
	return ret;
}

/*
 * A window is over when no CPU has own time left (gpb_open.until), and a CPU that has hit nothing yet has as
 * much as those that have. So all have the same: that of the one that is slowed down most.
 */
static int share_own(struct probe_set *s, struct err *e)
{
	int ret = 0;

	if (!s->turn.windows)
		return 0;
	s->own_ns = 0;
	for (size_t i = 0; i < s->members.n; i++) {
		double own = ((struct heap_part *)s->members.at[i]->part)->h->window.own.own;

		if (!s->own_ns || own < s->own_ns)
			s->own_ns = own;
	}
	for (size_t i = 0; !ret && i < s->members.n; i++)
		ret = heap_probe_own(((struct heap_part *)s->members.at[i]->part)->h, s->own_ns, e);
	return ret;
}

static void ending(void *part)
{
	struct heap_probe *h = ((struct heap_part *)part)->h;

	h->window.ending = true;
	if (h->heap.own.ns)
		heap_window_turn(&h->window, false, 0, 0);
}

/* Objects of the last window are still to come; they are younger than this look. */
static void closed(struct probe_sets *ss)
{
	struct many *m = ((struct probed *)ss->arg)->arg;

	(void)ss->drain(ss->arg, NULL);
	heap_looks_last(&m->looks);
}

static void leaves(void *part, const struct stretch *last)
{
	if (live_of(part))
		heap_live_gone(live_of(part));
	ending(part);
	if (!last)
		return;
	before(part, last);
	(void)after(part, last, NULL);
}

static const struct probed_kind heaps = {
	.set = { .what = "heap",
		 .parts = { .end_ns = HEAP_WINDOW_NS, .most_ns = HEAP_WINDOW_MOST_NS },
		 .by_own = true,
		 .find = find,
		 .found = found,
		 .stays = stays,
		 .hit_cost = hit_cost,
		 .joined = joined,
		 .turn = turn,
		 .before = before,
		 .after = after,
		 .settle = share_own,
		 .ending = ending,
		 .closed = closed,
		 .leaves = leaves },
	.open = object_open,
	.close = object_close,
	.clear = slot_clear,
	.part_new = part_new,
	.part_slot = part_slot,
	.part_free = part_free,
	.add = add,
	.other = other,
};

/* ---- the kind ---- */

static void many_free(void *state)
{
	struct many *m = state;

	heap_looks_fini(&m->looks);
	heap_counts_fini(&m->counts);
	probed_fini(&m->probed);
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
	m->looks = (struct heap_looks){ .probed = &m->probed, .live_of = live_of, .timer.fd = -1 };
	m->counts = (struct heap_counts){ .probed = &m->probed, .of = counted_of, .timer.fd = -1 };
	ret = probed_open(&m->probed, &heaps, m, o, expected, e);
	if (!ret)
		ret = heap_looks_open(&m->looks, o, e);
	if (!ret)
		ret = heap_counts_open(&m->counts, o, e);
	if (!ret)
		ret = engine_heap_read.open(&engine_heap_read, o, expected, &m->reading, e);
	if (ret)
		return ret;
	*state = TAKE(m);
	return 0;
}

static int many_poll(void *state, struct err *e)
{
	struct many *m = state;
	int ret = probed_poll(&m->probed, e);

	if (ret)
		return ret;
	heap_looks_poll(&m->looks);
	heap_counts_poll(&m->counts);
	return 0;
}

/*
 * What is recorded is read, unless probes were asked for. One that has just started has recorded nothing yet, and may not even know
 * at which rate it will (the linker's runtime.disableMemoryProfiling counts from schedinit on); and where it ends in the window all
 * that it recorded goes with it. So that is probed, if it can be.
 */
static int choose(struct many *m, struct engine_target *t, struct many_kept *k, struct err *e)
{
	enum source_wanted source = m->probed.o.source;
	bool fresh = source == SOURCE_AUTO && t->subject->target->exec_ns;
	struct err why = { "" }; /* it cannot be read, either */
	int ret = -ENOTSUP;

	if (source == SOURCE_PROBE || fresh)
		ret = probed_add(&m->probed, t, &k->probed, e);
	if (source == SOURCE_PROBE || !ret || ret == -ESRCH)
		return ret;
	ret = engine_heap_read.put(m->reading, t, &k->read, fresh ? &why : e);
	if (!ret || ret == -ESRCH || source == SOURCE_READ)
		return ret;
	return fresh ? -ENOTSUP : probed_add(&m->probed, t, &k->probed, e);
}

static int many_put(void *state, struct engine_target *t, void **kept, struct err *e)
{
	struct many *m = state;
	struct many_kept *k = *kept;
	int ret;

	if (k) /* a plugin came: what it allocates passes no probe, and the runtime's own counts tell */
		return k->probed ? joined(k->probed->part, e) : 0;
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

/* It is handed over later. */
static void many_remove(void *state, struct engine_target *t)
{
	struct many *m = state;

	for (uint32_t i = 0; i < m->probed.slots; i++) {
		struct set_member *k = probed_member(&m->probed, i);

		if (k && k->t == t && k->on)
			heap_window_gone(&((struct heap_part *)k->part)->h->window);
	}
	probed_remove(&m->probed, t);
}

static void many_forget(void *state, struct engine_target *t, void *kept)
{
	struct many *m = state;
	struct many_kept *k = kept;

	if (k->probed)
		probed_forget(&m->probed, k->probed);
	else
		engine_heap_read.forget(m->reading, t, k->read);
	free(k);
}

static int many_begin(void *state, struct err *e)
{
	struct many *m = state;

	(void)e;
	heap_looks_share(&m->looks, m->probed.nprobed);
	heap_looks_begin(&m->looks);
	probed_begin(&m->probed);
	return 0;
}

static int many_tick(void *state, size_t targets, struct err *e)
{
	struct many *m = state;

	(void)targets;
	heap_looks_share(&m->looks, m->probed.nprobed);
	return probed_tick(&m->probed, e);
}

static int profile(struct many *m, struct set_member *k, struct prof **out, struct err *e)
{
	struct heap_probe *h = ((struct heap_part *)k->part)->h;
	struct probed_part part;
	int ret = probed_finish(&m->probed, k, &part, e);

	if (ret)
		return ret;
	h->probing = k->set->probing;
	h->start_ns = part.start_ns;
	h->end_ns = part.end_ns;
	heap_probe_ends(h);
	h->start_unix_ns = part.start_unix_ns;
	h->loss.n[LOSS_UNFINISHED] += k->d.left;
	ret = heap_probe_finish(h, e);
	if (!ret)
		ret = probed_tell(&m->probed, k, h->prof, e);
	if (ret)
		return ret;
	*out = TAKE(h->prof);
	return 0;
}

static int many_profile(void *state, struct engine_target *t, void *kept, struct prof **out,
			struct err *e)
{
	struct many *m = state;
	struct many_kept *k = kept;

	return k->probed ? profile(m, k->probed, out, e) :
			   engine_heap_read.profile(m->reading, t, k->read, out, e);
}

static const struct prof *many_first(void *state, const void *kept)
{
	const struct many_kept *k = kept;

	return k->probed ? NULL : engine_heap_read.first(((struct many *)state)->reading, k->read);
}

static bool many_probed(const void *kept)
{
	return ((const struct many_kept *)kept)->probed;
}

const struct engine_kind engine_heap = {
	.name = "heap",
	.reads = true,
	.readers = HEAP_LOOKS_PARTS + HEAP_COUNTS_PARTS,
	.probes = true,
	.open = many_open,
	.free = many_free,
	.fd = probed_fd,
	.poll = many_poll,
	.put = many_put,
	.remove = many_remove,
	.forget = many_forget,
	.begin = many_begin,
	.tick = many_tick,
	.taken_ns = probed_taken_ns,
	.close = probed_close,
	.stop = probed_stop,
	.drain = probed_drain,
	.profile = many_profile,
	.probed = many_probed,
	.first = many_first,
	.done = probed_done,
	.forget_file = probed_forget_file,
	.shared = probed_shared,
};
