/*
 * user/ingest/exectrace/v1/notes1.c - stretches of the collector, metrics, and what a program notes, in a
 * trace of version 1. Source: as states1.c.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "ingest/exectrace/v1/trace1_priv.h"

static struct trace_event *put_range(struct states1 *s, const struct merged1 *m,
				     enum trace_kind kind, const char *name, enum trace_scope scope,
				     int64_t id)
{
	struct trace_event *ev = states1_put(s, m, kind, 0);

	ev->range = (struct trace_range){ { name, strlen(name) }, scope, id, 0, 0 };
	return ev;
}

static uint32_t last_stack(struct states1 *s, const struct merged1 *m)
{
	uint32_t at = 0;

	(void)tables_stack(&s->index->tables, m->ev.args[m->ev.nargs - 1], &at);
	return at;
}

/* ---- stretches ---- */

static int collection(struct states1 *s, const struct merged1 *m, struct err *e)
{
	static const char name[] = "GC concurrent mark phase";
	bool begins = m->ev.type == EV1_GC_START;

	if (begins == s->collects)
		return states1_wrong(s, m,
				     begins ? "a collection is going on" :
					      "no collection is going on",
				     e);
	s->collects = begins;
	if (begins)
		put_range(s, m, TRACE_RANGE_BEGIN, name, TRACE_SCOPE_PROGRAM, 0)->stack =
			last_stack(s, m);
	else
		put_range(s, m, TRACE_RANGE_END, name, TRACE_SCOPE_PROGRAM, 0);
	return 0;
}

/* Source: runtime/trace.go: stwReason, Go 1.21; of Go 1.10 to 1.20: 0 and 1 are the two of a collection. */
static const char *stop_name(unsigned version, uint64_t kind)
{
#define STOP(why) "stop-the-world (" why ")"
	static const char *const of[] = {
		STOP(""),
		STOP("GC mark termination"),
		STOP("GC sweep termination"),
		STOP("write heap dump"),
		STOP("goroutine profile"),
		STOP("goroutine profile cleanup"),
		STOP("all goroutine stack trace"),
		STOP("read mem stats"),
		STOP("AllThreadsSyscall"),
		STOP("GOMAXPROCS"),
		STOP("start trace"),
		STOP("stop trace"),
		STOP("CountPagesInUse (test)"),
		STOP("ReadMetricsSlow (test)"),
		STOP("ReadMemStatsSlow (test)"),
		STOP("PageCachePagesLeaked (test)"),
		STOP("ResetDebugLog (test)"),
	};
#undef STOP

	if (version < V1_21)
		return of[kind < 2 ? kind + 1 : 0];
	return of[kind < ARRAY_LEN(of) ? kind : 0];
}

/* Its end may be on another P than its begin. */
static int stop_the_world(struct states1 *s, const struct merged1 *m, struct err *e)
{
	bool begins = m->ev.type == EV1_STW_START;
	const char *name;

	if (begins == s->stopped)
		return states1_wrong(s, m,
				     begins ? "the world is stopped already" :
					      "the world is not stopped",
				     e);
	s->stopped = begins;
	if (begins) {
		s->stop_kind = m->ev.args[1];
		name = stop_name(s->index->version, s->stop_kind);
		s->stop_name = (struct trace_text){ name, strlen(name) };
	}
	put_range(s, m, begins ? TRACE_RANGE_BEGIN : TRACE_RANGE_END, "", TRACE_SCOPE_PROGRAM, 0)
		->range.name = s->stop_name;
	return 0;
}

/* Before Go 1.10 this is what each P does while the world is stopped. */
static int scan(struct states1 *s, const struct merged1 *m, struct err *e)
{
	bool begins = m->ev.type == EV1_STW_START, *scans = &s->ps.at[m->proc].scans;

	if (begins == *scans)
		return states1_wrong(s, m, begins ? "it scans already" : "it does not scan", e);
	*scans = begins;
	put_range(s, m, begins ? TRACE_RANGE_BEGIN : TRACE_RANGE_END, "GC scan", TRACE_SCOPE_PROC,
		  m->p);
	return 0;
}

static int sweep(struct states1 *s, const struct merged1 *m, struct err *e)
{
	static const char name[] = "GC incremental sweep";
	bool begins = m->ev.type == EV1_SWEEP_START, *sweeps = &s->ps.at[m->proc].sweeps;
	struct trace_event *ev;

	if (begins == *sweeps)
		return states1_wrong(s, m, begins ? "it sweeps already" : "it does not sweep", e);
	*sweeps = begins;
	ev = put_range(s, m, begins ? TRACE_RANGE_BEGIN : TRACE_RANGE_END, name, TRACE_SCOPE_PROC,
		       m->p);
	if (begins) {
		ev->stack = last_stack(s, m);
	} else if (m->ev.nargs > 2) {
		ev->range.swept = m->ev.args[1];
		ev->range.reclaimed = m->ev.args[2];
	}
	return 0;
}

/* One may be going on when the trace begins, so its end alone is no error. */
static int assist(struct states1 *s, const struct merged1 *m, struct err *e)
{
	static const char name[] = "GC mark assist";
	bool begins = m->ev.type == EV1_MARK_ASSIST_START;
	struct g1 *g = states1_g(s, m->g);

	if (begins && g && g->assists)
		return states1_wrong(s, m, "it assists already", e);
	if (g)
		g->assists = begins;
	if (begins)
		put_range(s, m, TRACE_RANGE_BEGIN, name, TRACE_SCOPE_GOROUTINE, m->g)->stack =
			last_stack(s, m);
	else
		put_range(s, m, TRACE_RANGE_END, name, TRACE_SCOPE_GOROUTINE, m->g);
	return 0;
}

