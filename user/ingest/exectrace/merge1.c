/*
 * user/ingest/exectrace/merge1.c - Ps whose next event may come are in a heap; the others wait for the
 * state of a goroutine, each in the list of that state, so that no state is looked at twice in vain.
 */
#include "ingest/exectrace/merge1.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/limits.h"
#include "ingest/exectrace/heap.h"

/* In this order of numbers; a goroutine that is not known is dead. */
enum status { DEAD, RUNNABLE, RUNNING, WAITING };

/* A collection counts as a goroutine, as in Go's reader. */
#define COLLECTIONS (-2ll)
#define NO_SEQ	    UINT64_MAX

struct source {
	struct proc1 in;
	int64_t g;	/* that runs on it after its next event; 0: none */
	int64_t ran;	/* before its next event, */
	int64_t ev_g;	/* whose that one is */
	uint32_t other; /* the next one in the same list, + 1 */
};

struct merge1 {
	const struct index1 *index;
	VEC(struct source) sources;
	struct heap ready;
	struct heap_item hot; /* comes next or soon, so that it is not put into the heap at once; */
	bool is_hot;	      /* if there is one */
	struct map waiting;   /* hash of a demanded state -> its first source, + 1 */
	size_t nwaiting;
	struct ids gs; /* goroutine -> its number, times 4, and status */
	bool may_be_loose, loose;
};

static int no_memory(struct err *e)
{
	return err_set(e, -ENOMEM, "no memory to put the trace in order");
}

/* ---- what an event demands ---- */

struct rule {
	int64_t g; /* TRACE_NONE: of nobody */
	uint64_t seq;
	enum status from, to;
	unsigned counts; /* what is added to the number */
};

static struct rule rule_of(const struct source *s)
{
	const struct event1 *ev = &s->in.ev;
	int64_t other = (int64_t)ev->args[1], own = s->ev_g;
	uint64_t n = ev->args[2];

	if (s->in.index->version < V1_7)
		return (struct rule){ .g = TRACE_NONE };
	switch (ev->type) {
	case EV1_GO_CREATE:
		return (struct rule){ other, 0, DEAD, RUNNABLE, 1 };
	case EV1_GO_WAITING:
	case EV1_GO_IN_SYSCALL:
		return (struct rule){ own, 1, RUNNABLE, WAITING, 1 };
	case EV1_GO_START:
	case EV1_GO_START_LABEL:
		return (struct rule){ own, n, RUNNABLE, RUNNING, 1 };
	case EV1_GO_START_LOCAL:
		return (struct rule){ own, NO_SEQ, RUNNABLE, RUNNING, 1 };
	case EV1_GO_BLOCK:
	case EV1_GO_BLOCK_SEND:
	case EV1_GO_BLOCK_RECV:
	case EV1_GO_BLOCK_SELECT:
	case EV1_GO_BLOCK_SYNC:
	case EV1_GO_BLOCK_COND:
	case EV1_GO_BLOCK_NET:
	case EV1_GO_SLEEP:
	case EV1_GO_SYS_BLOCK:
	case EV1_GO_BLOCK_GC:
		return (struct rule){ own, NO_SEQ, RUNNING, WAITING, 0 };
	case EV1_GO_SCHED:
	case EV1_GO_PREEMPT:
		return (struct rule){ own, NO_SEQ, RUNNING, RUNNABLE, 0 };
	case EV1_GO_UNBLOCK:
	case EV1_GO_SYS_EXIT:
		return (struct rule){ other, n, WAITING, RUNNABLE, 1 };
	case EV1_GO_UNBLOCK_LOCAL:
	case EV1_GO_SYS_EXIT_LOCAL:
		return (struct rule){ other, NO_SEQ, WAITING, RUNNABLE, 1 };
	case EV1_GC_START:
		return (struct rule){ COLLECTIONS, ev->args[1], DEAD, DEAD, 1 };
	default:
		return (struct rule){ .g = TRACE_NONE };
	}
}

