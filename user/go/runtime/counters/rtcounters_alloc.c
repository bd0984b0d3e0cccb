/*
 * user/go/runtime/counters/rtcounters_alloc.c - allocations by size class, while the target goes on allocating.
 *
 * One look is two calls: the first reads heapStats and the caches of all Ps, the second the spans
 * that were in these caches and heapStats again. The program may do this meanwhile:
 * 	- an allocation makes one span's count larger. It is in the count or it is not, and both
 * 	  were true at some instant;
 * 	- a refill moves a full span's count to heapStats. In the cache such a span is marked as
 * 	  cached (sweepgen + 3, or + 1 until it is swept) until just before its count is moved, so
 * 	  a span that is not marked counts nothing here. What was moved between the two looks at
 * 	  heapStats is the difference between them: half of it is added, and the error is at most
 * 	  that half. A full span that is no longer marked is in a refill that is under way: whether
 * 	  it was moved already cannot be told, so it is slack;
 * 	- the flush of a cache (at a GC's end, and when the world is stopped to read statistics)
 * 	  moves counts in another order. It shows in mcache.flushGen and sched.gcwaiting, and the
 * 	  look is repeated; if that does not help, all that may have been moved is slack;
 * 	- runtime/metrics rotates the three generations of heapStats: generation gen + 1 is then not
 * 	  empty until that is done. Of two copies taken in a row, the second of which holds, not both
 * 	  can have been taken during the rotation (see steady()).
 * Source: runtime/mcache.go, mcentral.go (uncacheSpan), mstats.go (read), Go 1.16 to 1.27.
 */
#include <time.h>

#include "base/limits.h"
#include "go/runtime/counters/rtcounters_priv.h"

enum {
	TRIES = 6,
	PAUSE_NS = 50000,
	SPAN_BYTES = 160, /* bytes of one span that are looked at, at most */
	CACHE_BYTES = 4096,
	STATS_BYTES = 8192,
	TINY_CLASS = 5, /* tinySpanClass */
	SPANS_SINCE = 19,
	/* objects for each P: with less slack than this, no further look is taken */
	GOOD_SLACK = 256,
};

#define COUNT_MAX (1ull << 56)

/*
 * ---- what must be known -----------------------------------------------------------------------
 */

static const enum layout_field needed[] = {
	LAYOUT_mstats_heapstats,
	LAYOUT_heapstats_stats,
	LAYOUT_heapstats_gen,
	LAYOUT_heapdelta_sizeof,
	LAYOUT_heapdelta_largealloc,
	LAYOUT_heapdelta_largealloccount,
	LAYOUT_heapdelta_smallalloccount,
	LAYOUT_heapdelta_smallfreecount,
	LAYOUT_mheap_sweepgen,
	LAYOUT_p_mcache,
	LAYOUT_mcache_alloc,
	LAYOUT_mcache_flushgen,
	LAYOUT_mcache_tinyallocs,
	LAYOUT_mspan_sweepgen,
	LAYOUT_mspan_alloccount,
	LAYOUT_mspan_spanclass,
	LAYOUT_mspan_nelems,
	LAYOUT_mspan_elemsize,
};

static uint32_t at_least(uint32_t have, int32_t off, uint32_t size)
{
	return (uint32_t)off + size > have ? (uint32_t)off + size : have;
}

static void span_extent(struct rtcounters *c)
{
	const int32_t *o = c->off;
	uint32_t hi = 0, lo = UINT32_MAX;
	const struct {
		int32_t off;
		uint32_t size;
	} f[] = { { o[LAYOUT_mspan_sweepgen], 4 },  { o[LAYOUT_mspan_alloccount], 2 },
		  { o[LAYOUT_mspan_spanclass], 1 }, { o[LAYOUT_mspan_nelems], 8 },
		  { o[LAYOUT_mspan_elemsize], 8 },  { o[LAYOUT_mspan_countbeforecache], 2 } };

	for (size_t i = 0; i < ARRAY_LEN(f); i++) {
		if (f[i].off < 0)
			continue;
		hi = at_least(hi, f[i].off, f[i].size);
		lo = (uint32_t)f[i].off < lo ? (uint32_t)f[i].off : lo;
	}
	c->span_lo = lo;
	c->span_n = hi - lo;
}

