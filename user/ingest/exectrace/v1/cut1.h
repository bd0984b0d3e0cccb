/*
 * user/ingest/exectrace/v1/cut1.h - a part of a trace of version 1, written as a trace while the whole is read.
 *
 * The runtime begins such a trace with a creation of each goroutine that is there, and with its state; so does
 * the part, and then has the events of its time. What is written is in the order that was found for them: each
 * event of a goroutine has its number there, ends of system calls have the time at which they ended, and wakeups
 * in vain are left out. Strings, stacks and the clock's rate follow, as in every such trace.
 *
 * Source of what the runtime writes: StartTrace() in runtime/trace.go, Go 1.5 to 1.21; of what a reader demands:
 * internal/trace/parser.go and order.go of the same.
 */
#ifndef INGEST_EXECTRACE_V1_CUT1_H
#define INGEST_EXECTRACE_V1_CUT1_H

#include <stdio.h>

#include "ingest/exectrace/v1/trace1_priv.h"

struct cut1;

/*
 * @states: those of the trace, borrowed, as @f; they follow each event before the part does. Times are from the
 * trace's first event on; @to_ns: INT64_MAX: to its end.
 */
int cut1_new(const struct states1 *states, FILE *f, int64_t from_ns, int64_t to_ns,
	     struct cut1 **out, struct err *e);
void cut1_free(struct cut1 *c);
DEFINE_FREEP(struct cut1, cut1)

/* All that is earlier came, and what comes next happens then: the part may begin, or end. */
int cut1_reach(struct cut1 *c, int64_t ticks, struct err *e);
/* One that came, and what it means was put into the states. */
int cut1_put(struct cut1 *c, const struct merged1 *m, struct err *e);
int cut1_exit(struct cut1 *c, const struct exit1 *x, struct err *e);
int cut1_sample(struct cut1 *c, const struct sample1 *s, struct err *e);

/* Nothing that comes matters. */
bool cut1_is_over(const struct cut1 *c);
/* As exectrace_cut_finish(). */
int cut1_finish(struct cut1 *c, int64_t *from_ns, int64_t *to_ns, struct err *e);

#endif
