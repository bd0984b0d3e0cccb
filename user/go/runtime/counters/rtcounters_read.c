/*
 * user/go/runtime/counters/rtcounters_read.c - one look at the counters: the caches of all Ps, the spans in them,
 * and heapStats before and after, in as few calls and pieces as possible.
 */
#include "base/limits.h"
#include "go/runtime/counters/rtcounters_priv.h"

enum {
	/*
	 * Things that lie close together are read at once: a piece costs 0.35 us, a KiB of it 0.1
	 * us (Linux 6.18).
	 */
	RUN_BYTES = 16384,
	RUN_GAP = 2048,
	RECHECK = 16, /* after how many looks each P's pointer to its cache is read again */
};

void rtc_forget_ps(struct rtcounters *c)
{
	free(c->ps);
	free(c->allp_then);
	free(c->allp_now);
	free(c->caches);
	c->ps = NULL;
	c->allp_then = NULL;
	c->allp_now = NULL;
	c->caches = NULL;
	c->np = 0;
}

int rtc_again(struct err *e, const char *what)
{
	return err_set(e, -EAGAIN, "the runtime's own count of allocations: %s", what);
}

static int add_piece(struct rtcounters *c, uint64_t addr, void *buf, size_t n, struct err *e)
{
	struct mem_piece *p = vec_add(&c->pieces, SIZE_MAX);

	if (!p)
		return err_set(e, -ENOMEM, "no memory for %zu reads", c->pieces.n);
	*p = (struct mem_piece){ .addr = addr, .buf = buf, .n = n };
	return 0;
}

/* Reads all pieces, or says why not. */
static int read_pieces(struct rtcounters *c, struct err *e)
{
	int ret = mem_readv(c->m, c->pieces.at, c->pieces.n, e);

	for (size_t i = 0; !ret && i < c->pieces.n; i++)
		if (!c->pieces.at[i].ok)
			return err_set(e, -EFAULT,
				       "the runtime's own count of allocations: nothing to read at "
				       "0x%llx",
				       (unsigned long long)c->pieces.at[i].addr);
	return ret;
}

/* Adds the words that say whether caches are being flushed. */
static int add_flags(struct rtcounters *c, struct rtc_look *k, int which, struct err *e)
{
	int32_t waiting = c->off[LAYOUT_sched_gcwaiting];
	int ret = add_piece(c, c->v.mheap + (uint64_t)c->off[LAYOUT_mheap_sweepgen],
			    &k->sweepgen[which], 4, e);

	if (!ret && c->v.sched && waiting >= 0)
		ret = add_piece(c, c->v.sched + (uint64_t)waiting, &k->gcwaiting[which], 1, e);
	return ret;
}

/* Adds two copies of heapStats; the flags are read before everything else, and after it. */
static int add_stats(struct rtcounters *c, struct rtc_look *k, int which, struct err *e)
{
	uint64_t at = c->v.memstats + (uint64_t)c->off[LAYOUT_mstats_heapstats];
	int ret = which == 0 ? add_flags(c, k, which, e) : 0;

	for (int i = 0; !ret && i < 2; i++)
		ret = add_piece(c, at, c->stats + (size_t)(2 * which + i) * c->stats_n, c->stats_n,
				e);
	return !ret && which == 1 ? add_flags(c, k, which, e) : ret;
}

static int by_cache(const void *a, const void *b)
{
	const struct rtc_p *x = a, *y = b;

	return (x->mcache > y->mcache) - (x->mcache < y->mcache);
}

/*
 * The destination of things that are read in runs: the next run is [@lo, @lo + @n) in the target;
 * @at is how many bytes there are in all.
 */
struct piece_run {
	uint64_t first, end;
	size_t at, total;
};

static size_t run_place(struct piece_run *r, uint64_t lo, size_t n)
{
	size_t at;

	if (!r->total || lo - r->first > RUN_BYTES - n || lo > r->end + RUN_GAP || lo + n < lo) {
		r->first = lo;
		r->at = r->total;
	}
	at = r->at + (size_t)(lo - r->first);
	r->end = lo + n;
	r->total = at + n;
	return at;
}

