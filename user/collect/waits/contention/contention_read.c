/*
 * user/collect/waits/contention/contention_read.c - turns block and mutex buckets into samples, as runtime/pprof
 * does it.
 */
#include "collect/waits/contention/contention_read.h"

#include "subject/verify.h"
#include "symbolize/subject_logical.h"
#include "target/environ.h"

enum {
	PHYSICAL_SINCE = 23, /* since this version buckets hold physical pcs */
	/* since this version mutex buckets hold what the sampled contentions stand for */
	PRESCALED_SINCE = 20,
	UNBIASED_SINCE = 17, /* and block buckets since this one; their count is a float */
	DEPTH_DEFAULT = 128, /* of debug.profstackdepth, runtime/runtime1.go */
	DEPTH_MAX = 1024,    /* maxProfStackDepth, runtime/mprof.go */
};

static const struct {
	const char *name, *rate_name;
	enum bucket_kind bucket;
	enum rtvar buckets, rate;
} kinds[] = {
	[CONTENTION_BLOCK] = { "block", "runtime.blockprofilerate", BUCKET_BLOCK, RTVAR_BBUCKETS,
			       RTVAR_BLOCKPROFILERATE },
	[CONTENTION_MUTEX] = { "mutex", "runtime.mutexprofilerate", BUCKET_MUTEX, RTVAR_XBUCKETS,
			       RTVAR_MUTEXPROFILERATE },
};

static enum contention kind_of(const struct rtcontention_vars *v)
{
	return v->kind == BUCKET_MUTEX ? CONTENTION_MUTEX : CONTENTION_BLOCK;
}

const char *contention_name(enum contention c)
{
	return kinds[c].name;
}

const char *contention_rate_name(enum contention c)
{
	return kinds[c].rate_name;
}

enum rtvar contention_rate_var(enum contention c)
{
	return kinds[c].rate;
}

int contention_read_find(struct subject *s, enum contention c, struct rtcontention_vars *out,
			 struct err *e)
{
	struct rtcontention_vars v = { .kind = kinds[c].bucket,
				       .minor = gobin_info(s->bin)->minor };
	int ret = subject_rtvar(s, kinds[c].buckets, &v.buckets, e);

	if (!ret)
		ret = subject_rtvar(s, kinds[c].rate, &v.rate, e);
	if (ret)
		return err_wrap(e, ret, "pid %d: %s profile", s->target->pid, kinds[c].name);
	ret = verify_contention(s, v.kind, v.buckets, e);
	if (!ret)
		*out = v;
	return ret;
}

int contention_read_rate(struct subject *s, const struct rtcontention_vars *v, uint64_t *rate,
			 struct err *e)
{
	enum contention c = kind_of(v);
	int ret = rtvar_plausible(s->target->mem, &s->layout, v->minor, kinds[c].rate, v->rate, e);

	return ret ? ret : mem_u64(s->target->mem, v->rate, rate, e);
}

int contention_read_buckets(struct subject *s, const struct rtcontention_vars *v,
			    struct rtcontentions *out, struct err *e)
{
	int ret = verify_contention(s, v->kind, v->buckets, e);

	if (ret)
		return ret;
	ret = rtcontentions_read(s->target->mem, &s->layout, v, out, e);
	return ret ? err_wrap(e, ret, "pid %d", s->target->pid) : 0;
}

bool contention_scales_at_read(const struct rtcontention_vars *v)
{
	return v->kind == BUCKET_MUTEX && v->minor >= 0 && v->minor < PRESCALED_SINCE;
}

/* ---- values ---- */

/*
 * A double converted as Go's int64() does it, for values that are not negative; a value that does
 * not fit becomes the largest.
 */
static int64_t whole(double v)
{
	return v < 0x1p63 ? (int64_t)v : INT64_MAX;
}

/*
 * Values are truncated where Go truncates them: the count when it is read, the delay when it is
 * written. Since counts are floats, a count of 0 is shown as 1 in block profiles (a bucket that
 * is just being made).
 */
static void values_of(const struct rtcontention_vars *v, const struct rtcontention *b,
		      uint64_t rate, const struct ticks *t, int64_t *values)
{
	double ns = (double)b->cycles / (t->per_second / 1e9);
	int64_t count = whole(b->count);

	if (v->kind == BUCKET_BLOCK && !count && (v->minor < 0 || v->minor >= UNBIASED_SINCE))
		count = 1;
	if (contention_scales_at_read(v)) {
		ns *= (double)rate;
		count = whole((double)count * (double)rate);
	}
	values[0] = count;
	values[1] = whole(ns);
}

/* ---- stacks ---- */

/* As the runtime does: what is no number of 32 bits is ignored. Source: parsegodebug in runtime/runtime1.go, atoi32 in string.go, Go 1.27. */
static void take_depth(const char *value, long *depth)
{
	char *end;
	long n = strtol(value, &end, 10);

	if (*value >= '0' && *value <= '9' && (!*end || *end == ',') && n <= INT32_MAX)
		*depth = n;
}

/* GODEBUG=profstackdepth=N limits what is shown, as it limits what is recorded. */
static size_t depth_of(struct subject *s)
{
	char text[4096];
	const char *at = text;
	long depth = DEPTH_DEFAULT;

	if (target_environ(s->target, "GODEBUG", text, sizeof(text)))
		return DEPTH_DEFAULT;
	while (at) {
		if (!strncmp(at, "profstackdepth=", 15))
			take_depth(at + 15, &depth);
		at = strchr(at, ',');
		at += at != NULL;
	}
	return depth < DEPTH_MAX ? (size_t)depth : DEPTH_MAX;
}

