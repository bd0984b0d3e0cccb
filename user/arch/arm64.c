/*
 * user/arch/arm64.c - AArch64 as Go's compiler writes it.
 *
 * The stack check (Source: cmd/internal/obj/arm64/obj7.go, stacksplit, Go 1.16-1.27):
 *
 *	ldr x16,[g,#16]; cmp sp,x16; b.ls			small; before go1.19 through
 *								mov x17,sp; cmp x17,x16
 *	ldr x16,[g,#16]; sub x17,sp,#N; cmp x17,x16; b.ls	large
 *	ldr x16,[g,#16]; subs x17,sp,xN; b.lo; cmp; b.ls	huge, from go1.17
 *	... cmp x1,stackPreempt; b.eq; add x2,sp,#K; sub x2,x2,x1; cmp x2,xN; b.ls	go1.16
 *
 * g is x28. Static addresses are made by adrp and add, or adrp and the offset of a load.
 */
#include <string.h>

#include "arch/arch_priv.h"

enum { R_NONE = -1, R_G = 28, R_FP = 29, R_SP = 31 };

static int reg_index(arm64_reg r)
{
	if (r >= ARM64_REG_X0 && r <= ARM64_REG_X28)
		return (int)(r - ARM64_REG_X0);
	if (r == ARM64_REG_X29)
		return R_FP;
	if (r == ARM64_REG_X30)
		return 30;
	return r == ARM64_REG_SP ? R_SP : R_NONE;
}

static int written_index(arm64_reg r)
{
	if (r >= ARM64_REG_W0 && r <= ARM64_REG_W30)
		return (int)(r - ARM64_REG_W0);
	return reg_index(r);
}

static struct held_reg held_by(const struct arch *a, const cs_arm64_op *o)
{
	int r = o->type == ARM64_OP_REG ? reg_index(o->reg) : R_NONE;

	return r == R_NONE ? (struct held_reg){ .what = HELD_NOTHING } : a->reg[r];
}

static void arm64_reset(struct arch *a)
{
	a->reg[R_G].what = HELD_G;
	a->reg[R_SP].what = HELD_SP;
}

static struct held_reg known(enum held what, uint64_t value)
{
	return (struct held_reg){ .what = what, .value = value };
}

static struct held_reg result_of_add(const struct arch *a, const cs_insn *in)
{
	const cs_arm64_op *op = in->detail->arm64.operands;
	struct held_reg s = held_by(a, &op[1]);
	bool sub = in->id == ARM64_INS_SUB;

	if (in->detail->arm64.op_count != 3)
		return known(HELD_NOTHING, 0);
	if (s.what == HELD_CONST && op[2].type == ARM64_OP_IMM && !sub &&
	    op[2].shift.type == ARM64_SFT_INVALID)
		return known(HELD_CONST, s.value + (uint64_t)op[2].imm);
	if (s.what != HELD_SP)
		return known(HELD_NOTHING, 0);
	if (op[2].type == ARM64_OP_REG && held_by(a, &op[2]).what == HELD_GUARD)
		return known(sub ? HELD_ROOM : HELD_NOTHING, 0);
	/* A register operand holds the frame size of a huge frame; it was loaded just before. */
	return known(HELD_SP, 0);
}

static struct held_reg result_of(const struct arch *a, const cs_insn *in)
{
	const cs_arm64_op *op = in->detail->arm64.operands;
	int base;

	switch (in->id) {
	case ARM64_INS_ADRP:
	case ARM64_INS_ADR:
		return known(HELD_CONST, (uint64_t)op[1].imm);
	case ARM64_INS_MOV:
		return held_by(a, &op[1]);
	case ARM64_INS_ADD:
	case ARM64_INS_SUB:
		return result_of_add(a, in);
	case ARM64_INS_LDR:
		base = op[1].type == ARM64_OP_MEM ? reg_index(op[1].mem.base) : R_NONE;
		if (base != R_NONE && a->reg[base].what == HELD_G &&
		    op[1].mem.index == ARM64_REG_INVALID && is_guard_offset(op[1].mem.disp))
			return known(HELD_GUARD, 0);
		return known(HELD_NOTHING, 0);
	default:
		return known(HELD_NOTHING, 0);
	}
}

