/* user/ingest/heapdump/graph/sites.c - buckets become samples of a profile, whose values come last. */
#include "ingest/heapdump/graph/sites.h"

#include <math.h>
#include <string.h>

#include "base/limits.h"
#include "base/map.h"
#include "base/vec.h"
#include "ingest/heapdump/graph/slots.h"
#include "profile/scale.h"

/* Standard deviations: chance goes beyond them in one dump of 30,000. */
#define CHANCE 4
/* So many times the rate are allocated without a sample in one program of 20,000 (exp(-10)). */
#define UNSAMPLED 10

enum { ALLOC_OBJECTS, ALLOC_BYTES, INUSE_OBJECTS, INUSE_BYTES, VALUES };

struct site {
	uint64_t size, allocs, frees, live;
	uint32_t sample; /* of the profile: sites that differ in hidden frames alone share one */
};

struct dumpsites {
	struct prof *prof;
	VEC(struct site) sites;
	struct map by_bucket;
	unsigned minor;
	uint64_t live, last_gc_ns, heap;
	uint64_t own; /* sites that are not of the runtime's start */
	int64_t rate;
	bool whole;
	double inuse, variance;	    /* of the estimate in bytes, and in their square */
	uint64_t too_many, unknown; /* sites without room; samples of no site */
	/* What is left of the bounds on memory. */
	size_t frames_left, text_left;
	VEC(uint32_t) locs;
};

static int no_memory(struct err *e)
{
	return err_set(e, -ENOMEM, "no memory for allocation sites");
}

int dumpsites_new(struct dumpsites **out, struct err *e)
{
	static const char *const types[VALUES][2] = { { "alloc_objects", "count" },
						      { "alloc_space", "bytes" },
						      { "inuse_objects", "count" },
						      { "inuse_space", "bytes" } };
	CLEANUP(dumpsites_freep) struct dumpsites *s = calloc(1, sizeof(*s));
	int ret = s ? prof_new(&s->prof, e) : no_memory(e);

	for (size_t i = 0; !ret && i < VALUES; i++)
		ret = prof_add_type(s->prof, types[i][0], types[i][1], e);
	if (ret)
		return ret;
	s->frames_left = LIMIT_DUMP_FRAMES;
	s->text_left = LIMIT_DUMP_TEXT;
	*out = TAKE(s);
	return 0;
}

void dumpsites_free(struct dumpsites *s)
{
	prof_free(s->prof);
	map_fini(&s->by_bucket);
	vec_fini(&s->sites);
	vec_fini(&s->locs);
	free(s);
}

/* ---- stacks ---- */

static bool begins(const struct heapdump_text *t, const char *with)
{
	return t->len >= strlen(with) && !memcmp(t->at, with, strlen(with));
}

/* A version that is not told is treated as newer than any we know. */
static bool is_hidden(const struct dumpsites *s, const struct heapdump_line *l)
{
	return begins(&l->func, "runtime.") ||
	       ((!s->minor || s->minor >= 24) && begins(&l->func, "internal/runtime/"));
}

/* The innermost frames of the runtime are hidden, unless nothing remains. */
static size_t hidden(const struct dumpsites *s, const struct heapdump_memprof *m)
{
	for (size_t i = 0; i < m->nlines; i++)
		if (!is_hidden(s, &m->lines[i]))
			return i;
	return 0;
}

/* Each goroutine begins in goexit, which Go's profiles leave out. */
static size_t shown(const struct heapdump_memprof *m)
{
	static const char root[] = "runtime.goexit";
	const struct heapdump_text *last = m->nlines > 1 ? &m->lines[m->nlines - 1].func : NULL;
	bool drop = last && last->len == sizeof(root) - 1 && begins(last, root);

	return m->nlines - drop;
}

static int add_location(struct dumpsites *s, const struct heapdump_line *l, struct err *e)
{
	char func[LIMIT_NAME + 1], file[LIMIT_NAME + 1];
	struct prof_line line = { .func = func, .file = file, .line = (int64_t)l->line };
	size_t before = prof_nlocations(s->prof);
	uint32_t *to;
	int id;

	snprintf(func, sizeof(func), "%.*s", (int)l->func.len, l->func.at);
	snprintf(file, sizeof(file), "%.*s", (int)l->file.len, l->file.at);
	id = prof_location(s->prof, 0, 0, &line, 1, e);
	if (id < 0)
		return id;
	if (prof_nlocations(s->prof) > before) {
		size_t text = l->func.len + l->file.len + LIMIT_DUMP_LOCATION;

		s->text_left -= text < s->text_left ? text : s->text_left;
	}
	to = vec_add(&s->locs, LIMIT_BUCKET_STACK);
	if (!to)
		return no_memory(e);
	*to = (uint32_t)id;
	s->frames_left -= s->frames_left > 0;
	return 0;
}

