/* user/ingest/exectrace/trace1_events.c - what an event of version 1 is in the words of version 2. */
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "ingest/exectrace/trace1_priv.h"

int64_t trace1_ns(const struct trace1 *t, int64_t ticks)
{
	return (int64_t)((double)(ticks - t->first) * t->ns_per_tick);
}

uint32_t trace1_stack(const struct trace1 *t, uint64_t id)
{
	uint32_t at;

	(void)tables_stack(&t->tables, id, &at);
	return at;
}

static struct trace_text text_of(const struct trace1 *t, uint64_t id)
{
	struct trace_text out;

	(void)tables_string(&t->tables, id, &out);
	return out;
}

static struct trace_text word(const char *s)
{
	return (struct trace_text){ s, strlen(s) };
}

static struct trace_event *put(struct trace1 *t, const struct t1_proc *p, enum trace_kind kind,
			       int64_t ticks)
{
	struct trace_event *ev = &t->queue[t->queued++];

	BUG_ON(t->queued > ARRAY_LEN(t->queue));
	*ev = (struct trace_event){ .kind = kind,
				    .time_ns = trace1_ns(t, ticks),
				    .m = p->m,
				    .p = p->p,
				    .g = p->ev_g ? p->ev_g : TRACE_NONE };
	/* The stack is the last argument of those that have one. */
	return ev;
}

static void put_g(struct trace1 *t, const struct t1_proc *p, struct t1_g *g, unsigned to,
		  const char *reason, uint64_t stack, int64_t ticks)
{
	struct trace_event *ev = put(t, p, TRACE_GOROUTINE, ticks);

	ev->stack = trace1_stack(t, stack);
	ev->transition = (struct trace_transition){
		.id = g->id, .from = g->told, .to = to, .reason = word(reason)
	};
	if (g->id == p->ev_g)
		ev->transition.stack = ev->stack;
	g->told = to;
}

static struct trace_event *put_range(struct trace1 *t, const struct t1_proc *p,
				     enum trace_kind kind, const char *name, enum trace_scope scope,
				     int64_t id, uint64_t stack)
{
	struct trace_event *ev = put(t, p, kind, p->ticks);

	ev->stack = trace1_stack(t, stack);
	ev->range = (struct trace_range){ word(name), scope, id, 0, 0 };
	return ev;
}

/* Of an event of its own goroutine. */
static int own(struct trace1 *t, struct t1_proc *p, unsigned to, const char *reason, uint64_t stack,
	       struct err *e)
{
	struct t1_g *g = trace1_goroutine(t, p->ev_g);
	uint32_t *empty;

	if (!g || g->told != TRACE_G_RUNNING)
		return err_set(e, -EBADMSG,
			       "offset %llu: event %u of goroutine %lld, which does not run",
			       (unsigned long long)p->ev.off, p->ev.type, (long long)p->ev_g);
	put_g(t, p, g, to, reason, stack, p->ticks);
	if (to != TRACE_G_NOT_EXIST)
		return 0;
	empty = vec_add(&t->free_gs, LIMIT_TRACE_IDS);
	if (empty)
		*empty = (uint32_t)(g - t->gs.at);
	map_del(&t->by_g, (uint64_t)g->id);
	return 0;
}

static int create(struct trace1 *t, struct t1_proc *p)
{
	const struct event1 *ev = &p->ev;
	struct t1_g *g = trace1_goroutine(t, (int64_t)ev->args[1]);

	g->told = p->ev_g ? TRACE_G_NOT_EXIST : TRACE_G_UNDETERMINED;
	put_g(t, p, g, TRACE_G_RUNNABLE, "", ev->nargs > 3 ? ev->args[3] : 0, p->ticks);
	t->queue[t->queued - 1].transition.stack = trace1_stack(t, ev->args[2]);
	return 0;
}

/* What goes on when the trace begins was created and started just before, as events have it. */
static void from_start(struct trace1 *t, struct t1_proc *p, unsigned to)
{
	struct t1_g *g = trace1_goroutine(t, p->ev_g);

	if (to == TRACE_G_SYSCALL)
		g->blocked = p->ticks;
	put_g(t, p, g, to, "", 0, p->ticks);
}

static void start(struct trace1 *t, struct t1_proc *p)
{
	const struct event1 *ev = &p->ev;
	struct t1_g *g = trace1_goroutine(t, p->ev_g);
	struct trace_event *label;

	put_g(t, p, g, TRACE_G_RUNNING, "", 0, p->ticks);
	if (ev->type != EV1_GO_START_LABEL)
		return;
	label = put(t, p, TRACE_LABEL, p->ticks);
	label->label.label = text_of(t, ev->args[3]);
	label->label.g = p->ev_g;
}

static void enter_syscall(struct trace1 *t, struct t1_proc *p)
{
	struct t1_g *g = trace1_goroutine(t, p->ev_g);

	if (!g)
		return;
	g->entered = p->ticks;
	g->syscall_stack = (uint32_t)p->ev.args[1];
}

