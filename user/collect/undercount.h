/*
 * user/collect/undercount.h - numbers of long waits: by time or by length, and what windows lack.
 *
 * A window opens when the process that put the probes in has just had a CPU. Where CPUs are scarce, the target
 * then waits for one, and fewer of its waits begin in the window than at other times. Looks from outside are
 * not affected: by Little's law they tell how long all waits last together. Divided by the mean length of the
 * waits that windows met, that is their number (a ratio estimator), however many windows did not meet. It is
 * taken where its error is smaller than that of what windows met, scaled up by time.
 *
 * Where it is not, the delay that windows saw is compared with what looks tell. What windows lack beyond
 * chance is a systematic error of the number of long waits, which is stated with the others. Short waits are no
 * part of this: their numbers have other sources (wait_window.h, sched_window.h).
 */
#ifndef COLLECT_UNDERCOUNT_H
#define COLLECT_UNDERCOUNT_H

#include "collect/onlook_sums.h"

struct undercount {
	double count, long_ns; /* long waits by windows: number and total length */
	double met;	       /* how many of these windows met */
	double windows_ns;     /* the total length of all waits, by windows */
	/*
	 * By looks, without the waits that enough looks saw. Those of that length that too few looks saw
	 * are still in it: where looks come late, the error is stated too large rather than too small.
	 */
	double looks_ns;
	double few, few_ns, edge_ns, missed; /* these as in onlook_estimate */
	double missed_ns, missed_variance;   /* the length of such waits that others stand for */
	/*
	 * Of a site. > 0: numbers are by length, so that each long wait of a parked goroutine stands for so
	 * many times its weight, and so do times runnable that follow. Those waits are no part of the members
	 * above. The variance of their number.
	 */
	double factor, variance;
	double follow; /* times runnable that follow long waits, in 1 / GPB_COUNT_ONE */
};

struct undercounts {
	struct undercount *at; /* by site of the tally; NULL: there was no memory */
	size_t n;
	uint64_t but;
	struct undercount all; /* of the tally's first whole */
};

/*
 * Compares when nothing is added any more. Entries of kind @but (gpb_stack.size >> 8) are left out. Group 0 has
 * the short waits.
 */
void undercounts_learn(struct undercounts *u, const struct tally *t, const struct onlook_sums *k,
		       uint64_t but, double dilation);
/* By what the count of an entry is to be multiplied. */
double undercounts_factor(const struct undercounts *u, const struct tally_entry *en);
/*
 * The variance of the number of a site's long waits of parked goroutines, and of the times runnable that follow,
 * for what the factor is uncertain; < 0: it is not by length.
 */
double undercounts_by_length(const struct undercounts *u, size_t site);
/*
 * The square of the systematic error of the number of waits; < 0: not known. @windows, @looks: the variances
 * of both total lengths.
 */
double undercounts_site(const struct undercounts *u, size_t site, double windows, double looks);
/* Do looks count all that they saw of a site, except for what may be chance? */
bool undercounts_counted(const struct undercounts *u, size_t site, double looks);
double undercounts_all(const struct undercounts *u, double windows, double looks);
void undercounts_fini(struct undercounts *u);

#endif
