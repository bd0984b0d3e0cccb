/*
 * user/ingest/exectrace/v2/order_priv.h - the states that order.c keeps, for the files that know the rules of
 * events: order_sched.c, order_ranges.c.
 *
 * A rule is one function for one kind of event, or a few. It checks before it changes anything. Source
 * of them all: internal/trace/order.go, Go 1.22 to 1.27.
 */
#ifndef INGEST_EXECTRACE_V2_ORDER_PRIV_H
#define INGEST_EXECTRACE_V2_ORDER_PRIV_H

#include "base/cleanup.h"
#include "base/map.h"
#include "base/vec.h"
#include "ingest/exectrace/v2/order.h"

/* As events have them. Source: internal/trace/tracev2/tracev2.go (GoStatus, ProcStatus). */
enum gstatus { G_NONE, G_RUNNABLE, G_RUNNING, G_SYSCALL, G_WAITING };
enum pstatus { P_NONE, P_RUNNING, P_IDLE, P_SYSCALL, P_ABANDONED };

enum gc_state { GC_UNKNOWN, GC_OFF, GC_ON };

/* Counts what others do to a goroutine or P; it begins anew in each generation. */
struct seq {
	uint64_t gen, n;
};

/* A text that outlives its generation; owned. */
struct held {
	char *at;
	size_t len;
};

struct region {
	uint64_t task;
	struct held type;
};

/* The world is stopped by a goroutine. */
struct stop {
	uint64_t why, gen; /* a string's number, and of the generation in which it began */
	struct held name;  /* of the range */
};

struct gstate {
	int64_t id;
	enum gstatus status;
	struct seq seq;
	uint64_t stack,
		stack_gen; /* where it is while it does not run, of that generation; 0: not told */
	bool assists;	   /* a range is open */
	VEC(struct stop) stops;
	VEC(struct region) regions;
};

struct pstate {
	int64_t id;
	enum pstatus status;
	struct seq seq;
	bool sweeps;
	int64_t m; /* the thread that had it last */
};

struct mstate {
	int64_t g, p;
};

struct task {
	int64_t parent;
	struct held type;
};

enum { QUEUE_MAX = 4 }; /* what one event means, at most */

struct order {
	const struct generation *gen;
	unsigned version;
	uint64_t first; /* the number of the first generation */
	/* Values that are gone leave their place to others. */
	VEC(struct gstate) gs;
	VEC(struct pstate) ps;
	VEC(struct mstate) ms;
	VEC(int64_t) thread_ids; /* of each in ms */
	VEC(struct task) tasks;
	VEC(uint32_t) free_gs, free_tasks;
	struct ids by_g, by_p, by_m;
	struct map by_task;
	enum gc_state gc;
	uint64_t gc_seq, gc_gen; /* gc_gen: the generation that told it */
	/* What the event that came last means: the first in *out, the others in queue. */
	struct trace_event *out, queue[QUEUE_MAX - 1];
	size_t queued, taken;
	/* The event that is tried. */
	const struct raw_event *ev;
	const struct raw_thread *thread;
	struct {
		int64_t now, next;
	} g, p; /* of its thread: before it, and after it */
	int64_t m;
	struct err *e;
	struct held kept;    /* a text that the queued event refers to */
	size_t held;	     /* bytes of all that is held */
	const char *missing; /* a table does not have what the event refers to */
	/* Hashes of states: that which the event waits for, and those that there are now. */
	bool hashes; /* are wanted: */
	uint64_t awaited;
	uint64_t reached[ORDER_REACHED];
	size_t nreached;
	/* The event is forced: then this goroutine or P was in that state before. */
	bool force, adopted;
	int64_t adopted_id;
	unsigned adopted_from;
};

enum { WAIT, DONE };

/* On the thread there must be what is told here. */
enum { NEEDS_M = 1, NEEDS_P = 2, NEEDS_G = 4, NEEDS_ALL = 7 };

/* -EBADMSG: the event that is tried can never come. */
int order_wrong(struct order *o, const char *what);
int order_no_memory(struct order *o);
/* A copy of both, one behind the other. */
int order_hold(struct order *o, struct trace_text a, struct trace_text b, struct held *out);
void order_let_go(struct order *o, struct held *h);
/* Until the next event: what the present one refers to. */
void order_keep(struct order *o, struct held *h);
/* Is it a stop of the world for that reason? */
bool order_is_stop(const struct held *name, struct trace_text why);
/* 0, or as order_wrong(). */
int order_lacks(struct order *o, unsigned what);
static inline int order_needs(struct order *o, unsigned what)
{
	bool there = (!(what & NEEDS_M) || o->m != TRACE_NONE) &&
		     (!(what & NEEDS_P) || o->p.now != TRACE_NONE) &&
		     (!(what & NEEDS_G) || o->g.now != TRACE_NONE);

	return there ? 0 : order_lacks(o, what);
}

/*
 * What is told is not so yet: a goroutine or P of that status which @n acts of others succeed, a P that
 * was taken from the thread, a collection of that number. NULL, false: order_waits() is the answer.
 * Otherwise the event is forced, and it is so now.
 */
struct gstate *order_await_g(struct order *o, int64_t id, enum gstatus status, uint64_t n);
struct pstate *order_await_p(struct order *o, int64_t id, enum pstatus status, uint64_t n);
bool order_await_lost_p(struct order *o);
bool order_await_gc(struct order *o, uint64_t n, enum gc_state gc);
/* WAIT, or no memory. */
int order_waits(struct order *o);
/* Those are how things are now, which only matters where somebody waits by hashes. */
void order_reached_g(struct order *o, const struct gstate *g);
void order_reached_p(struct order *o, const struct pstate *p);
static inline void order_reach_g(struct order *o, const struct gstate *g)
{
	if (o->hashes)
		order_reached_g(o, g);
}

