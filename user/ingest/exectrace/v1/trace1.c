/*
 * user/ingest/exectrace/v1/trace1.c - a trace of version 1, event by event: the merged events of all Ps, ends
 * of system calls where they happened, and CPU samples.
 */
#include "ingest/exectrace/v1/trace1.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "ingest/exectrace/v1/cut1.h"
#include "ingest/exectrace/v1/exits1.h"
#include "ingest/exectrace/v1/futile1.h"
#include "ingest/exectrace/v1/trace1_priv.h"

struct trace1 {
	struct index1 index;
	struct merge1 *merge;
	struct exits1 *exits;
	struct futile1 *futile; /* NULL: there is nothing to be left out */
	struct states1 states;
	struct cut1 *cut;     /* NULL: no part is written */
	struct merged1 ahead; /* the next merged event, */
	bool has_ahead;	      /* if there is one; */
	int merged;	      /* or why there is none */
	struct err why;
	size_t sample;	 /* the next one */
	int64_t last;	 /* ticks of the event that was told last */
	int64_t last_ns; /* of the same */
	enum { BEGINS, GOES_ON, ENDED } stage;
	int damaged; /* the index ends at a damage */
	struct err damage;
};

/* ---- what comes next ---- */

static int fetch(struct trace1 *t, struct err *e)
{
	if (t->has_ahead || t->merged < 0)
		return 0;
	t->merged = merge1_next(t->merge, &t->ahead, &t->why);
	t->has_ahead = t->merged > 0;
	return t->has_ahead ? exits1_reach(t->exits, t->ahead.key, e) : 0;
}

static bool exit_is_next(const struct trace1 *t, struct exit1 *x)
{
	return exits1_peek(t->exits, x) && (!t->has_ahead || x->key < t->ahead.key) &&
	       (t->sample == t->index.samples.n ||
		x->ticks <= t->index.samples.at[t->sample].ticks);
}

static bool sample_is_next(const struct trace1 *t)
{
	return t->sample < t->index.samples.n &&
	       (!t->has_ahead || t->index.samples.at[t->sample].ticks < t->ahead.ticks);
}

/* What happens next does so then. */
static int reach(struct trace1 *t, int64_t ticks, uint64_t off, struct err *e)
{
	if (ticks < t->last && t->states.loose)
		return 0;
	if (ticks < t->last)
		return err_set(e, -EBADMSG,
			       "offset %llu: time stamps contradict the order of events",
			       (unsigned long long)off);
	t->last = ticks;
	return t->cut ? cut1_reach(t->cut, ticks, e) : 0;
}

/* ---- one event ---- */

static int tell_exit(struct trace1 *t, const struct exit1 *x, struct err *e)
{
	uint64_t off = trace1_offset(t);
	int ret = reach(t, x->ticks, off, e);

	exits1_drop(t->exits);
	if (!ret)
		ret = states1_exit(&t->states, x, off, e);
	return ret || !t->cut ? ret : cut1_exit(t->cut, x, e);
}

/* Its end of a system call is told at another time, or already was. */
static bool is_elsewhere(const struct trace1 *t)
{
	const struct merged1 *m = &t->ahead;
	struct exit1 x;

	return exit1_of(&m->ev, t->index.version, m->ticks, m->key, &x) ||
	       (t->futile && futile1_has(t->futile, m->ev.off));
}

static int tell_merged(struct trace1 *t, struct err *e)
{
	const struct merged1 *m = &t->ahead;
	int ret = reach(t, m->ticks, m->ev.off, e);

	if (ret)
		return ret;
	t->has_ahead = false;
	if (is_elsewhere(t))
		return 0;
	ret = states1_tell(&t->states, m, e);
	return ret || !t->cut ? ret : cut1_put(t->cut, m, e);
}

/* Queues something, or not yet. 1: there is no more. */
static int step(struct trace1 *t, struct err *e)
{
	struct exit1 x;
	int ret = fetch(t, e);

	if (ret)
		return ret;
	if (!t->has_ahead && t->merged < 0) {
		*e = t->why;
		return t->merged;
	}
	if (exit_is_next(t, &x))
		return tell_exit(t, &x, e);
	if (sample_is_next(t)) {
		const struct sample1 *s = &t->index.samples.at[t->sample++];

		ret = reach(t, s->ticks, trace1_offset(t), e);
		if (!ret)
			states1_sample(&t->states, s);
		return ret || !t->cut ? ret : cut1_sample(t->cut, s, e);
	}
	if (t->has_ahead)
		return tell_merged(t, e);
	return 1;
}

