/*
 * bpf/cpu.bpf.c - on-CPU samplers, one for the threads of one target, one for many targets.
 *
 * thread_clock runs when the CPU clock of one of the target's threads has advanced by one step, and
 * mostly does nothing: a period has several steps. A clock starts when its thread (or the window) does. Sampling at whole periods would therefore
 * miss half a period of each thread, and would never see short threads. Steps smaller than the
 * period, with the first sample after a random part of it, make the sampling unbiased: a
 * thread that runs for a third of a period is seen in a third of all cases.
 *
 * Short steps are dear, and only threads that are born need them. So while none is born, the clock of a thread
 * that was sampled takes whole periods: user space sets it so, which is told at the sample, when a
 * period begins anyway. on_thread tells user space of the next thread, before that runs.
 *
 * host_clock runs at each tick of a clock that each CPU has, and samples whichever target it finds
 * there. User space loads the one that it needs.
 *
 * on_end and on_reaped tell what a process of many was charged in all. Nobody can ask for its clock when its parent has
 * reaped it, which is mostly before user space hears of its end.
 */
#define SLOTS GPB_CPU_TARGETS

#include "common.bpf.h"

#include <bpf/bpf_tracing.h>
#include <linux/sched.h>

const volatile __u64 period_ns = 1;	   /* between samples of a thread */
const volatile __u64 step_ns = 1;	   /* of a clock, the shortest */
const volatile __u32 kernel_stack = 16384; /* of a thread, bytes; GPB_OLD needs it */

#include "clocks/clocks.bpf.h"
#include "clocks/phase.bpf.h"
#include "sample.bpf.h"
#include "slots.bpf.h"

#include "go/unwind_rules.bpf.h"

/* What one tick of host_clock counts for: more after the clocks were slowed down. Written through .bss. */
__u64 tick_weight = 1;

/* Which round of longer steps clocks may ask for; 0: none. Written through .bss. */
__u64 coarsen = 0;

/* Threads of the target that were born, and those of them while coarsen was set. */
__u64 births = 0, births_coarse = 0;

/* Of many targets: what those that have ended were charged. */
struct gpb_charge charges[SLOTS] = {};

/* Targets that have ended and were not reaped yet: their first thread -> slot. It is deleted when that is freed, and so need not be LRU. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SLOTS);
	__type(key, __u64);
	__type(value, __u32);
} ending SEC(".maps");

/* Where the kernel has saved the registers of the current thread, which it was called by. NULL: not to be found. */
static __always_inline const saved_regs *regs_at_entry(void)
{
#ifdef GPB_OLD
	struct scratch *sc = own_scratch();
	char *stack = task_read(current_task(), stack);
	char *at = stack + kernel_stack - bpf_core_type_size(struct pt_regs___any);

	return sc && stack && !bpf_probe_read_kernel(sc->raw.top, sizeof(saved_regs), at) ?
		       (const saved_regs *)sc->raw.top :
		       NULL;
#else
	return (const saved_regs *)bpf_task_pt_regs(current_task());
#endif
}

/* The user registers, also when the kernel was interrupted. */
static __always_inline int user_regs(struct bpf_perf_event_data *ctx, struct regs *out, int *user)
{
	const saved_regs *at;

	*user = regs_in_user(&ctx->regs);
	if (*user) {
		*out = regs_of(&ctx->regs);
		return 1;
	}
	at = regs_at_entry();
	return at && regs_saved(at, out);
}

static __always_inline void kernel_frames(void *ctx, struct gpb_stack *s)
{
	long n = bpf_get_stack(ctx, s->pc, GPB_MAX_KERNEL * sizeof(s->pc[0]), 0);

	s->nkernel = n > 0 ? (__u16)(n / sizeof(s->pc[0])) : 0;
	if (s->nkernel > GPB_MAX_KERNEL)
		s->nkernel = GPB_MAX_KERNEL;
}

static __always_inline void take(struct bpf_perf_event_data *ctx, struct scratch *sc,
				 const struct gpb_target *t, __u32 slot, __u64 count)
{
	struct gpb_stack *s = &sc->raw.stack;
	struct regs r = {};
	__u64 g;
	int user;

	stack_init(s, slot);
	s->count = count;
	if (!user_regs(ctx, &r, &user)) {
		lose(slot, GPB_LOSS_UNREADABLE);
		return;
	}
	if (!user && (t->flags & GPB_TARGET_KERNEL))
		kernel_frames(ctx, s);
	g = current_g(t, &r);
	walk_interrupted(&sc->walk, s, t, g, &r);
	if (t->flags & (GPB_TARGET_GOID | GPB_TARGET_LABELS))
		sample_identity(sc, t, field_u64(field_u64(g, t->g_m), t->m_curg));
	sample_send(sc);
}

/* Files the current stack under @slot, as @due samples. */
static __always_inline void sample(struct bpf_perf_event_data *ctx, const struct gpb_target *t,
				   __u32 slot, __u64 due)
{
	struct scratch *sc = scratch_claim(slot);

	if (!sc)
		return;
	take(ctx, sc, t, slot, due);
	scratch_release(sc);
}

