/*
 * user/ingest/exectrace/summary/trace_profile.h - profiles of the time that goroutines spent in a state.
 *
 * Each stretch counts 1 and its length, at the stack of the event that began it. Source:
 * cmd/trace/pprof.go, whose answers these are. Of Go 1.26 and 1.27, for traces of version 2: a stretch
 * that began before its goroutine first ran in the trace is left out, unless it never ran. (Go 1.23 to
 * 1.25 overlook what has no stack, the start of a goroutine as well, so that it counts as runnable while it
 * runs: golang.org/issue/68542.) Of Go 1.8
 * to 1.21, for version 1: what has no stack is left out, waits for the end of a collection count as
 * sync, and sched has only goroutines that were created or unblocked.
 */
#ifndef INGEST_EXECTRACE_SUMMARY_TRACE_PROFILE_H
#define INGEST_EXECTRACE_SUMMARY_TRACE_PROFILE_H

#include "ingest/exectrace/exectrace.h"
#include "profile/profile.h"

enum trace_profile_kind {
	TRACE_PROFILE_NET,     /* waits for the network */
	TRACE_PROFILE_SYNC,    /* waits for channels, select, sync */
	TRACE_PROFILE_SYSCALL, /* in system calls */
	TRACE_PROFILE_SCHED,   /* runnable, without a P */
	TRACE_PROFILE_WAIT,    /* all waits and all time runnable, with a label: reason */
	TRACE_PROFILE_CPU,     /* CPU samples in the trace */
	TRACE_PROFILE_KINDS,
};

/* "net", ...: NULL: there is none. */
const char *trace_profile_name(enum trace_profile_kind kind);

struct trace_profile;

/* @version: of the trace. */
int trace_profile_new(enum trace_profile_kind kind, unsigned version, struct trace_profile **out,
		      struct err *e);
void trace_profile_free(struct trace_profile *p);
DEFINE_FREEP(struct trace_profile, trace_profile)
/* Each event of the trace, in order. */
int trace_profile_event(struct trace_profile *p, const struct exectrace *t,
			const struct trace_event *ev, struct err *e);
/* It ends here, though the trace goes on: stretches that have not ended count up to now. */
int trace_profile_stop(struct trace_profile *p, const struct exectrace *t, int64_t time_ns,
		       struct err *e);
/* The trace has ended. *out is the caller's. */
int trace_profile_end(struct trace_profile *p, struct prof **out, struct err *e);

#endif