static int add_sample(struct dumpsites *s, const struct heapdump_memprof *m, struct err *e)
{
	struct prof_label label = { .key = "bytes", .num = (int64_t)m->size };
	const int64_t none[VALUES] = { 0 };
	size_t end = shown(m);
	int ret = 0;

	s->locs.n = 0;
	for (size_t i = hidden(s, m); !ret && i < end; i++)
		ret = add_location(s, &m->lines[i], e);
	return ret ? ret :
		     prof_sample(s->prof, s->locs.at, s->locs.n, none, &label, label.num != 0, e);
}

/* The runtime's start is the only code that no goroutine runs. */
static bool is_start(const struct heapdump_memprof *m)
{
	static const char root[] = "runtime.rt0_go";
	const struct heapdump_text *last = m->nlines ? &m->lines[m->nlines - 1].func : NULL;

	return last && last->len == sizeof(root) - 1 && begins(last, root);
}

static int add_site(struct dumpsites *s, const struct heapdump_memprof *m, struct err *e)
{
	struct site *site;
	int ret;

	s->own += !is_start(m);
	if (!s->text_left || s->frames_left < m->nlines || s->sites.n == LIMIT_DUMP_SITES) {
		s->too_many++;
		return 0;
	}
	ret = add_sample(s, m, e);
	if (ret)
		return ret;
	site = vec_add(&s->sites, LIMIT_DUMP_SITES);
	if (!site || !map_put(&s->by_bucket, m->bucket, s->sites.n - 1))
		return no_memory(e);
	*site = (struct site){ .size = m->size,
			       .allocs = m->allocs,
			       .frees = m->frees,
			       .sample = (uint32_t)prof_last(s->prof) };
	return 0;
}

/* ---- records ---- */

int dumpsites_record(struct dumpsites *s, const struct heapdump *d, const struct heapdump_record *r,
		     struct err *e)
{
	uint64_t at;

	switch (r->kind) {
	case HEAPDUMP_PARAMS:
		s->minor = dumpslots_go(heapdump_params(d));
		return 0;
	case HEAPDUMP_MEMSTATS:
		s->last_gc_ns = r->memstats.last_gc;
		s->heap = r->memstats.alloc;
		return 0;
	case HEAPDUMP_MEMPROF:
		return add_site(s, &r->memprof, e);
	case HEAPDUMP_SAMPLE:
		s->live++;
		if (map_get(&s->by_bucket, r->sample.bucket, &at))
			s->sites.at[at].live++;
		else
			s->unknown++;
		return 0;
	default:
		return 0;
	}
}

int dumpsites_read(struct dumpsites *s, struct heapdump *d, struct err *e)
{
	struct heapdump_record r;
	int ret = 0;

	while (!ret && !(ret = heapdump_next_other(d, &r, e)) && r.kind)
		ret = dumpsites_record(s, d, &r, e);
	return ret;
}

size_t dumpsites_count(const struct dumpsites *s)
{
	return s->sites.n;
}

uint64_t dumpsites_live(const struct dumpsites *s)
{
	return s->live;
}

/* ---- the profile ---- */

struct values {
	int64_t (*at)[VALUES]; /* by sample of the profile */
	size_t next;
};

