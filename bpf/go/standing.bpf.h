/*
 * bpf/go/standing.bpf.h - what a goroutine's change of status means, given the change before it.
 *
 * The probes see nearly all changes. One change may be seen twice: where it is attempted, and
 * where it is made when the attempt failed. Some changes are not seen: a GC stops a goroutine to
 * scan it and lets it continue, and two goroutines switch by iter.Pull. A wait that such a gap
 * interrupts has no known length.
 */
#ifndef BPF_STANDING_BPF_H
#define BPF_STANDING_BPF_H

#include "common.bpf.h"

struct change {
	__u64 g, now;
	__u32 old, new, slot;
	__u32 framed; /* the probed function has set up its frame */
};

enum standing_end {
	STANDING_NOTHING,
	STANDING_ENDED,	 /* a wait has ended, and we saw its beginning and its end */
	STANDING_UNSEEN, /* something happened in between that we did not see */
	STANDING_LOST,	 /* and a wait ended there */
};

static __always_inline int is_wait(__u32 status)
{
	return status == GPB_G_RUNNABLE || status == GPB_G_SYSCALL || status == GPB_G_WAITING;
}

/*
 * Does this count? A thread of C's that borrows a goroutine for a callback has been in no system
 * call.
 */
static __always_inline int counts(const struct gpb_standing *was)
{
	return is_wait(was->status) && (was->status != GPB_G_SYSCALL || was->from == GPB_G_RUNNING);
}

/*
 * The state of a goroutine that we have not met before. Its past is not known, unless it is new.
 */
static __always_inline struct gpb_standing standing_first(const struct change *c)
{
	return (struct gpb_standing){ .since = c->now,
				      .status = c->new,
				      .from = c->old == GPB_G_DEAD ? GPB_G_DEAD : GPB_G_RUNNING };
}

/*
 * In windows: does a wait count that begins @after ns after the window opened? It does from GPB_LONG_NS
 * up to @begin_ns. The beginning of a wait that ends before GPB_LONG_NS was not seen, so it may have
 * been long or short, and that decides the weight of the time runnable that follows it.
 */
static __always_inline int may_begin(__u64 after, __u64 begin_ns)
{
	return after >= GPB_LONG_NS && after < begin_ns;
}

/* Moves *at on by the change @c. *was: its state before. */
static __always_inline enum standing_end standing_move(struct gpb_standing *at,
						       const struct change *c,
						       struct gpb_standing *was)
{
	*was = *at;
	at->since = c->now;
	at->status = c->new;
	/* A goroutine whose park we did not see was stopped by a GC somewhere in its code. */
	at->from = was->status == c->old ? c->old : GPB_G_RUNNING;
	if (was->status == c->old)
		return counts(was) && was->since <= c->now ? STANDING_ENDED : STANDING_NOTHING;
	if (was->status == c->new && was->from == c->old) {
		at->from = was->from;
		return STANDING_NOTHING;
	}
	/* A goroutine that was made for iter.Pull waits from its beginning, which is not seen. */
	return counts(was) && was->from != GPB_G_DEAD ? STANDING_LOST : STANDING_UNSEEN;
}

#endif
