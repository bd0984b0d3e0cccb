/* user/ingest/exectrace/batches.c */
#include "ingest/exectrace/batches.h"

#include "base/limits.h"

struct making *batches_of(struct batches *b, int64_t id)
{
	struct making *to;
	uint64_t at;

	if (map_get(&b->by_id, (uint64_t)id, &at))
		return &b->at.at[at];
	to = map_put(&b->by_id, (uint64_t)id, b->at.n) ? vec_add(&b->at, LIMIT_TRACE_IDS) : NULL;
	if (to)
		to->of = id;
	return to;
}

bool making_put(struct making *b, const void *bytes, size_t n)
{
	size_t cap = b->bytes.cap ? b->bytes.cap : 256;
	uint8_t *at;

	if (n > SIZE_MAX / 4 - b->bytes.n)
		return false;
	while (cap - b->bytes.n < n)
		cap *= 2;
	if (cap != b->bytes.cap) {
		at = realloc(b->bytes.at, cap);
		if (!at)
			return false;
		b->bytes.at = at;
		b->bytes.cap = cap;
	}
	memcpy(b->bytes.at + b->bytes.n, bytes, n);
	b->bytes.n += n;
	return true;
}

void batches_fini(struct batches *b)
{
	for (size_t i = 0; i < b->at.n; i++)
		vec_fini(&b->at.at[i].bytes);
	vec_fini(&b->at);
	map_fini(&b->by_id);
}
