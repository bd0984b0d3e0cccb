/* tests/fuzz/fuzz_pclntab12.c - the bytes are a function table of Go 1.2 to 1.15; first byte: its byte order. */
#include "go/image/tables/pclntab12.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(pclntab12_freep) struct pclntab12 *t = NULL;
	struct pcline l;

	if (size < 1 || pclntab12_of(data + 1, size - 1, data[0] & 1, &t, NULL))
		return 0;
	for (uint64_t pc = 0x1000; pc < 0x1200; pc += 8)
		if (pclntab12_find(t, pc, &l))
			BUG_ON(!l.func);
	return 0;
}
