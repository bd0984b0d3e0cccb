/* tests/fuzz/fuzz_buildinfo.c - the bytes are memory that starts with a build info block. */
#include "go/image/buildinfo.h"
#include "mkgobin.h"

enum { ADDR = 0x401000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytemem m = bytemem_of(ADDR, data, size);
	struct buildinfo bi;
	int minor, patch;

	if (buildinfo_at(&m.mem, ADDR, &bi, NULL))
		return 0;
	BUG_ON(strlen(bi.version) >= sizeof(bi.version) || strlen(bi.path) >= sizeof(bi.path));
	buildinfo_version(bi.version, &minor, &patch);
	return 0;
}