/* Only now it is known that the system call is a stretch: it began when it was entered. */
static int block_in_syscall(struct trace1 *t, struct t1_proc *p, struct err *e)
{
	struct t1_g *g = trace1_goroutine(t, p->ev_g);

	if (!g || g->told != TRACE_G_RUNNING)
		return err_set(e, -EBADMSG, "offset %llu: a system call of no running goroutine",
			       (unsigned long long)p->ev.off);
	put_g(t, p, g, TRACE_G_SYSCALL, "", g->syscall_stack,
	      g->entered < 0 ? p->ticks : g->entered);
	g->blocked = p->ticks;
	return 0;
}

/* The event is told when it gets a P; it carries the time at which the call really ended. */
static int exit_syscall(struct trace1 *t, struct t1_proc *p, int64_t real, struct err *e)
{
	struct t1_g *g = trace1_goroutine(t, p->ev_g);

	if (real && real < g->blocked)
		return err_set(e, -EBADMSG, "offset %llu: a system call ends before it blocked",
			       (unsigned long long)p->ev.off);
	put_g(t, p, g, TRACE_G_RUNNABLE, "", 0, real ? real : p->ticks);
	return 0;
}

static void unblock(struct trace1 *t, struct t1_proc *p, uint64_t stack)
{
	put_g(t, p, trace1_goroutine(t, (int64_t)p->ev.args[1]), TRACE_G_RUNNABLE, "", stack,
	      p->ticks);
}

static void proc_state(struct trace1 *t, struct t1_proc *p, bool runs)
{
	struct trace_event *ev;

	if (runs)
		p->m = (int64_t)p->ev.args[1];
	ev = put(t, p, TRACE_PROC, p->ticks);
	ev->transition = (struct trace_transition){ .id = p->p,
						    .from = runs ? TRACE_P_IDLE : TRACE_P_RUNNING,
						    .to = runs ? TRACE_P_RUNNING : TRACE_P_IDLE };
}

static void metric(struct trace1 *t, struct t1_proc *p, const char *name)
{
	struct trace_event *ev = put(t, p, TRACE_METRIC, p->ticks);

	ev->metric.name = name;
	ev->metric.value = p->ev.args[1];
}

/* ---- user annotations, and the rest ---- */

static int log_event(struct trace1 *t, struct t1_proc *p, struct err *e)
{
	const struct event1 *ev = &p->ev;
	struct trace_event *out;
	char *message = malloc(ev->text_len + 1u);
	int ret;

	if (!message)
		return trace1_no_memory(e);
	free(t->kept);
	t->kept = message;
	ret = wire1_bytes(&p->w, ev->text_off, message, ev->text_len, e);
	if (ret)
		return ret;
	out = put(t, p, TRACE_LOG, p->ticks);
	out->stack = trace1_stack(t, ev->args[3]);
	out->log.task = ev->args[1];
	out->log.category = text_of(t, ev->args[2]);
	out->log.message = (struct trace_text){ message, ev->text_len };
	return 0;
}

static void user_event(struct trace1 *t, struct t1_proc *p)
{
	const uint64_t *a = p->ev.args;
	struct trace_event *ev;

	if (p->ev.type == EV1_REGION) {
		ev = put(t, p, a[2] ? TRACE_REGION_END : TRACE_REGION_BEGIN, p->ticks);
		ev->region.task = a[1];
		ev->region.type = text_of(t, a[3]);
		ev->stack = trace1_stack(t, a[4]);
		return;
	}
	ev = put(t, p, p->ev.type == EV1_TASK_CREATE ? TRACE_TASK_BEGIN : TRACE_TASK_END, p->ticks);
	ev->task.id = a[1];
	ev->task.parent = TRACE_NONE;
	ev->task.type = word("");
	if (p->ev.type == EV1_TASK_CREATE) {
		ev->task.parent = a[2] ? (int64_t)a[2] : TRACE_NONE;
		ev->task.type = text_of(t, a[3]);
		ev->stack = trace1_stack(t, a[4]);
	} else {
		ev->stack = trace1_stack(t, a[2]);
	}
}

