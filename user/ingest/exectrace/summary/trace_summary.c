/* user/ingest/exectrace/summary/trace_summary.c - the states of goroutines, added up. */
#include "ingest/exectrace/summary/trace_summary.h"

#include "base/hash.h"
#include "base/limits.h"
#include "ingest/exectrace/ticks.h"

/* Where stacks in a trace end, however deep they are. Source: runtime/tracestack.go, Go 1.27. */
enum { STACK_MAX = 128 };

/* A goroutine that exists. */
struct live_goroutine {
	int64_t id;
	int64_t born_ns, since_ns; /* since: when its state began */
	uint32_t name;
	uint32_t key;	/* TRACE_SPENT_... */
	uint32_t cells; /* a list of what it spent until now */
	bool exists, created;
	const char *why; /* it is runnable; "": not known */
};

struct trace_cell {
	struct trace_spent spent;
	uint32_t next; /* 0: none */
};

static int no_memory(struct err *e)
{
	return err_set(e, -ENOMEM, "no memory for the summary of the trace");
}

int trace_summary_new(struct trace_summary **out, struct err *e)
{
	CLEANUP(trace_summary_freep) struct trace_summary *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return no_memory(e);
	ret = strtab_new(&s->names, e);
	if (!ret)
		ret = gc_share_init(&s->share, e);
	if (!ret)
		*out = TAKE(s);
	return ret;
}

void trace_summary_free(struct trace_summary *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->groups.n; i++)
		vec_fini(&s->groups.at[i].spent);
	vec_fini(&s->groups);
	quantiles_fini(&s->latency);
	trace_kinds_fini(&s->ranges);
	trace_kinds_fini(&s->tasks);
	trace_kinds_fini(&s->regions);
	gc_share_fini(&s->share);
	map_fini(&s->group_of);
	map_fini(&s->reasons);
	map_fini(&s->by_g);
	vec_fini(&s->live);
	vec_fini(&s->cells);
	vec_fini(&s->free_live);
	strtab_free(s->names);
	free(s);
}

/* ---- what one goroutine spent ---- */

static struct trace_cell *cell_of(struct trace_summary *s, struct live_goroutine *g, uint32_t key)
{
	struct trace_cell *c;
	uint32_t at;

	for (at = g->cells; at; at = s->cells.at[at - 1].next)
		if (s->cells.at[at - 1].spent.key == key)
			return &s->cells.at[at - 1];
	at = s->free_cells;
	if (at) {
		c = &s->cells.at[at - 1];
		s->free_cells = c->next;
	} else {
		c = vec_add(&s->cells, LIMIT_TRACE_IDS);
		at = (uint32_t)s->cells.n;
	}
	if (!c)
		return NULL;
	*c = (struct trace_cell){ .spent.key = key, .next = g->cells };
	g->cells = at;
	return c;
}

/* Its state goes on until now. */
static bool spend(struct trace_summary *s, struct live_goroutine *g, int64_t now_ns, bool before)
{
	struct trace_cell *c = cell_of(s, g, g->key);

	if (!c)
		return false;
	c->spent.ns += now_ns - g->since_ns;
	c->spent.count += !before;
	g->since_ns = now_ns;
	return true;
}

/* ---- goroutines of one function ---- */

static struct trace_group *group_of(struct trace_summary *s, uint32_t name)
{
	struct trace_group *to;
	uint64_t at;

	if (map_get(&s->group_of, name, &at))
		return &s->groups.at[at];
	to = vec_add(&s->groups, LIMIT_TRACE_IDS);
	if (!to || !map_put(&s->group_of, name, s->groups.n - 1))
		return NULL;
	to->name = name;
	return to;
}

/*
 * The number of a name, which is new only as long as there are less than @most. Else it is @others;
 * UINT32_MAX: no memory.
 */
static uint32_t name_in(struct trace_summary *s, struct trace_text text, size_t n, size_t most,
			const char *others)
{
	uint32_t name;

	text = trace_text_cut(text, LIMIT_TRACE_NAME);
	if (n < most)
		return strtab_put(s->names, text.at, text.len);
	name = strtab_find(s->names, text.at, text.len);
	return name == UINT32_MAX ? strtab_puts(s->names, others) : name;
}

static bool add_spent(struct trace_group *to, const struct trace_spent *from)
{
	struct trace_spent *at = NULL;

	for (size_t i = 0; !at && i < to->spent.n; i++)
		if (to->spent.at[i].key == from->key)
			at = &to->spent.at[i];
	if (!at)
		at = vec_add(&to->spent, LIMIT_TRACE_IDS);
	if (!at)
		return false;
	at->key = from->key;
	at->count += from->count;
	at->ns = ticks_add(at->ns, from->ns);
	return true;
}

