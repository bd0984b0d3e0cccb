/* user/ingest/exectrace/v2/order_ranges.c - stretches with a begin and an end, and what a program notes. */
#include "ingest/exectrace/v2/order_priv.h"

#include "base/limits.h"

/* ---- ranges ---- */

static const struct trace_text gc_name = { "GC concurrent mark phase", 24 },
			       sweep_name = { "GC incremental sweep", 20 },
			       assist_name = { "GC mark assist", 14 };

static void collection(struct order *o, enum trace_kind kind, uint64_t seq, uint64_t stack_id)
{
	o->gc_seq = seq;
	o->gc_gen = o->gen->number;
	o->gc = kind == TRACE_RANGE_END ? GC_OFF : GC_ON;
	order_put_range(o, kind, gc_name, TRACE_SCOPE_PROGRAM, 0, stack_id);
	order_reach_gc(o);
}

int order_gc_active(struct order *o, const uint64_t *a)
{
	if (o->gen->number == o->first) {
		if (o->gc != GC_UNKNOWN)
			return order_wrong(o, "a collection is going on that had not begun");
	} else {
		if (a[0] != o->gc_seq + 1 && !order_await_gc(o, a[0], GC_ON))
			return order_waits(o);
		if (o->gc != GC_ON)
			return order_wrong(o, "a collection is going on that had not begun");
		if (order_needs(o, NEEDS_ALL))
			return -EBADMSG;
	}
	collection(o, TRACE_RANGE_ACTIVE, a[0], 0);
	return DONE;
}

int order_gc_begin(struct order *o, const uint64_t *a)
{
	if (o->gc != GC_UNKNOWN) {
		if (a[0] != o->gc_seq + 1 && !order_await_gc(o, a[0], GC_OFF))
			return order_waits(o);
		if (o->gc == GC_ON)
			return order_wrong(o, "a collection begins while one is going on");
		if (order_needs(o, NEEDS_ALL))
			return -EBADMSG;
	}
	collection(o, TRACE_RANGE_BEGIN, a[0], a[1]);
	return DONE;
}

int order_gc_end(struct order *o, const uint64_t *a)
{
	if (a[0] != o->gc_seq + 1 && !order_await_gc(o, a[0], GC_ON))
		return order_waits(o);
	if (o->gc != GC_ON)
		return order_wrong(o, "a collection ends that had not begun");
	if (order_needs(o, NEEDS_ALL))
		return -EBADMSG;
	collection(o, TRACE_RANGE_END, a[0], 0);
	return DONE;
}

/* A range that is going on is new in the first generation, and known in others. */
static int may_be_active(struct order *o, bool *open)
{
	bool first = o->gen->number == o->first;

	if (*open == first && !o->gen->damaged)
		return order_wrong(o, "a range is going on that had not begun, or goes on twice");
	*open = true;
	return DONE;
}

static enum trace_kind kind_of(bool active, bool end)
{
	if (active)
		return TRACE_RANGE_ACTIVE;
	return end ? TRACE_RANGE_END : TRACE_RANGE_BEGIN;
}

int order_sweep(struct order *o, const uint64_t *a)
{
	bool active = o->ev->type == EV_GC_SWEEP_ACTIVE, end = o->ev->type == EV_GC_SWEEP_END;
	struct pstate *p = order_proc(o, active ? (int64_t)a[0] : o->p.now);
	struct trace_event *ev;

	if (!active && order_needs(o, NEEDS_M | NEEDS_P))
		return -EBADMSG;
	if (!p)
		return order_wrong(o, "a sweep of a P that is not known");
	if (active && may_be_active(o, &p->sweeps) < 0)
		return -EBADMSG;
	if (!active && p->sweeps != end && !o->gen->damaged)
		return order_wrong(o, "a sweep begins twice, or ends that had not begun");
	p->sweeps = !end;
	ev = order_put_range(o, kind_of(active, end), sweep_name, TRACE_SCOPE_PROC, p->id,
			     active || end ? 0 : a[0]);
	if (end) {
		ev->range.swept = a[0];
		ev->range.reclaimed = a[1];
	}
	return DONE;
}

int order_assist(struct order *o, const uint64_t *a)
{
	bool active = o->ev->type == EV_GC_ASSIST_ACTIVE, end = o->ev->type == EV_GC_ASSIST_END;
	struct gstate *g = order_goroutine(o, active ? (int64_t)a[0] : o->g.now);

	if (!active && order_needs(o, NEEDS_ALL))
		return -EBADMSG;
	if (!g)
		return order_wrong(o, "a mark assist of a goroutine that is not known");
	if (active && may_be_active(o, &g->assists) < 0)
		return -EBADMSG;
	if (!active && g->assists != end && !o->gen->damaged)
		return order_wrong(o, "a mark assist begins twice, or ends that had not begun");
	g->assists = !end;
	order_put_range(o, kind_of(active, end), assist_name, TRACE_SCOPE_GOROUTINE, g->id,
			active || end ? 0 : a[0]);
	return DONE;
}

static struct trace_text text_of(const struct held *h)
{
	return (struct trace_text){ h->at, h->len };
}

/* "stop-the-world (why)" */
static const char stop_before[] = "stop-the-world (", stop_after[] = ")";

bool order_is_stop(const struct held *name, struct trace_text why)
{
	return name->len == sizeof(stop_before) - 1 + why.len + sizeof(stop_after) - 1 &&
	       !memcmp(name->at + sizeof(stop_before) - 1, why.at, why.len);
}

static int hold_stop(struct order *o, uint64_t why, struct held *out)
{
	struct held begin;
	int ret = order_hold(o, (struct trace_text){ stop_before, sizeof(stop_before) - 1 },
			     order_text(o, why), &begin);

	if (ret)
		return ret;
	ret = order_hold(o, text_of(&begin),
			 (struct trace_text){ stop_after, sizeof(stop_after) - 1 }, out);
	order_let_go(o, &begin);
	return ret;
}

