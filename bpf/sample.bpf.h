/*
 * bpf/sample.bpf.h - a finished stack on its way to user space: counted in the kernel's
 * table where that is possible, sent through the ring where it is not.
 */
#ifndef BPF_SAMPLE_BPF_H
#define BPF_SAMPLE_BPF_H

#include "go/labels.bpf.h"
#include "quota.bpf.h"
#include "go/stack.bpf.h"

/*
 * A sample is far larger than a BPF stack. A uprobe program can be preempted by another one on
 * the same CPU, so each CPU has a few scratch buffers, and a program claims one.
 */
struct scratch {
	struct gpb_claim claim; /* comes first: user space reads it alone */
	struct gpb_rec_raw raw;
	struct gpb_rec_labels labels;
	struct walk walk;
	struct gpb_sip sip; /* GPB_OLD: of what is being hashed */
};

#define SCRATCH_PLACES 3
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCH_PLACES);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

/* On old kernels no program is preempted by another one: what it has in work is in the first place (old.bpf.h). */
#ifndef GPB_OLD
#define SCRATCH_USED SCRATCH_PLACES
#else
#define SCRATCH_USED 1

static __always_inline struct scratch *own_scratch(void)
{
	__u32 first = 0;

	return bpf_map_lookup_elem(&scratches, &first);
}

static __always_inline struct walk *own_walk(void)
{
	struct scratch *s = own_scratch();

	return s ? &s->walk : NULL;
}

static __always_inline struct gpb_stack *own_stack(void)
{
	struct scratch *s = own_scratch();

	return s ? &s->raw.stack : NULL;
}

static __always_inline struct gpb_rec_labels *own_labels(void)
{
	struct scratch *s = own_scratch();

	return s ? &s->labels : NULL;
}

static __always_inline struct gpb_sip *own_sip(void)
{
	struct scratch *s = own_scratch();

	return s ? &s->sip : NULL;
}

static __always_inline struct gpb_target *own_target(void)
{
	struct scratch *s = own_scratch();
	__u32 slot = s ? s->raw.stack.slot & (SLOTS - 1) : 0;

	return bpf_map_lookup_elem(&targets, &slot);
}
#endif

/*
 * Is this still the program that was opened? Between an exec and the moment that user space
 * notices it, addresses of the new program would be mistaken for functions of the old one.
 */
static __always_inline int same_program(const struct gpb_target *t)
{
	struct mm_struct *mm = task_read(current_task(), mm);
	__u64 now = mm ? task_read(mm, start_stack) : 0;

	/* There is no start_stack: the thread is at the end of its exit. */
	return !t->start_stack || !now || now == t->start_stack;
}

/* Read by user space through .bss. */
struct gpb_rounds rounds = {};

/*
 * The result is used, so that the instruction is the one that fetches: only that one is a full
 * barrier on all machines, and the round must be read behind it.
 */
static __always_inline void filing_add(__u64 round, __u64 n)
{
	__u64 was = atomic_add(&rounds.filing[round & 1], n);

	asm volatile("" : : "r"(was));
}

/*
 * Joins the present round. A new round may begin between reading it and counting this program,
 * when user space has not seen the program yet: then this leaves the round and reads again.
 * Global: verified once.
 */
ONCE_INLINE int round_enter(struct scratch *s)
{
	if (!s)
		return 0;
	for (int i = 0; i < 4; i++) {
		__u64 round = *(volatile __u64 *)&rounds.now;

		filing_add(round, 1);
		if (*(volatile __u64 *)&rounds.now == round) {
			s->claim.round = round;
			return 1;
		}
		filing_add(round, -1);
	}
	return 0;
}

static __always_inline struct scratch *scratch_claim(__u32 slot)
{
	for (__u32 i = 0; i < SCRATCH_USED; i++) {
		__u32 key = i;
		struct scratch *s = bpf_map_lookup_elem(&scratches, &key);

		if (!s || !atomic_swap(&s->claim.busy, 0, 1))
			continue;
		s->claim.slot = slot;
		if (round_enter(s))
			return s;
		atomic_clear(&s->claim.busy);
		break;
	}
	lose(slot, GPB_LOSS_DROPPED);
	return NULL;
}

static __always_inline void scratch_release(struct scratch *s)
{
	filing_add(s->claim.round, -1);
	atomic_clear(&s->claim.busy);
}

/*
 * Sends the label set of @g to user space when it is new. Returns its id, 0 for none. Global:
 * verified once.
 */
