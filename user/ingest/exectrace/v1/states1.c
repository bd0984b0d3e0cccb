/*
 * user/ingest/exectrace/v1/states1.c - what happens to goroutines and Ps in a trace of version 1, in the
 * words of version 2.
 *
 * Source: postProcessTrace() in internal/trace/parser.go, Go 1.21, of what is allowed;
 * internal/trace/tracev1.go, Go 1.27, of the words. A trace begins with a creation of each goroutine
 * that is there, and with its state, if that is another one than runnable; this ends with the first
 * event that tells GOMAXPROCS.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "ingest/exectrace/ticks.h"
#include "ingest/exectrace/v1/trace1_priv.h"

int states1_no_memory(struct err *e)
{
	return err_set(e, -ENOMEM, "no memory for the states of goroutines");
}

int states1_wrong(const struct states1 *s, const struct merged1 *m, const char *what, struct err *e)
{
	if (s->loose)
		return 0;
	return err_set(e, -EBADMSG, "offset %llu: event %u of P %lld, goroutine %lld: %s",
		       (unsigned long long)m->ev.off, m->ev.type, (long long)m->p, (long long)m->g,
		       what);
}

/* ---- goroutines ---- */

struct g1 *states1_g(const struct states1 *s, int64_t id)
{
	uint64_t at;

	return ids_get(&s->by_g, (uint64_t)id, &at) ? &s->gs.at[at] : NULL;
}

static struct g1 *new_g(struct states1 *s, int64_t id)
{
	uint64_t at = s->free_gs.n ? s->free_gs.at[--s->free_gs.n] : s->gs.n;
	struct g1 *g = at < s->gs.n ? &s->gs.at[at] : vec_add(&s->gs, LIMIT_TRACE_IDS);

	if (!g || !ids_put(&s->by_g, (uint64_t)id, at))
		return NULL;
	*g = (struct g1){ .id = id, .blocked = -1 };
	return g;
}

/* Where there is no memory for the place it stays empty. */
static void delete_g(struct states1 *s, struct g1 *g)
{
	uint32_t *to = vec_add(&s->free_gs, LIMIT_TRACE_IDS);

	ids_del(&s->by_g, (uint64_t)g->id);
	vec_fini(&g->regions);
	if (to)
		*to = (uint32_t)(g - s->gs.at);
}

/* ---- what comes out ---- */

int64_t states1_ns(const struct states1 *s, int64_t ticks)
{
	int64_t since = (int64_t)((uint64_t)ticks - (uint64_t)s->first);
	double rate = s->index->ns_per_tick;

	return rate > 0 ? ticks_ns((double)since, rate) : since;
}

static uint32_t stack_of(const struct states1 *s, uint64_t id)
{
	const struct trace_tables *t = &s->index->tables;
	uint32_t at = 0;

	/* Go takes a stack without frames for none. */
	return tables_stack(t, id, &at) && at && t->stacks.at[at - 1].n ? at : 0;
}

struct trace_text states1_text(const struct states1 *s, uint64_t id)
{
	struct trace_text out;

	(void)tables_string(&s->index->tables, id, &out);
	return out;
}

static struct trace_text word(const char *s)
{
	return (struct trace_text){ s, strlen(s) };
}

static struct trace_event *put_at(struct states1 *s, enum trace_kind kind, int64_t ticks)
{
	struct trace_event *ev = s->queued ? &s->queue[s->queued - 1] : s->out;

	BUG_ON(s->queued == STATES1_QUEUE);
	s->queued++;
	*ev = (struct trace_event){ .kind = kind,
				    .time_ns = states1_ns(s, ticks),
				    .m = TRACE_NONE,
				    .p = TRACE_NONE,
				    .g = TRACE_NONE };
	return ev;
}

struct trace_event *states1_put(struct states1 *s, const struct merged1 *m, enum trace_kind kind,
				uint64_t stack)
{
	struct trace_event *ev = put_at(s, kind, m->ticks);

	ev->m = s->ps.at[m->proc].m;
	ev->p = m->p;
	ev->g = m->g ? m->g : TRACE_NONE;
	ev->stack = stack_of(s, stack);
	return ev;
}