int order_stw_begin(struct order *o, const uint64_t *a)
{
	struct gstate *g = order_goroutine(o, o->g.now);
	struct stop *s;
	int ret;

	if (order_needs(o, NEEDS_ALL))
		return -EBADMSG;
	if (!g)
		return order_wrong(o, "the world is stopped by a goroutine that is not known");
	for (size_t i = 0; i < g->stops.n; i++)
		if (g->stops.at[i].why == a[0])
			return order_wrong(o, "the world is stopped twice by one");
	/* Go's runtime has one at a time, and Go's reader looks at each of them each time. */
	if (g->stops.n == LIMIT_TRACE_STOPS)
		return order_wrong(o, "the world is stopped too many times by one");
	s = vec_add(&g->stops, LIMIT_TRACE_IDS);
	if (!s)
		return order_no_memory(o);
	s->why = a[0];
	s->gen = o->gen->number;
	ret = hold_stop(o, a[0], &s->name);
	if (ret)
		return ret;
	order_put_range(o, TRACE_RANGE_BEGIN, text_of(&s->name), TRACE_SCOPE_GOROUTINE, g->id,
			a[1]);
	return DONE;
}

int order_stw_end(struct order *o)
{
	struct gstate *g = order_goroutine(o, o->g.now);

	if (order_needs(o, NEEDS_ALL))
		return -EBADMSG;
	if (!g || !g->stops.n)
		return order_wrong(o, "the world starts that was not stopped");
	order_keep(o, &g->stops.at[0].name);
	g->stops.at[0] = g->stops.at[--g->stops.n];
	order_put_range(o, TRACE_RANGE_END, text_of(&o->kept), TRACE_SCOPE_GOROUTINE, g->id, 0);
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
	int ret;

	if (map_get(&o->by_task, a[0], &before))
		return order_wrong(o, "a task begins twice");
	if (order_needs(o, NEEDS_ALL))
		return -EBADMSG;
	t = at < o->tasks.n ? &o->tasks.at[at] : vec_add(&o->tasks, LIMIT_TRACE_IDS);
	if (!t || !map_put(&o->by_task, a[0], at))
		return order_no_memory(o);
	*t = (struct task){ .parent = parent_of(a[1]) };
	ret = order_hold(o, order_text(o, a[2]), (struct trace_text){ "", 0 }, &t->type);
	if (ret)
		return ret;
	ev = order_put(o, TRACE_TASK_BEGIN, a[3]);
	ev->task.id = a[0];
	ev->task.parent = t->parent;
	ev->task.type = order_text(o, a[2]);
	return DONE;
}

/* Its begin may have been before the trace. */
int order_task_end(struct order *o, const uint64_t *a)
{
	struct trace_event *ev;
	uint32_t *empty;
	uint64_t at;

	if (order_needs(o, NEEDS_ALL))
		return -EBADMSG;
	ev = order_put(o, TRACE_TASK_END, a[1]);
	ev->task.id = a[0];
	ev->task.parent = TRACE_NONE;
	ev->task.type = (struct trace_text){ "", 0 };
	if (!map_get(&o->by_task, a[0], &at))
		return DONE;
	order_keep(o, &o->tasks.at[at].type);
	ev->task.parent = o->tasks.at[at].parent;
	ev->task.type = text_of(&o->kept);
	map_del(&o->by_task, a[0]);
	empty = vec_add(&o->free_tasks, LIMIT_TRACE_IDS);
	if (empty)
		*empty = (uint32_t)at;
	return DONE;
}

int order_region_begin(struct order *o, const uint64_t *a)
{
	struct gstate *g = order_goroutine(o, o->g.now);
	struct trace_event *ev;
	struct region *r;
	int ret;

	if (order_needs(o, NEEDS_ALL))
		return -EBADMSG;
	if (!g)
		return order_wrong(o, "a region of a goroutine that is not known");
	r = vec_add(&g->regions, LIMIT_TRACE_IDS);
	if (!r)
		return order_no_memory(o);
	r->task = a[0];
	ret = order_hold(o, order_text(o, a[1]), (struct trace_text){ "", 0 }, &r->type);
	if (ret)
		return ret;
	ev = order_put(o, TRACE_REGION_BEGIN, a[2]);
	ev->region.task = a[0];
	ev->region.type = order_text(o, a[1]);
	return DONE;
}

/* Regions that began before the trace are not known. */
int order_region_end(struct order *o, const uint64_t *a)
{
	struct gstate *g = order_goroutine(o, o->g.now);
	struct trace_text type = order_text(o, a[1]);
	struct trace_event *ev;

	if (order_needs(o, NEEDS_ALL))
		return -EBADMSG;
	if (!g)
		return order_wrong(o, "a region of a goroutine that is not known");
	if (g->regions.n) {
		struct region *r = &g->regions.at[g->regions.n - 1];

		if (r->task != a[0] || r->type.len != type.len ||
		    memcmp(r->type.at, type.at, type.len))
			return order_wrong(o, "a region ends that is not the innermost one");
		order_let_go(o, &r->type);
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

	if (order_needs(o, NEEDS_ALL))
		return -EBADMSG;
	if (o->ev->type == EV_LOG) {
		ev = order_put(o, TRACE_LOG, a[3]);
		ev->log.task = a[0];
		ev->log.category = order_text(o, a[1]);
		ev->log.message = order_text(o, a[2]);
	} else {
		ev = order_put(o, TRACE_LABEL, 0);
		ev->label.label = order_text(o, a[0]);
		ev->label.g = o->g.now;
	}
	return DONE;
}
