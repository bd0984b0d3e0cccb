/* user/arch/breakpoint.c - byte by byte, or word by word. */
#include "arch/breakpoint.h"

#include <string.h>

#ifdef __aarch64__
static const uint8_t breakpoint[4] = { 0xa0, 0x00, 0x20, 0xd4 }; /* brk #5 */
#else
static const uint8_t breakpoint[1] = { 0xcc }; /* int3 */
#endif

size_t breakpoint_find(const uint8_t *now, const uint8_t *was, size_t n, size_t from)
{
	size_t len = sizeof(breakpoint);

	for (size_t i = (from + len - 1) / len * len; i + len <= n; i += len)
		if (!memcmp(now + i, breakpoint, len) && memcmp(was + i, breakpoint, len) != 0)
			return i;
	return n;
}

bool breakpoint_is_barred(const uint8_t *was, size_t n)
{
#ifdef __aarch64__
	(void)was;
	(void)n;
	return false;
#else
	return n && was[0] == 0xeb && (n < 2 || was[1] == 0x08);
#endif
}