/* It is over, or the trace is. */
static bool settle(struct trace_summary *s, struct live_goroutine *g, int64_t now_ns, bool ended)
{
	struct trace_group *to = group_of(s, g->name);
	uint32_t at = g->cells, next;

	if (!to)
		return false;
	to->goroutines++;
	to->created += g->created;
	to->ended += ended;
	to->total_ns = ticks_add(to->total_ns, now_ns - g->born_ns);
	for (; at; at = next) {
		struct trace_cell *c = &s->cells.at[at - 1];

		if (!add_spent(to, &c->spent))
			return false;
		next = c->next;
		c->next = s->free_cells;
		s->free_cells = at;
	}
	g->cells = 0;
	return true;
}

/* ---- transitions ---- */

static struct live_goroutine *find(struct trace_summary *s, int64_t id, int64_t now_ns)
{
	struct live_goroutine *g;
	uint64_t at;

	if (map_get(&s->by_g, (uint64_t)id, &at))
		return &s->live.at[at];
	at = s->free_live.n ? s->free_live.at[--s->free_live.n] : s->live.n;
	g = at < s->live.n ? &s->live.at[at] : vec_add(&s->live, LIMIT_GOROUTINES);
	if (!g || !map_put(&s->by_g, (uint64_t)id, at))
		return NULL;
	*g = (struct live_goroutine){ .id = id, .born_ns = now_ns, .since_ns = now_ns };
	return g;
}

/* The function that a goroutine starts in, by a stack of it. */
static bool name_it(struct trace_summary *s, const struct exectrace *t,
		    const struct trace_event *ev, struct live_goroutine *g)
{
	uint32_t stack = ev->transition.stack;
	struct trace_frame f;
	size_t n;

	if (g->name)
		return true;
	if (!stack && ev->g == g->id)
		stack = ev->stack;
	n = exectrace_stack(t, stack);
	if (!n || n >= STACK_MAX)
		return true;
	f = exectrace_frame(t, stack, n - 1);
	g->name = name_in(s, f.func, strtab_count(s->names), LIMIT_TRACE_GROUPS,
			  "(other functions)");
	return g->name != UINT32_MAX;
}

static const char *why_runnable(const struct trace_transition *t)
{
	switch (t->from) {
	case TRACE_G_UNDETERMINED:
		return "";
	case TRACE_G_NOT_EXIST:
		return "created";
	case TRACE_G_WAITING:
		return "unblocked";
	case TRACE_G_SYSCALL:
		return "back from a system call";
	default:
		return "preempted or yielded";
	}
}

/* A trace has some twenty reasons. What has very many is not searched through for long. */
static bool reason_of(struct trace_summary *s, struct trace_text text, uint32_t *out)
{
	*out = name_in(s, text, s->reasons.n, LIMIT_TRACE_REASONS, "(other reasons)");
	return *out < UINT32_MAX - TRACE_SPENT_WAITING && map_put(&s->reasons, *out, 0);
}

static bool key_of(struct trace_summary *s, const struct trace_transition *t, uint32_t *key)
{
	uint32_t reason;

	*key = t->to == TRACE_G_RUNNING	 ? TRACE_SPENT_RUNNING :
	       t->to == TRACE_G_RUNNABLE ? TRACE_SPENT_RUNNABLE :
					   TRACE_SPENT_SYSCALL;
	if (t->to != TRACE_G_WAITING)
		return true;
	if (!reason_of(s, t->reason, &reason))
		return false;
	*key = TRACE_SPENT_WAITING + reason;
	return true;
}

/* It was runnable, and runs. Of one that was runnable from the start nobody knows since when. */
static bool waited(struct trace_summary *s, const struct live_goroutine *g, int64_t now_ns)
{
	struct trace_latency l = { g->since_ns, now_ns - g->since_ns, g->id, g->name, g->why };
	size_t at = s->nlongest;

	if (!*g->why)
		return true;
	if (!quantiles_add(&s->latency, (uint64_t)l.ns))
		return false;
	while (at && s->longest[at - 1].ns < l.ns)
		at--;
	if (at == TRACE_LONGEST)
		return true;
	if (s->nlongest < TRACE_LONGEST)
		s->nlongest++;
	memmove(&s->longest[at + 1], &s->longest[at], (s->nlongest - 1 - at) * sizeof(l));
	s->longest[at] = l;
	return true;
}

