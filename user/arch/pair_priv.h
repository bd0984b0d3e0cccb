/*
 * user/arch/pair_priv.h - what an instruction does to registers and memory, as far as the walk of user/arch/pair.c
 * wants to know. For user/arch/ only. Each machine reads its own instructions into this.
 */
#ifndef ARCH_PAIR_PRIV_H
#define ARCH_PAIR_PRIV_H

#include <stdbool.h>

#include "arch/arch_priv.h"

enum {
	PAIR_REGS = ARCH_REGS,
	PAIR_STATIC = PAIR_REGS, /* as a base register: the displacement is an address */
	PAIR_WORD = 8,
	PAIR_WORDS = 2, /* that one instruction moves */
};
/* no memory lies beyond this, and sums of smaller values cannot overflow */
#define PAIR_DISP_MAX (1ll << 56)

/* Memory; base -1: it cannot be told where; index -1: none. */
struct pair_place {
	int base, index, scale;
	int64_t disp;
};

enum pair_flow { PAIR_ON, PAIR_CALL, PAIR_RETURN, PAIR_JUMP, PAIR_END };

/* Where a register gets its new contents from. */
enum pair_source {
	PAIR_REG,
	PAIR_MEMORY,
	PAIR_ADDRESS,
	PAIR_SUM,    /* a register, plus a constant */
	PAIR_SCALED, /* a register, times a constant */
	PAIR_PLACE,  /* the address of a place */
};

struct pair_effect {
	enum pair_flow flow;
	uint64_t target; /* of a jump; 0: it is not known */
	bool always;	 /* the jump has no condition */
	bool pads;	 /* it is what the compiler puts behind a call that does not return */
	uint64_t writes; /* a bit for each register that gets new contents */
	bool scatters;	 /* it writes memory, and it cannot be told where */
	/* What is known of these contents. */
	struct {
		int reg;
		enum pair_source from;
		int source;	 /* of PAIR_REG, PAIR_SUM, PAIR_SCALED */
		uint64_t number; /* of PAIR_ADDRESS, PAIR_SUM, PAIR_SCALED */
		struct pair_place at;
	} give[PAIR_WORDS];
	size_t ngive;
	/* Memory that is written. word: with a whole word, and nothing of what was there; reg -1: which is of no interest. */
	struct {
		struct pair_place at;
		int64_t bytes;
		bool word;
		int reg;
	} store[PAIR_WORDS];
	size_t nstore;
};

struct pair_machine {
	int sp;
	/* The registers of arguments and results, in the order in which they are used. */
	const uint8_t *order;
	size_t norder;
	void (*read)(csh cs, const cs_insn *in, struct pair_effect *out);
};

extern const struct pair_machine pair_amd64, pair_arm64;

#endif
