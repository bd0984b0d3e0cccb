/*
 * bpf/arch.bpf.h - all that differs between machines: registers of an interrupted Go program, its
 * calling convention, and where a frame keeps the return address. This is the only BPF header that
 * depends on the architecture.
 *
 * Sources: abi-internal.md; cmd/internal/obj/x86/obj6.go and cmd/internal/obj/arm64/obj7.go;
 * unwinder.resolveInternal in runtime/traceback.go (usesLR); Go 1.16 to 1.27.
 */
#ifndef BPF_ARCH_BPF_H
#define BPF_ARCH_BPF_H

#include "common.bpf.h"

#if defined(__TARGET_ARCH_arm64)

/*
 * arm64: a call leaves the return address in x30, the link register. A function with a frame stores it
 * at its sp, and its caller's frame pointer 8 below that. Where the frame has no bytes yet, or never
 * has, x30 alone has the return address.
 */
#define USES_LR 1

/* The registers that a walk starts from. */
struct regs {
	__u64 pc, sp, bp; /* bp: x29 */
	__u64 lr, g;	  /* x30, x28 */
};

/* GPB_TARGET_STALE_FP. Source: adjustframe in runtime/stack.go, which knows arm64 from Go 1.21 on. */
static __always_inline int stale_fp(const struct gpb_target *t)
{
	return t->flags & GPB_TARGET_STALE_FP;
}

/*
 * The return address of a frame whose sp is @delta bytes below the caller's. @lr: what x30 held, 0 for
 * a frame that has called on. The return address of a frame without bytes that called on is at sp.
 */
static __always_inline int frame_return(__u64 *ret, __u64 sp, __u64 lr, __s32 delta)
{
	if (lr && !delta) {
		*ret = lr;
		return 0;
	}
	return user_read(ret, sizeof(*ret), sp);
}

/* The same of a frame that has called on. */
static __always_inline __u64 called_return(__u64 sp, __s32 delta)
{
	(void)delta;
	return user_u64(sp);
}

static __always_inline __u64 frame_above(__u64 sp, __s32 delta)
{
	return sp + delta;
}

/*
 * To be asked of a function that a signal handler made an interrupted one call: x30 of the
 * interrupted one, which was pushed; *sp moves to where sp was. Source: sigctxt.pushCall and
 * preparePanic in runtime/signal_arm64.go.
 */
static __always_inline __u64 injected_lr(__u64 *sp)
{
	__u64 lr = user_u64(*sp);

	*sp += 16;
	return lr;
}

static __always_inline __u64 regs_lr(const struct regs *r)
{
	return r->lr;
}

/* What the runtime saved as x30 of @g. Source: gobuf in runtime/runtime2.go: lr is followed by bp. */
static __always_inline __u64 saved_lr(const struct gpb_target *t, __u64 g)
{
	return t->g_sched_bp >= 8 ? field_u64(g, t->g_sched_bp - 8) : 0;
}

/*
 * For a function that has called systemstack (sp and bp are saved), or morestack before its frame was
 * set up: is its caller missing from the frame records, and who is it? Source: runtime.systemstack and
 * runtime.morestack in runtime/asm_arm64.s.
 */
static __always_inline int saved_caller(const struct gpb_target *t, __u64 g, __u64 sp, __u64 bp,
					__u64 *ret)
{
	*ret = saved_lr(t, g);
	return bp != sp - 8;
}

/* A goroutine that has not begun returns to goexit. Source: gostartcall in runtime/sys_arm64.go. */
static __always_inline __u64 fresh_return(const struct gpb_target *t, __u64 g)
{
	return saved_lr(t, g);
}

/*
 * At a probed pc, @delta bytes below the return address (0: no frame is set up): is the caller missing
 * from the frame records?
 */
static __always_inline int lacks_caller(const struct regs *r, __s32 delta)
{
	return !delta || r->bp != r->sp - 8;
}

/* The return address there. */
static __always_inline __u64 probed_return(const struct regs *r, __s32 delta)
{
	return delta ? user_u64(r->sp) : r->lr;
}

/* Would the first frame record yield it a second time? */
static __always_inline int returns_twice(const struct regs *r, __s32 delta)
{
	(void)r;
	(void)delta;
	return 0;
}

/* For lacks_caller(): the function's frame is set up. */
static __always_inline __s32 framed_delta(const struct regs *r)
{
	(void)r;
	return 16;
}

