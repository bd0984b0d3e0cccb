/* user/collect/window_cost.c - a mean of residuals, and its error. */
#include "collect/window_cost.h"

#include <math.h>

/* Windows before their spread is believed. */
#define ENOUGH 8
/* Never less than this part of what is assumed. */
#define LEAST 0.25

void window_cost_init(struct window_cost *w, double assumed)
{
	*w = (struct window_cost){ .assumed = assumed };
}

void window_cost_gap(struct window_cost *w)
{
	w->before = w->pending = false;
}

static void add(struct window_cost *w, double cost)
{
	if (!isfinite(cost))
		return;
	if (w->n)
		w->products += cost * w->last;
	w->n++;
	w->sum += cost;
	w->squares += cost * cost;
	w->last = cost;
}

void window_cost_between(struct window_cost *w, double cpu, double work)
{
	double all = w->before_work + work;

	/* By the intervals on both sides: phases and drifts cancel. */
	if (w->before && w->pending && all > 0)
		add(w, w->cpu - w->work * (w->before_cpu + cpu) / all - w->hits);
	w->before = true;
	w->pending = false;
	w->before_cpu = cpu;
	w->before_work = work;
}

void window_cost_window(struct window_cost *w, double cpu, double work, double hits)
{
	w->pending = true;
	w->cpu = cpu;
	w->work = work;
	w->hits = hits;
}

/* Of the mean. Windows in a row share an interval, so their costs may be off together. */
static double variance(const struct window_cost *w)
{
	double n = (double)w->n, mean = w->sum / n, own, shared;

	own = (w->squares - n * mean * mean) / (n - 1);
	shared = (w->products - (n - 1) * mean * mean) / (n - 1);
	return (own + 2 * (shared > 0 ? shared : 0)) / n;
}

struct window_cost_estimate window_cost_now(const struct window_cost *w)
{
	double known = w->assumed * w->assumed, seen, share, ns;

	if (w->n < ENOUGH)
		return (struct window_cost_estimate){ w->assumed, w->assumed, false };
	/* As many costs alike are no proof that the next one is. */
	seen = fmax(variance(w), known / 400);
	share = known / (known + seen);
	ns = share * w->sum / (double)w->n + (1 - share) * w->assumed;
	return (struct window_cost_estimate){
		.ns = fmax(ns, LEAST * w->assumed),
		.error = sqrt(share * seen),
		.measured = share > 0.5,
	};
}
