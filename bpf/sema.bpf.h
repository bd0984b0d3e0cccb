/*
 * bpf/sema.bpf.h - what an unlock is charged with.
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
 * When the head of the queue began to wait. A goroutine that was put at the head inherited the
 * time of the one that was there before, because the queue as a whole is what waits. Goroutines
 * that came behind it later do not matter. Source: queue in runtime/sema.go.
 */
static __always_inline __u64 head_acquire(__u32 slot, const struct gpb_sched *c, __u64 head,
					  __u64 known_from)
{
	struct gpb_wait *w = wait_of_sudog(slot, c, head);
	__u64 acquire = w ? w->acquire : 0, queued;

	for (int i = 0; i < LIFO_CHAIN && w && (w->sema & GPB_SEMA_INHERITS); i++) {
		queued = w->queued;
		head = field_u64(head, c->sudog_waitlink);
		w = wait_of_sudog(slot, c, head);
		if (!w || w->acquire < known_from || !w->acquire || w->queued > queued)
			break;
		acquire = w->acquire;
	}
	return acquire >= known_from ? acquire : 0;
}

static __always_inline void set_acquire(struct gpb_wait *w, __u64 when)
{
	if (!w || !w->acquire)
		return;
	w->acquire = when;
	w->sema &= ~GPB_SEMA_INHERITS;
}

/* What an unlock finds; looked up before the clock is read. */
struct queue {
	struct gpb_wait *first, *next, *last; /* NULL: there is none, or it is not known */
	__u64 acquire;			      /* of the first one; 0: not known */
	__u64 waiters;	  /* how many wait behind it, as the runtime counts; 0 in older versions */
	__u64 link;	  /* not 0: a goroutine waits behind it */
	__u64 known_from; /* stamps from before this time are left over from earlier */
};

static __always_inline int queue_look(__u32 slot, const struct gpb_sched *c, __u64 head,
				      __u64 known_from, struct queue *q)
{
	*q = (struct queue){ .first = wait_of_sudog(slot, c, head), .known_from = known_from };
	q->acquire = head_acquire(slot, c, head, known_from);
	if (!q->acquire)
		return 0;
	q->link = field_u64(head, c->sudog_waitlink);
	if (q->link)
		q->next = wait_of_sudog(slot, c, q->link);
	if (!c->charge_all)
		return 1;
	q->waiters = field_u32(head, c->sudog_waiters) & 0xffff;
	if (q->link)
		q->last = wait_of_sudog(slot, c, field_u64(head, c->sudog_waittail));
	return 1;
}

/*
 * What an unlock is charged with, 0 for nothing: the time that the head of the queue waited and,
 * from Go 1.22 on, the mean of that and of the tail's time for each one that waits behind the
 * head. The order is the runtime's own: the time of the next one is set to now before the tail is
 * read, and the next one may be the tail. Source: dequeue and semrelease1 in runtime/sema.go, Go
 * 1.18 to 1.27.
 */
static __always_inline __u64 queue_charge(const struct queue *q, __u64 now)
{
	__u64 tail = q->acquire, delay;

	if (q->acquire > now)
		return 0;
	delay = now - q->acquire;
	/* The goroutine keeps that time if it finds the semaphore taken and goes on waiting. */
	set_acquire(q->first, q->acquire);
	set_acquire(q->next, now);
	if (q->link) {
		tail = q->last ? q->last->acquire : 0;
		set_acquire(q->last, now);
	}
	/* A tail that has waited since before we watched is not known, and not charged. */
	if (tail && tail >= q->known_from && tail <= now)
		delay += (now - tail + delay) / 2 * q->waiters;
	return delay ?: 1;
}

#endif
