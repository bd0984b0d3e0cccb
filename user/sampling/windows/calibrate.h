/*
 * user/sampling/windows/calibrate.h - a regression estimator: numbers of sites, corrected by the known
 * totals of several groups (strata) at once.
 *
 * What windows see may be biased in a way that several groups share: a thread that does nothing
 * but allocate is slowed more than one that rarely allocates, and a program has phases. A site's
 * share of its own size class does not show that bias, but the other classes that come with it
 * do: the sites of one thread, or of one phase, come and go together, and how many allocations
 * there were of each class is known exactly. So the deviation of a site from its share is
 * regressed on what windows saw of all large classes, and the result is corrected to what there
 * was of them.
 *
 * Source: the generalised regression estimator; Saerndal, Swensson, Wretman: Model Assisted
 * Survey Sampling, 6.4 and 6.5.
 */
#ifndef SAMPLING_WINDOWS_CALIBRATE_H
#define SAMPLING_WINDOWS_CALIBRATE_H

#include "sampling/tally.h"

enum { CALIBRATE_MAX = 12 };

struct calibrate {
	size_t n; /* number of columns to regress on; 0: there is nothing to correct by */
	size_t column[CALIBRATE_MAX]; /* of struct tally_columns */
	/* inverse of the matrix of their sums of products */
	double inverse[CALIBRATE_MAX][CALIBRATE_MAX];
	double slope[CALIBRATE_MAX]; /* inverse times (totals - sums) */
	double reach;		     /* how far the totals are from what windows saw; in windows */
};

/*
 * @total: by group; < 0: not known. @importance: by group; the groups with the largest one are
 * used.
 */
void calibrate_init(struct calibrate *c, const struct tally *t, const double *total,
		    const double *importance);
/* As tally_site_counts(); the same result where there is nothing to correct by. */
struct tally_estimate calibrate_site(const struct calibrate *c, const struct tally *t,
				     const struct tally_entry *en, double total);

#endif