static uint64_t state_of(const struct merge1 *m, int64_t g)
{
	uint64_t state = 0;

	(void)ids_get(&m->gs, (uint64_t)g, &state);
	return state;
}

static bool allowed(const struct merge1 *m, const struct rule *r)
{
	uint64_t state = state_of(m, r->g);

	return r->g == TRACE_NONE || m->loose ||
	       ((state & 3) == r->from && (r->seq == NO_SEQ || r->seq == state >> 2));
}

/* ---- who waits for which state ---- */

static uint64_t state_hash(int64_t g, uint64_t seq, enum status status)
{
	return hash_pair((uint64_t)g, hash_pair(seq, status));
}

static int place(struct merge1 *m, uint32_t i, struct err *e)
{
	struct source *s = &m->sources.at[i];
	struct rule r = rule_of(s);
	uint64_t hash, first = 0;

	if (allowed(m, &r)) {
		struct heap_item it = { .key = proc1_key(&s->in), .id = i };

		if (m->is_hot)
			return heap_push(&m->ready, it) ? 0 : no_memory(e);
		m->hot = it;
		m->is_hot = true;
		return 0;
	}
	hash = state_hash(r.g, r.seq, r.from);
	(void)map_get(&m->waiting, hash, &first);
	s->other = (uint32_t)first;
	m->nwaiting++;
	return map_put(&m->waiting, hash, i + 1) ? 0 : no_memory(e);
}

static int wake(struct merge1 *m, uint64_t hash, struct err *e)
{
	uint64_t i = 0;
	int ret = 0;

	if (!map_get(&m->waiting, hash, &i))
		return 0;
	map_del(&m->waiting, hash);
	while (i && !ret) {
		uint32_t other = m->sources.at[i - 1].other;

		m->nwaiting--;
		ret = place(m, (uint32_t)i - 1, e);
		i = other;
	}
	return ret;
}

static int apply(struct merge1 *m, const struct rule *r, struct err *e)
{
	uint64_t seq = (state_of(m, r->g) >> 2) + r->counts;
	int ret;

	if (r->g == TRACE_NONE)
		return 0;
	if (!ids_put(&m->gs, (uint64_t)r->g, seq << 2 | r->to))
		return no_memory(e);
	if (!m->nwaiting)
		return 0;
	ret = wake(m, state_hash(r->g, seq, r->to), e);
	return ret ? ret : wake(m, state_hash(r->g, NO_SEQ, r->to), e);
}

/* ---- the next event of a P ---- */

/* Whose event it is, and who runs on the P afterwards. */
static void whose(struct source *s)
{
	const struct event1 *ev = &s->in.ev;

	s->ran = s->ev_g = s->g;
	switch (ev->type) {
	case EV1_GO_START:
	case EV1_GO_START_LOCAL:
	case EV1_GO_START_LABEL:
		s->g = s->ev_g = (int64_t)ev->args[1];
		break;
	case EV1_GC_START:
	case EV1_GC_DONE:
	case EV1_STW_START:
	case EV1_STW_DONE:
		s->ev_g = 0;
		break;
	case EV1_GO_SYS_EXIT:
	case EV1_GO_SYS_EXIT_LOCAL:
	case EV1_GO_WAITING:
	case EV1_GO_IN_SYSCALL:
		s->ev_g = (int64_t)ev->args[1];
		break;
	case EV1_GO_END:
	case EV1_GO_STOP:
	case EV1_GO_SCHED:
	case EV1_GO_PREEMPT:
	case EV1_GO_SLEEP:
	case EV1_GO_BLOCK:
	case EV1_GO_BLOCK_SEND:
	case EV1_GO_BLOCK_RECV:
	case EV1_GO_BLOCK_SELECT:
	case EV1_GO_BLOCK_SYNC:
	case EV1_GO_BLOCK_COND:
	case EV1_GO_BLOCK_NET:
	case EV1_GO_SYS_BLOCK:
	case EV1_GO_BLOCK_GC:
		s->g = 0;
		break;
	default:
		break;
	}
}