static void cache_extent(struct rtcounters *c)
{
	int32_t tiny = c->off[LAYOUT_mcache_tinyallocs], alloc = c->off[LAYOUT_mcache_alloc];
	int32_t gen = c->off[LAYOUT_mcache_flushgen], lo = tiny < alloc ? tiny : alloc;
	uint32_t hi = at_least(0, alloc, 8 * rtc_spanclasses(c));

	lo = gen < lo ? gen : lo;
	hi = at_least(hi, tiny, 8);
	hi = at_least(hi, gen, 4);
	c->cache_lo = (uint32_t)lo;
	c->cache_n = hi - c->cache_lo;
}

/* The sentence that says why there are no counters, or NULL. */
static const char *unknown(struct rtcounters *c)
{
	const int32_t *o = c->off;
	int32_t delta = o[LAYOUT_heapdelta_sizeof], gen = o[LAYOUT_heapstats_gen];
	int32_t counts = (int32_t)(8 * (c->classes.n + 1));

	if (!c->v.memstats || !c->v.mheap || !c->v.allp)
		return "a variable of the runtime was not found";
	if (!c->classes.n || c->classes.n >= SIZECLASS_MAX)
		return "the size classes are not known";
	for (size_t i = 0; i < ARRAY_LEN(needed); i++)
		if (o[needed[i]] < 0)
			return layout_field_name(needed[i]);
	if (c->v.minor >= SPANS_SINCE && !rtc_only_grow(c))
		return layout_field_name(LAYOUT_mspan_countbeforecache);
	if (o[LAYOUT_heapstats_stats] || delta % 8 || gen != 3 * delta || gen > STATS_BYTES - 8 ||
	    o[LAYOUT_heapdelta_smallalloccount] + counts > delta ||
	    o[LAYOUT_heapdelta_smallfreecount] + counts > delta ||
	    o[LAYOUT_heapdelta_largealloc] + 8 > delta ||
	    o[LAYOUT_heapdelta_largealloccount] + 8 > delta ||
	    o[LAYOUT_heapdelta_tinyalloccount] + 8 > delta)
		return "heapStats has another shape";
	span_extent(c);
	cache_extent(c);
	if (c->span_n > SPAN_BYTES || c->cache_n > CACHE_BYTES)
		return "spans or caches have another shape";
	c->stats_n = (size_t)gen + 4;
	return NULL;
}

void rtc_alloc_init(struct rtcounters *c)
{
	const char *why = unknown(c);

	if (why)
		c->no_allocs = err_set(&c->why_allocs, -ENOTSUP,
				       "the runtime's own count of allocations: %s", why);
}

void rtcounters_rest(struct rtcounters *c)
{
	rtc_forget_ps(c);
	vec_fini(&c->pieces);
}

/* What one reading copies is not kept: of 200 processes that would be 4 MB. */
static void forget_copies(struct rtcounters *c)
{
	free(TAKE(c->stats));
	free(TAKE(c->spans));
	c->spans_cap = 0;
	vec_fini(&c->refs);
}

/* ---- heapStats -------------------------------------------------------------------------------- */

static uint64_t delta_word(const struct rtcounters *c, int copy, unsigned gen, uint32_t off)
{
	uint64_t v;

	memcpy(&v,
	       c->stats + (size_t)copy * c->stats_n +
		       (size_t)gen * (size_t)c->off[LAYOUT_heapdelta_sizeof] + off,
	       sizeof(v));
	return v;
}

static uint32_t gen_of(const struct rtcounters *c, int copy)
{
	uint32_t v;

	memcpy(&v, c->stats + (size_t)copy * c->stats_n + c->off[LAYOUT_heapstats_gen], sizeof(v));
	return v;
}

static bool next_is_empty(const struct rtcounters *c, int copy)
{
	unsigned next = (gen_of(c, copy) + 1) % 3;

	for (uint32_t at = 0; at + 8 <= (uint32_t)c->off[LAYOUT_heapdelta_sizeof]; at += 8)
		if (delta_word(c, copy, next, at))
			return false;
	return true;
}

