/*
 * user/go/runtime/rtcontention.h - the runtime's block or mutex buckets, read from a target's memory.
 *
 * Gives what the runtime holds at this moment, before anything that runtime.BlockProfile or
 * runtime/pprof does to it: the counts since the program started, as sampled, in cputicks. They
 * are never reset.
 *
 * What an event adds to its record, by Go version:
 * 	block	up to 1.16	a sampled event adds 1 and its cycles
 * 		from 1.17	an event shorter than the rate adds rate/cycles, and rate cycles
 * 	mutex	up to 1.19	a sampled event adds 1 and its cycles
 * 		from 1.20	a sampled event adds the fraction, and the fraction times its cycles
 * Source: runtime/mprof.go, saveblockevent and saveBlockEventStack, Go 1.16 to 1.27.
 */
#ifndef GO_RUNTIME_RTCONTENTION_H
#define GO_RUNTIME_RTCONTENTION_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "go/layout/layout.h"
#include "go/runtime/rtbucket_list.h"

struct rtcontention {
	double count;	/* events; a whole number up to go1.16 */
	int64_t cycles; /* cputicks waited */
	uint64_t addr;	/* live address: tells buckets of two readings apart */
	uint32_t nstk;
	uint32_t stk; /* index into rtcontentions.pcs: return pcs, leaf first, live addresses */
};

struct rtcontentions {
	struct rtcontention *at;
	size_t n;
	uint64_t *pcs;
	size_t npcs;
	uint64_t rate; /* blockprofilerate (cputicks) or mutexprofilerate (1 in N) when read */
	/* buckets that changed at each look: they may have an event without its delay */
	uint64_t torn;
	uint64_t skipped; /* buckets that could not be read or made no sense */
};

struct rtcontention_vars {
	enum bucket_kind kind; /* BUCKET_BLOCK or BUCKET_MUTEX */
	uint64_t buckets;      /* live address of runtime.bbuckets, xbuckets */
	uint64_t rate;	       /* of runtime.blockprofilerate, mutexprofilerate */
	int minor;	       /* Go minor version: decides the record's shape; -1 newest */
};

/*
 * @m: the live process. The walk is bounded by LIMIT_BUCKETS; an empty list is fine. -EFAULT,
 * -EBADMSG, -ESRCH, -ENOTSUP. On an error inside the list, what was read before is kept and the
 * function returns 0 with skipped > 0; @e then says what was wrong.
 */
int rtcontentions_read(struct mem *m, const struct golayout *l, const struct rtcontention_vars *v,
		       struct rtcontentions *out, struct err *e);
void rtcontentions_fini(struct rtcontentions *b);

#endif
