/* user/collect/heap/live/heap_looks.c - one timer for all targets; the one that is due first sets it. */
#include "collect/heap/live/heap_looks.h"

#include <time.h>

#include "base/clock.h"
#include "probe/quota.h"

/*
 * Followed objects of all targets, with their stacks; arrays that grow may take twice as much. Room for some 15,000 objects of
 * different stacks, or 40,000 of few.
 */
#define ROOM_BYTES (2u << 20)

#define STRETCH_NS 5000000000ull /* what may be used in this time may be used at once */
#define PUT_OFF_NS 20000000ull	 /* one that may not be looked at now may be then */
#define REST_NS \
	5000000ull /* the files of a target that is looked at again within this time stay open */

int heap_looks_open(struct heap_looks *k, const struct collect_opts *o, struct err *e)
{
	int ret;

	k->own = o->host.own;
	heap_looks_share(k, 1);
	heap_looks_begin(k);
	ret = wake_timer_open(&k->timer, e);
	return ret ? ret : probed_watch(k->probed, k->timer.fd, e);
}

void heap_looks_fini(struct heap_looks *k)
{
	wake_timer_close(&k->timer);
}

void heap_looks_begin(struct heap_looks *k)
{
	k->at_ns = now_ns();
	k->given_ns = 0;
	k->took_ns = 0;
}

static double share_of(const struct heap_looks *k)
{
	return k->own->part * HEAP_LOOKS_PARTS;
}

/* Has it, or have all together, used less than there is for it by now? */
static bool may_look(const struct heap_looks *k, const struct heap_live *l, uint64_t now)
{
	double all = k->given_ns + ((double)(now - k->at_ns) + STRETCH_NS) * share_of(k);
	const struct gpb_quota q = quota_of((uint64_t)all, 0, k->shared);

	return k->own->part <= 0 || gpb_quota_allows(&q, heap_live_took(l), k->took_ns, 0);
}

void heap_looks_share(struct heap_looks *k, size_t targets)
{
	k->room.first_ns = 0; /* some may have come, and others gone */
	if (targets == k->shared)
		return;
	k->shared = targets;
	k->room.quota = quota_of(ROOM_BYTES, 0, targets);
}

static struct heap_live *live_at(const struct heap_looks *k, uint32_t i)
{
	struct set_member *m = probed_member(k->probed, i);

	return m && !m->done ? k->live_of(m->part) : NULL;
}

/* One that has gone is not asked: its number may be another's. */
static bool wake(struct set_member *m)
{
	return m->on && !target_wake(m->t->subject->target, NULL);
}

static void rest(struct set_member *m)
{
	if (m->on && m->set->turn.windows)
		target_linger(m->t->subject->target);
	else if (m->on)
		target_rest(m->t->subject->target);
}

static void look_at(struct heap_looks *k, struct set_member *m, struct heap_live *l)
{
	uint64_t due, took = heap_live_took(l);

	if (!wake(m) || heap_live_look(l, NULL))
		heap_live_gone(l);
	took = heap_live_took(l) - took;
	k->took_ns += took;
	k->own->read_ns += took;
	due = heap_live_due(l);
	if (!due || due > now_ns() + REST_NS)
		rest(m);
}

/* Looks at those that are due by @now. Returns when the next one is. */
static uint64_t look_around(struct heap_looks *k, uint64_t now)
{
	uint64_t first = UINT64_MAX;

	for (uint32_t i = 0; i < k->probed->slots; i++) {
		struct heap_live *l = live_at(k, i);
		uint64_t due = l ? heap_live_due(l) : 0;

		if (due && due <= now) {
			if (may_look(k, l, now))
				look_at(k, probed_member(k->probed, i), l);
			else
				heap_live_put_off(l, now + PUT_OFF_NS);
			due = heap_live_due(l);
		}
		if (due && due < first)
			first = due;
	}
	return first;
}

void heap_looks_poll(struct heap_looks *k)
{
	uint64_t now = now_ns();

	wake_timer_heard(&k->timer, now);
	k->given_ns += (double)(now - k->at_ns) * share_of(k);
	k->at_ns = now;
	/* We are woken far more often than one is due: nobody is asked before that. */
	if (k->room.first_ns <= now)
		k->room.first_ns = look_around(k, now);
	wake_timer_set(&k->timer, k->room.first_ns);
}

static bool last_of(struct set_member *m, struct heap_live *l, unsigned try)
{
	bool again = false;

	if (!wake(m) || heap_live_last(l, try, &again, NULL))
		heap_live_gone(l);
	if (!again)
		rest(m);
	return again;
}

void heap_looks_last(struct heap_looks *k)
{
	bool again = true;

	for (unsigned try = 0; again; try++) {
		again = false;
		for (uint32_t i = 0; i < k->probed->slots; i++) {
			struct heap_live *l = live_at(k, i);

			again |= l && last_of(probed_member(k->probed, i), l, try);
		}
		if (again)
			heap_live_wait();
	}
}
