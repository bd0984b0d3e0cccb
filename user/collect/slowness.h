/*
 * user/collect/slowness.h - the overhead dilation: how much slower probes make a target while
 * they are in it, and how much of a window is the target's own time.
 *
 * It is estimated from how short the times between two hits are (struct gpb_wait_clock) and,
 * where it is known, from the runtime's own count of how often goroutines began to run.
 */
#ifndef COLLECT_SLOWNESS_H
#define COLLECT_SLOWNESS_H

#include "collect/subject_priv.h"
#include "go/rtcounters.h"

/* A struct that is zeroed, except for its first member, is a new one. */
struct slowness {
	struct subject *s; /* borrowed */
	double now, sum;   /* how many times slower lately; the sum of that over windows */
	double hit_ns;	   /* ns that a hit takes, as measured */
	/* the runtime's count, over the time in which there were windows; < 0: not known */
	double switches;

	struct rtcounters *counters;
	bool counted;		     /* counters were asked for */
	uint64_t switches_before;    /* 0: not known */
	uint64_t switches_first;     /* the count when windows began */
	struct gpb_wait_clock clock; /* sums over all windows, at the last look */
	/*
	 * Of late: short and other times between hits, parks that were seen; the runtime's
	 * switches, CPU ns.
	 */
	double shorts, short_ns, longs, long_ns, parks, exact, busy_ns;
	double cpu_before; /* ns: the target's clock */
};

/* Windows begin, and a hit costs @hit_ns; or there are no more windows. */
void slowness_begin(struct slowness *w, double hit_ns);
void slowness_end(struct slowness *w);
/* A window is over; the clocks of all CPUs have added up to @sum since the first one. */
void slowness_learn(struct slowness *w, const struct gpb_wait_clock *sum);
/* How many times slower, in the mean of @windows; 1: there was none. */
double slowness_mean(const struct slowness *w, uint64_t windows);
void slowness_add(struct gpb_wait_clock *sum, const struct gpb_wait_clock *cpu);

/* The parameters of the clocks in the next window, whose first part lasts @begin_ns. */
struct slowness_terms {
	struct gpb_own own;
	uint64_t own_share, short_ns;
};
struct slowness_terms slowness_terms(const struct slowness *w, uint64_t begin_ns);
void slowness_fini(struct slowness *w);

#endif
