/* user/ingest/exectrace/v2/order.c - what each kind of event demands, and what it changes. */
#include "ingest/exectrace/v2/order_priv.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/limits.h"

int order_wrong(struct order *o, const char *what)
{
	return err_set(o->e, -EBADMSG,
		       "generation %llu, thread %lld (P %lld, goroutine %lld), event %u: %s",
		       (unsigned long long)o->gen->number, (long long)o->m, (long long)o->p.now,
		       (long long)o->g.now, o->ev->type, what);
}

int order_lacks(struct order *o, unsigned what)
{
	if (what & NEEDS_M && o->m == TRACE_NONE)
		return order_wrong(o, "it needs a thread, and there is none");
	if (what & NEEDS_P && o->p.now == TRACE_NONE)
		return order_wrong(o, "it needs a P, and there is none");
	if (what & NEEDS_G && o->g.now == TRACE_NONE)
		return order_wrong(o, "it needs a goroutine, and there is none");
	return 0;
}

int order_no_memory(struct order *o)
{
	return err_set(o->e, -ENOMEM, "no memory for the states of goroutines");
}

/* ---- texts ---- */

int order_hold(struct order *o, struct trace_text a, struct trace_text b, struct held *out)
{
	if (a.len + b.len > LIMIT_TRACE_NAMES - o->held)
		return err_set(o->e, -E2BIG,
			       "names of tasks and regions that go on: more than %d MiB",
			       LIMIT_TRACE_NAMES >> 20);
	out->len = a.len + b.len;
	out->at = malloc(out->len + 1);
	if (!out->at)
		return order_no_memory(o);
	memcpy(out->at, a.at, a.len);
	memcpy(out->at + a.len, b.at, b.len);
	o->held += out->len;
	return 0;
}

void order_let_go(struct order *o, struct held *h)
{
	o->held -= h->len;
	free(h->at);
	*h = (struct held){};
}

void order_keep(struct order *o, struct held *h)
{
	order_let_go(o, &o->kept);
	o->kept = *h;
	*h = (struct held){};
}

/* ---- states ---- */

struct gstate *order_new_goroutine(struct order *o, int64_t id, enum gstatus status)
{
	uint32_t at = o->free_gs.n ? o->free_gs.at[--o->free_gs.n] : (uint32_t)o->gs.n;
	struct gstate *g = at < o->gs.n ? &o->gs.at[at] : vec_add(&o->gs, LIMIT_TRACE_IDS);

	if (!g || !ids_put(&o->by_g, (uint64_t)id, at))
		return NULL;
	g->id = id;
	g->status = status;
	g->seq = order_seq(o, 0);
	order_at_stack(o, g, 0);
	return g;
}

static void drop_regions(struct order *o, struct gstate *g)
{
	for (size_t i = 0; i < g->regions.n; i++)
		order_let_go(o, &g->regions.at[i].type);
	for (size_t i = 0; i < g->stops.n; i++)
		order_let_go(o, &g->stops.at[i].name);
	vec_fini(&g->regions);
	vec_fini(&g->stops);
	g->assists = false;
}

/* Where there is no memory for the place it stays empty. */
void order_delete_goroutine(struct order *o, struct gstate *g)
{
	uint32_t *to = vec_add(&o->free_gs, LIMIT_TRACE_IDS);

	ids_del(&o->by_g, (uint64_t)g->id);
	drop_regions(o, g);
	if (to)
		*to = (uint32_t)(g - o->gs.at);
}

struct pstate *order_new_proc(struct order *o, int64_t id, enum pstatus status)
{
	struct pstate *p = vec_add(&o->ps, LIMIT_TRACE_IDS);

	if (!p || !ids_put(&o->by_p, (uint64_t)id, o->ps.n - 1))
		return NULL;
	*p = (struct pstate){ .id = id, .status = status, .seq = order_seq(o, 0) };
	return p;
}

struct mstate *order_new_thread(struct order *o, int64_t id, int64_t g)
{
	struct mstate *m = vec_add(&o->ms, LIMIT_TRACE_IDS);
	int64_t *its_id = m ? vec_add(&o->thread_ids, LIMIT_TRACE_IDS) : NULL;

	if (!its_id || !ids_put(&o->by_m, (uint64_t)id, o->ms.n - 1))
		return NULL;
	*its_id = id;
	*m = (struct mstate){ .g = g, .p = TRACE_NONE };
	return m;
}

