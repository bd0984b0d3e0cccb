/* user/sampling/own_work.c - see sampling/own_work.h. */
#include "sampling/own_work.h"

#include <math.h>

#define TURN_NS 500000000ull
#define LEARN	4 /* turns */

static void divide(struct own_work *w, double readings)
{
	w->part = w->ppm ? readings / (w->parts ?: 1) : 0;
}

void own_work_begin(struct own_work *w, uint64_t now, uint64_t own_ns)
{
	double bound = w->ppm / 1e6;

	w->rest = bound * (1 - OWN_READ_LEAST);
	w->at_ns = now;
	w->at_own_ns = own_ns;
	w->at_read_ns = w->read_ns;
	divide(w, bound * OWN_READ_LEAST);
}

void own_work_turn(struct own_work *w, uint64_t now, uint64_t own_ns)
{
	double bound = w->ppm / 1e6, own, read, lasted;

	if (now < w->at_ns + TURN_NS)
		return;
	lasted = (double)(now - w->at_ns);
	own = own_ns > w->at_own_ns ? (double)(own_ns - w->at_own_ns) : 0;
	read = (double)(w->read_ns - w->at_read_ns);
	w->rest += (fmax(own - read, 0) / lasted - w->rest) / LEARN;
	w->at_ns = now;
	w->at_own_ns = own_ns;
	w->at_read_ns = w->read_ns;
	divide(w, fmax(bound - w->rest, bound * OWN_READ_LEAST));
}
