/*
 * user/collect/firsts.h - the unconditional first sample of each P, told from the others.
 *
 * When sampling is switched on, a P's first allocation is always sampled: its countdown is 0
 * (to Go 1.23) or its copy of the rate is another one (from 1.24). Whether a P had that sample
 * is to be seen in its mcache. So of two readings of the buckets with the Ps between them it is
 * known how many first samples came in; when no more samples at all came in, these are they.
 *
 * Source: runtime/malloc.go, profilealloc and nextSample; runtime/mcache.go, mcache.nextSample
 * at 0 (Go 1.16 to 1.27), mcache.memProfRate at 8 (1.24 to 1.27); runtime/runtime2.go, p.id at 0.
 */
#ifndef COLLECT_FIRSTS_H
#define COLLECT_FIRSTS_H

#include "base/map.h"
#include "collect/subject_priv.h"
#include "go/rtbucket.h"

struct firsts {
	struct subject *s;
	uint64_t allp; /* live address of the slice; 0: the Ps cannot be looked at */
	int64_t rate;
	struct map known; /* bucket address -> first samples in it */
	uint64_t nknown;  /* their sum */
	uint64_t mixed;	  /* first samples that came in among others */
	struct map ref;	  /* bucket address -> all_allocs, as of the reference reading */
	uint64_t ref_sum;
	unsigned ref_armed;
};

/* Ps that had their first sample under @rate, of how many. */
struct armed {
	unsigned n, of;
	uint64_t left; /* to Go 1.23: bytes until the next sample of each, added up */
};

/* @f zeroed; works without the Ps too, then knows nothing. */
void firsts_init(struct firsts *f, struct subject *s, int64_t rate);
void firsts_fini(struct firsts *f);

/* 0; -ENOTSUP when the Ps cannot be looked at or are in motion. */
int firsts_armed(struct firsts *f, struct armed *out);

/* The reading @b and the Ps about it become the reference; what was known before is forgotten. */
int firsts_begin(struct firsts *f, const struct rtbuckets *b, unsigned armed, struct err *e);

/* A later reading: learn what can be learned. */
int firsts_learn(struct firsts *f, const struct rtbuckets *b, unsigned armed, struct err *e);

/* Known first samples of one bucket. */
uint64_t firsts_of(const struct firsts *f, uint64_t bucket);

#endif