ONCE(__u64, sample_labels, (SCRATCH_PARAM, const struct gpb_target *t, __u64 g),
     (own_scratch(), own_target(), g), (__u64 g), (g))
{
	struct gpb_rec_labels *l;
	__u64 addr, size, id;
	__u32 slot;
	int cut = 0;
	__u8 one = 1;

	if (!sc || !t)
		return 0;
	l = &sc->labels;
	slot = sc->raw.stack.slot;
	addr = field_u64(g, t->g_labels);
	if (!addr)
		return 0;
	l->type = GPB_REC_LABELS;
	l->n = 0;
	l->slot = slot;
	if (t->labels_kind == GPB_LABELS_SLICE)
		cut = labels_slice(l, addr);
	else if (t->labels_kind == GPB_LABELS_MAP)
		cut = labels_map(l, addr);
	if (cut)
		lose(slot, GPB_LOSS_LABELS);
	if (!l->n)
		return 0;
	labels_hash(l);
	/* Up to Linux 6.1 a key may not lie in what a global function was given. */
	id = l->id;
	if (bpf_map_lookup_elem(&labelsets, &id))
		return id;
	size = offsetof(struct gpb_rec_labels, label) +
	       (__u64)(l->n & (2 * GPB_MAX_LABELS - 1)) * sizeof(struct gpb_label);
	if (size > sizeof(*l))
		size = sizeof(*l);
	if (ring_send(slot, l, size)) {
		lose(slot, GPB_LOSS_LABELS);
		return 0;
	}
	/* A full table only means that a set is sent more than once. */
	bpf_map_update_elem(&labelsets, &id, &one, BPF_ANY);
	return id;
}

/*
 * Sets which goroutine the sample belongs to, as far as that is asked for. @gp is the goroutine,
 * not g0.
 */
static __always_inline void sample_identity(struct scratch *sc, const struct gpb_target *t,
					    __u64 gp)
{
	struct gpb_stack *s = &sc->raw.stack;

	if (t->flags & GPB_TARGET_GOID)
		s->goid = field_u64(gp, t->g_goid);
	if (t->flags & GPB_TARGET_LABELS)
		s->labels = sample_labels(sc, t, gp);
}

static __always_inline void stack_init(struct gpb_stack *s, __u32 slot)
{
	s->count = 1;
	s->delay = 0;
	s->slot = slot;
	s->flags = 0;
	s->nkernel = s->nfirst = s->nsecond = s->hints = 0;
	s->goid = s->labels = s->of[0] = s->of[1] = 0;
}

#ifdef GPB_OLD
/* A block of the pcs, from @i on, of which @n are used. */
__noinline int stack_hash_block(__u32 i, __u32 n)
{
	struct scratch *sc = own_scratch();

	return sc && i <= GPB_MAX_PCS - HASH_WORDS ?
		       hash_block(&sc->sip, (const struct hash_block *)&sc->raw.stack.pc[i], n) :
		       0;
}
#else
#define stack_hash_block(i, n) hash_block(sip, (const struct hash_block *)&s->pc[i], n)
#endif

/* A global function, so that the verifier checks its loop once. */
ONCE_INLINE int stack_hash(const struct gpb_stack *s, struct gpb_hash *h)
{
	HASH_STATE(sip);
	__u32 n;

	if (!s || !h || !sip)
		return 0;
	n = s->nkernel + s->nfirst + s->nsecond + s->hints;
	hash_begin(sip);
	gpb_sip_word(sip, ((__u64)s->flags << 32) | s->slot);
	gpb_sip_word(sip, ((__u64)s->hints << 48) | ((__u64)s->nkernel << 32) |
				  ((__u64)s->nfirst << 16) | s->nsecond);
	gpb_sip_word(sip, s->goid);
	gpb_sip_word(sip, s->labels);
	gpb_sip_word(sip, s->of[0]);
	gpb_sip_word(sip, s->of[1]);
	_Static_assert(GPB_MAX_PCS % HASH_WORDS == 0, "whole blocks");
	for (__u32 i = 0; i < GPB_MAX_PCS && i < n; i += HASH_WORDS)
		stack_hash_block(i, n - i);
	h->lo = gpb_sip_end(sip);
	h->hi = gpb_sip_more(sip);
	return 0;
}

/* The table has no room, so the stack is sent as a record. */
static __always_inline void sample_overflow(struct scratch *sc)
{
	__u32 slot = sc->raw.stack.slot;

	sc->raw.type = GPB_REC_STACK;
	if (ring_send(slot, &sc->raw, offsetof(struct gpb_rec_raw, top)))
		lose(slot, GPB_LOSS_DROPPED);
}

/*
 * The entry of sc->raw.stack in the kernel's table; *fresh: it was just put there, as it is.
 * NULL: the table has no room for this target.
 */
