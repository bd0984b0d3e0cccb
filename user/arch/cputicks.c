/* user/arch/cputicks.c - reads the counter after all instructions before it are done. */
#include "arch/cputicks.h"

#if defined(__x86_64__)

int64_t arch_cputicks(void)
{
	uint32_t lo, hi;

	__asm__ volatile("mfence; lfence; rdtsc" : "=a"(lo), "=d"(hi) : : "memory");
	return (int64_t)((uint64_t)hi << 32 | lo);
}

#else

#include <time.h>

int64_t arch_cputicks(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#endif
