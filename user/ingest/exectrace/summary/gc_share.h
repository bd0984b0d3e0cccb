/*
 * user/ingest/exectrace/summary/gc_share.h - the share of the Ps that is the program's own, from event to
 * event.
 *
 * A P is lost to it while the world is stopped, and while a worker that marks or a goroutine that
 * assists in marking runs on it; sweeping is not counted, as in the curve that `go tool trace` shows
 * first. Source: internal/trace/gc.go, Go 1.21 and 1.27. Of version 2 that one counts a worker's
 * second run twice and its end once; here a worker is one from its label on until it stops, as it is
 * there for version 1.
 */
#ifndef INGEST_EXECTRACE_SUMMARY_GC_SHARE_H
#define INGEST_EXECTRACE_SUMMARY_GC_SHARE_H

#include "base/map.h"
#include "base/vec.h"
#include "ingest/exectrace/exectrace.h"
#include "ingest/exectrace/summary/mmu.h"

struct gc_share {
	struct mmu *mmu;
	uint64_t procs; /* GOMAXPROCS; 0: not known yet */
	unsigned stopped;
	struct map doing; /* goroutine -> enum gc_doing */
	VEC(uint32_t) on; /* by P: how many of these run there */
	size_t busy;	  /* Ps that have one */
};

int gc_share_init(struct gc_share *s, struct err *e);
void gc_share_fini(struct gc_share *s);
int gc_share_event(struct gc_share *s, const struct trace_event *ev, struct err *e);

#endif
