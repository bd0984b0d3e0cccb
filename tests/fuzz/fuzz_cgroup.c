/*
 * Any bytes: parsing must end and must not read outside; an id that is claimed must be there, and
 * be a string. Paths are no longer than what they stood in.
 */
#include "base/cleanup.h"
#include "target/host/container.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(freep) char *text = strndup((const char *)data, size);
	struct container c;
	size_t len;

	if (!text)
		return 0;
	len = strlen(text);
	container_paths(text);
	BUG_ON(strlen(text) > len || (*text && (*text != '/' || text[strlen(text) - 1] != '\n')));
	container_parse((const char *)data, size, &c);
	BUG_ON(!memchr(c.id, 0, sizeof(c.id)) || !memchr(c.runtime, 0, sizeof(c.runtime)));
	BUG_ON(c.kind >= CONTAINER_UNIT && !memchr(data, '/', size));
	return 0;
}
