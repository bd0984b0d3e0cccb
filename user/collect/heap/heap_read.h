/*
 * user/collect/heap/heap_read.h - a heap profile from the runtime's own buckets, as the target's
 * /debug/pprof/heap would give it at this moment: same samples, labels, values and frames.
 */
#ifndef COLLECT_HEAP_HEAP_READ_H
#define COLLECT_HEAP_HEAP_READ_H

#include "go/runtime/rtbucket.h"
#include "profile/profile.h"
#include "profile/scale.h"
#include "subject/subject.h"

/*
 * Finds where this target keeps its buckets, as live addresses. To be called once for each
 * target, because it may decode instructions. -ENOENT when a variable cannot be found, -EBADMSG
 * when what stands there cannot be its value.
 */
int heap_read_find(struct subject *s, struct rtbucket_vars *out, struct err *e);

/* runtime.MemProfileRate now, bytes; 0: the target does not profile its heap. */
int heap_read_rate(struct subject *s, const struct rtbucket_vars *v, int64_t *rate, struct err *e);

/*
 * Adds @all to @p, whose sample types are set, as samples: stacks as runtime/pprof shows them,
 * the label of the object's size, and the values that @values gives for a bucket. The losses of
 * the reading are added to @p.
 */
typedef void heap_values(void *arg, const struct rtbucket *b, int64_t *values);
int heap_read_samples(struct subject *s, const struct rtbuckets *all, struct prof *p,
		      heap_values *values, void *arg, struct err *e);

/*
 * What the sampled objects of one bucket stand for, scaled as that Go version does it: up to Go
 * 1.26 the size is derived from the byte count, in 1.27 it comes from the bucket.
 */
struct scaled heap_read_scale(const struct subject *s, const struct rtbucket *b, int64_t objects,
			      int64_t rate);

/*
 * Puts sample types, period, samples, losses and a comment on the state that was read into @p,
 * which has no sample types yet. A target that never sampled gives a profile without samples.
 * Errors as for rtbuckets_read(); -ENOMEM. Source: runtime/pprof/protomem.go, writeHeapProto, Go
 * 1.16 to 1.27.
 */
int heap_read_profile(struct subject *s, const struct rtbucket_vars *v, struct prof *p,
		      struct err *e);

#endif
