/*
 * user/arch/frame.h - where a Go frame keeps its return address.
 *
 * amd64: a call pushes it, so it is @delta bytes above sp, and the caller's sp is 8 above that.
 * arm64: a call leaves it in x30; a function with a frame stores it at its sp. The caller's sp is @delta
 * bytes above sp. A frame without bytes (delta 0) that is interrupted has it in x30 alone. Where a signal
 * handler made the interrupted function call another one, it pushed x30, with 16 bytes.
 *
 * bpf/arch.bpf.h has the same rules. Source: unwinder.resolveInternal and unwinder.next (usesLR) in
 * runtime/traceback.go, cmd/internal/obj/arm64/obj7.go, Go 1.16 to 1.27.
 */
#ifndef ARCH_FRAME_H
#define ARCH_FRAME_H

#include <stdbool.h>

#include "arch/arch.h"

enum { ARCH_WORD = 8, ARM64_PUSHED = 16 };

/* Does a call leave the return address in a register? */
static inline bool arch_uses_lr(enum arch_id id)
{
	return id == ARCH_ARM64;
}

/* Is the return address @lr, the link register's value (0: it is not known)? Otherwise it is in memory. */
static inline bool arch_returns_to_lr(enum arch_id id, uint64_t lr, int32_t delta)
{
	return arch_uses_lr(id) && lr && !delta;
}

/* Where in memory the return address is. */
static inline uint64_t arch_return_at(enum arch_id id, uint64_t sp, int32_t delta)
{
	return arch_uses_lr(id) ? sp : sp + (uint64_t)(int64_t)delta;
}

static inline uint64_t arch_caller_sp(enum arch_id id, uint64_t sp, int32_t delta)
{
	return sp + (uint64_t)(int64_t)delta + (arch_uses_lr(id) ? 0 : ARCH_WORD);
}

/* Is this word of arm64 a call? */
static inline bool arch_is_call(uint32_t word)
{
	return (word & 0xfc000000) == 0x94000000 || (word & 0xfffffc1f) == 0xd63f0000;
}

#endif
