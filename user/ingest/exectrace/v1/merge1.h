/*
 * user/ingest/exectrace/v1/merge1.h - events of all Ps of a trace of version 1, in the order in which the
 * runtime noted them.
 *
 * Go 1.5 numbers all events. From Go 1.7 on the earliest event comes next whose goroutine is in the
 * state that it demands, with the sequence number that it demands: time stamps of Ps may contradict
 * each other. Source: internal/trace/order.go, Go 1.21.
 */
#ifndef INGEST_EXECTRACE_V1_MERGE1_H
#define INGEST_EXECTRACE_V1_MERGE1_H

#include "ingest/exectrace/v1/index1.h"

struct merged1 {
	struct event1 ev;
	int64_t key, ticks;
	uint32_t proc; /* index in index1.procs */
	int64_t p, g;  /* g: whose event it is; 0: no goroutine's */
	int64_t ran;   /* who ran on the P until now; 0: nobody */
	uint8_t then;  /* the kind of this P's next event; 0: there is none */
};

struct merge1;

int merge1_new(const struct index1 *x, struct merge1 **out, struct err *e);
void merge1_free(struct merge1 *m);
DEFINE_FREEP(struct merge1, merge1)
/*
 * The trace is damaged: where no order is possible by states, events come by time from there on.
 */
void merge1_allow_loose(struct merge1 *m);
/* 1: the next one; 0: no more. -EBADMSG: no order is possible from here on. */
int merge1_next(struct merge1 *m, struct merged1 *out, struct err *e);

#endif
