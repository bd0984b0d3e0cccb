/* user/ingest/exectrace/summary/quantiles.c - logarithmic buckets. */
#include "ingest/exectrace/summary/quantiles.h"

#include <math.h>
#include <stdlib.h>

enum { SUB_BITS = 6, SUB = 1 << SUB_BITS };

void quantiles_fini(struct quantiles *q)
{
	for (unsigned i = 0; i < QUANTILES_OCTAVES; i++)
		free(q->octaves[i]);
	*q = (struct quantiles){};
}

/* Octave 0 has the values below SUB, and each later one a power of two. */
static unsigned octave_of(uint64_t v, unsigned *sub)
{
	unsigned top;

	if (v < SUB) {
		*sub = (unsigned)v;
		return 0;
	}
	top = 63 - (unsigned)__builtin_clzll(v);
	*sub = (unsigned)(v >> (top - SUB_BITS)) & (SUB - 1);
	return top - SUB_BITS + 1;
}

bool quantiles_add(struct quantiles *q, uint64_t v)
{
	unsigned sub, octave = octave_of(v, &sub);

	if (!q->octaves[octave])
		q->octaves[octave] = calloc(SUB, sizeof(uint64_t));
	if (!q->octaves[octave])
		return false;
	q->octaves[octave][sub]++;
	if (__builtin_add_overflow(q->sum, v, &q->sum))
		q->sum = UINT64_MAX;
	if (!q->n || v < q->min)
		q->min = v;
	if (!q->n || v > q->max)
		q->max = v;
	q->n++;
	return true;
}

/* The middle of a bucket, and nothing that was not between the smallest and the largest. */
static uint64_t middle(const struct quantiles *q, unsigned octave, unsigned sub)
{
	uint64_t v = sub;

	if (octave)
		v = ((uint64_t)(SUB + sub) << (octave - 1)) + ((1ull << (octave - 1)) >> 1);
	if (v < q->min)
		return q->min;
	return v > q->max ? q->max : v;
}

uint64_t quantiles_get(const struct quantiles *q, double p)
{
	/* 0.07 times 100 is a little more than 7, by the rounding of doubles */
	double want = ceil(p * (double)q->n * (1 - 1e-12));
	uint64_t rank = want < 1 ? 1 : (uint64_t)want;

	if (rank >= q->n)
		return q->max;
	for (unsigned i = 0; i < QUANTILES_OCTAVES; i++) {
		for (unsigned k = 0; q->octaves[i] && k < SUB; k++) {
			if (rank <= q->octaves[i][k])
				return middle(q, i, k);
			rank -= q->octaves[i][k];
		}
	}
	return q->max;
}
