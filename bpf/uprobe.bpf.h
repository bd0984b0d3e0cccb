/* bpf/uprobe.bpf.h - what programs of uprobes begin with. */
#ifndef BPF_UPROBE_BPF_H
#define BPF_UPROBE_BPF_H

#include "arch.bpf.h"
#ifdef GPB_OLD
#include "pidns.bpf.h"
#endif

/* Holds nothing, ever. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} no_programs SEC(".maps");

/* 0, ever. Not a constant, so that no kernel drops the tail call as dead code. */
volatile __u32 tail_calls = 0;

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
static __always_inline void stack_of_thread(struct pt_regs *ctx)
{
	if (tail_calls)
		bpf_tail_call(ctx, &no_programs, 0);
}

#ifdef GPB_OLD
/* What each probe of each process is: user/probe/bpf_old.h. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GPB_COOKIES);
	__type(key, struct gpb_cookie_key);
	__type(value, __u64);
} cookies SEC(".maps");
#endif

/* The cookie of the probe that was hit. 0: this is none of ours. */
static __always_inline int probe_cookie(struct pt_regs *ctx, __u64 *cookie)
{
#ifdef GPB_OLD
	struct gpb_cookie_key key = { .addr = regs_of(ctx).pc, .tgid = pid_tgid() >> 32 };
	const __u64 *c = bpf_map_lookup_elem(&cookies, &key);

	if (!c)
		return 0;
	*cookie = *c;
#else
	*cookie = bpf_get_attach_cookie(ctx);
#endif
	return 1;
}

/* What the program of a probe begins with; the rest as probe_cookie(). */
static __always_inline int uprobe_begin(struct pt_regs *ctx, __u64 *cookie)
{
#ifndef GPB_OLD /* such kernels have no private stacks */
	stack_of_thread(ctx);
#endif
	return probe_cookie(ctx, cookie);
}

/* How often the current thread has been switched out. */
static __always_inline __u64 switched_out(void)
{
	struct task_struct *task = current_task();

	return task_read(task, nvcsw) + task_read(task, nivcsw);
}

#endif
