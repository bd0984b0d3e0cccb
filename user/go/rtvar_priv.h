/*
 * user/go/rtvar_priv.h - runtime variables told by who uses them: the table, the evidence and
 * the rules. For go/rtvar*.c, their tests and their fuzzer.
 */
#ifndef GO_RTVAR_PRIV_H
#define GO_RTVAR_PRIV_H

#include "arch/arch.h"
#include "base/vec.h"
#include "go/rtvar.h"

enum { RTVAR_WITNESSES = 9, RTVAR_ALIASES = 4, RTVAR_STRANGERS = 5, RTVAR_PARTS = 3 };

/* Parts of moduledata that hold variables. */
enum { IN_NOPTRDATA = 1, IN_DATA = 2, IN_BSS = 4, IN_NOPTRBSS = 8, IN_ANY = 15 };

enum rtvar_shape {
	SHAPE_WORD,   /* read or written at its width at least once */
	SHAPE_SLICE,  /* a function that uses it uses the length 8 bytes on too */
	SHAPE_STRUCT, /* its address is taken; addresses of its fields count for its start */
};

enum rtvar_rule {
	RULE_VOTES, /* the one address that most witnesses name, and no stranger */
	RULE_CASES, /* the arm of stkbucket's choice by bucket type; and no stranger */
	RULE_GATE,  /* the byte that is looked at before MemProfileRate is set */
};

struct rtvar_def {
	const char *name;
	const char *symbols[2];
	enum rtvar_rule rule;
	enum rtvar_shape shape;
	uint8_t size;	  /* bytes; of a struct those in which fields are looked for */
	uint8_t width;	  /* bytes of an access */
	uint8_t sections; /* IN_*, in any Go version */
	uint8_t quorum;	  /* witnesses it takes */
	uint8_t since;	  /* Go minor version that brought it */
	uint8_t bucket;	  /* RULE_CASES: the bucket's type */
	uint8_t must;	  /* bits of the witnesses without which it is not this variable */
	bool by_address;  /* also count functions that only take its address */
	/*
	 * Where code names a part of the variable and not its start: the part's offset, in Go
	 * before minor version @before (0: in any). The first that applies.
	 */
	struct {
		uint8_t before;
		uint16_t off;
	} part[RTVAR_PARTS];
	/* Each is a function, or what it is called or inlined into elsewhere. */
	const char *witness[RTVAR_WITNESSES][RTVAR_ALIASES];
	/* Functions that never use it, and do use what could be taken for it. */
	const char *stranger[RTVAR_STRANGERS];
};

extern const struct rtvar_def rtvar_defs[RTVAR_COUNT];

/* Where variables can be: the sections of moduledata, without it all but [text, etext). */
struct rtplaces {
	const struct gomodule *module; /* NULL: not known */
	uint64_t text, etext;
};
bool rtplace_ok(const struct rtplaces *p, uint64_t addr, uint8_t size, uint8_t sections);

/* One function's instructions, as far as they decode. */
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
	bool used;	    /* read or written at the width, not only its address taken */
	bool strange;
};

struct rttally {
	VEC(struct rtcandidate) c;
	bool truncated;
};
void rttally_fini(struct rttally *t);

/* What this function names, as witness number @witness; as a stranger when it is -1. */
void rttally_hear(struct rttally *t, const struct rtcode *c, const struct rtvar_def *d,
		  const struct rtplaces *p, int witness);
/* 0, or -ENOENT with the votes. */
int rttally_elect(const struct rttally *t, const struct rtvar_def *d, uint64_t *addr,
		  struct err *e);

/*
 * runtime.stkbucket: where the heads of the three lists are, told by the bucket type that is
 * compared with before each: 1 memory, 3 mutex, else block. -ENOENT when it reads otherwise.
 */
struct rtheads {
	uint64_t mem, block, mutex;
};
int rtcode_heads(const struct rtcode *c, const struct rtplaces *p, struct rtheads *out,
		 struct err *e);

/*
 * The byte that is read last before @rate is written. -ENOENT when there is none near, -EBADMSG
 * when there are two.
 */
int rtcode_gate(const struct rtcode *c, const struct rtplaces *p, uint64_t rate, uint64_t *addr,
		struct err *e);

#endif
