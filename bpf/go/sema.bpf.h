/*
 * bpf/go/sema.bpf.h - what an unlock is charged with.
 *
 * The runtime stamps its sudogs (acquiretime) only while its own mutex profile is on. Here the
 * stamps are in a table by goroutine, and the queue of a semaphore is read from the target.
 *
 * Source: semacquire1, queue, dequeue and semrelease1 in runtime/sema.go, Go 1.18 to 1.27.
 */
#ifndef BPF_SEMA_BPF_H
#define BPF_SEMA_BPF_H

#include "common.bpf.h"

/* depth limit; a treap with 2^20 addresses on one of 251 roots has depth 40 at most */
#define TREAP_DEPTH 64
#define LIFO_CHAIN  16 /* goroutines that went to the head of a queue one after the other */
/* goroutines of a queue whose time of waiting is looked up one by one; old kernels verify each turn with all that follows */
#ifdef GPB_OLD
#define QUEUE_WALK 4
#else
#define QUEUE_WALK 16
#endif

#ifndef GPB_HOST
/* goroutine_key() -> where that goroutine stands. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GPB_WAITS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, struct gpb_wait);
} waits SEC(".maps");

static __always_inline struct gpb_wait *wait_of(__u32 slot, __u64 g)
{
	__u64 key = goroutine_key(slot, g);

	return bpf_map_lookup_elem(&waits, &key);
}
#endif

/*
 * One step down the treap: @s itself when it is for @addr, else its child on that side, 0 for
 * none. A global function is verified once, and not in each turn of the loop that calls it.
 */
ONCE_CALLED __u64 sema_step(const struct gpb_sched *c, __u64 s, __u64 addr)
{
	__u64 elem, child;

	if (!c)
		return 0;
	elem = field_u64(s, c->sudog_elem);
	if (elem == addr)
		return s;
	child = field_u64(s, addr < elem ? c->sudog_prev : c->sudog_next);
	return child == s ? 0 : child;
}

/*
 * The sudog at the head of the queue for @addr. The goroutine that is probed holds the queue's
 * lock.
 */
static __always_inline __u64 sema_head(const struct gpb_sched *c, __u64 root, __u64 addr)
{
	__u64 s = field_u64(root, c->semaroot_treap), next;

	for (int i = 0; i < TREAP_DEPTH && s; i++) {
		next = sema_step(c, s, addr);
		if (next == s)
			return s;
		s = next;
	}
	return 0;
}

static __always_inline struct gpb_wait *wait_of_sudog(__u32 slot, const struct gpb_sched *c,
						      __u64 sudog)
{
	return sudog ? wait_of(slot, field_u64(sudog, c->sudog_g)) : NULL;
}

/*
 * The goroutine whose time the head of the queue has, NULL when that is not known. A goroutine that was
 * put at the head inherited the time of the one that was there before, because the queue as a whole
 * is what waits. Goroutines that came behind it later do not matter. Source: queue in
 * runtime/sema.go.
 */
static __always_inline struct gpb_wait *head_stamp(__u32 slot, const struct gpb_sched *c,
						   __u64 head, __u64 known_from)
{
	struct gpb_wait *w = wait_of_sudog(slot, c, head), *stamp = w;
	__u64 queued;

	for (int i = 0; i < LIFO_CHAIN && w && (w->sema & GPB_SEMA_INHERITS); i++) {
		queued = w->queued;
		head = field_u64(head, c->sudog_waitlink);
		w = wait_of_sudog(slot, c, head);
		if (!w || w->acquire < known_from || !w->acquire || w->queued > queued)
			break;
		stamp = w;
	}
	return stamp && stamp->acquire && stamp->acquire >= known_from ? stamp : NULL;
}

/* A global function where there are any: verified once. */
ONCE_INLINE int set_acquire(struct gpb_wait *w, __u64 when, const struct gpb_mark *mark)
{
	if (!w || !mark || !w->acquire)
		return 0;
	w->acquire = when;
	w->charged = *mark;
	w->sema &= ~GPB_SEMA_INHERITS;
	return 0;
}

/* A queue, apart from what is known of its goroutines. */
struct line {
	__u64 acquire; /* of the first one; 0: not known */
	__u64 waiters; /* how many wait behind it, as the runtime counts; 0 in older versions */
	__u64 link;    /* not 0: a goroutine waits behind it */
	__u64 tail;    /* not 0: the last one that does */
	__u64 late;    /* queue_late() */
};

