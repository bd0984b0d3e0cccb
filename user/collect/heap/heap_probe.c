/* user/collect/heap/heap_probe.c - attaches to the allocator's entries, drains, scales. */
#include "base/clock.h"
#include "collect/heap/heap_probe_priv.h"

#include <bpf/bpf.h>
#include <math.h>
#include <sys/epoll.h>
#include <time.h>

#include "collect/site_errors.h"
#include "probe/bpf.h"
#include "subject/verify.h"
#include "symbolize/subject_prof.h"

_Static_assert(GPB_ALLOC_ANY == (int)ALLOC_ANY && GPB_ALLOC_TINY == (int)ALLOC_TINY &&
		       GPB_ALLOC_NOSCAN == (int)ALLOC_NOSCAN &&
		       GPB_ALLOC_SCAN_NOHEADER == (int)ALLOC_SCAN_NOHEADER &&
		       GPB_ALLOC_SCAN_HEADER == (int)ALLOC_SCAN_HEADER &&
		       GPB_ALLOC_LARGE == (int)ALLOC_LARGE,
	       "the BPF side counts alloc_kind alike");

#define DENSE_RATE 262144 /* bytes per sample: with fewer than this the ring is large */

enum {
	MAX_RATE_SHIFT = 36, /* the arithmetic of gaps in heap.bpf.c has room for so much */
	SLOT = 1,
	SLOTS_OF_ONE = 2, /* that one, and GPB_PRICED */
};

/* ---- how this target's allocator rounds sizes ---- */

/* The runtime's number of the class; these begin at 1. 0: no class is as large. */
static uint8_t class_for(const struct sizeclasses *sc, uint32_t size)
{
	for (uint32_t i = 0; i < sc->n; i++)
		if (sc->size[i] >= size)
			return (uint8_t)(i + 1);
	return 0;
}

static int fill_heap(struct heap_probe *h, struct err *e)
{
	struct gpb_heap *out = &h->heap;
	struct sizeclasses sc;
	int ret = layout_sizeclasses(h->s->bin, &sc, e);

	if (!ret && (h->s->layout.newer || !layout_is_sure(&h->s->layout)))
		ret = layout_check_sizeclasses(h->s->bin, &sc, e);
	if (ret)
		return ret;
	*out = (struct gpb_heap){
		.rate = h->o.heap.rate,
		.header_over = sc.header_over,
		.max_small = GPB_SIZE_MEDIUM - (sc.header_over ? 8 : 0),
		.page = sc.page,
		.round = 1,
	};
	for (uint32_t i = 0; i < sc.n && i + 1 < GPB_CLASSES; i++)
		out->class_size[i + 1] = (uint16_t)sc.size[i];
	for (uint32_t i = 0; i < GPB_SIZE8; i++)
		out->class8[i] = class_for(&sc, i * 8);
	for (uint32_t i = 0; i < GPB_SIZE128; i++)
		out->class128[i] = class_for(&sc, GPB_SIZE_SMALL + i * 128);
	if (!out->class128[GPB_SIZE128 - 1] || sc.n >= GPB_CLASSES)
		return err_set(e, -ENOTSUP, "the allocator's size classes end at %u bytes",
			       sc.n ? sc.size[sc.n - 1] : 0);
	return 0;
}

int heap_probe_put(struct heap_probe *h, struct err *e)
{
	struct gpb_target t;
	const uint32_t slot = h->window.slot;
	int ret;

	ret = bpf_target_fill(h->s, &h->o, &t, e);
	if (ret)
		return ret;
	if (!h->o.labels)
		t.flags &= ~(__u32)GPB_TARGET_LABELS;
	if (h->o.heap.types)
		t.flags |= GPB_TARGET_TYPES;
	ret = heap_use_target(&h->use, &h->window, &t, e);
	if (ret)
		return ret;
	if (bpf_map_update_elem(bpf_map__fd(h->obj->maps.targets), &slot, &t, BPF_ANY) ||
	    bpf_map_update_elem(bpf_map__fd(h->obj->maps.heaps), &slot, &h->heap, BPF_ANY))
		return err_sys(e, "target table");
	return 0;
}

