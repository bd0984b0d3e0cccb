/*
 * user/collect/heap/heap_enable.c - readings of the buckets in a window in which sampling is switched
 * on, and their differences.
 */
#include "collect/heap/heap_enable.h"
#include "symbolize/subject_prof.h"

#include <stdarg.h>
#include <sys/timerfd.h>
#include <time.h>

#include "base/map.h"
#include "collect/heap/first_samples.h"
#include "collect/heap/heap_read.h"
#include "collect/ratewrite/enable.h"
#include "go/runtime/rtvar.h"
#include "profile/profile.h"

#define NS_PER_MS 1000000ull
#define NS_PER_S  1000000000ull

enum {
	SETTLE_US = 5000, /* pause between the write and the first reading */
	NEXT_MIN_MS = 20, /* shortest pause between readings; it grows */
	NEXT_MAX_MS = 1000,
	COST_SHARE = 20,	  /* readings take at most this part of the time */
	CYCLE_WRAP = 3 * 2 << 24, /* mProfCycleWrap, runtime/mprof.go */
	PUBLISHED_AFTER = 2,	  /* cycles until an allocation is published */
};

/* What one bucket gained in the window. */
struct gain {
	int64_t allocs, firsts;		    /* since the first reading */
	int64_t since, firsts_since, inuse; /* since the write, as far as published */
};

