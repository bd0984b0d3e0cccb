/*
 * user/collect/waits/looks/parked.h - goroutines that wait, out of the target's memory: their state, and
 * their stacks as walk_parked() of bpf/parked.bpf.h gives them.
 *
 * A goroutine that waits has its registers in g.sched. Its stack can still move: a garbage
 * collector that finds the stack too large copies it, and adjusts sp and the frame pointers. The
 * number of bytes in use stays the same. Source: copystack and shrinkstack in runtime/stack.go,
 * Go 1.16 to 1.27.
 */
#ifndef COLLECT_WAITS_LOOKS_PARKED_H
#define COLLECT_WAITS_LOOKS_PARKED_H

#include "base/mem.h"
#include "go/layout/layout.h"
#include "goprof_abi.h"
#include "subject/subject.h"

enum { PARKED_BATCH = 256 }; /* goroutines that are looked at in one call of the kernel */

/*
 * A goroutine's g. Its fields lie in several cache lines, which are read one after the other: where it runs in
 * between, its status and its registers are of two moments. (When it begins to run, sp becomes 0; gogo in
 * runtime/asm_*.s.)
 */
struct parked {
	uint64_t stack_lo, stack_hi, sp, pc, bp;
	uint64_t goid, labels;
	uint64_t waitsince; /* 0 until a GC has seen it wait */
	uint32_t status;    /* without the scan bit */
	bool scan;	    /* a GC holds it */
	uint8_t reason, seq;
	/* arm64: the saved x30, and the bytes below sp in which a frame keeps its record; else 0 */
	uint64_t lr;
	uint8_t below;
};

struct parked_reader {
	struct mem *mem; /* borrowed */
	const struct golayout *l;
	size_t at, n;  /* the bytes of a g that contain all of these fields */
	size_t status; /* where among these the status is */
	bool uses_lr;
	uint8_t *raw;
	struct mem_piece pieces[2 * PARKED_BATCH];
};

/* @id: the target's machine. -ENOTSUP when the layout lacks a field. parked_fini also after that. */
int parked_init(struct parked_reader *r, struct mem *mem, const struct golayout *l, enum arch_id id,
		struct err *e);
void parked_fini(struct parked_reader *r);

/*
 * Looks at g[0, n), n at most PARKED_BATCH; ok[i] tells whether out[i] was read. -ESRCH, -EPERM:
 * none was read.
 */
int parked_look(struct parked_reader *r, const uint64_t *g, size_t n, struct parked *out, bool *ok,
		struct err *e);
/*
 * The same, for goroutines that change all the time. The status is read first, so that it is of a random moment.
 * Otherwise the cache line with the registers is taken from the target's CPU before: there a goroutine that is
 * about to park writes them late, and then its status. Of waits of 0.15 us parked_look() sees 2 to 25 % too
 * few (Xeon, two CPUs). This takes 0.1 us more for each goroutine.
 */
typedef int parked_looker(struct parked_reader *r, const uint64_t *g, size_t n, struct parked *out,
			  bool *ok, struct err *e);
parked_looker parked_look_at_status;

/*
 * What it waits for, status << 8 | reason; 0: it does not
 * wait. Being runnable or in a system call counts as waiting, too: its registers are in g.sched
 * as well.
 */
uint16_t parked_for(const struct parked *p);

/*
 * Is it the same wait, as far as two looks can tell? @a came first. From Go 1.26 on, two system
 * calls at one place cannot be told apart.
 */
bool parked_same(const struct parked *a, const struct parked *b);

/*
 * The same, and its stack stood still in between. It may not have where a GC holds the goroutine: who moves a stack sets the registers
 * first, and then mends the frames (copystack in runtime/stack.go), so what is read meanwhile leads back to the other copy.
 */
static inline bool parked_stood(const struct parked *a, const struct parked *b)
{
	return !a->scan && !b->scan && parked_same(a, b);
}

/* Is it a goroutine, and no struct that waits to be used again? */
bool parked_lives(const struct parked *p);

/* Does sp lie in the stack? Not when it ran as its registers were read. */
static inline bool parked_has_stack(const struct parked *p)
{
	return p->sp >= p->stack_lo && p->sp < p->stack_hi;
}

/* Did its stack stay in place between the looks? */
static inline bool parked_still(const struct parked *a, const struct parked *b)
{
	return a->stack_lo == b->stack_lo && a->stack_hi == b->stack_hi && a->sp == b->sp &&
	       a->bp == b->bp;
}

/* Do both wait for the same in the same frame, even if it may be another wait? */
bool parked_alike(const struct parked *a, const struct parked *b);

/*
 * What a walk of one stack reads from. @copy: the first bytes from p->sp - p->below on, to save calls.
 * *deep, if not NULL, is set when more was read than these, because that may be of another
 * moment.
 */
struct parked_stack {
	struct mem *mem;
	const struct gpb_target *t;
	const struct parked *p;
	const uint8_t *copy;
	size_t ncopy;
	bool *deep;
};

/*
 * Walks a goroutine that waits: its frames go into st->pc, st->nfirst and st->flags. Where they
 * end in a callback from C, the stack must be finished by rules: then the result is true, and all
 * of @raw is set for unwinding_settle(), its stack from @st.
 */
bool parked_walk(const struct parked_stack *k, struct gpb_stack *st, struct gpb_rec_raw *raw);
/*
 * The same for a goroutine that did not park: it was preempted, is in a system call, or has not
 * @begun yet.
 */
bool parked_walk_saved(const struct parked_stack *k, bool begun, struct gpb_stack *st,
		       struct gpb_rec_raw *raw);

/* One of these two, as probes do: by frame pointers where it parked, else by rules. */
bool parked_walk_as_it_is(const struct parked_stack *k, struct subject *s, struct gpb_stack *st,
			  struct gpb_rec_raw *raw);

#endif
