/*
 * bpf/parked.bpf.h - samples of goroutines that wait: which waits are sampled, whose stack is
 * walked, and how they go to user space.
 */
#ifndef BPF_PARKED_BPF_H
#define BPF_PARKED_BPF_H

#include "go/unwind_rules.bpf.h"

#ifndef GPB_HOST
#include "sample.bpf.h"

static __always_inline __u64 random64(void)
{
	return ((__u64)bpf_get_prandom_u32() << 32) | bpf_get_prandom_u32();
}
#endif

/* The weight of a sample: how many waits it stands for, and their total length. */
struct weight {
	__u64 count, delay;
};

/*
 * Is this wait a sample? Long waits always are, short ones with a probability in proportion, and
 * then they count for as many as they stand for. Source: blocksampled and saveblockevent in
 * runtime/mprof.go, Go 1.17 to 1.27.
 */
static __always_inline int weigh(struct weight *w, __u64 delay, __u64 rate)
{
	if (!delay)
		delay = 1;
	*w = (struct weight){ GPB_COUNT_ONE, delay };
	if (delay >= rate)
		return 1;
	if (random64() % rate >= delay)
		return 0;
	w->count = GPB_COUNT_ONE * rate / delay;
	w->delay = rate;
	return 1;
}

/* What a wait adds to the expected number of samples, in units of 1 / rate. */
static __always_inline __u64 capped(__u64 delay, __u64 rate)
{
	return delay < rate ? delay : rate;
}

/*
 * In windows: is this wait counted by looks? Yes if enough looks saw it, or if it is long enough that waits
 * which looks saw are scaled up to all of its length.
 */
static __always_inline int looks_count(__u64 since, __u64 delay, __u64 counted, __u64 looked_ns)
{
	return since < counted || (looked_ns && delay >= looked_ns);
}

/* Walks the stack of a goroutine that is parked, by its frame pointers. */
ONCE(int, walk_parked, (WALK_PARAMS, __u64 g), (OWN_WALK, g), (__u64 g), (g))
{
	__u64 pc;

	if (!w || !s || !t)
		return 0;
	w->avoid_lo = w->avoid_hi = 0;
	w->max = GPB_MAX_USER;
	/*
	 * While the garbage collector moves the stack, the old one stays complete until the new
	 * one is.
	 */
	for (int i = 0; i < 2; i++) {
		s->flags = 0;
		w->n = 0;
		w->moving = moves_of(t, g);
		w->lo = field_u64(g, t->g_stack_lo);
		w->hi = field_u64(g, t->g_stack_hi);
		pc = field_u64(g, t->g_sched_pc);
		walk_push(w, s, pc);
		walk_chain(w, s, t, field_u64(g, t->g_sched_bp));
		if (w->lo == field_u64(g, t->g_stack_lo))
			break;
	}
	s->nfirst = w->n;
	return 0;
}

/* For a stack that frame pointers do not lead through: it is walked by rules. */
static __always_inline void walk_parked_by_rules(struct walk *w, struct gpb_stack *s,
						 const struct gpb_target *t, __u64 g)
{
	if (!needs_rules(t, s, w))
		return;
	w->n = 0;
	w->seam = -1;
	s->nfirst = 0;
	s->flags = 0;
	unwind_rules_goroutine(w, s, t, g);
	s->nfirst = s->nsecond;
	s->nsecond = 0;
	w->second = 0;
	if (w->why == WALK_UNRULED)
		s->flags |= GPB_STACK_UNRULED;
}

/*
 * For a goroutine that was preempted where its frame may not be set up: its stack is walked by
 * rules.
 */
ONCE(int, walk_saved, (WALK_PARAMS, __u64 g), (OWN_WALK, g), (__u64 g), (g))
{
	__u64 pc;

	if (!w || !s || !t)
		return 0;
	pc = field_u64(g, t->g_sched_pc);
	w->lo = w->avoid_lo = w->avoid_hi = 0;
	w->n = 0;
	w->max = GPB_MAX_USER;
	w->second = 0;
	w->why = WALK_ROOT;
	w->hi = field_u64(g, t->g_stack_hi);
	w->sp = field_u64(g, t->g_sched_sp);
	w->pc = pc - 1;
	if (USES_LR)
		w->lr = saved_lr(t, g);
	w->called = 1;
	walk_push(w, s, pc);
	if (w->sp && in_text(t, pc))
		w->why = walk_rules(w, s, t);
	s->nfirst = w->n;
	if (w->why != WALK_UNRULED)
		return 0;
	s->flags |= GPB_STACK_UNRULED;
	w->moving = moves_of(t, g);
	unwind_rules_hints(w, s, t, g, field_u64(g, t->g_sched_bp));
	return 0;
}

/*
 * For a goroutine that has not begun: it stands at the entry of its function, as if goexit had
 * called that.
 */
ONCE(int, walk_fresh, (WALK_PARAMS, __u64 g), (OWN_WALK, g), (__u64 g), (g))
{
	if (!w || !s || !t)
		return 0;
	w->n = 0;
	w->max = GPB_MAX_USER;
	walk_push(w, s, field_u64(g, t->g_sched_pc) + 1);
	walk_push(w, s, fresh_return(t, g));
	s->nfirst = w->n;
	return 0;
}

#endif