/*
 * Was heapStats at rest in the second of two copies, of which the first was taken just before it?
 * When generation gen + 1 was empty in the first copy, all of it had been added to another
 * generation before, and the second copy saw that. No rotation began until then, as gen is the
 * same.
 */
static bool steady(const struct rtcounters *c, int which)
{
	int first = 2 * which;

	return gen_of(c, first) < 3 && gen_of(c, first) == gen_of(c, first + 1) &&
	       next_is_empty(c, first) && next_is_empty(c, first + 1);
}

/* The sum over the generations; a single one may be negative. */
static uint64_t stat(const struct rtcounters *c, int which, uint32_t off)
{
	uint64_t sum = 0;

	for (unsigned gen = 0; gen < 3; gen++)
		sum += delta_word(c, 2 * which + 1, gen, off);
	return sum;
}

/* ---- adding up -------------------------------------------------------------------------------- */

struct span {
	uint32_t sweepgen, spanclass;
	uint64_t used, left; /* slots: used since the span entered the cache; still free */
	bool full, whole;    /* whole: no slot was used when it entered */
	bool odd;	     /* it contradicts itself or its place */
};

static uint64_t field(const uint8_t *span, const struct rtcounters *c, enum layout_field f,
		      size_t n)
{
	uint64_t v = 0;

	memcpy(&v, span + ((uint32_t)c->off[f] - c->span_lo), n);
	return v;
}

static struct span span_of(const struct rtcounters *c, const struct rtc_ref *r)
{
	const uint8_t *at = c->spans + r->at;
	size_t width = c->v.minor >= 0 && c->v.minor < 22 ? 8 : 2;
	uint64_t count = field(at, c, LAYOUT_mspan_alloccount, 2);
	uint64_t n = field(at, c, LAYOUT_mspan_nelems, width);
	uint64_t before = rtc_only_grow(c) ? field(at, c, LAYOUT_mspan_countbeforecache, 2) : 0;
	struct span s = { .sweepgen = (uint32_t)field(at, c, LAYOUT_mspan_sweepgen, 4),
			  .spanclass = (uint32_t)field(at, c, LAYOUT_mspan_spanclass, 1),
			  .full = count == n,
			  .whole = !before };

	s.odd = s.spanclass != r->spanclass || count > n || before > count ||
		field(at, c, LAYOUT_mspan_elemsize, 8) != c->classes.size[r->spanclass / 2 - 1];
	if (!s.odd) {
		s.used = count - before;
		s.left = n - count;
	}
	return s;
}

struct sums {
	int64_t cached[SIZECLASS_MAX + 1]; /* to be added to heapStats */
	uint64_t slack[SIZECLASS_MAX + 1];
	uint64_t tiny_slack;
	uint64_t odd, loose, spans; /* loose: spans in a cache that are not marked as cached */
};

static bool p_settled(const struct rtcounters *c, const struct rtc_look *k, size_t p)
{
	uint32_t gen = rtc_flushgen(c, p);

	if (!rtc_only_grow(c) && c->ps[p].flushgen0 != gen)
		return false;
	return k->settled && gen == k->sweepgen[0] && gen == k->sweepgen[1];
}

static void add_span(const struct rtcounters *c, const struct rtc_look *k, const struct rtc_ref *r,
		     struct sums *to)
{
	struct span s = span_of(c, r);
	uint32_t class = r->spanclass / 2, off = s.sweepgen - k->sweepgen[1];
	bool cached = off == 1 || off == 3, settled = p_settled(c, k, r->p);

	to->spans++;
	to->odd += s.odd && cached;
	to->loose += !cached;
	if (s.odd)
		return;
	if (!cached && !s.full)
		return;
	if (!cached) { /* the P is in the middle of a refill */
		to->slack[class] += rtc_only_grow(c) ? s.used : s.used + s.left;
		if (r->spanclass == TINY_CLASS)
			to->tiny_slack +=
				rtc_cache_word(c, r->p, (uint32_t)c->off[LAYOUT_mcache_tinyallocs]);
		return;
	}
	to->cached[class] += rtc_only_grow(c) ? (int64_t)s.used : -(int64_t)s.left;
	if (!settled)
		to->slack[class] += !rtc_only_grow(c) ? s.left : s.whole ? s.used : 0;
}

