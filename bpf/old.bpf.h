/*
 * bpf/old.bpf.h - what kernels before 5.15 lack. Each program is compiled a second time for them, with
 * GPB_OLD, and user space loads the one that fits (user/probe/bpf_old.h). What stands in there:
 *
 *	cookies (5.15)		a table by process and probed address (uprobe.bpf.h), and the period of a
 *				clock (clocks.bpf.h)
 *	bpf_task_pt_regs (5.15)	the end of the thread's kernel stack (arch.bpf.h)
 *	pointers as arguments of global functions (5.13)
 *				such a function finds by itself what it works on: ONCE() below
 *	atomic operations that return something (5.12)
 *				a load and a store: no program is preempted there by another one on its CPU
 *	types of kernel memory (5.11)
 *				a helper that reads it, which lockdown=confidentiality refuses
 *
 * User space has one skeleton for both, so variables must lie alike in both. They lie in the order of their
 * definitions where each definition has an initializer, and else in that of their uses, which differ
 * (tests/unit/test_bpf_old.c).
 *
 * Source: trace_call_bpf in kernel/trace/bpf_trace.c, __uprobe_perf_func in kernel/trace/trace_uprobe.c and
 * bpf_overflow_handler in kernel/events/core.c, Linux 5.10 and 5.14: not preemptible, and one program at a
 * time on a CPU (bpf_prog_active). btf_check_func_arg_match in kernel/bpf/btf.c, Linux 5.10 and 5.13.
 */
#ifndef BPF_OLD_BPF_H
#define BPF_OLD_BPF_H

#define WALK_PARAMS   struct walk *w, struct gpb_stack *s, const struct gpb_target *t
#define LABELS_PARAM  struct gpb_rec_labels *l
#define SCRATCH_PARAM struct scratch *sc

/*
 * A function that the verifier checks once, and not at each call, is a global one.
 *
 * ONCE() is the head of such a function's definition. @params: all parameters; @own: the arguments as it
 * finds them by itself, NULL where there is none; @numbers: those parameters that are no pointers; @names:
 * of these. ONCE_INLINE is part of its caller on old kernels, and ONCE_CALLED, which takes a large stack,
 * is checked at each call there.
 */
#ifdef GPB_OLD

#define ONCE(ret, name, params, own, numbers, names) \
	static __always_inline ret name##_of params; \
	__noinline ret name##_once numbers           \
	{                                            \
		return name##_of own;                \
	}                                            \
	static __always_inline ret name params       \
	{                                            \
		return name##_once names;            \
	}                                            \
	static __always_inline ret name##_of params

#define ONCE_INLINE static __always_inline
#define ONCE_CALLED static __noinline

/* All that a program has in work is in the CPU's scratch place (sample.bpf.h). */
struct walk;
static __always_inline struct walk *own_walk(void);
static __always_inline struct gpb_stack *own_stack(void);
static __always_inline struct gpb_target *own_target(void);
static __always_inline struct gpb_rec_labels *own_labels(void);
static __always_inline struct scratch *own_scratch(void);
static __always_inline struct gpb_sip *own_sip(void);
#define OWN_WALK own_walk(), own_stack(), own_target()

/* A variable @h that leads to the state of a hash. */
#define HASH_STATE(h) struct gpb_sip *(h) = own_sip()

#else

#define ONCE(ret, name, params, own, numbers, names) __noinline ret name params
#define ONCE_INLINE				     __noinline
#define ONCE_CALLED				     __noinline
#define HASH_STATE(h)				     struct gpb_sip h##_, *(h) = &h##_

#endif

/* Of words that a CPU has for itself. */
static __always_inline int atomic_swap(__u64 *word, __u64 from, __u64 to)
{
#ifdef GPB_OLD
	if (*(volatile __u64 *)word != from)
		return 0;
	*(volatile __u64 *)word = to;
	return 1;
#else
	return __sync_val_compare_and_swap(word, from, to) == from;
#endif
}

/* Returns what it was. GPB_OLD: or what it was a little before, where other CPUs add as well. */
static __always_inline __u64 atomic_add(__u64 *word, __u64 n)
{
#ifdef GPB_OLD
	__u64 was = *(volatile __u64 *)word;

	__sync_fetch_and_add(word, n);
	return was;
#else
	return __sync_fetch_and_add(word, n);
#endif
}

static __always_inline void atomic_clear(__u64 *word)
{
#ifdef GPB_OLD
	*(volatile __u64 *)word = 0;
#else
	__sync_lock_test_and_set(word, 0);
#endif
}

/* A field of what the kernel knows of the current thread. A pointer that leads nowhere gives 0. */
#ifdef GPB_OLD
#define current_task()	       ((struct task_struct *)bpf_get_current_task())
#define task_read(task, field) BPF_CORE_READ(task, field)
#else
#define current_task()	       bpf_get_current_task_btf()
#define task_read(task, field) ((task)->field)
#endif

#endif
