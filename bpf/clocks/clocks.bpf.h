/*
 * bpf/clocks/clocks.bpf.h - threads that may have two CPU clocks: which hits count.
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
#ifndef BPF_CLOCKS_BPF_H
#define BPF_CLOCKS_BPF_H

#include "common.bpf.h"

/* thread id -> what is known of the clock that user space opened for a thread that may have two */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct gpb_own_clock);
} own_clock SEC(".maps");

/*
 * Is this the clock that user space opened for a thread that may have two? It carries a cookie. Where
 * there are no cookies it has a period of its own, longer by some nanoseconds; the clocks that the
 * thread's own threads inherit have that as well, but these have other ones of their own.
 */
static __always_inline int clock_is_own(void *ctx, const struct gpb_own_clock *own)
{
#ifdef GPB_OLD
	return ((struct bpf_perf_event_data *)ctx)->sample_period == step_ns + own->mark;
#else
	(void)own;
	return bpf_get_attach_cookie(ctx) != 0;
#endif
}

/* Set before load: may kernel memory be read that no type leads to? lockdown=confidentiality refuses it. */
const volatile __u32 reads_kernel = 0;

/* The clock that hits. */
struct clock {
	__u64 id, count; /* ns */
	int opened;	 /* by user space, and not inherited */
};

static __always_inline int clock_read(void *ctx, struct clock *c)
{
	const struct bpf_perf_event_data_kern *k = ctx;
	const struct perf_event *ev = NULL, *parent = NULL;

	if (!reads_kernel || bpf_probe_read_kernel(&ev, sizeof(ev), &k->event) ||
	    bpf_probe_read_kernel(&parent, sizeof(parent), &ev->parent) ||
	    bpf_probe_read_kernel(&c->id, sizeof(c->id), &ev->id))
		return 0;
	c->opened = !parent;
	return !bpf_probe_read_kernel(&c->count, sizeof(c->count), &ev->count);
}

/* Does this hit count? */
static __always_inline int clock_counts(void *ctx, __u32 tid)
{
	struct gpb_own_clock *own = bpf_map_lookup_elem(&own_clock, &tid);
	__u64 start;

	if (!own)
		return 1;
	start = task_read(current_task(), start_time);
	if (clock_is_own(ctx, own)) {
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

#endif