static int bad(struct err *e, const char *what, uint32_t class, uint64_t v)
{
	return err_set(e, -EBADMSG,
		       "the runtime's own count of allocations: %s of size class %u: 0x%llx", what,
		       class, (unsigned long long)v);
}

static int add_class(const struct rtcounters *c, const struct sums *s, uint32_t class,
		     struct rtalloc_counts *out, struct err *e)
{
	uint32_t at = (uint32_t)c->off[LAYOUT_heapdelta_smallalloccount] + 8 * class;
	uint64_t first = stat(c, 0, at), moved = stat(c, 1, at) - first;
	uint64_t freed = stat(c, 0, (uint32_t)c->off[LAYOUT_heapdelta_smallfreecount] + 8 * class);
	/* Up to go1.18 the second look may show less than the first. */
	int64_t half = (int64_t)moved / 2;
	uint64_t n = first + (uint64_t)s->cached[class] + (uint64_t)half;
	uint64_t slack = s->slack[class] + (moved >> 63 ? -moved : moved) / 2 + (moved & 1);

	if (n >> 63 && -n <= slack)
		n = 0;
	if (n >= COUNT_MAX || slack >= COUNT_MAX)
		return bad(e, "the objects", class, n);
	if (freed > n + slack)
		return bad(e, "more objects were freed than allocated", class, freed);
	out->small[class] = n;
	out->slack[class] = slack;
	return 0;
}

static int add_large(const struct rtcounters *c, struct rtalloc_counts *out, struct err *e)
{
	out->large = stat(c, 1, (uint32_t)c->off[LAYOUT_heapdelta_largealloccount]);
	out->large_bytes = stat(c, 1, (uint32_t)c->off[LAYOUT_heapdelta_largealloc]);
	if (out->large >= COUNT_MAX || out->large_bytes >= COUNT_MAX)
		return bad(e, "the objects", 0, out->large);
	return 0;
}

static int add_tiny(const struct rtcounters *c, const struct rtc_look *k, const struct sums *s,
		    struct rtalloc_counts *out, struct err *e)
{
	int32_t at = c->off[LAYOUT_heapdelta_tinyalloccount];
	uint64_t first, moved;

	if (at < 0)
		return 0;
	first = stat(c, 0, (uint32_t)at);
	moved = stat(c, 1, (uint32_t)at) - first;
	out->tiny = first;
	out->tiny_slack = s->tiny_slack + moved;
	for (size_t p = 0; p < c->np; p++) {
		uint64_t n = rtc_cache_word(c, p, c->off[LAYOUT_mcache_tinyallocs]);

		if (n >= COUNT_MAX)
			return bad(e, "tiny allocations", 2, n);
		out->tiny += n;
		out->tiny_slack += p_settled(c, k, p) ? 0 : n;
	}
	if (out->tiny >= COUNT_MAX || out->tiny_slack >= COUNT_MAX)
		return bad(e, "tiny allocations", 2, out->tiny);
	return 0;
}

static bool all_settled(const struct rtcounters *c, const struct rtc_look *k)
{
	for (size_t i = 0; i < c->np; i++)
		if (!p_settled(c, k, i))
			return false;
	return k->settled;
}

/*
 * Are these caches and spans at all? In a Go that nobody has seen yet the offsets may be
 * different. A span may have been given back and used for other objects since it was seen in a
 * cache, but not most spans. And when no cache is being flushed, and nothing was moved to
 * heapStats, each P can be in only one refill.
 */
static int check_look(const struct rtcounters *c, const struct rtc_look *k, const struct sums *s,
		      struct err *e)
{
	static const char what[] = "the runtime's own count of allocations";
	bool moved = memcmp(c->stats + c->stats_n, c->stats + 3 * c->stats_n, c->stats_n) != 0;

