/*
 * user/collect/heap/heap_enable.c - readings of the buckets in a window in which sampling is switched
 * on, and their differences.
 */
#include "collect/heap/heap_enable.h"
#include "base/clock.h"
#include "symbolize/subject_prof.h"

#include <time.h>

#include "base/map.h"
#include "collect/heap/first_samples.h"
#include "collect/heap/heap_read.h"
#include "collect/ratewrite/enable.h"
#include "go/runtime/vars/rtvar.h"
#include "profile/profile.h"

enum {
	SETTLE_US = 5000, /* pause between the write and the first reading */
	FIRST_TRIES = 5,
	CYCLE_WRAP = 3 * 2 << 24, /* mProfCycleWrap, runtime/mprof.go */
	PUBLISHED_AFTER = 2,	  /* cycles until an allocation is published */
};

/* What one bucket gained in the window. */
struct gain {
	int64_t allocs, first;		   /* since the first reading */
	int64_t since, first_since, inuse; /* since the write, as far as published */
};

struct heap_enable {
	struct enable x; /* first */
	struct subject *s;
	struct rtbucket_vars vars;
	/* the reading before the write; empty and unused when others had written */
	struct rtbuckets before;
	bool has_before;
	struct rtbuckets base, last;
	/* before_base: between the write and the base reading; after_base: from the base reading on */
	struct first_samples before_base, after_base;
	struct armed at_base, at_last;
	struct armed leftover; /* Ps that continued with a countdown from before */
	bool follow_ps;
	struct prof *prof;
};

static int64_t rate_of(const struct heap_enable *h)
{
	return (int64_t)h->x.began.value;
}

/* ---- readings ---- */

static int read_buckets(struct heap_enable *h, struct rtbuckets *out, struct err *e)
{
	int ret = rtbuckets_read(h->s->target->mem, &h->s->layout, &h->vars, out, e);

	return ret ? err_wrap(e, ret, "pid %d", h->s->target->pid) : 0;
}

static int read_rate(void *arg, uint64_t *rate, struct err *e)
{
	struct heap_enable *h = arg;
	int64_t value = 0;
	int ret = heap_read_rate(h->s, &h->vars, &value, e);

	*rate = (uint64_t)value;
	return ret;
}

/*
 * Reads the Ps before and after the buckets; they are of use only when they did not change
 * meanwhile.
 */
static int read_with_ps(struct heap_enable *h, struct rtbuckets *out, struct armed *a,
			bool *stood_still, struct err *e)
{
	struct armed after;
	int ret;

	*stood_still = h->follow_ps && !first_samples_armed(&h->after_base, a);
	ret = read_buckets(h, out, e);
	*stood_still = *stood_still && !first_samples_armed(&h->after_base, &after) &&
		       after.n == a->n;
	return ret;
}

static int read_more(void *arg, struct err *e)
{
	CLEANUP(rtbuckets_fini) struct rtbuckets b = { 0 };
	struct heap_enable *h = arg;
	struct rtbuckets older;
	struct armed a;
	bool ours = false, still;
	int ret;

	ret = read_with_ps(h, &b, &a, &still, e);
	if (!ret)
		ret = enable_is_ours(&h->x, &ours, e);
	if (ret || !ours)
		return ret;
	if (still) {
		ret = first_samples_learn(&h->after_base, &b, a.n, e);
		h->at_last = a;
	}
	h->x.last_ns = now_ns();
	enable_step(&h->x, "read after %.3f s: %zu buckets", enable_seconds(&h->x), b.n);
	older = h->last;
	h->last = b;
	b = older;
	return ret;
}

/* ---- start ---- */

/*
 * Makes the first reading, a moment after the write, so that what the Ps sample at once lies
 * before it. Where the Ps change in each attempt, nobody knows which of them had their first sample before it.
 */
static int read_first(struct heap_enable *h, struct err *e)
{
	bool still = false;
	int ret = 0;

	for (int try = 0; !ret && !still && try < FIRST_TRIES; try++) {
		rtbuckets_fini(&h->base);
		usleep(SETTLE_US);
		ret = read_with_ps(h, &h->base, &h->at_base, &still, e);
		still |= !h->follow_ps;
	}
	h->follow_ps = h->follow_ps && still;
	return ret;
}

