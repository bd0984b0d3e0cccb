/* user/go/calls.c - a function is decoded from its entry on. */
#include "go/calls.h"

/* Its own size bounds the loop. */
bool calls_any(struct gobin *b, struct arch *a, const struct gofunc *f, const struct gofunc *to,
	       size_t nto, uint8_t *code)
{
	uint64_t len = f->end > f->entry ? f->end - f->entry : 0;
	size_t n = len < CALLS_CODE_MAX ? (size_t)len : CALLS_CODE_MAX;
	/* Over an instruction the decoder does not know; on amd64 their lengths differ. */
	size_t step = gobin_info(b)->arch == GOARCH_ARM64 ? 4 : 0;
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
