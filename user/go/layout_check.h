/*
 * user/go/layout_check.h - are offsets that nobody read from this very build right?
 *
 * For a release that the table does not hold and a binary without DWARF: before any number is
 * given, what the offsets say is compared with what the binary's own instructions say, and
 * with what stands in the live process. Where something can be derived it is (the shape of a
 * heap record, the place of the labels); what does not agree is refused with a sentence.
 *
 * None of this is asked for DWARF or an exact row of the table (layout_is_sure).
 */
#ifndef GO_LAYOUT_CHECK_H
#define GO_LAYOUT_CHECK_H

#include <stdbool.h>

#include "base/mem.h"
#include "go/gobin.h"
#include "go/layout.h"
#include "go/rtbucket_list.h"

static inline bool layout_is_sure(const struct golayout *l)
{
	return l->how == LAYOUT_DWARF || l->how == LAYOUT_TABLE;
}

/* Who reads the offsets, or-ed: stacks of any goroutine always, and besides ... */
enum layout_use {
	LAYOUT_USE_STACKS = 0,
	LAYOUT_USE_PROBE = 1, /* the allocator's tiny block */
	LAYOUT_USE_WAITS = 2, /* why a goroutine waits */
	LAYOUT_USE_SEMA = 4,  /* the queues of a semaphore: nothing proves these offsets */
	LAYOUT_USE_GOROUTINES =
		8, /* state, since when, where from: as a goroutine profile has it */
};

/*
 * The offsets that @use needs, as functions of the runtime name them in their instructions
 * (runtime.mcall saves g.sched, ...). One that has moved is set to the only place near it that
 * they all name, when there is but one. The place of the labels is set to what the one function
 * that writes them says, to -1 where the binary does not hold it, for then there are none;
 * m.ncgo to -1 in a program without cgo. -ENOTSUP with the field and the function, and always
 * for LAYOUT_USE_SEMA.
 */
int layout_check_code(struct gobin *b, struct golayout *l, unsigned int use, struct err *e);

/* Is it one of the fields that are checked or derived, in a program without cgo? For tests. */
bool layout_code_uses(enum layout_field f);

/*
 * The goroutines in runtime.allgs (@allgs: live address of the slice): stacks, saved
 * registers inside of them and of Go text [@text, @etext), ids that are all different, and
 * m.curg, m.g0 of those that run; with @creators also their first function and go statement.
 * Bounded; what moves while it is read is read again.
 * -EBADMSG with what was found; -EFAULT, -ESRCH.
 */
int layout_check_goroutines(struct mem *live, const struct golayout *l, uint64_t allgs,
			    uint64_t text, uint64_t etext, bool creators, struct err *e);

/*
 * Where each P keeps the block that tiny objects share (runtime.allp, @allp: live address of
 * the slice). -EBADMSG also when no P has one open at this moment: nothing shows then.
 */
int layout_check_tiny(struct mem *live, const struct golayout *l, uint64_t allp, struct err *e);

/*
 * The heap profile's buckets, from the head of the list @mbuckets (live address of the
 * variable): the hash in each is that of the stack and the size that were read, and the
 * record behind the stack is as long as the gaps between buckets, which are allocated one
 * behind the other, say. memrecord_sizeof and memcycle_sizeof are set to what was derived.
 * An empty list is fine. -EBADMSG, -ENOTSUP (a shape we do not know, or too few buckets to
 * tell), -EFAULT, -ESRCH.
 */
int layout_check_buckets(struct mem *live, struct golayout *l, uint64_t mbuckets, struct err *e);

/*
 * The same for the block or mutex profile's buckets: their hashes, records of 16 bytes, and in
 * each a number of contentions (a float64) and a delay. @heads, by enum bucket_kind: live
 * addresses of the variables, 0 for one that is not known but @kind's; all buckets lie among each
 * other, so the more lists are there the better can be told how long a record is.
 */
int layout_check_contention(struct mem *live, const struct golayout *l, enum bucket_kind kind,
			    const uint64_t heads[BUCKET_KINDS], struct err *e);

/* The slot sizes stand in the binary's own data. -ENOTSUP when they do not. */
int layout_check_sizeclasses(struct gobin *b, const struct sizeclasses *c, struct err *e);

#endif
