/*
 * bpf/pidns.bpf.h - the numbers that user space knows the current process by, in its pid
 * namespace.
 */
#ifndef BPF_PIDNS_BPF_H
#define BPF_PIDNS_BPF_H

#include "common.bpf.h"

#define MAX_PIDNS_LEVEL 33 /* MAX_PID_NS_LEVEL + 1, include/linux/pid_namespace.h */

/* The depth of our pid namespace, once it is known. */
__u32 pidns_level = 1;

/* numbers[] has a length of 1 in Linux before 6.5, and the verifier lets nobody look beyond. */
static __always_inline int numbers_are_typed(void)
{
#ifdef GPB_OLD
	return 0;
#endif
	return bpf_core_field_exists(((struct pid *)NULL)->numbers[2]);
}

/* The verifier accepts only a constant index into a typed pointer. */
static __always_inline __u32 number_typed(struct pid *pid, __u32 level)
{
#pragma unroll
	for (__u32 i = 1; i < MAX_PIDNS_LEVEL; i++)
		if (i == level && pid->numbers[i].ns->ns.inum == pidns_ino)
			return pid->numbers[i].nr;
	return 0;
}

static __always_inline __u32 number_read(struct pid *pid, __u32 level)
{
	struct upid at;

	if (bpf_probe_read_kernel(&at, sizeof(at), &pid->numbers[level]) ||
	    BPF_CORE_READ(at.ns, ns.inum) != pidns_ino)
		return 0;
	return at.nr;
}

/* The number that @pid has in our namespace, 0 when it has none; @level: the depth to look at. */
static __always_inline __u32 number_at(struct pid *pid, __u32 level)
{
	if (level >= MAX_PIDNS_LEVEL)
		return 0;
	return numbers_are_typed() ? number_typed(pid, level) : number_read(pid, level);
}

/* The numbers of the current thread and its process in the namespace at @level; 0: not ours. */
__noinline __u64 pid_tgid_at(__u32 level)
{
	struct task_struct *task = current_task(), *leader;
	__u32 n = number_at(task_read(task, thread_pid), level);

	if (!n)
		return 0;
	leader = task_read(task, group_leader);
	return ((__u64)number_at(task_read(leader, thread_pid), level) << 32) | n;
}

/*
 * The numbers by which user space knows the current thread and its process.
 * bpf_get_ns_current_pid_tgid() answers only when the process is in exactly our namespace, but it
 * may be in one further inward.
 */
static __always_inline __u64 pid_tgid(void)
{
	struct pid *pid;
	__u32 level;
	__u64 id;

	if (!pidns_ino)
		return bpf_get_current_pid_tgid();
	id = pid_tgid_at(pidns_level);
	if (id)
		return id;
	pid = task_read(current_task(), thread_pid);
	level = task_read(pid, level);
	for (__u32 i = 1; i < MAX_PIDNS_LEVEL && i <= level; i++) {
		id = pid_tgid_at(i);
		if (!id)
			continue;
		/* this is the same for all processes, because ours does not move */
		pidns_level = i;
		return id;
	}
	return 0;
}

#endif
