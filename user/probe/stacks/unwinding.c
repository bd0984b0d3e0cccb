/*
 * user/probe/stacks/unwinding.c - rules of pcs, from pclntab; the rest of a walk, from memory that came with it.
 *
 * Sources: unwinder.resolveInternal and tracebackPCs in runtime/traceback.go; Go 1.16 to 1.27.
 */
#include "probe/stacks/unwinding.h"

#include "arch/frame.h"
#include "subject/calling.h"

/*
 * Was this function called by nobody? A signal handler made it look as if it had been called from
 * where the goroutine was. Source: injectedCall in runtime/traceback.go; sigpanic0 jumps to
 * sigpanic.
 */
static bool is_injected(const struct calling *p)
{
	const char *name;

	if (p->f.id == FUNC_SIGPANIC || p->f.id == FUNC_ASYNCPREEMPT)
		return true;
	name = gobin_func_name(p->bin, &p->f);
	return name && !strcmp(name, "runtime.sigpanic0");
}

/*
 * Is the thread on the system stack while it is here, in systemstack? Without a frame of its own it is so
 * on amd64 (Go up to 1.20). On arm64 that is its beginning or end, where no stack is switched yet.
 */
static bool is_switched(enum arch_id id, int32_t delta)
{
	return delta || !arch_uses_lr(id);
}

int unwinding_rule(struct subject *s, uint64_t pc, struct gpb_unwind_rule *out)
{
	const struct image *img;
	struct calling p;
	int32_t delta = 0;
	bool last;
	int ret = subject_func(s, pc, &p.f, &img);

	if (ret)
		return ret;
	p.bin = img->bin;
	last = pc + 1 - img->bias == p.f.end;
	ret = gobin_spdelta(img->bin, pc - img->bias, &delta, NULL);
	if (ret && !last) /* behind a function's last instruction, nothing is known of sp */
		return ret;
	*out = (struct gpb_unwind_rule){ .delta = ret ? -1 : delta,
					 .flags = last ? GPB_UNWIND_RULE_LAST : 0 };
	delta = out->delta;
	if (p.f.id == FUNC_MORESTACK)
		*out = (struct gpb_unwind_rule){ .delta = -1,
						 .flags = out->flags | GPB_UNWIND_RULE_SEAM };
	else if (delta < 0 || delta % 8)
		*out = (struct gpb_unwind_rule){ .flags = out->flags | GPB_UNWIND_RULE_END };
	else if (p.f.id == FUNC_SYSTEMSTACK)
		out->flags |= is_switched(subject_machine(s), delta) ? GPB_UNWIND_RULE_SEAM : 0;
	else if (calling_ends_stack(&p) || calling_from_outside(&p))
		out->flags |= GPB_UNWIND_RULE_END;
	else if (is_injected(&p))
		out->flags |= GPB_UNWIND_RULE_EXACT;
	return 0;
}

/* Appends @pc to the segment that the walk is in. False when the stack is full. */
static bool append_pc(struct gpb_stack *st, bool second, uint64_t pc)
{
	uint32_t at = (uint32_t)st->nkernel + st->nfirst + (second ? st->nsecond : 0);
	uint32_t n = (uint32_t)st->nkernel + st->nfirst + st->nsecond;

	if (st->nfirst + st->nsecond >= GPB_MAX_USER) {
		st->flags |= GPB_STACK_CUT;
		return false;
	}
	memmove(&st->pc[at + 1], &st->pc[at], (n - at) * sizeof(st->pc[0]));
	st->pc[at] = pc;
	if (second)
		st->nsecond++;
	else
		st->nfirst++;
	return true;
}

struct hints {
	uint64_t pc[GPB_MAX_PCS];
	size_t n;
};

/* The hints lie where frames are about to be put, so they are copied first. */
static struct hints take_hints(struct gpb_stack *st)
{
	size_t at = (size_t)st->nkernel + st->nfirst + st->nsecond;
	struct hints h = { .n = st->hints };

	if (at + h.n > GPB_MAX_PCS)
		h.n = GPB_MAX_PCS - at;
	memcpy(h.pc, st->pc + at, h.n * sizeof(h.pc[0]));
	st->hints = 0;
	return h;
}

