/*
 * user/ingest/exectrace/v1/index1.h - once through a trace of version 1: its tables, and where each P's
 * events are.
 *
 * Tables and the clock's rate stand at the end of such a trace, and the batches of Ps in any order, so
 * it is read once for those before the first event can be told.
 */
#ifndef INGEST_EXECTRACE_V1_INDEX1_H
#define INGEST_EXECTRACE_V1_INDEX1_H

#include "ingest/exectrace/tables.h"
#include "ingest/exectrace/v1/wire1.h"

struct batch1 {
	uint64_t from, until; /* in the file, without the event that begins it */
	int64_t ticks;
	uint64_t seq; /* Go 1.5 */
};

struct batches1 {
	int64_t p;
	VEC(struct batch1) at;
	uint64_t most; /* bytes of the largest */
};

struct sample1 {
	int64_t ticks, p, g;
	uint64_t stack;
};

/* A system call that had blocked ends: told when its goroutine runs again, which may be much later. */
struct exit1 {
	int64_t key;   /* when it ended, by which it is put in order: ticks, or Go 1.5's number */
	int64_t ticks; /* when it ended */
	int64_t g;
};

/* What is told later than that is kept from the beginning; about a second. */
enum { EXIT1_WINDOW = 1 << 24, EXIT1_WINDOW_SEQ = 1 << 20 };

struct index1 {
	int fd; /* borrowed */
	unsigned version;
	uint64_t size;
	struct trace_tables tables;
	VEC(struct batches1) procs;
	VEC(struct sample1) samples; /* by time */
	VEC(struct exit1) late;
	VEC(uint64_t) timers; /* goroutines of timers */
	uint64_t ticks_per_s;
	double ns_per_tick; /* 0: the trace does not tell */
	bool futile;	    /* it has wakeups that were in vain */
	struct map by_p;
};

/*
 * -EBADMSG: the trace is damaged or cut there; *x is what came before that, if it has any batch. The
 * caller calls index1_fini() in any case.
 */
int index1_read(struct index1 *x, int fd, unsigned version, struct err *e);
void index1_fini(struct index1 *x);

/* Events of one P, batch after batch. */
struct proc1 {
	const struct index1 *index;
	const struct batches1 *of;
	uint32_t batch; /* the next one */
	struct wire1 w;
	int64_t ticks; /* of the event that was read last */
	uint64_t seq;
	struct event1 ev;
};

int proc1_open(struct proc1 *p, const struct index1 *x, uint32_t proc, struct err *e);
void proc1_fini(struct proc1 *p);
/* 1: p->ev is the next one; 0: no more. What has no time stamp, and CPU samples, are left out. */
int proc1_next(struct proc1 *p, struct err *e);
/* By what events are put in order: ticks, or the number that Go 1.5 gives each. */
static inline int64_t proc1_key(const struct proc1 *p)
{
	return p->index->version < V1_7 ? (int64_t)p->seq : p->ticks;
}

/*
 * Is the event the end of a system call whose time is another one than its own? @ticks, @key: its own;
 * *out: when it ended.
 */
bool exit1_of(const struct event1 *ev, unsigned version, int64_t ticks, int64_t key,
	      struct exit1 *out);

#endif
