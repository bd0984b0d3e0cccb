/* user/ingest/exectrace/trace_profile.c - stretches in a state, added up by stack. */
#include "ingest/exectrace/trace_profile.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/vec.h"

static const char *const names[TRACE_PROFILE_KINDS] = { "net",	 "sync", "syscall",
							"sched", "wait", "cpu" };

const char *trace_profile_name(enum trace_profile_kind kind)
{
	return kind < TRACE_PROFILE_KINDS ? names[kind] : NULL;
}

/* A stack and a reason, and what was spent there. */
struct spent {
	uint32_t stack, reason; /* in stacks; in reasons, 0: none */
	uint64_t count, ns;
};

/* A stretch that ended before its goroutine first ran. */
struct early {
	int64_t g;
	uint32_t spent;
	uint64_t ns;
};

/* What is known of a goroutine. */
struct track {
	bool in, ran;
	uint32_t
		spent; /* where the stretch that goes on counts; version 1: told when it ends, by */
	uint32_t stack;
	struct trace_text reason;
	int64_t since_ns;
};

struct trace_profile {
	enum trace_profile_kind kind;
	bool old; /* the trace is of version 1 */
	struct prof *prof;
	struct strtab *stacks; /* bytes of location ids */
	struct strtab *reasons;
	VEC(struct spent) spent;
	struct map by_key; /* (stack, reason) -> index in spent */
	VEC(struct track) tracks;
	struct map by_g;
	VEC(uint32_t) free_tracks;
	VEC(struct early) early;
	VEC(uint32_t) seen; /* stacks of this generation: index in stacks, + 1 */
	VEC(uint32_t) locs; /* scratch */
};

static int no_memory(struct err *e)
{
	return err_set(e, -ENOMEM, "no memory for the profile of the trace");
}

/* ---- stacks ---- */

static int location(struct trace_profile *p, const struct trace_frame *f, struct err *e)
{
	CLEANUP(freep) char *func = strndup(f->func.at, f->func.len);
	CLEANUP(freep) char *file = strndup(f->file.at, f->file.len);
	struct prof_line line = { .func = func, .file = file, .line = (int64_t)f->line };

	return func && file ? prof_location(p->prof, 0, f->pc, &line, 1, e) : no_memory(e);
}

static int intern(struct trace_profile *p, const struct exectrace *t, uint32_t stack, struct err *e)
{
	size_t n = exectrace_stack(t, stack);

	p->locs.n = 0;
	for (size_t i = 0; i < n; i++) {
		struct trace_frame f = exectrace_frame(t, stack, i);
		uint32_t *to = NULL;
		int id;

		if (!f.pc && !f.func.len)
			continue; /* so Go ends stacks that it could not take */
		id = location(p, &f, e);
		if (id > 0)
			to = vec_add(&p->locs, LIMIT_TRACE_IDS);
		if (!to)
			return id < 0 ? id : no_memory(e);
		*to = (uint32_t)id;
	}
	return 0;
}

/* A stack of this generation, as the profile knows it. */
static int stack_of(struct trace_profile *p, const struct exectrace *t, uint32_t stack,
		    uint32_t *out, struct err *e)
{
	int ret;

	while (p->seen.n <= stack)
		if (!vec_add(&p->seen, LIMIT_TRACE_IDS))
			return no_memory(e);
	if (!p->seen.at[stack]) {
		ret = intern(p, t, stack, e);
		if (ret)
			return ret;
		*out = strtab_put(p->stacks, p->locs.at, p->locs.n * sizeof(uint32_t));
		if (*out == UINT32_MAX)
			return no_memory(e);
		p->seen.at[stack] = *out + 1;
	}
	*out = p->seen.at[stack] - 1;
	return 0;
}

static int spent_at(struct trace_profile *p, const struct exectrace *t, uint32_t number,
		    struct trace_text reason, uint32_t *out, struct err *e)
{
	uint32_t stack = 0, why = strtab_put(p->reasons, reason.at, reason.len);
	int ret = stack_of(p, t, number, &stack, e);
	struct spent *s;
	uint64_t at;

	if (ret || why == UINT32_MAX)
		return ret ? ret : no_memory(e);
	if (map_get(&p->by_key, (uint64_t)why << 32 | stack, &at)) {
		*out = (uint32_t)at;
		return 0;
	}
	s = vec_add(&p->spent, LIMIT_TRACE_IDS);
	if (!s || !map_put(&p->by_key, (uint64_t)why << 32 | stack, p->spent.n - 1))
		return no_memory(e);
	*s = (struct spent){ .stack = stack, .reason = why };
	*out = (uint32_t)(p->spent.n - 1);
	return 0;
}

/* ---- stretches ---- */

static bool has(struct trace_text text, const char *word)
{
	return memmem(text.at, text.len, word, strlen(word));
}

