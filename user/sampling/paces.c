/* user/sampling/paces.c - the pace of allocations by class: by the runtime's counts, and in windows. */
#include "sampling/paces.h"

#include <stdlib.h>
#include <string.h>

#define NEAR_NS 100000000ull /* a step so much before a window, or after it, tells of its time */

static bool ready(struct paces *p)
{
	if (!p->of)
		p->of = calloc(GPB_CLASSES, sizeof(*p->of));
	return p->of;
}

/* ---- windows ---- */

/*
 * Does the step tell at which pace the target was in the window? What the window itself saw may be several times
 * too low: while the price of a hit is not known well, for a thread that does nothing but allocate, and where the
 * window lasted for less than a millisecond. So a window met the pace of each class that there was just before it
 * or after it, unless it saw less than 1 / RUN_DILATED of all allocations at that pace: then it lay before a burst
 * or after it.
 */
static bool tells_of(const struct pace_step *s, const struct pace_window *w)
{
	if (!s->ended || s->all > RUN_DILATED * w->saw.all)
		return false;
	return s->ended <= w->opened ? s->ended + NEAR_NS > w->opened :
				       s->began >= w->closed && s->began < w->closed + NEAR_NS;
}

static void settle(struct paces *p)
{
	struct pace_window *w = &p->window;

	if (!w->closed)
		return;
	for (unsigned k = 0; k < PACE_STEPS; k++)
		for (unsigned i = 0; i < GPB_CLASSES && tells_of(&p->steps[k], w); i++)
			if (p->steps[k].pace[i] > w->saw.pace[i])
				w->saw.pace[i] = p->steps[k].pace[i];
	for (unsigned i = 0; p->of && i < GPB_CLASSES; i++)
		run_rates_window(&p->of[i], w->saw.pace[i] * w->own_ns, w->own_ns, w->stands_ns);
	w->closed = 0;
}

void paces_window(struct paces *p, uint64_t opened, uint64_t closed, const double seen[GPB_CLASSES],
		  double own_ns, double stands_ns)
{
	struct pace_window *w = &p->window;

	settle(p);
	*w = (struct pace_window){
		.opened = opened, .closed = closed, .own_ns = own_ns, .stands_ns = stands_ns
	};
	for (unsigned i = 0; i < GPB_CLASSES; i++) {
		w->saw.pace[i] = seen[i] / own_ns;
		w->saw.all += w->saw.pace[i];
	}
}

void paces_end(struct paces *p)
{
	settle(p);
}

/* ---- the runtime's counts ---- */

static void add_step(struct paces *p, const uint64_t counts[GPB_CLASSES], uint64_t now)
{
	struct pace_step *s = &p->steps[p->nsteps++ % PACE_STEPS];
	double ns = (double)(now - p->began);

	*s = (struct pace_step){ .began = p->began, .ended = now };
	for (unsigned i = 0; i < GPB_CLASSES; i++) {
		/* A count that is off by its slack may seem to have gone down. */
		double more = counts[i] > p->last[i] ? (double)(counts[i] - p->last[i]) : 0;

		s->pace[i] = more / ns;
		s->all += s->pace[i];
		if (counts[i])
			run_rates_step(&p->of[i], more, ns);
	}
	if (p->window.closed && s->began >= p->window.closed)
		settle(p);
}

bool paces_step(struct paces *p, const uint64_t counts[GPB_CLASSES], uint64_t now)
{
	if (!ready(p))
		return false;
	if (p->known && now < p->began + RUN_STEP_NS)
		return true;
	if (p->known)
		add_step(p, counts, now);
	memcpy(p->last, counts, sizeof(p->last));
	p->began = now;
	p->known = true;
	return true;
}

void paces_pause(struct paces *p)
{
	p->known = false;
}

struct run_unmet paces_unmet(const struct paces *p, unsigned class)
{
	if (!p->of)
		return (struct run_unmet){};
	return run_rates_unmet(&p->of[class]);
}

void paces_fini(struct paces *p)
{
	free(p->of);
	p->of = NULL;
}
