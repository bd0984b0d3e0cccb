/* user/ingest/exectrace/order_ranges.c - stretches with a begin and an end, and what a program notes. */
#include "ingest/exectrace/order_priv.h"

#include "base/limits.h"

/* ---- ranges ---- */

static const char gc_name[] = "GC concurrent mark phase", sweep_name[] = "GC incremental sweep",
		  assist_name[] = "GC mark assist";

int order_gc_active(struct order *o, const uint64_t *a)
{
	if (o->gen->number == o->first) {
		if (o->gc != GC_UNKNOWN)
			return order_wrong(o, "a collection is going on that had not begun");
	} else if (a[0] != o->gc_seq + 1) {
		return WAIT;
	} else if (o->gc != GC_ON) {
		return order_wrong(o, "a collection is going on that had not begun");
	}
	o->gc_seq = a[0];
	o->gc = GC_ON;
	order_put_range(o, TRACE_RANGE_ACTIVE, gc_name, TRACE_SCOPE_PROGRAM, 0, 0);
	return DONE;
}

int order_gc_begin(struct order *o, const uint64_t *a)
{
	if (o->gc != GC_UNKNOWN) {
		if (a[0] != o->gc_seq + 1)
			return WAIT;
		if (o->gc == GC_ON)
			return order_wrong(o, "a collection begins while one is going on");
	}
	o->gc_seq = a[0];
	o->gc = GC_ON;
	order_put_range(o, TRACE_RANGE_BEGIN, gc_name, TRACE_SCOPE_PROGRAM, 0, a[1]);
	return DONE;
}

int order_gc_end(struct order *o, const uint64_t *a)
{
	if (a[0] != o->gc_seq + 1)
		return WAIT;
	if (o->gc != GC_ON)
		return order_wrong(o, "a collection ends that had not begun");
	o->gc_seq = a[0];
	o->gc = GC_OFF;
	order_put_range(o, TRACE_RANGE_END, gc_name, TRACE_SCOPE_PROGRAM, 0, 0);
	return DONE;
}

/* A range that is going on is new in the first generation, and known in others. */
static int may_be_active(struct order *o, bool *open)
{
	bool first = o->gen->number == o->first;

	if (*open == first)
		return order_wrong(o, "a range is going on that had not begun, or goes on twice");
	*open = true;
	return DONE;
}

int order_sweep(struct order *o, const uint64_t *a)
{
	bool active = o->ev->type == EV_GC_SWEEP_ACTIVE, end = o->ev->type == EV_GC_SWEEP_END;
	struct pstate *p = order_proc(o, active ? (int64_t)a[0] : o->now.p);
	struct trace_event *ev;

	if (!p)
		return active ? WAIT : order_wrong(o, "a sweep without a P");
	if (active && may_be_active(o, &p->sweeps) < 0)
		return -EBADMSG;
	if (!active && p->sweeps != end)
		return order_wrong(o, "a sweep begins twice, or ends that had not begun");
	p->sweeps = !end;
	ev = order_put_range(o,
			     active ? TRACE_RANGE_ACTIVE :
			     end    ? TRACE_RANGE_END :
				      TRACE_RANGE_BEGIN,
			     sweep_name, TRACE_SCOPE_PROC, p->id,
			     o->ev->type == EV_GC_SWEEP_BEGIN ? a[0] : 0);
	if (end) {
		ev->range.swept = a[0];
		ev->range.reclaimed = a[1];
	}
	return DONE;
}

int order_assist(struct order *o, const uint64_t *a)
{
	bool active = o->ev->type == EV_GC_ASSIST_ACTIVE, end = o->ev->type == EV_GC_ASSIST_END;
	struct gstate *g = order_goroutine(o, active ? (int64_t)a[0] : o->now.g);

	if (!g)
		return active ? WAIT : order_wrong(o, "a mark assist without a goroutine");
	if (active && may_be_active(o, &g->assists) < 0)
		return -EBADMSG;
	if (!active && g->assists != end)
		return order_wrong(o, "a mark assist begins twice, or ends that had not begun");
	g->assists = !end;
	order_put_range(o,
			active ? TRACE_RANGE_ACTIVE :
			end    ? TRACE_RANGE_END :
				 TRACE_RANGE_BEGIN,
			assist_name, TRACE_SCOPE_GOROUTINE, g->id,
			o->ev->type == EV_GC_ASSIST_BEGIN ? a[0] : 0);
	return DONE;
}

static char *copy(struct trace_text t)
{
	return strndup(t.at, t.len);
}

int order_stw_begin(struct order *o, const uint64_t *a)
{
	struct gstate *g = order_goroutine(o, o->now.g);
	struct trace_text why = order_text(o, a[0]);
	size_t room = why.len + sizeof("stop-the-world ()");

	if (!g || g->stw)
		return order_wrong(o, "the world is stopped by nobody, or twice by one");
	g->stw = malloc(room);
	if (!g->stw)
		return order_no_memory(o);
	snprintf(g->stw, room, "stop-the-world (%.*s)", (int)why.len, why.at);
	order_put_range(o, TRACE_RANGE_BEGIN, g->stw, TRACE_SCOPE_GOROUTINE, g->id, a[1]);
	return DONE;
}

