/*
 * user/arch/arch.h - everything that differs between machines. Each machine has one whole file,
 * which is chosen by the target's architecture.
 */
#ifndef ARCH_ARCH_H
#define ARCH_ARCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum arch_id { ARCH_AMD64 = 1, ARCH_ARM64 };

/* What one decoded instruction means to us. */
enum insn_kind {
	INSN_OTHER,	   /* straight-line, no control transfer */
	INSN_STACK_CMP,	   /* compares sp (or a register derived from it) with g's stack guard */
	INSN_STACK_BRANCH, /* the conditional branch right after it: taken = stack must grow */
	INSN_BRANCH,	   /* any other jump, conditional or not */
	INSN_CALL,
	INSN_RET,
	INSN_BAD, /* could not be decoded */
};

/* The condition under which a branch is taken, as far as it matters to us. */
enum insn_cond { COND_NONE, COND_EQ, COND_NE, COND_OTHER };

/* What a memory operand's offset counts from. */
enum insn_base { BASE_NONE, BASE_G, BASE_OTHER /* any register but sp and the frame pointer */ };

/*
 * A decoded instruction. It has at most one memory operand whose address the instruction alone
 * gives (rip-relative, or adrp and add).
 */
struct insn {
	enum insn_kind kind;
	uint64_t addr;
	uint8_t len;
	uint64_t target;   /* of a direct branch or call; 0 if indirect */
	uint64_t mem_addr; /* address of the static memory operand, 0 if there is none */
	uint8_t mem_width; /* bytes it reads or writes, 0 when only the address is taken (lea) */
	uint8_t mem_write; /* 1: the operand is written, perhaps also read */
	uint8_t cond;	   /* enum insn_cond, of INSN_BRANCH; COND_NONE: always */
	uint8_t cmp;	   /* 1: the instruction compares something with the constant cmp_imm */
	int64_t cmp_imm;

	/* 1: the kernel emulates it when it is probed, so that nothing is single-stepped */
	uint8_t emulated;
	/* 1: no probe may ever be here: some kernel refuses it, or takes the instruction for one of its own */
	uint8_t no_probe;
	/* 1: it writes a register that carries one of Go's first three arguments */
	uint8_t arg_write;
	uint8_t sets_frame; /* 1: from here on the frame pointer is this function's */

	uint8_t base; /* enum insn_base; not NONE: the operand is at that register plus off */
	uint8_t pair; /* 1: a second word, at off + 8, is accessed as well */
	int32_t off;
};

struct arch;
/* The decoder for one machine; -ENOTSUP for one we do not know. Not thread-safe. */
int arch_open(enum arch_id id, struct arch **out, struct err *e);
void arch_free(struct arch *a);
DEFINE_FREEP(struct arch, arch)

/*
 * Decode the instruction at @addr from @code (@n bytes left). Always fills *out; kind
 * INSN_BAD and len 0 when the bytes are not an instruction.
 */
void arch_decode(struct arch *a, const uint8_t *code, size_t n, uint64_t addr, struct insn *out);

#endif
