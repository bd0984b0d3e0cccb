/*
 * user/arch/amd64.c - x86-64 as Go's compiler writes it.
 *
 * The stack check of a function, by frame size and Go version
 * (Source: cmd/internal/obj/x86/obj6.go, stacksplit, Go 1.16-1.27):
 *
 *	cmp 0x10(g),%rsp; jbe					small
 *	lea -N(%rsp),%r; cmp 0x10(g),%r; jbe			large
 *	mov %rsp,%r; sub $N,%r; jb; cmp 0x10(g),%r; jbe		huge, from go1.17
 *	mov 0x10(g),%s; cmp $stackPreempt,%s; je;
 *	  lea K(%rsp),%r; sub %s,%r; cmp $N,%r; jbe		huge, go1.16
 *
 * g is %r14; before go1.17 it is first loaded from thread-local storage.
 */
#include "arch/arch_priv.h"

enum { R_NONE = -1, R_CX = 1, R_SP = 4, R_BP = 5, R_14 = 14 };

static int reg_index(x86_reg r)
{
	switch (r) {
	case X86_REG_RAX:
	case X86_REG_EAX:
		return 0;
	case X86_REG_RCX:
	case X86_REG_ECX:
		return R_CX;
	case X86_REG_RDX:
	case X86_REG_EDX:
		return 2;
	case X86_REG_RBX:
	case X86_REG_EBX:
		return 3;
	case X86_REG_RSP:
		return R_SP;
	case X86_REG_RBP:
	case X86_REG_EBP:
		return R_BP;
	case X86_REG_RSI:
	case X86_REG_ESI:
		return 6;
	case X86_REG_RDI:
	case X86_REG_EDI:
		return 7;
	case X86_REG_R8:
	case X86_REG_R8D:
		return 8;
	case X86_REG_R9:
	case X86_REG_R9D:
		return 9;
	case X86_REG_R10:
	case X86_REG_R10D:
		return 10;
	case X86_REG_R11:
	case X86_REG_R11D:
		return 11;
	case X86_REG_R12:
	case X86_REG_R12D:
		return 12;
	case X86_REG_R13:
	case X86_REG_R13D:
		return 13;
	case X86_REG_R14:
	case X86_REG_R14D:
		return R_14;
	case X86_REG_R15:
	case X86_REG_R15D:
		return 15;
	default:
		return R_NONE;
	}
}

/* Only 64-bit names of registers are followed: a partial register says nothing about the whole. */
static bool is_whole(const cs_x86_op *o)
{
	return o->type == X86_OP_REG && o->size == 8 && reg_index(o->reg) != R_NONE;
}

static enum held held_by(const struct arch *a, const cs_x86_op *o)
{
	return is_whole(o) ? a->reg[reg_index(o->reg)].what : HELD_NOTHING;
}

static void amd64_reset(struct arch *a)
{
	a->reg[R_SP].what = HELD_SP;
	a->reg[R_14].what = HELD_G;
}

/* Is this operand the stack guard of the g that a register holds? */
static bool is_guard_word(const struct arch *a, const cs_x86_op *o)
{
	int r;

	if (o->type != X86_OP_MEM || o->size != 8 || o->mem.index != X86_REG_INVALID ||
	    o->mem.segment != X86_REG_INVALID || !is_guard_offset(o->mem.disp))
		return false;
	r = reg_index(o->mem.base);
	return r != R_NONE && a->reg[r].what == HELD_G;
}

/* What the destination of mov, lea, sub or add holds afterwards. */
static enum held result_of(const struct arch *a, const cs_insn *in)
{
	const cs_x86_op *op = in->detail->x86.operands;
	enum held d = held_by(a, &op[0]);

	switch (in->id) {
	case X86_INS_MOV:
		if (op[1].type == X86_OP_MEM && op[1].mem.segment == X86_REG_FS)
			return HELD_G;
		return is_guard_word(a, &op[1]) ? HELD_GUARD : held_by(a, &op[1]);
	case X86_INS_LEA:
		if (op[1].mem.index == X86_REG_INVALID && op[1].mem.base == X86_REG_RSP)
			return HELD_SP;
		return HELD_NOTHING;
	case X86_INS_SUB:
	case X86_INS_ADD:
		if (op[1].type == X86_OP_IMM)
			return d == HELD_SP ? HELD_SP : HELD_NOTHING;
		return d == HELD_SP && in->id == X86_INS_SUB && held_by(a, &op[1]) == HELD_GUARD ?
			       HELD_ROOM :
			       HELD_NOTHING;
	default:
		return HELD_NOTHING;
	}
}