static bool is_stack_cmp(const struct arch *a, const cs_insn *in)
{
	const cs_arm64_op *op = in->detail->arm64.operands;
	enum held left;

	if (in->id != ARM64_INS_CMP || in->detail->arm64.op_count != 2)
		return false;
	left = held_by(a, &op[0]).what;
	if (left == HELD_ROOM)
		return true;
	return left == HELD_SP && held_by(a, &op[1]).what == HELD_GUARD;
}

static void follow(struct arch *a, const cs_insn *in)
{
	const cs_arm64 *x = &in->detail->arm64;
	struct held_reg to = known(HELD_NOTHING, 0);
	int r;

	if (x->op_count >= 2 && x->operands[0].type == ARM64_OP_REG)
		to = result_of(a, in);
	for (uint8_t i = 0; i < x->op_count; i++) {
		r = x->operands[i].type == ARM64_OP_REG ? written_index(x->operands[i].reg) :
							  R_NONE;
		if (r != R_NONE && (x->operands[i].access & CS_AC_WRITE))
			a->reg[r] = known(HELD_NOTHING, 0);
		if (x->operands[i].type == ARM64_OP_MEM && x->writeback &&
		    reg_index(x->operands[i].mem.base) != R_NONE)
			a->reg[reg_index(x->operands[i].mem.base)] = known(HELD_NOTHING, 0);
	}
	r = x->op_count ? reg_index(x->operands[0].reg) : R_NONE;
	if (to.what != HELD_NOTHING && r != R_NONE)
		a->reg[r] = to;
	a->reg[R_SP] = known(HELD_SP, 0);
	a->reg[R_G] = known(HELD_G, 0);
}

/* Bytes that a load or store moves; 0 when the instruction is neither. */
static uint8_t access_width(const cs_insn *in, bool *store)
{
	arm64_reg r = in->detail->arm64.operands[0].reg;
	bool w = r >= ARM64_REG_W0 && r <= ARM64_REG_W30;

	*store = false;
	switch (in->id) {
	case ARM64_INS_STR:
	case ARM64_INS_STLR:
	case ARM64_INS_STUR:
		*store = true;
		return w || r == ARM64_REG_WZR ? 4 : 8;
	case ARM64_INS_STRB:
	case ARM64_INS_STLRB:
	case ARM64_INS_STURB:
		*store = true;
		return 1;
	case ARM64_INS_STRH:
	case ARM64_INS_STLRH:
	case ARM64_INS_STURH:
		*store = true;
		return 2;
	case ARM64_INS_LDR:
	case ARM64_INS_LDAR:
	case ARM64_INS_LDUR:
		return w ? 4 : 8;
	case ARM64_INS_LDRB:
	case ARM64_INS_LDARB:
	case ARM64_INS_LDURB:
		return 1;
	case ARM64_INS_LDRH:
	case ARM64_INS_LDARH:
	case ARM64_INS_LDURH:
		return 2;
	case ARM64_INS_LDRSW:
	case ARM64_INS_LDURSW:
		return 4;
	case ARM64_INS_STP:
		*store = true;
		return w ? 8 : 16;
	case ARM64_INS_LDP:
		return w ? 8 : 16;
	default:
		return 0;
	}
}

static void static_operand(const struct arch *a, const cs_insn *in, struct insn *out)
{
	const cs_arm64 *x = &in->detail->arm64;
	const cs_arm64_op *o = &x->operands[x->op_count ? x->op_count - 1 : 0];
	bool store;
	int base;

	if (x->op_count < 2)
		return;
	if (in->id == ARM64_INS_ADD) {
		struct held_reg r = result_of_add(a, in);

		out->mem_addr = r.what == HELD_CONST ? r.value : 0;
		return;
	}
	if (o->type != ARM64_OP_MEM || o->mem.index != ARM64_REG_INVALID)
		return;
	base = reg_index(o->mem.base);
	if (base == R_NONE || a->reg[base].what != HELD_CONST)
		return;
	out->mem_addr = a->reg[base].value + (uint64_t)(int64_t)o->mem.disp;
	out->mem_width = access_width(in, &store);
	out->mem_write = store;
}

