/* user/ingest/exectrace/ticks.h - times of a trace, of which hostile ones stop at the largest. */
#ifndef INGEST_EXECTRACE_TICKS_H
#define INGEST_EXECTRACE_TICKS_H

#include <stdint.h>

/* As Go's readers round: towards 0, after a product of doubles. */
static inline int64_t ticks_ns(double ticks, double ns_per_tick)
{
	double ns = ticks * ns_per_tick;

	if (ns >= 9223372036854775807.0)
		return INT64_MAX;
	return ns > -9223372036854775807.0 ? (int64_t)ns : -INT64_MAX;
}

/* The first tick that is not before @ns, which is no less than 0. */
static inline uint64_t ticks_from(int64_t ns, double ns_per_tick)
{
	double ticks = (double)ns / ns_per_tick;

	if (ticks >= 18446744073709551615.0)
		return UINT64_MAX;
	return (uint64_t)ticks + (ticks_ns((double)(uint64_t)ticks, ns_per_tick) < ns);
}

static inline int64_t ticks_add(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

#endif