static bool is(struct trace_text text, const char *word)
{
	return text.len == strlen(word) && !memcmp(text.at, word, text.len);
}

static bool wanted(const struct trace_profile *p, const struct trace_transition *t)
{
	switch (p->kind) {
	case TRACE_PROFILE_NET:
		return t->to == TRACE_G_WAITING && is(t->reason, "network");
	case TRACE_PROFILE_SYNC:
		if (p->old && is(t->reason, "GC mark assist wait for work"))
			return true;
		return t->to == TRACE_G_WAITING &&
		       (has(t->reason, "chan") || has(t->reason, "sync") ||
			has(t->reason, "select"));
	case TRACE_PROFILE_SYSCALL:
		return t->to == TRACE_G_SYSCALL;
	case TRACE_PROFILE_SCHED:
		return t->to == TRACE_G_RUNNABLE &&
		       (!p->old || t->from <= TRACE_G_NOT_EXIST || t->from == TRACE_G_WAITING);
	case TRACE_PROFILE_WAIT:
		return t->to == TRACE_G_WAITING || t->to == TRACE_G_RUNNABLE;
	default:
		return false;
	}
}

static struct trace_text reason_of(const struct trace_profile *p, const struct trace_transition *t)
{
	static const char runnable[] = "runnable", unknown[] = "not told";

	if (p->kind != TRACE_PROFILE_WAIT)
		return (struct trace_text){ "", 0 };
	if (t->to == TRACE_G_RUNNABLE)
		return (struct trace_text){ runnable, sizeof(runnable) - 1 };
	return t->reason.len ? t->reason : (struct trace_text){ unknown, sizeof(unknown) - 1 };
}

static struct track *track_of(struct trace_profile *p, int64_t g)
{
	struct track *to;
	uint64_t at;

	if (map_get(&p->by_g, (uint64_t)g, &at))
		return &p->tracks.at[at];
	at = p->free_tracks.n ? p->free_tracks.at[--p->free_tracks.n] : p->tracks.n;
	to = at < p->tracks.n ? &p->tracks.at[at] : vec_add(&p->tracks, LIMIT_TRACE_IDS);
	if (!to || !map_put(&p->by_g, (uint64_t)g, at))
		return NULL;
	*to = (struct track){};
	return to;
}

/* A trace of version 1 is one generation, so its stacks are known still. */
static int finish(struct trace_profile *p, const struct exectrace *of, struct track *t, int64_t g,
		  int64_t now_ns, struct err *e)
{
	struct early *to;
	int ret;

	t->in = false;
	if (now_ns <= t->since_ns)
		return 0;
	ret = p->old ? spent_at(p, of, t->stack, t->reason, &t->spent, e) : 0;
	if (ret)
		return ret;
	if (t->ran || p->old || p->kind == TRACE_PROFILE_WAIT) {
		p->spent.at[t->spent].count++;
		p->spent.at[t->spent].ns += (uint64_t)(now_ns - t->since_ns);
		return 0;
	}
	to = vec_add(&p->early, LIMIT_TRACE_IDS);
	if (!to)
		return no_memory(e);
	*to = (struct early){ g, t->spent, (uint64_t)(now_ns - t->since_ns) };
	return 0;
}

/* Of a goroutine that runs now, what came before does not count; that is found last in, first out. */
static void first_run(struct trace_profile *p, struct track *t, int64_t g)
{
	t->ran = true;
	for (size_t i = p->early.n; i-- > 0;)
		if (p->early.at[i].g == g)
			p->early.at[i] = p->early.at[--p->early.n];
}

static int transition(struct trace_profile *p, const struct exectrace *t,
		      const struct trace_event *ev, struct err *e)
{
	const struct trace_transition *tr = &ev->transition;
	struct track *of = track_of(p, tr->id);
	uint32_t *empty;
	uint64_t at;
	int ret = 0;

	if (!of)
		return no_memory(e);
	if (of->in && p->old && tr->from == TRACE_G_RUNNABLE && tr->to != TRACE_G_RUNNING)
		of->in = false; /* it was created as the trace began, and waits */
	if (of->in && tr->from != tr->to)
		ret = finish(p, t, of, tr->id, ev->time_ns, e);
	if (!ret && tr->to == TRACE_G_RUNNING && !of->ran)
		first_run(p, of, tr->id);
	if (!ret && !of->in && wanted(p, tr) &&
	    (!p->old || ev->stack || p->kind == TRACE_PROFILE_WAIT)) {
		of->stack = ev->stack;
		of->reason = reason_of(p, tr);
		if (!p->old)
			ret = spent_at(p, t, of->stack, of->reason, &of->spent, e);
		of->in = !ret;
		of->since_ns = ev->time_ns;
	}
	if (ret || tr->to != TRACE_G_NOT_EXIST)
		return ret;
	empty = vec_add(&p->free_tracks, LIMIT_TRACE_IDS);
	if (empty && map_get(&p->by_g, (uint64_t)tr->id, &at))
		*empty = (uint32_t)at;
	map_del(&p->by_g, (uint64_t)tr->id);
	return 0;
}