static __always_inline struct gpb_stack *sample_entry(struct scratch *sc, int *fresh)
{
	struct gpb_stack *s = &sc->raw.stack, *have;
	struct gpb_stack_key key = { .round = sc->claim.round };

	stack_hash(s, &key.hash);
	sc->raw.pc = key.hash.lo;
	sc->raw.sp = key.hash.hi;
	*fresh = 0;
	have = bpf_map_lookup_elem(&stacks, &key);
	if (have)
		return have;
	if (!stack_allowed(s->slot))
		return NULL;
	/* This fails also when another CPU was first. */
	*fresh = !bpf_map_update_elem(&stacks, &key, s, BPF_NOEXIST);
	if (*fresh)
		stack_was_put(s->slot);
	return bpf_map_lookup_elem(&stacks, &key);
}

static __always_inline void sample_add(struct gpb_stack *have, __u64 count, __u64 delay)
{
	__sync_fetch_and_add(&have->count, count);
	if (delay)
		__sync_fetch_and_add(&have->delay, delay);
}

/*
 * Adds the count of sc->raw.stack to its entry. Global: verified once; but not up to Linux 6.1, where
 * such a function may not hand what it was given to a map (user/probe/bpf_fit.h).
 */
ONCE(int, sample_count, (SCRATCH_PARAM), (own_scratch()), (void), ())
{
	struct gpb_stack *have;
	int fresh;

	if (!sc)
		return 0;
	have = sample_entry(sc, &fresh);
	if (fresh)
		return 0;
	if (have)
		sample_add(have, sc->raw.stack.count, sc->raw.stack.delay);
	else
		sample_overflow(sc);
	return 0;
}

/*
 * Counts a stack that could not be sent with its memory. User space finishes it by frame pointers, so its
 * first caller may be missing.
 */
static __always_inline void sample_unsettled(struct scratch *sc)
{
	struct gpb_stack *s = &sc->raw.stack;

	s->flags |= GPB_STACK_CALLER | (sc->walk.second ? GPB_STACK_SECOND : 0);
	lose(s->slot, GPB_LOSS_CALLER);
	sample_count(sc);
}

/*
 * Copies @bytes, or as many as there is room for. Returns the number of words that were read: all
 * or none.
 */
static __always_inline __u64 raw_words(struct gpb_rec_raw *raw, __u64 bytes)
{
	if (bytes > sizeof(raw->top))
		bytes = sizeof(raw->top);
	if (!bytes || user_read(raw->top, bytes, raw->sp))
		return 0;
	return bytes / 8;
}

/*
 * Sends a stack of which a frame has no rule yet, with the memory above that frame's sp. Global:
 * verified once.
 */
ONCE(int, sample_raw, (SCRATCH_PARAM), (own_scratch()), (void), ())
{
	struct gpb_rec_raw *raw;
	__u64 left, n;

	if (!sc)
		return 0;
	raw = &sc->raw;
	left = sc->walk.hi > sc->walk.sp ? sc->walk.hi - sc->walk.sp + RAW_BELOW : 0;
	raw->type = GPB_REC_RAW;
	raw->pc = sc->walk.pc;
	raw->sp = sc->walk.sp;
	raw->second = sc->walk.second;
	raw_begin(raw);
	/*
	 * A system stack that C made is longer than Go knows, and the memory beyond a stack may
	 * not be there. So more is tried first, then the exact length, then less and less.
	 */
	n = raw_words(raw, left + 1024);
	if (!n)
		n = raw_words(raw, left);
	for (int i = 0; i < 5 && !n; i++)
		n = raw_words(raw, 4096 >> (2 * i));
	raw->ntop = n;
	raw_end(raw, sc->walk.lr);
	n = offsetof(struct gpb_rec_raw, top) + 8ULL * raw->ntop;
	/* Linux 6.1 needs the check that the compiler would leave out. */
	barrier_var(n);
	if (n <= sizeof(*raw) && !ring_send(raw->stack.slot, raw, n))
		return 0;
	if (many_targets)
		sample_unsettled(sc);
	else
		lose(raw->stack.slot, GPB_LOSS_DROPPED);
	return 0;
}

static __always_inline void sample_flags(const struct gpb_stack *s)
{
	if (s->flags & GPB_STACK_CUT)
		lose(s->slot, GPB_LOSS_CUT);
	if (s->flags & GPB_STACK_FAULT)
		lose(s->slot, GPB_LOSS_UNREADABLE);
	if (s->flags & GPB_STACK_CALLER)
		lose(s->slot, GPB_LOSS_CALLER);
}

/* Sends the sample on to user space in the way that sc->raw.stack.flags demand. */
static __always_inline void sample_send(struct scratch *sc)
{
	struct gpb_stack *s = &sc->raw.stack;

	sample_flags(s);
	if (s->flags & GPB_STACK_UNRULED)
		sample_raw(sc);
	else
		sample_count(sc);
}

#endif
