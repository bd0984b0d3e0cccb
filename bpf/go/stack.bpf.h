/*
 * bpf/go/stack.bpf.h - walks a Go stack by its frame pointers.
 *
 * Go keeps frame pointers, and for a call into the allocator they are right: the caller has a
 * frame, and the return address into it is at sp (amd64) or in x30 (arm64). For an interrupted pc they are not
 * reliable (see unwind_rules.bpf.h).
 *
 * A thread that runs on its system stack (g0) has two stacks. The walk keeps them apart as two
 * segments, and user space joins them according to the function at the seam (systemstack and
 * morestack continue on the goroutine, mcall does not).
 *
 * Sources: traceback in runtime/traceback.go and sigprof in runtime/proc.go, Go 1.16 to 1.27;
 * frame record and prologues in cmd/internal/obj/x86/obj6.go and arm64/obj7.go.
 */
#ifndef BPF_STACK_BPF_H
#define BPF_STACK_BPF_H

#include "arch.bpf.h"

struct walk {
	__u64 lo, hi; /* the stack that frame pointers must lie in */
	/* ... and outside of: the goroutine's stack, for the first segment */
	__u64 avoid_lo, avoid_hi;
	__u32 n, max;	/* number of pcs used in the sample's pc[], and its limit */
	struct regs at; /* where the thread was interrupted or probed, */
	__s32 delta;	/* and how far below its return address sp is, where probed */
	/* For walks by rules: the next frame is looked up at pc; how the walk ended. */
	__u64 pc, sp;
	__u32 why;
	__s32 seam;
	__u32 second;
	__u32 called; /* pc is that of a call, not of an interrupted instruction */
	/* how many times frame pointers may still lead to another copy of the stack */
	__u32 moving;
	__u64 lr; /* where USES_LR: the return address, if it may be in no memory; else 0 */
};

static __always_inline int within(__u64 pc, __u64 lo, __u64 hi)
{
	return pc >= lo && pc < hi;
}

/*
 * The image whose text holds @pc; 0, the first one, also where none does. Nearly all targets have
 * a single one. A global function, so that the verifier checks its loop once.
 */
ONCE_INLINE int image_of(const struct gpb_target *t, __u64 pc)
{
	if (!t)
		return 0;
	for (int i = 1; i < GPB_IMAGES; i++)
		if (within(pc, t->image[i].text_lo, t->image[i].text_hi))
			return i;
	return 0;
}

static __always_inline const struct gpb_image *image_at(const struct gpb_target *t, __u64 pc)
{
	__u32 i = 0;

	if (t->nimages > 1 && !within(pc, t->image[0].text_lo, t->image[0].text_hi))
		i = image_of(t, pc);
	return &t->image[i < GPB_IMAGES ? i : 0];
}

static __always_inline int in_text(const struct gpb_target *t, __u64 pc)
{
	return within(pc, t->image[0].text_lo, t->image[0].text_hi) ||
	       (t->nimages > 1 && image_of(t, pc));
}

static __always_inline int walk_push(struct walk *w, struct gpb_stack *s, __u64 pc)
{
	__u32 n = w->n;

	if (n >= w->max || n >= GPB_MAX_PCS) {
		s->flags |= GPB_STACK_CUT;
		return 0;
	}
	s->pc[n] = pc;
	w->n = n + 1;
	return 1;
}

/*
 * For a goroutine whose stack is being moved: to a larger one by its thread, on the system stack, or
 * to a smaller one by the garbage collector, which has set the scan bit, while it waits for a thread.
 * g.stack is set to the new stack before all frame pointers in that are adjusted. Those that are
 * not yet adjusted lead on through the old stack, which is complete until all are. Just before
 * that, the saved bp already points into the new one. Source: copystack in runtime/stack.go, Go
 * 1.16 to 1.27.
 */
static __always_inline __u32 moves_of(const struct gpb_target *t, __u64 g)
{
	__u32 status;

	if (t->g_atomicstatus < 0)
		return 0;
	status = field_u32(g, t->g_atomicstatus);
	return status & GPB_G_SCAN || status == GPB_G_COPYSTACK ? 2 : 0;
}