static int sync_event(struct trace1 *t, struct trace_event *ev)
{
	*ev = (struct trace_event){ .kind = TRACE_SYNC,
				    .time_ns = t->last_ns,
				    .m = TRACE_NONE,
				    .p = TRACE_NONE,
				    .g = TRACE_NONE };
	return 1;
}

/* Time begins with the first event. */
static int begin(struct trace1 *t, struct err *e)
{
	int ret = fetch(t, e);

	if (ret)
		return ret;
	t->states.first = t->ahead.ticks;
	if (sample_is_next(t))
		t->states.first = t->index.samples.at[0].ticks;
	t->last = t->states.first;
	return 0;
}

int trace1_next(struct trace1 *t, struct trace_event *ev, struct err *e)
{
	int ret = 0;

	if (t->stage == BEGINS) {
		t->stage = GOES_ON;
		ret = begin(t, e);
		return ret ? ret : sync_event(t, ev);
	}
	t->states.out = ev;
	while (t->stage == GOES_ON && ret <= 0) {
		if (states1_take(&t->states, ev)) {
			if (ev->time_ns < t->last_ns)
				ev->time_ns = t->last_ns; /* of a damaged trace */
			t->last_ns = ev->time_ns;
			return 1;
		}
		ret = step(t, e);
		if (ret < 0)
			return ret;
	}
	if (t->damaged)
		*e = t->damage;
	if (t->damaged || t->stage == ENDED)
		return t->damaged;
	t->stage = ENDED;
	return sync_event(t, ev);
}

/* ---- all of it ---- */

static int read_index(struct trace1 *t, int fd, unsigned version, struct err *e)
{
	int ret = index1_read(&t->index, fd, version, e);

	if (ret == -EBADMSG && t->index.procs.n) { /* what came before is good */
		t->damaged = ret;
		t->damage = *e;
		return 0;
	}
	if (ret)
		return ret;
	if (!t->index.procs.n)
		return err_set(e, -EBADMSG, "the trace is empty");
	if (t->index.ns_per_tick <= 0) {
		t->damaged = -EBADMSG;
		(void)err_set(&t->damage, 0,
			      "offset %llu: the trace ends before it tells its clock's rate",
			      (unsigned long long)t->index.size);
	}
	return 0;
}

int trace1_open(int fd, unsigned version, struct trace1 **out, struct err *e)
{
	CLEANUP(trace1_freep) struct trace1 *t = calloc(1, sizeof(*t));
	int ret;

	if (!t)
		return states1_no_memory(e);
	ret = read_index(t, fd, version, e);
	if (!ret)
		ret = states1_init(&t->states, &t->index, e);
	if (!ret && t->index.futile)
		ret = futile1_find(&t->index, &t->futile, e);
	if (!ret)
		ret = merge1_new(&t->index, &t->merge, e);
	t->states.loose = t->damaged;
	if (!ret && t->damaged)
		merge1_allow_loose(t->merge);
	if (!ret)
		ret = exits1_new(&t->index, &t->exits, e);
	if (!ret)
		*out = TAKE(t);
	return ret;
}

void trace1_free(struct trace1 *t)
{
	if (!t)
		return;
	cut1_free(t->cut);
	states1_fini(&t->states);
	exits1_free(t->exits);
	merge1_free(t->merge);
	futile1_free(t->futile);
	index1_fini(&t->index);
	free(t);
}

int trace1_cut(struct trace1 *t, FILE *f, int64_t from_ns, int64_t to_ns, struct err *e)
{
	if (t->damaged)
		return err_set(e, t->damaged, "-o: no part of a damaged trace is one: %s",
			       t->damage.msg);
	return cut1_new(&t->states, f, from_ns, to_ns, &t->cut, e);
}

bool trace1_cut_is_over(const struct trace1 *t)
{
	return cut1_is_over(t->cut);
}

int trace1_cut_finish(struct trace1 *t, int64_t *from_ns, int64_t *to_ns, struct err *e)
{
	return cut1_finish(t->cut, from_ns, to_ns, e);
}

int trace1_damage(const struct trace1 *t, struct err *e)
{
	if (t->damaged)
		*e = t->damage;
	return t->damaged;
}

bool trace1_has_clock(const struct trace1 *t)
{
	return t->index.ns_per_tick > 0;
}

struct trace_tables *trace1_own_tables(struct trace1 *t)
{
	return &t->index.tables;
}

const struct trace_tables *trace1_tables(const struct trace1 *t)
{
	return &t->index.tables;
}

uint64_t trace1_offset(const struct trace1 *t)
{
	return t->has_ahead ? t->ahead.ev.off : t->index.size;
}

uint64_t trace1_size(const struct trace1 *t)
{
	return t->index.size;
}
