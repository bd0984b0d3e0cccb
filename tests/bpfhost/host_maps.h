/*
 * tests/bpfhost/host_maps.h - BPF hash maps, and the helpers that tell of the current thread, for
 * BPF code that is compiled as ordinary C. Include it after host.h and before that code.
 *
 * Maps are declared as for the kernel; libbpf's macros put the sizes into types, where these
 * functions find them. There is no LRU: a map that is full refuses.
 */
#ifndef BPFHOST_HOST_MAPS_H
#define BPFHOST_HOST_MAPS_H

#include <errno.h>
#include <linux/bpf.h>

#define __uint(name, val) int(*name)[val]
#define __type(name, val) typeof(val) *name
#define SEC(name)

enum { HOST_ENTRIES = 64, HOST_KEY = 64, HOST_VALUE = 256 };

struct host_entry {
	const void *map;
	uint8_t key[HOST_KEY];
	uint64_t value[HOST_VALUE / 8];
};

static struct host_entry host_entries[HOST_ENTRIES];
static size_t host_nentries;

static inline void *host_lookup(const void *map, const void *key, size_t n)
{
	for (size_t i = 0; i < host_nentries; i++)
		if (host_entries[i].map == map && !memcmp(host_entries[i].key, key, n))
			return host_entries[i].value;
	return NULL;
}

static inline long host_update(const void *map, const void *key, size_t nkey, const void *value,
			       size_t nvalue, uint64_t flags)
{
	void *have = host_lookup(map, key, nkey);
	struct host_entry *e = &host_entries[host_nentries];

	if (have ? flags == BPF_NOEXIST : flags == BPF_EXIST)
		return have ? -EEXIST : -ENOENT;
	if (!have && host_nentries == HOST_ENTRIES)
		return -E2BIG;
	if (!have) {
		e->map = map;
		memcpy(e->key, key, nkey);
		have = e->value;
		host_nentries++;
	}
	memcpy(have, value, nvalue);
	return 0;
}

#define bpf_map_lookup_elem(map, at)                                                       \
	({                                                                                 \
		_Static_assert(sizeof(*(map)->key) <= HOST_KEY, "a short key");            \
		_Static_assert(sizeof(*(at)) == sizeof(*(map)->key), "a key of this map"); \
		(typeof((map)->value))host_lookup(map, at, sizeof(*(map)->key));           \
	})
#define bpf_map_update_elem(map, at, from, flags)                                              \
	({                                                                                     \
		_Static_assert(sizeof(*(map)->value) <= HOST_VALUE, "a short value");          \
		_Static_assert(sizeof(*(from)) == sizeof(*(map)->value), "one of this map's"); \
		host_update(map, at, sizeof(*(map)->key), from, sizeof(*(map)->value), flags); \
	})

/* As in kern.h: what is read of the current thread. */
struct task_struct {
	uint64_t start_time;
	unsigned long nvcsw, nivcsw;
};

static struct task_struct host_task;
static uint64_t host_now_ns;
static uint32_t host_random;
static uint64_t host_cookie; /* of the clock that hit */

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
	return host_random;
}

#endif