/* Is there a frame record at @bp? It may lie on the other copy of a stack that is being moved. */
static __always_inline int has_record(struct walk *w, __u64 bp)
{
	if (!bp || (bp & 7) || within(bp, w->avoid_lo, w->avoid_hi))
		return 0;
	if (within(bp, w->lo, w->hi))
		return 1;
	if (!w->moving)
		return 0;
	w->moving--;
	w->hi = bp + (w->hi - w->lo);
	w->lo = bp;
	return 1;
}

/*
 * One frame record: pushes its return address, and that of a stub in between. Returns the next
 * record's address, 0 where the chain ends. A global function is verified once and not in each
 * turn of the loop that calls it: in the loop this body was half of each program's verification.
 */
ONCE(__u64, walk_record, (WALK_PARAMS, __u64 bp), (OWN_WALK, bp), (__u64 bp), (bp))
{
	const struct gpb_image *img;
	__u64 rec[2];

	if (!w || !s || !t || !has_record(w, bp))
		return 0;
	if (user_read(rec, sizeof(rec), bp)) {
		s->flags |= GPB_STACK_FAULT;
		return 0;
	}
	if (!in_text(t, rec[1]) || !walk_push(w, s, rec[1]))
		return 0;
	img = image_at(t, rec[1]);
	if (within(rec[1], img->mcall_lo, img->mcall_hi))
		return 0;
	/* It was called from C: its frame holds C's registers. */
	if (within(rec[1], img->callback_lo, img->callback_hi))
		return 0;
	/* A stub without a frame called it: the stub's own return address lies right above. */
	if (within(rec[1], img->stub_lo, img->stub_hi)) {
		__u64 ret = user_u64(bp + 16);

		if (!in_text(t, ret) || !walk_push(w, s, ret))
			return 0;
	}
	if (rec[0] <= bp && !(w->moving && !within(rec[0], w->lo, w->hi)))
		return 0;
	return rec[0];
}

/*
 * Follows saved frame pointers from @bp on, and appends return addresses. Global: verified once.
 */
ONCE_INLINE int walk_chain(struct walk *w, struct gpb_stack *s, const struct gpb_target *t,
			   __u64 bp)
{
	if (!w || !s || !t)
		return 0;
	for (int i = 0; i < GPB_MAX_USER + 1 && bp; i++)
		bp = walk_record(w, s, t, bp);
	return 0;
}

/* The probed frame, w->delta bytes below its return address, and all its callers. */
static __always_inline void walk_frames(struct walk *w, struct gpb_stack *s,
					const struct gpb_target *t)
{
	const struct regs *r = &w->at;
	__s32 delta = w->delta;

	walk_push(w, s, r->pc + 1);
	if (lacks_caller(r, delta)) {
		__u64 ret = probed_return(r, delta);

		if (returns_twice(r, delta))
			;
		else if (in_text(t, ret))
			walk_push(w, s, ret);
		else
			s->flags |= GPB_STACK_CALLER;
	}
	walk_chain(w, s, t, r->bp);
}

/*
 * Walks the goroutine whose system stack the thread is on, from its saved registers. Global:
 * verified once.
 */
ONCE(int, walk_goroutine, (WALK_PARAMS, __u64 g), (OWN_WALK, g), (__u64 g), (g))
{
	__u64 pc, sp, bp, ret;
	__u32 before;

	if (!w || !s || !t)
		return 0;
	pc = field_u64(g, t->g_sched_pc);
	sp = field_u64(g, t->g_sched_sp);
	bp = field_u64(g, t->g_sched_bp);
	before = w->n;
	w->lo = field_u64(g, t->g_stack_lo);
	w->hi = field_u64(g, t->g_stack_hi);
	w->avoid_lo = w->avoid_hi = 0;
	w->moving = moves_of(t, g);
	if (!sp || sp < w->lo || sp >= w->hi || !in_text(t, pc))
		return 0;
	walk_push(w, s, pc);
	if (saved_caller(t, g, sp, bp, &ret) && in_text(t, ret))
		walk_push(w, s, ret);
	walk_chain(w, s, t, bp);
	s->nsecond = w->n - before;
	return 0;
}