static void free_cells(struct trace_summary *s, struct live_goroutine *g)
{
	while (g->cells) {
		uint32_t at = g->cells;

		g->cells = s->cells.at[at - 1].next;
		s->cells.at[at - 1].next = s->free_cells;
		s->free_cells = at;
	}
}

static bool vanish(struct trace_summary *s, struct live_goroutine *g, int64_t now_ns, bool before)
{
	uint32_t *empty = vec_add(&s->free_live, LIMIT_GOROUTINES);

	if (!empty)
		return false;
	*empty = (uint32_t)(g - s->live.at);
	trace_kinds_gone(&s->regions, (uint64_t)g->id);
	map_del(&s->by_g, (uint64_t)g->id);
	if (before)
		s->peak = s->by_g.n;
	if (g->exists && !before && (!spend(s, g, now_ns, false) || !settle(s, g, now_ns, true)))
		return false;
	free_cells(s, g);
	g->exists = false;
	return true;
}

static bool enter(struct trace_summary *s, struct live_goroutine *g,
		  const struct trace_transition *t, bool before)
{
	bool first = !g->exists && t->from == TRACE_G_UNDETERMINED;

	g->why = why_runnable(t);
	if (!g->exists)
		g->created = t->from == TRACE_G_NOT_EXIST && !before;
	g->exists = true;
	if (first && !before) /* it was there all the time, also when there were most */
		s->peak++;
	else if (before || s->by_g.n > s->peak)
		s->peak = s->by_g.n;
	return key_of(s, t, &g->key);
}

static bool transition(struct trace_summary *s, const struct exectrace *t,
		       const struct trace_event *ev, bool before)
{
	const struct trace_transition *tr = &ev->transition;
	bool known = tr->from != TRACE_G_UNDETERMINED;
	/* as it is when it is first seen it has been since the beginning */
	struct live_goroutine *g = find(s, tr->id, known ? ev->time_ns : s->from_ns);

	if (!g || !name_it(s, t, ev, g))
		return false;
	if (tr->to == TRACE_G_NOT_EXIST)
		return vanish(s, g, ev->time_ns, before);
	if (g->exists && tr->from == tr->to)
		return true;
	if (g->exists && !before && g->key == TRACE_SPENT_RUNNABLE && tr->to == TRACE_G_RUNNING &&
	    !waited(s, g, ev->time_ns))
		return false;
	if (g->exists && !spend(s, g, ev->time_ns, before))
		return false;
	return enter(s, g, tr, before);
}

/* ---- other events ---- */

static const char others[] = "(others)";

static bool range(struct trace_summary *s, const struct trace_event *ev, bool before)
{
	const struct trace_range *r = &ev->range;
	uint32_t name = name_in(s, r->name, s->ranges.all.n, LIMIT_TRACE_KINDS, others);
	uint64_t key = hash_pair(hash_pair(r->scope, (uint64_t)r->id), name);

	if (name == UINT32_MAX)
		return false;
	if (ev->kind == TRACE_RANGE_BEGIN)
		return trace_kinds_begin(&s->ranges, key, name, ev->time_ns, before);
	if (ev->kind == TRACE_RANGE_ACTIVE)
		return trace_kinds_goes_on(&s->ranges, key) ||
		       trace_kinds_begin(&s->ranges, key, name, s->from_ns, true);
	return trace_kinds_end(&s->ranges, key, name, ev->time_ns, s->from_ns, before);
}

static bool mark(struct trace_summary *s, const struct trace_event *ev, bool before)
{
	bool task = ev->kind == TRACE_TASK_BEGIN || ev->kind == TRACE_TASK_END;
	bool begin = ev->kind == TRACE_TASK_BEGIN || ev->kind == TRACE_REGION_BEGIN;
	struct trace_kinds *k = task ? &s->tasks : &s->regions;
	struct trace_text type = task ? ev->task.type : ev->region.type;
	uint32_t name = name_in(s, type, k->all.n, LIMIT_TRACE_KINDS, others);
	uint64_t key = task ? ev->task.id : (uint64_t)ev->g;

	if (name == UINT32_MAX)
		return false;
	if (begin)
		return trace_kinds_begin(k, key, name, ev->time_ns, before);
	return trace_kinds_end(k, key, name, ev->time_ns, s->from_ns, before);
}