static struct trace_event *put_g(struct states1 *s, const struct merged1 *m, struct g1 *g,
				 unsigned to, uint64_t stack)
{
	struct trace_event *ev = states1_put(s, m, TRACE_GOROUTINE, stack);

	ev->transition = (struct trace_transition){ g->id, g->told, to, word(""), 0 };
	if (g->told <= TRACE_G_NOT_EXIST)
		ev->transition.stack = g->start_stack;
	else if (g->id == m->g)
		ev->transition.stack = ev->stack;
	g->told = to;
	return ev;
}

/* ---- what a goroutine does itself ---- */

/* NULL: it does not run there, and the error says so. */
static struct g1 *running(struct states1 *s, const struct merged1 *m, struct err *e)
{
	struct g1 *g = states1_g(s, m->g);

	if (g && g->told == TRACE_G_RUNNING)
		return g;
	if (s->loose && m->g)
		return g ? g : new_g(s, m->g);
	(void)states1_wrong(s, m, "the goroutine does not run", e);
	return NULL;
}

/* One that something is done to. NULL: it is not in that state, and the error says @what. */
static struct g1 *in_state(struct states1 *s, const struct merged1 *m, int64_t id, unsigned told,
			   const char *what, struct err *e)
{
	struct g1 *g = states1_g(s, id);

	if (g && g->told == told)
		return g;
	if (s->loose && id)
		return g ? g : new_g(s, id);
	(void)states1_wrong(s, m, what, e);
	return NULL;
}

/* Where the trace is damaged nothing is wrong. */
static int refuse(const struct states1 *s)
{
	return s->loose ? 0 : -EBADMSG;
}

static int stop(struct states1 *s, const struct merged1 *m, unsigned to, const char *reason,
		struct err *e)
{
	struct g1 *g = running(s, m, e);

	if (!g)
		return refuse(s);
	s->ps.at[m->proc].g = 0;
	put_g(s, m, g, to, to == TRACE_G_NOT_EXIST ? 0 : m->ev.args[1])->transition.reason =
		word(reason);
	if (to == TRACE_G_NOT_EXIST)
		delete_g(s, g);
	return 0;
}

/* The trace begins with one of each goroutine that is there already. */
static int create(struct states1 *s, const struct merged1 *m, struct err *e)
{
	struct g1 *by = states1_g(s, m->g), *g;
	int64_t id = (int64_t)m->ev.args[1];
	int ret = 0;

	if (m->g && (!by || by->told != TRACE_G_RUNNING) && !s->loose)
		return states1_wrong(s, m, "the creator does not run", e);
	if (!id || states1_g(s, id))
		return states1_wrong(s, m, "the new goroutine exists", e);
	g = new_g(s, id);
	if (!g)
		return states1_no_memory(e);
	if (s->index->version < V1_7)
		ret = tables_address(&s->index->tables, m->ev.args[2] + 1, &g->start_stack, e);
	else
		g->start_stack = stack_of(s, m->ev.args[2]);
	g->told = s->started ? TRACE_G_NOT_EXIST : TRACE_G_UNDETERMINED;
	if (!ret)
		put_g(s, m, g, TRACE_G_RUNNABLE, m->ev.args[3]);
	return ret;
}

/* A state that it had when the trace began. */
static int was_in(struct states1 *s, const struct merged1 *m, unsigned to, struct err *e)
{
	struct g1 *g = in_state(s, m, m->g, TRACE_G_RUNNABLE,
				"the goroutine waits, but it was not to run", e);

	if (!g)
		return refuse(s);
	if (to == TRACE_G_SYSCALL)
		g->blocked = m->ticks;
	put_g(s, m, g, to, 0);
	return 0;
}

static int start(struct states1 *s, const struct merged1 *m, struct err *e)
{
	struct g1 *g = in_state(s, m, m->g, TRACE_G_RUNNABLE,
				"a goroutine starts that was not to run", e);
	struct trace_event *label;

	if (!g)
		return refuse(s);
	if (m->ran && !s->loose)
		return states1_wrong(s, m, "another goroutine runs on this P", e);
	s->ps.at[m->proc].g = g->id;
	put_g(s, m, g, TRACE_G_RUNNING, 0);
	if (m->ev.type != EV1_GO_START_LABEL)
		return 0;
	label = states1_put(s, m, TRACE_LABEL, 0);
	label->label.label = states1_text(s, m->ev.args[3]);
	label->label.g = m->g;
	return 0;
}

