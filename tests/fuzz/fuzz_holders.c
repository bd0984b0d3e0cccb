/*
 * Any bytes as /proc/PID/status and as lines of /proc/PID/fdinfo/FD: parsing must end and must not
 * read outside, and a range must be one.
 */
#include "target/write/holders.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct rights r;
	struct err e = { "" };
	int ret = rights_parse(text, size, &r, &e);

	BUG_ON(ret && (ret != -EBADMSG || !e.msg[0]));
	for (size_t at = 0; at < size;) {
		const char *end = memchr(text + at, '\n', size - at);
		size_t len = end ? (size_t)(end - text) - at : size - at;
		struct held h;
		uint64_t ino;

		if (held_parse(text + at, len, &ino, &h))
			BUG_ON(h.len && h.start + h.len - 1 > INT64_MAX);
		at += len + 1;
	}
	return 0;
}