/* Reads the pointers to each P and its cache, and decides where the cache's bytes go. */
static int read_ps(struct rtcounters *c, struct err *e)
{
	struct piece_run r = { .total = 0 };
	int ret = mem_read(c->m, c->allp[0], c->allp_then, 8 * c->np, e);

	for (size_t i = 0; !ret && i < c->np; i++) {
		c->ps[i].addr = c->allp_then[i];
		ret = mem_u64(c->m, c->ps[i].addr + (uint64_t)c->off[LAYOUT_p_mcache],
			      &c->ps[i].mcache, e);
	}
	if (ret)
		return ret;
	qsort(c->ps, c->np, sizeof(*c->ps), by_cache);
	for (size_t i = 0; i < c->np; i++)
		c->ps[i].at = run_place(&r, c->ps[i].mcache + c->cache_lo, c->cache_n);
	c->caches = malloc(r.total);
	return c->caches ? 0 : err_set(e, -ENOMEM, "no memory for the caches of %zu Ps", c->np);
}

/* Finds out which Ps there are. They change with GOMAXPROCS only. */
static int learn_ps(struct rtcounters *c, struct err *e)
{
	uint64_t s[3];
	int ret = mem_read(c->m, c->v.allp, s, sizeof(s), e);

	rtc_forget_ps(c);
	if (ret)
		return err_wrap(e, ret, "runtime.allp");
	if (!s[1])
		return rtc_again(e, "the program has no Ps yet");
	if (s[1] > s[2] || s[1] > LIMIT_PS)
		return err_set(e, s[1] > s[2] ? -EBADMSG : -E2BIG, "runtime.allp: %llu Ps",
			       (unsigned long long)s[1]);
	c->np = (size_t)s[1];
	c->ps = calloc(c->np, sizeof(*c->ps));
	c->allp_then = calloc(c->np, 8);
	c->allp_now = calloc(c->np, 8);
	memcpy(c->allp, s, sizeof(c->allp));
	if (!c->ps || !c->allp_then || !c->allp_now)
		ret = err_set(e, -ENOMEM, "no memory for %zu Ps", c->np);
	else
		ret = read_ps(c, e);
	if (ret)
		rtc_forget_ps(c);
	return ret ? err_wrap(e, ret, "runtime.allp") : 0;
}

/*
 * Where a flush lowers the counts and a refill raises them, what moved between two looks does not
 * show both. So no flush may be under way when the look begins.
 */
static int add_flushgens(struct rtcounters *c, struct err *e)
{
	int ret = 0;

	for (size_t i = 0; !ret && !rtc_only_grow(c) && i < c->np; i++)
		ret = add_piece(c, c->ps[i].mcache + (uint64_t)c->off[LAYOUT_mcache_flushgen],
				&c->ps[i].flushgen0, 4, e);
	return ret;
}

static int add_caches(struct rtcounters *c, struct rtc_look *k, struct err *e)
{
	int ret = add_piece(c, c->v.allp, k->allp, sizeof(k->allp), e);

	if (!ret)
		ret = add_piece(c, c->allp[0], c->allp_now, 8 * c->np, e);
	for (size_t i = 0; !ret && k->recheck && i < c->np; i++)
		ret = add_piece(c, c->ps[i].addr + (uint64_t)c->off[LAYOUT_p_mcache],
				&c->ps[i].mcache_now, 8, e);
	for (size_t i = 0, first = 0; !ret && i < c->np; i++) {
		const struct rtc_p *f = &c->ps[first], *p = &c->ps[i];

		if (i + 1 < c->np && p[1].at - f->at == p[1].mcache - f->mcache)
			continue;
		ret = add_piece(c, f->mcache + c->cache_lo, c->caches + f->at,
				p->at - f->at + c->cache_n, e);
		first = i + 1;
	}
	return ret;
}

static bool same_ps(const struct rtcounters *c, const struct rtc_look *k)
{
	if (k->allp[0] != c->allp[0] || k->allp[1] != c->np ||
	    memcmp(c->allp_now, c->allp_then, 8 * c->np) != 0)
		return false;
	for (size_t i = 0; k->recheck && i < c->np; i++)
		if (c->ps[i].mcache_now != c->ps[i].mcache)
			return false;
	return true;
}

uint64_t rtc_cache_word(const struct rtcounters *c, size_t p, int32_t off)
{
	uint64_t v;

	memcpy(&v, c->caches + c->ps[p].at + ((uint32_t)off - c->cache_lo), sizeof(v));
	return v;
}

