/*
 * user/collect/cpu/clocks.h - one CPU clock per thread of a target.
 *
 * A software task clock counts the CPU time of its thread, and runs the BPF program each time it
 * has advanced by one step, a fraction of the sampling period. Threads that are born later
 * inherit clocks (child processes do not), and the steps that their makers' clocks have then, so that
 * nobody needs to notice a short thread.
 */
#ifndef COLLECT_CPU_CLOCKS_H
#define COLLECT_CPU_CLOCKS_H

#include "base/map.h"
#include "base/vec.h"
#include "target/target.h"

struct clock {
	int fd, link_fd;
	uint64_t step_ns; /* as it was opened */
	bool coarse;	  /* its steps are longer now */
};

struct clocks {
	VEC(struct clock) at;
	struct map tids; /* tid -> 1: opened, or found gone */
	struct map ids;	 /* the kernel's number of a clock -> its place in at */
	uint64_t step_ns;
	uint64_t missed; /* threads that could not be given a clock */
	bool children;	 /* child processes inherit clocks, too (before Linux 5.13) */
	bool overlapped; /* a thread has two clocks; the BPF side counts one of them */
};

/*
 * Gives every thread a clock, in rounds until no thread is left without one. @prog_fd: the BPF
 * program; @own_clock_fd: its map of threads that may have two.
 */
int clocks_open(struct clocks *c, struct target *t, int prog_fd, int own_clock_fd, uint64_t step_ns,
		struct err *e);

/*
 * From now on the clock that the kernel numbers @id, and those that are inherited from it, take steps of
 * @step_ns; 0: as they were opened, as clocks_refine() sets all. A clock's step begins anew; what it has
 * counted stays. Clocks that were inherited before keep their steps.
 */
void clocks_set(struct clocks *c, uint64_t id, uint64_t step_ns);
void clocks_refine(struct clocks *c);

/* Stops all clocks, inherited ones too: the BPF program runs no more. They can still be read. */
void clocks_stop(struct clocks *c);

/* CPU time that the clocks have counted, also of threads that ended, and of child processes. 0 when overlapped. */
uint64_t clocks_total_ns(const struct clocks *c);

/* Closes all clocks; safe on a zeroed struct. */
void clocks_close(struct clocks *c);

#endif