int order_stw_end(struct order *o)
{
	struct gstate *g = order_goroutine(o, o->now.g);

	if (!g || !g->stw)
		return order_wrong(o, "the world starts that was not stopped");
	order_put_range(o, TRACE_RANGE_END, g->stw, TRACE_SCOPE_GOROUTINE, g->id, 0);
	free(o->kept);
	o->kept = g->stw; /* until the event was taken */
	g->stw = NULL;
	return DONE;
}

/* ---- annotations ---- */

/* 0 is the background task, which all tasks without a parent have. */
static int64_t parent_of(uint64_t id)
{
	return id ? (int64_t)id : TRACE_NONE;
}

int order_task_begin(struct order *o, const uint64_t *a)
{
	uint32_t at = o->free_tasks.n ? o->free_tasks.at[--o->free_tasks.n] : (uint32_t)o->tasks.n;
	struct trace_event *ev;
	struct task *t;
	uint64_t before;

	if (map_get(&o->by_task, a[0], &before))
		return order_wrong(o, "a task begins twice");
	t = at < o->tasks.n ? &o->tasks.at[at] : vec_add(&o->tasks, LIMIT_TRACE_IDS);
	if (!t || !map_put(&o->by_task, a[0], at))
		return order_no_memory(o);
	*t = (struct task){ parent_of(a[1]), copy(order_text(o, a[2])) };
	if (!t->type)
		return order_no_memory(o);
	ev = order_put(o, TRACE_TASK_BEGIN, a[3]);
	ev->task.id = a[0];
	ev->task.parent = t->parent;
	ev->task.type = order_text(o, a[2]);
	return DONE;
}

/* Its begin may have been before the trace. */
int order_task_end(struct order *o, const uint64_t *a)
{
	struct trace_event *ev = order_put(o, TRACE_TASK_END, a[1]);
	uint32_t *empty;
	uint64_t at;

	ev->task.id = a[0];
	ev->task.parent = TRACE_NONE;
	ev->task.type = (struct trace_text){ "", 0 };
	if (!map_get(&o->by_task, a[0], &at))
		return DONE;
	free(o->kept);
	o->kept = o->tasks.at[at].type;
	ev->task.parent = o->tasks.at[at].parent;
	ev->task.type = (struct trace_text){ o->kept, strlen(o->kept) };
	o->tasks.at[at].type = NULL;
	map_del(&o->by_task, a[0]);
	empty = vec_add(&o->free_tasks, LIMIT_TRACE_IDS);
	if (empty)
		*empty = (uint32_t)at;
	return DONE;
}

int order_region_begin(struct order *o, const uint64_t *a)
{
	struct gstate *g = order_goroutine(o, o->now.g);
	struct region *r = g ? vec_add(&g->regions, LIMIT_TRACE_IDS) : NULL;
	struct trace_event *ev;

	if (!g)
		return order_wrong(o, "a region begins without a goroutine");
	if (!r)
		return order_no_memory(o);
	*r = (struct region){ a[0], copy(order_text(o, a[1])) };
	if (!r->type)
		return order_no_memory(o);
	ev = order_put(o, TRACE_REGION_BEGIN, a[2]);
	ev->region.task = a[0];
	ev->region.type = order_text(o, a[1]);
	return DONE;
}

/* Regions that began before the trace are not known. */
int order_region_end(struct order *o, const uint64_t *a)
{
	struct gstate *g = order_goroutine(o, o->now.g);
	struct trace_text type = order_text(o, a[1]);
	struct trace_event *ev;

	if (!g)
		return order_wrong(o, "a region ends without a goroutine");
	if (g->regions.n) {
		struct region *r = &g->regions.at[g->regions.n - 1];

		if (r->task != a[0] || strlen(r->type) != type.len ||
		    memcmp(r->type, type.at, type.len))
			return order_wrong(o, "a region ends that is not the innermost one");
		free(r->type);
		g->regions.n--;
	}
	ev = order_put(o, TRACE_REGION_END, a[2]);
	ev->region.task = a[0];
	ev->region.type = type;
	return DONE;
}

int order_annotation(struct order *o, const uint64_t *a)
{
	struct trace_event *ev;

	if (o->now.g == TRACE_NONE || o->now.p == TRACE_NONE)
		return order_wrong(o, "an annotation without a goroutine");
	if (o->ev->type == EV_LOG) {
		ev = order_put(o, TRACE_LOG, a[3]);
		ev->log.task = a[0];
		ev->log.category = order_text(o, a[1]);
		ev->log.message = order_text(o, a[2]);
	} else {
		ev = order_put(o, TRACE_LABEL, 0);
		ev->label.label = order_text(o, a[0]);
		ev->label.g = o->now.g;
	}
	return DONE;
}
