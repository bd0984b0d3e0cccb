/*
 * user/ingest/exectrace/summary/quantiles.h - the distribution of a great many durations in little memory.
 *
 * A histogram with logarithmic buckets (as HdrHistogram's): 64 of equal width in each power of two.
 * Values below 64 are exact, and any quantile of others is within 1/128 (0.8 %) of the value of that
 * rank. Count, sum, minimum and maximum are exact.
 */
#ifndef INGEST_EXECTRACE_SUMMARY_QUANTILES_H
#define INGEST_EXECTRACE_SUMMARY_QUANTILES_H

#include <stdbool.h>
#include <stdint.h>

enum { QUANTILES_OCTAVES = 64 };

/* A zeroed struct is empty. */
struct quantiles {
	uint64_t n, sum; /* the sum ends at UINT64_MAX */
	uint64_t min, max;
	uint64_t *octaves[QUANTILES_OCTAVES]; /* owned, made when there is something in them */
};

void quantiles_fini(struct quantiles *q);
/* False when there is no memory. */
bool quantiles_add(struct quantiles *q, uint64_t v);
/* The value of rank ceil(p * n); @p from 0 to 1. Of none at all it is 0. */
uint64_t quantiles_get(const struct quantiles *q, double p);

#endif
