/* Any bytes: parsing must end and must not read outside, and the result must be in order. */
#include "target/target_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct maps m = { 0 };

	if (maps_parse((const char *)data, size, &m, NULL))
		return 0;
	for (size_t i = 0; i < m.n; i++) {
		BUG_ON(m.at[i].start >= m.at[i].end || strlen(m.at[i].name) >= size);
		BUG_ON(maps_find(&m, m.at[i].start) != &m.at[i]);
		BUG_ON(maps_find(&m, m.at[i].end - 1) != &m.at[i]);
	}
	maps_fini(&m);
	return 0;
}