static void range_event(struct trace1 *t, struct t1_proc *p)
{
	static const char gc[] = "GC concurrent mark phase", sweep[] = "GC incremental sweep",
			  assist[] = "GC mark assist", stw[] = "stop-the-world";
	const uint64_t *a = p->ev.args;
	struct trace_event *ev;

	switch (p->ev.type) {
	case EV1_GC_START:
		put_range(t, p, TRACE_RANGE_BEGIN, gc, TRACE_SCOPE_PROGRAM, 0, a[2]);
		return;
	case EV1_GC_DONE:
		put_range(t, p, TRACE_RANGE_END, gc, TRACE_SCOPE_PROGRAM, 0, 0);
		return;
	case EV1_STW_START:
		put_range(t, p, TRACE_RANGE_BEGIN, stw, TRACE_SCOPE_PROGRAM, 0, 0);
		return;
	case EV1_STW_DONE:
		put_range(t, p, TRACE_RANGE_END, stw, TRACE_SCOPE_PROGRAM, 0, 0);
		return;
	case EV1_SWEEP_START:
		put_range(t, p, TRACE_RANGE_BEGIN, sweep, TRACE_SCOPE_PROC, p->p, a[1]);
		return;
	case EV1_SWEEP_DONE:
		ev = put_range(t, p, TRACE_RANGE_END, sweep, TRACE_SCOPE_PROC, p->p, 0);
		ev->range.swept = p->ev.nargs > 1 ? a[1] : 0;
		ev->range.reclaimed = p->ev.nargs > 2 ? a[2] : 0;
		return;
	case EV1_MARK_ASSIST_START:
		put_range(t, p, TRACE_RANGE_BEGIN, assist, TRACE_SCOPE_GOROUTINE, p->ev_g, a[1]);
		return;
	default:
		put_range(t, p, TRACE_RANGE_END, assist, TRACE_SCOPE_GOROUTINE, p->ev_g, 0);
	}
}

/* Why a goroutine waits, in the words of version 2. NULL: the event is no wait. */
static const char *wait_reason(uint8_t type)
{
	switch (type) {
	case EV1_GO_STOP:
		return "forever";
	case EV1_GO_SLEEP:
		return "sleep";
	case EV1_GO_BLOCK:
		return "unspecified";
	case EV1_GO_BLOCK_SEND:
		return "chan send";
	case EV1_GO_BLOCK_RECV:
		return "chan receive";
	case EV1_GO_BLOCK_SELECT:
		return "select";
	case EV1_GO_BLOCK_SYNC:
		return "sync";
	case EV1_GO_BLOCK_COND:
		return "sync.(*Cond).Wait";
	case EV1_GO_BLOCK_NET:
		return "network";
	case EV1_GO_BLOCK_GC:
		return "wait until GC ends";
	default:
		return NULL;
	}
}

/* What is of no goroutine's state. */
static int tell_rest(struct trace1 *t, struct t1_proc *p, struct err *e)
{
	switch (p->ev.type) {
	case EV1_GOMAXPROCS:
		metric(t, p, "/sched/gomaxprocs:threads");
		return 0;
	case EV1_HEAP_ALLOC:
		metric(t, p, "/memory/classes/heap/objects:bytes");
		return 0;
	case EV1_HEAP_GOAL:
		metric(t, p, "/gc/heap/goal:bytes");
		return 0;
	case EV1_TASK_CREATE:
	case EV1_TASK_END:
	case EV1_REGION:
		user_event(t, p);
		return 0;
	case EV1_LOG:
		return log_event(t, p, e);
	case EV1_FUTILE_WAKEUP:
		return 0;
	default:
		range_event(t, p);
		return 0;
	}
}

int trace1_tell(struct trace1 *t, struct t1_proc *p, struct err *e)
{
	const uint64_t *a = p->ev.args;
	const char *reason = wait_reason(p->ev.type);

	if (reason)
		return own(t, p, TRACE_G_WAITING, reason, a[1], e);
	switch (p->ev.type) {
	case EV1_PROC_START:
	case EV1_PROC_STOP:
		proc_state(t, p, p->ev.type == EV1_PROC_START);
		return 0;
	case EV1_GO_CREATE:
		return create(t, p);
	case EV1_GO_START:
	case EV1_GO_START_LOCAL:
	case EV1_GO_START_LABEL:
		start(t, p);
		return 0;
	case EV1_GO_END:
		return own(t, p, TRACE_G_NOT_EXIST, "", 0, e);
	case EV1_GO_SCHED:
		return own(t, p, TRACE_G_RUNNABLE, "runtime.Gosched", a[1], e);
	case EV1_GO_PREEMPT:
		return own(t, p, TRACE_G_RUNNABLE, "preempted", a[1], e);
	case EV1_GO_UNBLOCK:
		unblock(t, p, a[3]);
		return 0;
	case EV1_GO_UNBLOCK_LOCAL:
		unblock(t, p, a[2]);
		return 0;
	case EV1_GO_SYSCALL:
		enter_syscall(t, p);
		return 0;
	case EV1_GO_SYS_BLOCK:
		return block_in_syscall(t, p, e);
	case EV1_GO_SYS_EXIT:
		return exit_syscall(t, p, (int64_t)a[3], e);
	case EV1_GO_SYS_EXIT_LOCAL:
		return exit_syscall(t, p, (int64_t)a[2], e);
	case EV1_GO_WAITING:
		from_start(t, p, TRACE_G_WAITING);
		return 0;
	case EV1_GO_IN_SYSCALL:
		from_start(t, p, TRACE_G_SYSCALL);
		return 0;
	default:
		return tell_rest(t, p, e);
	}
}
