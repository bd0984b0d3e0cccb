/*
 * user/collect/waits/slowness.h - the overhead dilation: how much slower probes make a target while
 * they are in it, and how much of a window is the target's own time.
 *
 * It is estimated from how short the times between two hits are (struct gpb_wait_clock) and,
 * where it is known, from the runtime's own count of how often goroutines began to run.
 */
#ifndef COLLECT_WAITS_SLOWNESS_H
#define COLLECT_WAITS_SLOWNESS_H

#include "base/again.h"
#include "go/runtime/rtcounters.h"
#include "goprof_abi.h"
#include "sampling/run_rates.h"
#include "sampling/tally.h"
#include "subject/subject.h"

/* A struct that is zeroed, except for its first member, is a new one. */
struct slowness {
	struct subject *s; /* borrowed */
	double now, sum;   /* how many times slower lately; the sum of that over windows */
	double hit_ns;	   /* ns that a hit takes, as measured */
	/* the runtime's count, over the time in which there were windows; < 0: not known */
	double switches;

	struct rtcounters *counters;
	struct again open_again;  /* when they are searched for again */
	uint64_t switches_last;	  /* the count at the last time that it was read; 0: it never was */
	uint64_t switches_before; /* 0: not known */
	/* The count where the time begins that windows stand for, and where full observation has just ended. */
	uint64_t switches_first, switches_marked;
	struct gpb_wait_clock clock; /* sums over all windows, at the last look */
	/*
	 * Of late: short and other times between hits, parks that were seen; the runtime's
	 * switches, CPU ns.
	 */
	double shorts, short_ns, longs, long_ns, parks, exact, busy_ns;
	double cpu_before; /* ns: the target's clock */

	struct run_rates rates; /* of the runtime's count, and of what windows saw of it */
	uint64_t step_count;	/* the count when the present step began; 0: not known */
	double step_began;	/* CLOCK_MONOTONIC, ns */
};

/* Full observation ends here, at the first moment after it: what is counted from now on belongs to windows. */
void slowness_mark(struct slowness *w);
/* Windows begin, and a hit costs @hit_ns; or there are no more windows. */
void slowness_begin(struct slowness *w, double hit_ns);
void slowness_end(struct slowness *w);
/* To be called often while there are windows: looks at the runtime's count from time to time. */
void slowness_poll(struct slowness *w);
/* Passes over what the clocks of all CPUs counted where there was no window. */
void slowness_skip(struct slowness *w, const struct gpb_wait_clock *sum);
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
/* The runtime's count without runs at a pace that no window met (run_rates.h); < 0: not known. */
double slowness_met(const struct slowness *w);
/* How many runs were at such a pace; 0 as long as they are less than a hundredth of all. */
double slowness_unmet(const struct slowness *w);
#define SLOWNESS_UNMET                                                                                  \
	"unseen: goroutines began to run about %llu times, by the runtime's own count, at a pace that " \
	"no window met: waits or yields that are beside the estimates and their errors"
/*
 * @windows: what these say of the same number. How many times fewer that is than the runtime's count where both
 * are at the same pace (run_rates_lack); 1 where the difference may be chance.
 */
double slowness_lack(const struct slowness *w, const struct tally_estimate *windows);
/*
 * How far off slowness_met() may be as a total for what windows saw. Where these do not fit beyond chance, time at
 * a somewhat higher pace than that of any window may be like other time or not.
 */
double slowness_unsure(const struct slowness *w, const struct tally_estimate *windows);
void slowness_fini(struct slowness *w);

#endif
