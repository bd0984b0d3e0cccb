/*
 * user/ingest/exectrace/v1/wire1.h - events of a trace of version 1 as bytes.
 *
 * Source: runtime/trace.go of Go 1.5 to 1.21; readTrace() and argNum() in internal/trace/parser.go of
 * Go 1.21.
 */
#ifndef INGEST_EXECTRACE_V1_WIRE1_H
#define INGEST_EXECTRACE_V1_WIRE1_H

#include "ingest/exectrace/exectrace.h"

enum tracev1_type {
	EV1_BATCH = 1,
	EV1_FREQUENCY,
	EV1_STACK,
	EV1_GOMAXPROCS,
	EV1_PROC_START,
	EV1_PROC_STOP,
	EV1_GC_START,
	EV1_GC_DONE,
	EV1_STW_START, /* before 1.10: a P scans for a collection */
	EV1_STW_DONE,
	EV1_SWEEP_START,
	EV1_SWEEP_DONE,
	EV1_GO_CREATE,
	EV1_GO_START,
	EV1_GO_END,
	EV1_GO_STOP,
	EV1_GO_SCHED,
	EV1_GO_PREEMPT,
	EV1_GO_SLEEP,
	EV1_GO_BLOCK,
	EV1_GO_UNBLOCK,
	EV1_GO_BLOCK_SEND,
	EV1_GO_BLOCK_RECV,
	EV1_GO_BLOCK_SELECT,
	EV1_GO_BLOCK_SYNC,
	EV1_GO_BLOCK_COND,
	EV1_GO_BLOCK_NET,
	EV1_GO_SYSCALL,
	EV1_GO_SYS_EXIT,
	EV1_GO_SYS_BLOCK,
	EV1_GO_WAITING,
	EV1_GO_IN_SYSCALL,
	EV1_HEAP_ALLOC,
	EV1_HEAP_GOAL,
	EV1_TIMER_GOROUTINE,
	EV1_FUTILE_WAKEUP,
	EV1_STRING,
	EV1_GO_START_LOCAL,
	EV1_GO_UNBLOCK_LOCAL,
	EV1_GO_SYS_EXIT_LOCAL,
	EV1_GO_START_LABEL, /* 1.8 */
	EV1_GO_BLOCK_GC,
	EV1_MARK_ASSIST_START, /* 1.9 */
	EV1_MARK_ASSIST_DONE,
	EV1_TASK_CREATE, /* 1.11 */
	EV1_TASK_END,
	EV1_REGION,
	EV1_LOG,
	EV1_CPU_SAMPLE, /* 1.19 */
	EV1_TYPES,
};

/* The versions whose formats differ from the ones before. */
enum { V1_5 = 5, V1_7 = 7, V1_9 = 9, V1_10 = 10, V1_21 = 21 };

enum { WIRE1_ARGS = 8, WIRE1_BUF = 16 << 10 };

/* Reads a part of the file from its beginning to its end. */
struct wire1 {
	int fd;		     /* borrowed */
	uint64_t off, until; /* of the file: what is behind buf, and where this ends */
	uint32_t at, n, cap; /* in buf */
	int failed;	     /* errno */
	uint8_t *buf;	     /* owned */
	unsigned version;
	uint8_t plain[EV1_TYPES]; /* arguments of kinds that have nothing else; 0: all others */
};

/* @version: of the trace. @most: no part that is read is longer. */
int wire1_open(struct wire1 *w, int fd, unsigned version, uint64_t most, struct err *e);
void wire1_fini(struct wire1 *w);
/* Goes on there. */
void wire1_seek(struct wire1 *w, uint64_t from, uint64_t until);
uint64_t wire1_offset(const struct wire1 *w);

/*
 * Arguments have the same places in all versions: the first is the time since the event before in the
 * batch, in ticks, where there is one; the stack is the last.
 */
struct event1 {
	uint64_t off; /* where it begins */
	uint64_t seq; /* Go 1.5: since the event before, or of a batch */
	uint8_t type;
	unsigned nargs; /* of which the first WIRE1_ARGS are in args */
	uint64_t args[WIRE1_ARGS];
	uint64_t text_off; /* a string, or a log's message: where it is, */
	uint32_t text_len; /* and how long */
};

/* What is done with each argument of a stack. */
typedef int wire1_each(void *arg, const struct event1 *ev, uint64_t value, struct err *e);

/*
 * 1: the next event, which has as many arguments as its kind has; 0: there is none. @each may be NULL.
 * -EBADMSG: damaged or cut.
 */
int wire1_next(struct wire1 *w, struct event1 *ev, wire1_each *each, void *arg, struct err *e);
/* @n bytes of the file. */
int wire1_bytes(int fd, uint64_t off, void *to, size_t n, struct err *e);

/* Has the event a time stamp, as its first argument? */
static inline bool wire1_timed(uint8_t type)
{
	return type != EV1_BATCH && type != EV1_FREQUENCY && type != EV1_STACK &&
	       type != EV1_TIMER_GOROUTINE && type != EV1_STRING;
}

#endif
