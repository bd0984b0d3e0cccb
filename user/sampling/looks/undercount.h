/*
 * user/sampling/looks/undercount.h - numbers of long waits: by time or by length, and what windows lack.
 *
 * A window opens when the process that put the probes in has just had a CPU. Where CPUs are scarce, the target
 * then waits for one, and fewer of its waits begin in the window than at other times. Looks from outside are
 * not affected: by Little's law they tell how long all waits last together. Divided by the mean length of the
 * waits that windows met, that is their number (a ratio estimator), however many windows did not meet. It is
 * taken where its error is smaller than that of what windows met, scaled up by time.
 *
 * Where it is not, the delay that windows saw is compared with what looks tell. What windows lack beyond
 * chance is a systematic error of the number of long waits, which is stated with the others. Short waits are no
 * part of this: their numbers have other sources (wait_estimates.h).
 *
 * Where looks are rare, waits that are too long for windows are seen by too few of them to be counted (LOOKS_COUNTS). Their length is
 * in what looks tell, and divided by the mean length of much shorter ones it is a number far too large: 5 million waits in
 * 20 s of an etcd that had 0.14. So numbers are by length then only where both agree on the delay. And each wait ends in a run, so
 * there are no more waits than the runtime counted runs, and no more are lacking than those beyond what is counted.
 *
 * Each wait of a parked goroutine ends in a time runnable (tally.follows), which is too short for looks. Windows
 * lack these as they lack waits. So there are as many as waits: those that looks counted, and the long ones that
 * are told as above. That number is taken where its error is smaller than that of the times that windows met;
 * otherwise the difference, beyond chance, is part of the stated error. Waits that are too long for windows and too short for looks are
 * lacking, and the times runnable after them are not: then there are as many waits as those.
 */
#ifndef SAMPLING_LOOKS_UNDERCOUNT_H
#define SAMPLING_LOOKS_UNDERCOUNT_H

#include "sampling/looks/looks_sums.h"
#include "goprof_abi.h"

struct undercount {
	double count, long_ns; /* long waits by windows: number and total length */
	double met;	       /* how many of these windows met */
	/* the total length of all waits, by windows, and of waits of parked goroutines alone */
	double windows_ns, parked_ns;
	/*
	 * By looks, without the waits that enough looks saw. Those of that length that too few looks saw
	 * are still in it: where looks come late, the error is stated too large rather than too small.
	 */
	double looks_ns;
	double few, few_ns, edge_ns,
		missed; /* these as in looks_estimate; few: of parked goroutines */
	double missed_ns, missed_variance; /* the length of such waits that others stand for */
	/*
	 * Of a site. > 0: numbers are by length, so that each long wait of a parked goroutine stands for so
	 * many times its weight. Those waits are no part of the members above. The variance of their number.
	 */
	double factor, length_variance;
	/* Waits that looks count: of parked goroutines, and times runnable; long system calls, by windows. */
	double counted, counted_variance, runnable, calls;
	/*
	 * > 0: the times runnable that follow long waits are as many as these, so that each stands for so many
	 * times its weight. The variance of the number of both, < 0: not known; and by how many windows may
	 * lack those that follow, where these are by time.
	 */
	double after, variance, lacks;
	bool as_follow; /* factor: there are as many as times runnable that follow */
};

struct undercounts {
	struct undercount *at; /* by site of the tally; NULL: there was no memory */
	size_t n;
	uint64_t but;
	double most; /* runs that windows lack at most; INFINITY: not known */
	bool between; /* some waits are too long for windows, and seen by too few looks to be counted */
	struct undercount all; /* of the tally's first whole; its lacks: the sum over its sites */
	bool followed;	       /* after > 0 at one of these sites */
};

/*
 * Compares when nothing is added any more. Entries of kind @but (gpb_stack.wait.kind) are left out. Group 0 has
 * the short waits. @runs: dilation.switches, < 0: not known.
 */
void undercounts_learn(struct undercounts *u, const struct tally *t, const struct looks_sums *k,
		       uint64_t but, double dilation, double runs);
/* By what the count of an entry is to be multiplied. */
double undercounts_factor(const struct undercounts *u, const struct tally_entry *en);
/*
 * Does the number of a site's long waits of parked goroutines, and of the times runnable that follow, have a
 * variance of its own, besides that of all others (tally_part.others)? < 0: it is not known.
 */
bool undercounts_apart(const struct undercounts *u, size_t site, double *variance);
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