static void metric(struct trace_summary *s, const struct trace_event *ev, bool before)
{
	const char *name = ev->metric.name;
	uint64_t v = ev->metric.value;
	struct trace_metric *m = !strcmp(name, "/sched/gomaxprocs:threads")	     ? &s->procs :
				 !strcmp(name, "/memory/classes/heap/objects:bytes") ? &s->heap :
				 !strcmp(name, "/gc/heap/goal:bytes")		     ? &s->goal :
										       NULL;

	if (!m)
		return;
	if (!m->known || before)
		*m = (struct trace_metric){ true, v, v, v, v };
	m->last = v;
	if (v < m->min)
		m->min = v;
	if (v > m->max)
		m->max = v;
}

static bool sum(struct trace_summary *s, const struct exectrace *t, const struct trace_event *ev,
		bool before)
{
	switch (ev->kind) {
	case TRACE_GOROUTINE:
		return transition(s, t, ev, before);
	case TRACE_RANGE_BEGIN:
	case TRACE_RANGE_ACTIVE:
	case TRACE_RANGE_END:
		return range(s, ev, before);
	case TRACE_TASK_BEGIN:
	case TRACE_TASK_END:
	case TRACE_REGION_BEGIN:
	case TRACE_REGION_END:
		return mark(s, ev, before);
	case TRACE_METRIC:
		metric(s, ev, before);
		return true;
	case TRACE_SYNC:
		s->generations += !before;
		return true;
	case TRACE_CPU_SAMPLE:
		s->samples += !before;
		return true;
	case TRACE_LOG:
		s->logs += !before;
		return true;
	default:
		return true;
	}
}

int trace_summary_event(struct trace_summary *s, const struct exectrace *t,
			const struct trace_event *ev, bool before, struct err *e)
{
	if (!s->begun) {
		s->begun = true;
		s->from_ns = ev->time_ns;
	}
	s->events += !before;
	s->to_ns = ev->time_ns;
	return sum(s, t, ev, before) ? gc_share_event(&s->share, ev, e) : no_memory(e);
}

static bool late(struct trace_summary *s, const struct exectrace *t, const struct trace_event *ev)
{
	const struct trace_transition *tr = &ev->transition;
	struct live_goroutine *g;
	uint64_t at;

	if (ev->kind == TRACE_RANGE_ACTIVE)
		return range(s, ev, true);
	if (ev->kind != TRACE_GOROUTINE)
		return true;
	if (map_get(&s->by_g, (uint64_t)tr->id, &at))
		return name_it(s, t, ev, &s->live.at[at]);
	if (tr->from != TRACE_G_UNDETERMINED || tr->to == TRACE_G_NOT_EXIST)
		return true;
	g = find(s, tr->id, s->from_ns);
	if (!g || !name_it(s, t, ev, g))
		return false;
	g->why = "";
	g->exists = true;
	s->peak++;
	return key_of(s, tr, &g->key);
}

int trace_summary_late(struct trace_summary *s, const struct exectrace *t,
		       const struct trace_event *ev, struct err *e)
{
	return late(s, t, ev) ? 0 : no_memory(e);
}

/* ---- the end ---- */

static int by_total(const void *a, const void *b)
{
	const struct trace_group *x = a, *y = b;

	if (x->total_ns != y->total_ns)
		return x->total_ns < y->total_ns ? 1 : -1;
	return x->name < y->name ? -1 : x->name > y->name;
}

static int by_ns(const void *a, const void *b)
{
	const struct trace_spent *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	return x->key < y->key ? -1 : x->key > y->key;
}

static void sort_groups(struct trace_summary *s)
{
	for (size_t i = 0; i < s->groups.n; i++) {
		struct trace_group *g = &s->groups.at[i];

		s->goroutines += g->goroutines;
		if (g->spent.n)
			qsort(g->spent.at, g->spent.n, sizeof(*g->spent.at), by_ns);
	}
	if (s->groups.n)
		qsort(s->groups.at, s->groups.n, sizeof(*s->groups.at), by_total);
}

int trace_summary_end(struct trace_summary *s, int64_t time_ns, struct err *e)
{
	if (!s->begun)
		return 0;
	s->to_ns = time_ns;
	for (size_t i = 0; i < s->live.n; i++) {
		struct live_goroutine *g = &s->live.at[i];

		if (g->exists && (!spend(s, g, time_ns, false) || !settle(s, g, time_ns, false)))
			return no_memory(e);
	}
	sort_groups(s);
	trace_kinds_finish(&s->ranges);
	trace_kinds_finish(&s->tasks);
	trace_kinds_finish(&s->regions);
	mmu_end(s->share.mmu, time_ns);
	return 0;
}
