/* user/sampling/own_work.c - see sampling/own_work.h. */
#include "sampling/own_work.h"

#include <math.h>

#define TURN_NS 500000000ull
#define LEARN	4   /* turns */
#define FASTER	1.5 /* at most, in a turn */

/* Some readers have nothing to read, and leave what is theirs to the others. */
static void divide(struct own_work *w, double readings, double used)
{
	double least = readings / (w->parts ?: 1), part = w->part * FASTER;

	if (used > 0)
		part = w->part * fmin(fmax(sqrt(readings / used), 1 / FASTER), FASTER);
	w->part = w->ppm ? fmin(fmax(part, least), readings) : 0;
}

void own_work_begin(struct own_work *w, uint64_t now, uint64_t own_ns)
{
	double bound = w->ppm / 1e6;

	w->rest = bound * (1 - OWN_READ_LEAST);
	w->part = 0;
	w->at_ns = now;
	w->at_own_ns = own_ns;
	w->at_read_ns = w->read_ns;
	divide(w, bound * OWN_READ_LEAST, 0);
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
	divide(w, fmax(bound - w->rest, bound * OWN_READ_LEAST), read / lasted);
}
