/*
 * user/go/runtime/rtgor.h - the goroutines of a live Go process, read from outside while it runs.
 *
 * A runtime.g that is in allgs stays where it is for ever; when its goroutine has ended it is
 * used for another one. A copy of a goroutine's stack is that of a single moment when nothing has
 * moved: its status, saved registers, stack bounds and id are the same before and after, and it
 * did not leave the running state in between (g.trackingSeq, from Go 1.17 on, counts that). A
 * goroutine that has moved is read again, by itself. From Go 1.26 on a system call and its return
 * are not counted there. A call that ended during the reading and was made again with the same
 * registers is noticed only when the stack in between makes no sense.
 *
 * Source: runtime/runtime2.go (g, gobuf), proc.go (allgs, allgadd, casgstatus, entersyscall),
 * traceback.go (initAt: which registers), Go 1.16 to 1.27.
 */
#ifndef GO_RUNTIME_RTGOR_H
#define GO_RUNTIME_RTGOR_H

#include <stdbool.h>

#include "base/mem.h"
#include "go/layout/layout.h"
#include "go/runtime/rtlabels.h"

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
	GSTATUS_LEAKED,	   /* 1.26+: it waits for something that nobody can do any more */
	GSTATUS_DEADEXTRA, /* 1.26+ */
};

struct rtgor_vars {
	uint64_t allglen, allgptr; /* live addresses */
	int minor;		   /* of the Go version; -1 newer than any known */
};

enum rtgor_stack {
	RTGOR_SAVED,   /* pc, sp and stack are those of one moment */
	RTGOR_RUNNING, /* its registers are in a thread: nobody can read them without stopping it */
	RTGOR_TORN,    /* it moved at every reading */
	RTGOR_BAD,     /* what it says of its stack is impossible */
};

struct rtgor {
	uint64_t goid, parent; /* parent 0 before go1.21 */
	uint64_t gopc, startpc;
	uint64_t waitsince; /* CLOCK_MONOTONIC ns; 0: it has not been waiting at a GC yet */
	enum gstatus status;
	bool scan; /* a GC is looking at its stack */
	uint8_t waitreason;
	uint8_t seq;   /* how many times it stopped running, modulo 256; 0 before go1.17 */
	bool locked;   /* it is locked to its thread */
	bool cleanups; /* 1.25+: it runs a program's cleanups */
	enum rtgor_stack what;
	uint64_t pc, sp;
	bool syscall;	      /* pc and sp are those of a system call, or of a call into C */
	const uint8_t *stack; /* from sp to the stack's end; borrowed until the next goroutine */
	size_t nstack;
	bool cut; /* it is longer than LIMIT_STACK_BYTES */
	const struct rtlabels *text;
	struct rtlabel_set labels;
	bool last; /* it will not be read again */
};

struct rtgors_seen {
	uint64_t all;	    /* goroutines in allgs, including those that have ended */
	uint64_t live;	    /* goroutines that were given to each() and accepted */
	uint64_t torn;	    /* goroutines that moved at every reading */
	uint64_t bad;	    /* goroutines that could not be read, or whose stack could not */
	uint64_t again;	    /* readings that were repeated */
	uint64_t spread_ns; /* time from the first goroutine's reading to the last one's */
};

/*
 * Gives each goroutine that has not ended to @each, in the order of allgs. If @each returns
 * -EAGAIN, the stack makes no sense and this one is read again (not when g->last). Other errors
 * end it. -ENOTSUP: the layout lacks a field; -EBADMSG: allgs is no list; -EFAULT, -ESRCH,
 * -ENOMEM.
 */
int rtgors_read(struct mem *m, const struct golayout *l, const struct rtgor_vars *v,
		int (*each)(void *arg, const struct rtgor *g, struct err *e), void *arg,
		struct rtgors_seen *seen, struct err *e);

#endif
