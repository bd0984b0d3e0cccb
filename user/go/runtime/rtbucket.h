/*
 * user/go/runtime/rtbucket.h - the runtime's memory-profile buckets, read from a target's memory.
 *
 * Gives what runtime.MemProfile(p, true) would return at this moment: the state of the
 * last completed GC cycle (active, plus the cycle that is due to be flushed); before the
 * first GC, the sum of all cycles.
 * Source: runtime/mprof.go, Go 1.16 to 1.27 (memRecord halves in 1.27: no byte counts).
 */
#ifndef GO_RUNTIME_RTBUCKET_H
#define GO_RUNTIME_RTBUCKET_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "go/image/gobin.h"
#include "go/layout/layout.h"

struct rtbucket {
	uint64_t size;			  /* of one object (slot), bytes; key of the bucket */
	uint64_t allocs, frees;		  /* sampled objects, unscaled */
	uint64_t alloc_bytes, free_bytes; /* as stored; from go1.27 on count * size */
	/*
	 * Sums until now, also of what no GC cycle has published yet: all four parts of the
	 * record. They are the sums at one moment, because the parts that move were seen not to
	 * move. Frees of objects that are dead but not swept are in neither.
	 */
	uint64_t all_allocs, all_frees;
	uint64_t addr; /* live address: tells buckets of two readings apart */
	uint32_t nstk;
	uint32_t stk; /* index into rtbuckets.pcs: logical return pcs, leaf first, live addresses */
};

struct rtbuckets {
	struct rtbucket *at;
	size_t n;
	uint64_t *pcs;
	size_t npcs;
	int64_t rate;	      /* runtime.MemProfileRate when read */
	uint32_t cycle;	      /* the profile cycle the values belong to */
	bool before_first_gc; /* all cycles were summed */
	unsigned retries;     /* passes that were thrown away because the runtime moved under us */
	/* buckets that never read the same twice: these have the values of the last pass */
	uint64_t torn;
	uint64_t skipped; /* buckets that could not be read or made no sense */
};

/*
 * @m: the live process; the addresses are live ones (bias added). Bounded by
 * LIMIT_BUCKETS; a cycle in the list ends the walk with -EBADMSG. An empty list is fine.
 * 0, or -EFAULT/-EBADMSG/-ESRCH. On an error inside the list what was read before is kept
 * in *out and the function returns 0 with skipped > 0 when at least one bucket was read;
 * @e then says what was wrong.
 */
struct rtbucket_vars {
	uint64_t mbuckets, memprofilerate, mprofcycle; /* live addresses */
	int minor; /* Go minor version: decides the record's and the cycle's shape */
};
int rtbuckets_read(struct mem *m, const struct golayout *l, const struct rtbucket_vars *v,
		   struct rtbuckets *out, struct err *e);
void rtbuckets_fini(struct rtbuckets *b);

#endif
