/*
 * user/collect/waits/engine/wait_estimates.h - what windows and looks say together of the waits of a whole
 * run (wait_engine.h): numbers, and how certain they are.
 *
 * Numbers of short waits are made to agree with the runtime's own count of how often goroutines
 * began to run (a regression), except for time of a pace that no window met (run_rates.h).
 */
#ifndef COLLECT_WAITS_ENGINE_WAIT_ESTIMATES_H
#define COLLECT_WAITS_ENGINE_WAIT_ESTIMATES_H

#include "collect/waits/engine/wait_engine.h"

/*
 * Full observation as it was, with what windows add. These variances belong to one stack alone,
 * and may be added up. The other errors are known only of a site, or of all sites together; < 0:
 * not known.
 */
struct wait_estimate {
	int64_t count, delay; /* in 1 / GPB_COUNT_ONE; ns */
	double count_error, delay_error;
};
struct wait_error {
	double count, delay; /* variances */
};

/* The variance of a sum; < 0: not known. */
static inline double variance_plus(double a, double b)
{
	return a < 0 || b < 0 ? -1 : a + b;
}

/* @unsure: waits that were there at every look had ended, and others had begun (looks_estimate.unsure_ns). */
struct wait_estimate wait_estimates_of(const struct wait_engine *w, size_t entry, bool unsure);

/* What is uncertain of a site of the tally: variances, which the kind adds up. */
struct wait_site_errors {
	struct wait_error told;	  /* of what was told */
	double lacking;		  /* of the count: what windows lack, compared with looks */
	struct wait_error missed; /* what neither a window nor a look met */
	double unmet;		  /* of the count: runs at a pace that no window met */
};
struct wait_site_errors wait_estimates_site(const struct wait_engine *w, size_t site);

/* Of all sites of one whole: of what was told, and what windows lack, ... */
struct wait_error wait_estimates_told(const struct wait_engine *w, size_t whole);
/* ... and with what is uncertain of its sites, beside what was @told. */
struct wait_error wait_estimates_whole(const struct wait_engine *w, size_t whole,
				       struct wait_error told);

/* Takes an entry. Variances in @est: with the first entry of each site, the site's. */
typedef int wait_take(void *arg, const struct gpb_stack *st, const struct wait_estimate *est,
		      struct err *e);
/*
 * Hands over the entries of a whole that are not 0. *all: the errors of all together, to which those of single
 * entries are added.
 */
int wait_estimates_each(const struct wait_engine *w, size_t whole, wait_take *take, void *arg,
			struct wait_error *all, struct err *e);
/* How many these are. */
size_t wait_estimates_number(const struct wait_engine *w, size_t whole);

#endif
