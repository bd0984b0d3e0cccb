/* user/sampling/windows/window_cost.c - the mean of residuals, and its standard error. */
#include "sampling/windows/window_cost.h"

#include <math.h>

/* windows that it takes before their spread is believed */
#define ENOUGH 8
/* the cost is never taken to be less than this part of the assumed one */
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

	/* Compared with the intervals on both sides, so that phases and drifts cancel. */
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

/*
 * The variance of the mean. Two windows in a row share an interval, so their errors are
 * correlated.
 */
static double variance(const struct window_cost *w)
{
	double n = (double)w->n, mean = w->sum / n, own, shared;

	own = (w->squares - n * mean * mean) / (n - 1);
	shared = (w->products - (n - 1) * mean * mean) / (n - 1);
	return (own + 2 * (shared > 0 ? shared : 0)) / n;
}

struct window_cost_estimate window_cost_now(const struct window_cost *w)
{
	double known = w->assumed * w->assumed, mean, seen, share, ns;

	if (w->n < ENOUGH)
		return (struct window_cost_estimate){ w->assumed, w->assumed, false };
	/* Many equal costs do not prove that the next one is equal. */
	seen = fmax(variance(w), known / 400);
	/*
	 * The variance of the assumption, by the method of moments: the squared distance from the mean
	 * to it, less what chance makes of that. With less variance than that, the assumption would
	 * pull the estimate towards itself by more than the stated error.
	 */
	mean = w->sum / (double)w->n;
	known = fmax(known, (mean - w->assumed) * (mean - w->assumed) - seen);
	share = known / (known + seen);
	ns = share * mean + (1 - share) * w->assumed;
	return (struct window_cost_estimate){
		.ns = fmax(ns, LEAST * w->assumed),
		.error = sqrt(share * seen),
		.measured = share > 0.5,
	};
}
