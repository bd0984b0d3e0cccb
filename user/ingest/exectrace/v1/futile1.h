/*
 * user/ingest/exectrace/v1/futile1.h - wakeups that were in vain, in a trace of version 1.
 *
 * In Go 1.5 a goroutine that waited for a channel could be woken, run, and find that another one had
 * been faster. Go's reader takes such a wakeup out: the goroutine waited all the time. Source:
 * removeFutile() in internal/trace/parser.go, Go 1.21.
 */
#ifndef INGEST_EXECTRACE_V1_FUTILE1_H
#define INGEST_EXECTRACE_V1_FUTILE1_H

#include "ingest/exectrace/v1/index1.h"

struct futile1;

/* Merges all events once; what comes behind a place where that fails is not looked at. */
int futile1_find(const struct index1 *x, struct futile1 **out, struct err *e);
void futile1_free(struct futile1 *f);
DEFINE_FREEP(struct futile1, futile1)
/* Is the event at this offset a part of one? */
bool futile1_has(const struct futile1 *f, uint64_t off);

#endif
