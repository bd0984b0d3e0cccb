/*
 * tests/fuzz/fuzz_rttype.c - the bytes are memory: the first half is a file's type data, the rest
 * the target's heap. The first byte tells where the type is: its bit 7 says in which of the two,
 * its other bits at which word.
 */
#include "go/runtime/types/rttype.h"

enum { FILE_BASE = 0x1000, HEAP_BASE = 0x100000, BIAS = 0x2000 };

struct image {
	struct mem mem; /* first */
	uint64_t base;
	const uint8_t *bytes;
	size_t len;
};

static int image_read(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	struct image *i = (struct image *)m;

	if (addr < i->base || addr - i->base > i->len || n > i->len - (addr - i->base))
		return err_set(e, -EFAULT, "no memory at 0x%llx", (unsigned long long)addr);
	memcpy(buf, i->bytes + (addr - i->base), n);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct image file = { .mem.read = image_read, .base = FILE_BASE };
	struct image heap = { .mem.read = image_read, .base = HEAP_BASE };
	struct rttype_module m = { .mem = &file.mem, .types = FILE_BASE, .bias = BIAS };
	struct golayout l = { 0 };
	struct rttypes t = { .layout = &l, .module = &m, .n = 1, .live = &heap.mem };
	char name[256];
	struct err e;

	if (!size)
		return 0;
	file.len = (size - 1) / 2;
	file.bytes = data + 1;
	heap.len = size - 1 - file.len;
	heap.bytes = file.bytes + file.len;
	m.etypes = FILE_BASE + file.len;
	l.off[LAYOUT_type_size] = 0;
	l.off[LAYOUT_type_ptrdata] = 8;
	l.off[LAYOUT_type_tflag] = 20;
	l.off[LAYOUT_type_kind] = 23;
	l.off[LAYOUT_type_str] = 40;
	l.off[LAYOUT_type_sizeof] = 48;
	if (!rttype_name(&t,
			 (data[0] & 0x80 ? HEAP_BASE : FILE_BASE + BIAS) +
				 (uint64_t)(data[0] & 0x7f) * 8,
			 name, sizeof(name), &e))
		rttype_hide_shapes(name);
	return 0;
}