static inline void order_reach_p(struct order *o, const struct pstate *p)
{
	if (o->hashes)
		order_reached_p(o, p);
}

void order_reach_gc(struct order *o);
/* It is at this stack of the present generation until it runs. */
static inline void order_at_stack(const struct order *o, struct gstate *g, uint64_t stack_id)
{
	g->stack = stack_id;
	g->stack_gen = o->gen->number;
}

/* NULL: there is none of that id. */
static inline struct gstate *order_goroutine(const struct order *o, int64_t id)
{
	uint64_t at;

	return ids_get(&o->by_g, (uint64_t)id, &at) ? &o->gs.at[at] : NULL;
}

static inline struct pstate *order_proc(const struct order *o, int64_t id)
{
	uint64_t at;

	return ids_get(&o->by_p, (uint64_t)id, &at) ? &o->ps.at[at] : NULL;
}

static inline struct mstate *order_thread(const struct order *o, int64_t id)
{
	uint64_t at;

	return ids_get(&o->by_m, (uint64_t)id, &at) ? &o->ms.at[at] : NULL;
}

/* The @n-th act of others in the present generation. */
static inline struct seq order_seq(const struct order *o, uint64_t n)
{
	return (struct seq){ o->gen->number, n };
}

static inline bool order_succeeds(const struct order *o, uint64_t n, struct seq before)
{
	return before.gen == o->gen->number && n == before.n + 1;
}

/* NULL: no memory. */
struct gstate *order_new_goroutine(struct order *o, int64_t id, enum gstatus status);
void order_delete_goroutine(struct order *o, struct gstate *g);
struct pstate *order_new_proc(struct order *o, int64_t id, enum pstatus status);
struct mstate *order_new_thread(struct order *o, int64_t id, int64_t g);
/* As events have it; an abandoned P counts as idle, one in a system call as running. */
unsigned order_g_state(enum gstatus status);
unsigned order_p_state(enum pstatus status);
/* Of the present generation; what it does not have is noted in o->missing. */
static inline struct trace_text order_text(struct order *o, uint64_t id)
{
	struct trace_text t;

	if (!tables_string(&o->gen->tables, id, &t))
		o->missing = "string";
	return t;
}

static inline uint32_t order_stack(struct order *o, uint64_t id)
{
	uint32_t at;

	if (!tables_stack(&o->gen->tables, id, &at))
		o->missing = "stack";
	return at;
}

/*
 * What comes out: of the event that is tried, where and as it is. The caller sets all that its kind has:
 * to clear an event first takes longer than all else that is done with it.
 */
static inline struct trace_event *order_put(struct order *o, enum trace_kind kind,
					    uint64_t stack_id)
{
	struct trace_event *ev = o->queued ? &o->queue[o->queued - 1] : o->out;

	BUG_ON(o->queued == QUEUE_MAX);
	o->queued++;
	ev->kind = kind;
	ev->time_ns = o->ev->time_ns;
	ev->m = o->m;
	ev->p = o->p.now;
	ev->g = o->g.now;
	ev->stack = order_stack(o, stack_id);
	return ev;
}

static inline struct trace_event *order_put_g(struct order *o, int64_t id, unsigned from,
					      unsigned to, uint64_t stack_id)
{
	struct trace_event *ev = order_put(o, TRACE_GOROUTINE, stack_id);

	ev->transition = (struct trace_transition){ id, from, to, { "", 0 }, 0 };
	if (o->adopted && id == o->adopted_id) {
		ev->transition.from = o->adopted_from;
		o->adopted = false;
	}
	return ev;
}

void order_put_p(struct order *o, int64_t id, unsigned from, unsigned to);
struct trace_event *order_put_range(struct order *o, enum trace_kind kind, struct trace_text name,
				    enum trace_scope scope, int64_t id, uint64_t stack_id);

/*
 * The rules. @a: the arguments of the event that is tried. They return DONE, WAIT (not yet: another
 * thread must come first), or an error.
 */
int order_proc_status(struct order *o, const uint64_t *a);
int order_proc_start(struct order *o, const uint64_t *a);
int order_proc_stop(struct order *o);
int order_proc_steal(struct order *o, const uint64_t *a);
int order_go_status(struct order *o, const uint64_t *a, uint64_t stack_id);
int order_go_create(struct order *o, const uint64_t *a, enum gstatus status);
int order_go_create_syscall(struct order *o, const uint64_t *a);
int order_go_start(struct order *o, const uint64_t *a);
int order_go_stop(struct order *o, const uint64_t *a, enum gstatus status);
int order_go_destroy(struct order *o);
int order_go_unblock(struct order *o, const uint64_t *a);
int order_go_switch(struct order *o, const uint64_t *a, bool destroy);
int order_syscall_begin(struct order *o, const uint64_t *a);
int order_syscall_end(struct order *o);
int order_syscall_end_blocked(struct order *o);
int order_destroy_syscall(struct order *o);
int order_gc_active(struct order *o, const uint64_t *a);
int order_gc_begin(struct order *o, const uint64_t *a);
int order_gc_end(struct order *o, const uint64_t *a);
int order_sweep(struct order *o, const uint64_t *a);
int order_assist(struct order *o, const uint64_t *a);
int order_stw_begin(struct order *o, const uint64_t *a);
int order_stw_end(struct order *o);
int order_task_begin(struct order *o, const uint64_t *a);
int order_task_end(struct order *o, const uint64_t *a);
int order_region_begin(struct order *o, const uint64_t *a);
int order_region_end(struct order *o, const uint64_t *a);
int order_annotation(struct order *o, const uint64_t *a);

#endif