unsigned order_g_state(enum gstatus status)
{
	static const unsigned of[] = { TRACE_G_UNDETERMINED, TRACE_G_RUNNABLE, TRACE_G_RUNNING,
				       TRACE_G_SYSCALL, TRACE_G_WAITING };

	return of[status];
}

/* An abandoned P counts as idle, one in a system call as running. */
unsigned order_p_state(enum pstatus status)
{
	static const unsigned of[] = { TRACE_P_UNDETERMINED, TRACE_P_RUNNING, TRACE_P_IDLE,
				       TRACE_P_RUNNING, TRACE_P_IDLE };

	return of[status];
}

/* ---- who waits for what ---- */

enum object { GOROUTINE = 1, PROC, LEAVES, COLLECTION };

/* Nobody asks for them where all threads are tried one after the other. */
static uint64_t state_hash(const struct order *o, enum object what, int64_t id, unsigned status,
			   uint64_t n)
{
	if (!o->hashes)
		return 0;
	return hash_pair((uint64_t)id, hash_pair((uint64_t)what << 32 | status, n)) | 1;
}

static void adopt(struct order *o, int64_t id, unsigned from)
{
	o->adopted = true;
	o->adopted_id = id;
	o->adopted_from = from;
}

struct gstate *order_await_g(struct order *o, int64_t id, enum gstatus status, uint64_t n)
{
	struct gstate *g = order_goroutine(o, id);

	o->awaited = state_hash(o, GOROUTINE, id, status, n - 1);
	if (!o->force)
		return NULL;
	adopt(o, id, order_g_state(g ? g->status : G_NONE));
	if (!g)
		g = order_new_goroutine(o, id, status);
	if (!g)
		return NULL;
	g->status = status;
	g->seq = order_seq(o, n - 1);
	return g;
}

/* A P that is in a system call may be stolen from a thread that is gone, too. */
static enum pstatus class_of(enum pstatus status)
{
	return status == P_ABANDONED ? P_SYSCALL : status;
}

struct pstate *order_await_p(struct order *o, int64_t id, enum pstatus status, uint64_t n)
{
	struct pstate *p = order_proc(o, id);

	o->awaited = state_hash(o, PROC, id, class_of(status), n - 1);
	if (!o->force)
		return NULL;
	adopt(o, id, order_p_state(p ? p->status : P_NONE));
	if (!p)
		p = order_new_proc(o, id, status);
	if (!p)
		return NULL;
	p->status = status;
	p->seq = order_seq(o, n - 1);
	return p;
}

bool order_await_lost_p(struct order *o)
{
	o->awaited = state_hash(o, LEAVES, o->p.now, 0, 0);
	if (o->force)
		o->p.now = o->p.next = TRACE_NONE;
	return o->force;
}

bool order_await_gc(struct order *o, uint64_t n, enum gc_state gc)
{
	o->awaited = state_hash(o, COLLECTION, 0, 0, n - 1);
	if (o->force)
		o->gc = gc;
	return o->force;
}

int order_waits(struct order *o)
{
	return o->force ? order_no_memory(o) : WAIT;
}

static void reach(struct order *o, uint64_t hash)
{
	BUG_ON(o->nreached == ORDER_REACHED);
	o->reached[o->nreached++] = hash;
}

/* Numbers of another generation mean nothing in this one. */
void order_reached_g(struct order *o, const struct gstate *g)
{
	if (g->seq.gen == o->gen->number)
		reach(o, state_hash(o, GOROUTINE, g->id, g->status, g->seq.n));
}

void order_reached_p(struct order *o, const struct pstate *p)
{
	if (p->seq.gen == o->gen->number)
		reach(o, state_hash(o, PROC, p->id, class_of(p->status), p->seq.n));
	if (p->status == P_IDLE)
		reach(o, state_hash(o, LEAVES, p->id, 0, 0));
}

void order_reach_gc(struct order *o)
{
	if (!o->hashes)
		return;
	reach(o, state_hash(o, COLLECTION, 0, 0, o->gc_seq));
}

uint64_t order_awaited(const struct order *o)
{
	return o->awaited;
}

size_t order_reached(const struct order *o, const uint64_t **out)
{
	*out = o->reached;
	return o->nreached;
}

/* ---- what comes out ---- */

void order_put_p(struct order *o, int64_t id, unsigned from, unsigned to)
{
	struct trace_event *ev = order_put(o, TRACE_PROC, 0);

	if (o->adopted)
		from = o->adopted_from;
	ev->transition = (struct trace_transition){ id, from, to, { "", 0 }, 0 };
}

