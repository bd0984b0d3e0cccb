/*
 * user/ingest/exectrace/v1/merge1.c - Ps whose next event may come are in a heap; the others wait for the
 * state of a goroutine, each in the list of that state, so that no state is looked at twice in vain.
 */
#include "ingest/exectrace/v1/merge1.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/limits.h"
#include "ingest/exectrace/heap.h"

/* In this order of numbers; a goroutine that is not known is dead. */
enum status { DEAD, RUNNABLE, RUNNING, WAITING };

/* A collection counts as a goroutine, as in Go's reader. */
#define COLLECTIONS (-2ll)
#define NO_SEQ	    UINT64_MAX

/* What an event demands of a goroutine, and what it leaves. */
struct rule {
	int64_t g; /* TRACE_NONE: of nobody */
	uint64_t seq;
	enum status from, to;
	unsigned counts; /* what is added to the number */
};

struct source {
	struct proc1 in;
	int64_t g;	  /* that runs on it after its next event; 0: none */
	int64_t ran;	  /* before its next event, */
	int64_t ev_g;	  /* whose that one is */
	struct rule rule; /* of that one */
	uint32_t other;	  /* the next one in the same list, + 1 */
};

struct merge1 {
	const struct index1 *index;
	VEC(struct source) sources;
	struct heap ready;
	struct heap_item hot; /* comes next or soon, so that it is not put into the heap at once; */
	bool is_hot;	      /* if there is one */
	struct map waiting;   /* hash of a demanded state -> its first source, + 1 */
	size_t nwaiting;
	uint64_t awaited; /* a bit for each goroutine that somebody may wait for */
	struct ids gs;	  /* goroutine -> its number, times 4, and status */
	bool may_be_loose, loose;
};

static int no_memory(struct err *e)
{
	return err_set(e, -ENOMEM, "no memory to put the trace in order");
}

/* ---- what an event demands ---- */

/* Tables and not switches: which kind comes next is hard to foresee. */
enum whom { NOBODY, OWN, OTHER, GC }; /* OTHER: of its second argument */
enum number { NO_NUMBER, ZERO, ONE, SECOND, THIRD };

static const struct {
	uint8_t whom, number, from, to, counts;
} rules[EV1_TYPES] = {
	[EV1_GO_CREATE] = { OTHER, ZERO, DEAD, RUNNABLE, 1 },
	[EV1_GO_WAITING] = { OWN, ONE, RUNNABLE, WAITING, 1 },
	[EV1_GO_IN_SYSCALL] = { OWN, ONE, RUNNABLE, WAITING, 1 },
	[EV1_GO_START] = { OWN, THIRD, RUNNABLE, RUNNING, 1 },
	[EV1_GO_START_LABEL] = { OWN, THIRD, RUNNABLE, RUNNING, 1 },
	[EV1_GO_START_LOCAL] = { OWN, NO_NUMBER, RUNNABLE, RUNNING, 1 },
	[EV1_GO_BLOCK] = { OWN, NO_NUMBER, RUNNING, WAITING, 0 },
	[EV1_GO_BLOCK_SEND] = { OWN, NO_NUMBER, RUNNING, WAITING, 0 },
	[EV1_GO_BLOCK_RECV] = { OWN, NO_NUMBER, RUNNING, WAITING, 0 },
	[EV1_GO_BLOCK_SELECT] = { OWN, NO_NUMBER, RUNNING, WAITING, 0 },
	[EV1_GO_BLOCK_SYNC] = { OWN, NO_NUMBER, RUNNING, WAITING, 0 },
	[EV1_GO_BLOCK_COND] = { OWN, NO_NUMBER, RUNNING, WAITING, 0 },
	[EV1_GO_BLOCK_NET] = { OWN, NO_NUMBER, RUNNING, WAITING, 0 },
	[EV1_GO_SLEEP] = { OWN, NO_NUMBER, RUNNING, WAITING, 0 },
	[EV1_GO_SYS_BLOCK] = { OWN, NO_NUMBER, RUNNING, WAITING, 0 },
	[EV1_GO_BLOCK_GC] = { OWN, NO_NUMBER, RUNNING, WAITING, 0 },
	[EV1_GO_SCHED] = { OWN, NO_NUMBER, RUNNING, RUNNABLE, 0 },
	[EV1_GO_PREEMPT] = { OWN, NO_NUMBER, RUNNING, RUNNABLE, 0 },
	[EV1_GO_UNBLOCK] = { OTHER, THIRD, WAITING, RUNNABLE, 1 },
	[EV1_GO_SYS_EXIT] = { OTHER, THIRD, WAITING, RUNNABLE, 1 },
	[EV1_GO_UNBLOCK_LOCAL] = { OTHER, NO_NUMBER, WAITING, RUNNABLE, 1 },
	[EV1_GO_SYS_EXIT_LOCAL] = { OTHER, NO_NUMBER, WAITING, RUNNABLE, 1 },
	[EV1_GC_START] = { GC, SECOND, DEAD, DEAD, 1 },
};