struct stacks {
	struct logical *l;
	bool physical;
	size_t depth;
};

static int locations(struct stacks *k, const uint64_t *pcs, size_t n, const uint32_t **locs,
		     size_t *nlocs, struct err *e)
{
	int ret = 0;

	if (k->physical)
		ret = logical_callers(k->l, pcs, n, k->depth, &pcs, &n, e);
	return ret ? ret : logical_locations(k->l, pcs, n, locs, nlocs, e);
}

/* Sorts by cycles, most first: the order of two stacks can decide how the second one is folded. */
static int by_cycles(const void *a, const void *b)
{
	const struct rtcontention *const *x = a, *const *y = b;

	return (*x)->cycles > (*y)->cycles ? -1 : (*x)->cycles < (*y)->cycles;
}

int contention_add_samples(struct subject *s, const struct rtcontention_vars *v,
			   const struct rtcontentions *b, const struct ticks *t, struct prof *p,
			   struct err *e)
{
	CLEANUP(logical_freep) struct logical *l = NULL;
	CLEANUP(freep) const struct rtcontention **order = calloc(b->n + 1, sizeof(*order));
	struct stacks k = { .physical = v->minor < 0 || v->minor >= PHYSICAL_SINCE };
	int ret;

	if (!order)
		return err_set(e, -ENOMEM, "no memory for %zu buckets", b->n);
	for (size_t i = 0; i < b->n; i++)
		order[i] = &b->at[i];
	qsort(order, b->n, sizeof(*order), by_cycles);
	ret = subject_logical(s, p, &l, e);
	k.l = l;
	k.depth = k.physical ? depth_of(s) : 0;
	for (size_t i = 0; !ret && i < b->n; i++) {
		int64_t values[PROF_TYPES_MAX] = { 0 };
		const uint32_t *locs;
		size_t nlocs;

		values_of(v, order[i], b->rate, t, values);
		ret = locations(&k, b->pcs + order[i]->stk, order[i]->nstk, &locs, &nlocs, e);
		if (!ret)
			ret = prof_sample(p, locs, nlocs, values, NULL, 0, e);
	}
	prof_loss(p)->n[LOSS_BUCKETS_SKIPPED] += b->skipped;
	prof_loss(p)->n[LOSS_BUCKETS_TORN] += b->torn;
	return ret;
}

int contention_add_types(struct prof *p, struct err *e)
{
	int ret = prof_set_period(p, "contentions", "count", 1, e);

	if (!ret)
		ret = prof_add_type(p, "contentions", "count", e);
	return ret ? ret : prof_add_type(p, "delay", "nanoseconds", e);
}

/* ---- the whole ---- */

void contention_rate_text(enum contention c, uint64_t rate, const struct ticks *t,
			  char out[CONTENTION_RATE_TEXT])
{
	unsigned long long n = rate;

	if (!rate)
		snprintf(out, CONTENTION_RATE_TEXT, "none (%s is 0)", contention_rate_name(c));
	else if (rate == 1)
		snprintf(out, CONTENTION_RATE_TEXT, "every contention");
	else if (c == CONTENTION_MUTEX)
		snprintf(out, CONTENTION_RATE_TEXT, "one contention in %llu", n);
	else
		snprintf(out, CONTENTION_RATE_TEXT,
			 "waits of %.0f ns (%llu ticks), shorter ones in proportion",
			 (double)rate * 1e9 / t->per_second, n);
}

int contention_comment_bias(const struct rtcontention_vars *v, uint64_t rate, struct prof *p,
			    struct err *e)
{
	if (v->kind != BUCKET_BLOCK || v->minor < 0 || v->minor >= UNBIASED_SINCE || rate == 1)
		return 0;
	return prof_comment(p, e,
			    "Go 1.%d does not make up for waits that its rate left out: short ones "
			    "count for too little",
			    v->minor);
}

static int add_comments(const struct rtcontention_vars *v, const struct rtcontentions *b,
			const struct ticks *t, struct prof *p, struct err *e)
{
	char rate[CONTENTION_RATE_TEXT];
	int ret = prof_comment(p, e, "window: since the program started");

	contention_rate_text(kind_of(v), b->rate, t, rate);
	if (!ret && b->rate)
		ret = prof_comment(p, e, "rate: %s, by the program itself", rate);
	else if (!ret)
		ret = prof_comment(p, e, "rate: %s now; what is here was recorded before", rate);
	if (!ret)
		ret = contention_comment_bias(v, b->rate, p, e);
	if (!ret)
		ret = ticks_comment(t, p, e);
	if (!ret)
		ret = prof_comment(p, e, "hits: %zu buckets", b->n);
	return ret;
}

int contention_read_profile(struct subject *s, const struct rtcontention_vars *v, double measured,
			    struct prof *p, struct err *e)
{
	CLEANUP(rtcontentions_fini) struct rtcontentions b = { 0 };
	struct ticks t;
	int ret = contention_read_buckets(s, v, &b, e);

	if (ret)
		return ret;
	t = ticks_of(s, measured);
	ret = contention_add_types(p, e);
	if (!ret)
		ret = add_comments(v, &b, &t, p, e);
	if (!ret)
		ret = contention_add_samples(s, v, &b, &t, p, e);
	return ret;
}
