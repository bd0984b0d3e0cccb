/* bpf/pidns.bpf.h - what user space calls the current process, in its pid namespace. */
#ifndef BPF_PIDNS_BPF_H
#define BPF_PIDNS_BPF_H

#include "common.bpf.h"

/* Set before load: pid namespace of the collector; 0 in the initial one. */
const volatile __u32 pidns_ino;

#define MAX_PIDNS_LEVEL 33 /* MAX_PID_NS_LEVEL + 1, include/linux/pid_namespace.h */

/* How deep our pid namespace lies, once it is known. */
__u32 pidns_level = 1;

/* The number that @pid has in our namespace, 0 when it has none; @level: where to look. */
static __always_inline __u32 number_at(struct pid *pid, __u32 level)
{
	struct upid at;

	if (level >= MAX_PIDNS_LEVEL ||
	    bpf_probe_read_kernel(&at, sizeof(at), &pid->numbers[level]) ||
	    BPF_CORE_READ(at.ns, ns.inum) != pidns_ino)
		return 0;
	return at.nr;
}

/*
 * What user space calls the current thread and its process. bpf_get_ns_current_pid_tgid()
 * tells only when the process is in our very namespace, and it may be in one further inward.
 */
static __always_inline __u64 pid_tgid(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct pid *tid, *tgid;
	__u32 level, n;

	if (!pidns_ino)
		return bpf_get_current_pid_tgid();
	tid = BPF_CORE_READ(task, thread_pid);
	tgid = BPF_CORE_READ(task, group_leader, thread_pid);
	n = number_at(tid, pidns_level);
	if (n)
		return ((__u64)number_at(tgid, pidns_level) << 32) | n;
	level = BPF_CORE_READ(tid, level);
	for (__u32 i = 1; i < MAX_PIDNS_LEVEL && i <= level; i++) {
		n = number_at(tid, i);
		if (!n)
			continue;
		pidns_level = i; /* the same for all: ours does not move */
		return ((__u64)number_at(tgid, i) << 32) | n;
	}
	return 0;
}

#endif
