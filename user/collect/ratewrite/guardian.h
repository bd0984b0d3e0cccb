/*
 * user/collect/ratewrite/guardian.h - switches something of the runtime's on, and off again, whatever
 * happens.
 *
 * A small process of its own, the guardian, does everything. It is forked before anything is
 * written; it writes, waits, and restores. The collector only asks. So there is no moment at
 * which the collector's death, even by SIGKILL, leaves the target changed:
 *
 * 	before the guardian wrote	it sees that nobody is there any more, and does not write
 * 	after				it sees the end of the socket, restores, and exits
 *
 * It is in a session of its own and ignores every signal except SIGKILL; the kernel's OOM killer
 * spares it, or at least takes the collector first (base/sys/oom.h). When somebody kills the guardian itself, the collector restores. Only
 * when both are killed the target stays changed.
 *
 * It restores by itself when the window has long been over and the collector has not asked, or
 * when the collector has not called guardian_check() for long (it is stopped, or hangs), and it
 * exits immediately when the target is gone. It cannot hit another program: see target/write/poke.h.
 * Errors of the kernel, and locks that strangers hold (target/write/claim.h), delay it and do not end
 * it: it tries until the value is not the one that was written, or the process is gone.
 *
 * Several collectors of one target, each with its guardian, share what the first one switched on,
 * and the last one switches it off: target/write/claim.h. The value they restore is always 0, because
 * nothing is ever switched on from another value. A value that is no longer the one that was
 * written is the program's own, and is left alone.
 */
#ifndef COLLECT_RATEWRITE_GUARDIAN_H
#define COLLECT_RATEWRITE_GUARDIAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "target/write/claim.h"
#include "target/write/poke.h"
#include "target/target.h"

struct guardian_job {
	struct target *target; /* borrowed until the guardian is freed */
	const char *name;      /* of the variable, for messages: "runtime.MemProfileRate" */
	uint64_t addr;	       /* live address of the 8-byte word */
	uint64_t value;	       /* 1 to CLAIM_VALUE_MAX */
	unsigned what;	       /* CLAIM_HEAP_RATE, ... */
	/* it restores by itself somewhat later than that; 0: the window has no end by time */
	uint64_t window_ns;
	unsigned stall_ms; /* or so long after the last guardian_check(); 0: 30 s */
	unsigned enter_ms; /* how long it waits for others when it ends; 0: 10 s */
	bool force_exe;	   /* see claims_open() */
};

enum guardian_begin {
	GUARDIAN_WROTE,	 /* it was 0 and is now job.value */
	GUARDIAN_SHARES, /* another goprof-bpf had switched it on: job.value is not used */
	/* the program has it on by itself: nothing was done, there is no guardian */
	GUARDIAN_FOUND,
};

enum guardian_end {
	GUARDIAN_RESTORED, /* it is 0 again, and has been read back */
	/* others still use it: the last one restores; the guardian makes sure of that */
	GUARDIAN_LEFT,
	GUARDIAN_CHANGED, /* the program has set it meanwhile: it was left alone */
	GUARDIAN_GONE,	  /* the program exists no more */
};

struct guardian_said {
	int how;	/* enum guardian_begin or guardian_end */
	uint64_t value; /* begin: the value in force; end: the value that was left */
	uint64_t at_ns; /* CLOCK_MONOTONIC; the time of the write, when there was one */
	bool late;	/* end: it restored by itself, because nobody had asked in time */
	bool exposed;	/* begin: the OOM killer may take the guardian, after the collector */
	bool imitated;	/* end: a lock like a claim was there, which nobody holds who may claim */
};

struct guardian;

/*
 * *out is NULL after GUARDIAN_FOUND. -EBUSY when others hold the lock or are in the way, -ESRCH,
 * -EPERM, -EBADMSG as for poke_open() and claims_open(); then nothing was written, or it was
 * restored.
 */
int guardian_start(const struct guardian_job *job, struct guardian **out,
		   struct guardian_said *said, struct err *e);

/*
 * To be called about ten times a second: shows the guardian that its collector runs, and takes
 * the guardian's part over when it was killed. Returns 1 when the guardian has restored by itself
 * (guardian_end() then tells), else 0.
 */
int guardian_check(struct guardian *g);

/*
 * Restores, and waits until that is done. -EBUSY when it was not done in 10 seconds: the guardian
 * goes on trying. To be called once.
 */
int guardian_end(struct guardian *g, struct guardian_said *said, struct err *e);

pid_t guardian_pid(const struct guardian *g);

/* Without a guardian_end() before: ends the guardian, and ignores its answer. */
void guardian_free(struct guardian *g);
DEFINE_FREEP(struct guardian, guardian)

#endif
