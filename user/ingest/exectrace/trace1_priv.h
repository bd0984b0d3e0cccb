/* user/ingest/exectrace/trace1_priv.h - what trace1.c, which orders, and trace1_events.c share. */
#ifndef INGEST_EXECTRACE_TRACE1_PRIV_H
#define INGEST_EXECTRACE_TRACE1_PRIV_H

#include "base/map.h"
#include "base/vec.h"
#include "ingest/exectrace/trace1.h"
#include "ingest/exectrace/wire1.h"

struct t1_batch {
	uint64_t from, until; /* in the file, without the event that begins it */
	int64_t ticks;
};

/* A P's batches, and its next event. */
struct t1_proc {
	int64_t p;
	VEC(struct t1_batch) batches;
	uint32_t batch; /* the next one */
	struct wire1 w;
	int64_t ticks; /* of the event that was read last */
	int64_t g;     /* that runs on it; 0: none */
	int64_t m;     /* its thread; TRACE_NONE: not told yet */
	struct event1 ev;
	int64_t ev_g; /* whose event it is */
};

/* A goroutine as the order needs it, and as the events need it. */
enum g1 { G1_DEAD, G1_RUNNABLE, G1_RUNNING, G1_WAITING };
struct t1_g {
	int64_t id;
	uint64_t seq;
	enum g1 is;
	unsigned told; /* enum trace_gstate, as events had it last */
	/* The system call that it entered last, and when it blocked. */
	int64_t entered, blocked;
	uint32_t syscall_stack;
};

/* When a system call that had blocked really ended: that is told later. */
struct t1_sample {
	int64_t ticks, p, g;
	uint64_t stack;
};

struct trace1 {
	int fd;
	unsigned version;
	uint64_t size;
	struct trace_tables tables;
	VEC(struct t1_proc) procs;
	struct map by_p;
	VEC(uint32_t) front; /* procs with a next event */
	VEC(struct t1_g) gs;
	struct map by_g;
	VEC(uint32_t) free_gs;
	VEC(struct t1_sample) samples; /* by time */
	size_t sample;
	struct map timers; /* goroutines that run timers, up to Go 1.13 */
	uint64_t gc_seq;
	bool begun, stopped;
	double ns_per_tick;
	int64_t first, last; /* ticks of the first event, and of the one that came last */
	struct trace_event queue[2];
	size_t head, queued;
	char *kept; /* what an event's text is in; owned */
	/* While it is read for the first time: */
	struct table_frame frame;
	uint64_t left;
	char *text; /* owned */
	size_t room;
	int pending;
	struct err damage;
};

int trace1_no_memory(struct err *e);
/* NULL: there is none of that id. */
struct t1_g *trace1_goroutine(const struct trace1 *t, int64_t id);
int64_t trace1_ns(const struct trace1 *t, int64_t ticks);
uint32_t trace1_stack(const struct trace1 *t, uint64_t id);
/* Queues what the next event of a P means. */
int trace1_tell(struct trace1 *t, struct t1_proc *p, struct err *e);

#endif
