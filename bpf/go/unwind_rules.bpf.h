/*
 * bpf/go/unwind_rules.bpf.h - walks an interrupted Go stack by unwinding rules, which is how Go's own
 * traceback walks.
 *
 * Frame pointers are wrong in many places where a CPU clock can interrupt: before a frame is set
 * up and after it is torn down, in functions without a frame, in assembly that computes with the
 * register, while a stack is being copied, under duffcopy, callbacks and injected calls. pclntab
 * knows for each pc how far sp is from the return address, and that is enough in all of these
 * cases. The table of rules is filled by user space; it tells this side the rule of a pc when the
 * pc is first met. Until then the sample is sent with the stack's memory, and is finished in user
 * space.
 *
 * Source: unwinder.resolveInternal in runtime/traceback.go, sigprof in runtime/proc.go.
 */
#ifndef BPF_RULES_BPF_H
#define BPF_RULES_BPF_H

#include "go/stack.bpf.h"

/* The rule of @pc is filed under its file and its link-time address. */
static __always_inline __u64 rule_key(const struct gpb_target *t, __u64 pc)
{
	const struct gpb_image *img = image_at(t, pc);

	return (img->id << 48) | ((pc - img->bias) & ((1ULL << 48) - 1));
}

#ifndef GPB_HOST
/*
 * rule_key() -> where that pc's frame ends, learned from user space. All processes that run a file
 * share its rules.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GPB_UNWIND_RULES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, struct gpb_unwind_rule);
} unwind_rules SEC(".maps");

static __always_inline struct gpb_unwind_rule *rule_of(const struct gpb_target *t, __u64 pc)
{
	__u64 key = rule_key(t, pc);

	return bpf_map_lookup_elem(&unwind_rules, &key);
}
#endif

/* The reason why a walk ended. */
enum { WALK_ROOT, WALK_SEAM, WALK_UNRULED, WALK_BROKEN, WALK_FULL, WALK_ON };

/* Walks one frame, from w->pc and w->sp. WALK_ON: there is another one. Global: verified once. */
ONCE(int, rule_step, (WALK_PARAMS), (OWN_WALK), (void), ())
{
	struct gpb_unwind_rule *rule;
	__u64 ret = 0, exact;

	if (!w || !s || !t)
		return WALK_ROOT;
	rule = rule_of(t, w->pc);
	if (!rule)
		return WALK_UNRULED;
	if ((rule->flags & GPB_UNWIND_RULE_LAST) && w->called && w->n && w->n <= GPB_MAX_PCS) {
		s->pc[w->n - 1] = w->pc + 2;
		w->pc++;
		w->called = 0;
		return WALK_ON;
	}
	w->seam = rule->delta;
	if (rule->flags & GPB_UNWIND_RULE_SEAM)
		return WALK_SEAM;
	if (rule->flags & GPB_UNWIND_RULE_END)
		return WALK_ROOT;
	if (frame_return(&ret, w->sp, w->lr, rule->delta)) {
		s->flags |= GPB_STACK_FAULT;
		return WALK_BROKEN;
	}
	exact = !!(rule->flags & GPB_UNWIND_RULE_EXACT);
	if (!in_text(t, ret))
		return WALK_BROKEN;
	if (!walk_push(w, s, ret + exact))
		return WALK_FULL;
	w->sp = frame_above(w->sp, rule->delta);
	if (USES_LR)
		w->lr = exact ? injected_lr(&w->sp) : 0;
	w->pc = ret - !exact;
	w->called = !exact;
	return WALK_ON;
}

/* Walks from w->pc and w->sp on. Global: verified once. */
ONCE(int, walk_rules, (WALK_PARAMS), (OWN_WALK), (void), ())
{
	int how = WALK_ON;

	if (!w || !s || !t)
		return WALK_ROOT;
	for (int i = 0; i < GPB_MAX_USER + 1 && how == WALK_ON; i++)
		how = rule_step(w, s, t);
	return how == WALK_ON ? WALK_FULL : how;
}

