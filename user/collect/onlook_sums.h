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
	size_t site;
	int32_t counted; /* 1, ONLOOK_NOT_COUNTED, or 0 when this is not known yet */
};

/* What waits at one place in the program; looks are its sampling units. */
struct onlook_site {
	size_t first; /* entry */
	double now, last, squares;
	uint64_t look; /* that now is of */
};

/* Zeroed, but for the first five, is empty. */
struct onlook_sums {
	struct subject *s; /* borrowed, as the next one */
	struct tally *tally;
	uint64_t semas;
	double begin_ns, end_ns;   /* as onlook_conf */
	VEC(struct onlook_sum) at; /* by entry */
	VEC(struct onlook_site) sites;
	struct map by_site;
	uint64_t look;		     /* the number of the present one */
	double before, gap, gaps_ns; /* between the last looks, the last two; the sum of all gaps */
	double missed[ONLOOK_LENGTHS];
};

/*
 * The entry of a stack, ONLOOK_NOT_COUNTED when Go's block profile has no such waits. @still: it
 * stood still, so that it is one; others are *known when they have been seen otherwise.
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

/* No more looks. */
void onlook_sums_end(struct onlook_sums *u);
/* @scale: how many times the strata of looks all of the time is. */
struct onlook_estimate onlook_sums_of(const struct onlook_sums *u, size_t entry, double scale);
void onlook_sums_fini(struct onlook_sums *u);

#endif
