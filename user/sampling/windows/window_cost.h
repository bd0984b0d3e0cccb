/*
 * user/sampling/windows/window_cost.h - what one window takes from the target apart from its hits.
 *
 * Putting probes in and taking them out interrupts the target's threads, copies pages of its code
 * and empties its caches. Nobody counts that, but the target counts its own work. Between
 * windows, that count tells how much CPU time a unit of work takes. In an interval with a window,
 * the CPU time that was neither for work nor for hits is the window's cost. Its mean over windows
 * is combined with the cost that is assumed where nothing is known, each weighted by the inverse
 * of its variance.
 */
#ifndef SAMPLING_WINDOWS_WINDOW_COST_H
#define SAMPLING_WINDOWS_WINDOW_COST_H

#include <stdbool.h>
#include <stddef.h>

struct window_cost {
	double assumed; /* ns; its standard error is assumed to be as large */
	/* The interval between windows before the last one; the last one, whose hits took so much. */
	double before_cpu, before_work, cpu, work, hits;
	bool before, pending;
	/* Windows that were measured: their number, sums of their costs, squares, products of two in a row. */
	size_t n;
	double sum, squares, products, last;
};

struct window_cost_estimate {
	double ns, error; /* a window; its standard error */
	bool measured;	  /* more by the target's own clock than by what is assumed */
};

void window_cost_init(struct window_cost *w, double assumed);
/* An interval without a window is over, in which the target took @cpu ns for so much @work. */
void window_cost_between(struct window_cost *w, double cpu, double work);
/* An interval with a window is over, and the window's hits took @hits ns of it. */
void window_cost_window(struct window_cost *w, double cpu, double work, double hits);
/* The next interval is not known, or cannot be compared with those around it. */
void window_cost_gap(struct window_cost *w);
struct window_cost_estimate window_cost_now(const struct window_cost *w);

#endif
