/* user/sampling/windows/burstiness.c - moving averages over the last seconds. */
#include "sampling/windows/burstiness.h"

#define MEAN_NS	  10e9
#define IDLE_NS	  3e9
#define ENOUGH_NS 0.4e9 /* time that it takes to tell a burst from a pause */

/* a rate below this part of the mean is a pause */
#define NEXT_TO_NOTHING 0.25
#define MOSTLY_IDLE	0.75

/* When a burst that does not come again is over: this long after it, and after so many pauses. */
#define OVER_NS	    1e9
#define OVER_PAUSES 2

/* Moves *v, the mean over *known ns, towards @now, which is the value of another @ns. */
static void blend(double *v, double *known, double now, double ns, double most)
{
	*known = *known + ns < most ? *known + ns : most;
	*v += (now - *v) * (ns < *known ? ns / *known : 1);
}

/*
 * Bursts come again. A burst that has not come again after twice the longest pause between two
 * bursts was the last one, such as that of a program's beginning. It says nothing of the future.
 */
static bool forget_last_burst(struct burstiness *r, double ns)
{
	double over = OVER_PAUSES * r->pause > OVER_NS ? OVER_PAUSES * r->pause : OVER_NS;

	if (r->rate > r->mean) {
		if (r->quiet > r->pause)
			r->pause = r->quiet;
		r->calm = r->calm_ns = r->quiet = 0;
		return false;
	}
	if (r->rate <= NEXT_TO_NOTHING * r->mean) {
		blend(&r->calm, &r->calm_ns, r->rate, ns, MEAN_NS);
		r->quiet += ns;
	}
	if (r->quiet < over || r->calm >= NEXT_TO_NOTHING * r->mean)
		return false;
	r->mean = r->calm;
	r->mean_ns = r->calm_ns;
	r->pause = over;
	r->calm = r->calm_ns = r->quiet = 0;
	r->idle = r->idle_ns = 0;
	return true;
}

bool burstiness_look(struct burstiness *r, uint64_t now, double count)
{
	double ns = (double)(now - r->at), more = count > r->count ? count - r->count : 0;
	bool forgot = false;

	if (r->known && now > r->at) {
		r->rate = more / ns;
		forgot = forget_last_burst(r, ns);
		blend(&r->mean, &r->mean_ns, r->rate, ns, MEAN_NS);
		blend(&r->idle, &r->idle_ns, r->rate <= NEXT_TO_NOTHING * r->mean, ns, IDLE_NS);
	}
	if (!r->known || more > 0)
		r->moved = now;
	r->known = true;
	r->at = now;
	r->count = count;
	return forgot;
}

bool burstiness_is_high(const struct burstiness *r)
{
	/*
	 * A program that does nothing at all has no bursts either: strata of nothing would end
	 * immediately.
	 */
	return r->mean > 0 && r->idle_ns >= ENOUGH_NS && r->idle > MOSTLY_IDLE;
}
