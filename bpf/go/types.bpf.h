/*
 * bpf/go/types.bpf.h - the type that an allocation makes.
 *
 * Mostly it is the allocator's second argument. When growslice, makechan or makeslicecopy call
 * the allocator, that argument may be nil, because objects without pointers need no type. So the
 * type that these functions were called with is kept, for each goroutine, and found again when
 * one of them is the caller of an allocation: its return address still lies at the same distance
 * from the stack's high end.
 */
#ifndef BPF_TYPES_BPF_H
#define BPF_TYPES_BPF_H

#include "go/stack.bpf.h"

/*
 * What such functions were called with, as a set-associative table keyed by goroutine. A
 * goroutine keeps its way of a set; a new one takes the next way in turn. A type is lost only
 * when more goroutines than a set has ways are between the call and its allocation at once,
 * in the same set. With one way, two goroutines whose keys fell together lost types whenever
 * they ran side by side.
 */
#define MAKER_SETS 1024
#define MAKER_WAYS 4
/* frames between the allocator's entry and the caller of such a function, at most */
#define MAKER_NEAR 6

struct maker {
	/*
	 * g, with the target's slot in the bits above it, because addresses are alike in all Go
	 * programs
	 */
	__u64 who;
	__u64 type; /* live address */
	__u64 pc;   /* the function's return address */
	/* distance of that return address from the stack's high end, because stacks move */
	__u64 depth;
	/* a checksum of the others, because another CPU may have written half of them */
	__u64 check;
};

struct maker_set {
	__u64 turn; /* the index of the way that a new goroutine takes, modulo MAKER_WAYS */
	struct maker way[MAKER_WAYS];
};

#ifdef GPB_HOST
static struct maker_set *maker_set_at(__u32 key);
#else
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAKER_SETS);
	__type(key, __u32);
	__type(value, struct maker_set);
} makers SEC(".maps");

static __always_inline struct maker_set *maker_set_at(__u32 key)
{
	return bpf_map_lookup_elem(&makers, &key);
}
#endif

/*
 * A hash that detects two halves of different writes. It does not resist values that somebody
 * chooses.
 */
static __always_inline __u64 maker_word(__u64 h, __u64 w)
{
	h = (h ^ w) * 0x9e3779b97f4a7c15ULL;
	return h ^ h >> 29;
}

static __always_inline __u64 maker_check(const struct maker *m)
{
	__u64 h = maker_word(1, m->who);

	h = maker_word(h, m->type);
	h = maker_word(h, m->pc);
	return maker_word(h, m->depth);
}

static __always_inline struct maker_set *maker_set_of(__u64 who)
{
	return maker_set_at((maker_word(1, who) >> 40) & (MAKER_SETS - 1));
}

static __always_inline struct maker *maker_in(struct maker_set *set, __u64 who)
{
	for (__u32 i = 0; i < MAKER_WAYS; i++)
		if (set->way[i].who == who)
			return &set->way[i];
	return NULL;
}

/* Keeps @m, with its check, until its goroutine keeps another one or its way is taken. */
static __always_inline void maker_keep(struct maker *m)
{
	struct maker_set *set = maker_set_of(m->who);
	struct maker *to;

	if (!set)
		return;
	m->check = maker_check(m);
	to = maker_in(set, m->who);
	if (!to)
		to = &set->way[atomic_add(&set->turn, 1) & (MAKER_WAYS - 1)];
	*to = *m;
}

/* True when *@m is the complete one that the goroutine @who kept last. */
static __always_inline int maker_kept(__u64 who, struct maker *m)
{
	struct maker_set *set = maker_set_of(who);
	const struct maker *from = set ? maker_in(set, who) : NULL;

	if (!from)
		return 0;
	*m = *from;
	return m->who == who && m->check == maker_check(m);
}

static __always_inline __u64 maker_who(__u64 g, __u32 slot)
{
	return g ^ ((__u64)slot << 48);
}

#ifndef GPB_HOST

/*
 * Argument 0 or 4. Both are read first, because the verifier accepts no address that depends on
 * @arg.
 */
static __always_inline __u64 maker_arg(const struct pt_regs *ctx, __u32 arg)
{
	__u64 first = go_arg(ctx, 0, 1), fifth = go_arg(ctx, 4, 1);

	asm volatile("" : "+r"(first), "+r"(fifth));
	return arg ? fifth : first;
}

/* Such a function is called: remembers its type, which is argument @arg. */
static __always_inline int maker_enter(struct pt_regs *ctx, const struct gpb_target *t, __u32 slot,
				       __u32 arg)
{
	struct regs r = regs_of(ctx);
	__u64 g = go_g(ctx), sp = r.sp;
	struct maker m = {
		.who = maker_who(g, slot),
		.type = maker_arg(ctx, arg),
		.pc = go_return(&r),
		.depth = field_u64(g, t->g_stack_hi) - sp,
	};

	maker_keep(&m);
	return 0;
}

#endif

/* Is @pc among the nearest callers? Other words on a stack may be left over from earlier calls. */
static __always_inline int called_by(const struct gpb_stack *s, __u64 pc)
{
	for (__u32 i = 1; i <= MAKER_NEAR && i < s->nfirst; i++)
		if (s->pc[i] == pc)
			return 1;
	return 0;
}

/*
 * The type that the function was called with which is now allocating; 0 when it is none of these.
 */
static __always_inline __u64 maker_type(const struct gpb_target *t, const struct gpb_stack *s,
					__u64 g, __u64 sp)
{
	__u64 who = maker_who(g, s->slot), at;
	struct maker m;

	if (!maker_kept(who, &m) || !called_by(s, m.pc))
		return 0;
	at = field_u64(g, t->g_stack_hi) - m.depth;
	return at > sp && still_called(at, m.pc) ? m.type : 0;
}

#ifndef GPB_HOST

/*
 * At an entry of the allocator: the live address of the type's descriptor, 0: not known. @s: the
 * stack, from frame pointers.
 */
static __always_inline __u64 type_allocated(struct pt_regs *ctx, const struct gpb_target *t,
					    const struct gpb_stack *s, __u64 g)
{
	int regabi = t->flags & GPB_TARGET_REGABI;
	__u64 made = regabi ? maker_type(t, s, g, regs_of(ctx).sp) : 0;

	return made ? made | GPB_TYPE_MAKER : go_arg(ctx, 1, regabi);
}

#endif /* GPB_HOST */
#endif
