/*
 * bpf/cpu.bpf.c - on-CPU sampler. It runs when the CPU clock of one of the target's threads has
 * advanced by one step; every clock_steps-th step is a sample.
 *
 * A clock starts when its thread (or the window) does. Sampling at whole periods would therefore
 * miss half a period of each thread, and would never see short threads. Steps smaller than the
 * period, with the first sample after a random number of steps, make the sampling unbiased: a
 * thread that runs for a third of a period is seen in a third of all cases.
 *
 * Threads that existed at the start have a clock each that user space opened, and the threads
 * that they start inherit it. While these clocks are being opened, a thread can be born that
 * inherits one and, being new in the list, gets another one. Such threads are in own_clock, and
 * the inherited clock is ignored beside their own.
 *
 * The clock alone does not tell which of the two it is: when the kernel switches between two
 * threads whose clocks have the same origin, it leaves the clocks running and exchanges their
 * owners (perf_event_context_sched_out). A thread with two clocks does not share its origin with
 * others.
 */
#include "phase.bpf.h"
#include "pidns.bpf.h"
#include "sample.bpf.h"

#include "rules.bpf.h"

const volatile __u32 clock_steps = 1; /* steps for each sample */
const volatile __u64 step_ns = 1;

/* process id -> slot in targets */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GPB_TARGETS);
	__type(key, __u32);
	__type(value, __u32);
} slot_of_tgid SEC(".maps");

/* thread id -> what is known of the clock that user space opened for a thread that may have two */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct gpb_own_clock);
} own_clock SEC(".maps");

/* Samples that were taken, for each target, whatever became of them. */
__u64 samples[GPB_TARGETS];

/*
 * Does this hit count? A clock that user space opened for a thread carries a cookie; the copies
 * that later threads inherit carry none.
 */
static __always_inline int clock_counts(void *ctx, __u32 tid)
{
	struct gpb_own_clock *own = bpf_map_lookup_elem(&own_clock, &tid);
	__u64 start;

	if (!own)
		return 1;
	start = bpf_get_current_task_btf()->start_time;
	if (bpf_get_attach_cookie(ctx)) {
		own->start = start;
		own->ticked = 1;
		return 1;
	}
	if (!own->start)
		return 0;
	if (own->start != start) /* another thread, which was given the id of one that ended */
		return 1;
	/*
	 * Two clocks of one thread tick in turns. A clock that ticks alone has been exchanged for
	 * the thread's own.
	 */
	if (!own->ticked)
		return 1;
	own->ticked = 0;
	return 0;
}

/* The user registers, also when the kernel was interrupted. */
static __always_inline int user_regs(struct bpf_perf_event_data *ctx, struct regs *out, int *user)
{
	*user = regs_in_user(&ctx->regs);
	if (*user) {
		*out = regs_of(&ctx->regs);
		return 1;
	}
	return regs_saved(out);
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
		lose(GPB_LOSS_UNREADABLE);
		return;
	}
	if (!user && (t->flags & GPB_TARGET_KERNEL))
		kernel_frames(ctx, s);
	g = current_g(t);
	walk_interrupted(&sc->walk, s, t, slot, g, &r);
	if (t->flags & (GPB_TARGET_GOID | GPB_TARGET_LABELS))
		sample_identity(sc, t, field_u64(field_u64(g, t->g_m), t->m_curg));
	sample_send(sc);
}

SEC("perf_event")
int cpu_clock(struct bpf_perf_event_data *ctx)
{
	__u64 id = pid_tgid();
	__u32 tgid = id >> 32, *slot;
	struct gpb_target *t;
	struct scratch *sc;
	__u64 due;

	slot = bpf_map_lookup_elem(&slot_of_tgid, &tgid);
	t = slot ? bpf_map_lookup_elem(&targets, slot) : NULL;
	if (!t) {
		lose(GPB_LOSS_NO_TARGET);
		return 0;
	}
	if (!clock_counts(ctx, (__u32)id))
		return 0;
	due = samples_due((__u32)id, clock_steps, step_ns);
	if (!due)
		return 0;
	if (*slot < GPB_TARGETS)
		__sync_fetch_and_add(&samples[*slot], due);
	if (!same_program(t))
		return 0;
	sc = scratch_claim();
	if (!sc)
		return 0;
	take(ctx, sc, t, *slot, due);
	scratch_release(sc);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
