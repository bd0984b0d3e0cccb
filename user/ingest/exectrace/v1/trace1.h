/*
 * user/ingest/exectrace/v1/trace1.h - a trace of version 1 (Go 1.5 to 1.21), event by event.
 *
 * Its events come as those of version 2 do. What differs: a system call that did not block has no
 * length, since nothing tells when it ended; the reasons of waits are those that version 2 has for the
 * same; an event's thread is the one that its P told when it started; and stops of the world are the
 * program's, not a goroutine's.
 */
#ifndef INGEST_EXECTRACE_V1_TRACE1_H
#define INGEST_EXECTRACE_V1_TRACE1_H

#include "ingest/exectrace/tables.h"

struct trace1;

/* As trace2.h. */
int trace1_open(int fd, unsigned version, struct trace1 **out, struct err *e);
void trace1_free(struct trace1 *t);
DEFINE_FREEP(struct trace1, trace1)
int trace1_next(struct trace1 *t, struct trace_event *ev, struct err *e);
/* As exectrace_damage(). */
int trace1_damage(const struct trace1 *t, struct err *e);
/* False: it is cut before it tells its clock's rate, so times are in ticks. */
bool trace1_has_clock(const struct trace1 *t);
/* As exectrace_cut() and what belongs to it. -EBADMSG: it is damaged. */
int trace1_cut(struct trace1 *t, FILE *f, int64_t from_ns, int64_t to_ns, struct err *e);
bool trace1_cut_is_over(const struct trace1 *t);
int trace1_cut_finish(struct trace1 *t, int64_t *from_ns, int64_t *to_ns, struct err *e);
struct trace_tables *trace1_own_tables(struct trace1 *t);
const struct trace_tables *trace1_tables(const struct trace1 *t);
/* Of the next event; events of Ps are not in order in the file. */
uint64_t trace1_offset(const struct trace1 *t);
uint64_t trace1_size(const struct trace1 *t);

#endif
