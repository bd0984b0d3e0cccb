/* user/profile/index.c - open addressing. */
#include "profile/index.h"

#include <stdlib.h>

static bool grow(struct index *ix)
{
	struct index bigger = { .n = ix->n,
				.cap = ix->cap ? ix->cap * 2 : 64,
				.closed = ix->closed };

	bigger.at = calloc(bigger.cap, sizeof(*bigger.at));
	if (!bigger.at)
		return false;
	for (size_t i = 0; i < ix->cap; i++) {
		size_t to = ix->at[i].hash & (bigger.cap - 1);

		if (!ix->at[i].id)
			continue;
		while (bigger.at[to].id)
			to = (to + 1) & (bigger.cap - 1);
		bigger.at[to] = ix->at[i];
	}
	free(ix->at);
	*ix = bigger;
	return true;
}

uint32_t index_put(struct index *ix, const struct prof *p, uint64_t h, size_t fresh,
		   index_same *same)
{
	uint32_t hash = (uint32_t)(h ^ (h >> 32));
	size_t i;

	if (ix->n * 3 >= ix->cap * 2 && !grow(ix))
		return 0;
	for (i = hash & (ix->cap - 1); ix->at[i].id; i = (i + 1) & (ix->cap - 1))
		if (ix->at[i].hash == hash && same(p, ix->at[i].id - 1, fresh))
			return ix->at[i].id;
	if (ix->closed)
		return 0;
	ix->at[i] = (struct index_slot){ .hash = hash, .id = (uint32_t)fresh + 1 };
	ix->n++;
	return (uint32_t)fresh + 1;
}
