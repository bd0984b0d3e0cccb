/*
 * user/arch/pair.c - finds two words that belong together, on x86-64; on other machines there is
 * no answer.
 *
 * The walk forgets whatever it does not understand, so that there is no answer rather than a
 * wrong one.
 */
#include "arch/pair.h"

#include "arch/arch_priv.h"

enum {
	REGS = 16,
	RIP = REGS, /* as a base register: the displacement is an address */
	SP = 4,
	WORD = 8,
	SLOTS = 32, /* words of memory that are remembered */
	WAYS = 32,  /* continuations after branches that are still to be followed */
	STEPS = 2000,
};
/* no memory lies beyond this, and sums of smaller values cannot overflow */
#define DISP_MAX (1ll << 56)

static const x86_reg names[REGS][5] = {
	{ X86_REG_RAX, X86_REG_EAX, X86_REG_AX, X86_REG_AL, X86_REG_AH },
	{ X86_REG_RCX, X86_REG_ECX, X86_REG_CX, X86_REG_CL, X86_REG_CH },
	{ X86_REG_RDX, X86_REG_EDX, X86_REG_DX, X86_REG_DL, X86_REG_DH },
	{ X86_REG_RBX, X86_REG_EBX, X86_REG_BX, X86_REG_BL, X86_REG_BH },
	{ X86_REG_RSP, X86_REG_ESP, X86_REG_SP, X86_REG_SPL },
	{ X86_REG_RBP, X86_REG_EBP, X86_REG_BP, X86_REG_BPL },
	{ X86_REG_RSI, X86_REG_ESI, X86_REG_SI, X86_REG_SIL },
	{ X86_REG_RDI, X86_REG_EDI, X86_REG_DI, X86_REG_DIL },
	{ X86_REG_R8, X86_REG_R8D, X86_REG_R8W, X86_REG_R8B },
	{ X86_REG_R9, X86_REG_R9D, X86_REG_R9W, X86_REG_R9B },
	{ X86_REG_R10, X86_REG_R10D, X86_REG_R10W, X86_REG_R10B },
	{ X86_REG_R11, X86_REG_R11D, X86_REG_R11W, X86_REG_R11B },
	{ X86_REG_R12, X86_REG_R12D, X86_REG_R12W, X86_REG_R12B },
	{ X86_REG_R13, X86_REG_R13D, X86_REG_R13W, X86_REG_R13B },
	{ X86_REG_R14, X86_REG_R14D, X86_REG_R14W, X86_REG_R14B },
	{ X86_REG_R15, X86_REG_R15D, X86_REG_R15W, X86_REG_R15B },
};

/* The registers of arguments and results, in the order in which they are used. */
static const uint8_t order[] = { 0, 3, 1, 7, 6, 8, 9, 10, 11 };

enum what { NOTHING, RESULT, ADDRESS };

struct value {
	enum what what;
	uint64_t addr;
};

/* Eight bytes of memory; index -1: none. */
struct place {
	int base, index, scale;
	int64_t disp;
};

struct slot {
	struct place at;
	struct value v;
	bool fresh; /* it was written after the last call */
};

struct state {
	uint64_t pc;
	bool called; /* the instruction before was a call */
	struct value reg[REGS];
	struct slot slot[SLOTS];
	size_t nslots;
};

struct walk {
	struct arch *a;
	const uint8_t *code;
	size_t n;
	uint64_t addr;
	arch_pair_fits fits;
	void *arg;
	/* a ring: ways that are nearer to the call are followed first */
	struct state now, ways[WAYS];
	size_t head, nways;
	uint64_t found;
};

static int index_of(unsigned int r)
{
	for (int i = 0; r && i < REGS; i++)
		for (size_t k = 0; k < ARRAY_LEN(names[i]); k++)
			if (names[i][k] == r)
				return i;
	return -1;
}

static bool is_word_reg(const cs_x86_op *o)
{
	return o->type == X86_OP_REG && o->size == WORD && index_of(o->reg) >= 0;
}

