/* Any bytes: must end, must not read outside; an id is a string, and there when one is claimed. */
#include "base/cleanup.h"
#include "collect/container.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct container c;

	container_parse((const char *)data, size, &c);
	BUG_ON(!memchr(c.id, 0, sizeof(c.id)) || !memchr(c.runtime, 0, sizeof(c.runtime)));
	BUG_ON(c.kind >= CONTAINER_UNIT && !memchr(data, '/', size));
	return 0;
}
