/* user/arch/arm64_tls.c - follows the constants in registers over a few instructions. */
#include "arch/arm64_tls.h"

#include <string.h>

enum {
	REGS = 32,
	MRS_TPIDR_EL0 = 0xd53bd040,
	X28 = 28,
};

struct follower {
	uint64_t reg[REGS];  /* constants; 0 when it is not one */
	uint64_t from[REGS]; /* address of the word that was loaded into it; 0: it was not loaded */
	bool offset[REGS];   /* loaded or made behind the read of the thread pointer */
	int tp;		     /* the register with the thread pointer; -1: none yet */
};

static uint64_t adrp(uint32_t w, uint64_t pc)
{
	uint64_t pages = ((uint64_t)(w >> 5 & 0x7ffff) << 2 | (w >> 29 & 3)) << 43;

	return (pc & ~0xfffull) + ((uint64_t)((int64_t)pages >> 43) << 12);
}

/* Follows add, movz, movk, adrp and ldr; nothing else makes a constant in these functions. */
static void constant(struct follower *f, uint32_t w, uint64_t pc)
{
	uint32_t to = w & 31, from = w >> 5 & 31;
	uint64_t imm16 = w >> 5 & 0xffff;
	uint32_t shift = (w >> 21 & 3) * 16;

	f->offset[to] = f->tp >= 0;
	if ((w & 0x9f000000) == 0x90000000) {
		f->reg[to] = adrp(w, pc);
	} else if ((w & 0xffc00000) == 0x91000000) {
		f->reg[to] = f->reg[from] + (w >> 10 & 0xfff);
	} else if ((w & 0xff800000) == 0xd2800000) {
		f->reg[to] = imm16 << shift;
		f->from[to] = 0;
	} else if ((w & 0xff800000) == 0xf2800000) {
		f->reg[to] = (f->reg[to] & ~(0xffffull << shift)) | imm16 << shift;
	} else if ((w & 0xffc00000) == 0xf9400000 && f->reg[from]) {
		f->from[to] = f->reg[from] + (w >> 10 & 0xfff) * 8;
	}
}

/* One instruction. True when it loads g. */
static bool step(struct follower *f, uint32_t w, uint64_t pc, struct arm64_load_g *out)
{
	uint32_t base = w >> 5 & 31, index = w >> 16 & 31;

	if ((w & 0xffc00000) == 0x39800000 && f->tp < 0 && !out->iscgo) {
		out->iscgo = f->reg[base] ? f->reg[base] + (w >> 10 & 0xfff) : 0;
	} else if ((w & ~31u) == MRS_TPIDR_EL0) {
		f->tp = (int)(w & 31);
	} else if ((w & 0xffe0fc00) == 0xf8606800 && (w & 31) == X28 && (int)base == f->tp &&
		   f->offset[index]) {
		out->got = f->from[index];
		out->off = (int64_t)f->reg[index];
		return true;
	} else {
		constant(f, w, pc);
	}
	return false;
}

bool arm64_load_g(const uint8_t *code, size_t n, uint64_t addr, struct arm64_load_g *out)
{
	struct follower f = { .tp = -1 };
	uint32_t w;

	*out = (struct arm64_load_g){ 0 };
	for (size_t at = 0; at + sizeof(w) <= n; at += sizeof(w)) {
		memcpy(&w, code + at, sizeof(w));
		if (step(&f, w, addr + at, out))
			return out->iscgo;
	}
	return false;
}
