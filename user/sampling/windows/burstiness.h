/*
 * user/sampling/windows/burstiness.h - how steadily a target does what is probed. It looks at an exact count
 * of that: the runtime's own number of allocations.
 */
#ifndef SAMPLING_WINDOWS_BURSTINESS_H
#define SAMPLING_WINDOWS_BURSTINESS_H

#include <stdbool.h>
#include <stdint.h>

struct burstiness {
	bool known;	      /* count and at are set */
	double count;	      /* at the last look */
	uint64_t at;	      /* CLOCK_MONOTONIC */
	double rate;	      /* per ns, between the last two looks */
	double mean, mean_ns; /* the mean of that over the last seconds, and over how many ns */
	/* share of the last seconds in which next to nothing was done, and over how many ns */
	double idle, idle_ns;
	double calm,
		calm_ns; /* mean since the rate was last above the mean; of so much of it, at most */
	double quiet;	 /* ns for which that has been so */
	double pause;	 /* ns: the longest time between two bursts */
	uint64_t moved;	 /* when the count last changed */
};

/* True when its pace has changed so that what was learned of it no longer holds. */
bool burstiness_look(struct burstiness *r, uint64_t now, double count);
/*
 * Is all work done in a small part of the time, so that windows at random times would meet next
 * to nothing of it?
 */
bool burstiness_is_high(const struct burstiness *r);

#endif
