/*
 * bpf/kern.h - the few kernel types we touch; the loader relocates the fields by the
 * running kernel's BTF.
 *
 * They are read through typed pointers (old.bpf.h), each load checked by
 * the verifier: bpf_probe_read_kernel is refused with lockdown=confidentiality. A load through a
 * pointer that leads nowhere gives 0.
 */
#ifndef BPF_KERN_H
#define BPF_KERN_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* Where the thread pointer points: fsbase on x86, uw.tp_value on arm64. */
struct thread_struct {
	unsigned long fsbase;
	struct {
		unsigned long tp_value;
	} uw;
};

struct mm_struct {
	unsigned long start_stack;
};

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[]; /* level + 1, from the initial namespace inwards */
};

/* What the threads of a process share. */
struct signal_struct {
	unsigned long long sum_sched_runtime; /* of those that were reaped, in ns */
};

struct task_struct {
	int pid, tgid;
	struct signal_struct *signal;
	__u64 start_time;
	struct pid *thread_pid;
	struct task_struct *group_leader;
	struct mm_struct *mm;
	void *stack;
	unsigned long nvcsw, nivcsw; /* how often it was switched out */
	struct thread_struct thread;
};

/* A number that only one CPU writes. */
struct perf_count {
	__u64 ns;
};

struct perf_event {
	struct perf_count count;
	struct perf_event *parent; /* which it was inherited from; NULL: user space has opened it */
	__u64 id;
};

/* What a program of a perf event is really called with. */
struct bpf_perf_event_data_kern {
	struct perf_event *event;
};

/* Of pt_regs only the size is asked for. What follows ___ is not part of a type's name. */
struct pt_regs___any {
	unsigned long any;
};

#pragma clang attribute pop

#endif
