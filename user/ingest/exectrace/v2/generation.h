/*
 * user/ingest/exectrace/v2/generation.h - one generation of a trace of version 2: its tables, and where
 * its batches are.
 *
 * A batch has events of one thread. Batches of several threads come in any order, those of one in
 * the order in which its events happened. Tables may come after what uses them, so a generation is
 * read once for them, and a second time for its events.
 */
#ifndef INGEST_EXECTRACE_V2_GENERATION_H
#define INGEST_EXECTRACE_V2_GENERATION_H

#include "ingest/exectrace/tables.h"
#include "ingest/stream.h"

/* Source: internal/trace/tracev2/events.go, Go 1.27. */
enum tracev2_type {
	EV_NONE,
	EV_BATCH,
	EV_STACKS,
	EV_STACK,
	EV_STRINGS,
	EV_STRING,
	EV_CPU_SAMPLES,
	EV_CPU_SAMPLE,
	EV_FREQUENCY,
	EV_PROCS_CHANGE,
	EV_PROC_START,
	EV_PROC_STOP,
	EV_PROC_STEAL,
	EV_PROC_STATUS,
	EV_GO_CREATE,
	EV_GO_CREATE_SYSCALL,
	EV_GO_START,
	EV_GO_DESTROY,
	EV_GO_DESTROY_SYSCALL,
	EV_GO_STOP,
	EV_GO_BLOCK,
	EV_GO_UNBLOCK,
	EV_GO_SYSCALL_BEGIN,
	EV_GO_SYSCALL_END,
	EV_GO_SYSCALL_END_BLOCKED,
	EV_GO_STATUS,
	EV_STW_BEGIN,
	EV_STW_END,
	EV_GC_ACTIVE,
	EV_GC_BEGIN,
	EV_GC_END,
	EV_GC_SWEEP_ACTIVE,
	EV_GC_SWEEP_BEGIN,
	EV_GC_SWEEP_END,
	EV_GC_ASSIST_ACTIVE,
	EV_GC_ASSIST_BEGIN,
	EV_GC_ASSIST_END,
	EV_HEAP_ALLOC,
	EV_HEAP_GOAL,
	EV_GO_LABEL,
	EV_TASK_BEGIN,
	EV_TASK_END,
	EV_REGION_BEGIN,
	EV_REGION_END,
	EV_LOG,
	EV_GO_SWITCH, /* from Go 1.23 on, as the next ones */
	EV_GO_SWITCH_DESTROY,
	EV_GO_CREATE_BLOCKED,
	EV_GO_STATUS_STACK,
	EV_EXPERIMENTAL_BATCH,
	EV_SYNC, /* 1.25 */
	EV_CLOCK_SNAPSHOT,
	EV_END_OF_GENERATION, /* 1.26 */
	EV_TYPES,
	EV_EXPERIMENT_FIRST = 128, /* of the experiment AllocFree */
	EV_EXPERIMENT_END = 137,
};

struct gen_batch {
	uint64_t off; /* of its first event */
	uint32_t size;
	int64_t base;	/* ns */
	uint64_t ticks; /* the same as the trace has it */
};

struct gen_sample {
	int64_t time_ns, m, p, g;
	uint64_t stack;
};

/* A thread's batches, and the one of them that is being read. */
struct gen_thread {
	int64_t m;
	VEC(struct gen_batch) batches;
};

struct generation {
	uint64_t number;
	bool damaged; /* some of it is not there */
	struct trace_tables tables;
	double ns_per_tick; /* 1, and !has_clock: not known */
	bool has_clock;
	int64_t start_ns; /* of its earliest batch */
	VEC(struct gen_thread) threads;
	size_t nthreads;		/* in use; others keep their memory */
	struct map by_m;		/* index in threads */
	VEC(struct gen_sample) samples; /* by time */
	bool snapshot;			/* clocks of one moment are known: */
	int64_t snapshot_ns, mono_ns, unix_ns;
};

/* How a trace of version 2 is read from one generation to the next. */
struct generations {
	struct stream s;
	unsigned version; /* 22 to 26 */
	bool ended;
	uint64_t next;	    /* the number of the next one; 0: any */
	double ns_per_tick; /* of the one before; 0: not known */
};

/*
 * 1: *g is the next generation; 0: there is none. -EBADMSG: the trace is damaged there, or ends in
 * the middle; *g is what came before that, if g->number is not 0. Then g->damaged tells whether it is a
 * part of a generation; of one that is cut before its clock's rate, that of the generation before is
 * taken.
 */
int generation_read(struct generations *s, struct generation *g, struct err *e);
void generation_fini(struct generation *g);

/* A batch as it is in the file, with its head. */
struct gen_piece {
	enum { GEN_EVENTS, GEN_SAMPLES, GEN_TABLE, GEN_EXPERIMENT } what;
	uint64_t off, data; /* where it begins, and what is behind its head */
	uint64_t size;	    /* of the latter */
	int64_t m;
	uint64_t base;
};

typedef int generation_each(void *arg, const struct gen_piece *p, struct err *e);

/* Each batch between two offsets, of what generation_read() has read. It goes on there afterwards. */
int generation_walk(struct generations *s, uint64_t off, uint64_t end, generation_each *each,
		    void *arg, struct err *e);

#endif
