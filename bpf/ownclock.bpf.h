/*
 * bpf/ownclock.bpf.h - how much of a window was the target's own time on this CPU, and not that
 * of probes (struct gpb_wait_clock).
 */
#ifndef BPF_OWNCLOCK_BPF_H
#define BPF_OWNCLOCK_BPF_H

#include "common.bpf.h"

#define IDLE_NS 500000 /* between hits that are so far apart, the target did not run */

/*
 * For a hit at @now, in a window that opened at @opened: is there own time left in which waits
 * may begin?
 */
static __always_inline int own_time_is_left(struct gpb_wait_clock *k, const struct gpb_own *own,
					    __u64 own_share, __u64 short_ns, __u64 opened,
					    __u64 now)
{
	__u64 passed;

	if (k->since != opened) {
		k->since = k->last = opened;
		k->own = 0;
	}
	passed = now > k->last ? now - k->last : 0;
	k->last = now;
	if (passed < short_ns) {
		k->shorts++;
		k->short_ns += passed;
		k->own += passed * own_share / GPB_SHARE_ONE;
	} else {
		k->longs += passed < IDLE_NS;
		k->long_ns += passed < IDLE_NS ? passed : 0;
		k->own += passed - own->hit_ns;
	}
	return k->own < own->ns;
}

#endif