/* ---- the window ---- */

static void fill_log2(struct heap_bpf *obj)
{
	for (int i = 0; i <= GPB_LOG_STEPS; i++)
		obj->rodata->log2_table[i] =
			(uint32_t)lround(log2(1.0 + (double)i / GPB_LOG_STEPS) * (1 << 26));
}

int heap_probe_open(struct heap_bpf **out, bool multi, uint32_t slots, bool many, struct err *e)
{
	struct heap_bpf *obj;
	int ret = bpf_open_probes(heap, &obj, many, e);

	if (ret)
		return ret;
	fill_log2(obj);
	bpf_size_slots(slots, obj->maps.targets, obj->maps.heaps, obj->maps.countdowns,
		       obj->maps.classes, obj->maps.lives);
	uprobes_prepare(obj->progs.heap_alloc, multi);
	uprobes_prepare(obj->progs.heap_cycle, multi);
	*out = obj;
	return 0;
}

static int load(struct heap_probe *h, struct err *e)
{
	uint32_t ring;
	int ret;

	h->multi = uprobes_have_multi();
	ret = heap_probe_open(&h->obj, h->multi, SLOTS_OF_ONE, false, e);
	if (ret)
		return ret;
	/* Where many objects are followed, each is reported through the ring. */
	ring = GPB_RING_BYTES / (h->o.heap.fine || h->o.heap.rate < DENSE_RATE ? 1 : 4);
	bpf_map__set_max_entries(h->obj->maps.ring, bpf_ring_bytes(h->s, &h->o, ring));
	ret = heap_bpf__load(h->obj);
	if (ret)
		return bpf_load_error(e, ret, NULL);
	h->reports = h->own_reports = calloc(1, sizeof(*h->own_reports));
	if (!h->reports)
		return err_set(e, -ENOMEM, "no memory");
	return reports_open_probed(h->reports, h->s, h->obj->maps.ring, h->obj->maps.unwind_rules,
				   heap_window_add, &h->window, e);
}

/* Can large objects be held apart? That needs entries that nothing else passes. */
static bool large_apart(const struct heap_probe *h)
{
	if (!h->o.budget.ppm || !h->multi || h->large.dear)
		return false;
	for (size_t i = 0; i < h->nimages; i++) {
		const struct alloc_entry *at = h->entries + i * ALLOC_ENTRIES_MAX;
		bool large = !h->nentries[i];

		for (size_t k = 0; k < h->nentries[i]; k++) {
			large |= at[k].kind == ALLOC_LARGE;
			if (at[k].kind == ALLOC_ANY)
				return false;
		}
		if (!large)
			return false;
	}
	return h->nsites > 0;
}

static void large_stop(struct heap_probe *h)
{
	if (h->large.always)
		heap_window_large(&h->window, false);
	heap_large_detach(&h->large);
	h->heap.large_rate = 0;
}

static int attach_lists(struct heap_probe *h, struct site_list *all, struct site_list *large,
			struct err *e)
{
	bool apart = large_apart(h);
	int ret;

	for (size_t i = 0; i < h->nimages; i++)
		heap_probe_list(h, i, h->window.slot, all, apart ? large : NULL);
	if (!apart)
		large_stop(h);
	ret = heap_probe_put(h, e);
	if (!ret && apart) {
		ret = heap_large_attach(&h->large, h->s, large->groups, large->ngroups, e);
		if (ret)
			large_stop(h);
	}
	return ret ? ret : probing_set(h->probing, all->groups, all->ngroups, e);
}

/* The BPF side is told of the entries of all images before they are probed. */
static int attach(struct heap_probe *h, struct err *e)
{
	CLEANUP(freep) struct site_list *lists = calloc(2, sizeof(*lists));
	int ret = lists ? 0 : err_set(e, -ENOMEM, "no memory for probes");
	size_t before = h->nimages;

	for (; !ret && h->nimages < h->s->images.n; h->nimages++)
		ret = heap_probe_entries(h, h->nimages, e);
	if (!ret)
		ret = heap_use_attach(&h->use, &h->window, h->multi, e);
	if (!ret)
		ret = attach_lists(h, &lists[0], &lists[1], e);
	if (!ret && h->nimages > before)
		say(&h->o, "heap: probing %zu allocator entries, one sample in %llu bytes%s",
		    h->nsites, (unsigned long long)h->o.heap.rate,
		    fine_words(&h->o, h->o.heap.fine));
	return ret;
}

