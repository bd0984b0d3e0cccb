/*
 * user/collect/heap/firsts.h - tells the unconditional first sample of each P from the other samples.
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
#ifndef COLLECT_HEAP_FIRSTS_H
#define COLLECT_HEAP_FIRSTS_H

#include "base/map.h"
#include "go/runtime/rtbucket.h"
#include "subject/subject.h"

struct firsts {
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
void firsts_init(struct firsts *f, struct subject *s, int64_t rate);
void firsts_fini(struct firsts *f);

/* 0; -ENOTSUP when the Ps cannot be read, or change during the reading. */
int firsts_armed(struct firsts *f, struct armed *out);

/* The reading @b and the Ps around it become the reference; what was known before is forgotten. */
int firsts_begin(struct firsts *f, const struct rtbuckets *b, unsigned armed, struct err *e);

/* A later reading: learns from it what can be learned. */
int firsts_learn(struct firsts *f, const struct rtbuckets *b, unsigned armed, struct err *e);

/* The number of known first samples in one bucket. */
uint64_t firsts_of(const struct firsts *f, uint64_t bucket);

#endif