static struct rule rule_of(const struct source *s)
{
	const struct event1 *ev = &s->in.ev;
	const uint64_t numbers[] = { NO_SEQ, 0, 1, ev->args[1], ev->args[2] };
	const int64_t whom[] = { TRACE_NONE, s->ev_g, (int64_t)ev->args[1], COLLECTIONS };
	__typeof__(&rules[0]) r = &rules[ev->type];

	if (s->in.index->version < V1_7)
		return (struct rule){ .g = TRACE_NONE };
	return (struct rule){ whom[r->whom], numbers[r->number], r->from, r->to, r->counts };
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

static uint64_t g_bit(int64_t g)
{
	return 1ull << ((uint64_t)g & 63);
}

static int place(struct merge1 *m, uint32_t i, struct err *e)
{
	struct source *s = &m->sources.at[i];
	const struct rule *r = &s->rule;
	uint64_t hash, first = 0;

	if (allowed(m, r)) {
		struct heap_item it = { .key = proc1_key(&s->in), .id = i };

		if (m->is_hot)
			return heap_push(&m->ready, it) ? 0 : no_memory(e);
		m->hot = it;
		m->is_hot = true;
		return 0;
	}
	hash = state_hash(r->g, r->seq, r->from);
	(void)map_get(&m->waiting, hash, &first);
	s->other = (uint32_t)first;
	m->nwaiting++;
	m->awaited |= g_bit(r->g);
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
		m->awaited = 0;
	if (!(m->awaited & g_bit(r->g)))
		return 0;
	ret = wake(m, state_hash(r->g, seq, r->to), e);
	return ret ? ret : wake(m, state_hash(r->g, NO_SEQ, r->to), e);
}

/* ---- the next event of a P ---- */

enum of { ITS_OWN, STARTS, STOPS, OF_NOBODY, OF_OTHER };

static const uint8_t of_kind[EV1_TYPES] = {
	[EV1_GO_START] = STARTS,
	[EV1_GO_START_LOCAL] = STARTS,
	[EV1_GO_START_LABEL] = STARTS,
	[EV1_GC_START] = OF_NOBODY,
	[EV1_GC_DONE] = OF_NOBODY,
	[EV1_STW_START] = OF_NOBODY,
	[EV1_STW_DONE] = OF_NOBODY,
	[EV1_GO_SYS_EXIT] = OF_OTHER,
	[EV1_GO_SYS_EXIT_LOCAL] = OF_OTHER,
	[EV1_GO_WAITING] = OF_OTHER,
	[EV1_GO_IN_SYSCALL] = OF_OTHER,
	[EV1_GO_END] = STOPS,
	[EV1_GO_STOP] = STOPS,
	[EV1_GO_SCHED] = STOPS,
	[EV1_GO_PREEMPT] = STOPS,
	[EV1_GO_SLEEP] = STOPS,
	[EV1_GO_BLOCK] = STOPS,
	[EV1_GO_BLOCK_SEND] = STOPS,
	[EV1_GO_BLOCK_RECV] = STOPS,
	[EV1_GO_BLOCK_SELECT] = STOPS,
	[EV1_GO_BLOCK_SYNC] = STOPS,
	[EV1_GO_BLOCK_COND] = STOPS,
	[EV1_GO_BLOCK_NET] = STOPS,
	[EV1_GO_SYS_BLOCK] = STOPS,
	[EV1_GO_BLOCK_GC] = STOPS,
};

/* Whose event it is, and who runs on the P afterwards. */
static void whose(struct source *s)
{
	int64_t g = s->g, other = (int64_t)s->in.ev.args[1];
	const int64_t event[] = { g, other, g, 0, other }, after[] = { g, other, 0, g, g };
	enum of of = of_kind[s->in.ev.type];

	s->ran = g;
	s->ev_g = event[of];
	s->g = after[of];
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
	s->rule = rule_of(s);
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
	struct rule r = s->rule;
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
