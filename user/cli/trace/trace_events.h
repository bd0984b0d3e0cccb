/* user/cli/trace/trace_events.h - the events of a trace, a line each. */
#ifndef CLI_TRACE_TRACE_EVENTS_H
#define CLI_TRACE_TRACE_EVENTS_H

#include <stdio.h>

#include "ingest/exectrace/exectrace.h"

/* @start_ns: of the first event of all. */
void trace_events_put(FILE *f, const struct exectrace *t, const struct trace_event *ev,
		      int64_t start_ns);

#endif
