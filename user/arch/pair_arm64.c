/* user/arch/pair_arm64.c - what instructions of AArch64 do to registers and memory. */
#include "arch/pair_priv.h"

enum { SP = 31 };

static const uint8_t order[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };

/* x0 to x30, sp; the zero register is none. */
static int word_reg(unsigned int r)
{
	if (r >= ARM64_REG_X0 && r <= ARM64_REG_X28)
		return (int)(r - ARM64_REG_X0);
	if (r == ARM64_REG_X29 || r == ARM64_REG_X30)
		return r == ARM64_REG_X29 ? 29 : 30;
	return r == ARM64_REG_SP ? SP : -1;
}

/* Of a half as well. */
static int any_reg(unsigned int r)
{
	return r >= ARM64_REG_W0 && r <= ARM64_REG_W30 ? (int)(r - ARM64_REG_W0) : word_reg(r);
}

static bool is_word(unsigned int r)
{
	return word_reg(r) >= 0 || r == ARM64_REG_XZR;
}

static int64_t bytes_of(unsigned int r)
{
	if (is_word(r) || (r >= ARM64_REG_D0 && r <= ARM64_REG_D31))
		return PAIR_WORD;
	return r >= ARM64_REG_Q0 && r <= ARM64_REG_Q31 ? 16 : 4;
}

/* The last operand, which is memory. base -1: the instruction moves the base, too, or extends its index. */
static struct pair_place place_of(const cs_insn *in)
{
	const cs_arm64 *x = &in->detail->arm64;
	const cs_arm64_op *o = &x->operands[x->op_count - 1];
	struct pair_place p = { -1, -1, 0, 0 };

	if (o->type != ARM64_OP_MEM || x->writeback || o->ext != ARM64_EXT_INVALID)
		return p;
	p.index = word_reg(o->mem.index);
	if (o->mem.index != ARM64_REG_INVALID && p.index < 0)
		return p;
	p.base = word_reg(o->mem.base);
	p.scale = o->shift.type == ARM64_SFT_LSL ? 1 << (o->shift.value & 7) : 1;
	p.disp = o->mem.disp;
	return p;
}

static bool is_store(const cs_insn *in)
{
	switch (in->id) {
	case ARM64_INS_STR:
	case ARM64_INS_STUR:
	case ARM64_INS_STP:
	case ARM64_INS_STLR:
	case ARM64_INS_STRB:
	case ARM64_INS_STRH:
	case ARM64_INS_STURB:
	case ARM64_INS_STURH:
	case ARM64_INS_STLRB:
	case ARM64_INS_STLRH:
		return true;
	default:
		return false;
	}
}

static void put(const cs_insn *in, struct pair_effect *out)
{
	const cs_arm64_op *op = in->detail->arm64.operands;
	struct pair_place p = place_of(in);
	size_t n = in->id == ARM64_INS_STP ? 2 : 1;

	out->scatters = p.base < 0;
	for (size_t i = 0; !out->scatters && i < n; i++) {
		bool word = in->id == ARM64_INS_STR || in->id == ARM64_INS_STUR ||
			    in->id == ARM64_INS_STP || in->id == ARM64_INS_STLR;

		out->store[i].at = p;
		out->store[i].bytes = bytes_of(op[i].reg);
		out->store[i].word = word && out->store[i].bytes == PAIR_WORD;
		out->store[i].reg = word_reg(op[i].reg);
		p.disp += out->store[i].bytes;
	}
	out->nstore = out->scatters ? 0 : n;
}

static void give(struct pair_effect *out, unsigned int reg, enum pair_source from, int source,
		 uint64_t number)
{
	if (word_reg(reg) < 0 || (from != PAIR_ADDRESS && source < 0))
		return;
	out->give[out->ngive].reg = word_reg(reg);
	out->give[out->ngive].from = from;
	out->give[out->ngive].source = source;
	out->give[out->ngive++].number = number;
}

static void load(const cs_insn *in, struct pair_effect *out)
{
	const cs_arm64_op *op = in->detail->arm64.operands;
	struct pair_place p = place_of(in);
	size_t n = in->id == ARM64_INS_LDP ? 2 : 1;

	for (size_t i = 0; p.base >= 0 && i < n && is_word(op[i].reg); i++) {
		give(out, op[i].reg, PAIR_MEMORY, 0, 0);
		if (word_reg(op[i].reg) >= 0)
			out->give[out->ngive - 1].at = p;
		p.disp += PAIR_WORD;
	}
}

