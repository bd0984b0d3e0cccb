/*
 * bpf/try.bpf.c - is loaded to see whether the kernel does: user/probe/bpf_fit.h.
 */
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, __u64);
} tried SEC(".maps");

/* May a global function hand memory that it was given to a map? */
__noinline int map_memory(const __u64 *at)
{
	__u64 key = 0;

	return at ? bpf_map_update_elem(&tried, &key, at, BPF_ANY) : 0;
}

SEC("uprobe")
int try_map_memory(void *ctx)
{
	__u64 word = bpf_get_prandom_u32();

	return map_memory(&word);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
