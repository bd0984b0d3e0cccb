/*
 * user/sampling/run_rates.h - are there runs of goroutines that no window stands for?
 *
 * The runtime's own count of runs is an auxiliary variable with a known total (regression estimator): numbers of
 * waits are made to agree with it. That is right only if windows met the program at every pace. A storm of
 * yields (runtime.Gosched) or of waits that lasts for some milliseconds can have more runs than all the rest of
 * the time, and no window may have met one: then the total says nothing about what windows saw.
 *
 * So the count is read every few milliseconds (steps). Time in which goroutines ran far more often than in any
 * window is a stratum without a window: its runs are taken out of the total, and are told apart.
 */
#ifndef SAMPLING_RUN_RATES_H
#define SAMPLING_RUN_RATES_H

#include <stdbool.h>
#include <stdint.h>

#define RUN_STEP_NS 5000000ull

/* A histogram over time: for how long goroutines ran how often. Four bins for each doubling of the pace. */
enum { RUN_BINS = 160 };
struct run_bins {
	double runs[RUN_BINS], ns[RUN_BINS];
};

/* A struct that is zeroed is a new one. */
struct run_rates {
	struct run_bins steps, windows;
	struct run_bins
		swept; /* of the steps: those in which the runtime's sweeper may have yielded */
	/* Steps, of all and of these, at more than twice the pace of the one before: a storm has one, or two. */
	unsigned rises[RUN_BINS], swept_rises[RUN_BINS];
	unsigned before; /* the bin of the last step */
	double most;	 /* runs per ns: the highest pace that a window met; 0: none did */
};

/* The bin of so many in so much time, which is not 0. */
unsigned run_rates_bin(double runs, double ns);
/* By the runtime's count there were so many runs in so much time, about RUN_STEP_NS or more. */
void run_rates_step(struct run_rates *r, double runs, double ns);
/* The same, and the sweeper may have yielded in it (rtcounters_sweeper). */
void run_rates_swept(struct run_rates *r, double runs, double ns);
/* A window saw so many in @ns of the target's own time, and stands for @stands_ns. */
void run_rates_window(struct run_rates *r, double runs, double ns, double stands_ns);
/* It was at this pace, in runs per ns, by what is known from elsewhere. */
void run_rates_met(struct run_rates *r, double pace);
/* Is a pace higher than another one, beyond chance, where both are of RUN_STEP_NS? */
bool run_rates_beyond(double pace, double than);
#define RUN_DILATED 10 /* windows may see so many times too few runs, and not more */

/*
 * About how many runs were at a pace that no window met; 0 without windows. While others ran so often, the
 * rest may have gone on as ever or not at all: half of that is taken off, and may be wrong (@unsure).
 */
struct run_unmet {
	double runs, unsure;
	/*
	 * Of runs: so many are the sweeper's yields, which are no waits. Storms that come while it is at work, more often than
	 * chance would have it (1 in 100), are taken for its own, but for as many as there are at other times.
	 */
	double yields;
	double maybe;  /* of the others: those in steps in which the sweeper may have yielded */
	double faster; /* of the others: those beyond the highest pace that a window met */
};
struct run_unmet run_rates_unmet(const struct run_rates *r);
/*
 * How many times fewer runs windows saw than the runtime counted at the same pace: where CPUs are scarce, a
 * window has less of the program's work than its own time says. 1: not known.
 */
double run_rates_lack(const struct run_rates *r);

#endif
