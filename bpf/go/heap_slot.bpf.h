/*
 * bpf/go/heap_slot.bpf.h - where the object of a sampled allocation will lie.
 *
 * The probe sits before the allocation. The P's mcache tells which slot a small object gets: it
 * has the span of the object's class, and that span has freeindex and allocCache and, where the
 * cache is used up, the next words of allocBits. Two things can happen between the probe and the
 * allocation. The goroutine may have to assist the GC, and may lose its P there. Then the slot is
 * looked up where gcAssistAlloc returns; from there on nobody can take the P away until the
 * object is made. Or the span may be full. Then the slot is looked up in the next span, where
 * mcache.refill returns. Large objects wait for the return of mcache.allocLarge. So nothing of
 * this depends on who else allocates, or on how soon the goroutine runs again. When a wait does
 * not end as expected, it is settled at its goroutine's next allocation: there, exactly one slot
 * must have been taken in the same place. If that is not so the object is counted as unknown;
 * nothing is guessed.
 *
 * Two errors are left. A hit at refill's return is missed, and before the goroutine allocates again,
 * another one on its P exhausts the new span and takes the first slot of the next one: both objects are
 * then said to lie there. And while the GC marks, deductAssistCredit checks the stack in Go 1.20 to 1.23,
 * and in 1.27 so does the slow path that each of the size-specialised allocators then calls. When
 * a goroutine is asked to yield in the microsecond between our look and that check, its object is
 * mistaken for the next one of its class on that P. With every object sampled, of a goroutine
 * that does nothing but allocate, these are 0.2 (1.27) to 0.5 (1.22) objects in a cycle; none
 * with Go 1.19 and 1.24.
 *
 * Sources: mallocgc, nextFreeFast, nextFree and deductAssistCredit in runtime/malloc.go,
 * nextFreeIndex in runtime/mbitmap.go, refill and allocLarge in runtime/mcache.go, gcAssistAlloc
 * in runtime/mgcmark.go; Go 1.19 to 1.27.
 */
#ifndef BPF_HEAP_SLOT_BPF_H
#define BPF_HEAP_SLOT_BPF_H

#include "common.bpf.h"

#define SLOT_WORDS     16 /* of allocBits; no span of a size class has more than 1,024 slots */
#define STACKGUARD0    16 /* from g.stack.lo: struct g begins with stack and stackguard0 */
#define STACK_POISONED 0xfffffffffffff000ULL /* a guard from here on asks the goroutine to yield */

enum { SLOT_BAD = -2, SLOT_FULL = -1 };

/* Number of trailing zeroes; @w is not 0. */
static __always_inline __u32 low_bit(__u64 w)
{
	__u32 n = 0;

	if (!(w & 0xffffffff)) {
		n += 32;
		w >>= 32;
	}
	if (!(w & 0xffff)) {
		n += 16;
		w >>= 16;
	}
	if (!(w & 0xff)) {
		n += 8;
		w >>= 8;
	}
	if (!(w & 0xf)) {
		n += 4;
		w >>= 4;
	}
	if (!(w & 3)) {
		n += 2;
		w >>= 2;
	}
	return n + !(w & 1);
}

static __always_inline __u64 span_index(const struct gpb_live *l, __u64 span, __s32 off)
{
	__u64 v = field_u64(span, off);

	return l->index_bytes == 2 ? v & 0xffff : v;
}

/*
 * The slot that the next allocation from @span takes; SLOT_FULL when it has none left, SLOT_BAD
 * when this is no span of slots of @size bytes. A global function, so that the verifier checks it
 * by itself.
 */
