/*
 * user/collect/slowness.h - how much slower probes make a target while they are in it, and how
 * much of a window is the target's own time.
 *
 * Told by how short the times between two hits are (struct gpb_wait_clock) and, where it is known,
 * by the runtime's own count of how often goroutines began to run.
 */
#ifndef COLLECT_SLOWNESS_H
#define COLLECT_SLOWNESS_H

#include "collect/subject_priv.h"
#include "go/rtcounters.h"

/* Zeroed, but for the first one, is a new one. */
struct slowness {
	struct subject *s; /* borrowed */
	double now, sum;   /* how many times slower, lately; summed over windows */
	double hit_ns;	   /* a hit's price, as measured */
	double switches;   /* by the runtime's count, while there were windows; < 0 not known */

	struct rtcounters *counters;
	bool counted;		     /* counters has been asked for */
	uint64_t switches_before;    /* 0: not known */
	uint64_t switches_first;     /* when windows began */
	struct gpb_wait_clock clock; /* sums of all windows, at the last look */
	/* Lately: short times and others between hits, parks seen; the runtime's switches, CPU ns. */
	double shorts, short_ns, longs, long_ns, parks, exact, busy_ns;
	double cpu_before; /* ns: the target's clock */
};

/* Windows begin, where a hit costs @hit_ns; or there are no more of them. */
void slowness_begin(struct slowness *w, double hit_ns);
void slowness_end(struct slowness *w);
/* A window is over, after which the clocks of all CPUs stand at @sum in all. */
void slowness_learn(struct slowness *w, const struct gpb_wait_clock *sum);
void slowness_add(struct gpb_wait_clock *sum, const struct gpb_wait_clock *cpu);

/* What the next window's clocks are to go by, of which the first part lasts @begin_ns. */
struct slowness_terms {
	struct gpb_own own;
	uint64_t own_share, short_ns;
};
struct slowness_terms slowness_terms(const struct slowness *w, uint64_t begin_ns);
void slowness_fini(struct slowness *w);

#endif
