/*
 * user/collect/undercount.h - do windows find fewer long waits than looks say there are?
 *
 * A window opens when the process that put the probes in has just had a CPU. Where CPUs are scarce, the target
 * then waits for one, and fewer of its waits begin in the window than at other times. Looks from outside are
 * not affected: by Little's law they tell how long all waits last together. So the delay that windows saw is
 * compared with what looks tell. What windows lack beyond chance is a systematic error of the number of long
 * waits, which is stated with the others. Short waits are no part of it: their numbers have other sources
 * (wait_window.h, sched_window.h).
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
	double few_ns; /* by looks: what they saw of waits that too few of them saw */
	double missed_ns, missed_variance; /* the length of such waits that others stand for */
};

struct undercounts {
	struct undercount *at; /* by site of the tally; NULL: there was no memory */
	size_t n;
	struct undercount all; /* of the tally's first whole */
};

/*
 * Compares when nothing is added any more. Entries of kind @but (gpb_stack.size >> 8) are left out. Group 0 has
 * the short waits.
 */
void undercounts_learn(struct undercounts *u, const struct tally *t, const struct onlook_sums *k,
		       uint64_t but);
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
