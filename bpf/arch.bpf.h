/*
 * bpf/arch.bpf.h - registers of an interrupted Go program. This is the only BPF header that
 * depends on the architecture.
 */
#ifndef BPF_ARCH_BPF_H
#define BPF_ARCH_BPF_H

#include "common.bpf.h"

/* The registers that a walk starts from. */
struct regs {
	__u64 pc, sp, bp;
};

#ifndef GPB_HOST

#if defined(__TARGET_ARCH_x86)

#define FLAG_CF 0x01
#define FLAG_ZF 0x40

static __always_inline struct regs regs_of(const struct pt_regs *r)
{
	return (struct regs){ .pc = r->rip, .sp = r->rsp, .bp = r->rbp };
}

static __always_inline int regs_in_user(const struct pt_regs *r)
{
	return (r->cs & 3) == 3;
}

/*
 * The registers with which the thread that is in the kernel left user space; 0: it did not come
 * from there. Only two bytes of cs are read, because it is in a union whose other members have
 * another type (Linux 6.9).
 */
static __always_inline int regs_saved(struct regs *out)
{
	const struct pt_regs *r =
		(const struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());

	if ((*(const volatile __u16 *)&r->cs & 3) != 3)
		return 0;
	*out = regs_of(r);
	return 1;
}

/*
 * To be asked at the branch of the stack check (cmp guard,sp; jbe). Taken means that the stack
 * grows first and the call comes again.
 */
static __always_inline int stack_will_grow(const struct pt_regs *r)
{
	return r->eflags & (FLAG_CF | FLAG_ZF);
}

/* The i-th (0 to 4) word argument of a Go function whose frame is not set up yet. */
static __always_inline __u64 go_arg(const struct pt_regs *r, int i, int regabi)
{
	if (regabi)
		return i == 0 ? r->rax :
		       i == 1 ? r->rbx :
		       i == 2 ? r->rcx :
		       i == 3 ? r->rdi :
				r->rsi;
	return user_u64(r->rsp + 8 + 8 * i);
}

/* The g register of Go code, from the register ABI on. */
static __always_inline __u64 go_g(const struct pt_regs *r)
{
	return r->r14;
}

static __always_inline __u64 thread_pointer(void)
{
	return bpf_get_current_task_btf()->thread.fsbase;
}

#else
#error "no registers known for this architecture"
#endif

/*
 * The goroutine that this thread runs now (g0 on the system stack); 0 for a thread that Go does
 * not know.
 */
static __always_inline __u64 current_g(const struct gpb_target *t)
{
	__u64 tp = thread_pointer();

	return tp ? user_u64(tp + t->tls_g) : 0;
}

#endif /* GPB_HOST */
#endif