/* ---- what a program notes ---- */

static int begin_task(struct states1 *s, const struct merged1 *m, struct err *e)
{
	const uint64_t *a = m->ev.args;
	uint64_t at = s->free_tasks.n ? s->free_tasks.at[--s->free_tasks.n] : s->tasks.n, before;
	struct trace_event *ev;
	struct task1 *t;

	if (map_get(&s->by_task, a[1], &before))
		return states1_wrong(s, m, "the task has begun already", e);
	t = at < s->tasks.n ? &s->tasks.at[at] : vec_add(&s->tasks, LIMIT_TRACE_IDS);
	if (!t || !map_put(&s->by_task, a[1], at))
		return states1_no_memory(e);
	*t = (struct task1){ a[2] ? (int64_t)a[2] : TRACE_NONE, a[3] };
	ev = states1_put(s, m, TRACE_TASK_BEGIN, a[4]);
	ev->task.id = a[1];
	ev->task.parent = t->parent;
	ev->task.type = states1_text(s, t->type);
	return 0;
}

static int end_task(struct states1 *s, const struct merged1 *m)
{
	const uint64_t *a = m->ev.args;
	struct trace_event *ev = states1_put(s, m, TRACE_TASK_END, a[2]);
	uint32_t *empty;
	uint64_t at;

	ev->task.id = a[1];
	ev->task.parent = TRACE_NONE;
	ev->task.type = states1_text(s, 0);
	if (!map_get(&s->by_task, a[1], &at))
		return 0;
	ev->task.parent = s->tasks.at[at].parent;
	ev->task.type = states1_text(s, s->tasks.at[at].type);
	map_del(&s->by_task, a[1]);
	empty = vec_add(&s->free_tasks, LIMIT_TRACE_IDS);
	if (empty)
		*empty = (uint32_t)at;
	return 0;
}

static int region(struct states1 *s, const struct merged1 *m, struct err *e)
{
	const uint64_t *a = m->ev.args;
	struct g1 *g = states1_g(s, m->g);
	struct trace_event *ev;
	struct region1 *r;

	if (a[2] > 1)
		return states1_wrong(s, m, "a region neither begins nor ends", e);
	if (!g)
		return states1_wrong(s, m, "a region of no goroutine", e);
	r = a[2] ? NULL : vec_add(&g->regions, LIMIT_TRACE_IDS);
	if (!a[2] && !r)
		return states1_no_memory(e);
	if (r) {
		*r = (struct region1){ a[1], a[3] };
	} else if (g->regions.n) { /* those that began before the trace are not known */
		r = &g->regions.at[--g->regions.n];
		if (r->task != a[1] || r->type != a[3])
			return states1_wrong(s, m, "a region ends that is not the innermost one",
					     e);
	}
	ev = states1_put(s, m, a[2] ? TRACE_REGION_END : TRACE_REGION_BEGIN, a[4]);
	ev->region.task = a[1];
	ev->region.type = states1_text(s, a[3]);
	return 0;
}

static int log_event(struct states1 *s, const struct merged1 *m, struct err *e)
{
	char *message = malloc(m->ev.text_len + 1u);
	struct trace_event *ev;
	int ret;

	if (!message)
		return states1_no_memory(e);
	free(s->message);
	s->message = message;
	ret = wire1_bytes(s->index->fd, m->ev.text_off, message, m->ev.text_len, e);
	if (ret)
		return ret;
	ev = states1_put(s, m, TRACE_LOG, m->ev.args[3]);
	ev->log.task = m->ev.args[1];
	ev->log.category = states1_text(s, m->ev.args[2]);
	ev->log.message = (struct trace_text){ message, m->ev.text_len };
	return 0;
}

static int metric(struct states1 *s, const struct merged1 *m, const char *name, uint64_t stack)
{
	struct trace_event *ev = states1_put(s, m, TRACE_METRIC, stack);

	ev->metric.name = name;
	ev->metric.value = m->ev.args[1];
	return 0;
}

/* ---- all of them ---- */

int states1_note(struct states1 *s, const struct merged1 *m, struct err *e)
{
	switch (m->ev.type) {
	case EV1_GOMAXPROCS:
		s->started = true;
		s->gomaxprocs = m->ev.args[1];
		return metric(s, m, "/sched/gomaxprocs:threads", m->ev.args[2]);
	case EV1_HEAP_ALLOC:
		return metric(s, m, "/memory/classes/heap/objects:bytes", 0);
	case EV1_HEAP_GOAL:
		return metric(s, m, "/gc/heap/goal:bytes", 0);
	case EV1_GC_START:
	case EV1_GC_DONE:
		return collection(s, m, e);
	case EV1_STW_START:
	case EV1_STW_DONE:
		return s->index->version < V1_10 ? scan(s, m, e) : stop_the_world(s, m, e);
	case EV1_SWEEP_START:
	case EV1_SWEEP_DONE:
		return sweep(s, m, e);
	case EV1_MARK_ASSIST_START:
	case EV1_MARK_ASSIST_DONE:
		return assist(s, m, e);
	case EV1_TASK_CREATE:
		return begin_task(s, m, e);
	case EV1_TASK_END:
		return end_task(s, m);
	case EV1_REGION:
		return region(s, m, e);
	case EV1_LOG:
		return log_event(s, m, e);
	default: /* wire1_next() knows no other */
		return states1_wrong(s, m, "it has no meaning here", e);
	}
}
