/*
 * user/sampling/uneven.h - the period of a clock that falls into step with no program.
 *
 * A clock of one period meets a program that works every 10 ms at always the same point, or at points that wander slowly: of a program
 * that decodes for 3.8 ms and then renders for as long it saw one of the two alone, at 100.01 Hz for all of 5 s. So the
 * clock has another period every UNEVEN_TICKS ticks or so, drawn at random; that its rates are even in pairs keeps the number of ticks of
 * a second near to what was asked for. Simulated (test_uneven.c): shares of programs with periods of 3 ms to 1 s are as far from
 * the truth as independent ticks' would be, within a third.
 */
#ifndef SAMPLING_UNEVEN_H
#define SAMPLING_UNEVEN_H

#include <stdbool.h>
#include <stdint.h>

enum { UNEVEN_TICKS = 25 };

/* Zeroed but for the state of its random numbers (base/random.h). */
struct uneven {
	uint64_t random;
	uint64_t until_ns; /* this period's end */
	double apart;	   /* from the mean rate, in parts of it */
	bool pair;	   /* the next one is as far on the other side */
};

/* The next period at @now, where one is due; else 0. @mean_ns: of all of them. The clock starts anew with it. */
uint64_t uneven_period(struct uneven *u, uint64_t mean_ns, uint64_t now);

#endif
