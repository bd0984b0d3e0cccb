/*
 * user/symbolize/stack_physical.c - joins the two segments of a stack where Go's own traceback
 * joins them, expands inlined calls, hides what Go hides.
 *
 * Sources: unwinder.resolveInternal and tracebackPCs in runtime/traceback.go, sigprof in
 * runtime/proc.go, printCountProfile and appendLocsForStack in runtime/pprof; Go 1.16 to 1.27.
 */
#include "symbolize/stack_physical.h"
#include "symbolize/subject_prof.h"

#include "base/limits.h"
#include "subject/calling.h"

enum { PSEUDO_SYSTEM, PSEUDO_GC, PSEUDO_EXTERNAL, PSEUDO_VDSO, PSEUDO_COUNT };
enum { MAX_LOCS = GPB_MAX_PCS + 2 };

static const char *const pseudo_names[PSEUDO_COUNT] = {
	"runtime._System",
	"runtime._GC",
	"runtime._ExternalCode",
	"runtime._VDSO",
};

void stack_physical_init(struct stack_physical *ph, struct subject *s, struct prof *p,
			 enum hide hide)
{
	*ph = (struct stack_physical){ .s = s, .p = p, .hide = hide };
}

void stack_physical_fini(struct stack_physical *ph)
{
	kallsyms_free(ph->ks);
	map_fini(&ph->seen);
}

/* A pc of the runtime's own stand-in functions: their entry plus one, as in Go. */
static uint64_t pseudo_pc(struct stack_physical *ph, int which)
{
	struct gofunc f[PSEUDO_COUNT] = {};

	if (!ph->pseudo_known) {
		ph->pseudo_known = true;
		if (gobin_funcs_named(ph->s->bin, pseudo_names, PSEUDO_COUNT, f, NULL) > 0)
			for (int i = 0; i < PSEUDO_COUNT; i++)
				if (f[i].entry)
					ph->pseudo[i] = f[i].entry + ph->s->bias + 1;
	}
	return ph->pseudo[which];
}

/* ---- one pc to one location ---- */

/* What is known of a pc after it was looked up. loc 0: it has no location (elided, goexit). */
struct pc_info {
	uint32_t loc;
	uint8_t id;  /* id of its outermost logical frame: what its caller sees as callee */
	bool hidden; /* it is not shown when it is at the leaf */
};

static uint64_t pc_info_pack(struct pc_info i)
{
	return i.loc | (uint64_t)i.id << 32 | (uint64_t)i.hidden << 40;
}

static struct pc_info pc_info_unpack(uint64_t v)
{
	return (struct pc_info){ .loc = (uint32_t)v, .id = (uint8_t)(v >> 32), .hidden = v >> 40 };
}

static bool hidden_name(const char *func, int minor)
{
	return strncmp(func, "runtime.", 8) == 0 ||
	       ((minor < 0 || minor >= 24) && strncmp(func, "internal/runtime/", 17) == 0);
}

/*
 * Is this one of the functions that blockevent and mutexevent skip? They skip a number of frames;
 * these are the functions that the numbers cover. Source: their callers in runtime/chan.go,
 * select.go, sema.go, sync/mutex.go, sync/rwmutex.go, internal/sync/mutex.go; Go 1.18 to 1.27.
 */
