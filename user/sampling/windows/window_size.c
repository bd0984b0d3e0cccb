/* user/sampling/windows/window_size.c - a mean of costs, in proportion to the length of windows. */
#include "sampling/windows/window_size.h"

/* Windows are so long that their hits cost this part of what a window costs otherwise. */
#define HITS_PART 0.5
/* A quiet moment is no reason to expect more, so windows grow slowly. */
#define GROW	2
#define FORGETS 0.2

void window_size_init(struct window_size *w, double fixed, uint64_t least, uint64_t most)
{
	*w = (struct window_size){ .fixed = fixed, .least = least, .most = most, .length = least };
}

static double wanted(const struct window_size *w)
{
	double length = (double)w->length, ns = GROW * length;

	if (w->peak * GROW > HITS_PART * w->fixed)
		ns = length * HITS_PART * w->fixed / w->peak;
	if (!(ns > (double)w->least)) /* this also catches a NaN */
		return (double)w->least;
	return ns < (double)w->most ? ns : (double)w->most;
}

void window_size_over(struct window_size *w, uint64_t length, double hits)
{
	double ns;

	hits *= (double)w->length / (double)length;
	w->known++;
	w->hits += (hits - w->hits) * (w->known < 5 ? 1 / (double)w->known : FORGETS);
	w->peak = hits > w->peak ? hits : w->peak + (hits - w->peak) * FORGETS;
	ns = wanted(w);
	w->hits *= ns / (double)w->length;
	w->peak *= ns / (double)w->length;
	w->length = (uint64_t)ns;
}

void window_size_again(struct window_size *w)
{
	w->hits *= (double)w->least / (double)w->length;
	w->peak *= (double)w->least / (double)w->length;
	w->length = w->least;
	w->known = 0;
}

void window_size_forget(struct window_size *w)
{
	window_size_again(w);
	w->hits = w->peak = 0;
}

double window_size_cost(const struct window_size *w)
{
	return w->known || w->hits > 0 ? w->fixed + w->hits : 0;
}
