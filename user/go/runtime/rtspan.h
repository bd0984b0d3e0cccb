/*
 * user/go/runtime/rtspan.h - does an object on the heap still live? Its span's bitmaps tell.
 *
 * mheap_.sweepgen grows by 2 with each GC cycle. When a span has been swept for that cycle, the
 * bit of a slot in allocBits says whether the object that lay there when the cycle marked was
 * reached. The bit stays so until the next cycle: what is put into the slot meanwhile does not
 * set it. As long as the span is not swept, the answer is in gcmarkBits or, from Go 1.25 on with
 * the Green Tea collector, for small objects at the end of the span's own page. So an object can
 * be followed from one cycle to the next. Whoever misses two cycles may find a younger object in
 * the slot.
 *
 * Sources: mspan and the comment on sweepgen in runtime/mheap.go, sweep in runtime/mgcsweep.go,
 * nextMarkBitArenaEpoch in runtime/mheap.go, spanInlineMarkBits in runtime/mgcmark_greenteagc.go,
 * Go 1.19 to 1.27.
 */
#ifndef GO_RUNTIME_RTSPAN_H
#define GO_RUNTIME_RTSPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "go/layout/layout.h"

enum rtspan_inline { INLINE_NONE, INLINE_MARKS, INLINE_UNKNOWN };

struct rtspan_layout {
	int32_t start, nelems, allocbits, gcmarkbits, sweepgen, state, elemsize;
	uint32_t index_bytes; /* of nelems: 8 up to Go 1.21, 2 from 1.22 */
	size_t head;	      /* bytes of an mspan that are read */
	enum rtspan_inline marks;
};

/*
 * @experiments: those of the build, NULL for none. -ENOTSUP with the field that is not known,
 * below Go 1.19, and for an experiment that puts objects elsewhere.
 */
int rtspan_layout(const struct golayout *l, int minor, const char *experiments,
		  struct rtspan_layout *out, struct err *e);

/* The variables that all spans are compared with. Live addresses. */
struct rtspan_vars {
	uint64_t sweepgen; /* mheap_.sweepgen */
	uint64_t blacken;  /* gcBlackenEnabled; 0: not known */
};

enum rtspan_answer {
	RTSPAN_LIVES, /* it lives, as of cycle gen */
	RTSPAN_DEAD,
	/*
	 * something lives in its slot as of cycle gen, but cycles were missed, so it may be
	 * another object
	 */
	RTSPAN_MISSED,
	RTSPAN_UNREADABLE,
};

struct rtspan_object {
	uint64_t span, base; /* live addresses: of the mspan, of the span's memory */
	uint64_t size;	     /* of a slot */
	/*
	 * In and out: the span's gcmarkBits at the time of gen; 0: not known. The next sweep
	 * makes them its allocBits, and only the sweep after that frees them. So even after one
	 * missed cycle they tell what that cycle found, until the GC marks again.
	 */
	uint64_t marks;
	uint32_t index; /* of the slot */
	/* in and out: the cycle as of which the object is known to live */
	uint32_t gen;
	enum rtspan_answer answer; /* out */
	/*
	 * out: so many cycles lie between the two, too many to tell an object from the next one in its slot, be that free
	 * (RTSPAN_DEAD) or in use (RTSPAN_MISSED); 0: that can be told
	 */
	uint32_t missed;
};

/*
 * Asks for all of @v at once. *@gen: the cycle that ended last. An object that lives and has
 * another gen is in a span that is not swept yet: ask again later. @last: do not postpone, but
 * read the marks of such spans; an object that a finalizer will keep alive once more then counts
 * as dead. -EAGAIN when a cycle ended meanwhile: @v is unchanged. -ESRCH, -EPERM, -EFAULT: the
 * process cannot be read; -ENOMEM.
 */
int rtspan_ask(struct mem *m, const struct rtspan_layout *l, const struct rtspan_vars *vars,
	       bool last, struct rtspan_object *v, size_t n, uint32_t *gen, struct err *e);

#endif