/* From the end of the first stretch of full observation on; from now on, where there is none. */
static void large_goes_on(struct heap_probe *h)
{
	if (!h->large.apart || h->large.always || h->ending)
		return;
	h->large.always = true;
	h->heap.large_rate = h->window.rate;
	heap_window_large(&h->window, true);
}

static struct gpb_undilated own_of(const struct heap_probe *h)
{
	struct gpb_undilated own = undilated_abi(&h->window.own);

	own.stepped_ns = (uint64_t)h->hit_cost.stepped_ns;
	return own;
}

int heap_probe_own(struct heap_probe *h, double ns, struct err *e)
{
	h->window.own.own = ns;
	h->heap.own = own_of(h);
	return heap_probe_put(h, e);
}

/* Sets which part of the next window counts. */
static int next_window(void *probe, bool full, struct err *e)
{
	struct heap_probe *h = probe;

	if (h->heap.own.ns)
		h->heap.own = own_of(h);
	if (full)
		large_goes_on(h);
	return heap_probe_put(h, e);
}

int heap_probe_turn(void *probe, bool windows, uint64_t since, double hit_ns, uint64_t window_ns,
		    struct err *e)
{
	struct heap_probe *h = probe;
	struct heap_window *w = &h->window;

	/* Otherwise the runtime's own counts tell of all of it. */
	if (windows && h->s->target->exec_ns && h->s->target->exec_ns >= since)
		heap_window_fresh(w);
	if (!windows)
		heap_window_watch(w, h->o.held && !probing_since(h->probing));
	if (windows != (h->heap.own.ns > 0))
		heap_window_turn(w, windows, hit_ns, (double)window_ns);
	if (!windows && h->o.heap.fine)
		heap_window_light(w, h->o.budget.ppm);
	h->heap.rate = windows ? h->window.rate_in_windows : h->window.rate;
	h->heap.own = windows ? own_of(h) : (struct gpb_undilated){};
	h->heap.round++;
	if (windows)
		large_goes_on(h);
	return heap_probe_put(h, e);
}

/* Measures an allocation that is never sampled, by a process of our own. */
int heap_probe_hit_cost(struct heap_bpf *obj, bool multi, const struct gpb_heap *like,
			struct attacher_process **all, struct hit_cost *out,
			struct cost_probes **rest, struct err *e)
{
	struct gpb_target t = { .flags = GPB_TARGET_REGABI };
	struct gpb_heap heap = *like;
	uint32_t slot = GPB_PRICED;

	heap.rate = 1ull << MAX_RATE_SHIFT;
	if (bpf_map_update_elem(bpf_map__fd(obj->maps.targets), &slot, &t, BPF_ANY) ||
	    bpf_map_update_elem(bpf_map__fd(obj->maps.heaps), &slot, &heap, BPF_ANY))
		return err_sys(e, "target table");
	obj->bss->open_for[slot].bits = GPB_OPEN;
	return hit_cost_measure(obj->progs.heap_alloc, multi,
				(uint64_t)slot << GPB_COOKIE_SLOT_SHIFT | GPB_ALLOC_NOSCAN, all,
				out, rest, e);
}

static int hit_cost_of(void *probe, struct hit_cost *out, struct cost_probes **rest, struct err *e)
{
	struct heap_probe *h = probe;
	int ret = heap_probe_hit_cost(h->obj, h->multi, &h->heap, h->s->attachers, out, rest, e);

	h->hit_cost = ret ? (struct hit_cost){ .stepped_ns = HIT_COST_STEPPED_NS } : *out;
	return ret;
}

