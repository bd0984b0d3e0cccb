/*
 * user/base/clock.h - what time it is, in nanoseconds. Nothing else under user/ asks the system, so that a
 * test which has a clock_gettime() of its own has the whole program's time in its hand.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define NS_PER_MS 1000000ull
#define NS_PER_S  1000000000ull

/* 0 of a clock that is gone: that of a process that has ended. */
static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts))
		return 0;
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* CLOCK_MONOTONIC, as bpf_ktime_get_ns() and the runtime's nanotime(). */
static inline uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* CPU time of a process; 0 of one that has gone. */
static inline uint64_t process_cpu_ns(pid_t pid)
{
	clockid_t clock;

	return clock_getcpuclockid(pid, &clock) ? 0 : clock_ns(clock);
}

#endif
