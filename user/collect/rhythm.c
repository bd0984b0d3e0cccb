/* user/collect/rhythm.c - means over the last seconds. */
#include "collect/rhythm.h"

#define MEAN_NS	  10e9
#define IDLE_NS	  3e9
#define ENOUGH_NS 0.4e9 /* to tell a burst from a pause */

/* Of the mean. */
#define NEXT_TO_NOTHING 0.25
#define MOSTLY_IDLE	0.75

/* Moves *v, the mean over *known, towards @now, which is of another @ns. */
static void blend(double *v, double *known, double now, double ns, double most)
{
	*known = *known + ns < most ? *known + ns : most;
	*v += (now - *v) * (ns < *known ? ns / *known : 1);
}

void rhythm_look(struct rhythm *r, uint64_t now, double count)
{
	double ns = (double)(now - r->at), more = count > r->count ? count - r->count : 0;

	if (r->known && now > r->at) {
		r->rate = more / ns;
		blend(&r->mean, &r->mean_ns, r->rate, ns, MEAN_NS);
		blend(&r->idle, &r->idle_ns, r->rate <= NEXT_TO_NOTHING * r->mean, ns, IDLE_NS);
	}
	if (!r->known || more > 0)
		r->moved = now;
	r->known = true;
	r->at = now;
	r->count = count;
}

bool rhythm_bursts(const struct rhythm *r)
{
	return r->idle_ns >= ENOUGH_NS && r->idle > MOSTLY_IDLE;
}
