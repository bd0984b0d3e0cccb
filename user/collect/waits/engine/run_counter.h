/*
 * user/collect/waits/engine/run_counter.h - the runtime's own count of how often goroutines began to run, read every few
 * milliseconds while there are windows: what sampling/dilation.h compares windows with.
 */
#ifndef COLLECT_WAITS_ENGINE_RUN_COUNTER_H
#define COLLECT_WAITS_ENGINE_RUN_COUNTER_H

#include "base/again.h"
#include "go/runtime/counters/rtcounters.h"
#include "sampling/dilation.h"
#include "subject/subject.h"

/* A struct that is zeroed, except for its first member, is a new one. */
struct run_counter {
	struct subject *s; /* borrowed */
	struct rtcounters *counters;
	struct again open_again; /* when they are searched for again */
	uint64_t last;		 /* the count at the last time that it was read; 0: it never was */
	/* The count where the time begins that windows stand for, and where full observation has just ended. */
	uint64_t first, marked;
	uint64_t every_ns;	  /* a step is so long, and at least RUN_STEP_NS */
	double took_ns;		  /* CPU time that a reading takes us: a moving average */
	double cpu_before;	  /* ns: the target's clock */
	uint64_t step_count;	  /* the count when the present step began; 0: not known */
	double step_began;	  /* CLOCK_MONOTONIC, ns */
	struct rtsweeper sweeper; /* when the present step began */
	bool sweeper_known;
};

/* Full observation ends here, at the first moment after it: what is counted from now on belongs to windows. */
void run_counter_mark(struct run_counter *r);
/* Windows begin; or there are no more, and what was counted while there were is added to @to. */
void run_counter_begin(struct run_counter *r);
void run_counter_end(struct run_counter *r, struct dilation *to);
/* From when on run_counter_poll() has something to do (CLOCK_MONOTONIC); 0: never. */
uint64_t run_counter_due(const struct run_counter *r);
/* To be called often while there are windows: reads the count from time to time. */
void run_counter_poll(struct run_counter *r, struct dilation *to);
/* A window is over: reads the count now, since the target may exit. */
void run_counter_read(struct run_counter *r, struct dilation *to);
void run_counter_fini(struct run_counter *r);

#endif