static bool is_half(const cs_arm64_op *o)
{
	return (o->reg >= ARM64_REG_W0 && o->reg <= ARM64_REG_W30) || o->reg == ARM64_REG_WZR;
}

/* A register plus a constant: a field of what it points to is accessed, or its address is taken. */
static void field_operand(const struct arch *a, const cs_insn *in, struct insn *out)
{
	const cs_arm64 *x = &in->detail->arm64;
	const cs_arm64_op *o = &x->operands[x->op_count ? x->op_count - 1 : 0];
	bool taken = in->id == ARM64_INS_ADD && x->op_count == 3 && o->type == ARM64_OP_IMM &&
		     o->shift.type == ARM64_SFT_INVALID;
	int base;

	if (!taken && (x->op_count < 2 || o->type != ARM64_OP_MEM))
		return;
	base = taken ? reg_index(x->operands[1].reg) : reg_index(o->mem.base);
	if (base == R_NONE || base == R_SP || base == R_FP || a->reg[base].what == HELD_CONST)
		return;
	out->base = a->reg[base].what == HELD_G ? BASE_G : BASE_OTHER;
	out->off = taken ? (int32_t)o->imm : o->mem.disp;
	out->pair = (in->id == ARM64_INS_LDP || in->id == ARM64_INS_STP) &&
		    !is_half(&x->operands[0]);
}

static void branch_target(const cs_insn *in, struct insn *out)
{
	const cs_arm64 *x = &in->detail->arm64;

	if (x->op_count && x->operands[x->op_count - 1].type == ARM64_OP_IMM)
		out->target = (uint64_t)x->operands[x->op_count - 1].imm;
}

static uint8_t cond_of(const cs_insn *in)
{
	switch (in->detail->arm64.cc) {
	case ARM64_CC_INVALID:
	case ARM64_CC_AL:
		return in->id == ARM64_INS_B ? COND_NONE : COND_OTHER;
	case ARM64_CC_EQ:
		return COND_EQ;
	case ARM64_CC_NE:
		return COND_NE;
	default:
		return COND_OTHER;
	}
}

static void compare(const cs_insn *in, struct insn *out)
{
	const cs_arm64 *x = &in->detail->arm64;

	if (in->id != ARM64_INS_CMP || x->op_count != 2 || x->operands[1].type != ARM64_OP_IMM ||
	    x->operands[1].shift.type != ARM64_SFT_INVALID)
		return;
	out->cmp = 1;
	out->cmp_imm = x->operands[1].imm;
}

/* x0, x1, x2. Source: cmd/compile/abi-internal.md, arm64. */
static bool writes_argument(const cs_insn *in)
{
	const cs_arm64 *x = &in->detail->arm64;

	for (uint8_t i = 0; i < x->op_count; i++) {
		const cs_arm64_op *o = &x->operands[i];
		int r = o->type == ARM64_OP_REG			? written_index(o->reg) :
			o->type == ARM64_OP_MEM && x->writeback ? reg_index(o->mem.base) :
								  R_NONE;

		if (r >= 0 && r <= 2 && (o->type == ARM64_OP_MEM || (o->access & CS_AC_WRITE)) &&
		    in->id != ARM64_INS_CMP)
			return true;
	}
	return false;
}

static bool sets_frame(const struct arch *a, const cs_insn *in)
{
	const cs_arm64 *x = &in->detail->arm64;

	return x->op_count >= 2 && x->operands[0].type == ARM64_OP_REG &&
	       x->operands[0].reg == ARM64_REG_X29 && result_of(a, in).what == HELD_SP;
}

/*
 * Does the kernel simulate it when it is probed? Source: arm_probe_decode_insn in
 * arch/arm64/kernel/probes/decode-insn.c, Linux 5.10 to 7.2. A nop only from 6.13 on, so it is not among them.
 */
