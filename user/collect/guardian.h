/*
 * user/collect/guardian.h - switch something of the runtime's on, and off again, whatever happens.
 *
 * Everything is done by a small process of its own, forked before anything is written: it
 * writes, waits, and restores. The collector only asks. So there is no moment at which the
 * collector's death, by SIGKILL as well, leaves the target changed:
 *
 *	before the guardian wrote	it sees that nobody is there any more, and does not write
 *	after				it sees the end of the socket, restores, and exits
 *
 * It is in a session of its own and lets no signal end it but SIGKILL; the kernel's killer of
 * last resort is asked to spare it. When somebody kills the guardian itself, the collector
 * restores. Only both killed leave the target changed.
 *
 * It restores by itself when the window has long been over and the collector has not asked, or
 * when the collector has not called guardian_check for long (it is stopped, or hangs), and exits at
 * once when the target is gone. It cannot hit another program: see target/poke.h. Errors of the
 * kernel's, and locks that strangers hold (target/claim.h), put it off and do not end it: it tries
 * until the value is not the one that was written or the process is gone.
 *
 * Several collectors of one target, each with its guardian, share what the first one switched
 * on, and the last one switches it off: target/claim.h. What they restore is always 0, for
 * from another value nothing is ever switched on. A value that is no longer the one that was
 * written is the program's own, and is left alone.
 */
#ifndef COLLECT_GUARDIAN_H
#define COLLECT_GUARDIAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "target/claim.h"
#include "target/poke.h"
#include "target/target.h"

struct guardian_job {
	struct target *target; /* borrowed until the guardian is freed */
	const char *name;      /* of the variable, for messages: "runtime.MemProfileRate" */
	uint64_t addr;	       /* live address of the 8-byte word */
	uint64_t value;	       /* 1 to CLAIM_VALUE_MAX */
	unsigned what;	       /* CLAIM_HEAP_RATE, ... */
	uint64_t window_ns; /* it restores by itself somewhat later than that; 0: no end by time */
	unsigned stall_ms;  /* or so long after the last guardian_check; 0: 30 s */
	unsigned enter_ms;  /* how long it waits for others on its way out; 0: 10 s */
	bool force_exe;	    /* see claims_open */
};

enum guardian_begin {
	GUARDIAN_WROTE,	 /* it was 0 and is now job.value */
	GUARDIAN_SHARES, /* another goprof-bpf had switched it on: job.value does not count */
	GUARDIAN_FOUND,	 /* the program has it on by itself: nothing was done, no guardian */
};

enum guardian_end {
	GUARDIAN_RESTORED, /* it is 0 again, and has been read back */
	GUARDIAN_LEFT,	   /* others still use it: the last restores; the guardian sees to it */
	GUARDIAN_CHANGED,  /* the program has set it meanwhile: left alone */
	GUARDIAN_GONE,	   /* there is no such program any more */
};

struct guardian_said {
	int how;	/* enum guardian_begin or guardian_end */
	uint64_t value; /* begin: in force; end: as left behind */
	uint64_t at_ns; /* CLOCK_MONOTONIC; of the write, when there was one */
	bool late;	/* end: it restored by itself, for nobody had asked in time */
};

struct guardian;

/*
 * *out is NULL after GUARDIAN_FOUND. -EBUSY when others hold the lock or are in the way,
 * -ESRCH, -EPERM, -EBADMSG as poke_open and claims_open say; then nothing was written or it was
 * restored.
 */
int guardian_start(const struct guardian_job *job, struct guardian **out,
		   struct guardian_said *said, struct err *e);

/*
 * To be called ten times a second or so: shows the guardian that its collector runs, and takes the guardian's part over when it was killed. 1 when it has
 * restored by itself (guardian_end then tells), else 0.
 */
int guardian_check(struct guardian *g);

/*
 * Restore and wait until that is done. -EBUSY when it was not in 10 seconds: it goes on trying.
 * Once only.
 */
int guardian_end(struct guardian *g, struct guardian_said *said, struct err *e);

pid_t guardian_pid(const struct guardian *g);

/* Without a guardian_end before: ends it, and forgets what it says. */
void guardian_free(struct guardian *g);
DEFINE_FREEP(struct guardian, guardian)

#endif