static __always_inline struct gpb_target *target_at(__u32 slot)
{
	__u32 at = slot & (SLOTS - 1);

	return bpf_map_lookup_elem(&targets, &at);
}

/* A sample of @clk: does it ask for other steps? It can be given some if user space has opened it. */
static __always_inline void ask(const struct clock *clk, struct phase *p, const struct pace *pace)
{
	struct gpb_rec_clock r = { .type = GPB_REC_CLOCK, .id = clk->id };
	__u64 round = *(volatile __u64 *)&coarsen;

	if (!round || !clk->opened || !phase_asks(p, round, pace))
		return;
	r.coarse = p->asked != round;
	if (!bpf_ringbuf_output(&ring, &r, sizeof(r), 0))
		p->asked = r.coarse ? round : 0;
}

/* How many samples the step of the current thread stands for whose clock hit. */
static __always_inline __u64 clock_step(void *ctx, __u32 tid)
{
	const struct pace pace = { .period = period_ns, .step = step_ns };
	struct task_struct *task = current_task();
	struct clock clk = {};
	struct step s = {};
	struct phase *p;
	__u64 due;

	s.counted = clock_read(ctx, &clk);
	if (s.counted) {
		s.key.id = clk.id;
		s.at = clk.count;
	} else {
		s.key = (struct phase_key){ .id = tid, .start = task_read(task, start_time) };
		s.at = bpf_ktime_get_ns();
		s.switches = task_read(task, nvcsw) + task_read(task, nivcsw);
	}
	if (!clock_counts(ctx, tid)) {
		phase_skip(&s);
		return 0;
	}
	due = samples_due(&s, &pace, &p);
	if (due && p)
		ask(&clk, p, &pace);
	return due;
}

SEC("perf_event")
int thread_clock(struct bpf_perf_event_data *ctx)
{
	__u64 id = pid_tgid();
	__u32 tgid = id >> 32, *slot;
	struct gpb_target *t;
	__u64 due;

	slot = bpf_map_lookup_elem(&slot_of_tgid, &tgid);
	t = slot ? target_at(*slot) : NULL;
	if (!t) {
#ifndef GPB_OLD /* there, child processes of the target may have inherited clocks (before Linux 5.13) */
		lose(0, GPB_LOSS_NO_TARGET);
#endif
		return 0;
	}
	due = clock_step(ctx, (__u32)id);
	if (!due)
		return 0;
	__sync_fetch_and_add(&tally_of(*slot)->samples, due);
	if (same_program(t))
		sample(ctx, t, *slot, due);
	return 0;
}

/* The thread has inherited its clock, and has not begun. The current thread makes it. */
SEC("tp_btf/task_newtask")
int BPF_PROG(on_thread, struct task_struct *task, unsigned long flags)
{
	struct gpb_rec_clock r = { .type = GPB_REC_CLOCK };

	if (!(flags & CLONE_THREAD) || !slot_of_current())
		return 0;
	__sync_fetch_and_add(&births, 1);
	if (!*(volatile __u64 *)&coarsen)
		return 0;
	__sync_fetch_and_add(&births_coarse, 1);
	bpf_ringbuf_output(&ring, &r, sizeof(r),
			   0); /* where it is full, the next tick sees births */
	return 0;
}

SEC("perf_event")
int host_clock(struct bpf_perf_event_data *ctx)
{
	__u32 *slot = slot_of_current();
	struct gpb_target *t = slot ? target_at(*slot) : NULL;
	__u64 began = bpf_ktime_get_ns(), weight = *(volatile __u64 *)&tick_weight;

	if (!t || !same_program(t))
		return 0;
	__sync_fetch_and_add(&tally_of(*slot)->samples, weight);
	sample(ctx, t, *slot, weight);
	__sync_fetch_and_add(&tally_of(*slot)->taken_ns, bpf_ktime_get_ns() - began);
	return 0;
}

/* Its number, which leads to the slot, is taken from a process when it is reaped. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_end, struct task_struct *task)
{
	__u64 key = (__u64)task;
	__u32 *slot;

	if (task->pid != task->tgid)
		return 0;
	slot = slot_of_current();
	if (slot)
		bpf_map_update_elem(&ending, &key, slot, BPF_ANY);
	return 0;
}

/*
 * The kernel adds a thread's time to its process' when it is reaped, the first thread's last of all. Where another thread calls
 * exec, that takes the place and the number of the first one, which is reaped while the process lives on.
 *
 * Source: __exit_signal() and delayed_put_task_struct() in kernel/exit.c, de_thread() in fs/exec.c; Linux 5.10 to 7.2.
 */
SEC("tp_btf/sched_process_free")
int BPF_PROG(on_reaped, struct task_struct *task)
{
	__u64 key = (__u64)task;
	__u32 *slot = bpf_map_lookup_elem(&ending, &key);
	struct gpb_charge *c;

	if (!slot)
		return 0;
	c = &charges[*slot & (SLOTS - 1)];
	if (task->pid == task->tgid) {
		c->slot = *slot;
		*(volatile __u64 *)&c->ns = task->signal->sum_sched_runtime;
	}
	bpf_map_delete_elem(&ending, &key);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
