/*
 * bpf/go/countdown.bpf.h - which allocations are samples: one in about `rate` bytes, by the runtime's own
 * rule. The gaps between samples are exponential, so that they are a Poisson process.
 *
 * Sources: nextSample in runtime/mcache.go and mprof.go; Go 1.16 to 1.27.
 */
#ifndef BPF_COUNTDOWN_BPF_H
#define BPF_COUNTDOWN_BPF_H

#include "common.bpf.h"

#ifndef GPB_HOST
/* log2(1 + i / GPB_LOG_STEPS) * 2^26, filled in before load. */
const volatile __u32 log2_table[GPB_LOG_STEPS + 1] = {};
#endif

#define LN2_Q26 46516320ULL /* ln(2) * 2^26 */

/*
 * Draws an exponential gap with mean @rate: -ln(u) * rate for u uniform in (0, 1]. The 31 random
 * bits below the leading one are interpolated in the table: the error is below 2^-20.
 */
__noinline __s64 next_sample(__u64 rate)
{
	__u32 u = bpf_get_prandom_u32() | 1, lead = 31, i, frac, lo, hi;
	__u64 log2;

	if (rate <= 1)
		return 1;
	for (int k = 0; k < 32 && !(u & 0x80000000u); k++) {
		u <<= 1;
		lead--;
	}
	u <<= 1; /* drop the leading one: 32 bits of mantissa, the lowest zero */
	i = u >> 22;
	frac = u & ((1u << 22) - 1);
	lo = log2_table[i & (GPB_LOG_STEPS - 1)];
	hi = log2_table[(i & (GPB_LOG_STEPS - 1)) + 1];
	log2 = ((__u64)lead << 26) + lo + (((__u64)(hi - lo) * frac) >> 22);
	log2 = (32ULL << 26) - log2; /* -log2(u / 2^32), 26 fraction bits */
	/* (log2 * ln2) has 52 fraction bits; keep 20 of them against the rate. */
	return (__s64)((((log2 * LN2_Q26) >> 32) * rate) >> 20) + 1;
}

/*
 * Is an allocation of so many bytes a sample? Large objects that are observed all the time have a
 * countdown of their own.
 *
 * The next gap is drawn here, and not when the sample's stack has been walked: all that another
 * thread allocates when it preempts the walk would be samples until then. A plain store is good
 * enough: what remains of an exponential gap is one, whichever of two threads has the last word.
 */
static __always_inline int due(const struct gpb_heap *h, struct gpb_countdown *c, __u64 bytes,
			       int always)
{
	__s64 left;

	if (always) {
		if (!c->large_drawn) {
			c->large_left = next_sample(h->large_rate);
			c->large_drawn = 1;
		}
		left = c->large_left - (__s64)bytes;
		c->large_left = left > 0 ? left : next_sample(h->large_rate);
		return left <= 0;
	}
	if (c->round != h->round) {
		c->left = next_sample(h->rate);
		c->round = h->round;
	}
	left = c->left - (__s64)bytes;
	c->left = left > 0 ? left : next_sample(h->rate);
	return left <= 0;
}

#endif
