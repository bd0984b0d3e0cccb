/*
 * user/symbolize/stack_logical.h - turns stacks of logical return pcs, as a runtime bucket holds
 * them, into locations exactly as runtime/pprof of that Go version makes them.
 *
 * A logical stack has one pc for each call, also for inlined calls: these have a made-up pc
 * inside of the function that they were inlined into. A profile has one location for each
 * physical pc, with the inlined calls as its lines. So runs of pcs are folded into one.
 *
 * Source: runtime/pprof/proto.go, appendLocsForStack, pcDeck, emitLocation, allFrames;
 * runtime/symtab.go, CallersFrames, FuncForPC, expandFinalInlineFrame; Go 1.16 to 1.27.
 */
#ifndef SYMBOLIZE_STACK_LOGICAL_H
#define SYMBOLIZE_STACK_LOGICAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "go/image/gobin.h"
#include "profile/profile.h"

/* Where names come from and locations go to; all of it is borrowed until logical_free(). */
struct logical_source {
	/*
	 * The calls at a live address, innermost first, with wrappers, and the entry of their
	 * physical function; all addresses are live ones. Returns their number, at most @cap; 0
	 * or less where there is no Go code.
	 */
	int (*frames)(void *arg, uint64_t addr, struct goframe *f, size_t cap, uint64_t *entry);
	/* The profile's mapping that holds a live address; 0 for none, or a negative errno. */
	int (*mapping)(void *arg, struct prof *p, uint64_t addr, struct err *e);
	void *arg;
	struct prof *prof;
	int minor; /* of the Go version; -1: newer than any we know */
};

struct logical;
int logical_new(const struct logical_source *src, struct logical **out, struct err *e);
void logical_free(struct logical *l);
DEFINE_FREEP(struct logical, logical)

/*
 * The location ids of one stack, leaf first, borrowed until the next call. @pcs: live return pcs,
 * leaf first; not changed. runtime.goexit makes no location, so *nlocs may be 0. A pc outside of
 * the binary becomes a location without lines, and is counted in the profile's PCS_UNRESOLVED.
 * -ENOMEM, or the error of the mapping.
 */
int logical_locations(struct logical *l, const uint64_t *pcs, size_t n, const uint32_t **locs,
		      size_t *nlocs, struct err *e);

/*
 * How many of the leading pcs a heap profile leaves out: those in functions of the runtime. 0
 * when all of them are. The name is looked up at the return pc itself, as Go does it: after a
 * call that ends its function, that is the next function. Source: runtime/pprof/protomem.go,
 * writeHeapProto; "internal/runtime/" from Go 1.24.
 */
size_t logical_hidden(struct logical *l, const uint64_t *pcs, size_t n);

/*
 * From Go 1.23 on a block or mutex bucket holds physical return pcs, except for the few that were
 * expanded when the runtime skipped its own frames. This makes the list of logical pcs that
 * runtime/pprof makes of it, for logical_locations(): inlined calls are put in where they are
 * missing; what is not Go code is left out (the runtime's mark of a stack that is already logical
 * is such a pc); the list ends at @max. Borrowed until the next call. -ENOMEM, or -E2BIG for more
 * than LIMIT_BUCKET_STACK pcs. Source: expandInlinedFrames in runtime/pprof/pprof.go,
 * (*Frames).Next in runtime/symtab.go, Go 1.23 to 1.27.
 */
int logical_callers(struct logical *l, const uint64_t *pcs, size_t n, size_t max,
		    const uint64_t **out, size_t *nout, struct err *e);

#endif
