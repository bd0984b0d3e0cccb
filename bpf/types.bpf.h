/*
 * bpf/types.bpf.h - the type that an allocation is of.
 *
 * Mostly it is the allocator's second argument. Where growslice, makechan or makeslicecopy
 * call it that may be nil: objects without pointers need none. So the type that these were
 * called with is kept, by goroutine, and found again when one of them is what allocates: its
 * return address still stands where it stood, as far below the stack's high end.
 */
#ifndef BPF_TYPES_BPF_H
#define BPF_TYPES_BPF_H

#include "stack.bpf.h"

/*
 * Goroutines between the call of such a function and its allocation: hardly more than there
 * are threads running Go. Two that share a place lose one type.
 */
#define MAKERS	   4096
#define MAKER_NEAR 6 /* frames from the allocator's entry to such a function's caller */

struct maker {
	__u64 who;   /* g, and the target's slot above it: addresses are alike in all Go programs */
	__u64 type;  /* live address */
	__u64 pc;    /* the function's return address */
	__u64 depth; /* of where that is, below the stack's high end: stacks move */
	__u64 check; /* over the others: another CPU may have written half of them */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAKERS);
	__type(key, __u32);
	__type(value, struct maker);
} makers SEC(".maps");

/* Tells two halves of different writes apart; not for what somebody may choose. */
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

static __always_inline struct maker *maker_of(__u64 who)
{
	__u32 key = (maker_word(1, who) >> 40) & (MAKERS - 1);

	return bpf_map_lookup_elem(&makers, &key);
}

static __always_inline __u64 maker_who(__u64 g, __u32 slot)
{
	return g ^ ((__u64)slot << 48);
}

/* Argument 0 or 4. Both are read first: the verifier takes no address that depends on @arg. */
static __always_inline __u64 maker_arg(const struct pt_regs *ctx, __u32 arg)
{
	__u64 first = go_arg(ctx, 0, 1), fifth = go_arg(ctx, 4, 1);

	asm volatile("" : "+r"(first), "+r"(fifth));
	return arg ? fifth : first;
}

/* Such a function is called: its type is argument @arg. */
static __always_inline int maker_enter(struct pt_regs *ctx, const struct gpb_target *t, __u32 slot,
				       __u32 arg)
{
	__u64 g = go_g(ctx), sp = regs_of(ctx).sp;
	struct maker m = {
		.who = maker_who(g, slot),
		.type = maker_arg(ctx, arg),
		.pc = user_u64(sp),
		.depth = field_u64(g, t->g_stack_hi) - sp,
	};
	struct maker *to = maker_of(m.who);

	m.check = maker_check(&m);
	if (to)
		*to = m;
	return 0;
}

/* Is @pc among the callers that are near? What else lies on a stack may be left over. */
static __always_inline int called_by(const struct gpb_stack *s, __u64 pc)
{
	for (__u32 i = 1; i <= MAKER_NEAR && i < s->nfirst; i++)
		if (s->pc[i] == pc)
			return 1;
	return 0;
}

/* The type that the one was called with which now allocates, 0 when none does. */
static __always_inline __u64 maker_type(const struct gpb_target *t, const struct gpb_stack *s,
					__u64 g, __u64 sp)
{
	__u64 who = maker_who(g, s->slot), at;
	const struct maker *from = maker_of(who);
	struct maker m;

	if (!from)
		return 0;
	m = *from;
	if (m.who != who || m.check != maker_check(&m) || !called_by(s, m.pc))
		return 0;
	at = field_u64(g, t->g_stack_hi) - m.depth;
	return at > sp && user_u64(at) == m.pc ? m.type : 0;
}

/*
 * At an entry of the allocator: the live address of the type's descriptor, 0 not known.
 * @s: the stack, as frame pointers have it.
 */
static __always_inline __u64 type_allocated(struct pt_regs *ctx, const struct gpb_target *t,
					    const struct gpb_stack *s, __u64 g)
{
	int regabi = t->flags & GPB_TARGET_REGABI;
	__u64 made = regabi ? maker_type(t, s, g, regs_of(ctx).sp) : 0;

	return made ? made | GPB_TYPE_MAKER : go_arg(ctx, 1, regabi);
}

#endif