/* Puts the descriptors of the ring and of the budget behind one. */
static int watch(struct heap_probe *h, struct err *e)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int budget = probing_fd(h->probing), gc = heap_use_fd(&h->use);

	h->ep = epoll_create1(EPOLL_CLOEXEC);
	if (h->ep < 0 || epoll_ctl(h->ep, EPOLL_CTL_ADD, reports_fd(h->reports), &ev) ||
	    (gc >= 0 && epoll_ctl(h->ep, EPOLL_CTL_ADD, gc, &ev)) ||
	    (budget >= 0 && epoll_ctl(h->ep, EPOLL_CTL_ADD, budget, &ev)))
		return err_sys(e, "epoll");
	return 0;
}

void heap_probe_window(struct heap_probe *h, uint32_t slot)
{
	h->window.s = h->s;
	heap_window_init(&h->window);
	h->window.keys = h->use.live != NULL;
	h->window.obj = h->obj;
	h->window.slot = slot;
	h->window.reports = h->reports;
	h->window.heap = &h->heap;
	h->window.rate = h->window.rate_most = h->o.heap.rate;
	h->window.next = next_window;
	h->window.next_arg = h;
	h->window.weighed = heap_use_weighed;
	h->window.weighed_arg = &h->use;
}

static bool look(void *probe, double *count)
{
	return heap_window_look(&((struct heap_probe *)probe)->window, count);
}

static int spent(void *probe, struct gpb_spent *out, struct err *e)
{
	return heap_window_spent(&((struct heap_probe *)probe)->window, out, e);
}

static int over(void *probe, const struct stretch *s, struct err *e)
{
	return heap_window_over(&((struct heap_probe *)probe)->window, s, e);
}

static int begin_probing(struct heap_probe *h, struct err *e)
{
	const struct probing_user u = {
		.what = "heap",
		.open = &h->obj->bss->open_for[SLOT],
		.bss = h->obj->maps.bss,
		.parts = HEAP_PARTS,
		.by_own = true,
		.hit_cost = hit_cost_of,
		.look = look,
		.spent = spent,
		.turn = heap_probe_turn,
		.over = over,
		.arg = h,
	};
	int ret;

	heap_probe_window(h, SLOT);
	ret = probing_new(h->s, &h->o, &u, h->multi, &h->probing, e);
	return ret ? ret : watch(h, e);
}

static int begin_prof(struct heap_probe *h, struct err *e)
{
	int ret = subject_prof(h->s, "probe (uprobes on the allocator)", &h->prof, e);

	if (!ret)
		ret = prof_add_type(h->prof, "alloc_objects", "count", e);
	if (!ret)
		ret = prof_add_type(h->prof, "alloc_space", "bytes", e);
	if (!ret)
		ret = heap_use_types(&h->use, h->prof, e);
	/*
	 * What is left of a window is often nothing, or a few objects by chance. So readers begin
	 * with all allocations.
	 */
	if (!ret)
		ret = prof_set_default_type(h->prof, "alloc_space", e);
	if (!ret)
		ret = prof_set_period(h->prof, "space", "bytes", (int64_t)h->o.heap.rate, e);
	if (!ret)
		stack_physical_init(&h->ph, h->s, h->prof, HIDE_RUNTIME);
	return ret;
}

/* A Go whose types are not known is probed without them. */
static int begin_types(struct heap_probe *h, struct err *e)
{
	struct err why = { "" };
	int ret = h->o.heap.types ? types_init(&h->types, h->s, &why) : 0;

	if (!ret)
		return 0;
	if (ret != -ENOTSUP)
		return err_set(e, ret, "%s", why.msg);
	say(&h->o, "heap: no types: %s", why.msg);
	h->o.heap.types = false;
	return 0;
}

/* Called when hits begin to count. */
static void note_begin(struct heap_probe *h)
{
	if (h->start_ns || !probing_since(h->probing))
		return;
	h->start_ns = (int64_t)probing_since(h->probing);
	h->start_unix_ns = (int64_t)clock_ns(CLOCK_REALTIME) - ((int64_t)now_ns() - h->start_ns);
}

