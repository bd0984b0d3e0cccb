/* user/ingest/exectrace/summary/trace_profile.c - stretches in a state, added up by stack. */
#include "ingest/exectrace/summary/trace_profile.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/vec.h"
#include "ingest/exectrace/ids.h"

static const char *const names[TRACE_PROFILE_KINDS] = { "net",	 "sync", "syscall",
							"sched", "wait", "cpu" };

const char *trace_profile_name(enum trace_profile_kind kind)
{
	return kind < TRACE_PROFILE_KINDS ? names[kind] : NULL;
}

/* A stack and a reason, and what was spent there. */
struct spent {
	uint32_t stack, reason; /* in stacks; in reasons, 0: none */
	uint32_t nothings;	/* frames of nothing, behind the stack, where it was met last */
	uint64_t count, ns;
};

/* A stretch that ended before its goroutine first ran. */
struct early {
	uint64_t ns;
	uint32_t spent;
	uint32_t next; /* the same goroutine's, or the next free one; from 1 on, 0: none */
};

/* A stack of this generation, and where what was spent there last counts; both from 1 on, 0: not known. */
struct seen {
	uint32_t stack, spent;
	uint32_t nothings;	  /* frames of nothing at its end */
	struct trace_text reason; /* of the latter: in the tables of the generation, too */
};

/* What is known of a goroutine. */
struct track {
	bool in, ran;
	uint32_t
		spent; /* where the stretch that goes on counts; version 1: told when it ends, by */
	uint32_t stack;
	uint32_t nothings; /* of it */
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
	struct ids by_g;
	VEC(uint32_t) free_tracks;
	VEC(struct early) early;
	struct map early_of; /* goroutine -> the last of its own */
	uint32_t free_early;
	VEC(struct seen) seen; /* stacks of this generation */
	struct map names;      /* its strings, by where they are -> as the profile knows them */
	VEC(uint32_t) locs;    /* scratch */
};

static int no_memory(struct err *e)
{
	return err_set(e, -ENOMEM, "no memory for the profile of the trace");
}

/* ---- stacks ---- */

/* Each string of the generation is looked for once, however many frames have it. */
static int name_of(struct trace_profile *p, struct trace_text text, uint32_t *out, struct err *e)
{
	uint64_t known, key = (uint64_t)(uintptr_t)text.at;
	int ret;

	*out = 0;
	if (!text.len)
		return 0;
	if (map_get(&p->names, key, &known)) {
		*out = (uint32_t)known;
		return 0;
	}
	ret = prof_name(p->prof, text.at,
			strnlen(text.at, text.len < LIMIT_NAME ? text.len : LIMIT_NAME), out, e);
	return ret || map_put(&p->names, key, *out) ? ret : no_memory(e);
}

static int location(struct trace_profile *p, const struct trace_frame *f, struct err *e)
{
	uint32_t func, file;
	int ret = name_of(p, f->func, &func, e);

	if (!ret)
		ret = name_of(p, f->file, &file, e);
	return ret ? ret : prof_location_named(p->prof, f->pc, func, file, (int64_t)f->line, e);
}

/*
 * Go ends stacks that it could not take with frames of nothing. With or without them it is the same stack, which
 * go tool trace shows as it was met last. Source: stackMap in cmd/trace/pprof.go, Go 1.27.
 */
static size_t without_nothings(const struct exectrace *t, uint32_t stack, size_t n)
{
	for (; n; n--) {
		struct trace_frame f = exectrace_frame(t, stack, n - 1);

		if (f.pc || f.func.len)
			break;
	}
	return n;
}

static int intern(struct trace_profile *p, const struct exectrace *t, uint32_t stack,
		  uint32_t *nothings, struct err *e)
{
	size_t all = exectrace_stack(t, stack), n = without_nothings(t, stack, all);

	*nothings = (uint32_t)(all - n);
	p->locs.n = 0;
	for (size_t i = 0; i < n; i++) {
		struct trace_frame f = exectrace_frame(t, stack, i);
		uint32_t *to = NULL;
		int id = location(p, &f, e);

		if (id > 0)
			to = vec_add(&p->locs, LIMIT_TRACE_IDS);
		if (!to)
			return id < 0 ? id : no_memory(e);
		*to = (uint32_t)id;
	}
	return 0;
}

static struct seen *seen_of(struct trace_profile *p, uint32_t stack)
{
	while (p->seen.n <= stack)
		if (!vec_add(&p->seen, LIMIT_TRACE_IDS))
			return NULL;
	return &p->seen.at[stack];
}

/* The index of a stack of this generation in stacks. */
static int stack_of(struct trace_profile *p, const struct exectrace *t, uint32_t stack,
		    struct seen *seen, uint32_t *out, struct err *e)
{
	int ret;

	if (!seen->stack) {
		ret = intern(p, t, stack, &seen->nothings, e);
		if (ret)
			return ret;
		*out = strtab_put(p->stacks, p->locs.at, p->locs.n * sizeof(uint32_t));
		if (*out == UINT32_MAX)
			return no_memory(e);
		seen->stack = *out + 1;
	}
	*out = seen->stack - 1;
	return 0;
}

static int new_spent(struct trace_profile *p, uint32_t stack, uint32_t reason, uint64_t *at,
		     struct err *e)
{
	struct spent *s = vec_add(&p->spent, LIMIT_TRACE_IDS);

	*at = p->spent.n - 1;
	if (!s || !map_put(&p->by_key, (uint64_t)reason << 32 | stack, *at))
		return no_memory(e);
	*s = (struct spent){ .stack = stack, .reason = reason };
	return 0;
}

