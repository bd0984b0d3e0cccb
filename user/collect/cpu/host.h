/*
 * user/collect/cpu/host.h - CPU profiles of many processes: one clock per CPU, for engine/engine.h.
 *
 * Which samples there are follows from chance: one of a process that runs for a third of the time
 * is met by a third of the ticks. How much CPU time a process took is known exactly, from the
 * kernel, so a process' samples share that time out among its stacks (a ratio estimator).
 */
#ifndef COLLECT_CPU_HOST_H
#define COLLECT_CPU_HOST_H

#include "engine/engine.h"

extern const struct engine_kind engine_cpu;

#endif
