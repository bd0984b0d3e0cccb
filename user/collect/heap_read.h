/*
 * user/collect/heap_read.h - a heap profile from the runtime's own buckets, as the target's
 * /debug/pprof/heap would give it at this moment: same samples, labels, values and frames.
 */
#ifndef COLLECT_HEAP_READ_H
#define COLLECT_HEAP_READ_H

#include "collect/subject_priv.h"
#include "go/rtbucket.h"
#include "profile/scale.h"

/*
 * Where this target keeps its buckets, live addresses. Once per target: it may decode
 * instructions. -ENOENT when a variable cannot be found, -EBADMSG when what stands there
 * cannot be its value.
 */
int heap_read_find(struct subject *s, struct rtbucket_vars *out, struct err *e);

/* runtime.MemProfileRate now, bytes; 0: the target does not profile its heap. */
int heap_read_rate(struct subject *s, const struct rtbucket_vars *v, int64_t *rate, struct err *e);

/*
 * @all as samples of @p, whose sample types are set: stacks as runtime/pprof shows them, the
 * label of the object's size, and the values that @values gives for a bucket. The losses of the
 * reading are added to @p.
 */
typedef void heap_values(void *arg, const struct rtbucket *b, int64_t *values);
int heap_read_samples(struct subject *s, const struct rtbuckets *all, struct prof *p,
		      heap_values *values, void *arg, struct err *e);

/*
 * What sampled objects of one bucket stand for, scaled as that Go version does it: it takes the
 * size from the byte count up to Go 1.26, from the bucket in 1.27.
 */
struct scaled heap_read_scale(const struct subject *s, const struct rtbucket *b, int64_t objects,
			      int64_t rate);

/*
 * Sample types, period, samples, losses and a comment on the state that was read, into @p,
 * which has no sample types yet. A target that never sampled gives a profile without samples.
 * Errors as rtbuckets_read gives them; -ENOMEM.
 * Source: runtime/pprof/protomem.go, writeHeapProto, Go 1.16 to 1.27.
 */
int heap_read_profile(struct subject *s, const struct rtbucket_vars *v, struct prof *p,
		      struct err *e);

#endif
