/*
 * user/ingest/exectrace/v1/trace1_priv.h - what trace1.c, which knows the order, and states1.c, which knows
 * the meanings, share.
 */
#ifndef INGEST_EXECTRACE_V1_TRACE1_PRIV_H
#define INGEST_EXECTRACE_V1_TRACE1_PRIV_H

#include "ingest/exectrace/v1/index1.h"
#include "ingest/exectrace/v1/merge1.h"

enum { STATES1_QUEUE = 4 };

struct region1 {
	uint64_t task, type; /* a string's number */
};

/* A goroutine that exists, as events had it last. */
struct g1 {
	int64_t id;
	unsigned told;	      /* enum trace_gstate */
	bool assists;	      /* a range is open */
	int64_t blocked;      /* ticks of when its system call blocked; -1: it is in none */
	uint64_t call_stack;  /* of the system call that it entered last */
	uint32_t start_stack; /* where it begins */
	VEC(struct region1) regions;
};

struct p1 {
	int64_t m; /* its thread; TRACE_NONE: not told, or it does not run */
	int64_t g; /* that runs on it, also in a system call that does not block; 0: none */
	bool seen, runs;
	bool sweeps, scans; /* ranges that are open */
};

struct task1 {
	int64_t parent;
	uint64_t type;
};

struct states1 {
	struct index1 *index; /* borrowed */
	VEC(struct g1) gs;
	VEC(uint32_t) free_gs;
	struct ids by_g;
	VEC(struct p1) ps; /* as in index.procs */
	VEC(struct task1) tasks;
	VEC(uint32_t) free_tasks;
	struct map by_task;
	bool loose;   /* the trace is damaged, and what goroutines did is not all there */
	bool started; /* all that was there when the trace began is told */
	bool collects, stopped;
	uint64_t stop_kind, gomaxprocs; /* as the trace has them */
	struct trace_text stop_name;
	int64_t first; /* ticks that are time 0 */
	size_t older; /* goroutines with @before that were not looked at, from the first of gs on */
	/* What the event that came last means: the first in *out, the others in queue. */
	struct trace_event *out, queue[STATES1_QUEUE - 1];
	size_t head, queued;
	char *message; /* of the event that was told last; owned */
};

int states1_init(struct states1 *s, struct index1 *x, struct err *e);
void states1_fini(struct states1 *s);
/* Queues what an event means. */
int states1_tell(struct states1 *s, const struct merged1 *m, struct err *e);
/* A system call that had blocked ends. */
int states1_exit(struct states1 *s, const struct exit1 *x, uint64_t off, struct err *e);
void states1_sample(struct states1 *s, const struct sample1 *sample);
/* What is queued; the first is in s->out already, which must be @out. */
bool states1_take(struct states1 *s, struct trace_event *out);
int64_t states1_ns(const struct states1 *s, int64_t ticks);

/* For notes1.c, which tells ranges, tasks, regions and the like. */
/* 0 where the trace is damaged, so that nothing is told of it. */
int states1_wrong(const struct states1 *s, const struct merged1 *m, const char *what,
		  struct err *e);
int states1_no_memory(struct err *e);
struct g1 *states1_g(const struct states1 *s, int64_t id);
struct trace_event *states1_put(struct states1 *s, const struct merged1 *m, enum trace_kind kind,
				uint64_t stack);
struct trace_text states1_text(const struct states1 *s, uint64_t id);
int states1_note(struct states1 *s, const struct merged1 *m, struct err *e);

#endif
