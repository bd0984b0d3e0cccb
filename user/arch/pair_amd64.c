/* user/arch/pair_amd64.c - what instructions of x86-64 do to registers and memory. */
#include "arch/pair_priv.h"

enum { REGS = 16, RSP = 4 };

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

static const uint8_t order[] = { 0, 3, 1, 7, 6, 8, 9, 10, 11 };

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
	return o->type == X86_OP_REG && o->size == PAIR_WORD && index_of(o->reg) >= 0;
}

/* False where it cannot be told. */
static bool place_of(const cs_insn *in, const cs_x86_op *o, struct pair_place *p)
{
	if (o->type != X86_OP_MEM || o->mem.segment != X86_REG_INVALID)
		return false;
	*p = (struct pair_place){ index_of(o->mem.base), index_of(o->mem.index), o->mem.scale,
				  o->mem.disp };
	if (o->mem.base == X86_REG_RIP) {
		p->base = PAIR_STATIC;
		p->disp = (int64_t)((uint64_t)p->disp + in->address + in->size);
	}
	return p->base >= 0;
}

/* What the first operand, a register, gets. */
static void give(const cs_insn *in, struct pair_effect *out)
{
	const cs_x86_op *op = in->detail->x86.operands;
	struct pair_place p;

	out->give[0].reg = index_of(op[0].reg);
	out->ngive = 1;
	if (in->id == X86_INS_LEA && place_of(in, &op[1], &p) && p.base == PAIR_STATIC &&
	    p.index < 0) {
		out->give[0].from = PAIR_ADDRESS;
		out->give[0].number = (uint64_t)p.disp;
	} else if (in->id == X86_INS_MOV && is_word_reg(&op[1])) {
		out->give[0].from = PAIR_REG;
		out->give[0].source = index_of(op[1].reg);
	} else if (in->id == X86_INS_MOV && op[1].size == PAIR_WORD && place_of(in, &op[1], &p)) {
		out->give[0].from = PAIR_MEMORY;
		out->give[0].at = p;
	} else {
		out->ngive = 0;
	}
}

static void put(const cs_insn *in, struct pair_effect *out)
{
	const cs_x86_op *op = in->detail->x86.operands;

	if (!place_of(in, &op[0], &out->store[0].at))
		return;
	out->store[0].bytes = op[0].size;
	out->store[0].word = in->id == X86_INS_MOV && op[0].size == PAIR_WORD;
	out->store[0].reg = out->store[0].word && is_word_reg(&op[1]) ? index_of(op[1].reg) : -1;
	out->nstore = 1;
}

static void moved(const cs_insn *in, struct pair_effect *out)
{
	const cs_x86 *x = &in->detail->x86;

	for (uint8_t i = 0; i < in->detail->regs_write_count; i++)
		if (index_of(in->detail->regs_write[i]) >= 0)
			out->writes |= 1ull << index_of(in->detail->regs_write[i]);
	for (uint8_t i = 0; i < x->op_count; i++)
		if (x->operands[i].type == X86_OP_REG && (x->operands[i].access & CS_AC_WRITE) &&
		    index_of(x->operands[i].reg) >= 0)
			out->writes |= 1ull << index_of(x->operands[i].reg);
	if (!x->op_count || in->id == X86_INS_CMP || in->id == X86_INS_TEST)
		return;
	if (x->operands[0].type == X86_OP_MEM)
		put(in, out);
	if (!is_word_reg(&x->operands[0]))
		return;
	out->writes |= 1ull << index_of(x->operands[0].reg);
	if (x->op_count == 2)
		give(in, out);
}

static void read_insn(csh cs, const cs_insn *in, struct pair_effect *out)
{
	const cs_x86_op *op = in->detail->x86.operands;

	out->pads = in->id == X86_INS_NOP && in->size == 1;
	if (in->id == X86_INS_CALL) {
		out->flow = PAIR_CALL;
	} else if (cs_insn_group(cs, in, CS_GRP_RET)) {
		out->flow = PAIR_RETURN;
	} else if (cs_insn_group(cs, in, CS_GRP_JUMP)) {
		out->flow = PAIR_JUMP;
		out->target = op[0].type == X86_OP_IMM ? (uint64_t)op[0].imm : 0;
		out->always = in->id == X86_INS_JMP;
	} else if (cs_insn_group(cs, in, CS_GRP_INT) || in->id == X86_INS_UD2) {
		out->flow = PAIR_END;
	} else {
		moved(in, out);
	}
}

const struct pair_machine pair_amd64 = {
	.sp = RSP,
	.order = order,
	.norder = ARRAY_LEN(order),
	.read = read_insn,
};
