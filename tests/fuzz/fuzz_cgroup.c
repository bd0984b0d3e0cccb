/*
 * Any bytes: parsing must end and must not read outside; an id that is claimed must be there, and
 * be a string.
 */
#include "base/cleanup.h"
#include "target/container.h"

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
