/*
 * bpf/heap.bpf.c - probes at the allocator's entries: every allocation is counted, and one in
 * about `rate` bytes is sampled with its stack, by the runtime's own rule (a Poisson process).
 *
 * The probe sits at the branch of each entry's stack check, which a call passes exactly once with
 * its flags clear. An allocation that is not sampled costs the trap, a look at the flags, the
 * rounding of the size and one subtraction.
 *
 * Sources: mallocgc and profilealloc in runtime/malloc.go, Go 1.16 to 1.27.
 */
#define SLOTS GPB_CPU_TARGETS

#include "sample.bpf.h"
#include "go/unwind_rules.bpf.h"
#include "sets.bpf.h"
#include "go/types.bpf.h"
#include "go/countdown.bpf.h"
#include "clocks/percpu.bpf.h"
#include "uprobe.bpf.h"
#include "go/heap_slot.bpf.h"

#define TINY_SIZE 16

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, GPB_TARGETS);
	__type(key, __u32);
	__type(value, struct gpb_heap);
} heaps SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, GPB_TARGETS);
	__type(key, __u32);
	__type(value, struct gpb_countdown);
} countdowns SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, GPB_TARGETS);
	__type(key, __u32);
	__type(value, struct gpb_classes);
} classes SEC(".maps");

/* The bytes of the slot that a request of @size gets, and its size class. */
static __always_inline __u64 slot_size(const struct gpb_heap *h, __u64 size, __u32 kind, int noscan,
				       __u32 *class)
{
	__u64 i;

	*class = 0;
	/* Go compares what was asked for, without the header. */
	if (kind == GPB_ALLOC_LARGE || size > h->max_small)
		return (size + h->page - 1) & ~((__u64)h->page - 1);
	if (kind == GPB_ALLOC_SCAN_HEADER ||
	    (kind == GPB_ALLOC_ANY && !noscan && h->header_over && size > h->header_over))
		size += 8;
	if (size <= GPB_SIZE_SMALL - 8) {
		i = (size + 7) / 8;
		*class = i < GPB_SIZE8 ? h->class8[i] : 0;
	} else {
		i = size < GPB_SIZE_SMALL ? 0 : (size - GPB_SIZE_SMALL + 127) / 128;
		*class = i < GPB_SIZE128 ? h->class128[i] : 0;
	}
	*class &= GPB_CLASSES - 1;
	return h->class_size[*class];
}

/*
 * Does a tiny object fit into the block that this P has open? Then it passes no sampling code in
 * the runtime, and is no allocation of its own. The runtime first aligns the offset, to 8, 4 or 2 as the
 * size is a multiple of it; as the block's size is one, too, that does not decide whether it fits.
 */
static __always_inline int fits_tiny_block(const struct gpb_target *t, __u64 g, __u64 size)
{
	__u64 m = field_u64(g, t->g_m);
	__u64 p = field_u64(m, t->m_p);
	__u64 c = field_u64(p, t->p_mcache);
	__u64 block = field_u64(c, t->mcache_tiny);
	__u64 off = field_u64(c, t->mcache_tinyoffset);

	return block && off + size <= TINY_SIZE;
}

/* True when the sample was counted under *hash. */
static __always_inline int heap_sample(struct pt_regs *ctx, const struct gpb_target *t, __u32 slot,
				       __u64 size, __u32 class, struct gpb_hash *hash)
{
	struct scratch *sc;
	struct gpb_stack *s;
	struct regs r;
	int counted;
	__u64 g;

	if (!same_program(t))
		return 0;
	sc = scratch_claim(slot);
	if (!sc)
		return 0;
	s = &sc->raw.stack;
	r = regs_of(ctx);
	stack_init(s, slot);
	s->object.size = size;
	s->object.class = class;
	/* The frame is not set up yet, and bp is the caller's. */
	g = current_g(t, &r);
	walk_user(&sc->walk, s, t, g, &r, 0);
	if (t->flags & GPB_TARGET_TYPES)
		s->object.type = type_allocated(ctx, t, s, g);
	if (needs_rules(t, s, &sc->walk)) {
		s->flags = 0;
		walk_interrupted(&sc->walk, s, t, g, &r);
	}
	if (t->flags & (GPB_TARGET_GOID | GPB_TARGET_LABELS))
		sample_identity(sc, t, field_u64(field_u64(g, t->g_m), t->m_curg));
	counted = !(s->flags & GPB_STACK_UNRULED);
	sample_send(sc);
	if (t->flags & GPB_TARGET_LIVE)
		stack_hash(s, hash);
	scratch_release(sc);
	return counted;
}

