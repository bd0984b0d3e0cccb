/*
 * user/ingest/exectrace/v2/cut2.h - a part of a trace of version 2, written as a trace while the whole is read.
 *
 * A generation tells by itself what all goroutines and Ps were doing, so what is needed of it is: its tables,
 * its events in the time that is asked for, and before those a status of each thing that was known by then.
 * Numbers by which events of several threads are put in order are counted from that status on. The events begin in
 * the tick behind it: one whose time stamp is earlier came late, since it had to wait for another thread's.
 * Generations that are wanted wholly are copied as they are.
 *
 * Source of what a reader demands: internal/trace/order.go, Go 1.22 to 1.27.
 */
#ifndef INGEST_EXECTRACE_V2_CUT2_H
#define INGEST_EXECTRACE_V2_CUT2_H

#include <stdio.h>

#include "ingest/exectrace/v2/order.h"

struct cut2;

/* @f: borrowed. Times are from the trace's first event on; @to_ns: INT64_MAX: to its end. */
int cut2_new(struct generations *s, FILE *f, int64_t from_ns, int64_t to_ns, struct cut2 **out,
	     struct err *e);
void cut2_free(struct cut2 *c);
DEFINE_FREEP(struct cut2, cut2)

/*
 * A generation begins, which is the file's bytes from @off to @end, with an event of this time. Its events
 * come now, if it is not damaged.
 */
void cut2_begin(struct cut2 *c, const struct generation *g, uint64_t off, uint64_t end,
		int64_t time_ns);
/* Is this time, before which all comes that came, where the cut begins? */
bool cut2_opens_at(const struct cut2 *c, int64_t time_ns);
/* Then so does it, with the states that there are now. */
int cut2_open(struct cut2 *c, const struct order *o, struct err *e);
/* An event of thread @m that came; @told: what it means, at its time. */
struct cut2_event {
	const struct raw_event *ev;
	unsigned nargs;
	int64_t m;
	const struct trace_event *told;
};
int cut2_put(struct cut2 *c, const struct order *o, const struct cut2_event *ev, struct err *e);
/* All events of the generation came. */
int cut2_end(struct cut2 *c, struct err *e);

/* Nothing that comes matters. */
bool cut2_is_over(const struct cut2 *c);
/*
 * Writes what is missing. Of a generation that broke off events before that are kept. *from_ns, *to_ns: of the
 * first and the last event, as the trace counts time. -ENOENT: there is none.
 */
int cut2_finish(struct cut2 *c, int64_t *from_ns, int64_t *to_ns, struct err *e);

#endif