/* A register and a constant, or an element's address: a register and another one, shifted. */
static void add(const cs_arm64_op *op, struct pair_effect *out)
{
	int base = word_reg(op[1].reg),
	    index = op[2].type == ARM64_OP_REG ? word_reg(op[2].reg) : -1;

	if (op[2].type == ARM64_OP_IMM && op[2].shift.type == ARM64_SFT_INVALID)
		give(out, op[0].reg, PAIR_SUM, base, (uint64_t)op[2].imm);
	if (index < 0 || op[2].shift.type != ARM64_SFT_LSL || op[2].shift.value > 7 ||
	    op[2].ext != ARM64_EXT_INVALID)
		return;
	give(out, op[0].reg, PAIR_PLACE, base, 0);
	if (out->ngive)
		out->give[0].at = (struct pair_place){ base, index, 1 << op[2].shift.value, 0 };
}

static void moved(const cs_insn *in, struct pair_effect *out)
{
	const cs_arm64_op *op = in->detail->arm64.operands;
	uint8_t n = in->detail->arm64.op_count;

	switch (in->id) {
	case ARM64_INS_ADRP:
	case ARM64_INS_ADR:
		give(out, op[0].reg, PAIR_ADDRESS, 0, (uint64_t)op[1].imm);
		break;
	case ARM64_INS_MOV:
		if (n == 2 && op[1].type == ARM64_OP_REG)
			give(out, op[0].reg, PAIR_REG, word_reg(op[1].reg), 0);
		break;
	case ARM64_INS_ADD:
		if (n == 3)
			add(op, out);
		break;
	case ARM64_INS_LSL:
		if (n == 3 && op[2].type == ARM64_OP_IMM && op[2].imm < 8)
			give(out, op[0].reg, PAIR_SCALED, word_reg(op[1].reg), 1u << op[2].imm);
		break;
	case ARM64_INS_LDR:
	case ARM64_INS_LDUR:
	case ARM64_INS_LDP:
		load(in, out);
		break;
	default:
		break;
	}
}

/* An instruction that neither stores nor compares writes its first operand, and the others that say so. */
static void written(const cs_insn *in, struct pair_effect *out)
{
	const cs_arm64 *x = &in->detail->arm64;
	bool compares = in->id == ARM64_INS_CMP || in->id == ARM64_INS_CMN ||
			in->id == ARM64_INS_TST || in->id == ARM64_INS_CCMP ||
			in->id == ARM64_INS_CCMN;

	for (uint8_t i = 0; i < x->op_count; i++) {
		const cs_arm64_op *o = &x->operands[i];
		int r = any_reg(o->type == ARM64_OP_MEM ? o->mem.base : o->reg);
		bool is = o->type == ARM64_OP_REG ? !compares && (!i || (o->access & CS_AC_WRITE)) :
						    o->type == ARM64_OP_MEM && x->writeback;

		if (is && r >= 0)
			out->writes |= 1ull << r;
	}
}

static bool is_load(const cs_insn *in)
{
	return in->mnemonic[0] == 'l' && in->mnemonic[1] == 'd';
}

static void straight(const cs_insn *in, struct pair_effect *out)
{
	const cs_arm64 *x = &in->detail->arm64;
	bool memory = x->op_count && x->operands[x->op_count - 1].type == ARM64_OP_MEM;

	if (is_store(in) && x->op_count) {
		put(in, out);
		if (x->writeback)
			out->writes |= 1ull
				       << (any_reg(x->operands[x->op_count - 1].mem.base) & 31);
		return;
	}
	written(in, out);
	out->scatters = memory && !is_load(in);
	moved(in, out);
}

static void read_insn(csh cs, const cs_insn *in, struct pair_effect *out)
{
	const cs_arm64 *x = &in->detail->arm64;
	const cs_arm64_op *to = &x->operands[x->op_count ? x->op_count - 1 : 0];

	(void)cs;
	out->pads = in->id == ARM64_INS_NOP;
	switch (in->id) {
	case ARM64_INS_BL:
	case ARM64_INS_BLR:
		out->flow = PAIR_CALL;
		return;
	case ARM64_INS_RET:
		out->flow = PAIR_RETURN;
		return;
	case ARM64_INS_B:
	case ARM64_INS_BR:
	case ARM64_INS_CBZ:
	case ARM64_INS_CBNZ:
	case ARM64_INS_TBZ:
	case ARM64_INS_TBNZ:
		out->flow = PAIR_JUMP;
		out->target = x->op_count && to->type == ARM64_OP_IMM ? (uint64_t)to->imm : 0;
		out->always = in->id == ARM64_INS_BR ||
			      (in->id == ARM64_INS_B &&
			       (x->cc == ARM64_CC_INVALID || x->cc == ARM64_CC_AL));
		return;
	case ARM64_INS_BRK:
	case ARM64_INS_HLT:
	case ARM64_INS_SVC:
	case ARM64_INS_ERET:
		out->flow = PAIR_END;
		return;
	default:
		straight(in, out);
	}
}

const struct pair_machine pair_arm64 = {
	.sp = SP,
	.order = order,
	.norder = ARRAY_LEN(order),
	.read = read_insn,
};
