/*
 * user/collect/owntime.h - how long windows are in time of the target's own.
 *
 * While it is probed a thread does less than it would: one that does nothing but allocate falls
 * to a tenth, one that allocates now and then hardly notices. A window of so many milliseconds
 * would see too little of the first. So each CPU's window ends, as far as counting goes, when so
 * much time less what its hits took is over (struct gpb_own): then every piece of the target's
 * own time has had the same chance to be seen.
 *
 * What a hit takes must be known well for that, better than it can be measured from outside. Where
 * the runtime's own count of what was probed can be read, the price is mended until what windows
 * say, all together, agrees with it.
 */
#ifndef COLLECT_OWNTIME_H
#define COLLECT_OWNTIME_H

#include <stdint.h>

#include "goprof_abi.h"

struct owntime {
	double priced; /* ns of a hit, as measured */
	double hit;    /* as it is believed to be */
	double slow;   /* how many times slower than unprobed the busiest CPU has been lately */
	unsigned
		guess; /* of how many windows and guesses it is the mean; 0: it is no guess any more */
	double own;    /* ns, of the window that comes next */
	double est, exact, active; /* lately: events by windows, by the runtime; own time of CPUs */
	uint64_t windows;	   /* that these are of */
};

/*
 * Before the first window of @window ns. @hit: ns of one. @slow: how slow it was when it was
 * probed for a moment; 0: nobody knows.
 */
void owntime_init(struct owntime *o, double hit, double window, double slow);
struct gpb_own owntime_abi(const struct owntime *o);

/* One CPU's part of a window is over; it spent @taken ns in probes. */
struct owntime_window {
	double slow;
	unsigned active; /* CPUs that hit something */
};
void owntime_cpu(struct owntime_window *w, double window, double taken);
/*
 * All of them are; the next one lasts @window ns. @weight times the window's own time is what it
 * stood for. @est: the events that it counted, so weighted; @exact: how many there were since the
 * last one, < 0 not known.
 */
void owntime_over(struct owntime *o, const struct owntime_window *w, double window, double weight,
		  double est, double exact);

#endif
