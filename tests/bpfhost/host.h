/*
 * tests/bpfhost/host.h - replaces the kernel's helpers for bpf/common.bpf.h when the BPF-side
 * readers are compiled as ordinary C. Whole programs are compiled with kernel/bpf/bpf_helpers.h instead.
 */
#ifndef BPFHOST_HOST_H
#define BPFHOST_HOST_H

#include <stdbool.h>

#include "host_mem.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#define __noinline __attribute__((noinline, unused)) static

static uint64_t host_losses[GPB_LOSS_COUNT];
__attribute__((unused)) static __u32 host_loser; /* whose loss was the last one */
__attribute__((unused)) static struct gpb_hash_key hash_key;

static inline void host_reset(void)
{
	memset(host_mem, 0, sizeof(host_mem));
	memset(host_losses, 0, sizeof(host_losses));
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

static inline int user_read(void *dst, __u32 n, __u64 addr)
{
	return host_read(dst, n, addr);
}

#endif
