/*
 * user/collect/onlook_sums.h - what looks (onlook.h) add up to, by entry of the tally and by place
 * in the program.
 */
#ifndef COLLECT_ONLOOK_SUMS_H
#define COLLECT_ONLOOK_SUMS_H

#include "collect/onlook.h"

enum { ONLOOK_LENGTHS = 24, ONLOOK_NOT_COUNTED = -1 };

struct onlook_sum {
	double count, beyond, ns, unsure_ns;
	double count_variance, ns_variance; /* not by chance of looks */
	bool known;			    /* seen in a stack that stood still */
	bool apart;			    /* onlook_conf.apart */
	size_t site;			    /* of the tally, and of onlook_sums.sites */
	int32_t counted; /* 1, ONLOOK_NOT_COUNTED, or 0 when this is not known yet */
};

/* What waits at one place in the program, or at all of them; looks are its sampling units. */
struct onlook_site {
	bool known;
	size_t first; /* entry, of those that count */
	double now, last, squares;
	double count;  /* waits that ONLOOK_COUNTS looks saw */
	uint64_t look; /* that now is of */
};

/* Zeroed, but for the first five, is empty. */
struct onlook_sums {
	struct subject *s; /* borrowed, as the next one */
	struct tally *tally;
	uint64_t semas, reasons_apart;
	double begin_ns, end_ns;       /* as onlook_conf */
	VEC(struct onlook_sum) at;     /* by entry */
	VEC(struct onlook_site) sites; /* by site of the tally */
	struct onlook_site all;	       /* all of the tally's first whole */
	struct onlook_site apart;      /* those of onlook_conf.apart */
	uint64_t crowded;	       /* waits of stacks that there was no room for */
	uint64_t look;		       /* the number of the present look */
	double before, gap, gaps_ns; /* between the last looks, the last two; the sum of all gaps */
	double missed[ONLOOK_LENGTHS];
	/* At the end: how many times the strata of looks all of the time is; the variance of one look. */
	double scale, unmet;
};

/*
 * The entry of a stack, ONLOOK_NOT_COUNTED when Go's block profile has no such waits. @still: it
 * stood still, so that it is one; others are *known when they have been seen otherwise. A wait of a
 * stack that there is no room for is followed as one that is not counted.
 */
int onlook_sums_entry(struct onlook_sums *u, const struct gpb_stack *st, uint8_t reason, bool still,
		      bool *known, int32_t *out, struct err *e);

/* This look saw one there, for @ns. */
void onlook_sums_saw(struct onlook_sums *u, int32_t entry, double ns);
/* One that looks saw for @ns in all is over; @length: it lasted, about, if ONLOOK_COUNTS looks saw it, else 0. */
void onlook_sums_over(struct onlook_sums *u, int32_t entry, double ns, double length);
/* Of one that began too early, or ends too late, it is not known what of it is to be counted. */
void onlook_sums_unsure(struct onlook_sums *u, int32_t entry, double ns);
/* Between this look and the last one. */
void onlook_sums_gap(struct onlook_sums *u, double ns);

/* No more looks. @phase_ns: the time that they are for; @strata_ns: their strata's sum. */
void onlook_sums_end(struct onlook_sums *u, double phase_ns, double strata_ns);
struct onlook_estimate onlook_sums_of(const struct onlook_sums *u, size_t entry);
/*
 * The variance of delays, by chance of looks: of a site of the tally (of one that no look met: one may
 * have), of all sites together, and of what is summed apart.
 */
double onlook_site_variance(const struct onlook_sums *u, size_t site);
double onlook_all_variance(const struct onlook_sums *u);
double onlook_apart_variance(const struct onlook_sums *u);
/* Waits that looks counted there. */
double onlook_site_count(const struct onlook_sums *u, size_t site);
void onlook_sums_fini(struct onlook_sums *u);

#endif
