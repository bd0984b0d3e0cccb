/* user/sampling/windows/paces.c - the pace of allocations by class: by the runtime's counts, and in windows. */
#include "sampling/windows/paces.h"

#include <math.h>
#include <string.h>

#define NEAR_NS 100000000ull /* a step so much before a window, or after it, tells of its time */
#define LONG_NS \
	(8 * RUN_STEP_NS) /* such a step has calm time and bursts in it: its pace is of neither */

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

static void at_least(double to[GPB_CLASSES], const double pace[GPB_CLASSES])
{
	for (unsigned i = 0; i < GPB_CLASSES; i++)
		to[i] = fmax(to[i], pace[i]);
}

/* Where counts are read seldom, as those of many targets are, a window met a pace that there was before it and after it. */
static void learn_beside(const struct paces *p, struct pace_window *w)
{
	double beside[2][GPB_CLASSES] = { 0 };

	for (unsigned k = 0; k < PACE_STEPS; k++) {
		const struct pace_step *s = &p->steps[k];

		if (!tells_of(s, w))
			continue;
		if (s->ended - s->began <= LONG_NS)
			at_least(w->saw.pace, s->pace);
		else
			at_least(beside[s->began >= w->closed], s->pace);
	}
	for (unsigned i = 0; i < GPB_CLASSES; i++)
		beside[0][i] = fmin(beside[0][i], beside[1][i]);
	at_least(w->saw.pace, beside[0]);
}

static void settle(struct paces *p)
{
	struct pace_window *w = &p->window;

	if (!w->closed)
		return;
	learn_beside(p, w);
	w->closed = 0;
	if (w->own_ns <= 0)
		return;
	for (unsigned i = 0; i < GPB_CLASSES; i++)
		if (w->saw.pace[i] > p->most[i])
			p->most[i] = w->saw.pace[i];
	p->windows_ns += w->stands_ns;
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

/* The first one that does not come before that of @class and @bin. */
static size_t place_of(const struct paces *p, unsigned class, unsigned bin)
{
	size_t from = 0, to = p->bins.n;

	while (from < to) {
		size_t mid = (from + to) / 2;
		const struct pace_bin *b = &p->bins.at[mid];

		if (b->class < class || (b->class == class && b->bin < bin))
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

static struct pace_bin *bin_of(struct paces *p, unsigned class, unsigned bin)
{
	size_t i = place_of(p, class, bin), n = p->bins.n;

	if (i < n && p->bins.at[i].class == class && p->bins.at[i].bin == bin)
		return &p->bins.at[i];
	if (!vec_add(&p->bins, GPB_CLASSES * RUN_BINS))
		return NULL;
	memmove(&p->bins.at[i + 1], &p->bins.at[i], (n - i) * sizeof(*p->bins.at));
	p->bins.at[i] = (struct pace_bin){ .class = (uint16_t) class, .bin = (uint16_t)bin };
	return &p->bins.at[i];
}

static void add_pace(struct paces *p, unsigned class, double more, double ns)
{
	struct pace_bin *b;

	if (more <= 0) {
		p->still_ns[class] += ns;
		return;
	}
	b = bin_of(p, class, run_rates_bin(more, ns));
	if (b) {
		b->allocs += more;
		b->ns += ns;
	}
	p->no_memory |= !b;
}

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
			add_pace(p, i, more, ns);
	}
	if (p->window.closed && s->began >= p->window.closed)
		settle(p);
}

bool paces_step(struct paces *p, const uint64_t counts[GPB_CLASSES], uint64_t now)
{
	if (p->known && now < p->began + RUN_STEP_NS)
		return !p->no_memory;
	if (p->known)
		add_step(p, counts, now);
	memcpy(p->last, counts, sizeof(p->last));
	p->began = now;
	p->known = true;
	return !p->no_memory;
}

void paces_lately(const struct paces *p, const uint64_t counts[GPB_CLASSES], uint64_t now,
		  double pace[GPB_CLASSES])
{
	const struct pace_step *s = p->nsteps ? &p->steps[(p->nsteps - 1) % PACE_STEPS] : NULL;
	double whole = s && s->ended == p->began ? (double)(s->ended - s->began) : 0;
	double part = p->known && now > p->began ? (double)(now - p->began) : 0;

	for (unsigned i = 0; i < GPB_CLASSES; i++) {
		double more = part && counts[i] > p->last[i] ? (double)(counts[i] - p->last[i]) : 0;

		more += whole ? s->pace[i] * whole : 0;
		pace[i] = more ? more / (whole + part) : 0;
	}
}

void paces_pause(struct paces *p)
{
	p->known = false;
}

struct run_unmet paces_unmet(const struct paces *p, unsigned class)
{
	struct run_rates r = { .most = p->most[class] };

	if (p->no_memory)
		return (struct run_unmet){};
	r.windows.ns[0] = p->windows_ns;
	r.steps.ns[0] = p->still_ns[class];
	for (size_t i = place_of(p, class, 0); i < p->bins.n && p->bins.at[i].class == class; i++) {
		r.steps.runs[p->bins.at[i].bin] += p->bins.at[i].allocs;
		r.steps.ns[p->bins.at[i].bin] += p->bins.at[i].ns;
	}
	return run_rates_unmet(&r);
}

void paces_fini(struct paces *p)
{
	vec_fini(&p->bins);
}
