/*
 * tests/bpfhost/host.h - replaces the kernel's helpers for bpf/common.bpf.h when the BPF-side
 * readers are compiled as ordinary C: a fake address space of a few regions.
 */
#ifndef BPFHOST_HOST_H
#define BPFHOST_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#define __noinline __attribute__((noinline, unused)) static

struct host_region {
	uint64_t addr;
	size_t len;
	uint8_t *bytes;
};

#define HOST_REGIONS 16
static struct host_region host_mem[HOST_REGIONS];
static uint64_t host_losses[GPB_LOSS_COUNT];
__attribute__((unused)) static __u32 host_loser; /* whose loss was the last one */
__attribute__((unused)) static struct gpb_hash_key hash_key;

static inline void host_reset(void)
{
	memset(host_mem, 0, sizeof(host_mem));
	memset(host_losses, 0, sizeof(host_losses));
}

static inline void host_map(uint64_t addr, void *bytes, size_t len)
{
	for (size_t i = 0; i < HOST_REGIONS; i++) {
		if (host_mem[i].bytes)
			continue;
		host_mem[i] = (struct host_region){ addr, len, bytes };
		return;
	}
}

__attribute__((unused)) static inline void lose(__u32 slot, enum gpb_loss why)
{
	host_losses[why]++;
	host_loser = slot;
}

/* Another thread that preempts this one at the host_preempt-th point from now on. */
__attribute__((unused)) static void (*host_other)(void);
__attribute__((unused)) static int host_preempt;

__attribute__((unused)) static inline void preempt_point(void)
{
	if (host_preempt && !--host_preempt)
		host_other();
}

/* All or nothing, and zeroes on failure, like bpf_probe_read_user. */
static inline int user_read(void *dst, __u32 n, __u64 addr)
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
