/*
 * user/ingest/exectrace/v1/exits1.h - ends of system calls of a trace of version 1, by the time at which
 * they ended.
 *
 * A goroutine notes the end of a system call when it runs again, with the time at which it ended. So
 * Ps are read ahead of the events that are told, by about a second; what is noted later than that is
 * known from the index. Memory follows the ends of a few seconds, not the trace.
 */
#ifndef INGEST_EXECTRACE_V1_EXITS1_H
#define INGEST_EXECTRACE_V1_EXITS1_H

#include "ingest/exectrace/v1/index1.h"

struct exits1;

int exits1_new(const struct index1 *x, struct exits1 **out, struct err *e);
void exits1_free(struct exits1 *x);
DEFINE_FREEP(struct exits1, exits1)
/* What comes before @key is complete from now on. */
int exits1_reach(struct exits1 *x, int64_t key, struct err *e);
/* The first one; false: there is none. */
bool exits1_peek(const struct exits1 *x, struct exit1 *out);
void exits1_drop(struct exits1 *x);

#endif