static int cpu_sample(struct trace_profile *p, const struct exectrace *t,
		      const struct trace_event *ev, struct err *e)
{
	uint32_t at;
	int ret = spent_at(p, t, ev->stack, (struct trace_text){ "", 0 }, &at, e);

	if (!ret)
		p->spent.at[at].count++;
	return ret;
}

int trace_profile_event(struct trace_profile *p, const struct exectrace *t,
			const struct trace_event *ev, struct err *e)
{
	if (ev->kind == TRACE_SYNC)
		p->seen.n = 0; /* stacks have other numbers from now on */
	if (ev->kind == TRACE_CPU_SAMPLE && p->kind == TRACE_PROFILE_CPU)
		return cpu_sample(p, t, ev, e);
	if (ev->kind == TRACE_GOROUTINE && p->kind != TRACE_PROFILE_CPU)
		return transition(p, t, ev, e);
	return 0;
}

/* ---- all of it ---- */

/* Source: runtime/pprof samples 100 times a second while it also traces. */
#define CPU_PERIOD_NS 10000000

static int make_types(struct trace_profile *p, struct err *e)
{
	bool cpu = p->kind == TRACE_PROFILE_CPU;
	int ret = prof_new(&p->prof, e);

	if (!ret)
		ret = prof_add_type(p->prof, cpu ? "samples" : "contentions", "count", e);
	if (!ret)
		ret = prof_add_type(p->prof, cpu ? "cpu" : "delay", "nanoseconds", e);
	if (!ret)
		ret = cpu ? prof_set_period(p->prof, "cpu", "nanoseconds", CPU_PERIOD_NS, e) :
			    prof_set_period(p->prof, "trace", "count", 1, e);
	return ret;
}

int trace_profile_new(enum trace_profile_kind kind, unsigned version, struct trace_profile **out,
		      struct err *e)
{
	CLEANUP(trace_profile_freep) struct trace_profile *p = calloc(1, sizeof(*p));
	int ret;

	if (!p)
		return no_memory(e);
	p->kind = kind;
	p->old = version < 22;
	ret = make_types(p, e);
	if (!ret)
		ret = strtab_new(&p->stacks, e);
	if (!ret)
		ret = strtab_new(&p->reasons, e);
	if (!ret)
		*out = TAKE(p);
	return ret;
}

void trace_profile_free(struct trace_profile *p)
{
	if (!p)
		return;
	prof_free(p->prof);
	strtab_free(p->stacks);
	strtab_free(p->reasons);
	vec_fini(&p->spent);
	map_fini(&p->by_key);
	vec_fini(&p->tracks);
	map_fini(&p->by_g);
	vec_fini(&p->free_tracks);
	vec_fini(&p->early);
	vec_fini(&p->seen);
	vec_fini(&p->locs);
	free(p);
}

/* A text of the table may begin at any address, so what was put there is copied. */
static int put_sample(struct trace_profile *p, const struct spent *s, struct err *e)
{
	const struct prof_label reason = { .key = "reason",
					   .str = strtab_get(p->reasons, s->reason) };
	size_t n = strtab_len(p->stacks, s->stack) / sizeof(uint32_t);
	bool cpu = p->kind == TRACE_PROFILE_CPU;
	int64_t values[] = { (int64_t)s->count, (int64_t)(cpu ? s->count * CPU_PERIOD_NS : s->ns) };

	while (p->locs.n < n)
		if (!vec_add(&p->locs, LIMIT_TRACE_IDS))
			return no_memory(e);
	if (n)
		memcpy(p->locs.at, strtab_get(p->stacks, s->stack), n * sizeof(uint32_t));
	return prof_sample(p->prof, p->locs.at, n, values, &reason, p->kind == TRACE_PROFILE_WAIT,
			   e);
}

int trace_profile_stop(struct trace_profile *p, const struct exectrace *t, int64_t time_ns,
		       struct err *e)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < p->tracks.n; i++)
		if (p->tracks.at[i].in)
			ret = finish(p, t, &p->tracks.at[i], TRACE_NONE, time_ns, e);
	return ret;
}

int trace_profile_end(struct trace_profile *p, struct prof **out, struct err *e)
{
	int ret = 0;

	for (size_t i = 0; i < p->early.n; i++) {
		p->spent.at[p->early.at[i].spent].count++;
		p->spent.at[p->early.at[i].spent].ns += p->early.at[i].ns;
	}
	for (size_t i = 0; !ret && i < p->spent.n; i++)
		if (p->spent.at[i].count)
			ret = put_sample(p, &p->spent.at[i], e);
	if (!ret)
		*out = TAKE(p->prof);
	return ret;
}
