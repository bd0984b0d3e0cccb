/*
 * user/sampling/looks/look_times.h - at which moments something is looked at from outside, and for how much time each look stands.
 *
 * Time is cut into strata, and in each there is one look, at a random moment (stratified sampling): so a look stands for the length of
 * its stratum, and no rhythm of what is looked at is met more often than others. Where looks would take more CPU time than their share,
 * strata are longer. Strata that a look came too late for are left out: no look stands for them.
 *
 * All times are ns of CLOCK_MONOTONIC that the caller reads.
 */
#ifndef SAMPLING_LOOKS_LOOK_TIMES_H
#define SAMPLING_LOOKS_LOOK_TIMES_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Two that look at the same do so at the same moments where they can: what one has just read, the other one reads in a tenth of the time
 * (a process of 68 goroutines, at which somebody looks once a second: 480 us, and right after that 25 to 60). Zeroed, it is empty.
 */
struct look_pair {
	struct look_times *of[2]; /* borrowed */
};

/* A zeroed one is before its first phase. */
struct look_times {
	struct look_pair *pair; /* borrowed; NULL: it is alone */
	bool on;		/* in a phase, between look_times_begin() and look_times_pause() */
	uint64_t begun;		/* when the phase began */
	uint64_t at, len;	/* the present stratum */
	uint64_t due;		/* when it is looked at */
	uint64_t looks;		/* that were made, in all phases */
	double cost;		/* CPU ns of a look, a moving average */
	double phases_ns;	/* how long phases that are over took */
	double looked_ns;	/* all strata that were looked at */
};

/* Until look_times_leave() it is one of @pair, if there is room. Neither may be moved meanwhile. */
void look_times_join(struct look_times *t, struct look_pair *pair);
void look_times_leave(struct look_times *t);

/*
 * A phase begins, which stands for the time from @since on (not long ago; 0: @now). @share: the part of a CPU that looks may take;
 * @random: base/random.h.
 */
void look_times_begin(struct look_times *t, uint64_t now, uint64_t since, double share,
		      uint64_t *random);
/* The look was made that was due, for all of the present stratum. */
void look_times_looked(struct look_times *t);
/* It took @cpu_ns, or that was tried: sets when the next one is due, which is when the other one's of its pair is if that suits both. */
void look_times_next(struct look_times *t, uint64_t now, uint64_t cpu_ns, double share,
		     uint64_t *random);
/* The phase is over, if there is one. */
void look_times_pause(struct look_times *t, uint64_t now);

/* The time that a look stood for, in the mean; 0: there was none. */
double look_times_mean(const struct look_times *t);

#endif
