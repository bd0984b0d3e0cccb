/*
 * user/arch/arch_priv.h - what the per-machine decoders share. For user/arch/ only.
 *
 * A decoder follows the values of registers from one instruction to the next, as long as the
 * instructions are consecutive: it knows which register holds g, g's stack guard, something made
 * from sp, or a known address. By that a stack check is told from any other compare.
 */
#ifndef ARCH_ARCH_PRIV_H
#define ARCH_ARCH_PRIV_H

#include <capstone/capstone.h>
#include <stdbool.h>

#include "arch/arch.h"

enum { ARCH_REGS = 32 };

/* What a register is known to hold. */
enum held {
	HELD_NOTHING,
	HELD_G,	    /* the current goroutine */
	HELD_GUARD, /* its stackguard0 or stackguard1 */
	HELD_SP,    /* sp, or sp plus or minus a constant */
	HELD_ROOM,  /* sp minus the guard, so that the result can be compared with a frame size */
	HELD_CONST, /* the address in reg[].value */
};

struct held_reg {
	enum held what;
	uint64_t value;
};

struct arch_ops {
	cs_arch cs;
	cs_mode mode;
	/* Sets the registers to what they hold at a function's entry. */
	void (*reset)(struct arch *a);
	/*
	 * For an instruction that the decoder does not know: sets kind and len of *out when its bits tell
	 * where control goes from it. NULL: they never do.
	 */
	void (*unknown)(const uint8_t *code, size_t n, struct insn *out);
	/* Fills kind, target and mem_* of *out from @in, and follows the registers. */
	void (*classify)(struct arch *a, const cs_insn *in, struct insn *out);
};

struct arch {
	const struct arch_ops *ops;
	csh cs;
	cs_insn *in;   /* scratch for cs_disasm_iter */
	uint64_t next; /* address of the instruction that continues the straight line */
	bool checked;  /* the flags are the result of a stack check */
	struct held_reg reg[ARCH_REGS];
};

/* Offsets of g.stackguard0 and g.stackguard1. Source: runtime/runtime2.go, Go 1.16-1.27. */
static inline bool is_guard_offset(int64_t off)
{
	return off == 0x10 || off == 0x18;
}

extern const struct arch_ops arch_amd64_ops;
extern const struct arch_ops arch_arm64_ops;

#endif