int heap_probe_new(struct subject *s, const struct collect_opts *o, struct heap_live_room *room,
		   struct heap_probe **out, struct err *e)
{
	CLEANUP(heap_probe_freep) struct heap_probe *h = calloc(1, sizeof(*h));
	int ret;

	if (!h)
		return err_set(e, -ENOMEM, "no memory");
	h->ep = -1;
	if (o->heap.rate >> MAX_RATE_SHIFT)
		return err_set(e, -E2BIG, "heap rate %llu is above 2^%d",
			       (unsigned long long)o->heap.rate, MAX_RATE_SHIFT);
	h->s = s;
	h->o = *o;
	if (!room)
		h->entries = calloc(GPB_IMAGES * ALLOC_ENTRIES_MAX, sizeof(*h->entries));
	if (!room && !h->entries)
		return err_set(e, -ENOMEM, "no memory");
	ret = begin_types(h, e);
	if (!ret)
		ret = verify_structs(s, LAYOUT_USE_PROBE, e);
	if (!ret)
		ret = heap_use_open(&h->use, s, room, e);
	if (!ret && !room)
		ret = begin_prof(h, e);
	if (!ret)
		ret = fill_heap(h, e);
	if (!ret)
		*out = TAKE(h);
	return ret;
}

static int probed_fd(void *at)
{
	struct heap_probe *h = at;

	return h->ep;
}

static int probed_begin(void *at, struct err *e)
{
	struct heap_probe *h = at;
	/* Other kinds were loaded meanwhile, and its attacher may have let go. */
	int ret = heap_large_hear(&h->large, e);

	if (!ret)
		ret = probing_begin(h->probing, e);
	note_begin(h);
	return ret;
}

/* What a large object costs: it passes the allocator's entry, and the place that tells its address. */
static double large_ns(const struct heap_probe *h)
{
	double hit_ns = probing_hit_ns(h->probing);

	return h->use.live ? 2 * hit_ns + h->hit_cost.stepped_ns : hit_ns;
}

static int probed_poll(void *at, struct err *e)
{
	struct heap_probe *h = at;
	int ret = reports_poll(h->reports, e);

	if (!ret)
		ret = heap_use_poll(&h->use, e);
	if (!ret)
		ret = heap_large_hear(&h->large, e);
	if (!ret)
		ret = probing_poll(h->probing, e);
	note_begin(h);
	if (!ret && heap_large_dear(&h->large, h->window.large_seen, large_ns(h), h->o.budget.ppm))
		ret = attach(h, e); /* then all are held together */
	return ret;
}

static int probed_tick(void *at, struct err *e)
{
	struct heap_probe *h = at;

	return h->s->images.n > h->nimages ? attach(h, e) : 0;
}

/* ---- the end ---- */

/* Errors of allocations, and of what of them is in use. */
struct heap_errors {
	struct site_errors made, objects, bytes;
};

static int add_error(struct heap_probe *h, struct site_errors *s, const struct heap_estimate *est,
		     double size, struct err *e)
{
	return site_errors_add(s, h->prof, est->objects * size,
			       est->variance < 0 ? -1 : est->variance * size * size, e);
}

static int add_entry(struct heap_probe *h, struct tally_entry *en, struct heap_errors *errors,
		     struct err *e)
{
	struct heap_estimate est = heap_window_estimate(&h->window, en);
	struct heap_estimate use = h->use.live ? heap_use_of(&h->use, &h->window, en) :
						 (struct heap_estimate){ 0 };
	const int64_t values[] = { est.parts, est.values.bytes, use.parts, use.values.bytes };
	struct prof_label labels[GPB_MAX_LABELS + 3];
	double size = (double)en->st->object.size;
	size_t nlabels;
	int ret;

