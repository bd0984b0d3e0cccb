/*
 * user/collect/cpu/undelivered.h - ticks of the clocks of CPUs that were due and did not come.
 *
 * A clock that is served late skips the ticks that it missed: a hypervisor had taken the CPU, interrupts were off for long, the
 * kernel throttled the clock, or a BPF program was at work on that CPU and ours was left out. How many there were is known of
 * each CPU, and who ran there meanwhile is not. All counts are of ticks at the wanted rate.
 * Source: perf_swevent_hrtimer, __perf_event_account_interrupt and bpf_overflow_handler in kernel/events/core.c, Linux 6.18.
 */
#ifndef COLLECT_CPU_UNDELIVERED_H
#define COLLECT_CPU_UNDELIVERED_H

#include <stdint.h>

struct undelivered {
	uint64_t due, n; /* of all CPUs */
};

/*
 * Adds a CPU whose clock ran for @ns and came @came times. @weight: a tick stood for so many at the end, and for fewer before:
 * the part of a period at each change, and the last one, which may come late, are no loss.
 */
void undelivered_add(struct undelivered *u, uint64_t ns, uint64_t period_ns, uint64_t weight,
		     uint64_t came);

/* Those but @known ones, whose they are; 0 where they are so few that profiles do not suffer: up to a fiftieth. */
uint64_t undelivered_unknown(const struct undelivered *u, uint64_t known);

/*
 * How many ticks lack of a process that took @cpu_ns of CPU time and has @samples: 0, where chance explains it. Ticks meet it
 * by chance: six standard deviations of as many independent ones, and a fiftieth.
 */
uint64_t ticks_lacking(uint64_t cpu_ns, uint64_t period_ns, uint64_t weight, uint64_t samples);

#endif
