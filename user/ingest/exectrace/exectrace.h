/*
 * user/ingest/exectrace/exectrace.h - reads Go execution traces: events in order, with their states.
 *
 * Headers "go 1.5 trace" to "go 1.21 trace" (version 1) and "go 1.22 trace" to "go 1.26 trace"
 * (version 2), as runtime/trace of Go 1.5 to 1.27 writes them. Whichever it is, events come as
 * version 2 has them: what happens to a goroutine is a transition of its state, with a reason.
 *
 * A trace of version 2 is read in generations of about a second each. In memory are the tables of
 * strings and stacks of the present generation, one batch of each thread, and the states of all
 * goroutines, Ps and threads that exist; events are read from the file as they are asked for. A trace
 * of version 1 is one generation.
 *
 * Nothing in an event is the caller's. Texts, and numbers of stacks, are valid until the next call of
 * exectrace_next(); those of the tables (all but a task's and a range's name, and a log's message in
 * version 1) until the next TRACE_SYNC.
 *
 * Source of the meanings: internal/trace/event.go, of the rules: internal/trace/order.go, of the
 * bytes: internal/trace/tracev2, Go 1.22 to 1.27; of version 1: internal/trace/parser.go, order.go,
 * runtime/trace.go, Go 1.5 to 1.21; of version 1 in the words of version 2:
 * internal/trace/tracev1.go, Go 1.27.
 */
#ifndef INGEST_EXECTRACE_EXECTRACE_H
#define INGEST_EXECTRACE_EXECTRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

/* No thread, P or goroutine; and a task's parent, or a region's task, that there is not. */
#define TRACE_NONE (-1ll)

/* A text of the trace, not ended by 0. */
struct trace_text {
	const char *at;
	size_t len;
};

/* Its first @most bytes: version 1 has names of up to 1,000,000, and each event may have one. */
static inline struct trace_text trace_text_cut(struct trace_text t, size_t most)
{
	return (struct trace_text){ t.at, t.len < most ? t.len : most };
}

enum trace_kind {
	TRACE_SYNC,	   /* sync: a generation begins; also the last event of a whole trace */
	TRACE_METRIC,	   /* metric */
	TRACE_LABEL,	   /* label: what the runtime calls a goroutine, as "GC (dedicated)" */
	TRACE_CPU_SAMPLE,  /* m, p, g, stack: a signal of the CPU profiler, 100 per second of CPU */
	TRACE_RANGE_BEGIN, /* range */
	TRACE_RANGE_ACTIVE, /* range: it had begun before the trace, or the generation, did */
	TRACE_RANGE_END,    /* range */
	TRACE_TASK_BEGIN,   /* task */
	TRACE_TASK_END,	    /* task; its begin may be older than the trace, then the type is "" */
	TRACE_REGION_BEGIN, /* region, of the goroutine on which it happens */
	TRACE_REGION_END,   /* region; its begin may be older than the trace */
	TRACE_LOG,	    /* log */
	TRACE_GOROUTINE,    /* transition of a goroutine */
	TRACE_PROC,	    /* transition of a P */
	TRACE_EXPERIMENTAL, /* experimental: what GODEBUG=traceallocfree=1 adds */
};

/*
 * Where both ends of a transition are the same, the generation only repeats what is known.
 * UNDETERMINED is what came before the trace, so it is never a transition's end.
 */
enum trace_gstate {
	TRACE_G_UNDETERMINED,
	TRACE_G_NOT_EXIST, /* from: it is created; to: it ends */
	TRACE_G_RUNNABLE,
	TRACE_G_RUNNING,
	TRACE_G_SYSCALL, /* in a system call, or in C */
	TRACE_G_WAITING,
};

/* A P in a system call counts as running, until it is taken from there. */
enum trace_pstate {
	TRACE_P_UNDETERMINED,
	TRACE_P_NOT_EXIST, /* of a P that a later generation has first */
	TRACE_P_RUNNING,
	TRACE_P_IDLE,
};

struct trace_transition {
	int64_t id;	   /* of the goroutine or P: often not the one on which the event happens */
	unsigned from, to; /* enum trace_gstate, enum trace_pstate */
	/*
	 * Why a goroutine waits ("chan receive", "network", "sleep") or gives its P away
	 * ("preempted", "runtime.Gosched"); "" for all else, and where it is not known.
	 */
	struct trace_text reason;
	/*
	 * Of the goroutine itself: of one that is created, where it begins; of one that stops, where
	 * it stops. 0: not known. The event's own stack is that of the goroutine which acts.
	 */
	uint32_t stack;
};

enum trace_scope { TRACE_SCOPE_PROGRAM, TRACE_SCOPE_GOROUTINE, TRACE_SCOPE_PROC };

struct trace_range {
	/*
	 * "GC concurrent mark phase" of the program, "GC incremental sweep" of a P, "GC mark assist"
	 * and "stop-the-world (GOMAXPROCS)" or the like of a goroutine; in version 1 that is of the
	 * program, and before Go 1.10 there is "GC scan" of a P instead. A name has one range at a
	 * time in each place.
	 */
	struct trace_text name;
	enum trace_scope scope;
	int64_t id;		   /* of the goroutine or P that the range is of */
	uint64_t swept, reclaimed; /* bytes, at the end of a sweep */
};