/* Has the innermost function a frame, so that the first frame pointer is its own? */
static bool leaf_has_frame(struct subject *s, const struct gpb_rec_raw *raw)
{
	const struct gpb_stack *st = &raw->stack;
	uint64_t pc = st->pc[st->nkernel + (raw->second ? st->nfirst : 0)];
	struct gpb_unwind_rule rule;

	return !unwinding_rule(s, pc - 1, &rule) && rule.delta >= 8;
}

/*
 * Appends the rest of the frame-pointer chain. Where that begins is told by the number of frames that
 * are known already, because all return addresses of a recursion are equal. The first frame pointer
 * belongs to the innermost function if that has a frame. @last is the return address of the last
 * known frame: where the chain does not have it at that place, the first occurrence counts.
 */
static void follow_hints(struct subject *s, struct gpb_rec_raw *raw, const struct hints *h,
			 uint64_t last)
{
	size_t frames = raw->second ? raw->stack.nsecond : raw->stack.nfirst, found = 0, i;

	i = frames - 1 - (leaf_has_frame(s, raw) || frames < 2 ? 0 : 1);
	while (found < h->n && h->pc[found] != last)
		found++;
	if (i ? i > h->n || h->pc[i - 1] != last : found < h->n && found)
		i = found + 1;
	for (; i < h->n; i++)
		if (!append_pc(&raw->stack, raw->second, h->pc[i]))
			return;
}

enum { SETTLE_DONE, SETTLE_MORE, SETTLE_NO_MEMORY };

/* The present position of the walk. */
struct settling {
	uint64_t pc, sp;
	uint64_t lr; /* arm64: the link register, if it was seen; else 0 */
	bool called; /* pc is that of a call */
	enum arch_id id;
};

/*
 * Did the frame that the walk stands at call the one before? It did not where that one is what a signal handler makes an interrupted
 * function call (asyncPreempt, sigpanic), nor is it called where it is the innermost.
 */
static bool has_called(struct subject *s, const struct gpb_rec_raw *raw)
{
	const struct gpb_stack *st = &raw->stack;
	const __u64 *pc = st->pc + st->nkernel + (raw->second ? st->nfirst : 0);
	size_t n = raw->second ? st->nsecond : st->nfirst;
	struct gpb_unwind_rule before;

	if (n < 2)
		return n && raw->second;
	return unwinding_rule(s, pc[n - 2] - 1, &before) || !(before.flags & GPB_UNWIND_RULE_EXACT);
}

/* Where the record says that the walk stands. */
static struct settling settling_at(struct subject *s, const struct gpb_rec_raw *raw)
{
	struct settling at = {
		.pc = raw->pc, .sp = raw->sp, .called = has_called(s, raw), .id = subject_machine(s)
	};

	if (arch_uses_lr(at.id)) {
		at.sp += ARCH_WORD;
		at.lr = raw->ntop ? raw->top[0] : 0;
	}
	return at;
}

/* The word at @addr, if it came with the record. */
static bool raw_word(const struct gpb_rec_raw *raw, uint64_t addr, uint64_t *out)
{
	uint64_t at = (addr - raw->sp) / 8;

	if (at >= raw->ntop || at >= GPB_TOP_WORDS)
		return false;
	*out = raw->top[at];
	return true;
}

/* Moves to the caller's sp. */
static void leave_frame(const struct gpb_rec_raw *raw, struct settling *w,
			const struct gpb_unwind_rule *rule)
{
	w->sp = arch_caller_sp(w->id, w->sp, rule->delta);
	w->lr = 0;
	if (arch_uses_lr(w->id) && rule->flags & GPB_UNWIND_RULE_EXACT) {
		raw_word(raw, w->sp, &w->lr);
		w->sp += ARM64_PUSHED;
	}
}

/* The return address that was just met is the entry of a function: that function is meant. */
static void step_into(struct gpb_rec_raw *raw, struct settling *at)
{
	struct gpb_stack *st = &raw->stack;

	st->pc[st->nkernel + st->nfirst + (raw->second ? st->nsecond : 0) - 1]++;
	at->pc++;
	at->called = false;
}

