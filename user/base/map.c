/* user/base/map.c - linear probing, at most two thirds full, never shrinks. */
#include "base/map.h"

#include "base/hash.h"

#include <stdlib.h>

struct map_slot {
	uint64_t key, val;
	bool used;
};

static size_t slot_of(const struct map *m, uint64_t key)
{
	size_t i = (size_t)hash_u64(key) & (m->cap - 1);

	while (m->slots[i].used && m->slots[i].key != key)
		i = (i + 1) & (m->cap - 1);
	return i;
}

bool map_get(const struct map *m, uint64_t key, uint64_t *val)
{
	size_t i;

	if (!m->cap)
		return false;
	i = slot_of(m, key);
	if (!m->slots[i].used)
		return false;
	*val = m->slots[i].val;
	return true;
}

static bool grow(struct map *m)
{
	struct map bigger = { .n = m->n, .cap = m->cap ? m->cap * 2 : 64 };

	bigger.slots = calloc(bigger.cap, sizeof(*bigger.slots));
	if (!bigger.slots)
		return false;
	for (size_t i = 0; i < m->cap; i++)
		if (m->slots[i].used)
			bigger.slots[slot_of(&bigger, m->slots[i].key)] = m->slots[i];
	free(m->slots);
	*m = bigger;
	return true;
}

bool map_put(struct map *m, uint64_t key, uint64_t val)
{
	size_t i;

	if (m->n * 3 >= m->cap * 2 && !grow(m))
		return false;
	i = slot_of(m, key);
	m->n += !m->slots[i].used;
	m->slots[i] = (struct map_slot){ .key = key, .val = val, .used = true };
	return true;
}

/* Entries behind it that a search would not find past an empty slot move up. */
void map_del(struct map *m, uint64_t key)
{
	size_t i, k, mask = m->cap - 1;

	if (!m->cap)
		return;
	i = slot_of(m, key);
	if (!m->slots[i].used)
		return;
	for (k = (i + 1) & mask; m->slots[k].used; k = (k + 1) & mask) {
		size_t home = (size_t)hash_u64(m->slots[k].key) & mask;

		if (((k - home) & mask) < ((k - i) & mask))
			continue;
		m->slots[i] = m->slots[k];
		i = k;
	}
	m->slots[i].used = false;
	m->n--;
}

void map_fini(struct map *m)
{
	free(m->slots);
	*m = (struct map){};
}
