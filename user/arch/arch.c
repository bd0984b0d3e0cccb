/* user/arch/arch.c - opens the decoder of one machine and keeps its straight line. */
#include "arch/arch.h"

#include "arch/arch_priv.h"

static const struct arch_ops *ops_of(enum arch_id id)
{
	switch (id) {
	case ARCH_AMD64:
		return &arch_amd64_ops;
	case ARCH_ARM64:
		return &arch_arm64_ops;
	}
	return NULL;
}

int arch_open(enum arch_id id, struct arch **out, struct err *e)
{
	const struct arch_ops *ops = ops_of(id);
	struct arch *a CLEANUP(arch_freep) = NULL;
	cs_err rc;

	if (!ops)
		return err_set(e, -ENOTSUP, "no instruction decoder for machine %d", (int)id);
	a = calloc(1, sizeof(*a));
	if (!a)
		return err_set(e, -ENOMEM, "no memory for an instruction decoder");
	a->ops = ops;
	rc = cs_open(ops->cs, ops->mode, &a->cs);
	if (rc != CS_ERR_OK) {
		a->cs = 0;
		return err_set(e, -ENOTSUP, "capstone cannot decode machine %d: %s", (int)id,
			       cs_strerror(rc));
	}
	cs_option(a->cs, CS_OPT_DETAIL, CS_OPT_ON);
	a->in = cs_malloc(a->cs);
	if (!a->in)
		return err_set(e, -ENOMEM, "no memory for an instruction decoder");
	ops->reset(a);
	*out = TAKE(a);
	return 0;
}

void arch_free(struct arch *a)
{
	if (!a)
		return;
	if (a->in)
		cs_free(a->in, 1);
	if (a->cs)
		cs_close(&a->cs);
	free(a);
}

static void restart(struct arch *a)
{
	memset(a->reg, 0, sizeof(a->reg));
	a->checked = false;
	a->ops->reset(a);
}

/* Nothing is known of the registers behind such an instruction: it may have written any. */
static void pass_unknown(struct arch *a, const uint8_t *code, size_t n, struct insn *out)
{
	if (a->ops->unknown)
		a->ops->unknown(code, n, out);
	restart(a);
	a->next = out->addr + out->len;
	out->arg_write = 1;
}

void arch_decode(struct arch *a, const uint8_t *code, size_t n, uint64_t addr, struct insn *out)
{
	const uint8_t *at = code;
	uint64_t pc = addr;

	*out = (struct insn){ .kind = INSN_BAD, .addr = addr };
	if (addr != a->next)
		restart(a);
	if (!cs_disasm_iter(a->cs, &at, &n, &pc, a->in)) {
		pass_unknown(a, code, n, out);
		return;
	}
	out->kind = INSN_OTHER;
	out->len = (uint8_t)a->in->size;
	a->next = addr + out->len;
	a->ops->classify(a, a->in, out);
	if (out->kind == INSN_RET || out->kind == INSN_CALL)
		restart(a);
}