static bool place_of(const cs_insn *in, const cs_x86_op *o, struct place *p)
{
	if (o->type != X86_OP_MEM || o->mem.segment != X86_REG_INVALID)
		return false;
	*p = (struct place){ index_of(o->mem.base), index_of(o->mem.index), o->mem.scale,
			     o->mem.disp };
	if (o->mem.base == X86_REG_RIP) {
		p->base = RIP;
		p->disp = (int64_t)((uint64_t)p->disp + in->address + in->size);
	}
	if (p->disp > DISP_MAX || p->disp < -DISP_MAX)
		p->base = -1;
	return p->base >= 0;
}

/* ---- what is known ---- */

static void drop(struct state *s, size_t i)
{
	memmove(&s->slot[i], &s->slot[i + 1], (s->nslots - i - 1) * sizeof(s->slot[0]));
	s->nslots--;
}

static bool is_along(struct place p, struct place q)
{
	return p.base == q.base && p.index == q.index && (p.index < 0 || p.scale == q.scale);
}

static void forget_place(struct state *s, struct place p, int64_t bytes)
{
	for (size_t i = s->nslots; i-- > 0;) {
		struct place q = s->slot[i].at;

		if (is_along(p, q) && q.disp < p.disp + bytes && p.disp < q.disp + WORD)
			drop(s, i);
	}
}

static void set_reg(struct state *s, int r, struct value v)
{
	if (r < 0)
		return;
	s->reg[r] = v;
	for (size_t i = s->nslots; i-- > 0;)
		if (s->slot[i].at.base == r || s->slot[i].at.index == r)
			drop(s, i);
}

static const struct slot *slot_at(const struct state *s, struct place p)
{
	for (size_t i = 0; i < s->nslots; i++)
		if (is_along(s->slot[i].at, p) && s->slot[i].at.disp == p.disp)
			return &s->slot[i];
	return NULL;
}

/*
 * After a call, registers hold nothing that is known, and memory other than the stack may have
 * changed.
 */
static void forget_call(struct state *s)
{
	memset(s->reg, 0, sizeof(s->reg));
	for (size_t i = s->nslots; i-- > 0;) {
		s->slot[i].fresh = false;
		if (s->slot[i].at.base != SP || s->slot[i].at.index >= 0)
			drop(s, i);
	}
}

/* ---- two words ---- */

static void judge(struct walk *w, struct value first, struct value second)
{
	if (!w->found && first.what == ADDRESS && second.what == RESULT &&
	    w->fits(w->arg, first.addr))
		w->found = first.addr;
}

static void judge_arguments(struct walk *w)
{
	for (size_t i = 0; i + 1 < ARRAY_LEN(order); i++)
		judge(w, w->now.reg[order[i]], w->now.reg[order[i + 1]]);
}

/*
 * When an address is stored over something else, it does not belong to the word behind that
 * place.
 */
static void store(struct walk *w, struct place p, struct value v)
{
	struct place before = p, behind = p;
	struct state *s = &w->now;
	const struct slot *t;

	before.disp -= WORD;
	behind.disp += WORD;
	t = slot_at(s, v.what == RESULT ? before : behind);
	if (t && t->fresh && v.what == RESULT)
		judge(w, t->v, v);
	if (t && t->fresh && v.what == ADDRESS && !slot_at(s, p))
		judge(w, v, t->v);
	forget_place(s, p, WORD);
	if (s->nslots == SLOTS)
		drop(s, 0);
	s->slot[s->nslots++] = (struct slot){ .at = p, .v = v, .fresh = true };
}

/* ---- instructions ---- */

static struct value source(const struct walk *w, const cs_insn *in)
{
	const cs_x86_op *op = in->detail->x86.operands;
	struct value none = { NOTHING, 0 };
	struct place p;

	if (in->detail->x86.op_count != 2)
		return none;
	if (in->id == X86_INS_LEA)
		return place_of(in, &op[1], &p) && p.base == RIP && p.index < 0 ?
			       (struct value){ ADDRESS, (uint64_t)p.disp } :
			       none;
	if (in->id != X86_INS_MOV)
		return none;
	if (is_word_reg(&op[1]))
		return w->now.reg[index_of(op[1].reg)];
	if (place_of(in, &op[1], &p) && op[1].size == WORD) {
		const struct slot *t = slot_at(&w->now, p);

		return t ? t->v : none;
	}
	return none;
}

