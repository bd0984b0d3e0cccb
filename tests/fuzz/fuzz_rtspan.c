/*
 * tests/fuzz/fuzz_rtspan.c - the bytes are a target's memory, in which spans may lie anywhere:
 * first the Go version, then 4 bytes each of an mspan's address and a slot, then the memory at
 * address 0.
 */
#include <string.h>

#include "go/runtime/rtspan.h"

enum { OBJECTS = 300 };

struct flat {
	struct mem mem; /* first: casts back */
	const uint8_t *at;
	size_t n;
};

static int flat_read(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	const struct flat *f = (const struct flat *)m;

	if (addr > f->n || n > f->n - addr)
		return err_set(e, -EFAULT, "no memory at 0x%llx", (unsigned long long)addr);
	memcpy(buf, f->at + addr, n);
	return 0;
}

static uint32_t word(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum layout_field fields[] = {
		LAYOUT_mspan_startaddr, LAYOUT_mspan_freeindex,	 LAYOUT_mspan_nelems,
		LAYOUT_mspan_allocbits, LAYOUT_mspan_gcmarkbits, LAYOUT_mspan_sweepgen,
		LAYOUT_mspan_state,	LAYOUT_mspan_elemsize,
	};
	static const int offsets[] = { 24, 48, 50, 64, 72, 88, 99, 104 };
	struct golayout l = { .off = { 0 } };
	struct rtspan_object o[OBJECTS];
	struct rtspan_layout r;
	struct flat f = { .mem = { .read = flat_read },
			  .at = data + 9,
			  .n = size < 9 ? 0 : size - 9 };
	const struct rtspan_vars vars = { .sweepgen = 0, .blacken = 4 };
	uint32_t gen;

	if (size < 9)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		l.off[fields[i]] = offsets[i] +
				   (data[0] & 1 && fields[i] == LAYOUT_mspan_nelems) * 6;
	if (rtspan_layout(&l, 19 + data[0] % 10, data[0] & 64 ? "greenteagc" : "", &r, NULL))
		return 0;
	for (size_t i = 0; i < OBJECTS; i++)
		o[i] = (struct rtspan_object){ .span = word(data + 1) + i,
					       .base = i % 3 ? 8192 : 0,
					       .size = 16 + i % 5 * 16,
					       .marks = i % 2 ? 0x500 : 0,
					       .index = word(data + 5) + (uint32_t)i,
					       .gen = word(data + 5) % 64 };
	if (rtspan_ask(&f.mem, &r, &vars, data[0] & 128, o, OBJECTS, &gen, NULL))
		return 0;
	for (size_t i = 0; i < OBJECTS; i++)
		BUG_ON((unsigned)o[i].answer > RTSPAN_UNREADABLE);
	return 0;
}
