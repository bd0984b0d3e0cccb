/* user/collect/ability_priv.h - single attempts; 0 or a negative errno with a sentence. */
#ifndef COLLECT_ABILITY_PRIV_H
#define COLLECT_ABILITY_PRIV_H

#include <sys/types.h>

#include "collect/ability.h"

int try_btf(size_t *bytes, struct err *e);
int try_ring(struct err *e);
int try_perf_program(struct err *e);
int try_uprobe_program(struct err *e);
int try_clock(struct err *e);
/* A program on a clock of our own, with a cookie. */
int try_clock_link(struct err *e);
/* Type number of the uprobe PMU. */
int try_uprobe_pmu(unsigned *type, struct err *e);
/* 1: BPF memory counts against RLIMIT_MEMLOCK. 0: it does not. */
int try_memlock(struct err *e);

/* The whole BPF program of a CPU profile is accepted. */
int try_cpu_object(struct err *e);
/* That of heap probes, and attached to this program itself, then dropped. */
int try_heap_object(struct err *e);
/* The same of where goroutines park and who wakes them. */
int try_sched_object(struct err *e);
/* The same of what a goroutine's status is. */
int try_wait_object(struct err *e);

/* A process of our own user reads another one's memory. */
int try_own_memory(struct err *e);
/* Another user's, *pid says which. -ENOENT: there is none here. */
int try_other_memory(pid_t *pid, struct err *e);

#endif
