/* tests/fuzz/fuzz_utf8.c - any bytes become valid UTF-8, and valid ones stay as they are. */
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "profile/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(freep) char *in = malloc(size + 1);
	CLEANUP(freep) char *out = malloc(3 * size + 1);
	size_t n;

	if (!in || !out)
		return 0;
	if (size)
		/* a heap block of its own, so that the sanitizer watches its end */
		memcpy(in, data, size);
	n = utf8_fix(in, size, out);
	BUG_ON(!utf8_valid(out, n) || out[n]);
	BUG_ON(utf8_valid(in, size) != (n == size && !memcmp(in, out, n)));
	return 0;
}
