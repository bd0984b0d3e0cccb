/*
 * tests/fuzz/fuzz_pclntab.c - the bytes are a function table: first byte the Go minor version,
 * then the table; inline trees lie in it as well.
 */
#include "go/image/tables/inltree.h"
#include "mkgobin.h"

enum { ADDR = 0x10000, TEXT = 0x400200, STEPS = 8 };

static void ask(const struct pclntab *t, const struct pclnfunc *f)
{
	static char name[1 << 14];
	struct inltree tree;
	struct inlcall call;
	uint32_t line;
	uint64_t pc = f->entry;

	pclntab_name(t, f->name, false, name, NULL);
	pclntab_id(t, f->raw_id);
	if (inltree_init(&tree, t, f, NULL))
		return;
	for (int i = 0; i < STEPS; i++) {
		pclntab_fileline(t, f, pc, name, &line, NULL);
		if (inltree_at(&tree, pc, &call, NULL) == 1)
			BUG_ON(call.parent_pc < f->entry || call.parent_pc >= f->end);
		pc += (f->end - f->entry) / STEPS;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytemem m;
	struct pclntab t;
	struct pclnfunc f;

	if (size < 1)
		return 0;
	m = bytemem_of(ADDR, data + 1, size - 1);
	if (pclntab_parse(&m.mem, ADDR, ADDR + size - 1, &t, NULL))
		return 0;
	t.text = TEXT;
	t.gofunc = ADDR;
	t.minor = data[0] & 31;
	for (uint64_t i = 0; i < t.nfunc && i < 64; i++)
		if (!pclntab_func(&t, i, &f, NULL))
			ask(&t, &f);
	for (uint64_t pc = TEXT; pc < TEXT + 0x200; pc += 0x10)
		if (!pclntab_find(&t, pc, &f, NULL))
			BUG_ON(pc < f.entry || pc >= f.end);
	return 0;
}