/* Inside of C code that Go called: Go shows the Go caller, which was saved at the call. */
static __always_inline int walk_syscall(struct walk *w, struct gpb_stack *s,
					const struct gpb_target *t, __u64 curg)
{
	__u64 pc = field_u64(curg, t->g_syscallpc);
	__u64 sp = field_u64(curg, t->g_syscallsp);
	__u64 bp;

	if (!pc || !sp)
		return 0;
	w->lo = field_u64(curg, t->g_stack_lo);
	w->hi = field_u64(curg, t->g_stack_hi);
	if (t->g_syscallbp >= 0) {
		bp = field_u64(curg, t->g_syscallbp);
	} else {
		bp = syscall_record(sp, field_u64(curg, t->g_sched_bp));
	}
	walk_push(w, s, pc);
	walk_chain(w, s, t, bp);
	return 1;
}

/* In a vdso call: Go saved the caller's pc and sp. */
static __always_inline int walk_vdso(struct walk *w, struct gpb_stack *s,
				     const struct gpb_target *t, __u64 m, __u64 curg)
{
	__u64 sp = field_u64(m, t->m_vdsosp), pc;

	if (!sp)
		return 0;
	pc = field_u64(m, t->m_vdsopc);
	if (!in_text(t, pc))
		return 0;
	w->lo = field_u64(curg, t->g_stack_lo);
	w->hi = field_u64(curg, t->g_stack_hi);
	if (sp < w->lo || sp >= w->hi) {
		/* g0 itself asked for the time. */
		w->lo = sp - 16;
		w->hi = sp + (1 << 16);
	}
	walk_push(w, s, pc);
	walk_chain(w, s, t, vdso_record(sp));
	return 1;
}

/*
 * Walks the user part of a sample that was taken at a probe (w->at, w->delta): fills s->pc from
 * s->nkernel on. @g may be 0. Global: verified once.
 */
ONCE(int, walk_probed, (WALK_PARAMS, __u64 g), (OWN_WALK, g), (__u64 g), (g))
{
	__u64 m, curg, g0;

	if (!w || !s || !t)
		return 0;
	m = field_u64(g, t->g_m);
	curg = field_u64(m, t->m_curg);
	g0 = field_u64(m, t->m_g0);
	w->lo = w->hi = w->avoid_lo = w->avoid_hi = 0;
	w->moving = 0;
	w->n = s->nkernel;
	w->max = s->nkernel + GPB_MAX_USER;
	if (!g || !m) {
		s->flags |= GPB_STACK_NO_G;
		walk_push(w, s, w->at.pc + 1);
	} else if (field_u32(m, t->m_ncgo) && curg && walk_syscall(w, s, t, curg)) {
		;
	} else if (walk_vdso(w, s, t, m, curg ? curg : g)) {
		;
	} else if (!in_text(t, w->at.pc)) {
		s->flags |= GPB_STACK_OUTSIDE;
		if (t->m_preemptoff >= 0 && user_u64(m + t->m_preemptoff + 8))
			s->flags |= GPB_STACK_GC;
		walk_push(w, s, w->at.pc + 1);
	} else {
		w->lo = field_u64(g, t->g_stack_lo);
		w->hi = field_u64(g, t->g_stack_hi);
		if (g == g0 && curg) {
			w->avoid_lo = field_u64(curg, t->g_stack_lo);
			w->avoid_hi = field_u64(curg, t->g_stack_hi);
		}
		walk_frames(w, s, t);
		s->nfirst = w->n - s->nkernel;
		if (g == g0 && curg)
			walk_goroutine(w, s, t, curg);
		return 0;
	}
	s->nfirst = w->n - s->nkernel;
	return 0;
}

/* The same from the registers @r, @delta bytes below the return address. @w is scratch. */
static __always_inline void walk_user(struct walk *w, struct gpb_stack *s,
				      const struct gpb_target *t, __u64 g, const struct regs *r,
				      __s32 delta)
{
	w->at = *r;
	w->delta = delta;
	walk_probed(w, s, t, g);
}

#endif