/* Asks the type whether the object holds pointers; only mallocgc itself must do that. */
static __always_inline int type_noscan(struct pt_regs *ctx, const struct gpb_target *t, int regabi)
{
	__u64 type = go_arg(ctx, 1, regabi);

	return !type || !field_u64(type, t->type_ptrdata);
}

/*
 * Does the object hold no pointers? This is found out only where the size of its slot depends on
 * it.
 */
static __always_inline int slot_noscan(struct pt_regs *ctx, const struct gpb_target *t,
				       const struct gpb_heap *h, __u32 kind, __u64 size)
{
	if (kind == GPB_ALLOC_ANY &&
	    (size < TINY_SIZE || (h->header_over && size > h->header_over)))
		return type_noscan(ctx, t, t->flags & GPB_TARGET_REGABI);
	return kind == GPB_ALLOC_TINY || kind == GPB_ALLOC_NOSCAN;
}

/* The same for an object whose slot size did not need the answer: @noscan is known or 0. */
static __always_inline int object_noscan(struct pt_regs *ctx, const struct gpb_target *t,
					 __u32 kind, int noscan)
{
	return noscan ||
	       (kind == GPB_ALLOC_ANY && type_noscan(ctx, t, t->flags & GPB_TARGET_REGABI));
}

/* Is the return address in the function whose calls were counted there already? */
static __always_inline int counted_before(struct pt_regs *ctx, const struct gpb_heap *h,
					  __u64 cookie)
{
	__u32 i = (cookie >> GPB_COOKIE_IMAGE_SHIFT) & (GPB_IMAGES - 1);
	struct regs r = regs_of(ctx);

	return (cookie & GPB_COOKIE_NOT_FROM) &&
	       within(go_return(&r), h->not_from[i].lo, h->not_from[i].hi);
}

/* Has this CPU own time left in the window that is open? This counts the hit, which took @ns. */
static __always_inline int own_time_left(const struct gpb_undilated *own,
					 struct gpb_own_spent *spent, __u32 slot, __u64 ns)
{
	struct gpb_open *open = &open_for[open_of(slot)];
	__u64 since = now_is(&open->since);
	__u64 now = bpf_ktime_get_ns(), before, until;

	if (now < since)
		return 0;
	before = own_book(spent, since, ns);
	if (before == OWN_OVER)
		return 0;
	until = since + before + own->ns;
	/* The time is written in steps, rounded up, because all CPUs share its cache line. */
	if (until > now_is(&open->until))
		*(volatile __u64 *)&open->until = until + own->ns / 8;
	return now < until;
}

/* The bytes of the slot that a request takes, and its size class; 0: it goes into a tiny block that is open. */
static __always_inline __u64 slot_wanted(const struct gpb_target *t, const struct gpb_heap *h,
					 __u64 g, __u32 kind, __u64 size, int noscan, __u32 *class)
{
	if (size >= TINY_SIZE || !noscan || kind == GPB_ALLOC_LARGE)
		return slot_size(h, size, kind, noscan, class);
	*class = h->class8[TINY_SIZE / 8] & (GPB_CLASSES - 1);
	return fits_tiny_block(t, g, size) ? 0 : TINY_SIZE;
}

