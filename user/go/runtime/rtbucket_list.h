/*
 * user/go/runtime/rtbucket_list.h - one list of the runtime's profile buckets, walked from outside:
 * headers and stacks. The record behind a stack is read by the caller.
 *
 * A bucket is allocated once (persistentalloc), filled in, and only then put at the head of its
 * list. It never moves, and neither its stack nor its links ever change. So the list that begins
 * at one reading of the head can be walked without a lock.
 *
 * Source: runtime/mprof.go, Go 1.16 to 1.27: bucket, newBucket, stkbucket.
 */
#ifndef GO_RUNTIME_RTBUCKET_LIST_H
#define GO_RUNTIME_RTBUCKET_LIST_H

#include <stdint.h>

#include "base/limits.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "go/layout/layout.h"

struct rtlist_bucket {
	uint64_t addr;	 /* live */
	uint64_t size;	 /* of one object, bytes; 0 in block and mutex buckets */
	uint64_t record; /* live address of what follows the stack */
	uint32_t nstk;
	uint32_t stk; /* index into pcs */
};

/* A zeroed one is empty. It has 8 KB of scratch in it, so it should not be on the stack. */
struct rtlist {
	VEC(uint64_t) pcs; /* return pcs, leaf first, live addresses; of all buckets */
	size_t n;	   /* buckets that were taken */
	uint64_t skipped;  /* buckets that could not be read or made no sense */
	struct map seen;   /* private */
	uint64_t stk[LIMIT_BUCKET_STACK]; /* private */
};
void rtlist_fini(struct rtlist *l);

/*
 * Called for each bucket, to read its record and keep what is wanted of it. -ENOMEM, -E2BIG and
 * -ESRCH end the walk; another negative errno leaves this one bucket out.
 */
typedef int rtlist_take(void *arg, const struct rtlist_bucket *b, struct err *e);

/*
 * Walks the list that begins at @head, which was read from the variable; 0: it is empty. @m may
 * be a cache. The walk is bounded by LIMIT_BUCKETS; a cycle ends it. What was read before an
 * error is kept: then 0 is returned, skipped is not 0, and @e says what was wrong. -EBADMSG,
 * -EFAULT, -ESRCH, -ENOMEM when there is nothing at all, -ENOTSUP when the layout cannot be that
 * of a bucket.
 */
int rtlist_walk(struct rtlist *l, struct mem *m, const struct golayout *layout,
		enum bucket_kind kind, uint64_t head, rtlist_take *take, void *arg, struct err *e);

#endif