static int unblock(struct states1 *s, const struct merged1 *m, uint64_t stack, struct err *e)
{
	struct g1 *by = states1_g(s, m->g), *g;

	if (m->g && (!by || by->told != TRACE_G_RUNNING) && !s->loose)
		return states1_wrong(s, m, "who unblocks does not run", e);
	g = in_state(s, m, (int64_t)m->ev.args[1], TRACE_G_WAITING, "the goroutine does not wait",
		     e);
	if (!g)
		return refuse(s);
	put_g(s, m, g, TRACE_G_RUNNABLE, stack);
	return 0;
}

/* ---- system calls ---- */

/* One that did not block has no length: nothing tells when it ended. */
static int enter_syscall(struct states1 *s, const struct merged1 *m, struct err *e)
{
	struct g1 *g = running(s, m, e);

	if (!g)
		return refuse(s);
	g->call_stack = m->ev.args[1];
	put_g(s, m, g, TRACE_G_SYSCALL, g->call_stack);
	if (m->then != EV1_GO_SYS_BLOCK)
		put_g(s, m, g, TRACE_G_RUNNING, 0);
	return 0;
}

static int block_in_syscall(struct states1 *s, const struct merged1 *m, struct err *e)
{
	struct g1 *g = states1_g(s, m->g);

	if (!g || g->blocked >= 0 || (g->told != TRACE_G_RUNNING && g->told != TRACE_G_SYSCALL))
		return states1_wrong(s, m, "a system call of a goroutine that does not run", e);
	if (g->told == TRACE_G_RUNNING)
		put_g(s, m, g, TRACE_G_SYSCALL, g->call_stack);
	s->ps.at[m->proc].g = 0;
	g->blocked = m->ticks;
	return 0;
}

int states1_exit(struct states1 *s, const struct exit1 *x, uint64_t off, struct err *e)
{
	struct g1 *g = states1_g(s, x->g);
	struct trace_event *ev;

	if (!g || g->told != TRACE_G_SYSCALL || g->blocked < 0)
		return s->loose ?
			       0 :
			       err_set(e, -EBADMSG,
				       "before offset %llu: a system call of goroutine %lld ends which had "
				       "not blocked by then",
				       (unsigned long long)off, (long long)x->g);
	ev = put_at(s, TRACE_GOROUTINE, x->ticks);
	ev->g = g->id;
	ev->transition = (struct trace_transition){ g->id, g->told, TRACE_G_RUNNABLE, word(""), 0 };
	g->told = TRACE_G_RUNNABLE;
	g->blocked = -1;
	return 0;
}

/* Without a time of its own. */
static int exit_now(struct states1 *s, const struct merged1 *m, struct err *e)
{
	return states1_exit(s, &(struct exit1){ m->key, m->ticks, m->g }, m->ev.off, e);
}

/* ---- Ps ---- */

static int proc_event(struct states1 *s, const struct merged1 *m, struct err *e)
{
	struct p1 *p = &s->ps.at[m->proc];
	bool runs = m->ev.type == EV1_PROC_START;
	struct trace_event *ev;

	if (runs == p->runs)
		return states1_wrong(s, m, runs ? "it runs already" : "it does not run", e);
	if (!runs && m->ran)
		return states1_wrong(s, m, "a goroutine runs on it", e);
	if (runs)
		p->m = (int64_t)m->ev.args[1];
	ev = states1_put(s, m, TRACE_PROC, 0);
	ev->transition = (struct trace_transition){ .id = m->p, .reason = word("") };
	ev->transition.from = !p->seen ? TRACE_P_UNDETERMINED :
			      runs     ? TRACE_P_IDLE :
					 TRACE_P_RUNNING;
	ev->transition.to = runs ? TRACE_P_RUNNING : TRACE_P_IDLE;
	p->runs = runs;
	p->seen = true;
	if (!runs)
		p->m = TRACE_NONE;
	return 0;
}

/* ---- all of them ---- */