static void move(struct walk *w, const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;
	struct value v = source(w, in);
	struct place p = { .base = -1 };

	for (uint8_t i = 0; i < in->detail->regs_write_count; i++)
		set_reg(&w->now, index_of(in->detail->regs_write[i]), (struct value){ NOTHING, 0 });
	for (uint8_t i = 0; i < x->op_count; i++)
		if (x->operands[i].type == X86_OP_REG && (x->operands[i].access & CS_AC_WRITE))
			set_reg(&w->now, index_of(x->operands[i].reg),
				(struct value){ NOTHING, 0 });
	if (!x->op_count || in->id == X86_INS_CMP || in->id == X86_INS_TEST)
		return;
	if (is_word_reg(&x->operands[0]))
		set_reg(&w->now, index_of(x->operands[0].reg), v);
	else if (place_of(in, &x->operands[0], &p) && in->id == X86_INS_MOV &&
		 x->operands[0].size == WORD)
		store(w, p, v);
	else if (x->operands[0].type == X86_OP_MEM && p.base >= 0)
		forget_place(&w->now, p, x->operands[0].size);
}

static bool is_inside(const struct walk *w, uint64_t pc)
{
	return pc >= w->addr && pc - w->addr < w->n;
}

/* Remembers a way to be followed later. When there is no room for it, it is not followed. */
static void put_off(struct walk *w, uint64_t pc)
{
	struct state *s = &w->ways[(w->head + w->nways) % WAYS];

	if (w->nways == WAYS || !is_inside(w, pc))
		return;
	*s = w->now;
	s->pc = pc;
	w->nways++;
}

/* This way ends here. */
static void jump(struct walk *w, const cs_insn *in)
{
	const cs_x86_op *op = in->detail->x86.operands;

	if (op[0].type == X86_OP_IMM)
		put_off(w, (uint64_t)op[0].imm);
	if (in->id != X86_INS_JMP)
		put_off(w, w->now.pc);
}

/* False at the end of this way. After a call that does not return the compiler puts a nop. */
static bool step(struct walk *w)
{
	struct state *s = &w->now;
	cs_insn *in = w->a->in;
	size_t off = (size_t)(s->pc - w->addr), left = w->n - off;
	const uint8_t *at = w->code + off;
	uint64_t pc = s->pc;
	bool called = s->called;

	if (!is_inside(w, pc) || !cs_disasm_iter(w->a->cs, &at, &left, &pc, in))
		return false;
	s->pc = pc;
	s->called = in->id == X86_INS_CALL;
	if (called && in->id == X86_INS_NOP && in->size == 1)
		return false;
	if (cs_insn_group(w->a->cs, in, CS_GRP_RET)) {
		judge_arguments(w);
		return false;
	}
	if (cs_insn_group(w->a->cs, in, CS_GRP_JUMP)) {
		jump(w, in);
		return false;
	}
	if (cs_insn_group(w->a->cs, in, CS_GRP_INT) || in->id == X86_INS_UD2)
		return false;
	if (s->called) {
		judge_arguments(w);
		forget_call(s);
	} else {
		move(w, in);
	}
	return true;
}

uint64_t arch_pair(struct arch *a, const uint8_t *code, size_t n, uint64_t addr, uint64_t from,
		   arch_pair_fits fits, void *arg)
{
	struct walk *w CLEANUP(freep) = NULL;

	if (a->ops != &arch_amd64_ops)
		return 0;
	w = calloc(1, sizeof(*w));
	if (!w)
		return 0;
	w->a = a;
	w->code = code;
	w->n = n;
	w->addr = addr;
	w->fits = fits;
	w->arg = arg;
	w->now.pc = from;
	w->now.reg[order[0]].what = RESULT;
	for (int i = 0; i < STEPS && !w->found; i++) {
		if (step(w))
			continue;
		if (!w->nways)
			break;
		w->now = w->ways[w->head];
		w->head = (w->head + 1) % WAYS;
		w->nways--;
	}
	a->next = 0; /* the decoder of @a was used for this */
	return w->found;
}
