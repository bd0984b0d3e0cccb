/* bpf/uprobe.bpf.h - what programs of uprobes begin with. */
#ifndef BPF_UPROBE_BPF_H
#define BPF_UPROBE_BPF_H

#include "common.bpf.h"

/* Holds nothing, ever. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} no_programs SEC(".maps");

/* 0, ever. Not a constant, so that no kernel drops the tail call as dead code. */
volatile __u32 tail_calls;

/*
 * Keeps the program's stack on that of the thread.
 *
 * From Linux 6.13 on the kernel gives functions of 64 bytes of stack and more a private stack, one
 * for each CPU, because it assumes that a program is never entered again on a CPU before it has
 * ended there. This is not so for uprobes: on a preemptible kernel another thread may pass a probe
 * in the middle of it. Both then write to the same stack, one goes on with pointers of the other,
 * and the kernel crashes or its memory is changed. A program with a tail call has no private stack.
 *
 * A program needs this if a function of it has so much stack; tests/support/verifier_main.c looks.
 *
 * Source: bpf_enable_priv_stack and check_max_stack_depth in kernel/bpf/verifier.c,
 * bpf_prog_run_array_uprobe in include/linux/bpf.h, uprobe_prog_run in kernel/trace/bpf_trace.c,
 * Linux 6.13 to 7.2.
 */
static __always_inline void uprobe_begin(struct pt_regs *ctx)
{
	if (tail_calls)
		bpf_tail_call(ctx, &no_programs, 0);
}

/* How often the current thread has been switched out. */
static __always_inline __u64 switched_out(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return task->nvcsw + task->nivcsw;
}

#endif
