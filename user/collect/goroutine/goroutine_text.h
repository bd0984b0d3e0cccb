/*
 * user/collect/goroutine/goroutine_text.h - a goroutine as /debug/pprof/goroutine?debug=2 prints it.
 *
 * There are three differences: a function's arguments are always "..." (Go prints words of the
 * stack there); labels stand in the first line whatever the Go version; and where the runtime
 * does not know how long the goroutine has been waiting, but we have seen it wait, the text says
 * "at least 10 seconds". Source: goroutineheader, traceback1, traceback2, printcreatedby in
 * runtime/traceback.go, Go 1.18 to 1.27.
 */
#ifndef COLLECT_GOROUTINE_GOROUTINE_TEXT_H
#define COLLECT_GOROUTINE_GOROUTINE_TEXT_H

#include "collect/goroutine/goroutine_stack.h"
#include "go/runtime/rtgor.h"

/*
 * Adds the block of @g to the text of k->p. Its stack is k->stack; @end says how that stack ends,
 * and the text says so, too. @now_ns: CLOCK_MONOTONIC. @seen_ns: for how long we know that it has
 * been waiting, 0: unknown.
 */
int goroutine_text(struct gstacks *k, const struct rtgor *g, enum unwind_end end, uint64_t now_ns,
		   uint64_t seen_ns, struct err *e);

#endif
