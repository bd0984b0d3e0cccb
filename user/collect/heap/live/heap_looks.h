/*
 * user/collect/heap/live/heap_looks.h - looks at the followed objects of many targets: when each is due, what they take of our
 * own time, and the room that their objects share.
 *
 * A target is looked at after a GC cycle, as of one (heap_live.h). Looks have a part of what our own work may take, which targets
 * share by a quota: where one that collects all the time has used up its own, its looks come later, and it alone misses
 * cycles. Then its objects count as they do for one.
 */
#ifndef COLLECT_HEAP_LIVE_HEAP_LOOKS_H
#define COLLECT_HEAP_LIVE_HEAP_LOOKS_H

#include "base/loop/wake_timer.h"
#include "collect/heap/live/heap_live.h"
#include "engine/probed.h"
#include "sampling/own_work.h"

/* Of what readings get (sampling/own_work.h). Where looks come late, GC cycles are missed, and errors of what is in use are far larger. */
enum { HEAP_LOOKS_PARTS = 3 };

struct heap_looks {
	struct probed *probed;			  /* borrowed */
	struct heap_live *(*live_of)(void *part); /* NULL: its objects are not followed */
	struct heap_live_room room;
	size_t shared;	      /* for so many targets */
	struct own_work *own; /* borrowed */
	double given_ns;      /* what that gave since the window began, up to at_ns */
	uint64_t at_ns;
	uint64_t took_ns;	 /* by looks */
	struct wake_timer timer; /* in probed's descriptor */
};

/* The first fields are set. heap_looks_fini() is called also after a failure. */
int heap_looks_open(struct heap_looks *k, const struct collect_opts *o, struct err *e);
void heap_looks_fini(struct heap_looks *k);

/* A window begins. */
void heap_looks_begin(struct heap_looks *k);
/* So many targets share room and time from now on. */
void heap_looks_share(struct heap_looks *k, size_t targets);
/* Looks at those that are due, after the ring was drained. */
void heap_looks_poll(struct heap_looks *k);
/* The last looks at all that have not had theirs. */
void heap_looks_last(struct heap_looks *k);

#endif
