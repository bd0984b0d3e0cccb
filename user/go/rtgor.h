/*
 * user/go/rtgor.h - the goroutines of a live Go process, read from outside while it runs.
 *
 * A runtime.g, once in allgs, stays where it is for ever; it is used again for another
 * goroutine when one has ended. What makes a copy of a goroutine's stack one of a single
 * moment is that nothing has moved: its status, saved registers, stack bounds and id are the
 * same before and after, and it did not leave the running state in between (g.trackingSeq,
 * from Go 1.17 on, counts that). One that has moved is read again, by itself. From Go 1.26 on a
 * system call and its return are not counted there: one that ended, and was made again with the
 * same registers, within the reading shows only when the stack in between makes no sense.
 *
 * Source: runtime/runtime2.go (g, gobuf), proc.go (allgs, allgadd, casgstatus, entersyscall),
 * traceback.go (initAt: which registers), Go 1.16 to 1.27.
 */
#ifndef GO_RTGOR_H
#define GO_RTGOR_H

#include <stdbool.h>

#include "base/mem.h"
#include "go/layout.h"
#include "go/rtlabels.h"

/* g.atomicstatus, without the scan bit. Source: runtime/runtime2.go. */
enum gstatus {
	GSTATUS_IDLE,
	GSTATUS_RUNNABLE,
	GSTATUS_RUNNING,
	GSTATUS_SYSCALL,
	GSTATUS_WAITING,
	GSTATUS_DEAD = 6,
	GSTATUS_COPYSTACK = 8,
	GSTATUS_PREEMPTED,
	GSTATUS_LEAKED,	   /* 1.26+: waiting for what nobody can do any more */
	GSTATUS_DEADEXTRA, /* 1.26+ */
};

struct rtgor_vars {
	uint64_t allglen, allgptr; /* live addresses */
	int minor;		   /* of the Go version; -1 newer than any known */
};

enum rtgor_stack {
	RTGOR_SAVED,   /* pc, sp and stack are those of one moment */
	RTGOR_RUNNING, /* its registers are a thread's: nobody has them without stopping it */
	RTGOR_TORN,    /* it moved whenever it was read */
	RTGOR_BAD,     /* what it says of its stack cannot be */
};

struct rtgor {
	uint64_t goid, parent; /* parent 0 before go1.21 */
	uint64_t gopc, startpc;
	uint64_t waitsince; /* CLOCK_MONOTONIC ns; 0: it has not been waiting at a GC yet */
	enum gstatus status;
	bool scan; /* a GC is looking at its stack */
	uint8_t waitreason;
	uint8_t seq;   /* how often it stopped running, modulo 256; 0 before go1.17 */
	bool locked;   /* to its thread */
	bool cleanups; /* 1.25+: it runs a program's cleanups */
	enum rtgor_stack what;
	uint64_t pc, sp;
	bool syscall;	      /* they are those of a system call, or of a call into C */
	const uint8_t *stack; /* from sp to the stack's end; borrowed until the next one */
	size_t nstack;
	bool cut; /* it is longer than LIMIT_STACK_BYTES */
	const struct rtlabels *text;
	struct rtlabel_set labels;
	bool last; /* it will not be read again */
};

struct rtgors_seen {
	uint64_t all;	    /* in allgs, with those that have ended */
	uint64_t live;	    /* given to each() and taken */
	uint64_t torn;	    /* that moved whenever they were read */
	uint64_t bad;	    /* that could not be read, or whose stack cannot be */
	uint64_t again;	    /* readings that were repeated */
	uint64_t spread_ns; /* from the first one's reading to the last one's */
};

/*
 * Gives each goroutine that has not ended to @each, in the order of allgs. -EAGAIN from it:
 * the stack makes no sense, read this one again (not when g->last). Other errors end it.
 * -ENOTSUP: the layout lacks a field; -EBADMSG: allgs is no list; -EFAULT, -ESRCH, -ENOMEM.
 */
int rtgors_read(struct mem *m, const struct golayout *l, const struct rtgor_vars *v,
		int (*each)(void *arg, const struct rtgor *g, struct err *e), void *arg,
		struct rtgors_seen *seen, struct err *e);

#endif
