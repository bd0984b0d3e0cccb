/*
 * user/base/map.h - a hash map from 64-bit keys to 64-bit values, open addressing.
 *
 * An attacker may choose the keys. The hash has a secret key (base/hash.h), so they cannot be made
 * to collide. For byte keys, intern them with a strtab first and use the id.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_slot;
struct map {
	struct map_slot *slots; /* private */
	size_t n, cap;		/* n: entries */
};

/* A zeroed struct is an empty map. */
void map_fini(struct map *m);

/* False when the key is absent. */
bool map_get(const struct map *m, uint64_t key, uint64_t *val);

/* Sets or replaces. False when there is no memory. */
bool map_put(struct map *m, uint64_t key, uint64_t val);

/* No error when it is absent. */
void map_del(struct map *m, uint64_t key);

#endif
