/*
 * user/collect/cpu/host_clocks.h - one clock per CPU, which runs the BPF program at each tick that does not meet the idle task.
 *
 * The kernel takes the clock of a CPU that is switched off away, and does not give it back when the CPU is switched on again:
 * its count stays where it was (perf_event_exit_cpu() in kernel/events/core.c, Linux 6.12; measured on 6.1). So
 * each clock's count is read once a second, and one that stands still is opened anew.
 */
#ifndef COLLECT_CPU_HOST_CLOCKS_H
#define COLLECT_CPU_HOST_CLOCKS_H

#include "base/err.h"
#include "base/vec.h"
#include "sampling/uneven.h"

struct host_clock {
	int fd, link;		  /* -1: the CPU is switched off */
	uint64_t count, check_ns; /* when it is read next */
	struct uneven period;
};

/* Zeroed; @prog_fd: the BPF program's. */
struct host_clocks {
	VEC(struct host_clock) at; /* by number of the CPU */
	int prog_fd;
	uint64_t period_ns, weight; /* a tick stands for so many */
	size_t next;		    /* the clock that is asked first */
	bool on;
};

/* Opens one for each CPU that may be switched on. @period_ns: from tick to tick, on average. */
int host_clocks_open(struct host_clocks *c, int prog_fd, uint64_t period_ns, struct err *e);

int host_clocks_start(struct host_clocks *c, struct err *e);
void host_clocks_stop(struct host_clocks *c);

/* Ticks @weight times as far apart. */
void host_clocks_weigh(struct host_clocks *c, uint64_t weight);

/* To be called some ten times a second: gives clocks other periods, where they are due, and CPUs that were switched on new clocks. */
void host_clocks_turn(struct host_clocks *c);

/* Safe on a zeroed struct. */
void host_clocks_close(struct host_clocks *c);

#endif
