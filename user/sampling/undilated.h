/*
 * user/sampling/undilated.h - how long windows are in the target's own time.
 *
 * While a thread is probed it does less than it would without probes (overhead dilation): one
 * that does nothing but allocate falls to a tenth, one that rarely allocates hardly notices. A
 * window of a fixed number of milliseconds would therefore see too little of the first. So each
 * CPU's window ends, as far as counting goes, when a given amount of time without what its hits
 * took is over (struct gpb_undilated). Then every piece of the target's own time has had the same
 * chance to be seen.
 *
 * For that, the time a hit takes must be known better than it can be measured from outside. Where
 * the runtime's own count of what was probed can be read, the price is corrected until the total
 * of all windows agrees with it.
 */
#ifndef SAMPLING_UNDILATED_H
#define SAMPLING_UNDILATED_H

#include <stdint.h>

#include "goprof_abi.h"

struct undilated {
	double cost_known; /* ns that a hit takes, as measured */
	double hit;	   /* ns that it is believed to take */
	double slow;	   /* slowdown of the busiest CPU lately: 1 means not slowed */
	unsigned
		/* how many windows and guesses that is the mean of; 0: it is no guess any more */
		guess;
	double own; /* length of the next window, in the target's own time; ns */
	/*
	 * lately: events as windows estimate them, and as the runtime counts them; own time of
	 * CPUs
	 */
	double est, exact, active;
	uint64_t windows; /* number of windows that these come from */
};

/*
 * To be called before the first window of @window ns. @hit: ns that one takes. @slow: the
 * slowdown while it was probed for a moment; 0: not known.
 */
void undilated_init(struct undilated *o, double hit, double window, double slow);
struct gpb_undilated undilated_abi(const struct undilated *o);

/* One CPU's part of a window is over; it spent @taken ns of it in probes. */
struct undilated_window {
	double slow;
	unsigned active; /* number of CPUs that hit something */
};
void undilated_cpu(struct undilated_window *w, double window, double taken);
/*
 * All CPUs' parts are over, and the next window lasts @window ns. @weight times the window's own
 * time is what it stood for. @est: the events that it counted, weighted so; @exact: how many
 * there were since the last window, < 0: not known.
 */
void undilated_over(struct undilated *o, const struct undilated_window *w, double window,
		    double weight, double est, double exact);

#endif
