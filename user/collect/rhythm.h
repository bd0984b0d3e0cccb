/*
 * user/collect/rhythm.h - how steadily a target does what is probed, by looks at an exact count of
 * it: the runtime's own number of allocations.
 */
#ifndef COLLECT_RHYTHM_H
#define COLLECT_RHYTHM_H

#include <stdbool.h>
#include <stdint.h>

struct rhythm {
	bool known;	      /* count and at are */
	double count;	      /* at the last look */
	uint64_t at;	      /* CLOCK_MONOTONIC */
	double rate;	      /* per ns, between the last two looks */
	double mean, mean_ns; /* the same of the last seconds; and for how long that is known */
	double idle, idle_ns; /* share of the last seconds in which next to nothing was done */
	double calm,
		calm_ns; /* mean since the rate was last above the mean; of so much of it, at most */
	double quiet;	 /* ns: for how long that is */
	double pause;	 /* ns: the longest time between two bursts */
	uint64_t moved;	 /* when the count had last moved */
};

/* True: what was learned of its pace so far is true no more. */
bool rhythm_look(struct rhythm *r, uint64_t now, double count);
/*
 * All is done in a small part of the time, so that windows at random times would meet next to
 * nothing of it.
 */
bool rhythm_bursts(const struct rhythm *r);

#endif
