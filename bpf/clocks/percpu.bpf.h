/*
 * bpf/clocks/percpu.bpf.h - counters and clocks that each CPU has for itself.
 *
 * A CPU's own counters still have several writers. On a preemptible kernel a thread can be
 * preempted inside of a uprobe's program, and another thread then runs the same program on the same
 * CPU. When it is preempted between the load and the store of a plain n++, the store takes back all
 * that was counted meanwhile: a time slice full of hits, and not just one. So counters grow by
 * atomic additions, and what consists of several words changes by compare-and-swap.
 *
 * Source: bpf_prog_run_array_uprobe in include/linux/bpf.h and uprobe_prog_run in
 * kernel/trace/bpf_trace.c disable migration, not preemption; Linux 6.1 to 7.2.
 */
#ifndef BPF_PERCPU_BPF_H
#define BPF_PERCPU_BPF_H

#include "common.bpf.h"

/* The result is not used, so that the instruction is the one that does not fetch. */
static __always_inline void count(__u64 *n, __u64 more)
{
	__sync_fetch_and_add(n, more);
}

/* *@word: @from becomes @to. 0 when somebody else has changed it. */
static __always_inline int swap(__u64 *word, __u64 from, __u64 to)
{
	int swapped;

	preempt_point();
	swapped = atomic_swap(word, from, to);
	preempt_point();
	return swapped;
}

static __always_inline __u64 now_is(const __u64 *word)
{
	__u64 is;

	preempt_point();
	is = *(const volatile __u64 *)word;
	preempt_point();
	return is;
}

/* A hit, whether a window is open or not. */
static __always_inline void spent_hit(struct gpb_spent *s, __u64 cookie)
{
	count(&s->hits, 1);
	if (cookie & GPB_COOKIE_STEPPED)
		count(&s->stepped, 1);
}

#define OWN_OVER ~0ULL

/*
 * Books @ns for a hit of the window that opened at @since. Returns what probes had taken in this
 * window before, or OWN_OVER when a later window has begun.
 *
 * The first hit of a window sets ns to 0. It reads ns before since, because another thread may preempt
 * it and be the first instead. Then it finds that since is new, or ns has changed, and swap() fails.
 */
static __always_inline __u64 own_book(struct gpb_own_spent *own, __u64 since, __u64 ns)
{
	__u64 old = now_is(&own->ns), of = now_is(&own->since);

	if (of > since)
		return OWN_OVER;
	if (of < since) {
		swap(&own->ns, old, 0);
		swap(&own->since, of, since);
	}
	return atomic_add(&own->ns, ns);
}

/* No walk is that long, on an emulated machine either: the host of a virtual one took its CPU. */
#define WALK_MOST_NS (5 * 1000 * 1000ull)

/*
 * How long a stack walk took, from whose beginning to whose end @ns have passed. When the thread was
 * switched out meanwhile, the CPU ran other threads, perhaps of the target, or another machine: then the mean of the
 * walks before is taken. Global: verified once.
 */
ONCE_INLINE __u64 walk_took(const struct gpb_spent *s, __u64 ns, int switched)
{
	__u64 n;

	if (!s || (!switched && ns < WALK_MOST_NS))
		return ns;
	n = now_is(&s->samples);
	return n ? now_is(&s->ns) / n : 0;
}

static __always_inline void spent_walk(struct gpb_spent *s, __u64 ns)
{
	count(&s->samples, 1);
	count(&s->ns, ns);
}

#endif