static int spent_at(struct trace_profile *p, const struct exectrace *t, uint32_t number,
		    struct trace_text reason, uint32_t *out, struct err *e)
{
	struct seen *seen = seen_of(p, number);
	uint32_t stack = 0, why;
	uint64_t at;
	int ret;

	if (!seen)
		return no_memory(e);
	if (seen->spent && seen->reason.at == reason.at && seen->reason.len == reason.len) {
		*out = seen->spent - 1;
		return 0;
	}
	why = strtab_put(p->reasons, reason.at, reason.len);
	ret = why == UINT32_MAX ? no_memory(e) : stack_of(p, t, number, seen, &stack, e);
	if (!ret && !map_get(&p->by_key, (uint64_t)why << 32 | stack, &at))
		ret = new_spent(p, stack, why, &at, e);
	if (ret)
		return ret;
	*out = (uint32_t)at;
	seen->spent = *out + 1;
	seen->reason = reason;
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

	if (ids_get(&p->by_g, (uint64_t)g, &at))
		return &p->tracks.at[at];
	at = p->free_tracks.n ? p->free_tracks.at[--p->free_tracks.n] : p->tracks.n;
	to = at < p->tracks.n ? &p->tracks.at[at] : vec_add(&p->tracks, LIMIT_TRACE_IDS);
	if (!to || !ids_put(&p->by_g, (uint64_t)g, at))
		return NULL;
	*to = (struct track){};
	return to;
}

/* Times of hostile traces add up to more than there are numbers. */
static void spend(struct spent *s, uint64_t ns)
{
	s->count++;
	s->ns = ns < INT64_MAX - s->ns ? s->ns + ns : INT64_MAX;
}

static int keep_early(struct trace_profile *p, const struct track *t, int64_t g, uint64_t ns,
		      struct err *e)
{
	uint64_t next = 0;
	uint32_t at = p->free_early;
	struct early *to = at ? &p->early.at[at - 1] : vec_add(&p->early, LIMIT_TRACE_IDS);

	if (!to)
		return no_memory(e);
	if (at)
		p->free_early = to->next;
	else
		at = (uint32_t)p->early.n;
	(void)map_get(&p->early_of, (uint64_t)g, &next);
	*to = (struct early){ ns, t->spent, (uint32_t)next };
	return map_put(&p->early_of, (uint64_t)g, at) ? 0 : no_memory(e);
}

/* A trace of version 1 is one generation, so its stacks are known still. */
static int finish(struct trace_profile *p, const struct exectrace *of, struct track *t, int64_t g,
		  int64_t now_ns, struct err *e)
{
	int ret;

	t->in = false;
	if (now_ns <= t->since_ns)
		return 0;
	ret = p->old ? spent_at(p, of, t->stack, t->reason, &t->spent, e) : 0;
	if (ret)
		return ret;
	if (!t->ran && !p->old && p->kind != TRACE_PROFILE_WAIT)
		return keep_early(p, t, g, (uint64_t)(now_ns - t->since_ns), e);
	spend(&p->spent.at[t->spent], (uint64_t)(now_ns - t->since_ns));
	p->spent.at[t->spent].nothings = t->nothings;
	return 0;
}

/* Of a goroutine that runs now, what came before does not count. */
static void first_run(struct trace_profile *p, struct track *t, int64_t g)
{
	uint64_t at;

	t->ran = true;
	if (!map_get(&p->early_of, (uint64_t)g, &at))
		return;
	map_del(&p->early_of, (uint64_t)g);
	while (at) {
		struct early *one = &p->early.at[at - 1];

		at = one->next;
		*one = (struct early){ .next = p->free_early };
		p->free_early = (uint32_t)(one - p->early.at) + 1;
	}
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
		if (!p->old && !ret && p->kind != TRACE_PROFILE_WAIT)
			of->nothings = p->seen.at[of->stack].nothings;
		of->in = !ret;
		of->since_ns = ev->time_ns;
	}
	if (ret || tr->to != TRACE_G_NOT_EXIST)
		return ret;
	empty = vec_add(&p->free_tracks, LIMIT_TRACE_IDS);
	if (empty && ids_get(&p->by_g, (uint64_t)tr->id, &at))
		*empty = (uint32_t)at;
	ids_del(&p->by_g, (uint64_t)tr->id);
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
	if (ev->kind == TRACE_SYNC) { /* stacks and strings are others from now on */
		p->seen.n = 0;
		map_fini(&p->names);
	}
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
	ids_fini(&p->by_g);
	vec_fini(&p->free_tracks);
	vec_fini(&p->early);
	map_fini(&p->early_of);
	vec_fini(&p->seen);
	map_fini(&p->names);
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

	while (p->locs.n < n + s->nothings)
		if (!vec_add(&p->locs, LIMIT_TRACE_IDS))
			return no_memory(e);
	for (size_t i = n; i < n + s->nothings; i++) {
		int id = prof_location_named(p->prof, 0, 0, 0, 0, e);

		if (id < 0)
			return id;
		p->locs.at[i] = (uint32_t)id;
	}
	if (n)
		memcpy(p->locs.at, strtab_get(p->stacks, s->stack), n * sizeof(uint32_t));
	return prof_sample(p->prof, p->locs.at, n + s->nothings, values, &reason,
			   p->kind == TRACE_PROFILE_WAIT, e);
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
		const struct early *one = &p->early.at[i];

		if (!one->ns) /* free */
			continue;
		spend(&p->spent.at[one->spent], one->ns);
	}
	for (size_t i = 0; !ret && i < p->spent.n; i++)
		if (p->spent.at[i].count)
			ret = put_sample(p, &p->spent.at[i], e);
	if (!ret)
		*out = TAKE(p->prof);
	return ret;
}
