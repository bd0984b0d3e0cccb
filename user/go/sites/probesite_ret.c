/*
 * user/go/sites/probesite_ret.c - the instructions by which a function returns.
 *
 * Every one is reached by following the function's own branches from its entry, so that none
 * is the middle of another instruction.
 */
#include "base/limits.h"
#include "go/sites/probesite_priv.h"

/* Flag of a byte of the function: an instruction that control reaches begins here. */
enum { SEEN = 1 };

struct flow {
	uint8_t state[LIMIT_DECODE];
	size_t todo[LIMIT_DECODE]; /* offsets, each at most once */
	size_t ntodo;
	uint64_t entry;
	size_t n;
};

static int visit(struct flow *f, uint64_t addr, struct err *e)
{
	if (addr < f->entry || addr - f->entry >= f->n)
		return err_set(e, -ENOTSUP, "control leaves the function for 0x%llx",
			       (unsigned long long)addr);
	if (!f->state[addr - f->entry]) {
		f->state[addr - f->entry] = SEEN;
		f->todo[f->ntodo++] = (size_t)(addr - f->entry);
	}
	return 0;
}

/* Follows control from @in to where it may go; a call is taken to return. */
static int follow(struct flow *f, const struct insn *in, struct err *e)
{
	bool branch = in->kind == INSN_BRANCH || in->kind == INSN_STACK_BRANCH;
	bool always = in->kind == INSN_BRANCH && in->cond == COND_NONE;
	int ret = 0;

	if (in->kind == INSN_BAD)
		return err_set(e, -ENOTSUP, "no instruction at 0x%llx",
			       (unsigned long long)in->addr);
	if (branch && !in->target)
		return err_set(e, -ENOTSUP, "the jump at 0x%llx may go anywhere",
			       (unsigned long long)in->addr);
	if (branch)
		ret = visit(f, in->target, e);
	/* A function may end behind a last call that does not return. */
	if (!ret && !always && in->addr + in->len - f->entry < f->n)
		ret = visit(f, in->addr + in->len, e);
	return ret;
}

int probesite_flow(struct arch *a, const uint8_t *code, size_t n, uint64_t entry, uint64_t *at,
		   size_t cap, struct err *e)
{
	struct flow f = { .entry = entry, .n = n };
	struct insn in;
	size_t found = 0;
	int ret = n <= LIMIT_DECODE ? visit(&f, entry, e) : err_set(e, -ENOTSUP, "it is too long");

	while (!ret && f.ntodo) {
		size_t off = f.todo[--f.ntodo];

		arch_decode(a, code + off, n - off, entry + off, &in);
		if (in.kind != INSN_RET) {
			ret = follow(&f, &in, e);
			continue;
		}
		if (found == cap)
			return err_set(e, -ENOTSUP, "it returns in more than %zu places", cap);
		at[found++] = in.addr;
	}
	if (!ret && !found)
		ret = err_set(e, -ENOTSUP, "it never returns");
	return ret ? ret : (int)found;
}

enum { RETURNS_MAX = 64 };

int probesite_returns(struct gobin *b, const struct gofunc *f, struct probesite *out, size_t cap,
		      struct err *e)
{
	struct arch *a CLEANUP(arch_freep) = NULL;
	size_t n = f->end > f->entry ? (size_t)(f->end - f->entry) : 0;
	uint64_t at[RETURNS_MAX];
	uint8_t code[LIMIT_DECODE];
	int ret;

	if (!n || n > sizeof(code))
		return err_set(e, -ENOTSUP, "the function at 0x%llx has %zu bytes",
			       (unsigned long long)f->entry, n);
	ret = arch_open(gobin_info(b)->arch, &a, e);
	if (!ret)
		ret = mem_read(gobin_mem(b), f->entry, code, n, e);
	if (!ret)
		ret = probesite_flow(a, code, n, f->entry, at,
				     cap < RETURNS_MAX ? cap : RETURNS_MAX, e);
	for (int i = 0, r = ret; r > 0 && i < r; i++) {
		/* Source: arch/x86/kernel/uprobes.c; arm64's probes/simulate-insn.c has `ret`. */
		out[i] = (struct probesite){ .kind = SITE_NOSPLIT_ENTRY,
					     .addr = at[i],
					     .stepped = gobin_info(b)->arch != ARCH_ARM64 };
		ret = gobin_file_offset(b, at[i], &out[i].file_off, e);
		if (ret < 0)
			break;
		ret = r;
	}
	if (ret < 0)
		return err_wrap(e, ret, "where the function at 0x%llx returns",
				(unsigned long long)f->entry);
	return ret;
}
