/* user/arch/breakpoint.h - the instruction that this machine's kernel puts where a uprobe is. */
#ifndef ARCH_BREAKPOINT_H
#define ARCH_BREAKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The first breakpoint from @from on that is in @now and not in @was, two copies of @n bytes of code
 * (from a multiple of 4 on); @n when there is none.
 *
 * amd64: int3, one byte, which debuggers use as well. arm64: a brk with the number of uprobes.
 * Source: UPROBE_SWBP_INSN in arch/x86/include/asm/uprobes.h and arch/arm64/include/asm/uprobes.h;
 * UPROBES_BRK_IMM (5) in arch/arm64/include/asm/brk-imm.h. A uprobe on a nop of 5 bytes may become
 * a call on amd64 from Linux 6.18 on: Go's compiler puts no such nop, and none is looked for.
 */
size_t breakpoint_find(const uint8_t *now, const uint8_t *was, size_t n, size_t from);

/*
 * May no probe be put where @was is the file's code, of which @n bytes are known? amd64: a jump of two bytes over eight.
 * A kernel in development after Linux 7.0 takes that for a probe of its own and overwrites the eight (arch/amd64.c).
 */
bool breakpoint_is_barred(const uint8_t *was, size_t n);

#endif
