/* user/sampling/undilated.c - the price of a hit, and what follows from it for the next window. */
#include "sampling/undilated.h"

#include <math.h>

/*
 * ROOM is the spare time of a window, in multiples of the expected overhead. A window must be
 * over for the busiest CPU, too, before its probes are taken out. It ends as soon as that is so
 * (struct uprobe_window), so there can be much room. Where hits take most of the time, windows
 * are short: several of them cost as much as one.
 */
#define ROOM	 2.8
#define SLOW_MAX 10.0
/* The slowdown that is assumed at first, when nothing is known, and the least one. */
#define SLOW_FIRST 8
#define SLOW_LEAST 1.25
#define FORGETS	   0.1 /* share of an earlier slowdown that is forgotten with each window */

/* The price is corrected slowly, and stays near the measured one. */
#define FIRST_WINDOWS 4
#define GAIN	      0.3
#define MEMORY	      0.97
#define DOUBT	      5 /* windows whose evidence would outweigh the measured price */
#define PRICE_LOW     0.6
#define PRICE_HIGH    2.5

/* It must not become 0, which would mean that there is no limit (struct gpb_undilated). */
#define OWN_MIN_NS 1000.0

static double window_of(const struct undilated *o, double window)
{
	double own = window / (1 + ROOM * (o->slow - 1));

	return own > OWN_MIN_NS ? own : OWN_MIN_NS;
}

void undilated_init(struct undilated *o, double hit, double window, double slow)
{
	*o = (struct undilated){ .cost_known = hit, .hit = hit, .slow = SLOW_FIRST, .guess = 1 };
	/* It was measured for a moment only, so twice as much is assumed. */
	if (slow > 0)
		o->slow = fmin(fmax(1 + 2 * (slow - 1), SLOW_LEAST), SLOW_MAX);
	o->own = window_of(o, window);
}

struct gpb_undilated undilated_abi(const struct undilated *o)
{
	return (struct gpb_undilated){ .ns = (uint64_t)o->own, .hit_ns = (uint64_t)o->hit };
}

void undilated_cpu(struct undilated_window *w, double window, double taken)
{
	double left = window - taken, slow = left > 0 ? window / left : SLOW_MAX;

	if (slow > SLOW_MAX)
		slow = SLOW_MAX;
	if (slow > w->slow)
		w->slow = slow;
	w->active += taken > 0;
}

/*
 * With a gap of g between events, and a price that is wrong by d, windows count g / (g + d) of
 * the events there are.
 */
static void mend_price(struct undilated *o)
{
	double many = o->windows < 1 / (1 - MEMORY) ? (double)o->windows : 1 / (1 - MEMORY);
	double doubt = DOUBT * (o->exact + o->est) / 2 / many, gap, wrong;

	if (o->windows < FIRST_WINDOWS || o->exact <= 0 || o->est <= 0)
		return;
	gap = o->active / o->exact;
	wrong = gap * ((o->exact + doubt) / (o->est + doubt) - 1);
	/* One extreme window must not move the price far. */
	if (wrong > o->cost_known / 4)
		wrong = o->cost_known / 4;
	if (wrong < -o->cost_known / 4)
		wrong = -o->cost_known / 4;
	o->hit += GAIN * wrong;
	if (o->hit < PRICE_LOW * o->cost_known)
		o->hit = PRICE_LOW * o->cost_known;
	if (o->hit > PRICE_HIGH * o->cost_known)
		o->hit = PRICE_HIGH * o->cost_known;
}

static void learn(struct undilated *o, double slow)
{
	double step = FORGETS;

	if (slow > o->slow) {
		o->guess = 0;
		step = 1;
	} else if (o->guess && o->guess < 1 / FORGETS) {
		step = 1 / (double)++o->guess;
	}
	o->slow += step * (slow - o->slow);
}

void undilated_over(struct undilated *o, const struct undilated_window *w, double window,
		    double weight, double est, double exact)
{
	learn(o, w->slow > 1 ? w->slow : 1);
	if (exact >= 0 && isfinite(exact + est + weight * o->own)) {
		o->windows++;
		o->est = MEMORY * o->est + est;
		o->exact = MEMORY * o->exact + exact;
		o->active = MEMORY * o->active + w->active * weight * o->own;
		mend_price(o);
	}
	o->own = window_of(o, window);
}
