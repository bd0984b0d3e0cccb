/*
 * user/arch/cputicks.h - the counter with which Go's runtime times waits, as this machine has it.
 */
#ifndef ARCH_CPUTICKS_H
#define ARCH_CPUTICKS_H

#include <stdint.h>

/*
 * What runtime.cputicks would return now: on amd64 the time stamp counter, on arm64
 * CLOCK_MONOTONIC in ns. Source: runtime/asm_amd64.s, runtime/os_linux_arm64.go, Go 1.16 to 1.27.
 */
int64_t arch_cputicks(void);

#endif
