/*
 * user/collect/fine_rate.h - how densely a target that is observed in full is sampled when nobody asked
 * for a rate.
 *
 * Go's default rates suit a program that samples itself all the time. A probe has been paid for by each
 * event already, and a light program has few: sampled at Go's rate, a window of some seconds would show
 * next to nothing of it. So the rate is as fine as a fifth of the budget pays for.
 */
#ifndef COLLECT_FINE_RATE_H
#define COLLECT_FINE_RATE_H

#include <stdint.h>

/* What a short look saw, before anything counted. Zeroed: there was none. */
struct fine_seen {
	double events, bytes; /* bytes: of all of them */
	double ns;	      /* for how long */
};

/* One in how many events may be sampled, >= 1. @budget_ppm > 0. */
double fine_every(const struct fine_seen *s, unsigned budget_ppm);
/* Mean bytes between samples of allocations, at most @most. */
uint64_t fine_heap_rate(const struct fine_seen *s, unsigned budget_ppm, uint64_t most);

#endif
