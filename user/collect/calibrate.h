/*
 * user/collect/calibrate.h - estimates of sites by the known totals of several groups at once.
 *
 * What windows see may be off in a way that all of them share: a thread that does nothing but
 * allocate is slowed more than one that rarely does, and a program has phases. A site's share of its
 * own size class does not tell. But which other classes come with it does: the sites of one thread,
 * or phase, come and go together, and how many allocations there were of each class is known. So
 * what a site has more or less than its share is regressed on what windows saw of all large
 * classes, and told for what there was of them.
 *
 * Source: the generalised regression estimator; Saerndal, Swensson, Wretman: Model Assisted Survey
 * Sampling, 6.4 and 6.5.
 */
#ifndef COLLECT_CALIBRATE_H
#define COLLECT_CALIBRATE_H

#include "collect/tally.h"

enum { CALIBRATE_MAX = 12 };

struct calibrate {
	size_t n; /* columns that are regressed on; 0: there is nothing to go by */
	size_t column[CALIBRATE_MAX];		      /* of struct tally_columns */
	double inverse[CALIBRATE_MAX][CALIBRATE_MAX]; /* of their sums of products */
	double slope[CALIBRATE_MAX];		      /* inverse times what totals are above sums */
	double reach; /* how far that is from what windows saw; in windows */
};

/* @total: by group, < 0 not known. @importance: by group; the largest are gone by. */
void calibrate_init(struct calibrate *c, const struct tally *t, const double *total,
		    const double *importance);
/* As tally_site_counts; the same where there is nothing to go by. */
struct tally_estimate calibrate_site(const struct calibrate *c, const struct tally *t,
				     const struct tally_entry *en, double total);

#endif