ONCE_INLINE int slot_next(const struct gpb_live *l, __u64 span, __u64 size)
{
	__u64 at, n, cache, bits;

	if (!l)
		return SLOT_BAD;
	n = span_index(l, span, l->span_nelems);
	if (!n) /* runtime.emptymspan */
		return span ? SLOT_FULL : SLOT_BAD;
	if (field_u64(span, l->span_elemsize) != size || n > 64 * SLOT_WORDS)
		return SLOT_BAD;
	at = span_index(l, span, l->span_freeindex);
	cache = field_u64(span, l->span_cache);
	bits = field_u64(span, l->span_bits);
	if (at >= n)
		return SLOT_FULL;
	for (int i = 0; i < SLOT_WORDS && !cache; i++) {
		at = (at + 64) & ~63ULL;
		if (at >= n)
			return SLOT_FULL;
		if (user_read(&cache, sizeof(cache), bits + at / 8))
			return SLOT_BAD;
		cache = ~cache;
	}
	if (!cache)
		return SLOT_FULL;
	at += low_bit(cache);
	return at < n ? (int)at : SLOT_FULL;
}

/*
 * To be asked after an allocation was made from the span in the same place of the mcache: the
 * slot that it took. @was, @index: what slot_next() had answered before. SLOT_BAD when more or
 * fewer than one slot were taken since.
 */
ONCE_INLINE int slot_taken(const struct gpb_live *l, __u64 was, int index, __u64 span, __u64 size)
{
	__u64 at;

	if (!l)
		return SLOT_BAD;
	at = span_index(l, span, l->span_freeindex);
	if (field_u64(span, l->span_elemsize) != size)
		return SLOT_BAD;
	if (index >= 0)
		return span == was && at == (__u64)index + 1 ? index : SLOT_BAD;
	if (span == was || !at)
		return SLOT_BAD;
	if ((__u16)(field_u32(span, l->span_count) - field_u32(span, l->span_before)) != 1)
		return SLOT_BAD;
	return (int)(at - 1);
}

/*
 * Can nothing come between now and an allocation of @size requested bytes? That is so when the GC
 * does not mark, or @g has the credit for it, and @g is not asked to yield.
 */
static __always_inline int slot_is_next(const struct gpb_live *l, const struct gpb_target *t,
					__u64 g, __u64 size)
{
	__u32 blacken = 1;
	__u64 user;

	if (t->g_stack_lo < 0 || field_u64(g, t->g_stack_lo + STACKGUARD0) >= STACK_POISONED)
		return 0;
	if (!l->blacken || user_read(&blacken, sizeof(blacken), l->blacken))
		return 0;
	if (!blacken)
		return 1;
	user = field_u64(field_u64(g, t->g_m), t->m_curg);
	return l->g_credit >= 0 && (__s64)field_u64(user ? user : g, l->g_credit) >= (__s64)size;
}

#ifndef GPB_HOST

#include "sets.bpf.h"

struct placing {
	struct gpb_rec_object rec;
	__u32 kind;  /* what it waits for: GPB_ALLOC_PLACED, _REFILLED, _ASSISTED */
	__u32 class; /* span class */
	__u64 cache; /* the mcache at the time it began to wait, */
	__u64 span;  /* the span that was in it, */
	__s32 index; /* and the answer of slot_next() */
	__u32 pad;
	__u64 since; /* since of open_for: in another window, the probes were away meanwhile */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GPB_PLACING);
	__type(key, struct gpb_placing_key);
	__type(value, struct placing);
} placings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, GPB_TARGETS);
	__type(key, __u32);
	__type(value, struct gpb_live);
} lives SEC(".maps");

/*
 * For each target: the number of entries in placings, so that a hit need not look when there are
 * none.
 */
__u64 nplacing[SLOTS] = {};

static __always_inline __u64 open_since(__u32 slot)
{
	return *(volatile __u64 *)&open_for[open_of(slot)].since;
}

static __always_inline int any_placing(__u32 slot)
{
	return *(volatile __u64 *)&nplacing[slot & (SLOTS - 1)] != 0;
}

/* How the slots became known, for each target; read through .bss. */
struct gpb_objects object_counts[SLOTS] = {};

static __always_inline struct gpb_objects *objects_of(__u32 slot)
{
	return &object_counts[slot & (SLOTS - 1)];
}

