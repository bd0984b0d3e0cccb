/*
 * bpf/standing.bpf.h - what a goroutine's change of status means, given the one before.
 *
 * The probes see nearly all changes. One may be seen twice (where it is made, and where it is made
 * when that has failed), and some are not seen: a GC that stops a goroutine to scan it and lets
 * it go on, two goroutines that switch by iter.Pull. What lies around such a hole has no length.
 */
#ifndef BPF_STANDING_BPF_H
#define BPF_STANDING_BPF_H

#include "common.bpf.h"

struct change {
	__u64 g, now;
	__u32 old, new, slot;
	__u32 framed; /* the probed function has its frame */
};

enum standing_end {
	STANDING_NOTHING,
	STANDING_ENDED,	 /* a wait, of which we saw both ends */
	STANDING_UNSEEN, /* something happened in between */
	STANDING_LOST,	 /* and there a wait has ended */
};

static __always_inline int is_wait(__u32 status)
{
	return status == GPB_G_RUNNABLE || status == GPB_G_SYSCALL || status == GPB_G_WAITING;
}

/* A thread of C's that borrows a goroutine for a callback has been in no system call. */
static __always_inline int counts(const struct gpb_standing *was)
{
	return is_wait(was->status) && (was->status != GPB_G_SYSCALL || was->from == GPB_G_RUNNING);
}

/* How one stands that we had not met. What it did before is not known, unless it is new. */
static __always_inline struct gpb_standing standing_first(const struct change *c)
{
	return (struct gpb_standing){ .since = c->now,
				      .status = c->new,
				      .from = c->old == GPB_G_DEAD ? GPB_G_DEAD : GPB_G_RUNNING };
}

/* Move *at on by @c. *was: how it stood. */
static __always_inline enum standing_end standing_move(struct gpb_standing *at,
						       const struct change *c,
						       struct gpb_standing *was)
{
	*was = *at;
	at->since = c->now;
	at->status = c->new;
	/* One that did not park, as far as we saw, was stopped by a GC anywhere in its code. */
	at->from = was->status == c->old ? c->old : GPB_G_RUNNING;
	if (was->status == c->old)
		return counts(was) && was->since <= c->now ? STANDING_ENDED : STANDING_NOTHING;
	if (was->status == c->new && was->from == c->old) {
		at->from = was->from;
		return STANDING_NOTHING;
	}
	/* One that was made for iter.Pull waits from then on, and is begun unseen. */
	return counts(was) && was->from != GPB_G_DEAD ? STANDING_LOST : STANDING_UNSEEN;
}

#endif