static int read_base(struct heap_enable *h, const struct armed *before, struct err *e)
{
	int ret = read_first(h, e);

	if (!ret)
		ret = enable_from(&h->x, now_ns(), e);
	if (ret)
		return ret;
	h->at_last = h->at_base;
	if (h->follow_ps && h->has_before) {
		ret = first_samples_begin(&h->before_base, &h->before, before->n, e);
		if (!ret)
			ret = first_samples_learn(&h->before_base, &h->base, h->at_base.n, e);
	}
	if (!ret && h->follow_ps)
		ret = first_samples_begin(&h->after_base, &h->base, h->at_base.n, e);
	return ret;
}

static int start(struct heap_enable *h, struct err *e)
{
	struct armed before = { 0 };
	int ret;

	ret = heap_read_find(h->s, &h->vars, e);
	if (!ret)
		ret = enable_check_address(h->s, RTVAR_MEMPROFILERATE, h->vars.memprofilerate, e);
	if (!ret)
		ret = read_buckets(h, &h->before, e);
	if (ret)
		return ret;
	first_samples_init(&h->after_base, h->s, (int64_t)h->x.o->heap.rate);
	h->follow_ps = !first_samples_armed(&h->after_base, &before);
	if (gobin_info(h->s->bin)->minor < 24)
		h->leftover = before;
	enable_step(
		&h->x,
		"runtime.MemProfileRate is at 0x%llx, as the code that uses it says too, and is %lld",
		(unsigned long long)h->vars.memprofilerate, (long long)h->before.rate);
	ret = enable_on(&h->x, h->vars.memprofilerate, h->x.o->heap.rate, CLAIM_HEAP_RATE, e);
	if (ret)
		return ret;
	/* If it was on then, somebody sampled between that reading and the write. */
	h->has_before = h->x.began.how == GUARDIAN_WROTE && !h->before.rate;
	first_samples_init(&h->after_base, h->s, rate_of(h));
	ret = read_base(h, &before, e);
	if (ret)
		return ret;
	if (h->follow_ps)
		enable_step(
			&h->x,
			"first reading: %zu buckets; of %u processors %u have had their first sample",
			h->base.n, h->at_base.of, h->at_base.n);
	else
		enable_step(&h->x,
			    "first reading: %zu buckets; the state of the processors is not known",
			    h->base.n);
	return 0;
}

/* Also restores the rate. */
static void enabled_free(void *at)
{
	struct heap_enable *h = at;

	if (!h)
		return;
	enable_fini(&h->x);
	rtbuckets_fini(&h->before);
	rtbuckets_fini(&h->base);
	rtbuckets_fini(&h->last);
	first_samples_fini(&h->before_base);
	first_samples_fini(&h->after_base);
	prof_free(h->prof);
	free(h);
}

/* ---- what came of it ---- */

struct index {
	struct map at; /* bucket address -> place + 1 */
};

static void index_fini(struct index *ix)
{
	map_fini(&ix->at);
}

static int index_of(const struct rtbuckets *b, struct index *ix, struct err *e)
{
	for (size_t i = 0; i < b->n; i++)
		if (!map_put(&ix->at, b->at[i].addr, i))
			return err_set(e, -ENOMEM, "no memory for %zu buckets", b->n);
	return 0;
}

static const struct rtbucket *find(const struct rtbuckets *b, const struct index *ix, uint64_t addr)
{
	static const struct rtbucket none;
	uint64_t i;

	return map_get(&ix->at, addr, &i) ? &b->at[i] : &none;
}

struct sums {
	struct heap_enable *h;
	struct rtbuckets gained; /* owns at; pcs are those of last */
	struct gain *gain;	 /* beside gained.at */
	uint64_t samples;
	bool ambiguous; /* frees of these objects cannot be told from frees of older ones */
	const char *no_inuse;
};

static void sums_fini(struct sums *s)
{
	free(s->gained.at);
	free(s->gain);
}

static bool gained(const struct sums *s, const struct gain *g)
{
	return g->allocs > 0 || (g->inuse > 0 && !s->no_inuse);
}

/*
 * Decides which objects the frees belong to. When older objects of the bucket lived, and some
 * objects were freed, and new ones were made, nobody can tell which of them these frees were.
 */
static void in_use(struct sums *s, const struct rtbucket *now, const struct rtbucket *then,
		   struct gain *g)
{
	int64_t frees = (int64_t)(now->frees - then->all_frees);

	g->since = (int64_t)(now->allocs - then->all_allocs);
	g->inuse = g->since - frees;
	if (then->all_allocs != then->all_frees) {
		if (g->since > 0 && frees > 0)
			s->ambiguous = true;
		if (g->since <= 0)
			g->inuse = 0;
	}
	/* the bucket is not swept as a whole yet; Go shows as much */
	if (g->inuse < 0 || g->since < 0)
		g->inuse = g->since = 0;
}

