/*
 * bpf/common.bpf.h - what every program needs: the table of targets, losses, reading the
 * target's memory, scratch space.
 *
 * With GPB_HOST defined the readers compile as ordinary C over a fake address space
 * (tests/bpfhost); only this header knows the difference.
 */
#ifndef BPF_COMMON_BPF_H
#define BPF_COMMON_BPF_H

#include "goprof_abi.h"

#ifdef GPB_HOST
#include "host.h"
#else

#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "kern.h"

#ifndef NULL
#define NULL ((void *)0)
#endif
#ifndef offsetof
#define offsetof(t, f) __builtin_offsetof(t, f)
#endif

/* A random key that user space draws when it starts: probe/bpf.h. */
const volatile struct gpb_hash_key hash_key = {};

/* Set before load: the pid namespace of the collector; 0 for the initial one. */
const volatile __u32 pidns_ino = 0;

/* How many targets this object can follow: a power of two. */
#ifndef SLOTS
#define SLOTS GPB_TARGETS
#endif

/* For each target, read by user space through .bss. */
struct gpb_tally tallies[SLOTS] = {};

static __always_inline struct gpb_tally *tally_of(__u32 slot)
{
	return &tallies[slot & (SLOTS - 1)];
}

static __always_inline void lose(__u32 slot, enum gpb_loss why)
{
	__sync_fetch_and_add(&tally_of(slot)->lost[why], 1);
}

/* Where tests let another thread preempt this one. */
static __always_inline void preempt_point(void)
{
}

/* For each target, or set of probes that many share: which hits are counted. User space sets it through .bss. */
struct gpb_open open_for[GPB_TARGETS] = {};

static __always_inline int is_open(__u32 slot, __u32 bits)
{
	return (*(volatile __u32 *)&open_for[slot & (GPB_TARGETS - 1)].bits & bits) != 0;
}

static __always_inline int user_read(void *dst, __u32 n, __u64 addr)
{
	return bpf_probe_read_user(dst, n, (const void *)addr);
}

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, __u32);
	__type(value, struct gpb_target);
} targets SEC(".maps");

/* Distinct stacks and their counts; they are drained when a window ends. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GPB_STACKS);
	__type(key, struct gpb_stack_key);
	__type(value, struct gpb_stack);
} stacks SEC(".maps");

/* What the kernel's tables cannot settle goes to user space one record at a time. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, GPB_RING_BYTES);
} ring SEC(".maps");

/* Ids of label sets that user space already has. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GPB_LABELSETS);
	__type(key, __u64);
	__type(value, __u8);
} labelsets SEC(".maps");

#endif /* GPB_HOST */

#include "old.bpf.h"

static __always_inline __u64 user_u64(__u64 addr)
{
	__u64 v = 0;

	user_read(&v, sizeof(v), addr);
	return v;
}

/* Reads a field of a runtime struct; 0 when the struct or the field is not there. */
static __always_inline __u64 field_u64(__u64 base, __s32 off)
{
	return base && off >= 0 ? user_u64(base + off) : 0;
}

static __always_inline __u32 field_u32(__u64 base, __s32 off)
{
	__u32 v = 0;

	if (base && off >= 0)
		user_read(&v, sizeof(v), base + off);
	return v;
}

/* The target's users can choose what is filed under a hash, so the hash has a key. */
static __always_inline void hash_begin(struct gpb_sip *s)
{
	gpb_sip_begin(s, hash_key.k0, hash_key.k1);
}

#define HASH_WORDS 8
struct hash_block {
	__u64 w[HASH_WORDS];
};

/*
 * Hashes the first @n words of @b, at most all. Global, so that it is verified once and not for
 * each word of a stack.
 */
ONCE_INLINE int hash_block(struct gpb_sip *h, const struct hash_block *b, __u32 n)
{
	if (!h || !b)
		return 0;
	for (__u32 i = 0; i < HASH_WORDS && i < n; i++)
		gpb_sip_word(h, b->w[i]);
	return 0;
}

/* The key of a goroutine in tables of all targets: slot << 48 | g. */
static __always_inline __u64 goroutine_key(__u32 slot, __u64 g)
{
	return ((__u64)slot << 48) | (g & ((1ULL << 48) - 1));
}

#endif
