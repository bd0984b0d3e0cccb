/* user/ingest/exectrace/v2/trace2.h - a trace of version 2, event by event: a merge of its threads. */
#ifndef INGEST_EXECTRACE_V2_TRACE2_H
#define INGEST_EXECTRACE_V2_TRACE2_H

#include <stdio.h>

#include <stdio.h>

#include "ingest/exectrace/v2/generation.h"

struct trace2;

/* @fd: borrowed; @version: of the header, behind which the file goes on at offset 16. */
int trace2_open(int fd, unsigned version, struct trace2 **out, struct err *e);
void trace2_free(struct trace2 *t);
/* As exectrace_next(). */
int trace2_next(struct trace2 *t, struct trace_event *ev, struct err *e);
/* As exectrace_damage(). */
int trace2_damage(const struct trace2 *t, struct err *e);
/* False: it is cut before it tells its clock's rate, so times are in ticks. */
bool trace2_has_clock(const struct trace2 *t);
const struct trace_tables *trace2_tables(const struct trace2 *t);
const struct stream *trace2_stream(const struct trace2 *t);

/* As exectrace_cut() and what follows it. */
int trace2_cut(struct trace2 *t, FILE *f, int64_t from_ns, int64_t to_ns, struct err *e);
bool trace2_cut_is_over(const struct trace2 *t);
int trace2_cut_finish(struct trace2 *t, int64_t *from_ns, int64_t *to_ns, struct err *e);

#endif
