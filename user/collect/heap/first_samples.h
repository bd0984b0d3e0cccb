/*
 * user/collect/heap/first_samples.h - tells the unconditional first sample of each P from the other samples.
 *
 * When sampling is switched on, a P's first allocation is always sampled: its countdown is 0 (to
 * Go 1.23), or its copy of the rate differs from the rate (from 1.24). A P's mcache shows whether
 * it had that sample. So two readings of the buckets, with the Ps read between them, tell how
 * many first samples came in. When no more samples than that came in at all, these are the first
 * samples.
 *
 * Source: runtime/malloc.go, profilealloc and nextSample; runtime/mcache.go, mcache.nextSample at
 * 0 (Go 1.16 to 1.27), mcache.memProfRate at 8 (1.24 to 1.27); runtime/runtime2.go, p.id at 0.
 */
#ifndef COLLECT_HEAP_FIRST_SAMPLES_H
#define COLLECT_HEAP_FIRST_SAMPLES_H

#include "base/map.h"
#include "go/runtime/rtbucket.h"
#include "subject/subject.h"

struct first_samples {
	struct subject *s;
	uint64_t allp; /* live address of the slice; 0: the Ps cannot be read */
	int64_t rate;
	struct map known; /* bucket address -> first samples in it */
	uint64_t nknown;  /* their sum */
	uint64_t mixed;	  /* first samples that came in together with other samples */
	struct map ref;	  /* bucket address -> all_allocs, at the reference reading */
	uint64_t ref_sum;
	unsigned ref_armed;
};

/* How many Ps had their first sample under @rate, and how many there are. */
struct armed {
	unsigned n, of;
	uint64_t left; /* to Go 1.23: sum over the Ps of the bytes until the next sample */
};

/* @f must be zeroed. It also works when the Ps cannot be read; it then knows no first samples. */
void first_samples_init(struct first_samples *f, struct subject *s, int64_t rate);
void first_samples_fini(struct first_samples *f);

/* 0; -ENOTSUP when the Ps cannot be read, or change during the reading. */
int first_samples_armed(struct first_samples *f, struct armed *out);

/* The reading @b and the Ps around it become the reference; what was known before is forgotten. */
int first_samples_begin(struct first_samples *f, const struct rtbuckets *b, unsigned armed,
			struct err *e);

/* A later reading: learns from it what can be learned. */
int first_samples_learn(struct first_samples *f, const struct rtbuckets *b, unsigned armed,
			struct err *e);

/* The number of known first samples in one bucket. */
uint64_t first_samples_of(const struct first_samples *f, uint64_t bucket);

#endif