/* What an unlock finds; looked up before the clock is read. */
struct queue {
	struct gpb_wait *first, *next, *last; /* NULL: there is none, or it is not known */
	struct line line;
	struct gpb_mark mark; /* the moment of line.acquire */
};

static __always_inline int queue_look(__u32 slot, const struct gpb_sched *c, __u64 head,
				      __u64 known_from, struct queue *q)
{
	struct gpb_wait *stamp = head_stamp(slot, c, head, known_from);

	*q = (struct queue){ .first = wait_of_sudog(slot, c, head) };
	q->line.link = field_u64(head, c->sudog_waitlink);
	if (c->charge_all) {
		q->line.waiters = field_u32(head, c->sudog_waiters) & 0xffff;
		if (q->line.link)
			q->line.tail = field_u64(head, c->sudog_waittail);
	}
	if (!stamp)
		return 0;
	q->line.acquire = stamp->acquire;
	q->mark = stamp->charged;
	return 1;
}

static __always_inline void queue_look_behind(__u32 slot, const struct gpb_sched *c,
					      struct queue *q)
{
	q->next = wait_of_sudog(slot, c, q->line.link);
	q->last = wait_of_sudog(slot, c, q->line.tail);
}

/*
 * What an unlock is charged with, 0 for nothing: the time that the head of the queue waited and,
 * from Go 1.22 on, the mean of that and of the tail's time for each one that waits behind the
 * head. Stamps from before @known_from are left over from earlier. The order is the runtime's own: the
 * time of the next one is set to now before the tail is read, and the next one may be the tail. Source: dequeue and
 * semrelease1 in runtime/sema.go, Go 1.18 to 1.27.
 */
static __always_inline __u64 queue_charge(const struct queue *q, __u64 known_from, __u64 now)
{
	__u64 tail = q->line.acquire, delay;

	if (q->line.acquire > now)
		return 0;
	delay = now - q->line.acquire;
	if (q->line.link)
		tail = !q->last ? 0 : q->last == q->next ? now : q->last->acquire;
	/* A tail that has waited since before we watched is not known, and not charged. */
	if (tail && tail >= known_from && tail <= now)
		delay += (now - tail + delay) / 2 * q->line.waiters;
	return delay ?: 1;
}

/* Makes the stamps new, as dequeue does; then @q has this moment's mark. */
static __always_inline void queue_stamp(struct queue *q, __u64 now, __u64 own, __u32 cpu,
					__u8 chance)
{
	/* The goroutine keeps that time if it finds the semaphore taken and goes on waiting. */
	set_acquire(q->first, q->line.acquire, &q->mark);
	q->mark.own = own;
	q->mark.cpu = cpu;
	q->mark.chance = chance;
	set_acquire(q->next, now, &q->mark);
	set_acquire(q->last, now, &q->mark);
}

/* How much later than @from a goroutine in a queue came. */
static __always_inline __u64 came_late(__u32 slot, const struct gpb_sched *c, __u64 sudog,
				       __u64 from)
{
	struct gpb_wait *w = wait_of_sudog(slot, c, sudog);

	return w && w->acquire > from ? w->acquire - from : 0;
}

/*
 * How much later than the head the others came, all together, << 16, and how many they are. The runtime's
 * own count of them may be too large by one: it is not decremented to zero. Where more than
 * QUEUE_WALK wait, they are as many as the runtime says, and of those behind the first ones the last one alone
 * is late: in the long run one comes for each that goes. A global function: the number of turns of its
 * loop would be known to all that follows, which would be verified for each.
 */
ONCE_CALLED __u64 queue_late(__u32 slot, const struct gpb_sched *c, const struct line *q)
{
	__u64 at, late = 0, n = 0;

	if (!c || !q)
		return 0;
	at = q->link;
	for (int i = 0; i < QUEUE_WALK && at; i++) {
		late += came_late(slot, c, at, q->acquire);
		at = field_u64(at, c->sudog_waitlink);
		n++;
	}
	if (at && q->waiters > n) {
		late += came_late(slot, c, q->tail, q->acquire);
		n = q->waiters;
	}
	return late << 16 | n;
}

/* How long all of them have waited. */
static __always_inline __u64 line_waited(const struct line *l, __u64 now)
{
	return (1 + (l->late & 0xffff)) * (now - l->acquire) - (l->late >> 16);
}

#endif
