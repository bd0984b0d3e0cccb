/*
 * user/collect/heap/heap_enable.h - a heap profile of a target that does not sample its own heap. Its
 * runtime is made to do so for the time of the window: runtime.MemProfileRate is written, and
 * restored by a guardian, also when the collector is killed (collect/ratewrite/guardian.h). Then the runtime's buckets are
 * read: what they gained in the window is scaled with the rate in force.
 *
 * What the numbers are:
 *
 * Allocations: all that was sampled between the first reading, which is made just after the
 * write, and the last one, just before the restoring; also what no GC cycle has published yet. So
 * the extra samples that Go 1.24 and newer take when the rate goes back to 0 are not included.
 *
 * The first sample of each P (processor of Go's scheduler) is taken whatever its size, because
 * the countdown starts at 0. It stands for itself and not for a whole mean gap of bytes. Most Ps
 * have theirs before the first reading, which leaves it out. For the others, the state of each P
 * tells how many there were, and when. Where nothing else was sampled between two readings they
 * are known, and count as one object each. Where they are not known, the profile's comment says
 * how many may count for too much. From then on the samples of a P are a Poisson process.
 *
 * In use: what was sampled since the write, published by a GC cycle as Go does it, and not freed
 * as of that cycle. The columns are there when a cycle has published some of it, and when frees
 * of these objects can be told from those of objects that were sampled earlier; else the comment
 * says why not.
 *
 * Source: runtime/malloc.go, runtime/mprof.go, Go 1.17 to 1.27: profilealloc, nextSample,
 * mallocgc; measured on all of them.
 */
#ifndef COLLECT_HEAP_HEAP_ENABLE_H
#define COLLECT_HEAP_HEAP_ENABLE_H

#include "collect/source.h"
#include "subject/subject.h"

/*
 * Returns 1 when the program samples its heap itself: nothing was done, and it should be read. 0
 * and *out when it samples from now on. Negative when it does not, and the target is unchanged:
 * -EBADMSG when what was found is not the variable, -EBUSY, -EPERM, -ESRCH.
 */
int heap_enable_start(struct subject *s, const struct collect_opts *o, struct sourced *out,
		      struct err *e);

#endif
