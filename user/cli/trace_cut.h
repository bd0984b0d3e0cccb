/*
 * user/cli/trace_cut.h - a part of a trace as a trace of its own.
 *
 * A trace of version 2 is a row of generations, each of which tells by itself what all goroutines
 * and Ps were doing, as a flight recorder's trace begins with any of them. So the generations that
 * overlap a time, one after the other behind the header, are a whole trace.
 */
#ifndef CLI_TRACE_CUT_H
#define CLI_TRACE_CUT_H

#include <stdio.h>

#include "ingest/exectrace/exectrace.h"

struct trace_cut;

/* -ENOTSUP: a trace of this version cannot be cut. */
int trace_cut_new(unsigned version, struct trace_cut **out, struct err *e);
void trace_cut_free(struct trace_cut *c);
DEFINE_FREEP(struct trace_cut, trace_cut)

/* Each event up to the end of the time, which begins at @from_ns. */
int trace_cut_event(struct trace_cut *c, const struct exectrace *t, const struct trace_event *ev,
		    int64_t from_ns, struct err *e);
/* @damaged: the last generation that there was is not whole. -ENOENT: nothing is left. */
int trace_cut_end(struct trace_cut *c, bool damaged, struct err *e);

/* From when to when it goes, as the trace counts time. */
void trace_cut_span(const struct trace_cut *c, int64_t *from_ns, int64_t *to_ns);
/* Copies it from the trace that is open as @fd. */
int trace_cut_write(const struct trace_cut *c, int fd, FILE *f, struct err *e);

#endif
