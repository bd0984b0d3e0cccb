/*
 * user/cli/trace/trace_to_perfetto.h - a Go trace as one of Perfetto's.
 *
 * Tracks: of the program (collections; counters of heap, goal, goroutines, running, GOMAXPROCS), one
 * for each P with what ran there, one for each thread likewise and with system calls, one for each
 * goroutine with its states, one for each task. What need not lie within a state (regions, ranges of
 * the collector) is on tracks below those. Unblocking and creating are flows to the next run.
 * Memory is that of the goroutines, Ps, threads and tasks that live.
 */
#ifndef CLI_TRACE_TRACE_TO_PERFETTO_H
#define CLI_TRACE_TRACE_TO_PERFETTO_H

#include <stdio.h>

#include "ingest/exectrace/exectrace.h"

struct trace_to_perfetto;

/* @f: borrowed. @name: of the trace, for people; borrowed. */
int trace_to_perfetto_new(FILE *f, const char *name, struct trace_to_perfetto **out, struct err *e);
void trace_to_perfetto_free(struct trace_to_perfetto *p);
DEFINE_FREEP(struct trace_to_perfetto, trace_to_perfetto)

/*
 * Each event, in order. @before: it is from before the time that is asked for, and has the beginning
 * of that as its own; what goes on then begins there. @start_ns: of the first event of the trace:
 * times are told from there on.
 */
int trace_to_perfetto_event(struct trace_to_perfetto *p, const struct exectrace *t,
			    const struct trace_event *ev, int64_t start_ns, bool before,
			    struct err *e);
/* One from behind the time that is asked for: trace_summary_late(). */
int trace_to_perfetto_late(struct trace_to_perfetto *p, const struct exectrace *t,
			   const struct trace_event *ev, struct err *e);
/* The time that is asked for ends here, and not before the first event, though the trace goes on. */
int trace_to_perfetto_stop(struct trace_to_perfetto *p, int64_t time_ns, struct err *e);
/* After the last one. */
int trace_to_perfetto_end(struct trace_to_perfetto *p, struct err *e);

#endif