static bool is_stack_cmp(const struct arch *a, const cs_insn *in)
{
	const cs_x86_op *op = in->detail->x86.operands;

	if (in->id != X86_INS_CMP || in->detail->x86.op_count != 2)
		return false;
	if (held_by(a, &op[0]) == HELD_ROOM)
		return op[1].type == X86_OP_IMM;
	return held_by(a, &op[0]) == HELD_SP &&
	       (is_guard_word(a, &op[1]) || held_by(a, &op[1]) == HELD_GUARD);
}

static bool in_group(const struct arch *a, const cs_insn *in, unsigned int group)
{
	return cs_insn_group(a->cs, in, group);
}

/*
 * Every register that the instruction writes forgets what it held, unless the effect is
 * understood.
 */
static void follow(struct arch *a, const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;
	enum held to = HELD_NOTHING;
	int r;

	if (x->op_count == 2)
		to = result_of(a, in);
	for (uint8_t i = 0; i < x->op_count; i++) {
		r = reg_index(x->operands[i].reg);
		if (x->operands[i].type == X86_OP_REG && (x->operands[i].access & CS_AC_WRITE) &&
		    r != R_NONE)
			a->reg[r].what = HELD_NOTHING;
	}
	for (uint8_t i = 0; i < in->detail->regs_write_count; i++) {
		r = reg_index(in->detail->regs_write[i]);
		if (r != R_NONE && r != R_SP)
			a->reg[r].what = HELD_NOTHING;
	}
	if (to != HELD_NOTHING && is_whole(&x->operands[0]))
		a->reg[reg_index(x->operands[0].reg)].what = to;
	a->reg[R_SP].what = HELD_SP;
}

/* The first operand whose address the instruction alone gives. */
static void static_operand(const cs_insn *in, struct insn *out)
{
	const cs_x86 *x = &in->detail->x86;

	for (uint8_t i = 0; i < x->op_count; i++) {
		const cs_x86_op *o = &x->operands[i];

		if (o->type != X86_OP_MEM || o->mem.base != X86_REG_RIP ||
		    o->mem.index != X86_REG_INVALID)
			continue;
		out->mem_addr = in->address + in->size + (uint64_t)o->mem.disp;
		if (in->id == X86_INS_LEA)
			return;
		out->mem_width = o->size;
		out->mem_write = !!(o->access & CS_AC_WRITE);
		return;
	}
}

static uint8_t cond_of(const cs_insn *in)
{
	switch (in->id) {
	case X86_INS_JMP:
		return COND_NONE;
	case X86_INS_JE:
		return COND_EQ;
	case X86_INS_JNE:
		return COND_NE;
	default:
		return COND_OTHER;
	}
}

static void compare(const cs_insn *in, struct insn *out)
{
	const cs_x86 *x = &in->detail->x86;

	if (in->id != X86_INS_CMP || x->op_count != 2 || x->operands[1].type != X86_OP_IMM)
		return;
	out->cmp = 1;
	out->cmp_imm = x->operands[1].imm;
}

/* The first operand that is a register plus a constant: a field of what the register points to. */
static void field_operand(const struct arch *a, const cs_insn *in, struct insn *out)
{
	const cs_x86 *x = &in->detail->x86;

	for (uint8_t i = 0; i < x->op_count; i++) {
		const cs_x86_op *o = &x->operands[i];
		int r = o->type == X86_OP_MEM ? reg_index(o->mem.base) : R_NONE;

		if (r == R_NONE || r == R_SP || r == R_BP || o->mem.segment != X86_REG_INVALID ||
		    o->mem.disp < INT32_MIN || o->mem.disp > INT32_MAX)
			continue;
		out->base = a->reg[r].what == HELD_G ? BASE_G : BASE_OTHER;
		out->off = (int32_t)o->mem.disp;
		return;
	}
}

