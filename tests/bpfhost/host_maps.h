/*
 * tests/bpfhost/host_maps.h - BPF maps, and the helpers that tell of the current thread and time, for
 * BPF code that is compiled as ordinary C. Include it before that code.
 *
 * Maps are declared as for the kernel; libbpf's macros put type and sizes into types, where these
 * functions find them. There is no LRU: a map that is full refuses.
 */
#ifndef BPFHOST_HOST_MAPS_H
#define BPFHOST_HOST_MAPS_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <linux/bpf.h>
#include <linux/types.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#ifdef __clang__ /* as ordinary C, nothing is relocated */
#pragma GCC diagnostic ignored "-Wunknown-attributes"
#endif
#include "kern.h"
#pragma GCC diagnostic pop

#define SEC(name)
#define __uint(name, val) int(*name)[val]
#define __type(name, val) typeof(val) *name

struct host_entry {
	struct host_entry *next; /* in its bucket */
	const void *map;
	uint32_t cpu; /* 0 unless each CPU has its own value */
	size_t nkey;
	uint64_t *value;
	uint8_t key[];
};

/* What a map's declaration says. */
struct host_map_def {
	const void *map;
	uint32_t type;
	size_t max, nkey, nvalue;
};
#define HOST_DEF(map)                                                                        \
	(&(const struct host_map_def){ (map), sizeof(*(map)->type) / 4,                      \
				       sizeof(*(map)->max_entries) / 4, sizeof(*(map)->key), \
				       sizeof(*(map)->value) })

enum { HOST_BUCKETS = 4096 };

static struct host_entry *host_buckets[HOST_BUCKETS];
static struct {
	const void *map;
	size_t n;
} host_sizes[32];	  /* entries of each map */
static uint32_t host_cpu; /* that the program runs on */

static inline void host_maps_reset(void)
{
	memset(host_sizes, 0, sizeof(host_sizes));
	for (size_t i = 0; i < HOST_BUCKETS; i++)
		while (host_buckets[i]) {
			struct host_entry *e = host_buckets[i];

			host_buckets[i] = e->next;
			free(e->value);
			free(e);
		}
}

static inline uint32_t host_cpu_of(const struct host_map_def *m)
{
	return m->type == BPF_MAP_TYPE_PERCPU_ARRAY ? host_cpu : 0;
}

static inline struct host_entry **host_bucket(const struct host_map_def *m, const void *key)
{
	uint64_t h = (uintptr_t)m->map + host_cpu_of(m);

	for (size_t i = 0; i < m->nkey; i++)
		h = (h ^ ((const uint8_t *)key)[i]) * 0x100000001b3;
	return &host_buckets[(h >> 20) % HOST_BUCKETS];
}

/* Where the pointer to this key's entry is, or is to be. */
static inline struct host_entry **host_find(const struct host_map_def *m, const void *key)
{
	struct host_entry **at = host_bucket(m, key);

	while (*at && ((*at)->map != m->map || (*at)->cpu != host_cpu_of(m) ||
		       memcmp((*at)->key, key, m->nkey)))
		at = &(*at)->next;
	return at;
}

static inline size_t *host_size(const void *map)
{
	size_t i = 0;

	while (host_sizes[i].map && host_sizes[i].map != map)
		i++;
	host_sizes[i].map = map;
	return &host_sizes[i].n;
}

static inline struct host_entry *host_make(const struct host_map_def *m, const void *key)
{
	struct host_entry **at = host_find(m, key), *e = malloc(sizeof(*e) + m->nkey);

	if (!e)
		abort();
	*e = (struct host_entry){ .map = m->map, .cpu = host_cpu_of(m), .nkey = m->nkey };
	e->value = calloc(1, (m->nvalue + 7) & ~7ul);
	if (!e->value)
		abort();
	memcpy(e->key, key, m->nkey);
	*at = e;
	++*host_size(m->map);
	return e;
}

/* Arrays have all their entries from the beginning on. */
static inline void *host_lookup(const struct host_map_def *m, const void *key)
{
	struct host_entry *e = *host_find(m, key);
	uint32_t index;

	if (e || (m->type != BPF_MAP_TYPE_ARRAY && m->type != BPF_MAP_TYPE_PERCPU_ARRAY))
		return e ? e->value : NULL;
	memcpy(&index, key, sizeof(index));
	return index < m->max ? host_make(m, key)->value : NULL;
}

static inline long host_update(const struct host_map_def *m, const void *key, const void *value,
			       uint64_t flags)
{
	void *have = host_lookup(m, key);

	if (have ? flags == BPF_NOEXIST : flags == BPF_EXIST)
		return have ? -EEXIST : -ENOENT;
	if (!have && *host_size(m->map) >= m->max)
		return -E2BIG;
	if (!have)
		have = host_make(m, key)->value;
	memcpy(have, value, m->nvalue);
	return 0;
}

static inline long host_delete(const struct host_map_def *m, const void *key)
{
	struct host_entry **at = host_find(m, key), *e = *at;

	if (!e)
		return -ENOENT;
	*at = e->next;
	free(e->value);
	free(e);
	--*host_size(m->map);
	return 0;
}

#define bpf_map_lookup_elem(map, at)                                                       \
	({                                                                                 \
		_Static_assert(sizeof(*(at)) == sizeof(*(map)->key), "a key of this map"); \
		(typeof((map)->value))host_lookup(HOST_DEF(map), at);                      \
	})
#define bpf_map_update_elem(map, at, from, flags)                                              \
	({                                                                                     \
		_Static_assert(sizeof(*(at)) == sizeof(*(map)->key), "a key of this map");     \
		_Static_assert(sizeof(*(from)) == sizeof(*(map)->value), "one of this map's"); \
		host_update(HOST_DEF(map), at, from, flags);                                   \
	})
#define bpf_map_delete_elem(map, at)                                                       \
	({                                                                                 \
		_Static_assert(sizeof(*(at)) == sizeof(*(map)->key), "a key of this map"); \
		host_delete(HOST_DEF(map), at);                                            \
	})

static struct task_struct host_task; /* the current thread */
static uint64_t host_now_ns;
static uint64_t host_cookie; /* of the probe or clock that hit */
static uint32_t host_random;
__attribute__((unused)) static uint32_t (*host_draw)(void); /* where set: instead of host_random */

static inline struct task_struct *bpf_get_current_task_btf(void)
{
	return &host_task;
}

static inline uint64_t bpf_ktime_get_ns(void)
{
	return host_now_ns;
}

static inline uint64_t bpf_get_attach_cookie(void *ctx)
{
	(void)ctx;
	return host_cookie;
}

static inline uint32_t bpf_get_prandom_u32(void)
{
	return host_draw ? host_draw() : host_random;
}

#endif
