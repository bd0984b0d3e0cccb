/* tests/fuzz/fuzz_gotypes.c - the bytes are an ELF file with DWARF of Go, and with symbols. */
#include <sys/mman.h>

#include "base/cleanup.h"
#include "go/image/elf/elfimg.h"
#include "go/runtime/types/gotypes.h"
#include "ingest/typing/shape.h"
#include "mktypes.h"

static void look_at(const struct gotypes *t)
{
	struct shapes s;
	char path[64];

	if (shapes_init(&s, t, NULL))
		return;
	for (uint32_t i = 0; i < t->ntypes; i++) {
		const struct shape *shape = shapes_get(&s, i);

		shapes_path(&s, i, t->types[i].size / 2, path, sizeof(path));
		for (uint32_t k = 1; shape && k < shape->n; k++)
			BUG_ON(shape->leaves[k - 1].offset > shape->leaves[k].offset);
	}
	for (size_t i = 0; i < t->nvars; i++)
		BUG_ON(t->vars[i].size && !gotypes_var(t, t->vars[i].addr));
	shapes_fini(&s);
}

static void ask_symbols(int fd)
{
	static const char *const names[] = { "main.list", "runtime.bss", "none" };
	CLEANUP(elfimg_freep) struct elfimg *img = NULL;
	struct elf_sym sym[ARRAY_LEN(names)];

	if (!elfimg_open_any(fd, "fuzz", 4, &img, NULL))
		elfimg_symbols(img, names, ARRAY_LEN(names), sym, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t pcs[] = { MKTYPES_CODE + 4, MKTYPES_CODE + 16, MKTYPES_CODE_END };
	const struct gotypes_want want = { .word = size & 1 ? 4 : 8,
					   .pcs = pcs,
					   .npcs = ARRAY_LEN(pcs),
					   .data = MKTYPES_DATA,
					   .edata = MKTYPES_DATA_END,
					   .bss = MKTYPES_BSS,
					   .ebss = MKTYPES_BSS_END,
					   .types = MKTYPES_TYPES,
					   .etypes = MKTYPES_TYPES_END,
					   .functions = true };
	int fd CLEANUP(closep) = memfd_create("fuzz_gotypes", MFD_CLOEXEC);
	CLEANUP(gotypes_freep) struct gotypes *t = NULL;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return 0;
	ask_symbols(fd);
	if (!gotypes_read_here(fd, &want, &t, NULL))
		look_at(t);
	return 0;
}
