/* tests/support/rates.h - what the programs of test_probing.c do: events a second, by time. */
#ifndef RATES_H
#define RATES_H

#include <math.h>

static inline double heavy(double t)
{
	(void)t;
	return 3e6;
}

static inline double light(double t)
{
	(void)t;
	return 2000;
}

static inline double nearly_light(double t)
{
	(void)t;
	return 15000;
}

static inline double opening(double t)
{
	return t < 1 ? 5e6 : 50000;
}

static inline double then_nothing(double t)
{
	return t < 0.3 ? 5e6 : 0;
}

static inline double bursts(double t)
{
	return fmod(t, 1) < 0.05 ? 2e6 : 100;
}

/* Sometimes it comes twice, and then not for a long time. */
static inline double uneven(double t)
{
	return bursts(fmod(t, 7) < 2 ? 2 * t : fmod(t, 7)) + (t < 0.5 ? 1e6 : 0);
}

/* The second half of each burst belongs to another site. */
static inline double second_half(double t)
{
	return fmod(t, 0.05) < 0.025 ? 0 : 1;
}

static inline double other_bursts(double t)
{
	return fmod(floor(2 * t) * 0.618, 1) < 0.5;
}

#endif