/*
 * Arguments on the stack (Go up to 1.17) of a function whose frame is set up: behind the slot for x30 of
 * its caller, whose frame record lies 8 below that.
 */
static __always_inline __u64 framed_args(const struct regs *r)
{
	return user_u64(r->bp) + 16;
}

/*
 * The frame record of the function that called out of Go with @sp. @bp, saved by what it called, does
 * not matter: a record is right below its function's sp.
 */
static __always_inline __u64 syscall_record(__u64 sp, __u64 bp)
{
	(void)bp;
	return sp - 8;
}

/* The first frame record of a vdso call that was made by the function with @sp. */
static __always_inline __u64 vdso_record(__u64 sp)
{
	return sp - 8;
}

/* Where a function was called: is @pc still the return address there? It is in the callee's frame. */
static __always_inline int still_called(__u64 sp, __u64 pc)
{
	(void)sp;
	(void)pc;
	return 1;
}

/*
 * For memory that is sent from raw->sp on: puts x30 below it, as if it had been pushed
 * (struct gpb_rec_raw).
 */
#define RAW_BELOW 8

static __always_inline void raw_begin(struct gpb_rec_raw *raw)
{
	raw->sp -= RAW_BELOW;
}

static __always_inline void raw_end(struct gpb_rec_raw *raw, __u64 lr)
{
	raw->top[0] = lr;
}

#elif defined(__TARGET_ARCH_x86) || defined(GPB_HOST)

/* amd64: a call pushes the return address. */
#define USES_LR	  0

/* The registers that a walk starts from. */
struct regs {
	__u64 pc, sp, bp;
};

static __always_inline int stale_fp(const struct gpb_target *t)
{
	(void)t;
	return 0;
}

static __always_inline int frame_return(__u64 *ret, __u64 sp, __u64 lr, __s32 delta)
{
	(void)lr;
	return user_read(ret, sizeof(*ret), sp + delta);
}

static __always_inline __u64 called_return(__u64 sp, __s32 delta)
{
	return user_u64(sp + delta);
}

static __always_inline __u64 frame_above(__u64 sp, __s32 delta)
{
	return sp + (delta + 8);
}

static __always_inline __u64 injected_lr(__u64 *sp)
{
	(void)sp;
	return 0;
}

static __always_inline __u64 regs_lr(const struct regs *r)
{
	(void)r;
	return 0;
}

static __always_inline __u64 saved_lr(const struct gpb_target *t, __u64 g)
{
	(void)t;
	(void)g;
	return 0;
}

/* With bp == sp, systemstack has a frame of its own (Go 1.21+) and the records are complete. */
static __always_inline int saved_caller(const struct gpb_target *t, __u64 g, __u64 sp, __u64 bp,
					__u64 *ret)
{
	(void)t;
	(void)g;
	if (bp == sp)
		return 0;
	*ret = user_u64(sp);
	return 1;
}

static __always_inline __u64 fresh_return(const struct gpb_target *t, __u64 g)
{
	return field_u64(field_u64(g, t->g_sched_sp), 0);
}

static __always_inline int lacks_caller(const struct regs *r, __s32 delta)
{
	return delta < 8 || r->bp != r->sp + delta - 8;
}

static __always_inline __u64 probed_return(const struct regs *r, __s32 delta)
{
	return user_u64(r->sp + delta);
}

/* A record that ends right below the return address would yield it a second time. */
static __always_inline int returns_twice(const struct regs *r, __s32 delta)
{
	return r->bp + 8 == r->sp + delta;
}

static __always_inline __s32 framed_delta(const struct regs *r)
{
	return r->bp - r->sp + 8;
}

static __always_inline __u64 framed_args(const struct regs *r)
{
	return r->bp + 16;
}

/* asmcgocall saved its bp: in Go 1.21+ that of its own frame, which lies below ours. */
static __always_inline __u64 syscall_record(__u64 sp, __u64 bp)
{
	if (bp && bp < sp)
		bp = user_u64(bp);
	return bp;
}

/*
 * Right below that sp lies the return address and, below that, the caller's frame pointer (the
 * assembly that calls has a frame).
 */
static __always_inline __u64 vdso_record(__u64 sp)
{
	return user_u64(sp - 16);
}

static __always_inline int still_called(__u64 sp, __u64 pc)
{
	return user_u64(sp) == pc;
}

#define RAW_BELOW 0

static __always_inline void raw_begin(struct gpb_rec_raw *raw)
{
	(void)raw;
}

