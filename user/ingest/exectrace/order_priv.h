/*
 * user/ingest/exectrace/order_priv.h - the states that order.c keeps, for the files that know the rules of
 * events: order_sched.c, order_ranges.c.
 *
 * A rule is one function for one kind of event, or a few. It checks before it changes anything. Source
 * of them all: internal/trace/order.go, Go 1.22 to 1.27.
 */
#ifndef INGEST_EXECTRACE_ORDER_PRIV_H
#define INGEST_EXECTRACE_ORDER_PRIV_H

#include "base/map.h"
#include "base/vec.h"
#include "ingest/exectrace/order.h"

/* As events have them. Source: internal/trace/tracev2/tracev2.go (GoStatus, ProcStatus). */
enum gstatus { G_NONE, G_RUNNABLE, G_RUNNING, G_SYSCALL, G_WAITING };
enum pstatus { P_NONE, P_RUNNING, P_IDLE, P_SYSCALL, P_ABANDONED };

/* Counts what others do to a goroutine or P; it begins anew in each generation. */
struct seq {
	uint64_t gen, n;
};

struct region {
	uint64_t task;
	char *type; /* owned: it outlives its generation */
};

struct gstate {
	int64_t id;
	enum gstatus status;
	struct seq seq;
	bool assists; /* a range is open */
	char *stw;    /* why the world is stopped by it; NULL: it is not; owned */
	VEC(struct region) regions;
};

struct pstate {
	int64_t id;
	enum pstatus status;
	struct seq seq;
	bool sweeps;
};

struct mstate {
	int64_t g, p;
};

struct task {
	int64_t parent;
	char *type; /* owned */
};

enum { QUEUE_MAX = 4 };

struct order {
	const struct generation *gen;
	unsigned version;
	uint64_t first; /* the number of the first generation */
	/* Values that are gone leave their place to others. */
	VEC(struct gstate) gs;
	VEC(struct pstate) ps;
	VEC(struct mstate) ms;
	VEC(struct task) tasks;
	VEC(uint32_t) free_gs, free_tasks;
	struct map by_g, by_p, by_m, by_task;
	enum { GC_UNKNOWN, GC_OFF, GC_ON } gc;
	uint64_t gc_seq;
	struct trace_event queue[QUEUE_MAX];
	size_t head, queued;
	/* The event that is tried. */
	const struct raw_event *ev;
	struct mstate now, next; /* of its thread: before it, and after it */
	int64_t m;
	struct err *e;
	char *kept; /* a text that the queued event refers to; owned */
};

enum { WAIT, DONE };

/* -EBADMSG: the event that is tried can never come. */
int order_wrong(struct order *o, const char *what);
int order_no_memory(struct order *o);
/* NULL: there is none of that id. */
struct gstate *order_goroutine(const struct order *o, int64_t id);
struct pstate *order_proc(const struct order *o, int64_t id);
struct mstate *order_thread(const struct order *o, int64_t id);
/* The @n-th act of others in the present generation. */
struct seq order_seq(const struct order *o, uint64_t n);
bool order_succeeds(const struct order *o, uint64_t n, struct seq before);
/* NULL: no memory. */
struct gstate *order_new_goroutine(struct order *o, int64_t id, enum gstatus status);
void order_delete_goroutine(struct order *o, struct gstate *g);
struct pstate *order_new_proc(struct order *o, int64_t id, enum pstatus status);
struct mstate *order_new_thread(struct order *o, int64_t id, int64_t g);
/* As events have it; an abandoned P counts as idle, one in a system call as running. */
unsigned order_g_state(enum gstatus status);
unsigned order_p_state(enum pstatus status);
/* Of the present generation; "" and 0 for what it does not have. */
struct trace_text order_text(const struct order *o, uint64_t id);
uint32_t order_stack(const struct order *o, uint64_t id);
/* What comes out: of the event that is tried, where and as it is. */
struct trace_event *order_put(struct order *o, enum trace_kind kind, uint64_t stack_id);
struct trace_event *order_put_g(struct order *o, int64_t id, unsigned from, unsigned to,
				uint64_t stack_id);
void order_put_p(struct order *o, int64_t id, unsigned from, unsigned to);
struct trace_event *order_put_range(struct order *o, enum trace_kind kind, const char *name,
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