static int add_up(struct sums *s, struct err *e)
{
	CLEANUP(index_fini) struct index base = { { 0 } }, then = { { 0 } };
	struct heap_enable *h = s->h;
	const struct rtbuckets *from = h->has_before ? &h->before : &h->base;
	int ret = index_of(&h->base, &base, e);

	if (!ret)
		ret = index_of(from, &then, e);
	if (ret)
		return ret;
	s->gained = h->last;
	s->gained.n = 0;
	s->gained.at = calloc(h->last.n + 1, sizeof(*s->gained.at));
	s->gain = calloc(h->last.n + 1, sizeof(*s->gain));
	if (!s->gained.at || !s->gain)
		return err_set(e, -ENOMEM, "no memory for %zu buckets", h->last.n);
	for (size_t i = 0; i < h->last.n; i++) {
		const struct rtbucket *b = &h->last.at[i];
		struct gain g = { 0 };

		g.allocs = (int64_t)(b->all_allocs - find(&h->base, &base, b->addr)->all_allocs);
		g.first = (int64_t)first_samples_of(&h->after_base, b->addr);
		g.first_since = g.first + (int64_t)first_samples_of(&h->before_base, b->addr);
		in_use(s, b, find(from, &then, b->addr), &g);
		s->samples += g.allocs > 0 ? (uint64_t)g.allocs : 0;
		s->gain[i] = g;
		s->gained.at[i] = *b;
	}
	s->gained.n = h->last.n;
	return 0;
}

/* Leaves out what gained nothing. That comes last: whether anything is told of what is in use depends on all of them. */
static void keep_gained(struct sums *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->gained.n; i++) {
		const struct gain g = s->gain[i];
		struct rtbucket b = s->gained.at[i];

		if (!gained(s, &g))
			continue;
		/* They tell the mean size of these objects. */
		b.allocs = (uint64_t)(g.allocs > 0 ? g.allocs : g.inuse);
		b.alloc_bytes = b.allocs * b.size;
		s->gain[n] = g;
		s->gained.at[n++] = b;
	}
	s->gained.n = n;
}

/* Says why the in-use columns would not be true; NULL when they are. */
static const char *no_inuse(const struct sums *s)
{
	const struct heap_enable *h = s->h;
	const struct rtbuckets *from = h->has_before ? &h->before : &h->base;
	uint32_t cycles = (h->last.cycle + CYCLE_WRAP - from->cycle) % CYCLE_WRAP;

	if (h->last.before_first_gc)
		return NULL; /* no object was ever freed */
	if (cycles < PUBLISHED_AFTER)
		return "no garbage collection has published anything of the window";
	if (s->ambiguous)
		return "objects sampled earlier were freed at the same places";
	return NULL;
}

/* A first sample stands for itself, the others for what the rate says. */
static void estimate(void *arg, const struct rtbucket *b, int64_t *values)
{
	const struct sums *s = arg;
	const struct gain *g = &s->gain[b - s->gained.at];
	int64_t first = g->first < g->allocs ? g->first : g->allocs;
	struct scaled v = heap_read_scale(s->h->s, b, g->allocs - first, rate_of(s->h));
	double share;

	values[0] = v.objects + first;
	values[1] = v.bytes + first * (int64_t)b->size;
	if (s->no_inuse || g->inuse <= 0)
		return;
	/* It is not known which of them live; the chance is the same for all of a bucket. */
	share = g->first_since < g->since ? (double)g->first_since / (double)g->since : 1;
	v = heap_read_scale(s->h->s, b, g->inuse, rate_of(s->h));
	values[2] = (int64_t)((double)v.objects * (1 - share) + (double)g->inuse * share);
	values[3] = (int64_t)((double)v.bytes * (1 - share) +
			      (double)g->inuse * (double)b->size * share);
}

/* ---- comments ---- */

