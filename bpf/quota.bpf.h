/*
 * bpf/quota.bpf.h - how targets share a table and a ring, so that what one floods costs the others
 * nothing.
 *
 * One half of the room is divided into equal parts, one for each target. The other half is for
 * whoever comes: a target may go beyond its part while all together have not filled that half. So
 * there is always room for the part of each target, whatever the others do:
 * what is beyond the parts is at most one half, and the parts together are the other one.
 * Programs on several CPUs may pass the check at once, so a limit is exceeded by as many entries
 * as there are CPUs at most; user space leaves room for these.
 */
#ifndef BPF_QUOTA_BPF_H
#define BPF_QUOTA_BPF_H

#include "common.bpf.h"

#ifndef GPB_HOST

/* Set before load: are there many targets? Of one nothing is limited, and the verifier drops the code. */
const volatile __u32 many_targets = 0;

/* Set by user space through .bss, also while programs run. */
struct gpb_quota stacks_quota = {}, ring_quota = {};
struct gpb_taken taken[SLOTS] = {};
__u64 stacks_put = 0, stacks_taken = 0; /* of all targets; the second is user space's */

static __always_inline __u64 taken_stacks(__u32 slot)
{
	return *(volatile __u64 *)&taken[slot & (SLOTS - 1)].stacks;
}

static __always_inline __u64 taken_bytes(__u32 slot)
{
	return *(volatile __u64 *)&taken[slot & (SLOTS - 1)].bytes;
}

/* Is there room for one more stack of this target in the table? */
static __always_inline int stack_allowed(__u32 slot)
{
	return !many_targets ||
	       gpb_quota_allows(&stacks_quota, tally_of(slot)->stacks - taken_stacks(slot),
				*(volatile __u64 *)&stacks_put - *(volatile __u64 *)&stacks_taken,
				1);
}

static __always_inline void stack_was_put(__u32 slot)
{
	if (!many_targets)
		return;
	__sync_fetch_and_add(&tally_of(slot)->stacks, 1);
	__sync_fetch_and_add(&stacks_put, 1);
}

/* bpf_ringbuf_output() within the target's quota. */
static __always_inline long ring_send_flagged(__u32 slot, void *rec, __u64 size, __u64 flags)
{
	__u64 bytes = GPB_RING_RECORD(size);
	long ret;

	if (!many_targets)
		return bpf_ringbuf_output(&ring, rec, size, flags);
	if (!gpb_quota_allows(&ring_quota, tally_of(slot)->sent - taken_bytes(slot),
			      bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA), bytes))
		return -1;
	ret = bpf_ringbuf_output(&ring, rec, size, flags);
	if (!ret)
		__sync_fetch_and_add(&tally_of(slot)->sent, bytes);
	return ret;
}

static __always_inline long ring_send(__u32 slot, void *rec, __u64 size)
{
	return ring_send_flagged(slot, rec, size, 0);
}

#endif /* GPB_HOST */
#endif