/* Walks the goroutine whose system stack ended at a seam. Global: verified once. */
ONCE(int, unwind_rules_goroutine, (WALK_PARAMS, __u64 g), (OWN_WALK, g), (__u64 g), (g))
{
	__u64 pc, sp;
	__u32 before;

	if (!w || !s || !t)
		return 0;
	pc = field_u64(g, t->g_sched_pc);
	sp = field_u64(g, t->g_sched_sp);
	before = w->n;
	w->hi = field_u64(g, t->g_stack_hi);
	w->second = 1;
	if (!sp || !in_text(t, pc))
		return 0;
	walk_push(w, s, pc);
	w->pc = pc - 1;
	w->sp = sp;
	w->called = 1;
	if (USES_LR)
		w->lr = w->seam >= 0 ? 0 : saved_lr(t, g);
	if (w->seam >= 0) {
		/* In systemstack: pc was made up, and the frame lies at sp. */
		__u64 ret = called_return(sp, w->seam);

		if (in_text(t, ret))
			walk_push(w, s, ret);
		w->pc = ret - 1;
		w->sp = frame_above(sp + w->seam, 0);
	}
	w->why = walk_rules(w, s, t);
	s->nsecond = w->n - before;
	return 0;
}

/*
 * The system stack has a frame without a rule, so it is not known yet whether it ends at a seam.
 * In case it does, the goroutine's stack is walked now: by rules and, where these are missing
 * too, by frame pointers. What is needed to finish the system stack is left unchanged.
 */
static __always_inline void rules_ahead(struct walk *w, struct gpb_stack *s,
					const struct gpb_target *t, __u64 g)
{
	__u64 pc = w->pc, sp = w->sp, hi = w->hi, saved = field_u64(g, t->g_sched_pc);
	__u64 lr = USES_LR ? w->lr : 0;
	const struct gpb_image *img = image_at(t, saved);
	__u32 n = w->n;

	w->seam = within(saved, img->switch_lo, img->switch_hi) ? t->seam : -1;
	unwind_rules_goroutine(w, s, t, g);
	if (w->why != WALK_ROOT) {
		w->n = n;
		s->nsecond = 0;
		walk_goroutine(w, s, t, g);
	}
	w->pc = pc;
	w->sp = sp;
	if (USES_LR)
		w->lr = lr;
	w->hi = hi;
	w->second = 0;
}

/*
 * Adds the frames that frame pointers suggest for the stack that could not be walked. They are
 * for frames so large that the memory which is sent does not reach over them. The caller has
 * set w->moving. Global: verified once.
 */
ONCE(int, unwind_rules_hints, (WALK_PARAMS, __u64 g, __u64 bp), (OWN_WALK, g, bp),
     (__u64 g, __u64 bp), (g, bp))
{
	__u32 n, flags;
	__u64 hi;

	if (!w || !s || !t)
		return 0;
	n = w->n;
	flags = s->flags;
	hi = w->hi;
	w->lo = field_u64(g, t->g_stack_lo);
	w->hi = field_u64(g, t->g_stack_hi);
	w->avoid_lo = w->avoid_hi = 0;
	w->max = GPB_MAX_PCS;
	walk_chain(w, s, t, bp);
	s->hints = w->n - n;
	s->flags = flags;
	w->hi = hi;
	return 0;
}

/*
 * Finds where Go's part of the stack begins: in C code at the call out of Go, in a vdso call at
 * its caller (the runtime saved both), else where the thread was interrupted. 0: no Go function
 * called this code.
 */
