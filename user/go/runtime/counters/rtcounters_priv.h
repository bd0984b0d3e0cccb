/* user/go/runtime/counters/rtcounters_priv.h - between rtcounters.c and rtcounters_alloc.c. */
#ifndef GO_RUNTIME_COUNTERS_RTCOUNTERS_PRIV_H
#define GO_RUNTIME_COUNTERS_RTCOUNTERS_PRIV_H

#include "base/again.h"
#include "base/vec.h"
#include "go/runtime/counters/rtcounters.h"

/* One P and what was read of it. */
struct rtc_p {
	uint64_t addr, mcache; /* addresses, as they were found */
	uint64_t mcache_now;
	size_t at;	    /* where its cache's bytes are in caches */
	uint32_t flushgen0; /* read before everything else; up to go1.18 */
};

/* A span that a P's cache held. */
struct rtc_ref {
	uint64_t addr;
	uint32_t p;
	uint32_t spanclass;
	size_t at; /* offset of its bytes in spans */
};

struct rtcounters {
	struct rtcounters_vars v;
	struct sizeclasses classes;
	struct mem *m; /* borrowed */
	int32_t off[LAYOUT_COUNT];
	/* Why there are no allocations or switches: a code (0 when there are) and a sentence. */
	int no_allocs, no_switches;
	struct err why_allocs, why_switches;
	int sweep_wait;	  /* why the sweeper is parked, in this Go; -1: not known */
	uint64_t sweeper; /* its g; 0: not found yet */
	struct again sweeper_again;

	/*
	 * The parts that are read: [cache_lo, cache_lo + cache_n) of mcaches, [span_lo, span_lo +
	 * span_n) of spans.
	 */
	uint32_t cache_lo, cache_n, span_lo, span_n;
	size_t stats_n; /* bytes of consistentHeapStats; gen is the last field */

	/* Kept from one reading to the next, until rtcounters_rest(). */
	uint64_t allp[3]; /* the slice */
	struct rtc_p *ps; /* np of them, by the address of the cache */
	size_t np;
	uint64_t *allp_then, *allp_now;
	uint8_t *caches;
	uint32_t looks;
	VEC(struct mem_piece) pieces;

	/* Copies, while rtcounters_allocs() reads. */
	uint8_t *stats; /* RTC_STATS * stats_n */
	uint8_t *spans;
	size_t spans_cap;
	VEC(struct rtc_ref) refs;
};

/* What one look found, apart from what is kept in struct rtcounters. */
struct rtc_look {
	uint32_t sweepgen[2];
	uint8_t gcwaiting[2];
	uint64_t allp[3];
	bool settled; /* no flush of a cache was under way */
	bool recheck; /* read each P's pointer to its cache as well */
};

/* Copies of heapStats of one reading: two before the spans and two after. */
enum { RTC_STATS = 4 };

/* Sets no_allocs and why_allocs, or what rtcounters_allocs needs. */
void rtc_alloc_init(struct rtcounters *c);

/* Do the counts of heapStats only grow? They do from go1.19 on. */
static inline bool rtc_only_grow(const struct rtcounters *c)
{
	return c->off[LAYOUT_mspan_countbeforecache] >= 0;
}

static inline uint32_t rtc_spanclasses(const struct rtcounters *c)
{
	return 2 * (c->classes.n + 1);
}

/* The first half of a look, and the second. -EAGAIN when the program interfered. */
int rtc_read_caches(struct rtcounters *c, struct rtc_look *k, struct err *e);
int rtc_read_spans(struct rtcounters *c, struct rtc_look *k, struct err *e);
/* To be called after an error: what is known of the Ps may be out of date. */
void rtc_forget_ps(struct rtcounters *c);
int rtc_again(struct err *e, const char *what);

/* From what was read of the cache of P number @p: the word at offset @off, and its flushGen. */
uint64_t rtc_cache_word(const struct rtcounters *c, size_t p, int32_t off);
uint32_t rtc_flushgen(const struct rtcounters *c, size_t p);

#endif