struct trace_event *order_put_range(struct order *o, enum trace_kind kind, struct trace_text name,
				    enum trace_scope scope, int64_t id, uint64_t stack_id)
{
	struct trace_event *ev = order_put(o, kind, stack_id);

	ev->range = (struct trace_range){ name, scope, id, 0, 0 };
	return ev;
}

/* ---- all of them ---- */

static int metric(struct order *o, unsigned needs, const char *name, uint64_t value,
		  uint64_t stack_id)
{
	struct trace_event *ev;

	if (order_needs(o, needs))
		return -EBADMSG;
	ev = order_put(o, TRACE_METRIC, stack_id);
	ev->metric.name = name;
	ev->metric.value = value;
	return DONE;
}

/* Source: internal/trace/tracev2/events.go, experiment AllocFree, Go 1.23 to 1.27. */
static int experimental(struct order *o, const uint64_t *a)
{
	static const struct {
		const char *name;
		unsigned nargs;
	} of[] = {
		{ "Span", 3 },		 { "SpanAlloc", 3 },	       { "SpanFree", 1 },
		{ "HeapObject", 2 },	 { "HeapObjectAlloc", 2 },     { "HeapObjectFree", 1 },
		{ "GoroutineStack", 2 }, { "GoroutineStackAlloc", 2 }, { "GoroutineStackFree", 1 }
	};
	unsigned i = o->ev->type - EV_EXPERIMENT_FIRST;
	struct trace_event *ev;

	if (order_needs(o, NEEDS_M))
		return -EBADMSG;
	ev = order_put(o, TRACE_EXPERIMENTAL, 0);
	ev->experimental.name = of[i].name;
	ev->experimental.nargs = of[i].nargs;
	memcpy(ev->experimental.args, a, of[i].nargs * sizeof(*a));
	return DONE;
}

/* Ranges, metrics and what the program notes. */
static int advance_range(struct order *o, const uint64_t *a)
{
	switch (o->ev->type) {
	case EV_PROCS_CHANGE:
		return metric(o, NEEDS_ALL, "/sched/gomaxprocs:threads", a[0], a[1]);
	case EV_STW_BEGIN:
		return order_stw_begin(o, a);
	case EV_STW_END:
		return order_stw_end(o);
	case EV_GC_ACTIVE:
		return order_gc_active(o, a);
	case EV_GC_BEGIN:
		return order_gc_begin(o, a);
	case EV_GC_END:
		return order_gc_end(o, a);
	case EV_GC_SWEEP_ACTIVE:
	case EV_GC_SWEEP_BEGIN:
	case EV_GC_SWEEP_END:
		return order_sweep(o, a);
	case EV_GC_ASSIST_ACTIVE:
	case EV_GC_ASSIST_BEGIN:
	case EV_GC_ASSIST_END:
		return order_assist(o, a);
	case EV_HEAP_ALLOC:
		return metric(o, NEEDS_M | NEEDS_P, "/memory/classes/heap/objects:bytes", a[0], 0);
	case EV_HEAP_GOAL:
		return metric(o, NEEDS_M | NEEDS_P, "/gc/heap/goal:bytes", a[0], 0);
	case EV_GO_LABEL:
	case EV_LOG:
		return order_annotation(o, a);
	case EV_TASK_BEGIN:
		return order_task_begin(o, a);
	case EV_TASK_END:
		return order_task_end(o, a);
	case EV_REGION_BEGIN:
		return order_region_begin(o, a);
	case EV_REGION_END:
		return order_region_end(o, a);
	default:
		return experimental(o, a);
	}
}

static int advance(struct order *o, const uint64_t *a)
{
	switch (o->ev->type) {
	case EV_PROC_START:
		return order_proc_start(o, a);
	case EV_PROC_STOP:
		return order_proc_stop(o);
	case EV_PROC_STEAL:
		return order_proc_steal(o, a);
	case EV_PROC_STATUS:
		return order_proc_status(o, a);
	case EV_GO_CREATE:
		return order_go_create(o, a, G_RUNNABLE);
	case EV_GO_CREATE_BLOCKED:
		return order_go_create(o, a, G_WAITING);
	case EV_GO_CREATE_SYSCALL:
		return order_go_create_syscall(o, a);
	case EV_GO_START:
		return order_go_start(o, a);
	case EV_GO_DESTROY:
		return order_go_destroy(o);
	case EV_GO_DESTROY_SYSCALL:
		return order_destroy_syscall(o);
	case EV_GO_STOP:
		return order_go_stop(o, a, G_RUNNABLE);
	case EV_GO_BLOCK:
		return order_go_stop(o, a, G_WAITING);
	case EV_GO_UNBLOCK:
		return order_go_unblock(o, a);
	case EV_GO_SWITCH:
		return order_go_switch(o, a, false);
	case EV_GO_SWITCH_DESTROY:
		return order_go_switch(o, a, true);
	case EV_GO_SYSCALL_BEGIN:
		return order_syscall_begin(o, a);
	case EV_GO_SYSCALL_END:
		return order_syscall_end(o);
	case EV_GO_SYSCALL_END_BLOCKED:
		return order_syscall_end_blocked(o);
	case EV_GO_STATUS:
		return order_go_status(o, a, 0);
	case EV_GO_STATUS_STACK:
		return order_go_status(o, a, a[3]);
	default:
		return advance_range(o, a);
	}
}

