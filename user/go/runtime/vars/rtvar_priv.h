/*
 * user/go/runtime/vars/rtvar_priv.h - runtime variables recognized by the functions that use them: the table,
 * the evidence and the rules. For go/rtvar*.c, their tests and their fuzzer.
 */
#ifndef GO_RUNTIME_VARS_RTVAR_PRIV_H
#define GO_RUNTIME_VARS_RTVAR_PRIV_H

#include "arch/arch.h"
#include "base/vec.h"
#include "go/runtime/vars/rtvar.h"

enum { RTVAR_WITNESSES = 9, RTVAR_ALIASES = 4, RTVAR_STRANGERS = 5, RTVAR_PARTS = 3 };

/* Parts of moduledata that hold variables. */
enum { IN_NOPTRDATA = 1, IN_DATA = 2, IN_BSS = 4, IN_NOPTRBSS = 8, IN_ANY = 15 };

enum rtvar_shape {
	SHAPE_WORD,   /* read or written at its width at least once */
	SHAPE_SLICE,  /* a function that uses it also uses the length at its offset 8 */
	SHAPE_STRUCT, /* its address is taken; addresses of its fields count for its start */
};

enum rtvar_rule {
	RULE_VOTES, /* it is the one address that most witnesses name and no stranger does */
	/* it is in the arm of stkbucket's choice by bucket type, and no stranger names it */
	RULE_CASES,
	RULE_GATE, /* it is the byte that is read before MemProfileRate is set */
};

struct rtvar_def {
	const char *name;
	const char *symbols[2];
	enum rtvar_rule rule;
	enum rtvar_shape shape;
	uint8_t size;	  /* bytes; for a struct, those in which fields are looked for */
	uint8_t width;	  /* bytes of an access */
	uint8_t sections; /* IN_*, over all Go versions */
	uint8_t quorum;	  /* how many witnesses it takes */
	uint8_t since;	  /* Go minor version that brought it */
	uint8_t bucket;	  /* RULE_CASES: the bucket's type */
	uint8_t must;	  /* a bit for each witness without which it is not this variable */
	bool by_address;  /* functions that only take its address count as well */
	/*
	 * Where code names a part of the variable instead of its start: the offset of that part,
	 * in Go before minor version @before (0: in any). The first row that fits applies.
	 */
	struct {
		uint8_t before;
		uint16_t off;
	} part[RTVAR_PARTS];
	/*
	 * Each is a function, with the names of functions that call it or that it is inlined into
	 * in other versions.
	 */
	const char *witness[RTVAR_WITNESSES][RTVAR_ALIASES];
	/* Functions that never use it, and that do use what could be mistaken for it. */
	const char *stranger[RTVAR_STRANGERS];
};

extern const struct rtvar_def rtvar_defs[RTVAR_COUNT];

/*
 * Where variables can be: the sections of moduledata; without it everything outside of [text,
 * etext).
 */
struct rtplaces {
	const struct gomodule *module; /* NULL: not known */
	uint64_t text, etext;
};
bool rtplace_ok(const struct rtplaces *p, uint64_t addr, uint8_t size, uint8_t sections);

/* The instructions of one function, as far as they could be decoded. */
struct rtcode {
	struct insn *at;
	size_t n;
};
int rtcode_decode(struct arch *a, enum arch_id id, const uint8_t *code, size_t n, uint64_t addr,
		  struct rtcode *out, struct err *e);
void rtcode_fini(struct rtcode *c);

struct rtcandidate {
	uint64_t addr;
	uint32_t witnesses; /* bit per witness */
	/* it was read or written at the width, and not only its address taken */
	bool used;
	bool strange;
};

struct rttally {
	VEC(struct rtcandidate) c;
	bool truncated;
};
void rttally_fini(struct rttally *t);

/*
 * Records what this function names: as witness number @witness, or as a stranger when that is -1.
 */
void rttally_hear(struct rttally *t, const struct rtcode *c, const struct rtvar_def *d,
		  const struct rtplaces *p, int witness);
/* Returns 0, or -ENOENT with the votes. */
int rttally_elect(const struct rttally *t, const struct rtvar_def *d, uint64_t *addr,
		  struct err *e);

/*
 * In runtime.stkbucket: where the heads of the three lists are. They are told apart by the bucket
 * type that the code compares with before each: 1 memory, 3 mutex, else block. -ENOENT when the
 * code reads otherwise.
 */
struct rtheads {
	uint64_t mem, block, mutex;
};
int rtcode_heads(const struct rtcode *c, const struct rtplaces *p, struct rtheads *out,
		 struct err *e);

/*
 * Finds the byte that is read last before @rate is written. -ENOENT when there is none nearby,
 * -EBADMSG when there are two.
 */
int rtcode_gate(const struct rtcode *c, const struct rtplaces *p, uint64_t rate, uint64_t *addr,
		struct err *e);

#endif
