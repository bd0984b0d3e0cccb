/*
 * user/go/sites/probesite.h - where in a Go function a probe is cheap and counts each call once.
 *
 * The function is decoded from its entry with a disassembler; only an instruction that the
 * decoder reached in a straight line is ever named. The branch of the stack check
 * (`cmp 0x10(%r14),%rsp; jbe`) is emulated by the kernel instead of single-stepped, its
 * flags tell whether the call goes ahead, the arguments are still in their registers and
 * the return address is at [sp].
 */
#ifndef GO_SITES_PROBESITE_H
#define GO_SITES_PROBESITE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "go/image/gobin.h"

enum site_kind {
	SITE_STACK_BRANCH,  /* at the stack check's branch: test the flags, frame not yet set up */
	SITE_NOSPLIT_ENTRY, /* no stack check: the entry itself is passed exactly once */
	/*
	 * There is no stack check, and a probe at the entry is expensive: this is the first
	 * branch. When it is reached, the frame is set up (the frame pointer is the function's)
	 * and the first three arguments are still in their registers.
	 */
	SITE_FRAMED_BRANCH,
};

struct probesite {
	enum site_kind kind;
	uint64_t addr;	   /* link-time address of the instruction */
	uint64_t file_off; /* its place in the file, for uprobes */
	/*
	 * The kernel cannot emulate this instruction and single-steps a copy of it, which costs
	 * several times more, and much more in a virtual machine whose host traps that step.
	 */
	bool stepped;
};

/* -ENOTSUP when no safe site is found, with what was decoded instead. */
int probesite_find(struct gobin *b, const struct gofunc *f, struct probesite *out, struct err *e);

/* The same, but SITE_FRAMED_BRANCH is chosen where a probe there costs less than at the entry. */
int probesite_find_cheap(struct gobin *b, const struct gofunc *f, struct probesite *out,
			 struct err *e);

/*
 * Where @f returns: every return instruction that control reaches from the entry by its branches.
 * There the frame is gone and the results are in their registers. Returns the number found, at
 * most @cap. -ENOTSUP when there are more, or none, or when some way cannot be followed.
 */
int probesite_returns(struct gobin *b, const struct gofunc *f, struct probesite *out, size_t cap,
		      struct err *e);

/*
 * The allocator's entries in this binary: probing all of them sees every heap allocation
 * of slots exactly once, with its size in the first argument.
 *
 * Up to Go 1.23 that is mallocgc; from 1.24 the functions it dispatches to
 * (mallocgcTiny, ...), in 1.27 also the size-specialised ones that the compiler calls
 * directly. By presence, never by version; and mallocgc's own instructions must show that
 * it calls them: a profile-guided build copies the hot ones into mallocgc (seen from 1.24
 * on). Then the entry is mallocgc itself, and a size-specialised function counts only the
 * calls that do not come from it (not_from_lo).
 *
 * A request of 0 bytes passes mallocgc (ALLOC_ANY) and allocates nothing: drop it.
 * Source: runtime/malloc.go, runtime/malloc_generated.go, Go 1.16-1.27.
 */
enum alloc_kind {
	/* mallocgc itself: the type argument (2nd) says whether it has pointers */
	ALLOC_ANY,
	ALLOC_TINY,	     /* no pointers, below 16 bytes: shares a 16-byte block */
	ALLOC_NOSCAN,	     /* small, no pointers */
	ALLOC_SCAN_NOHEADER, /* small, with pointers, no malloc header */
	ALLOC_SCAN_HEADER,   /* small, with pointers, with the 8-byte header */
	ALLOC_LARGE,	     /* whole pages */
};

struct alloc_entry {
	const char *name; /* static */
	enum alloc_kind kind;
	struct gofunc func;
	struct probesite site;
	/*
	 * Calls whose return address lies in [not_from_lo, not_from_hi), link-time addresses,
	 * must be dropped: they were counted at mallocgc. Mostly 0, 0 for all entries.
	 */
	uint64_t not_from_lo, not_from_hi;
	/*
	 * Between the site and the choice of the slot the goroutine may assist the GC or be
	 * preempted. This holds for mallocgc itself, and for the size-specialised functions while
	 * the GC marks.
	 */
	bool assists;
};

enum { ALLOC_ENTRIES_MAX = 128 };

/* Returns the number found (>= 1); -ENOENT when the binary has no allocator that we know. */
int alloc_entries(struct gobin *b, struct alloc_entry out[ALLOC_ENTRIES_MAX], struct err *e);

/*
 * Are these @n entries all that there are? This is asked for a Go newer than any known. -ENOTSUP
 * when a function of the runtime samples allocations and is none of them, or when mallocgc itself
 * would have to be probed, whose dispatch may have changed. It decodes all of package runtime,
 * once.
 */
int alloc_check(struct gobin *b, const struct alloc_entry *entries, size_t n, struct err *e);

/*
 * Do all waits pass the functions that are probed for them: runtime.ready and semacquire1, and
 * with @mutex the queue of a semaphore? -ENOTSUP when a profile-guided build has copied one of
 * them into a caller. It looks at each function's name, once.
 */
int wait_check(struct gobin *b, bool mutex, struct err *e);

#endif
