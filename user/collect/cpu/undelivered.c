/* user/collect/cpu/undelivered.c - see collect/cpu/undelivered.h. */
#include "collect/cpu/undelivered.h"

#include <math.h>

enum { OF = 50, DEVIATIONS = 6 };

void undelivered_add(struct undelivered *u, uint64_t ns, uint64_t period_ns, uint64_t weight,
		     uint64_t came)
{
	uint64_t due = ns / period_ns, may = weight > 1 ? 4 * weight : 1;

	u->due += due;
	if (due > came + may)
		u->n += due - came;
}

uint64_t undelivered_unknown(const struct undelivered *u, uint64_t known)
{
	return u->n > known && u->n - known > u->due / OF ? u->n - known : 0;
}

uint64_t ticks_lacking(uint64_t cpu_ns, uint64_t period_ns, uint64_t weight, uint64_t samples)
{
	uint64_t due = cpu_ns / period_ns;
	double chance = DEVIATIONS * sqrt((double)weight * (double)due);

	if (due <= samples || (double)(due - samples) <= chance + (double)(due / OF + 2 * weight))
		return 0;
	return due - samples;
}
