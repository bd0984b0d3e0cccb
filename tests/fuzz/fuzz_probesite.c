/* tests/fuzz/fuzz_probesite.c - the bytes are a function's body: first byte the machine, then code. */
#include "arch/arm64_tls.h"
#include "arch/pair.h"
#include "go/sites/probesite_priv.h"

enum { ENTRY = 0x401000 };

static bool any(void *arg, uint64_t addr)
{
	return addr & 1 && !arg;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arch *a CLEANUP(arch_freep) = NULL;
	enum site_kind kind;
	uint64_t addr, returns[4];
	struct arm64_load_g g;
	bool calls;
	int found;

	if (!size || arch_open(data[0] & 1 ? ARCH_ARM64 : ARCH_AMD64, &a, NULL))
		return 0;
	if (!probesite_decode(a, data + 1, size - 1, ENTRY, size - 1, &kind, &addr, NULL))
		BUG_ON(addr < ENTRY || addr - ENTRY >= size - 1 ||
		       (kind == SITE_NOSPLIT_ENTRY && addr != ENTRY));
	addr = ENTRY;
	if (probesite_framed(a, data + 1, size - 1, ENTRY, &addr))
		BUG_ON(addr <= ENTRY || addr - ENTRY >= size - 1);
	found = probesite_flow(a, data + 1, size - 1, ENTRY, returns, ARRAY_LEN(returns), NULL);
	for (int i = 0; i < found; i++)
		BUG_ON(returns[i] < ENTRY || returns[i] - ENTRY >= size - 1);
	arch_pair(a, data + 1, size - 1, ENTRY, ENTRY + size / 2, any, NULL);
	arm64_load_g(data + 1, size - 1, ENTRY, &g);
	probesite_mentions(a, data + 1, size - 1, ENTRY, ENTRY + 16, &calls);
	return 0;
}