static bool is_simulated(const cs_insn *in)
{
	switch (in->id) {
	case ARM64_INS_B:
	case ARM64_INS_BL:
	case ARM64_INS_BR:
	case ARM64_INS_BLR:
	case ARM64_INS_RET:
	case ARM64_INS_CBZ:
	case ARM64_INS_CBNZ:
	case ARM64_INS_TBZ:
	case ARM64_INS_TBNZ:
	case ARM64_INS_ADR:
	case ARM64_INS_ADRP:
		return true;
	default:
		return false;
	}
}

/*
 * What the kernel does not let be probed: the halves of an exclusive access, exceptions, and hints but nop. Source:
 * aarch64_insn_is_steppable in arch/arm64/kernel/probes/decode-insn.c, Linux 5.10 to 7.2.
 */
static bool is_refused(const cs_insn *in)
{
	uint32_t w;

	memcpy(&w, in->bytes, sizeof(w));
	return (w & 0x3f800000) == 0x08000000 || (w & 0xff000000) == 0xd4000000 ||
	       ((w & 0xfffff01f) == 0xd503201f && w != 0xd503201f);
}

static void probed(const struct arch *a, const cs_insn *in, struct insn *out)
{
	out->emulated = is_simulated(in);
	out->no_probe = is_refused(in);
	out->arg_write = writes_argument(in);
	out->sets_frame = sets_frame(a, in);
}

static void arm64_classify(struct arch *a, const cs_insn *in, struct insn *out)
{
	bool checked = a->checked;

	a->checked = false;
	probed(a, in, out);
	switch (in->id) {
	case ARM64_INS_RET:
	case ARM64_INS_ERET:
		out->kind = INSN_RET;
		return;
	case ARM64_INS_BL:
	case ARM64_INS_BLR:
	case ARM64_INS_SVC:
		out->kind = INSN_CALL;
		branch_target(in, out);
		return;
	case ARM64_INS_B:
		out->kind = checked && in->detail->arm64.cc == ARM64_CC_LS ? INSN_STACK_BRANCH :
									     INSN_BRANCH;
		out->cond = cond_of(in);
		branch_target(in, out);
		return;
	case ARM64_INS_BR:
	case ARM64_INS_BRK:
	case ARM64_INS_HLT:
	case ARM64_INS_CBZ:
	case ARM64_INS_CBNZ:
	case ARM64_INS_TBZ:
	case ARM64_INS_TBNZ:
		out->kind = INSN_BRANCH;
		out->cond = in->id == ARM64_INS_BR ? COND_NONE : COND_OTHER;
		branch_target(in, out);
		return;
	default:
		break;
	}
	static_operand(a, in, out);
	compare(in, out);
	field_operand(a, in, out);
	if (is_stack_cmp(a, in)) {
		out->kind = INSN_STACK_CMP;
		a->checked = true;
		return;
	}
	a->checked = checked && in->id == ARM64_INS_NOP;
	if (in->id != ARM64_INS_CMP) /* capstone calls the first operand of cmp written */
		follow(a, in);
}

/*
 * Instructions are words. The decoder does not know newer ones (LSE atomics), but bits 25 to 28 tell which
 * are loads and stores, data processing, or floating point: control goes on behind them. Nor does it
 * know udf, which Go fills up functions with. Source: Arm Architecture Reference Manual, C4.1.
 */
static void arm64_unknown(const uint8_t *code, size_t n, struct insn *out)
{
	uint32_t w, op;

	if (n < sizeof(w))
		return;
	memcpy(&w, code, sizeof(w));
	op = w >> 25 & 15;
	out->no_probe = w <= 0xffff;
	if (w <= 0xffff)
		out->kind = INSN_BRANCH;
	else if ((op & 5) == 4 || (op & 14) == 8 || (op & 7) == 5 || (op & 7) == 7)
		out->kind = INSN_OTHER;
	else
		return;
	out->len = sizeof(w);
}

const struct arch_ops arch_arm64_ops = {
	.cs = CS_ARCH_ARM64,
	.mode = CS_MODE_ARM,
	.reset = arm64_reset,
	.unknown = arm64_unknown,
	.classify = arm64_classify,
};