/*
 * Is this right behind a push of one byte, with which a function begins? A breakpoint there leaves the pc behind itself, one byte
 * further, until the kernel handles it: a clock that ticks meanwhile sees this pc, and the push has not been done. (amd64: int3.
 * Source: handle_swbp() in kernel/events/uprobes.c.)
 */
static bool behind_push(struct subject *s, uint64_t pc, const struct gpb_unwind_rule *rule)
{
	const struct image *img;
	struct gofunc f;
	int32_t before;

	return rule->delta == ARCH_WORD && !arch_uses_lr(subject_machine(s)) &&
	       !subject_func(s, pc, &f, &img) && pc - img->bias == f.entry + 1 &&
	       !gobin_spdelta(img->bin, f.entry, &before, NULL) && !before;
}

/* Is the word at sp a return address? A frame pointer that was pushed is none. */
static bool returns_from(struct subject *s, const struct gpb_rec_raw *raw, uint64_t sp)
{
	const struct image *img;
	struct gofunc f;
	uint64_t word;

	return raw_word(raw, sp, &word) && !subject_func(s, word - 1, &f, &img);
}

/* The rule of the frame that the walk is in. Where it depends on memory, the BPF side does not learn it. */
static int rule_here(struct subject *s, const struct gpb_rec_raw *raw, const struct settling *at,
		     struct gpb_unwind_rule *out,
		     void (*learn)(void *arg, uint64_t pc, const struct gpb_unwind_rule *r),
		     void *arg)
{
	int ret = unwinding_rule(s, at->pc, out);

	if (ret)
		return ret;
	if (at->called || !behind_push(s, at->pc, out))
		learn(arg, at->pc, out);
	else if (returns_from(s, raw, at->sp))
		out->delta = 0;
	return 0;
}

/* Goes one frame further. */
static int settle_frame(struct subject *s, struct gpb_rec_raw *raw, struct settling *where,
			void (*learn)(void *arg, uint64_t pc, const struct gpb_unwind_rule *r),
			void *arg)
{
	const struct image *img;
	struct gpb_unwind_rule rule;
	struct gofunc f;
	uint64_t ret = where->lr, exact;

	if (rule_here(s, raw, where, &rule, learn, arg))
		return SETTLE_DONE;
	if ((rule.flags & GPB_UNWIND_RULE_LAST) && where->called) {
		step_into(raw, where);
		return SETTLE_MORE;
	}
	if (rule.flags & (GPB_UNWIND_RULE_END | GPB_UNWIND_RULE_SEAM))
		return SETTLE_DONE;
	if (!arch_returns_to_lr(where->id, where->lr, rule.delta) &&
	    !raw_word(raw, arch_return_at(where->id, where->sp, rule.delta), &ret))
		return SETTLE_NO_MEMORY;
	exact = !!(rule.flags & GPB_UNWIND_RULE_EXACT);
	if (subject_func(s, ret - 1 + exact, &f, &img) ||
	    !append_pc(&raw->stack, raw->second, ret + exact))
		return SETTLE_DONE;
	leave_frame(raw, where, &rule);
	where->pc = ret - !exact;
	where->called = !exact;
	return SETTLE_MORE;
}

int unwinding_settle(struct subject *s, struct gpb_rec_raw *raw,
		     void (*learn)(void *arg, uint64_t pc, const struct gpb_unwind_rule *r),
		     void *arg, struct err *e)
{
	struct gpb_stack *st = &raw->stack;
	struct settling at;
	struct hints hints;
	int how = SETTLE_MORE;

	if (!gpb_stack_whole(st))
		return err_set(e, -EBADMSG, "raw sample of %u frames", st->nfirst);
	st->flags &= ~(uint32_t)GPB_STACK_UNRULED;
	at = settling_at(s, raw);
	hints = take_hints(st);
	for (int i = 0; i < GPB_MAX_USER && how == SETTLE_MORE; i++)
		how = settle_frame(s, raw, &at, learn, arg);
	if (how == SETTLE_NO_MEMORY)
		follow_hints(s, raw, &hints, at.pc + at.called);
	return 0;
}
