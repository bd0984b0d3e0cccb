/*
 * bpf/slots.bpf.h - of many targets: which of them the current process is.
 */
#ifndef BPF_SLOTS_BPF_H
#define BPF_SLOTS_BPF_H

#include "common.bpf.h"
#include "pidns.bpf.h"

/* process id -> its slot */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SLOTS);
	__type(key, __u32);
	__type(value, __u32);
} slot_of_tgid SEC(".maps");

/* NULL: it is none. */
static __always_inline __u32 *slot_of_current(void)
{
	__u32 tgid = pid_tgid() >> 32;

	return bpf_map_lookup_elem(&slot_of_tgid, &tgid);
}

#endif
