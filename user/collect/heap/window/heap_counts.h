/*
 * user/collect/heap/window/heap_counts.h - the runtimes' own counts of allocations of many targets, read every few milliseconds while they
 * are probed in windows, as those of one are (engine/probing.h).
 *
 * Without that a burst between two windows would be in the total and in no step of its own (sampling/windows/paces.h), and be credited to
 * whatever windows saw; and one that ends between two windows would have no total at all.
 */
#ifndef COLLECT_HEAP_WINDOW_HEAP_COUNTS_H
#define COLLECT_HEAP_WINDOW_HEAP_COUNTS_H

#include "base/loop/wake_timer.h"
#include "collect/heap/window/heap_window.h"
#include "engine/probed.h"
#include "sampling/own_work.h"

enum { HEAP_COUNTS_PARTS = 1 }; /* of what readings get (sampling/own_work.h) */

/* Of one target. */
struct heap_counted {
	struct heap_window *window;
	uint64_t
		cpu_ns; /* its CPU time at the last reading: where it is the same, nothing has changed */
};

struct heap_counts {
	struct probed *probed; /* borrowed */
	struct heap_counted *(*of)(void *part);
	struct own_work *own; /* borrowed */
	double took_ns;	      /* a round of readings takes so much CPU time, about */
	uint64_t
		due_ns; /* the next one; 0: as soon as possible, UINT64_MAX: nobody is in windows */
	struct wake_timer timer; /* in probed's descriptor */
};

/* The first fields are set. heap_counts_fini() is called also after a failure. */
int heap_counts_open(struct heap_counts *k, const struct collect_opts *o, struct err *e);
void heap_counts_fini(struct heap_counts *k);
/* Somebody may be in windows now who was not. */
void heap_counts_turn(struct heap_counts *k);
/* To be called when @probed is polled. */
void heap_counts_poll(struct heap_counts *k);

#endif
