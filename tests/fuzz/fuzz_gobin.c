/* tests/fuzz/fuzz_gobin.c - the bytes are an executable: it is opened and asked everything. */
#include "go/image/gobin.h"
#include "mkgobin.h"

enum { FUNCS = 32 };

static void ask(struct gobin *b, const struct gofunc *f)
{
	struct goframe frames[16];
	const uint64_t pcs[] = { f->entry, f->entry + (f->end - f->entry) / 2, f->end - 1 };
	struct gofunc at;
	int32_t delta;

	gobin_func_name(b, f);
	for (size_t i = 0; i < ARRAY_LEN(pcs); i++) {
		int n = gobin_frames(b, pcs[i], frames, ARRAY_LEN(frames), NULL);

		BUG_ON(n > (int)ARRAY_LEN(frames) || n == 0);
		for (int k = 0; k < n; k++)
			BUG_ON(!frames[k].func || !frames[k].file);
		gobin_spdelta(b, pcs[i], &delta, NULL);
		if (!gobin_func_at(b, pcs[i], &at, NULL))
			BUG_ON(pcs[i] < at.entry || pcs[i] >= at.end);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "main.main", "runtime.last", "" };
	struct gobin *b CLEANUP(gobin_freep) = NULL;
	int fd CLEANUP(closep) = mkgobin_fd(data, size);
	struct gofunc f[ARRAY_LEN(names)], one;
	uint64_t addr, sym_size;

	if (gobin_open(fd, "fuzz", NULL, 0, &b, NULL))
		return 0;
	gobin_funcs_named(b, names, ARRAY_LEN(names), f, NULL);
	gobin_symbol(b, "tail", &addr, &sym_size, NULL);
	for (size_t i = 0; i < FUNCS && i < gobin_nfuncs(b); i++)
		if (!gobin_func_index(b, i, &one, NULL))
			ask(b, &one);
	return 0;
}