/* Why a goroutine waits, in the words of version 2. NULL: the event is no wait. */
static const char *wait_reason(uint8_t type)
{
	static const char *const of[EV1_TYPES] = {
		[EV1_GO_STOP] = "forever",
		[EV1_GO_SLEEP] = "sleep",
		[EV1_GO_BLOCK] = "",
		[EV1_GO_BLOCK_SEND] = "chan send",
		[EV1_GO_BLOCK_RECV] = "chan receive",
		[EV1_GO_BLOCK_SELECT] = "select",
		[EV1_GO_BLOCK_SYNC] = "sync",
		[EV1_GO_BLOCK_COND] = "sync.(*Cond).Wait",
		[EV1_GO_BLOCK_NET] = "network",
		[EV1_GO_BLOCK_GC] = "GC mark assist wait for work",
	};

	return of[type];
}

int states1_tell(struct states1 *s, const struct merged1 *m, struct err *e)
{
	const uint64_t *a = m->ev.args;
	const char *reason = wait_reason(m->ev.type);

	if (reason)
		return stop(s, m, TRACE_G_WAITING, reason, e);
	switch (m->ev.type) {
	case EV1_PROC_START:
	case EV1_PROC_STOP:
		return proc_event(s, m, e);
	case EV1_GO_CREATE:
		return create(s, m, e);
	case EV1_GO_START:
	case EV1_GO_START_LOCAL:
	case EV1_GO_START_LABEL:
		return start(s, m, e);
	case EV1_GO_END:
		return stop(s, m, TRACE_G_NOT_EXIST, "", e);
	case EV1_GO_SCHED:
		return stop(s, m, TRACE_G_RUNNABLE, "runtime.Gosched", e);
	case EV1_GO_PREEMPT:
		return stop(s, m, TRACE_G_RUNNABLE, "preempted", e);
	case EV1_GO_UNBLOCK: /* Go 1.5 has no sequence number there */
		return unblock(s, m, s->index->version < V1_7 ? a[2] : a[3], e);
	case EV1_GO_UNBLOCK_LOCAL:
		return unblock(s, m, a[2], e);
	case EV1_GO_SYSCALL:
		return enter_syscall(s, m, e);
	case EV1_GO_SYS_BLOCK:
		return block_in_syscall(s, m, e);
	case EV1_GO_SYS_EXIT:
	case EV1_GO_SYS_EXIT_LOCAL:
		return exit_now(s, m, e);
	case EV1_GO_WAITING:
		return was_in(s, m, TRACE_G_WAITING, e);
	case EV1_GO_IN_SYSCALL:
		return was_in(s, m, TRACE_G_SYSCALL, e);
	case EV1_FUTILE_WAKEUP:
		return 0;
	default:
		return states1_note(s, m, e);
	}
}

void states1_sample(struct states1 *s, const struct sample1 *of)
{
	struct trace_event *ev = put_at(s, TRACE_CPU_SAMPLE, of->ticks);

	ev->p = of->p;
	ev->g = of->g ? of->g : TRACE_NONE;
	ev->stack = stack_of(s, of->stack);
}

bool states1_take(struct states1 *s, struct trace_event *out)
{
	if (s->head == s->queued) {
		s->head = s->queued = 0;
		return false;
	}
	if (s->head)
		*out = s->queue[s->head - 1];
	s->head++;
	return true;
}

int states1_init(struct states1 *s, struct index1 *x, struct err *e)
{
	*s = (struct states1){ .index = x };
	for (size_t i = 0; i < x->procs.n; i++) {
		struct p1 *p = vec_add(&s->ps, LIMIT_TRACE_IDS);

		if (!p)
			return states1_no_memory(e);
		p->m = TRACE_NONE;
	}
	return 0;
}

void states1_fini(struct states1 *s)
{
	for (size_t i = 0; i < s->gs.n; i++)
		vec_fini(&s->gs.at[i].regions);
	vec_fini(&s->gs);
	vec_fini(&s->free_gs);
	ids_fini(&s->by_g);
	vec_fini(&s->ps);
	vec_fini(&s->tasks);
	vec_fini(&s->free_tasks);
	map_fini(&s->by_task);
	free(s->message);
}
