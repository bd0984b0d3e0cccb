/*
 * user/inspect/ability_priv.h - single attempts. Each returns 0, or a negative errno with a
 * sentence.
 */
#ifndef INSPECT_ABILITY_PRIV_H
#define INSPECT_ABILITY_PRIV_H

#include <sys/types.h>

#include "inspect/ability.h"

int try_btf(size_t *bytes, struct err *e);
int try_ring(struct err *e);
int try_perf_program(struct err *e);
int try_uprobe_program(struct err *e);
int try_clock(struct err *e);
/* Puts a program on a clock of our own, with a cookie. Returns 1 when it works, but without one. */
int try_clock_link(struct err *e);
/* Reads the type number of the uprobe PMU. */
int try_uprobe_pmu(unsigned *type, struct err *e);
/* Returns 1 when BPF memory counts against RLIMIT_MEMLOCK, 0 when it does not. */
int try_memlock(struct err *e);
/* Are helper processes spared by the kernel's out-of-memory killer? */
int try_spared(struct err *e);

/* Does the kernel accept the whole BPF program of a CPU profile? */
int try_cpu_object(struct err *e);
/*
 * The same for that of heap probes, which is also attached to this program itself and dropped
 * again.
 */
int try_heap_object(struct err *e);
/* The same for the program that sees where goroutines park and who wakes them. */
int try_sched_object(struct err *e);
/* The same for the program that sees a goroutine's status. */
int try_wait_object(struct err *e);

/* Can a process of our own user read the memory of another? */
int try_own_memory(struct err *e);
/* The same for a process of another user; *pid says which. -ENOENT: there is none here. */
int try_other_memory(pid_t *pid, struct err *e);

#endif