enum { TRACE_EXPERIMENTAL_ARGS = 4 };

struct trace_event {
	enum trace_kind kind;
	/*
	 * Version 2: of the clock that the runtime traces with, which is CLOCK_MONOTONIC on Linux; it
	 * rises from event to event. Version 1: from the trace's first event on; it never falls.
	 */
	int64_t time_ns;
	/* On which it happens, as things were just before it; each may be TRACE_NONE. */
	int64_t m, p, g;
	uint32_t stack; /* 0: none; see exectrace_stack() */
	union {
		struct {
			/* From Go 1.25 on: three clocks of one moment. */
			bool has_clock;
			int64_t trace_ns, mono_ns, unix_ns;
		} sync;
		struct {
			/*
			 * As runtime/metrics has it: "/sched/gomaxprocs:threads",
			 * "/memory/classes/heap/objects:bytes", "/gc/heap/goal:bytes"
			 */
			const char *name;
			uint64_t value;
		} metric;
		struct {
			struct trace_text label;
			int64_t g;
		} label;
		struct trace_range range;
		struct {
			uint64_t id;
			int64_t parent; /* TRACE_NONE: it has none */
			struct trace_text type;
		} task;
		struct {
			uint64_t task; /* 0: the background task */
			struct trace_text type;
		} region;
		struct {
			uint64_t task; /* 0: the background task */
			struct trace_text category, message;
		} log;
		struct trace_transition transition;
		struct {
			const char *name; /* "SpanAlloc", ... */
			unsigned nargs;
			uint64_t args[TRACE_EXPERIMENTAL_ARGS];
		} experimental;
	};
};

/* Traces of Go 1.5 and 1.6 have addresses alone: their func and file are "". */
struct trace_frame {
	uint64_t pc; /* where a call returns to, or where a signal found it */
	struct trace_text func, file;
	uint64_t line;
};

enum { EXECTRACE_HEADER_BYTES = 16 };

/*
 * @n: how many bytes there are, of which no more than the header's are looked at. *version: 5 to 26.
 * -EBADMSG: it is no execution trace; -ENOTSUP: of a version that is not known.
 */
int exectrace_header(const void *bytes, size_t n, unsigned *version, struct err *e);

struct exectrace;

/*
 * @fd: borrowed, a file; its position is left alone. -EBADMSG: it does not begin as a trace; -ENOTSUP:
 * of a version that is not known.
 */
int exectrace_open(int fd, struct exectrace **out, struct err *e);
void exectrace_free(struct exectrace *t);
DEFINE_FREEP(struct exectrace, exectrace)

struct pclntab12;

/*
 * Addresses of a trace of Go 1.5 or 1.6 get the names that its program @exe (borrowed as long as @t) has for
 * them; other traces have names, and stay as they are. Before the first event. -ENOENT: it has none of them.
 */
int exectrace_use_exe(struct exectrace *t, struct pclntab12 *exe, struct err *e);
/* The number in the header: 5 to 26. */
unsigned exectrace_version(const struct exectrace *t);
/*
 * 1: the next event; 0: the trace has ended; -EBADMSG: it is damaged or cut here: the message tells
 * where and why, and what came before is good. What is damaged further on does not keep back what
 * comes before that. After 0 or an error each call answers the same.
 */
int exectrace_next(struct exectrace *t, struct trace_event *ev, struct err *e);
/*
 * For who stops before the end. -EBADMSG: the last event is of a generation that is damaged (version 1: of a trace),
 * so that others of its time may be missing; the message is that of exectrace_next(). 0: none is missing.
 */
int exectrace_damage(const struct exectrace *t, struct err *e);
/*
 * False: the trace is cut before it tells how fast its clock goes, so all times are in its ticks. That is
 * known from the beginning in version 1, and from the first event on in version 2.
 */
bool exectrace_has_clock(const struct exectrace *t);
/* How many frames a stack has. */
size_t exectrace_stack(const struct exectrace *t, uint32_t stack);
/* The @i-th, from the innermost on. */
struct trace_frame exectrace_frame(const struct exectrace *t, uint32_t stack, size_t i);
/*
 * What is in a time, from the first event on (@to_ns INT64_MAX: to its end), is written to @f (borrowed) as a
 * trace of the same version, while it is read. Before the first event. -EBADMSG: a trace of version 1 that is
 * damaged, so that tables are missing.
 */
int exectrace_cut(struct exectrace *t, FILE *f, int64_t from_ns, int64_t to_ns, struct err *e);
/* Nothing that comes matters for it. */
bool exectrace_cut_is_over(const struct exectrace *t);
/*
 * Writes what is missing; a generation of which a part is missing is left out. *from_ns, *to_ns: when its first
 * and its last event are, as events have it. -ENOENT: nothing is left.
 */
int exectrace_cut_finish(struct exectrace *t, int64_t *from_ns, int64_t *to_ns, struct err *e);
/* How far it has read, and how long the file is; bytes. */
uint64_t exectrace_offset(const struct exectrace *t);
uint64_t exectrace_size(const struct exectrace *t);

#endif
