/*
 * tests/bpfhost/host_mem.h - the target's memory for BPF code that is compiled as ordinary C: a fake
 * address space of a few regions.
 */
#ifndef BPFHOST_HOST_MEM_H
#define BPFHOST_HOST_MEM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct host_region {
	uint64_t addr;
	size_t len;
	uint8_t *bytes;
};

#define HOST_REGIONS 32
static struct host_region host_mem[HOST_REGIONS];

static inline void host_map(uint64_t addr, void *bytes, size_t len)
{
	for (size_t i = 0; i < HOST_REGIONS; i++) {
		if (host_mem[i].bytes)
			continue;
		host_mem[i] = (struct host_region){ addr, len, bytes };
		return;
	}
}

/* All or nothing, and zeroes on failure, like bpf_probe_read_user(). */
static inline int host_read(void *dst, size_t n, uint64_t addr)
{
	for (size_t i = 0; i < HOST_REGIONS; i++) {
		struct host_region *r = &host_mem[i];

		if (r->bytes && addr >= r->addr && addr - r->addr <= r->len &&
		    n <= r->len - (addr - r->addr)) {
			memcpy(dst, r->bytes + (addr - r->addr), n);
			return 0;
		}
	}
	memset(dst, 0, n);
	return -14;
}

#endif