static int64_t add(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* Numbers of a file: what cannot be a number of objects becomes the largest one. */
static int64_t bounded(uint64_t v)
{
	return v < INT64_MAX ? (int64_t)v : INT64_MAX;
}

static uint64_t allocations(const struct site *s)
{
	uint64_t seen = s->frees + s->live;

	return seen >= s->frees && seen > s->allocs ? seen : s->allocs;
}

/*
 * A sample of an object that is seen with probability p stands for 1 / p of them: the variance of
 * their sum is that of each, added up.
 */
static void add_estimate(struct dumpsites *s, const struct site *site, int64_t rate)
{
	double live = (double)site->live, each = scale_heap_one(bounded(site->size), rate);
	double bytes = each * (double)site->size;

	s->inuse += live * bytes;
	s->variance += live * bytes * bytes * (1 - 1 / each);
}

static void add_values(int64_t to[VALUES], const struct site *s, int64_t rate)
{
	int64_t size = bounded(s->size);
	struct scaled alloc = scale_heap(bounded(allocations(s)), 0, size, rate);
	struct scaled inuse = scale_heap(bounded(s->live), 0, size, rate);

	to[ALLOC_OBJECTS] = add(to[ALLOC_OBJECTS], alloc.objects);
	to[ALLOC_BYTES] = add(to[ALLOC_BYTES], alloc.bytes);
	to[INUSE_OBJECTS] = add(to[INUSE_OBJECTS], inuse.objects);
	to[INUSE_BYTES] = add(to[INUSE_BYTES], inuse.bytes);
}

static void set_values(void *arg, int64_t *values)
{
	struct values *v = arg;

	memcpy(values, v->at[v->next++], sizeof(*v->at));
}

static int fill(struct dumpsites *s, int64_t rate, struct err *e)
{
	size_t n = prof_nsamples(s->prof);
	CLEANUP(freep) int64_t(*at)[VALUES] = calloc(n + 1, sizeof(*at));
	struct values v = { .at = at };

	if (!at)
		return no_memory(e);
	s->inuse = s->variance = 0;
	for (size_t i = 0; i < s->sites.n; i++) {
		add_values(at[s->sites.at[i].sample], &s->sites.at[i], rate);
		add_estimate(s, &s->sites.at[i], rate);
	}
	prof_each_sample(s->prof, set_values, &v);
	return 0;
}

/*
 * An object of n bytes is seen with p = 1 - exp(-n / rate), so the variance of its estimate, n / p or 0, is
 * n * n * (1 - p) / p, which is at most n times the rate.
 */
static bool too_low(const struct dumpsites *s)
{
	double heap = (double)s->heap;

	return s->whole && !s->too_many && !s->unknown &&
	       s->inuse + CHANCE * sqrt(heap * (double)s->rate) < heap / 2;
}

struct dumpsites_check dumpsites_check(const struct dumpsites *s)
{
	struct dumpsites_check c = { .heap = s->heap };
	bool too_high = s->inuse - CHANCE * sqrt(s->variance) > (double)s->heap;

	c.inuse = s->inuse < 0x1p63 ? (uint64_t)s->inuse : INT64_MAX;
	c.none = s->whole && !s->own &&
		 (!s->sites.n || (double)s->heap > UNSAMPLED * (double)s->rate);
	c.wrong = s->heap && !c.none && (too_high || too_low(s));
	return c;
}

static int describe(struct dumpsites *s, int64_t rate, bool whole, struct err *e)
{
	struct dumpsites_check check = dumpsites_check(s);
	int ret = prof_set_period(s->prof, "space", "bytes", rate, e);

	prof_set_kind(s->prof, "heap");
	/* The only time in a dump. */
	prof_set_time(s->prof, bounded(s->last_gc_ns), 0);
	prof_loss(s->prof)->n[LOSS_STACKS_MANY] += s->too_many;
	prof_loss(s->prof)->n[LOSS_BUCKETS_SKIPPED] += s->too_many ? 0 : s->unknown;
	if (!ret)
		ret = prof_comment(s->prof, e,
				   "window: in use at the moment of a heap dump; allocated since "
				   "the program started, as of the garbage collection before it");
	if (!ret)
		ret = prof_comment(s->prof, e,
				   "rate: one sample in %lld bytes is assumed: a heap dump does "
				   "not tell it",
				   (long long)rate);
	if (!ret && check.wrong)
		ret = prof_comment(s->prof, e,
				   "rate: it was another one: %llu bytes would be in use of a heap "
				   "of %llu",
				   (unsigned long long)check.inuse, (unsigned long long)check.heap);
	if (!ret && check.none)
		ret = prof_comment(
			s->prof, e,
			"the program keeps no memory profile: MemProfileRate is 0, or nothing of "
			"runtime/pprof is linked");
	if (!ret)
		ret = prof_comment(s->prof, e, "hits: %zu sites, %llu live samples", s->sites.n,
				   (unsigned long long)s->live);
	if (!ret && !whole)
		ret = prof_comment(s->prof, e,
				   "the dump is damaged or cut: live samples of some "
				   "sites, or sites, are missing");
	return ret;
}

int dumpsites_profile(struct dumpsites *s, int64_t rate, bool whole, struct prof **out,
		      struct err *e)
{
	int ret = fill(s, rate, e);

	s->rate = rate;
	s->whole = whole;
	if (!ret)
		ret = describe(s, rate, whole, e);
	if (!ret)
		*out = TAKE(s->prof);
	return ret;
}
