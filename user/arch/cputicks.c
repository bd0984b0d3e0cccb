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

#include "base/clock.h"

int64_t arch_cputicks(void)
{
	return (int64_t)now_ns();
}

#endif
