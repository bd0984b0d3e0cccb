/* user/collect/heap/live/heap_live_priv.h - the table of followed objects, which heap_live.c fills and heap_live_end.c counts. */
#ifndef COLLECT_HEAP_LIVE_HEAP_LIVE_PRIV_H
#define COLLECT_HEAP_LIVE_HEAP_LIVE_PRIV_H

#include "base/map.h"
#include "base/vec.h"
#include "collect/heap/live/heap_live.h"
#include "go/runtime/rtspan.h"

struct live_object {
	uint64_t span, base, marks; /* as in struct rtspan_object */
	uint32_t index;
	uint32_t cell; /* index into cells */
	/*
	 * mheap_.sweepgen at the last look that found this slot in use, perhaps by another object;
	 * before the first look, at the allocation
	 */
	uint32_t gen;
	uint32_t window; /* index into weights */
	bool aged;	 /* it has survived a cycle */
	bool doubted;	 /* at this look, after cycles were missed */
	/* probability that it is this object: 1, or less after cycles were missed */
	float sure;
};

/* How objects fare: how many cycles they outlived, and how many did not outlive one. */
struct fate {
	uint64_t lived, died;
};

struct live_stack {
	uint64_t size;
	struct gpb_hash hash;
	struct fate fate;
	/* At this look, of objects whose cycles were missed: how many live, by fate, of all, and of those whose slot is in use. */
	float expected, taken;
};

/* The objects of one stack, in one group of windows. */
struct live_cell {
	uint32_t stack; /* index into stacks */
	struct heap_live_count count;
	/*
	 * Objects of one window, whose weight may not be known yet; those of other windows are in
	 * count.
	 */
	uint32_t window;
	uint32_t now;
};

struct heap_live {
	struct subject *s;
	struct gpb_live conf;
	struct rtspan_layout layout;
	struct heap_sites *sites;    /* owned, of GPB_IMAGES images; NULL: they are not wanted */
	size_t nimages;		     /* images whose sites are known */
	size_t cycle_images;	     /* images whose ends of GC cycles are reported */
	struct uprobes probe;	     /* the probes that report cycles */
	bool watched;		     /* these probes, or of many those of its file, are attached */
	struct heap_live_room *room; /* of many, borrowed; NULL: of one */
	uint64_t bytes;		     /* what it has of that */
	int timer;		     /* of one; -1: whoever has the room looks */
	uint64_t due_ns;	     /* CLOCK_MONOTONIC: when the next look is due; 0: none is */
	uint32_t wait_us;	     /* pause until the next look */
	bool ended;		     /* the last look was taken */
	bool gone;		     /* the target has gone */
	uint32_t gen;		     /* mheap_.sweepgen at the last look */
	uint64_t cycles;
	VEC(struct live_object) objects;
	VEC(struct live_stack) stacks;
	VEC(struct live_cell) cells;
	/* from a hash, and from a stack and group, to an index into these */
	struct map by_hash, by_cell;
	struct fate fate; /* of all objects together */
	bool doubted;	  /* some of them */
	/* of windows that saw objects; the first is for objects of no window */
	VEC(float) weights;
	uint64_t window; /* when the last of these windows opened */
	uint64_t followed, unconfirmed, untold, young, live;
	uint64_t looks_ns; /* how long all looks took */
	uint64_t look_ns;  /* and the longest one, and how many objects it had */
	size_t look_n;
};

/* Adds the objects of the present window to its count, with the window's weight. */
void heap_live_fold(const struct heap_live *l, struct live_cell *c);
struct live_stack *heap_live_stack_at(const struct heap_live *l, const struct live_object *o);
/*
 * The share of @s's objects that outlives so many cycles. Where @s has few objects, those of all
 * stacks fill up the sample.
 */
double heap_live_outlive(const struct heap_live *l, const struct live_stack *s, uint32_t cycles);

#endif
