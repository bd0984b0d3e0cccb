/*
 * user/profile/scale.h - estimate what happened from what was sampled.
 *
 * The runtime samples allocations as a Poisson process with a mean gap of @rate bytes, so
 * an object of size S is seen with probability 1-exp(-S/rate); dividing by it gives the
 * estimate.
 *
 * Source: scaleHeapSample() in runtime/pprof/protomem.go. Up to Go 1.26 the object size is
 * bytes/count; Go 1.27 takes it from the bucket. Values are truncated, as Go does.
 */
#ifndef PROFILE_SCALE_H
#define PROFILE_SCALE_H

#include <stdint.h>

struct scaled {
	int64_t objects, bytes;
};

/*
 * @count: sampled objects; @bytes: sampled bytes (ignored when @size is not 0);
 * @size: bytes per object, 0 to derive it from bytes/count in floating point as Go <= 1.26;
 * @rate: runtime.MemProfileRate; <= 1 means that every allocation was recorded.
 * Cannot fail. Zero in, zero out. Saturates at INT64_MAX.
 */
struct scaled scale_heap(int64_t count, int64_t bytes, int64_t size, int64_t rate);

/* The estimate for one sampled object of @size bytes. It is at least 1, and not truncated. */
double scale_heap_one(int64_t size, int64_t rate);

/* Rounds to the nearest integer. Saturates; INT64_MAX for a NaN. */
int64_t scale_round(double v);

#endif