	en->st->count = en->count + en->sampled;
	nlabels = labelsets_of(&h->reports->labels, en->st, 1, labels, &h->loss);
	labels[nlabels++] = (struct prof_label){ .key = "bytes",
						 .num = (int64_t)en->st->object.size };
	if (h->o.heap.types)
		nlabels = types_add(&h->types, en->st, labels, nlabels);
	ret = stack_physical_add(&h->ph, en->st, values, labels, nlabels, e);
	site_errors_all(&errors->made, est.of_all < 0 ? -1 : est.of_all * size * size);
	if (!ret)
		ret = add_error(h, &errors->made, &est, size, e);
	if (!ret && h->use.live && (use.objects > 0 || use.variance != 0))
		ret = add_error(h, &errors->objects, &use, 1, e);
	if (!ret && h->use.live && (use.objects > 0 || use.variance != 0))
		ret = add_error(h, &errors->bytes, &use, size, e);
	return ret;
}

/*
 * Stacks that differ in frames which are not shown have become one sample. Each was scaled, and what
 * was cut off from each is an object together.
 */
static void whole_objects(void *arg, int64_t *values)
{
	const bool *live = arg;

	values[0] /= HEAP_ONE;
	if (*live)
		values[2] /= HEAP_ONE;
}

static int add_entries(struct heap_probe *h, struct err *e)
{
	struct tally *t = &h->window.tally;
	struct heap_errors errors = {};
	bool live = h->use.live != NULL;
	int ret = 0;

	for (size_t i = 0; !ret && i < t->entries.n; i++)
		ret = add_entry(h, &t->entries.at[i], &errors, e);
	prof_each_sample(h->prof, whole_objects, &live);
	/* The sum lacks what no window saw, or when nobody counted, and nobody knows how much that is. */
	if (heap_window_unseen(&h->window).many || heap_window_lacks_counts(&h->window))
		site_errors_all(&errors.made, -1);
	if (!ret && probing_windowed(h->probing))
		ret = site_errors_comment(&errors.made, h->prof, "alloc_space", e);
	if (!ret)
		ret = site_errors_comment(&errors.objects, h->prof, "inuse_objects", e);
	if (!ret)
		ret = site_errors_comment(&errors.bytes, h->prof, "inuse_space", e);
	site_errors_fini(&errors.made);
	site_errors_fini(&errors.objects);
	site_errors_fini(&errors.bytes);
	return ret;
}

/* Says which labels the samples have beside their size. */
static int comment_identity(struct heap_probe *h, struct err *e)
{
	bool readable = h->s->layout.off[LAYOUT_g_labels] >= 0;
	int ret = 0;

	if (h->o.labels)
		ret = prof_comment(h->prof, e, "labels: %s",
				   readable ? "of the goroutine, as they were at the allocation" :
					      "this Go keeps them where they cannot be found");
	if (!ret && h->o.goid)
		ret = prof_comment(h->prof, e, "goid: of the allocating goroutine");
	return ret;
}

static int finish_comments(struct heap_probe *h, struct err *e)
{
	const struct fine_rate rate = { &h->o, "heap", h->o.heap.fine };
	double window = (double)(h->end_ns - h->start_ns) / 1e9;
	uint64_t allocs = 0, bytes = 0;
	int ret = heap_window_seen(&h->window, &allocs, &bytes, e);

	if (!ret)
		ret = prof_comment(h->prof, e, "window: %.3f s", window);
	if (!ret)
		ret = fine_comment(&rate, h->prof, e, "one sample in %llu bytes%s",
				   (unsigned long long)h->window.rate,
				   h->window.rate_in_windows ? " outside of windows" : "");
	if (!ret)
		ret = prof_set_period(h->prof, "space", "bytes", (int64_t)h->window.rate, e);
	if (!ret)
		ret = prof_comment(h->prof, e,
				   "hits: %llu allocations of %llu bytes seen at %zu probes (%s), "
				   "%llu sampled",
				   (unsigned long long)allocs, (unsigned long long)bytes, h->nsites,
				   h->multi ? "one multi link" : "perf uprobes",
				   (unsigned long long)h->window.sampled);
	if (!ret)
		ret = probing_comment(h->probing, h->prof, e);
	if (!ret)
		ret = heap_window_comment(&h->window, &h->o, h->prof, &h->loss, e);
	if (!ret)
		ret = comment_identity(h, e);
	if (!ret)
		ret = types_comment(&h->types, h->prof, e);
	return ret ? ret : heap_use_comments(&h->use, &h->window, h->prof, e);
}

