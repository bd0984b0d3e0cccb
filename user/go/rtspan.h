/*
 * user/go/rtspan.h - does an object on the heap still live? Asked of its span's bitmaps.
 *
 * mheap_.sweepgen grows by 2 with each GC cycle. When a span has been swept for that cycle,
 * the bit of a slot in allocBits says whether the object that lay there when the cycle marked
 * was reached, and it stays so until the next cycle: what is put into the slot meanwhile does
 * not set it. Not yet swept, the answer is in gcmarkBits, or from Go 1.25 on with the Green Tea
 * collector for small objects at the end of the span's own page. So an object is followed from
 * one cycle to the next; whoever misses two may find a younger object in the slot.
 *
 * Sources: mspan and the comment on sweepgen in runtime/mheap.go, sweep in
 * runtime/mgcsweep.go, nextMarkBitArenaEpoch in runtime/mheap.go, spanInlineMarkBits in
 * runtime/mgcmark_greenteagc.go, Go 1.19 to 1.27.
 */
#ifndef GO_RTSPAN_H
#define GO_RTSPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "go/layout.h"

enum rtspan_inline { INLINE_NONE, INLINE_MARKS, INLINE_UNKNOWN };

struct rtspan_layout {
	int32_t start, nelems, allocbits, gcmarkbits, sweepgen, state, elemsize;
	uint32_t index_bytes; /* of nelems: 8 up to Go 1.21, 2 from 1.22 */
	size_t head;	      /* bytes of an mspan that are read */
	enum rtspan_inline marks;
};

/*
 * @experiments: of the build, NULL for none. -ENOTSUP with the field that is not known, below Go
 * 1.19, and for an experiment that puts objects elsewhere.
 */
int rtspan_layout(const struct golayout *l, int minor, const char *experiments,
		  struct rtspan_layout *out, struct err *e);

/* Where a target keeps what all spans are measured by. Live addresses. */
struct rtspan_vars {
	uint64_t sweepgen; /* mheap_.sweepgen */
	uint64_t blacken;  /* gcBlackenEnabled; 0: not known */
};

enum rtspan_answer {
	RTSPAN_LIVES, /* as of cycle gen */
	RTSPAN_DEAD,
	RTSPAN_MISSED, /* something lives in its slot as of cycle gen, but cycles were missed */
	RTSPAN_UNREADABLE,
};

struct rtspan_object {
	uint64_t span, base; /* live addresses: of the mspan, of the span's memory */
	uint64_t size;	     /* of a slot */
	/*
	 * In and out: the span's gcmarkBits when gen was told, 0 not known. The next sweep makes them
	 * its allocBits, and only the second next gives them up: so one missed cycle is told of yet,
	 * until the GC marks again.
	 */
	uint64_t marks;
	uint32_t index;		   /* of the slot */
	uint32_t gen;		   /* in and out: the cycle as of which it is known to live */
	enum rtspan_answer answer; /* out */
};

/*
 * All of @v at once. *@gen: the cycle that ended last; an object that lives and has another gen
 * is in a span that is not swept yet: ask again later. @last: do not put off, but ask the marks
 * of such spans; an object that a finalizer will keep once more counts as dead then.
 * -EAGAIN when a cycle ended meanwhile: @v is as it was. -ESRCH, -EPERM, -EFAULT: the process
 * cannot be read; -ENOMEM.
 */
int rtspan_ask(struct mem *m, const struct rtspan_layout *l, const struct rtspan_vars *vars,
	       bool last, struct rtspan_object *v, size_t n, uint32_t *gen, struct err *e);

#endif
