/* bpf/waits.bpf.h - what the programs of block, mutex and wait profiles share: how a hit begins, and what a sample took. */
#ifndef BPF_WAITS_BPF_H
#define BPF_WAITS_BPF_H

#include "clocks/ownclock.bpf.h"
#include "parked.bpf.h"
#include "uprobe.bpf.h"

/* When a hit happens. */
struct moment {
	__u64 now;
	__u64 known_from; /* what began before this time is not known */
	__u64 switches;	  /* how often the thread had been switched out */
};

/* Accounts for a hit; @open: which of open_for tells. 0 when nothing is observed now. */
static __always_inline int hit_begins(struct moment *m, struct gpb_spent *spent, __u32 open,
				      __u64 cookie)
{
	spent_hit(spent, cookie);
	if (!is_open(open, GPB_OPEN_END))
		return 0;
	m->switches = switched_out();
	m->known_from = *(volatile __u64 *)&open_for[open & (GPB_TARGETS - 1)].since;
	m->now = bpf_ktime_get_ns();
	if (m->known_from > m->now)
		return 0;
	count(&spent->counted, 1);
	return 1;
}

/* Accounts for the time since @began that a sample took beyond an ordinary hit, and tells it. */
static __always_inline __u64 hit_sampled(const struct moment *m, struct gpb_spent *spent,
					 struct gpb_wait_clock *clock, __u64 began)
{
	__u64 now = bpf_ktime_get_ns();
	__u64 ns = walk_took(spent, now - began, switched_out() != m->switches);

	spent_walk(spent, ns);
	clock_pass(clock, now);
	return ns;
}

#endif
