/*
 * user/collect/clocks.h - one CPU clock per thread of a target.
 *
 * A software task clock counts the CPU time of its thread and runs the BPF program each
 * time it has advanced by one step, a fraction of the sampling period. Clocks are inherited by threads born later (not by
 * child processes), so that a short thread needs nobody to notice it.
 */
#ifndef COLLECT_CLOCKS_H
#define COLLECT_CLOCKS_H

#include "base/map.h"
#include "base/vec.h"
#include "target/target.h"

struct clock {
	int fd, link_fd;
};

struct clocks {
	VEC(struct clock) at;
	struct map tids; /* tid -> 1: opened, or found gone */
	uint64_t step_ns;
	uint64_t missed; /* threads that could not be given a clock */
	bool overlapped; /* a thread has two clocks; the BPF side lets one count */
};

/*
 * Give every thread a clock, going round until no thread without one is left. @prog_fd: the
 * BPF program; @own_clock_fd: its map of threads that may have two.
 */
int clocks_open(struct clocks *c, struct target *t, int prog_fd, int own_clock_fd, uint64_t step_ns,
		struct err *e);

/* Stop them all, inherited ones too: the BPF program runs no more. They can still be read. */
void clocks_stop(struct clocks *c);

/* CPU time that the clocks have counted, of threads that ended too. 0 when overlapped. */
uint64_t clocks_total_ns(const struct clocks *c);

/* Close all; safe on a zeroed struct. */
void clocks_close(struct clocks *c);

#endif