static __always_inline int unwind_rules_start(struct walk *w, struct gpb_stack *s,
					      const struct gpb_target *t, __u64 g, __u64 m,
					      __u64 curg)
{
	const struct regs *r = &w->at;
	__u64 pc = 0, sp = 0;

	if (curg && field_u32(m, t->m_ncgo)) {
		pc = field_u64(curg, t->g_syscallpc);
		sp = field_u64(curg, t->g_syscallsp);
	}
	if (!pc || !sp) {
		sp = field_u64(m, t->m_vdsosp);
		pc = sp ? field_u64(m, t->m_vdsopc) : 0;
	}
	if (pc && in_text(t, pc)) {
		w->hi = field_u64(curg ? curg : g, t->g_stack_hi);
		w->pc = pc - 1;
		w->sp = sp;
		if (USES_LR)
			w->lr = 0;
		w->called = 1;
		walk_push(w, s, pc);
		return 1;
	}
	w->hi = field_u64(g, t->g_stack_hi);
	w->pc = r->pc;
	w->sp = r->sp;
	if (USES_LR)
		w->lr = regs_lr(r);
	w->called = 0;
	walk_push(w, s, r->pc + 1);
	if (in_text(t, r->pc))
		return 1;
	s->flags |= GPB_STACK_OUTSIDE;
	if (t->m_preemptoff >= 0 && user_u64(m + t->m_preemptoff + 8))
		s->flags |= GPB_STACK_GC;
	return 0;
}

/*
 * Walks the user part of a sample of a thread that was interrupted (w->at): fills s->pc from
 * s->nkernel on. @g may be 0. Global: verified once.
 */
ONCE(int, walk_by_rules, (WALK_PARAMS, __u64 g), (OWN_WALK, g), (__u64 g), (g))
{
	__u64 m, curg;
	int on_g0;

	if (!w || !s || !t)
		return 0;
	m = field_u64(g, t->g_m);
	curg = field_u64(m, t->m_curg);
	on_g0 = curg && g == field_u64(m, t->m_g0);
	w->lo = w->hi = w->avoid_lo = w->avoid_hi = 0;
	w->moving = 0;
	w->n = s->nkernel;
	w->max = s->nkernel + GPB_MAX_USER;
	w->second = 0;
	w->why = WALK_ROOT;
	if (!g || !m) {
		s->flags |= GPB_STACK_NO_G;
		walk_push(w, s, w->at.pc + 1);
		s->nfirst = 1;
		return 0;
	}
	if (!unwind_rules_start(w, s, t, g, m, curg)) {
		s->nfirst = 1;
		return 0;
	}
	w->why = walk_rules(w, s, t);
	s->nfirst = w->n - s->nkernel;
	if (w->why == WALK_SEAM && on_g0)
		unwind_rules_goroutine(w, s, t, curg);
	if (w->why != WALK_UNRULED)
		return 0;
	s->flags |= GPB_STACK_UNRULED;
	if (on_g0 && !w->second)
		rules_ahead(w, s, t, curg);
	if (!w->second)
		return unwind_rules_hints(w, s, t, g, w->at.bp);
	w->moving = moves_of(t, curg);
	return unwind_rules_hints(w, s, t, curg, field_u64(curg, t->g_sched_bp));
	return 0;
}

/* The same from the registers @r. @w is scratch. */
static __always_inline void walk_interrupted(struct walk *w, struct gpb_stack *s,
					     const struct gpb_target *t, __u64 g,
					     const struct regs *r)
{
	w->at = *r;
	walk_by_rules(w, s, t, g);
}

/*
 * Frame pointers are good enough for the callers of a probed function, but they do not lead out
 * of a callback from C. What called C is found by rules, as for an interrupted thread. So is
 * everything where frame pointers are stale.
 */
static __always_inline int needs_rules(const struct gpb_target *t, const struct gpb_stack *s,
				       const struct walk *w)
{
	const struct gpb_image *img;
	__u32 last = w->n - 1;

	if (stale_fp(t))
		return 1;
	if (s->nsecond || last >= GPB_MAX_PCS)
		return 0;
	img = image_at(t, s->pc[last]);
	return within(s->pc[last], img->callback_lo, img->callback_hi);
}

#endif