/* rax, rbx, rcx. Source: cmd/compile/abi-internal.md, amd64. */
static bool carries_argument(x86_reg r)
{
	int i = reg_index(r);

	return i == 0 || i == 3 || i == R_CX || r == X86_REG_AX || r == X86_REG_AL ||
	       r == X86_REG_AH || r == X86_REG_BX || r == X86_REG_BL || r == X86_REG_BH ||
	       r == X86_REG_CX || r == X86_REG_CL || r == X86_REG_CH;
}

static bool writes_argument(const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;

	for (uint8_t i = 0; i < x->op_count; i++)
		if (x->operands[i].type == X86_OP_REG && (x->operands[i].access & CS_AC_WRITE) &&
		    carries_argument(x->operands[i].reg))
			return true;
	for (uint8_t i = 0; i < in->detail->regs_write_count; i++)
		if (carries_argument((x86_reg)in->detail->regs_write[i]))
			return true;
	return false;
}

static bool sets_frame(const struct arch *a, const cs_insn *in)
{
	const cs_x86_op *op = in->detail->x86.operands;

	return (in->id == X86_INS_MOV || in->id == X86_INS_LEA) && in->detail->x86.op_count == 2 &&
	       op[0].type == X86_OP_REG && op[0].reg == X86_REG_RBP && result_of(a, in) == HELD_SP;
}

/*
 * Fills in what a probe needs to know: does the kernel emulate the instruction? Source:
 * uprobe_init_insn, branch_setup_xol_ops and push_setup_xol_ops in arch/x86/kernel/uprobes.c,
 * Linux 4.20 and newer: jumps, calls, nop and push of a register.
 */
static void probed(const struct arch *a, const cs_insn *in, struct insn *out)
{
	const cs_x86 *x = &in->detail->x86;

	out->emulated = (in->id == X86_INS_PUSH && x->operands[0].type == X86_OP_REG) ||
			(in->id == X86_INS_NOP && in->size == 1) ||
			(in_group(a, in, CS_GRP_JUMP) && x->operands[0].type == X86_OP_IMM);
	/*
	 * A jump of two bytes over eight. Kernels in development after Linux 7.0 leave one where a
	 * nop of ten bytes was probed, take any such jump under a probe for theirs, and write over
	 * what is behind it.
	 */
	out->no_probe = in->size == 2 && in->bytes[0] == 0xeb && in->bytes[1] == 0x08;
	out->arg_write = writes_argument(in);
	out->sets_frame = sets_frame(a, in);
}

static void amd64_classify(struct arch *a, const cs_insn *in, struct insn *out)
{
	const cs_x86 *x = &in->detail->x86;
	bool checked = a->checked;

	a->checked = false;
	static_operand(in, out);
	compare(in, out);
	field_operand(a, in, out);
	probed(a, in, out);
	if (x->op_count && x->operands[0].type == X86_OP_IMM &&
	    (in_group(a, in, CS_GRP_JUMP) || in->id == X86_INS_CALL))
		out->target = (uint64_t)x->operands[0].imm;
	if (in->id == X86_INS_CALL || in->id == X86_INS_SYSCALL) {
		out->kind = INSN_CALL;
	} else if (in_group(a, in, CS_GRP_RET) || in_group(a, in, CS_GRP_IRET)) {
		out->kind = INSN_RET;
	} else if (in_group(a, in, CS_GRP_JUMP)) {
		out->kind = checked && in->id == X86_INS_JBE ? INSN_STACK_BRANCH : INSN_BRANCH;
		out->cond = cond_of(in);
	} else if (in_group(a, in, CS_GRP_INT) || in->id == X86_INS_UD2 || in->id == X86_INS_HLT) {
		out->kind = INSN_BRANCH;
	} else if (is_stack_cmp(a, in)) {
		out->kind = INSN_STACK_CMP;
		a->checked = true;
	} else {
		a->checked = checked && in->id == X86_INS_NOP;
		follow(a, in);
	}
}

const struct arch_ops arch_amd64_ops = {
	.cs = CS_ARCH_X86,
	.mode = CS_MODE_64,
	.reset = amd64_reset,
	.classify = amd64_classify,
};