	for (size_t i = 0; i < c->np; i++) {
		uint32_t behind = k->sweepgen[1] - rtc_flushgen(c, i);

		if (behind > 4 || behind % 2)
			return err_set(e, -EBADMSG,
				       "%s: the cache of P %zu was flushed at %u, and the sweep is "
				       "at %u",
				       what, i, rtc_flushgen(c, i), k->sweepgen[1]);
	}
	if (s->odd * 2 > s->spans ||
	    (s->loose > c->np && all_settled(c, k) && (!moved || s->loose * 2 > s->spans)))
		return err_set(e, -EBADMSG,
			       "%s: of the %llu spans in caches %llu are none, and %llu not cached",
			       what, (unsigned long long)s->spans, (unsigned long long)s->odd,
			       (unsigned long long)s->loose);
	return 0;
}

static int add_up(const struct rtcounters *c, const struct rtc_look *k, struct rtalloc_counts *out,
		  struct err *e)
{
	struct rtalloc_counts n = { .n = c->classes.n + 1, .sweepgen = k->sweepgen[1] };
	struct sums s = { .odd = 0 };
	int ret;

	for (size_t i = 0; i < c->refs.n; i++)
		add_span(c, k, &c->refs.at[i], &s);
	ret = check_look(c, k, &s, e);
	if (!ret)
		ret = add_large(c, &n, e);
	if (!ret)
		ret = add_tiny(c, k, &s, &n, e);
	for (uint32_t class = 1; !ret && class < n.n; class ++)
		ret = add_class(c, &s, class, &n, e);
	if (!ret)
		*out = n;
	return ret;
}

/*
 * ---- repeated until it holds ------------------------------------------------------------------
 */

static int look_once(struct rtcounters *c, struct rtc_look *k, struct rtalloc_counts *out,
		     struct err *e)
{
	int ret = rtc_read_caches(c, k, e);

	if (!ret)
		ret = rtc_read_spans(c, k, e);
	if (ret)
		return ret;
	if (!steady(c, 0) || !steady(c, 1))
		return rtc_again(e, "the program is adding it up itself");
	k->settled = !k->gcwaiting[0] && !k->gcwaiting[1];
	ret = add_up(c, k, out, e);
	k->settled = all_settled(c, k);
	if (!k->settled)
		c->looks = 0; /* a cache that no longer belongs to a P is not flushed either */
	/* In that Go a flush takes away what a refill adds, so how much moved cannot be told. */
	if (!ret && !k->settled && !rtc_only_grow(c))
		return rtc_again(e, "a GC is under way");
	return ret;
}

static uint64_t slack_of(const struct rtalloc_counts *n)
{
	uint64_t sum = 0;

	for (uint32_t class = 1; class < n->n; class ++)
		sum += n->slack[class];
	return sum;
}

static void pause_briefly(void)
{
	struct timespec t = { .tv_nsec = PAUSE_NS };

	nanosleep(&t, NULL);
}

static int best_look(struct rtcounters *c, struct rtalloc_counts *out, struct err *e)
{
	struct rtalloc_counts best = { .n = 0 }, n;
	uint64_t slack;
	int ret = -EAGAIN;

	for (uint32_t i = 1; i <= TRIES; i++) {
		struct rtc_look k = { .settled = false };

		if (i > 1)
			pause_briefly();
		ret = look_once(c, &k, &n, e);
		if (ret == -ESRCH || ret == -ENOMEM || ret == -EPERM)
			return ret;
		if (ret) {
			rtc_forget_ps(c);
			continue;
		}
		n.tries = i;
		slack = slack_of(&n);
		if (!best.n || slack <= slack_of(&best))
			best = n;
		if (k.settled && slack <= GOOD_SLACK * c->np)
			break;
	}
	if (!best.n)
		return ret;
	*out = best;
	return 0;
}

int rtcounters_allocs(struct rtcounters *c, struct rtalloc_counts *out, struct err *e)
{
	int ret;

	if (c->no_allocs)
		return err_set(e, c->no_allocs, "%s", c->why_allocs.msg);
	c->stats = malloc(RTC_STATS * c->stats_n);
	if (!c->stats)
		return err_set(e, -ENOMEM, "no memory for the runtime's counters");
	ret = best_look(c, out, e);
	forget_copies(c);
	return ret;
}
