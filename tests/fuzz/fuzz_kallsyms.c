/*
 * tests/fuzz/fuzz_kallsyms.c - any line of /proc/kallsyms: parsing must end and must not read
 * outside.
 */
#include "target/host/kallsyms.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kallsym_line l;

	if (kallsyms_parse_line((const char *)data, size, &l))
		BUG_ON(l.name < (const char *)data ||
		       l.name + l.name_len > (const char *)data + size);
	return 0;
}