/* Says what the unconditional first sample of each P did to the numbers. */
static int comment_first_samples(struct heap_enable *h, struct err *e)
{
	const struct first_samples *f = &h->after_base;
	int ret;

	if (!h->follow_ps)
		return prof_comment(h->prof, e,
				    "first samples: each of the program's processors (GOMAXPROCS) "
				    "that began to allocate after the first reading counts %lld "
				    "bytes too much; how many did is not known",
				    (long long)rate_of(h));
	ret = prof_comment(
		h->prof, e,
		"first samples: of %u processors %u had theirs before the window, %llu in "
		"it and known (counted as one object each), %llu in it among others (each "
		"counts %lld bytes too much)",
		h->at_last.of, h->at_base.n, (unsigned long long)f->nknown,
		(unsigned long long)f->mixed, (long long)rate_of(h));
	if (!ret && h->leftover.n && h->x.began.how == GUARDIAN_WROTE)
		ret = prof_comment(h->prof, e,
				   "first samples: %u processors went on with the countdown of an "
				   "earlier rate: the next after %llu bytes in all",
				   h->leftover.n, (unsigned long long)h->leftover.left);
	return ret;
}

static int comments(struct sums *s, struct err *e)
{
	struct heap_enable *h = s->h;
	int ret;

	ret = prof_comment(h->prof, e, "window: %.3f s", enable_seconds(&h->x));
	if (!ret)
		ret = prof_comment(h->prof, e, "rate: one sample in %lld bytes",
				   (long long)rate_of(h));
	if (!ret)
		ret = enable_comment(&h->x, h->prof, e);
	if (!ret)
		ret = prof_comment(h->prof, e, "hits: %llu samples in %zu buckets",
				   (unsigned long long)s->samples, s->gained.n);
	if (!ret)
		ret = comment_first_samples(h, e);
	if (!ret && s->no_inuse)
		ret = prof_comment(h->prof, e, "in-use columns are absent: %s", s->no_inuse);
	else if (!ret)
		ret = prof_comment(h->prof, e,
				   "in use: of what was sampled since runtime.MemProfileRate was "
				   "set, as of GC cycle %u",
				   h->last.cycle);
	return ret;
}

/* ---- the end ---- */

static int add_types(const struct sums *s, struct err *e)
{
	static const char *const types[][2] = { { "alloc_objects", "count" },
						{ "alloc_space", "bytes" },
						{ "inuse_objects", "count" },
						{ "inuse_space", "bytes" } };
	struct prof *p = s->h->prof;
	int ret = prof_set_period(p, "space", "bytes", rate_of(s->h), e);

	for (size_t i = 0; !ret && i < (s->no_inuse ? 2 : ARRAY_LEN(types)); i++)
		ret = prof_add_type(p, types[i][0], types[i][1], e);
	return ret ? ret : prof_set_default_type(p, "alloc_space", e);
}

static int make_profile(struct heap_enable *h, struct err *e)
{
	CLEANUP(sums_fini) struct sums s = { .h = h };
	int ret = add_up(&s, e);

	if (ret)
		return ret;
	s.no_inuse = no_inuse(&s);
	keep_gained(&s);
	ret = subject_prof(h->s, "enable (the runtime's own sampler, switched on for the window)",
			   &h->prof, e);
	if (!ret)
		ret = add_types(&s, e);
	if (!ret)
		ret = comments(&s, e);
	if (!ret)
		ret = heap_read_samples(h->s, &s.gained, h->prof, estimate, &s, e);
	if (!ret)
		enable_set_window(&h->x, h->prof);
	return ret;
}

/* Restores the rate, and waits until that is done. */
static int enabled_stop(void *at, struct prof **out, struct err *e)
{
	struct heap_enable *h = at;
	int ret = enable_end(&h->x, e);

	if (!ret)
		ret = make_profile(h, e);
	if (!ret)
		*out = TAKE(h->prof);
	return ret;
}

static const struct source enabled = {
	.fd = enable_fd,
	.poll = enable_poll,
	.tick = enable_tick,
	.stop = enabled_stop,
	.free = enabled_free,
};

static void enabled_freep(struct heap_enable **h)
{
	enabled_free(*h);
}

int heap_enable_start(struct subject *s, const struct collect_opts *o, struct sourced *out,
		      struct err *e)
{
	CLEANUP(enabled_freep) struct heap_enable *h = calloc(1, sizeof(*h));
	int ret;

	if (!h)
		return err_set(e, -ENOMEM, "no memory");
	h->s = s;
	h->x = (struct enable){ .s = s,
				.o = o,
				.kind = "heap",
				.name = "runtime.MemProfileRate",
				.rate = read_rate,
				.read = read_more,
				.arg = h };
	ret = enable_init(&h->x, e);
	if (!ret)
		ret = start(h, e);
	if (!ret)
		*out = (struct sourced){ &enabled, TAKE(h) };
	return ret < 0 ? err_wrap(e, ret, "source enable") : ret;
}
