/* user/engine/probing_strata.c - how long strata are. */
#include <math.h>

#include "engine/probing_priv.h"

#define STRATUM_FIRST_NS (100 * NS_PER_MS) /* when no window has told what one costs */
#define STRATUM_SECOND_NS \
	(500 * NS_PER_MS) /* most, for the first: a short run is to see something */
#define STRATUM_MIN_NS (40 * NS_PER_MS)
#define END_NS	       20e6 /* a window that is put in so long before the end has been observed by then */
#define WINDOW_MOST    2 /* a window is at most so small a part of its stratum */

/* How long the first stratum may be: it is over before the profile is, so that a window of it is not too late. */
static double first_most_ns(const struct probing *p, uint64_t now)
{
	double ns = (double)STRATUM_SECOND_NS, left;

	if (!p->o->window_ns)
		return ns;
	left = (double)(p->set_ns + p->o->window_ns) - (double)now - END_NS;
	return left < ns ? left : ns;
}

/* How long a stratum that begins at @now must be. */
double probing_stratum_ns(const struct probing *p, uint64_t now)
{
	double ns = STRATUM_FIRST_NS, cost = window_size_cost(&p->size);
	double least = fmax(WINDOW_MOST * (double)p->window_ns, probing_bystanders_ns(p));

	if (cost > 0)
		ns = budget_stratum(p->b, &p->member, cost);
	if (!p->nwindows && ns > first_most_ns(p, now))
		ns = first_most_ns(p, now);
	if (ns < least)
		ns = least;
	return ns > STRATUM_MIN_NS ? ns : STRATUM_MIN_NS;
}
