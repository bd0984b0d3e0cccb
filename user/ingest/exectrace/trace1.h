/*
 * user/ingest/exectrace/trace1.h - a trace of version 1 (Go 1.7 to 1.21), event by event.
 *
 * Its events come as those of version 2 do. What differs: a system call that did not block is no
 * stretch, since nothing tells when it ended; the reasons of waits are those that version 2 has for
 * the same; and an event's thread is the one that its P told when it started.
 */
#ifndef INGEST_EXECTRACE_TRACE1_H
#define INGEST_EXECTRACE_TRACE1_H

#include "ingest/exectrace/tables.h"

struct trace1;

/* As trace2.h. */
int trace1_open(int fd, unsigned version, struct trace1 **out, struct err *e);
void trace1_free(struct trace1 *t);
int trace1_next(struct trace1 *t, struct trace_event *ev, struct err *e);
const struct trace_tables *trace1_tables(const struct trace1 *t);
uint64_t trace1_offset(const struct trace1 *t);
uint64_t trace1_size(const struct trace1 *t);

#endif
