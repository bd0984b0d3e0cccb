/*
 * user/go/layout/layout_check.h - are offsets right that were not read from this very build?
 *
 * This is for a release that the table does not hold, and a binary without DWARF. Before any
 * number is given, the offsets are compared with the binary's own instructions and with the
 * memory of the live process. What can be derived is derived (the shape of a heap record, the
 * place of the labels); what does not agree is refused in a sentence.
 *
 * Nothing of this is needed for DWARF or an exact row of the table (layout_is_sure).
 */
#ifndef GO_LAYOUT_LAYOUT_CHECK_H
#define GO_LAYOUT_LAYOUT_CHECK_H

#include <stdbool.h>

#include "base/mem.h"
#include "go/image/gobin.h"
#include "go/layout/layout.h"

static inline bool layout_is_sure(const struct golayout *l)
{
	return l->how == LAYOUT_DWARF || l->how == LAYOUT_TABLE;
}

/*
 * What the offsets are needed for, or-ed. Stacks of any goroutine are always needed, and besides
 * ...
 */
enum layout_use {
	LAYOUT_USE_STACKS = 0,
	LAYOUT_USE_PROBE = 1, /* the allocator's tiny block */
	LAYOUT_USE_WAITS = 2, /* why a goroutine waits */
	LAYOUT_USE_SEMA = 4,  /* the queues of a semaphore: nothing proves these offsets */
	LAYOUT_USE_GOROUTINES =
		8, /* state, since when, where from: as a goroutine profile has it */
};

/*
 * Checks the offsets that @use needs against the instructions of runtime functions that are known
 * to name them (runtime.mcall saves g.sched, ...). An offset that has moved is set to the only
 * place near it that all these functions name, when there is exactly one. The place of the labels
 * is set to what the one function that writes them says, and to -1 where the binary does not hold
 * that function, for then there are no labels; m.ncgo to -1 in a program without cgo. -ENOTSUP
 * with the field and the function, and always for LAYOUT_USE_SEMA.
 */
int layout_check_code(struct gobin *b, struct golayout *l, unsigned int use, struct err *e);

/* Is this field checked or derived, in a program without cgo? For tests. */
bool layout_code_uses(enum layout_field f);

/*
 * Checks the goroutines in runtime.allgs (@allgs: live address of the slice): stacks, saved
 * registers that lie inside of them and of Go text [@text, @etext), ids that are all different,
 * and m.curg and m.g0 of those that run; with @creators also their first function and go
 * statement. The work is bounded, and what moves while it is read is read again. -EBADMSG with
 * what was found; -EFAULT, -ESRCH.
 */
int layout_check_goroutines(struct mem *live, const struct golayout *l, uint64_t allgs,
			    uint64_t text, uint64_t etext, bool creators, struct err *e);

/*
 * Checks where each P keeps the block that tiny objects share (runtime.allp, @allp: live address
 * of the slice). Each collection closes the blocks of all Ps at once (mcache.releaseAll,
 * runtime/mcache.go), so where none is open it looks again, up to @looks times, 10 ms apart.
 * -EBADMSG also when no look found an open block: then nothing can be seen.
 */
int layout_check_tiny(struct mem *live, const struct golayout *l, uint64_t allp, unsigned int looks,
		      struct err *e);

/*
 * Checks the heap profile's buckets, from the head of the list @mbuckets (live address of the
 * variable). The hash in each must be that of the stack and the size that were read. Buckets are
 * allocated one behind the other, and the record behind the stack must be as long as the gaps
 * between them say. memrecord_sizeof and memcycle_sizeof are set to what was derived. An empty
 * list is fine. -EBADMSG, -ENOTSUP (an unknown shape, or too few buckets to tell), -EFAULT,
 * -ESRCH.
 */
int layout_check_buckets(struct mem *live, struct golayout *l, uint64_t mbuckets, struct err *e);

/*
 * The same for the block or mutex profile's buckets: their hashes, records of 16 bytes, and in
 * each record a number of contentions (a float64) and a delay. @heads, by enum bucket_kind: live
 * addresses of the variables; 0 for one that is not known, except @kind's. Buckets of all kinds
 * lie among each other, so more lists make the length of a record more certain.
 */
int layout_check_contention(struct mem *live, const struct golayout *l, enum bucket_kind kind,
			    const uint64_t heads[BUCKET_KINDS], struct err *e);

/* Are the slot sizes in the binary's own data? -ENOTSUP when they are not. */
int layout_check_sizeclasses(struct gobin *b, const struct sizeclasses *c, struct err *e);

#endif
