/* user/go/image/calls.c - decodes a function from its entry on and looks at its calls. */
#include "go/image/calls.h"

/* The loop is bounded by the function's size. */
bool calls_any(struct gobin *b, struct arch *a, const struct gofunc *f, const struct gofunc *to,
	       size_t nto, uint8_t *code)
{
	uint64_t len = f->end > f->entry ? f->end - f->entry : 0;
	size_t n = len < CALLS_CODE_MAX ? (size_t)len : CALLS_CODE_MAX;
	/*
	 * The step over an instruction that the decoder does not know; on amd64 lengths differ,
	 * so there is none.
	 */
	size_t step = gobin_info(b)->arch == ARCH_ARM64 ? 4 : 0;
	struct insn i;

	if (mem_read(gobin_mem(b), f->entry, code, n, NULL) < 0)
		return false;
	for (size_t at = 0; at < n; at += i.len ? i.len : step) {
		arch_decode(a, code + at, n - at, f->entry + at, &i);
		if (i.kind == INSN_BAD && !step)
			return false;
		for (size_t k = 0; i.target && k < nto; k++)
			if (to[k].entry && i.target == to[k].entry)
				return true;
	}
	return false;
}