static bool waiting_name(const char *func)
{
	static const char *const names[] = {
		"runtime.gopark",
		"runtime.goparkunlock",
		"runtime.chansend",
		"runtime.chanrecv",
		"runtime.semacquire1",
		"runtime.semrelease1",
		"runtime.(*semaRoot).dequeue",
		"runtime.notifyListWait",
		"sync.runtime_notifyListWait",
		"sync.(*Mutex).lockSlow",
		"sync.(*Mutex).unlockSlow",
		"sync.(*RWMutex).rUnlockSlow",
		"internal/sync.(*Mutex).lockSlow",
		"internal/sync.(*Mutex).unlockSlow",
		"internal/sync.(*Mutex).Lock",
		"internal/sync.(*Mutex).Unlock",
	};
	static const char *const prefixes[] = {
		"sync.runtime_Sem",
		"internal/sync.runtime_Sem",
		"internal/poll.runtime_Sem",
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(func, names[i]))
			return true;
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		if (!strncmp(func, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

/*
 * Is this a function by which a goroutine stops running and goes on? The functions above say what
 * it stopped for.
 */
static bool parking_name(const char *func)
{
	static const char *const names[] = {
		"runtime.mcall",	  "runtime.casgstatus",
		"runtime.casGToWaiting",  "runtime.casGToWaitingForSuspendG",
		"runtime.exitsyscall",	  "runtime.exitsyscall0",
		"runtime.exitsyscallNoP", "runtime.netpollblock",
		"runtime.asyncPreempt",	  "runtime.asyncPreempt2",
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(func, names[i]))
			return true;
	return waiting_name(func);
}

/* How many of the @n lines of a leaf, from the innermost on, are not shown. */
static size_t hidden_lines(const struct stack_physical *ph, const struct prof_line *lines, size_t n)
{
	int minor = gobin_info(ph->s->bin)->minor;
	size_t i = 0;

	if (ph->hide == HIDE_RUNTIME)
		return hidden_name(lines[0].func, minor) ? n : 0;
	if (ph->hide == HIDE_WAITING)
		while (i < n && waiting_name(lines[i].func))
			i++;
	if (ph->hide == HIDE_PARKED)
		while (i < n && parking_name(lines[i].func))
			i++;
	return i;
}

/* Not even pclntab knows this address, so it becomes a bare address. */
static int bare_location(struct stack_physical *ph, uint64_t addr, struct pc_info *out,
			 struct err *e)
{
	int map = subject_mapping(ph->s, ph->p, addr, e), loc;

	if (map < 0)
		return map;
	loc = prof_location(ph->p, map, addr, NULL, 0, e);
	if (loc < 0)
		return loc;
	/* C code has no name here, as in Go's own profile. */
	if (!ph->outside)
		prof_loss(ph->p)->n[LOSS_PCS_UNRESOLVED]++;
	*out = (struct pc_info){ .loc = (uint32_t)loc };
	return 0;
}

/*
 * Go leaves wrappers out. From Go 1.23 on it unwinds blocks and contentions by frame pointers,
 * and then leaves out only those wrappers that something is inlined into. Source:
 * fpTracebackPartialExpand in runtime/mprof.go, (*Frames).Next in runtime/symtab.go; Go 1.23 to
 * 1.27.
 */
static bool shows_wrappers(const struct stack_physical *ph)
{
	int minor = gobin_info(ph->s->bin)->minor;

	return ph->hide == HIDE_WAITING && (minor < 0 || minor >= 23);
}

/*
 * @pc is a return address; @callee is the id of the frame that it called; @leaf: no frame is
 * shown yet.
 */
static int make_location(struct stack_physical *ph, uint64_t pc, enum func_id callee, bool leaf,
			 struct pc_info *out, struct err *e)
{
	struct goframe f[LIMIT_INLINE_DEPTH];
	struct prof_line lines[LIMIT_INLINE_DEPTH];
	size_t nlines = 0, hide;
	int n, map, loc;

	n = subject_frames(ph->s, pc - 1, f, ARRAY_LEN(f), e);
	if (n < 0)
		return bare_location(ph, pc - 1, out, e);
	*out = (struct pc_info){ .id = FUNC_NORMAL };
	for (int i = 0; i < n; i++) {
		bool drop = !strcmp(f[i].func, "runtime.goexit") ||
			    (frame_elided(f[i].id, callee) && (i || !shows_wrappers(ph)));

		callee = f[i].id;
		if (drop)
			continue;
		lines[nlines++] = (struct prof_line){ f[i].func, f[i].file, f[i].line,
						      f[i].start_line };
	}
	out->id = (uint8_t)callee;
	if (!nlines)
		return 0;
	hide = leaf ? hidden_lines(ph, lines, nlines) : 0;
	out->hidden = hide == nlines;
	if (out->hidden) /* it is shown when no other frame is */
		hide = 0;
	map = subject_mapping(ph->s, ph->p, pc - 1, e);
	if (map < 0)
		return map;
	loc = prof_location(ph->p, map, pc - 1, lines + hide, nlines - hide, e);
	if (loc < 0)
		return loc;
	out->loc = (uint32_t)loc;
	return 0;
}

static int location_of(struct stack_physical *ph, uint64_t pc, enum func_id callee, bool leaf,
		       struct pc_info *out, struct err *e)
{
	bool panicking = callee == FUNC_GOPANIC || callee == FUNC_SIGPANIC ||
			 callee == FUNC_PANICWRAP;
	uint64_t key = pc | (uint64_t)panicking << 63 | (uint64_t)leaf << 62, packed;
	int ret;

	if (map_get(&ph->seen, key, &packed)) {
		*out = pc_info_unpack(packed);
		return 0;
	}
	ret = make_location(ph, pc, callee, leaf, out, e);
	if (!ret && !map_put(&ph->seen, key, pc_info_pack(*out)))
		return err_set(e, -ENOMEM, "no memory for locations");
	return ret;
}

static int kernel_location(struct stack_physical *ph, uint64_t addr, uint32_t *out, struct err *e)
{
	struct prof_mapping pm = { .start = 1ULL << 63,
				   .limit = UINT64_MAX,
				   .filename = "[kernel.kallsyms]",
				   .build_id = "" };
	struct prof_line line = { .file = "" };
	uint64_t known;
	int ret;

	/* No user pc has these upper bits, so one table can hold both. */
	if (map_get(&ph->seen, addr, &known)) {
		*out = (uint32_t)known;
		return 0;
	}
	if (!ph->ks) {
		ret = kallsyms_open(&ph->ks, e);
		if (ret)
			return ret;
		ph->kernel_mapping = prof_mapping(ph->p, &pm, e);
		if (ph->kernel_mapping < 0)
			return ph->kernel_mapping;
	}
	line.func = kallsyms_find(ph->ks, addr);
	ret = prof_location(ph->p, ph->kernel_mapping, addr, &line, line.func ? 1 : 0, e);
	if (ret < 0)
		return ret;
	if (!map_put(&ph->seen, addr, (uint64_t)ret))
		return err_set(e, -ENOMEM, "no memory for locations");
	prof_loss(ph->p)->n[LOSS_PCS_UNRESOLVED] += !line.func;
	*out = (uint32_t)ret;
	return 0;
}

/* ---- from two segments to one list of pcs ---- */

struct joined {
	uint64_t pc[GPB_MAX_USER + 2];
	size_t n;
};

static void append_segment(struct stack_physical *ph, struct joined *j, const __u64 *pc, size_t n)
{
	for (size_t i = 0; i < n && j->n < GPB_MAX_USER; i++) {
		struct calling p = calling_of(ph->s, pc[i] - 1);

		j->pc[j->n++] = pc[i];
		if (calling_ends_stack(&p))
			return;
	}
}

/*
 * Joins the system stack's frames up to the function at the seam with the goroutine's stack.
 * systemstack is shown, and its caller follows on the goroutine's stack. morestack is replaced by
 * the function whose stack had to grow. Any other function has nothing to do with the goroutine.
 * Allocations on the system stack end at systemstack: among Go's profiles only the CPU profile
 * crosses over. Source: callers and unwindJumpStack (_TraceJumpStack to Go 1.20) in
 * runtime/traceback.go, Go 1.16 to 1.27.
 */
static void join(struct stack_physical *ph, const struct gpb_stack *st, struct joined *j)
{
	const __u64 *first = st->pc + st->nkernel, *second = first + st->nfirst;
	size_t nsecond = st->nsecond;

	j->n = 0;
	for (size_t i = 0; i < st->nfirst && j->n < GPB_MAX_USER; i++) {
		struct calling p = calling_of(ph->s, first[i] - 1);

		if (st->nsecond && p.f.id == FUNC_MORESTACK) {
			append_segment(ph, j, second, nsecond);
			return;
		}
		j->pc[j->n++] = first[i];
		if (st->nsecond && p.f.id == FUNC_SYSTEMSTACK) {
			/* The runtime set sched.pc to systemstack_switch. */
			if (ph->hide != HIDE_RUNTIME)
				append_segment(ph, j, second + 1, nsecond - 1);
			return;
		}
		if (calling_ends_stack(&p))
			return;
	}
}

/* For code that is not Go's, when no Go function called it. */
static void join_outside(struct stack_physical *ph, const struct gpb_stack *st, struct joined *j)
{
	uint64_t pc = st->pc[st->nkernel];
	bool vdso = pc > ph->s->vdso_lo && pc <= ph->s->vdso_hi;
	uint64_t parent;

	j->n = 0;
	if (st->flags & GPB_STACK_NO_G) {
		j->pc[j->n++] = pc;
		parent = pseudo_pc(ph, PSEUDO_EXTERNAL);
	} else {
		uint64_t leaf = pseudo_pc(ph, vdso ? PSEUDO_VDSO : PSEUDO_EXTERNAL);

		j->pc[j->n++] = leaf ? leaf : pc;
		parent = pseudo_pc(ph, st->flags & GPB_STACK_GC ? PSEUDO_GC : PSEUDO_SYSTEM);
	}
	if (parent)
		j->pc[j->n++] = parent;
}

/* ---- samples ---- */

/*
 * The innermost frame that can be shown, even if it is a wrapper: Go shows wrappers that a panic
 * seems to have called.
 */
static int innermost(struct stack_physical *ph, const struct joined *j, uint32_t *locs, size_t *n,
		     struct err *e)
{
	struct pc_info info = {};
	int ret = 0;

	for (size_t i = 0; !ret && i < j->n && !info.loc; i++)
		ret = location_of(ph, j->pc[i], FUNC_GOPANIC, false, &info, e);
	if (!ret && info.loc)
		locs[(*n)++] = info.loc;
	return ret;
}

static int user_locations(struct stack_physical *ph, const struct joined *j, uint32_t *locs,
			  size_t *n, struct err *e)
{
	enum func_id callee = FUNC_NORMAL;
	size_t first = *n, hide = 0;
	bool leaf = ph->hide != HIDE_NONE;

	for (size_t i = 0; i < j->n; i++) {
		struct pc_info info;
		/*
		 * A fault is no call: the address is the instruction's own, which may be the first of its
		 * function. Source: unwinder.symPC in runtime/traceback.go.
		 */
		uint64_t pc = j->pc[i] + (callee == FUNC_SIGPANIC);
		int ret = location_of(ph, pc, callee, leaf, &info, e);

		if (ret)
			return ret;
		callee = info.id;
		if (!info.loc)
			continue;
		locs[(*n)++] = info.loc;
		leaf = leaf && info.hidden;
		hide += leaf;
	}
	/* A goroutine that has not begun may have only a wrapper, which is shown then. */
	if (*n == first)
		return innermost(ph, j, locs, n, e);
	/* Go keeps the whole stack when nothing would be left of it. */
	if (first + hide == *n)
		return 0;
	memmove(locs + first, locs + first + hide, (*n - first - hide) * sizeof(*locs));
	*n -= hide;
	return 0;
}

/*
 * Does the stack end early? Every complete stack ends in a root. A stack that was cut is marked
 * so.
 */
static bool breaks_off(struct stack_physical *ph, const struct gpb_stack *st,
		       const struct joined *j)
{
	struct calling p;

	if (st->flags & (GPB_STACK_NO_G | GPB_STACK_OUTSIDE | GPB_STACK_CUT))
		return false;
	p = calling_of(ph->s, j->pc[j->n - 1] - 1);
	return !calling_ends_stack(&p) && p.f.id != FUNC_SYSTEMSTACK && p.f.id != FUNC_MORESTACK &&
	       !calling_from_outside(&p);
}

int stack_physical_add(struct stack_physical *ph, const struct gpb_stack *st, const int64_t *values,
		       const struct prof_label *labels, size_t nlabels, struct err *e)
{
	uint32_t locs[MAX_LOCS];
	struct joined j;
	size_t n = 0;
	int ret;

	if (!gpb_stack_whole(st))
		return err_set(e, -EBADMSG, "a sample claims %u kernel and %u + %u user frames",
			       st->nkernel, st->nfirst, st->nsecond);
	for (; n < st->nkernel; n++) {
		ret = kernel_location(ph, st->pc[n], &locs[n], e);
		if (ret)
			return ret;
	}
	ph->outside = st->flags & (GPB_STACK_NO_G | GPB_STACK_OUTSIDE);
	if (ph->outside)
		join_outside(ph, st, &j);
	else
		join(ph, st, &j);
	if (breaks_off(ph, st, &j))
		prof_loss(ph->p)->n[LOSS_STACKS_BROKEN] += ph->hide >= HIDE_WAITING ? 1 : st->count;
	ret = user_locations(ph, &j, locs, &n, e);
	if (ret)
		return ret;
	return prof_sample(ph->p, locs, n, values, labels, nlabels, e);
}