/* Takes this allocation as a sample. */
static __always_inline void heap_take(struct pt_regs *ctx, const struct gpb_target *t,
				      const struct gpb_heap *h, struct gpb_countdown *c,
				      __u64 cookie, __u32 slot, __u64 g, __u32 class, int noscan,
				      __u64 size, __u64 bytes, int always)
{
	__u32 kind = cookie & GPB_COOKIE_KIND;
	__u64 ns = bpf_ktime_get_ns(), switches = switched_out();
	struct follow f = { .g = g,
			    .asked = (cookie & GPB_COOKIE_ASSISTS) ? size : 0,
			    .size = bytes,
			    .slot = slot,
			    .class = class,
			    .noscan = object_noscan(ctx, t, kind, noscan),
			    .windowed = h->own.ns && !always };
	int counted = heap_sample(ctx, t, slot, bytes, class, &f.hash);

	if ((t->flags & GPB_TARGET_LIVE) && counted)
		slot_follow(t, &f);
	else if (t->flags & GPB_TARGET_LIVE)
		slot_unknown(slot);
	ns = walk_took(&c->spent, bpf_ktime_get_ns() - ns, switched_out() != switches);
	spent_walk(&c->spent, ns);
	set_walk(set_of_cookie(cookie), ns);
	count(&c->own.ns, ns);
}

SEC("uprobe")
int heap_alloc(struct pt_regs *ctx)
{
	__u64 cookie, size, bytes, g;
	__u32 kind, class, slot, at;
	struct gpb_countdown *c;
	struct gpb_target *t;
	struct gpb_classes *seen;
	struct gpb_heap *h;
	int noscan, regabi, always;

	if (!uprobe_begin(ctx, &cookie))
		return 0;
	kind = cookie & GPB_COOKIE_KIND;
	if (!(cookie & GPB_COOKIE_ENTRY) && stack_will_grow(ctx))
		return 0;
	if (!slot_of_hit(cookie, &slot, &at))
		return 0;
	c = bpf_map_lookup_elem(&countdowns, &at);
	h = bpf_map_lookup_elem(&heaps, &at);
	seen = bpf_map_lookup_elem(&classes, &at);
	t = bpf_map_lookup_elem(&targets, &at);
	if (!c || !h || !t || !seen)
		return 0;
	/* Between an exec and the moment that user space hears of it. */
	if (many_targets && !same_program(t))
		return 0;
	spent_hit(&c->spent, cookie);
	if (cookie & GPB_COOKIE_MAKER)
		return maker_enter(ctx, t, slot, kind);
	always = h->large_rate && (kind == GPB_ALLOC_LARGE || kind == GPB_ALLOC_PLACED);
	if (!always && !is_open(open_of(slot), GPB_OPEN_END))
		return 0;
	regabi = t->flags & GPB_TARGET_REGABI;
	g = probed_g(t, ctx, regabi);
	size = go_arg(ctx, 0, regabi);
	/* Also on a CPU whose window is over: those that wait must see every allocation. */
	if (any_placing(slot) && !counted_before(ctx, h, cookie))
		slot_hit(t, slot, g, kind, size);
	if (h->own.ns) {
		__u64 ns = h->own.hit_ns;

		if (cookie & GPB_COOKIE_STEPPED)
			ns += h->own.stepped_ns;
		if (!own_time_left(&h->own, &c->own, slot, ns) && !always)
			return 0;
	}
	if (kind >= GPB_ALLOC_PLACED)
		return 0;
	count(&c->spent.counted, 1);
	if (counted_before(ctx, h, cookie))
		return 0;
	if (kind == GPB_ALLOC_ANY && !size)
		return 0;
	noscan = slot_noscan(ctx, t, h, kind, size);
	bytes = slot_wanted(t, h, g, kind, size, noscan, &class);
	if (!bytes)
		return 0;
	count(&seen->n[class], 1);
	count(&c->bytes, bytes);
	if (due(h, c, bytes, always))
		heap_take(ctx, t, h, c, cookie, slot, g, class, noscan, size, bytes, always);
	return 0;
}

/* Runs once in each GC cycle, before mheap_.sweepgen grows. */
SEC("uprobe")
int heap_cycle(struct pt_regs *ctx)
{
	struct gpb_rec_cycle rec = { .type = GPB_REC_CYCLE };
	__u32 slot, at;
	__u64 cookie;

	if (!probe_cookie(ctx, &cookie) || (!(cookie & GPB_COOKIE_ENTRY) && stack_will_grow(ctx)) ||
	    !slot_of_hit(cookie, &slot, &at))
		return 0;
	rec.slot = slot;
	/* A full ring wakes user space, too. */
	ring_send_flagged(slot, &rec, sizeof(rec), BPF_RB_FORCE_WAKEUP);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
