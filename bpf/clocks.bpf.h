/*
 * bpf/clocks.bpf.h - threads that may have two CPU clocks: which hits count.
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

#endif
