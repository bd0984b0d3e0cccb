/*
 * user/ingest/exectrace/summary/trace_summary.h - what is worth knowing of a trace, added up as it is read.
 *
 * A goroutine is of the function that it starts in: so say the event that created it, or the
 * outermost frame of its first known stack. Memory is that of the goroutines and tasks that live, and
 * of the names, whose number has a bound; durations are in histograms (quantiles.h).
 */
#ifndef INGEST_EXECTRACE_SUMMARY_TRACE_SUMMARY_H
#define INGEST_EXECTRACE_SUMMARY_TRACE_SUMMARY_H

#include "base/map.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "ingest/exectrace/exectrace.h"
#include "ingest/exectrace/summary/gc_share.h"
#include "ingest/exectrace/summary/quantiles.h"
#include "ingest/exectrace/summary/trace_kinds.h"

enum { TRACE_LONGEST = 10 };

/* Time in one state, or waiting for one reason. */
struct trace_spent {
	uint32_t key; /* TRACE_SPENT_..., or TRACE_SPENT_WAITING + the reason, in names */
	uint64_t count;
	int64_t ns;
};

enum {
	TRACE_SPENT_RUNNING,
	TRACE_SPENT_RUNNABLE,
	TRACE_SPENT_SYSCALL,
	TRACE_SPENT_WAITING, /* for a reason that is not told */
};

/* Goroutines that start in one function. */
struct trace_group {
	uint32_t name; /* in names; 0: not told */
	uint64_t goroutines, created, ended;
	int64_t total_ns;	       /* that they existed */
	VEC(struct trace_spent) spent; /* waits: the longest first */
};

/* From runnable to running. */
struct trace_latency {
	int64_t at_ns, ns, g; /* at: when it was runnable */
	uint32_t name;
	const char *why; /* it became runnable: "created", "unblocked", ... */
};

struct trace_metric {
	bool known;
	uint64_t first, last, min, max;
};

struct live_goroutine;
struct trace_cell;

struct trace_summary {
	struct strtab *names;
	uint64_t events, samples, logs, generations;
	bool begun;
	int64_t from_ns, to_ns; /* what it is of */
	/* Those that existed longest first; of very many functions some are "(other functions)". */
	VEC(struct trace_group) groups;
	uint64_t goroutines, peak; /* in all, and at most at a time */
	uint64_t groups_lost;	   /* of more functions than LIMIT_TRACE_GROUPS, in groups[0] */
	struct quantiles latency;
	struct trace_latency longest[TRACE_LONGEST]; /* the longest first */
	size_t nlongest;
	struct trace_kinds ranges, tasks, regions;
	struct trace_metric heap, goal, procs;
	struct gc_share share;
	/* private: */
	struct map group_of, by_g, reasons;
	VEC(struct live_goroutine) live;
	VEC(struct trace_cell) cells;
	VEC(uint32_t) free_live;
	uint32_t free_cells; /* a list */
};

int trace_summary_new(struct trace_summary **out, struct err *e);
void trace_summary_free(struct trace_summary *s);
DEFINE_FREEP(struct trace_summary, trace_summary)

/*
 * Each event, in order. @before: it is from before the time that is asked for, and has the beginning
 * of that as its own; it tells what goes on then, and does not count.
 */
int trace_summary_event(struct trace_summary *s, const struct exectrace *t,
			const struct trace_event *ev, bool before, struct err *e);
/*
 * An event from behind the time that is asked for, of the generation in which that ends. Go 1.22 and newer
 * tell of a goroutine that does nothing, and of what else goes on, as late as at the end of the first one: as it is
 * then it has been since the beginning.
 */
int trace_summary_late(struct trace_summary *s, const struct exectrace *t,
		       const struct trace_event *ev, struct err *e);
/* The time that is asked for, or the trace, ends. */
int trace_summary_end(struct trace_summary *s, int64_t time_ns, struct err *e);

#endif