int heap_probe_finish(struct heap_probe *h, struct err *e)
{
	int ret = h->prof ? 0 : begin_prof(h, e);

	if (ret)
		return ret;
	heap_window_end(&h->window);
	ret = heap_use_end(&h->use, &h->window, e);
	if (!ret)
		ret = add_entries(h, e);
	if (!ret)
		ret = finish_comments(h, e);
	if (ret)
		return ret;
	prof_set_time(h->prof, h->start_unix_ns, h->end_ns - h->start_ns);
	heap_use_losses(&h->use, &h->window, &h->loss);
	h->loss.n[LOSS_STACKS_MANY] += h->window.crowded;
	return 0;
}

static int probed_stop(void *at, struct prof **out, struct err *e)
{
	struct heap_probe *h = at;
	uint64_t left = 0;
	int ret;

	h->end_ns = (int64_t)now_ns();
	if (!h->start_ns) {
		h->start_ns = h->end_ns;
		h->start_unix_ns = (int64_t)clock_ns(CLOCK_REALTIME);
	}
	h->ending = true;
	/* While the last window ends, no more of them are sampled. */
	if (h->large.always && h->heap.own.ns) {
		h->heap.large_rate = 1ull << MAX_RATE_SHIFT;
		(void)heap_probe_put(h, e);
	}
	if (h->heap.own.ns)
		heap_window_turn(&h->window, false, 0, 0);
	heap_probe_ends(h);
	ret = probing_end(h->probing, e);
	heap_large_detach(&h->large);
	if (!ret)
		ret = heap_window_rest(&h->window, e);
	if (!ret)
		ret = bpf_count_left(h->obj->maps.stacks, h->obj->maps.scratches,
				     &h->obj->bss->rounds, &left, e);
	if (!ret)
		ret = heap_probe_finish(h, e);
	if (ret)
		return ret;
	reports_losses(h->reports, &h->obj->bss->tallies[h->window.slot], h->obj->obj, &h->loss);
	probing_losses(h->probing, &h->loss);
	h->loss.n[LOSS_UNFINISHED] += left;
	loss_at_least(&h->loss, LOSS_ATTACHER_KILLED, h->large.probes.deaths);
	loss_merge(prof_loss(h->prof), &h->loss);
	*out = TAKE(h->prof);
	return 0;
}

/* Of many targets only what is its own. */
void heap_probe_free(struct heap_probe *h)
{
	if (!h)
		return;
	if (h->reports == h->own_reports) {
		probing_free(h->probing);
		heap_large_detach(&h->large);
		if (h->own_reports)
			reports_fini(h->own_reports);
		free(h->own_reports);
		heap_bpf__destroy(h->obj);
		free(h->entries);
	}
	heap_use_fini(&h->use);
	heap_window_fini(&h->window);
	stack_physical_fini(&h->ph);
	types_fini(&h->types);
	prof_free(h->prof);
	if (h->ep >= 0)
		close(h->ep);
	free(h);
}

static void probed_free(void *at)
{
	heap_probe_free(at);
}

static const struct source probed = {
	.probes = true,
	.fd = probed_fd,
	.poll = probed_poll,
	.tick = probed_tick,
	.begin = probed_begin,
	.stop = probed_stop,
	.free = probed_free,
};

int heap_probe_start(struct subject *s, const struct collect_opts *o, struct sourced *out,
		     struct err *e)
{
	CLEANUP(heap_probe_freep) struct heap_probe *h = NULL;
	int ret = heap_probe_new(s, o, NULL, &h, e);

	if (!ret)
		ret = load(h, e);
	if (ret)
		return ret;
	heap_use_begin(&h->use, h->reports, &h->window.tally);
	ret = begin_probing(h, e);
	if (!ret)
		ret = attach(h, e);
	if (ret)
		return ret;
	note_begin(h);
	*out = (struct sourced){ &probed, TAKE(h) };
	return 0;
}