/* The thread is as the event leaves it. */
static void leave(struct order *o)
{
	struct mstate *at = &o->ms.at[o->thread->seat - 1];
	struct pstate *p;

	if (o->p.next == at->p && o->g.next == at->g && o->ev->type != EV_PROC_STATUS)
		return;
	p = o->p.next == TRACE_NONE ? NULL : order_proc(o, o->p.next);
	at->g = o->g.next;
	at->p = o->p.next;
	if (p)
		p->m = o->thread->m;
}

static int refers_to_nothing(struct order *o)
{
	return err_set(o->e, -EBADMSG,
		       "generation %llu, thread %lld, event %u: it refers to a %s that the "
		       "generation does not have",
		       (unsigned long long)o->gen->number, (long long)o->thread->m, o->ev->type,
		       o->missing);
}

/* The thread of an event is looked up once, and has a state from its first event on. */
static bool seat(struct order *o, struct raw_thread *thread)
{
	uint64_t at;

	if (!ids_get(&o->by_m, (uint64_t)thread->m, &at)) {
		if (!order_new_thread(o, thread->m, TRACE_NONE))
			return false;
		at = o->ms.n - 1;
	}
	thread->seat = (uint32_t)at + 1;
	return true;
}

static int advance_and_leave(struct order *o)
{
	int ret = advance(o, o->ev->args);

	if (ret != DONE)
		return ret;
	if (o->thread->seat)
		leave(o);
	return o->missing && !o->gen->damaged ? refers_to_nothing(o) : (int)o->queued;
}

static const struct mstate nothing = { TRACE_NONE, TRACE_NONE };

int order_advance(struct order *o, struct raw_thread *thread, const struct raw_event *ev,
		  bool force, struct trace_event *out, struct err *e)
{
	const struct mstate *at;

	o->ev = ev;
	o->thread = thread;
	o->m = thread->m;
	o->e = e;
	o->out = out;
	if (!thread->seat && thread->m != TRACE_NONE && !seat(o, thread))
		return order_no_memory(o);
	at = thread->seat ? &o->ms.at[thread->seat - 1] : &nothing;
	o->g.now = o->g.next = at->g;
	o->p.now = o->p.next = at->p;
	o->missing = NULL;
	o->nreached = 0;
	o->force = force;
	o->adopted = false;
	o->queued = o->taken = 0;
	return advance_and_leave(o);
}

void order_take(struct order *o, struct trace_event *out)
{
	*out = o->queue[o->taken++];
}

int order_new(struct order **out, struct err *e)
{
	struct order *o = calloc(1, sizeof(*o));

	if (!o)
		return err_set(e, -ENOMEM, "no memory");
	*out = o;
	return 0;
}

void order_begin(struct order *o, const struct generation *g, unsigned version, bool hashes)
{
	o->hashes = hashes;
	o->gen = g;
	o->version = version;
	if (!o->first)
		o->first = g->number;
}

void order_free(struct order *o)
{
	if (!o)
		return;
	for (size_t i = 0; i < o->gs.n; i++)
		drop_regions(o, &o->gs.at[i]);
	for (size_t i = 0; i < o->tasks.n; i++)
		order_let_go(o, &o->tasks.at[i].type);
	vec_fini(&o->gs);
	vec_fini(&o->ps);
	vec_fini(&o->ms);
	vec_fini(&o->thread_ids);
	vec_fini(&o->tasks);
	vec_fini(&o->free_gs);
	vec_fini(&o->free_tasks);
	ids_fini(&o->by_g);
	ids_fini(&o->by_p);
	ids_fini(&o->by_m);
	map_fini(&o->by_task);
	order_let_go(o, &o->kept);
	free(o);
}