static __always_inline void slot_unknown(__u32 slot)
{
	__sync_fetch_and_add(&objects_of(slot)->unknown, 1);
}

static __always_inline struct gpb_live *live_of(__u32 slot)
{
	__u32 at = slot & (SLOTS - 1);

	return bpf_map_lookup_elem(&lives, &at);
}

/* User space looks often enough by itself; it is woken only when the ring fills. */
static __always_inline int object_send(struct gpb_rec_object *rec, __u32 slot)
{
	__u64 flags = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) * 4 >
				      bpf_ringbuf_query(&ring, BPF_RB_RING_SIZE) ?
			      BPF_RB_FORCE_WAKEUP :
			      BPF_RB_NO_WAKEUP;

	rec->slot = slot;
	if (!ring_send_flagged(slot, rec, sizeof(*rec), flags))
		return 1;
	lose(slot, GPB_LOSS_OBJECTS);
	return 0;
}

static __always_inline void placing_add(struct gpb_placing_key *key, struct placing *p)
{
	/* An entry that is still there was never settled, because its hit was missed. */
	if (bpf_map_lookup_elem(&placings, key)) {
		slot_unknown(key->slot);
		bpf_map_update_elem(&placings, key, p, BPF_ANY);
	} else if (bpf_map_update_elem(&placings, key, p, BPF_ANY)) {
		slot_unknown(key->slot);
	} else {
		__sync_fetch_and_add(&nplacing[key->slot & (SLOTS - 1)], 1);
	}
}

/* Removes the entry. 0 when there is none, or when it can no longer be used, which is counted. */
static __always_inline int placing_take(struct gpb_placing_key *key, struct placing *out)
{
	struct placing *p = bpf_map_lookup_elem(&placings, key);

	if (!p)
		return 0;
	*out = *p;
	if (bpf_map_delete_elem(&placings, key))
		return 0;
	__sync_fetch_and_add(&nplacing[key->slot & (SLOTS - 1)], -1);
	if (out->since == open_since(key->slot))
		return 1;
	slot_unknown(key->slot);
	return 0;
}

static __always_inline void span_tell(const struct gpb_live *l, __u64 span,
				      struct gpb_rec_object *rec)
{
	rec->span = span;
	rec->base = field_u64(span, l->span_start);
	rec->marks = field_u64(span, l->span_marks);
}

static __always_inline __u64 mcache_of(const struct gpb_target *t, __u64 g)
{
	return field_u64(field_u64(field_u64(g, t->g_m), t->m_p), t->p_mcache);
}

/* The object of @p is the next one of its class that @g makes: sends its slot, or waits for it. */
static __always_inline int slot_tell(const struct gpb_target *t, const struct gpb_live *l,
				     struct gpb_placing_key *key, struct placing *p)
{
	if (user_read(&p->rec.sweepgen, sizeof(p->rec.sweepgen), l->sweepgen)) {
		slot_unknown(key->slot);
		return 0;
	}
	p->cache = mcache_of(t, key->g);
	p->span = user_u64(p->cache + l->mcache_alloc + 8 * p->class);
	p->index = slot_next(l, p->span, p->rec.size);
	if (p->index == SLOT_BAD) {
		slot_unknown(key->slot);
		return 0;
	}
	if (p->kind || p->index == SLOT_FULL) {
		if (!p->kind)
			p->kind = GPB_ALLOC_REFILLED;
		placing_add(key, p);
		return 0;
	}
	p->rec.index = p->index;
	span_tell(l, p->span, &p->rec);
	return object_send(&p->rec, key->slot);
}

/* An allocation that was sampled, and whose object is to be followed. */
struct follow {
	struct gpb_hash hash; /* of the stack that its sample is counted under */
	__u64 g;
	/* requested bytes for which the goroutine may still have to assist the GC; 0: none */
	__u64 asked;
	__u64 size;	   /* of the slot */
	__u32 slot, class; /* size class; 0 for large objects */
	__u32 noscan, windowed;
};