uint32_t rtc_flushgen(const struct rtcounters *c, size_t p)
{
	uint32_t v;

	memcpy(&v,
	       c->caches + c->ps[p].at + ((uint32_t)c->off[LAYOUT_mcache_flushgen] - c->cache_lo),
	       sizeof(v));
	return v;
}

int rtc_read_caches(struct rtcounters *c, struct rtc_look *k, struct err *e)
{
	int ret = c->np ? 0 : learn_ps(c, e);

	if (ret)
		return ret;
	k->recheck = c->looks++ % RECHECK == 0;
	c->pieces.n = 0;
	ret = add_flushgens(c, e);
	if (!ret)
		ret = add_stats(c, k, 0, e);
	if (!ret)
		ret = add_caches(c, k, e);
	if (!ret)
		ret = read_pieces(c, e);
	if (!ret && !same_ps(c, k))
		ret = rtc_again(e, "the number of Ps changes");
	return ret;
}

static int by_addr(const void *a, const void *b)
{
	const struct rtc_ref *x = a, *y = b;

	return (x->addr > y->addr) - (x->addr < y->addr);
}

/* Lists the spans in all caches, each once. Class 0 is large objects: no cache holds one. */
static int list_spans(struct rtcounters *c, struct err *e)
{
	size_t kept = 0;

	c->refs.n = 0;
	for (size_t p = 0; p < c->np; p++) {
		int32_t alloc = c->off[LAYOUT_mcache_alloc];
		uint64_t none = rtc_cache_word(c, p, alloc); /* runtime.emptymspan */

		for (uint32_t k = 2; k < rtc_spanclasses(c); k++) {
			uint64_t addr = rtc_cache_word(c, p, alloc + 8 * (int32_t)k);
			struct rtc_ref *r;

			if (!addr || addr == none)
				continue;
			r = vec_add(&c->refs, SIZE_MAX);
			if (!r)
				return err_set(e, -ENOMEM, "no memory for %zu spans", c->refs.n);
			*r = (struct rtc_ref){ .addr = addr, .p = (uint32_t)p, .spanclass = k };
		}
	}
	if (c->refs.n)
		qsort(c->refs.at, c->refs.n, sizeof(*c->refs.at), by_addr);
	for (size_t i = 0; i < c->refs.n; i++)
		if (!kept || c->refs.at[i].addr != c->refs.at[kept - 1].addr)
			c->refs.at[kept++] = c->refs.at[i];
	c->refs.n = kept;
	return 0;
}

/* How many bytes all spans take when they are read in runs. */
static size_t place_spans(struct rtcounters *c)
{
	struct piece_run r = { .total = 0 };

	for (size_t i = 0; i < c->refs.n; i++)
		c->refs.at[i].at = run_place(&r, c->refs.at[i].addr + c->span_lo, c->span_n);
	return r.total;
}

/*
 * Uses the places that place_spans() chose: a span that is not the first of its run follows it at
 * the distance of their addresses.
 */
static int add_spans(struct rtcounters *c, struct err *e)
{
	int ret = 0;

	for (size_t i = 0, first = 0; !ret && i < c->refs.n; i++) {
		const struct rtc_ref *f = &c->refs.at[first], *r = &c->refs.at[i];

		if (i + 1 < c->refs.n && r[1].at - f->at == r[1].addr - f->addr)
			continue;
		ret = add_piece(c, f->addr + c->span_lo, c->spans + f->at,
				r->at - f->at + c->span_n, e);
		first = i + 1;
	}
	return ret;
}

int rtc_read_spans(struct rtcounters *c, struct rtc_look *k, struct err *e)
{
	size_t n;
	int ret = list_spans(c, e);

	if (ret)
		return ret;
	n = place_spans(c);
	if (n > c->spans_cap) {
		free(c->spans);
		c->spans = malloc(n);
		c->spans_cap = c->spans ? n : 0;
		if (!c->spans)
			return err_set(e, -ENOMEM, "no memory for %zu bytes of spans", n);
	}
	c->pieces.n = 0;
	ret = add_spans(c, e);
	if (!ret)
		ret = add_stats(c, k, 1, e);
	return ret ? ret : read_pieces(c, e);
}
