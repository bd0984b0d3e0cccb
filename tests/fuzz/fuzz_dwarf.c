/* tests/fuzz/fuzz_dwarf.c - the bytes are an ELF file with debug sections. */
#include <sys/mman.h>

#include "go/layout/layout_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd CLEANUP(closep) = memfd_create("fuzz_dwarf", MFD_CLOEXEC);
	int32_t off[LAYOUT_COUNT];
	uint32_t header_over;
	uint64_t bytes;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return 0;
	layout_dwarf_bytes(fd, &bytes, NULL);
	if (!layout_dwarf_read(fd, off, &header_over, NULL))
		BUG_ON(off[LAYOUT_g_m] < 0 || off[LAYOUT_g_m] > INT16_MAX);
	return 0;
}
