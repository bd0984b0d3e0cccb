/*
 * bpf/phase.bpf.h - which steps of a thread's CPU clock are samples.
 *
 * Every clock_steps-th step is a sample; the first one comes after a random number of steps.
 */
#ifndef BPF_PHASE_BPF_H
#define BPF_PHASE_BPF_H

#include "common.bpf.h"

/*
 * Thread ids are used again. By its id alone, a new thread would continue with the phase of an
 * old one.
 */
struct thread_key {
	__u32 tid;
	__u32 pad;
	__u64 start; /* of the thread, ns since boot */
};

struct phase {
	__u64 last_ns;	/* its last step, monotonic */
	__u64 switches; /* how often it had been switched out until then */
	__s64 left;	/* steps until its next sample */
};

/* The position of each thread between two samples. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct thread_key);
	__type(value, struct phase);
} phases SEC(".maps");

/* Threads of all targets that ran for a step or longer. */
__u64 threads_seen = 0;

/* One step of a thread's clock. */
struct step {
	__u64 ns, switches;
};

/*
 * How many steps have passed since the last one. A clock that is served late skips the steps that
 * it missed. If the thread was never switched out since, the elapsed time tells how many these
 * were.
 */
static __always_inline __u64 steps_passed(const struct phase *p, const struct step *s,
					  __u64 step_ns)
{
	__u64 n = (s->ns - p->last_ns + step_ns / 2) / (step_ns ?: 1);

	return s->switches == p->switches && n > 1 ? n : 1;
}

/* The first step of a thread: how many samples it stands for, 0 or 1. */
static __always_inline __u64 phase_first(struct phase *p, const struct step *s, __u32 steps,
					 __u32 random)
{
	__u64 due;

	steps = steps ?: 1;
	p->last_ns = s->ns;
	p->switches = s->switches;
	p->left = random % steps;
	due = !p->left;
	if (due)
		p->left = steps;
	return due;
}

/*
 * A later step: how many samples it stands for: mostly none; one; or more when the clock was
 * late.
 */
static __always_inline __u64 phase_step(struct phase *p, const struct step *s, __u32 steps,
					__u64 step_ns)
{
	__u64 due;

	steps = steps ?: 1;
	p->left -= steps_passed(p, s, step_ns);
	p->last_ns = s->ns;
	p->switches = s->switches;
	if (p->left > 0)
		return 0;
	due = 1 + (__u64)-p->left / steps;
	p->left += due * steps;
	return due;
}

/*
 * How many samples this step of the current thread stands for: mostly none; one; or more when the
 * clock was late.
 */
static __always_inline __u64 samples_due(__u32 tid, __u32 steps, __u64 step_ns)
{
	struct task_struct *task = current_task();
	struct thread_key key = { .tid = tid, .start = task_read(task, start_time) };
	struct step now = { .ns = bpf_ktime_get_ns() };
	struct phase *p = bpf_map_lookup_elem(&phases, &key), fresh;
	__u64 due;

	now.switches = task_read(task, nvcsw) + task_read(task, nivcsw);
	if (p)
		return phase_step(p, &now, steps, step_ns);
	due = phase_first(&fresh, &now, steps, bpf_get_prandom_u32());
	if (!bpf_map_update_elem(&phases, &key, &fresh, BPF_NOEXIST))
		__sync_fetch_and_add(&threads_seen, 1);
	return due;
}

#endif
