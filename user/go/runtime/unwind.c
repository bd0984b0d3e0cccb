/* user/go/runtime/unwind.c - finds one return address after the other. */
#include "go/runtime/unwind.h"

#include "arch/frame.h"

enum { FLAG_TOP = 1, FLAG_SPWRITE = 2 };

/* A position on the way up the stack. */
struct at {
	uint64_t pc, sp, lr; /* lr: the return address, if it is known already (arm64) */
	bool trap, innermost;
	enum func_id callee;
};

static bool word(const struct unwind *u, uint64_t addr, uint64_t *v)
{
	uint64_t off = addr - u->sp;

	if (addr < u->sp || off > u->n || u->n - off < sizeof(*v))
		return false;
	memcpy(v, u->stack + off, sizeof(*v));
	return true;
}

static bool is_top(const struct unwind_frame *f)
{
	return f->flags & FLAG_TOP || f->id == FUNC_GOEXIT || f->id == FUNC_MSTART ||
	       f->id == FUNC_RT0_GO;
}

/* Does this function move its sp in ways that the table does not describe? */
static bool no_caller(const struct unwind *u, const struct at *a, const struct unwind_frame *f)
{
	return f->flags & FLAG_SPWRITE && f->id != FUNC_CGOCALLBACK &&
	       !(u->syscall && a->innermost);
}

/*
 * Was its caller interrupted, though it looks as if it had made a call? The signal handler makes
 * it look so.
 */
static bool injected(const struct unwind *u, enum func_id id)
{
	return id == FUNC_SIGPANIC || (id == FUNC_ASYNCPREEMPT && (u->minor < 0 || u->minor >= 21));
}

/*
 * Finds the return address and the caller's sp. False when they are not in the bytes. On arm64
 * the return address lies at sp. The one function that has none there is that of a goroutine
 * which never ran; its caller is the function in which all goroutines end.
 */
static bool caller(const struct unwind *u, const struct at *a, const struct unwind_frame *f,
		   uint64_t *pc, uint64_t *sp)
{
	*sp = arch_caller_sp(u->arch, a->sp, f->delta);
	if (a->lr)
		*pc = a->lr;
	return f->delta >= 0 && (a->lr || word(u, arch_return_at(u->arch, a->sp, f->delta), pc));
}

/* arm64: the interrupted function's own return address was pushed below it. */
static bool settle_injected(const struct unwind *u, struct at *a)
{
	struct unwind_frame f;
	uint64_t x;

	if (!word(u, a->sp, &x))
		return false;
	a->sp += ARM64_PUSHED;
	if (!u->look(u->arg, a->pc, a->trap, a->callee, &f) && !f.delta)
		a->lr = x;
	return true;
}

/* Returns 1 when there is another frame at *a, or 0, and *end says why not. */
static int step(const struct unwind *u, struct at *a, const struct unwind_frame *f,
		enum unwind_end *end)
{
	bool inj = injected(u, f->id) || f->id == FUNC_ASYNCPREEMPT;
	uint64_t pc = 0, sp;

	*end = UNWIND_WHOLE;
	if (is_top(f))
		return 0;
	if (u->arch == ARCH_ARM64 && a->innermost && !f->delta && !u->syscall)
		return 0;
	*end = UNWIND_BROKEN;
	if (no_caller(u, a, f))
		return 0;
	if (!caller(u, a, f, &pc, &sp)) {
		*end = f->delta >= 0 ? UNWIND_CUT : UNWIND_BROKEN;
		return 0;
	}
	if (!pc || (pc == a->pc && sp == a->sp))
		return 0;
	*a = (struct at){ .pc = pc, .sp = sp, .trap = injected(u, f->id), .callee = f->id };
	return u->arch == ARCH_AMD64 || !inj || settle_injected(u, a);
}

int unwind_stack(const struct unwind *u, unwind_cookies *out, enum unwind_end *end, struct err *e)
{
	struct at a = { .pc = u->pc, .sp = u->sp, .innermost = true, .callee = FUNC_NORMAL };
	/* On arm64 a frame may have no bytes; two of those in a row are the same frame. */
	size_t most = 2 * (u->n / 8) + 2;

	*end = UNWIND_BROKEN;
	for (size_t i = 0; i < most; i++) {
		struct unwind_frame f = { 0 };
		int ret = u->look(u->arg, a.pc, a.trap, a.callee, &f);
		uint32_t *slot;

		if (ret)
			return ret == -ENOENT ? 0 : ret;
		slot = vec_add(out, SIZE_MAX);
		if (!slot)
			return err_set(e, -ENOMEM, "no memory for a stack");
		*slot = f.cookie;
		if (!step(u, &a, &f, end))
			return 0;
		*end = UNWIND_BROKEN;
	}
	return 0;
}