static __always_inline void raw_end(struct gpb_rec_raw *raw, __u64 lr)
{
	(void)raw;
	(void)lr;
}

#else
#error "nothing is known of this architecture"
#endif

#ifndef GPB_HOST

#if defined(__TARGET_ARCH_arm64)

#define PSTATE_MODE 0xf
#define PSTATE_C    (1ULL << 29)
#define PSTATE_Z    (1ULL << 30)

/* @at: what a program of uprobes or perf events gets, which the kernel calls user_pt_regs. */
static __always_inline struct regs regs_of(const void *at)
{
	const struct user_pt_regs *r = at;

	return (struct regs){
		.pc = r->pc, .sp = r->sp, .bp = r->regs[29], .lr = r->regs[30], .g = r->regs[28]
	};
}

static __always_inline int regs_in_user(const void *at)
{
	const struct user_pt_regs *r = at;

	return !(r->pstate & PSTATE_MODE);
}

/*
 * The registers with which the thread that is in the kernel left user space, from @at, where the kernel
 * saved them; 0: it did not come from there.
 */
typedef struct user_pt_regs saved_regs;
static __always_inline int regs_saved(const saved_regs *at, struct regs *out)
{
	if (!regs_in_user(at))
		return 0;
	*out = regs_of(at);
	return 1;
}

/*
 * To be asked at the branch of the stack check (cmp sp,guard; b.ls). Taken means that the stack
 * grows first and the call comes again.
 */
static __always_inline int stack_will_grow(const void *at)
{
	const struct user_pt_regs *r = at;

	return (r->pstate & (PSTATE_C | PSTATE_Z)) != PSTATE_C;
}

/* The i-th (0 to 4) word argument of a Go function whose frame is not set up yet. */
static __always_inline __u64 go_arg(const void *at, int i, int regabi)
{
	const struct user_pt_regs *r = at;

	return regabi ? r->regs[i] : user_u64(r->sp + 8 + 8 * i);
}

/* Go code keeps g in x28, in every version. */
static __always_inline __u64 go_g(const void *at)
{
	const struct user_pt_regs *r = at;

	return r->regs[28];
}

/* The return address of a Go function whose frame is not set up yet. */
static __always_inline __u64 go_return(const struct regs *r)
{
	return r->lr;
}

/*
 * The goroutine that this thread runs now (g0 on the system stack); 0 for a thread that Go does not
 * know. Only a program with cgo stores g in thread-local storage (t->tls_g is not 0), and there
 * it is what counts, since C uses x28, too. The kernel has the thread pointer as it was when the thread was
 * switched out, and it is set once, before Go begins. Source: load_g in runtime/tls_arm64.s.
 */
static __always_inline __u64 current_g(const struct gpb_target *t, const struct regs *r)
{
	__u64 tp = t->tls_g ? task_read(current_task(), thread.uw.tp_value) : 0;

	return tp ? user_u64(tp + t->tls_g) : r->g;
}

/* The same at a probe in Go code. */
static __always_inline __u64 probed_g(const struct gpb_target *t, const void *at, int regabi)
{
	(void)t;
	(void)regabi;
	return go_g(at);
}

#else

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
 * The registers with which the thread that is in the kernel left user space, from @at, where the kernel
 * saved them; 0: it did not come from there. Only two bytes of cs are read, because it is in a union whose
 * other members have another type (Linux 6.9).
 */
typedef struct pt_regs saved_regs;
static __always_inline int regs_saved(const saved_regs *at, struct regs *out)
{
	if ((*(const volatile __u16 *)&at->cs & 3) != 3)
		return 0;
	*out = regs_of(at);
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

/* The return address of a Go function whose frame is not set up yet. */
static __always_inline __u64 go_return(const struct regs *r)
{
	return user_u64(r->sp);
}

/*
 * The goroutine that this thread runs now (g0 on the system stack); 0 for a thread that Go does
 * not know.
 */
static __always_inline __u64 current_g(const struct gpb_target *t, const struct regs *r)
{
	__u64 tp = task_read(current_task(), thread.fsbase);

	(void)r;
	return tp ? user_u64(tp + t->tls_g) : 0;
}

/* The same at a probe in Go code. */
static __always_inline __u64 probed_g(const struct gpb_target *t, const struct pt_regs *r,
				      int regabi)
{
	return regabi ? go_g(r) : current_g(t, NULL);
}

#endif

#endif /* GPB_HOST */
#endif