struct heap_enable {
	struct subject *s;
	struct collect_opts o;
	struct rtbucket_vars vars;
	struct guardian *g;
	struct enabled x;
	/* the reading before the write; empty and unused when others had written */
	struct rtbuckets before;
	bool has_before;
	struct rtbuckets base, last;
	uint64_t base_ns, last_ns; /* CLOCK_MONOTONIC */
	int64_t base_unix_ns;
	/* early: between the write and the base reading; firsts: from the base reading on */
	struct first_samples early, firsts;
	struct armed at_base, at_last;
	struct armed leftover; /* Ps that continued with a countdown from before */
	bool follow_ps;
	int timer;
	uint64_t next_ms;
	bool over; /* the rate is no longer ours: nothing more is read */
	int64_t changed_to;
	struct prof *prof;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static double seconds(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? (double)(to_ns - from_ns) / 1e9 : 0;
}

static int64_t rate_of(const struct heap_enable *h)
{
	return (int64_t)h->x.began.value;
}

/* Prints a step with -v. */
static void step(const struct heap_enable *h, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void step(const struct heap_enable *h, const char *fmt, ...)
{
	char line[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (h->o.verbose)
		say(&h->o, "heap: %s", line);
}

/* ---- readings ---- */

static int read_buckets(struct heap_enable *h, struct rtbuckets *out, struct err *e)
{
	int ret = rtbuckets_read(h->s->target->mem, &h->s->layout, &h->vars, out, e);

	return ret ? err_wrap(e, ret, "pid %d", h->s->target->pid) : 0;
}

/*
 * A rate that was in force before is not ours; so all that was sampled until then was sampled
 * with our rate.
 */
static int still_ours(struct heap_enable *h, bool *ours, struct err *e)
{
	int64_t rate;
	int ret = heap_read_rate(h->s, &h->vars, &rate, e);

	if (ret)
		return ret;
	*ours = rate == rate_of(h);
	if (!*ours && !h->over)
		h->changed_to = rate;
	h->over |= !*ours;
	return 0;
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

	*stood_still = h->follow_ps && !first_samples_armed(&h->firsts, a);
	ret = read_buckets(h, out, e);
	*stood_still = *stood_still && !first_samples_armed(&h->firsts, &after) && after.n == a->n;
	return ret;
}

/* Makes one more reading. It counts only when the rate is still ours after it. */
static int read_more(struct heap_enable *h, struct err *e)
{
	CLEANUP(rtbuckets_fini) struct rtbuckets b = { 0 };
	struct rtbuckets older;
	struct armed a;
	bool ours = false, still;
	int ret;

	ret = read_with_ps(h, &b, &a, &still, e);
	if (!ret)
		ret = still_ours(h, &ours, e);
	if (ret || !ours)
		return ret;
	if (still) {
		ret = first_samples_learn(&h->firsts, &b, a.n, e);
		h->at_last = a;
	}
	h->last_ns = now_ns();
	step(h, "read after %.3f s: %zu buckets", seconds(h->base_ns, h->last_ns), b.n);
	older = h->last;
	h->last = b;
	b = older;
	return ret;
}

/* ---- start ---- */

static int switch_on(struct heap_enable *h, struct err *e)
{
	struct guardian_job job = {
		.target = h->s->target,
		.name = h->x.name,
		.addr = h->vars.memprofilerate,
		.value = h->o.heap_rate,
		.what = CLAIM_HEAP_RATE,
		.window_ns = h->o.window_ns,
	};
	int ret = guardian_start(&job, &h->g, &h->x.began, e);

	if (ret)
		return ret;
	if (h->x.began.how == GUARDIAN_FOUND)
		return 1;
	enable_tell_begun(&h->x, guardian_pid(h->g), &h->o);
	if (h->x.began.exposed)
		say_exposed(h->s, &h->o, "the guardian");
	return 0;
}

static int start_timer(struct heap_enable *h, struct err *e)
{
	struct itimerspec t = { 0 };

	if (h->timer < 0)
		h->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	t.it_value.tv_sec = (time_t)(h->next_ms / 1000);
	t.it_value.tv_nsec = (long)(h->next_ms % 1000 * NS_PER_MS);
	if (h->timer < 0 || timerfd_settime(h->timer, 0, &t, NULL))
		return err_sys(e, "a timer");
	return 0;
}

/*
 * Makes the first reading, a moment after the write, so that what the Ps sample at once lies
 * before it.
 */
static int read_base(struct heap_enable *h, const struct armed *before, struct err *e)
{
	struct timespec unix_time;
	bool still, ours;
	int ret;

	usleep(SETTLE_US);
	ret = read_with_ps(h, &h->base, &h->at_base, &still, e);
	if (!ret)
		ret = still_ours(h, &ours, e);
	if (ret)
		return ret;
	if (!ours)
		return err_set(e, -EBUSY,
			       "the program has set runtime.MemProfileRate to %lld itself: read it "
			       "with --source=read",
			       (long long)h->changed_to);
	h->base_ns = now_ns();
	clock_gettime(CLOCK_REALTIME, &unix_time);
	h->base_unix_ns = unix_time.tv_sec * (int64_t)NS_PER_S + unix_time.tv_nsec;
	h->at_last = h->at_base;
	if (h->follow_ps && h->has_before && still) {
		ret = first_samples_begin(&h->early, &h->before, before->n, e);
		if (!ret)
			ret = first_samples_learn(&h->early, &h->base, h->at_base.n, e);
	}
	if (!ret && h->follow_ps)
		ret = first_samples_begin(&h->firsts, &h->base, h->at_base.n, e);
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
	first_samples_init(&h->firsts, h->s, (int64_t)h->o.heap_rate);
	h->follow_ps = !first_samples_armed(&h->firsts, &before);
	if (gobin_info(h->s->bin)->minor < 24)
		h->leftover = before;
	step(h,
	     "runtime.MemProfileRate is at 0x%llx, as the code that uses it says too, and is %lld",
	     (unsigned long long)h->vars.memprofilerate, (long long)h->before.rate);
	ret = switch_on(h, e);
	if (ret)
		return ret;
	/* If it was on then, somebody sampled between that reading and the write. */
	h->has_before = h->x.began.how == GUARDIAN_WROTE && !h->before.rate;
	first_samples_init(&h->firsts, h->s, rate_of(h));
	ret = read_base(h, &before, e);
	if (ret)
		return ret;
	if (h->follow_ps)
		step(h,
		     "first reading: %zu buckets; of %u processors %u have had their first sample",
		     h->base.n, h->at_base.of, h->at_base.n);
	else
		step(h, "first reading: %zu buckets; the state of the processors is not known",
		     h->base.n);
	h->next_ms = NEXT_MIN_MS;
	return start_timer(h, e);
}

int heap_enable_start(struct subject *s, const struct collect_opts *o, struct heap_enable **out,
		      struct err *e)
{
	CLEANUP(heap_enable_freep) struct heap_enable *h = calloc(1, sizeof(*h));
	int ret;

	if (!h)
		return err_set(e, -ENOMEM, "no memory");
	h->s = s;
	h->o = *o;
	h->timer = -1;
	h->x.kind = "heap";
	h->x.name = "runtime.MemProfileRate";
	if (o->held)
		return err_set(e, -ENOTSUP,
			       "source enable: a program that has not run yet has still to set its "
			       "own sampling: use --source=probe, or -p once it runs");
	ret = start(h, e);
	if (!ret)
		*out = TAKE(h);
	return ret < 0 ? err_wrap(e, ret, "source enable") : ret;
}

void heap_enable_free(struct heap_enable *h)
{
	if (!h)
		return;
	guardian_free(h->g);
	rtbuckets_fini(&h->before);
	rtbuckets_fini(&h->base);
	rtbuckets_fini(&h->last);
	first_samples_fini(&h->early);
	first_samples_fini(&h->firsts);
	closep(&h->timer);
	prof_free(h->prof);
	free(h);
}

/* ---- the window ---- */

int heap_enable_fd(struct heap_enable *h)
{
	return h->timer;
}

void heap_enable_tick(struct heap_enable *h)
{
	if (guardian_check(h->g))
		h->over = true;
}

int heap_enable_poll(struct heap_enable *h, struct err *e)
{
	uint64_t ticks, start_ns = now_ns(), cost_ms;
	int ret = 0;

	(void)!read(h->timer, &ticks, sizeof(ticks));
	heap_enable_tick(h);
	if (!h->over)
		ret = read_more(h, e);
	if (ret || h->over)
		return ret; /* the timer is not set again: what is there stays */
	cost_ms = (now_ns() - start_ns) / NS_PER_MS;
	h->next_ms = h->next_ms * 2 < NEXT_MAX_MS ? h->next_ms * 2 : NEXT_MAX_MS;
	if (h->next_ms < cost_ms * COST_SHARE)
		h->next_ms = cost_ms * COST_SHARE;
	return start_timer(h, e);
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

static bool gained(const struct gain *g)
{
	return g->allocs > 0 || g->inuse > 0;
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
		g.firsts = (int64_t)first_samples_of(&h->firsts, b->addr);
		g.firsts_since = g.firsts + (int64_t)first_samples_of(&h->early, b->addr);
		in_use(s, b, find(from, &then, b->addr), &g);
		s->samples += g.allocs > 0 ? (uint64_t)g.allocs : 0;
		if (!gained(&g))
			continue;
		s->gain[s->gained.n] = g;
		s->gained.at[s->gained.n] = *b;
		s->gained.at[s->gained.n].allocs = (uint64_t)g.allocs;
		s->gained.at[s->gained.n++].alloc_bytes = (uint64_t)g.allocs * b->size;
	}
	return 0;
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
	int64_t first = g->firsts < g->allocs ? g->firsts : g->allocs;
	struct scaled v = heap_read_scale(s->h->s, b, g->allocs - first, rate_of(s->h));
	double share;

	values[0] = v.objects + first;
	values[1] = v.bytes + first * (int64_t)b->size;
	if (s->no_inuse || g->inuse <= 0)
		return;
	/* It is not known which of them live; the chance is the same for all of a bucket. */
	share = g->firsts_since < g->since ? (double)g->firsts_since / (double)g->since : 1;
	v = heap_read_scale(s->h->s, b, g->inuse, rate_of(s->h));
	values[2] = (int64_t)((double)v.objects * (1 - share) + (double)g->inuse * share);
	values[3] = (int64_t)((double)v.bytes * (1 - share) +
			      (double)g->inuse * (double)b->size * share);
}

/* ---- comments ---- */

/* Says what the unconditional first sample of each P did to the numbers. */
static int comment_firsts(struct heap_enable *h, struct err *e)
{
	const struct first_samples *f = &h->firsts;
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

	ret = prof_comment(h->prof, e, "window: %.3f s", seconds(h->base_ns, h->last_ns));
	if (!ret)
		ret = prof_comment(h->prof, e, "rate: one sample in %lld bytes",
				   (long long)rate_of(h));
	if (!ret)
		ret = enable_comment(&h->x, h->prof, e);
	if (!ret)
		ret = prof_comment(h->prof, e, "hits: %llu samples in %zu buckets",
				   (unsigned long long)s->samples, s->gained.n);
	if (!ret)
		ret = comment_firsts(h, e);
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
	ret = subject_prof(h->s, "enable (the runtime's own sampler, switched on for the window)",
			   &h->prof, e);
	if (!ret)
		ret = add_types(&s, e);
	if (!ret)
		ret = comments(&s, e);
	if (!ret)
		ret = heap_read_samples(h->s, &s.gained, h->prof, estimate, &s, e);
	if (!ret)
		prof_set_time(h->prof, h->base_unix_ns, (int64_t)(h->last_ns - h->base_ns));
	return ret;
}

int heap_enable_stop(struct heap_enable *h, struct prof **out, struct err *e)
{
	struct err why = { "" };
	bool over = h->over;
	int ret;

	if (!over && read_more(h, &why) && !h->last_ns)
		say(&h->o, "heap: %s", why.msg);
	over |= h->over;
	step(h, "asking process %d to restore runtime.MemProfileRate", guardian_pid(h->g));
	enable_end(&h->x, h->g, &h->o);
	if (!h->last_ns)
		return err_set(e, -ESRCH,
			       "the window was over before anything could be read of it");
	ret = make_profile(h, e);
	if (ret)
		return ret;
	if (over)
		prof_loss(h->prof)->n[LOSS_WINDOW_CUT] = 1;
	*out = TAKE(h->prof);
	return 0;
}