/* A global function, so that the verifier checks it by itself. */
ONCE_CALLED int slot_follow(const struct gpb_target *t, const struct follow *f)
{
	struct gpb_live *l;
	struct gpb_placing_key key = {};
	struct placing p = { .rec = { .type = GPB_REC_OBJECT } };

	if (!t || !f)
		return 0;
	l = live_of(f->slot);
	key.g = f->g;
	key.slot = f->slot;
	p.rec.stack = f->hash;
	p.rec.size = f->size;
	p.rec.window = f->windowed ? open_since(f->slot) : 0;
	p.since = open_since(f->slot);
	if (!l) {
		slot_unknown(f->slot);
		return 0;
	}
	if (!f->class) {
		p.kind = GPB_ALLOC_PLACED;
		placing_add(&key, &p);
		return 0;
	}
	p.class = f->class << 1 | !!f->noscan;
	p.kind = !f->asked || slot_is_next(l, t, f->g, f->asked) ? 0 : GPB_ALLOC_ASSISTED;
	if (slot_tell(t, l, &key, &p))
		__sync_fetch_and_add(&objects_of(f->slot)->told, 1);
	return 0;
}

/* @g allocates again, and what its last sample waited for has not come. */
static __always_inline void slot_settle(const struct gpb_target *t, const struct gpb_live *l,
					__u32 slot, __u64 g, struct placing *p)
{
	__u64 span = user_u64(p->cache + l->mcache_alloc + 8 * p->class);
	int index = slot_taken(l, p->span, p->index, span, p->rec.size);
	__u32 gen = 0;

	user_read(&gen, sizeof(gen), l->sweepgen);
	/* A GC cycle has emptied all caches, so the span may belong to another one by now. */
	if (index < 0 || p->cache != mcache_of(t, g) || gen != p->rec.sweepgen) {
		slot_unknown(slot);
		return;
	}
	p->rec.index = index;
	span_tell(l, span, &p->rec);
	if (object_send(&p->rec, slot))
		__sync_fetch_and_add(&objects_of(slot)->settled, 1);
}

/* Handles the return of allocLarge with @span. */
static __always_inline void slot_placed(const struct gpb_live *l, __u32 slot, __u64 span,
					struct placing *p)
{
	if (field_u64(span, l->span_elemsize) != p->rec.size ||
	    user_read(&p->rec.sweepgen, sizeof(p->rec.sweepgen), l->sweepgen)) {
		slot_unknown(slot);
		return;
	}
	span_tell(l, span, &p->rec);
	if (object_send(&p->rec, slot))
		__sync_fetch_and_add(&objects_of(slot)->large, 1);
}

/*
 * Handles any hit of @g while entries wait. @kind: of the probe; @arg: the function's first
 * argument, or what it returns. A global function, so that the verifier checks it by itself.
 */
ONCE_CALLED int slot_hit(const struct gpb_target *t, __u32 slot, __u64 g, __u32 kind, __u64 arg)
{
	struct gpb_live *l = live_of(slot);
	struct gpb_placing_key key = { .g = g, .slot = slot };
	const struct placing *there = bpf_map_lookup_elem(&placings, &key);
	struct placing p;

	if (!t || !l || !there)
		return 0;
	/*
	 * The code that assists for a large object may allocate, too; returns of another kind
	 * belong to other allocations.
	 */
	if (there->kind != kind && (kind >= GPB_ALLOC_PLACED || there->kind == GPB_ALLOC_PLACED))
		return 0;
	if (!placing_take(&key, &p))
		return 0;
	if (kind == GPB_ALLOC_PLACED) {
		slot_placed(l, slot, arg, &p);
	} else if (kind < GPB_ALLOC_PLACED) {
		slot_settle(t, l, slot, g, &p);
	} else {
		p.kind = 0;
		if (slot_tell(t, l, &key, &p))
			__sync_fetch_and_add(&objects_of(slot)->waited, 1);
	}
	return 0;
}

#endif /* GPB_HOST */
#endif
