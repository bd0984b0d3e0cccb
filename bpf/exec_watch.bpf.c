/*
 * bpf/exec_watch.bpf.c - which programs the descendants of one process run, or all processes: it writes
 * a record at each exec.
 *
 * No process is held: when user space learns of a program, that already runs.
 */
#include "pidns.bpf.h"

#include <bpf/bpf_tracing.h>

/* set before load; the number of the process in the collector's namespace; 0: all */
const volatile __u32 root = 0;

/* Processes that are root or descend from it, by their number in the initial pid namespace. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GPB_FOLLOWED);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, __u8);
} exec_watch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024);
} execs SEC(".maps");

static __always_inline int is_member(void)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;

	return !root || (__u32)(pid_tgid() >> 32) == root ||
	       bpf_map_lookup_elem(&exec_watch, &tgid);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 tgid = child->tgid;
	__u8 one = 1;

	if (child->pid != child->tgid || !is_member())
		return 0; /* this is a thread, or no descendant */
	if (bpf_map_update_elem(&exec_watch, &tgid, &one, BPF_ANY))
		lose(0, GPB_LOSS_DROPPED);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec)
{
	struct gpb_rec_exec x = {};

	if (!is_member())
		return 0;
	x.when_ns = bpf_ktime_get_ns();
	x.tgid = pid_tgid() >> 32;
	if (!x.tgid && !root)
		return 0; /* it has no number here */
	if (!x.tgid || bpf_ringbuf_output(&execs, &x, sizeof(x), 0))
		lose(0, GPB_LOSS_DROPPED);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	__u32 tgid = task->tgid;

	if (task->pid == task->tgid)
		bpf_map_delete_elem(&exec_watch, &tgid);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
