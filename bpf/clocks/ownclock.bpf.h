/*
 * bpf/clocks/ownclock.bpf.h - how much of a window was the target's own time on this CPU, and not that
 * of probes (struct gpb_wait_clock).
 */
#ifndef BPF_OWNCLOCK_BPF_H
#define BPF_OWNCLOCK_BPF_H

#include "clocks/percpu.bpf.h"

#define IDLE_NS 500000 /* between hits that are so far apart, the target did not run */

/*
 * The time from the last hit to @now, which counts for one hit alone. 0: another thread's hit, which
 * preempted this one, has counted it.
 */
static __always_inline __u64 clock_pass(struct gpb_wait_clock *k, __u64 now)
{
	__u64 last = now_is(&k->last);

	return now > last && swap(&k->last, last, now) ? now - last : 0;
}

#define CLOCK_OVER ~0ULL

/*
 * The time from the last hit to this one at @now, in the window that opened at @opened; CLOCK_OVER:
 * a later one has begun. The first hit of a window sets own and last back. It reads both before since,
 * as own_book() does: swap() fails where another thread has preempted it and was the first. Global:
 * verified once.
 */
ONCE_INLINE __u64 clock_hit(struct gpb_wait_clock *k, __u64 opened, __u64 now)
{
	__u64 own, last, of;

	if (!k)
		return CLOCK_OVER;
	own = now_is(&k->own);
	last = now_is(&k->last);
	of = now_is(&k->since);
	if (of > opened)
		return CLOCK_OVER;
	if (of < opened) {
		swap(&k->own, own, 0);
		swap(&k->last, last, opened);
		swap(&k->since, of, opened);
	}
	return clock_pass(k, now);
}

/*
 * For a hit at @now, in a window that opened at @opened: is there own time left in which waits
 * may begin?
 */
static __always_inline int own_time_is_left(struct gpb_wait_clock *k,
					    const struct gpb_undilated *own, __u64 own_share,
					    __u64 short_ns, __u64 opened, __u64 now)
{
	__u64 passed = clock_hit(k, opened, now);

	if (passed == CLOCK_OVER)
		return 0;
	if (!passed) {
		;
	} else if (passed < short_ns) {
		count(&k->shorts, 1);
		count(&k->short_ns, passed);
		count(&k->own, passed * own_share / GPB_SHARE_ONE);
	} else {
		if (passed < IDLE_NS) {
			count(&k->longs, 1);
			count(&k->long_ns, passed);
		}
		count(&k->own, passed - own->hit_ns);
	}
	return now_is(&k->own) < own->ns;
}

#endif
