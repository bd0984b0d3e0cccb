/*
 * user/go/runtime/counters/rtcounters.h - the runtime's own exact counters, read from a target's memory.
 *
 * Allocations by size class are what runtime.ReadMemStats would return, without stopping the
 * world. The runtime adds the slots that were used of a span to memstats.heapStats when the span
 * leaves a P's cache. What was used of it since it entered the cache stands in the span itself.
 *
 * 	go1.19+		heapStats + (allocCount - allocCountBeforeCache) of each P's cached spans
 * 	go1.16-go1.18	heapStats counts all free slots of a span when it is cached, so
 * 			heapStats - (nelems - allocCount) of each P's cached spans
 *
 * The target runs meanwhile. What moves from a span to heapStats between two looks is seen in
 * heapStats, and is reported as slack. Source: runtime/mcache.go (refill, releaseAll), mstats.go
 * (consistentHeapStats), proc.go (casgstatus), Go 1.16 to 1.27.
 */
#ifndef GO_RUNTIME_COUNTERS_RTCOUNTERS_H
#define GO_RUNTIME_COUNTERS_RTCOUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "go/image/gobin.h"
#include "go/layout/layout.h"

/* Live addresses of the runtime's variables. 0: not known, see below. */
struct rtcounters_vars {
	uint64_t memstats, mheap, allp, sched, allgs;
	int minor; /* Go minor version, -1 unknown */
};

/*
 * Allocations since the process began, by Go's own class numbers: class 1 has the smallest slots,
 * class c has slots of sizeclasses.size[c - 1] bytes; class 0, large objects, is counted apart.
 */
struct rtalloc_counts {
	uint32_t n; /* number of classes, with class 0: 68 */
	uint64_t small[SIZECLASS_MAX + 1];
	/*
	 * small[c] was exact at some instant of this reading, except for at most slack[c]. The
	 * slack is 0 unless a span of that class went into or out of a cache meanwhile. In go1.16
	 * to 1.18 this is not quite so, because counts go down there, too: a P that is preempted
	 * between two instructions of its first refill after a GC, or runtime.ReadMemStats inside
	 * one look, can put it off by one more span's slots without being seen (2 of some 20,000
	 * counts on an overloaded machine).
	 */
	uint64_t slack[SIZECLASS_MAX + 1];
	uint64_t large, large_bytes; /* bytes: of whole pages */
	/*
	 * Allocations without pointers of less than 16 bytes that found room in a block that was
	 * already counted above (class 2). The number is off by at most tiny_slack. Go 1.17+,
	 * else 0.
	 */
	uint64_t tiny, tiny_slack;
	uint32_t sweepgen; /* mheap_.sweepgen: it grows by 2 with each GC cycle */
	uint32_t tries;	   /* how many looks it took, at least 1 */
};

struct rtcounters;

/*
 * Finds the variables; @bias is the difference between live addresses and those of the file. @b,
 * @l, @m are borrowed: @m until rtcounters_free(), the others for the call. -ENOMEM, -ESRCH.
 * Counters that cannot be had are reported by the functions below.
 */
int rtcounters_open(struct gobin *b, const struct golayout *l, struct mem *m, uint64_t bias,
		    struct rtcounters **out, struct err *e);
/* The same, when the variables have been found. @classes is copied. */
int rtcounters_new(const struct rtcounters_vars *v, const struct golayout *l,
		   const struct sizeclasses *classes, struct mem *m, struct rtcounters **out,
		   struct err *e);
void rtcounters_free(struct rtcounters *c);
/* Gives back what the next reading can make again: for one that is read seldom. */
void rtcounters_rest(struct rtcounters *c);
DEFINE_FREEP(struct rtcounters, rtcounters)

/*
 * -ENOTSUP when the counters of this Go are not known (*e says why); -EAGAIN when the program
 * changed them during each of several looks (try again at the next occasion); -EBADMSG when what
 * stands there cannot be counters; -EFAULT, -ESRCH, -ENOMEM.
 */
int rtcounters_allocs(struct rtcounters *c, struct rtalloc_counts *out, struct err *e);

/*
 * How often goroutines of the process began to run, estimated from an exact count of one in
 * eight. casgstatus adds to sched.timeToRun when a goroutine that it tracks enters the running
 * state, and it tracks each goroutine at every eighth time that it leaves that state
 * (gTrackingPeriod), starting anywhere. These are counted: the end of every wait (channel, lock,
 * timer, poll), of every preemption and Gosched, the first run of a new goroutine, and up to
 * go1.25 the return from every system call that the scheduler is told of. For one goroutine that
 * lives on, the true number is within 8. A goroutine's first run counts for 15/8 on average,
 * because the goroutine that had its g before may have left it tracked. Go 1.17+; errors as
 * above.
 */
int rtcounters_switches(struct rtcounters *c, uint64_t *out, struct err *e);

/*
 * What the background sweeper (runtime.bgsweep) is doing: where it was @parked, and sweepgen is still the same later, it
 * has done nothing in between, because a GC cycle adds to sweepgen before it wakes it. At work it yields to others (Gosched)
 * after each span up to go1.19, and from go1.20 on after each tenth one; from go1.25 on also again and again as long as another
 * one sweeps the last span. That is up to 4,000 times a ms, and rtcounters_switches() counts these. -EAGAIN: its g is not known before
 * it has been seen parked; other errors as above. Source: runtime/mgcsweep.go (bgsweep), mgc.go (gcSweep), Go 1.16 to 1.27.
 */
struct rtsweeper {
	uint32_t sweepgen;
	bool parked;
};
int rtcounters_sweeper(struct rtcounters *c, struct rtsweeper *out, struct err *e);

/* Reads mheap_.sweepgen alone. Errors as above. */
int rtcounters_sweepgen(struct rtcounters *c, uint32_t *out, struct err *e);

#endif