static int advance(struct merge1 *m, uint32_t i, struct err *e)
{
	struct source *s = &m->sources.at[i];
	int ret = proc1_next(&s->in, e);

	if (ret <= 0) {
		s->in.ev.type = 0;
		return ret;
	}
	whose(s);
	return 1;
}

/* ---- all of it ---- */

static int stuck(const struct merge1 *m, struct err *e)
{
	const struct source *s = m->sources.at;

	while (!s->in.ev.type)
		s++;
	return err_set(
		e, -EBADMSG,
		"no order of the remaining events is possible; that of P %lld at offset %llu, "
		"of kind %u, is one of them",
		(long long)s->in.of->p, (unsigned long long)s->in.ev.off, s->in.ev.type);
}

/* Who waits does so for what is not in the trace. */
static int let_loose(struct merge1 *m, struct err *e)
{
	int ret = 0;

	m->loose = true;
	for (uint32_t i = 0; !ret && i < m->sources.n; i++)
		if (m->sources.at[i].in.ev.type)
			ret = place(m, i, e);
	map_fini(&m->waiting);
	m->nwaiting = 0;
	return ret;
}

void merge1_allow_loose(struct merge1 *m)
{
	m->may_be_loose = true;
}

static int take(struct merge1 *m, uint32_t i, struct merged1 *out, struct err *e)
{
	struct source *s = &m->sources.at[i];
	struct rule r = rule_of(s);
	int ret;

	if (!allowed(m, &r))
		return err_set(e, -EBADMSG,
			       "offset %llu: goroutine %lld is not in the state for event %u",
			       (unsigned long long)s->in.ev.off, (long long)r.g, s->in.ev.type);
	*out = (struct merged1){ .ev = s->in.ev,
				 .key = proc1_key(&s->in),
				 .ticks = s->in.ticks,
				 .proc = i,
				 .p = s->in.of->p,
				 .g = s->ev_g,
				 .ran = s->ran };
	ret = apply(m, &r, e);
	if (!ret && out->ev.type == EV1_GO_END)
		ids_del(&m->gs, (uint64_t)out->g);
	if (!ret)
		ret = advance(m, i, e);
	if (ret < 0)
		return ret;
	out->then = s->in.ev.type;
	return ret ? place(m, i, e) : 0;
}

static bool any_ready(const struct merge1 *m)
{
	return m->is_hot || m->ready.items.n;
}

/* Most often it is of the P that the last one was of. */
static struct heap_item earliest(struct merge1 *m)
{
	struct heap_item it = m->hot;

	if (!m->is_hot)
		return heap_pop(&m->ready);
	m->is_hot = false;
	if (!m->ready.items.n || heap_before(&it, &m->ready.items.at[0]))
		return it;
	return heap_replace(&m->ready, it);
}

int merge1_next(struct merge1 *m, struct merged1 *out, struct err *e)
{
	int ret;

	if (!any_ready(m) && m->nwaiting && m->may_be_loose && let_loose(m, e))
		return -ENOMEM;
	if (!any_ready(m))
		return m->nwaiting ? stuck(m, e) : 0;
	ret = take(m, (uint32_t)earliest(m).id, out, e);
	return ret ? ret : 1;
}

int merge1_new(const struct index1 *x, struct merge1 **out, struct err *e)
{
	CLEANUP(merge1_freep) struct merge1 *m = calloc(1, sizeof(*m));

	if (!m)
		return no_memory(e);
	m->index = x;
	for (uint32_t i = 0; i < x->procs.n; i++) {
		struct source *s = vec_add(&m->sources, LIMIT_TRACE_IDS);
		int ret = s ? proc1_open(&s->in, x, i, e) : no_memory(e);

		if (!ret)
			ret = advance(m, i, e);
		if (ret > 0)
			ret = place(m, i, e);
		if (ret)
			return ret;
	}
	*out = TAKE(m);
	return 0;
}

void merge1_free(struct merge1 *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->sources.n; i++)
		proc1_fini(&m->sources.at[i].in);
	vec_fini(&m->sources);
	heap_fini(&m->ready);
	map_fini(&m->waiting);
	ids_fini(&m->gs);
	free(m);
}
