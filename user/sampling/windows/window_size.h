/*
 * user/sampling/windows/window_size.h - how long windows should be, and what the next one will cost.
 *
 * Attaching and detaching cost a target the same however long a window is. Where a window's hits
 * cost less than that, a longer window shows more of the target for nearly the same price; and
 * where several kinds of probes share one budget, that price is most of what there is. So a
 * window is so long that its hits cost half as much as attaching and detaching, in the most
 * expensive of the last windows: where some cost more there are bursts or phases, and for those
 * more and shorter windows are better. No window is longer than what is bearable when a burst
 * comes just then.
 */
#ifndef SAMPLING_WINDOWS_WINDOW_SIZE_H
#define SAMPLING_WINDOWS_WINDOW_SIZE_H

#include <stdint.h>

struct window_size {
	double fixed;	      /* ns of cost: what a window takes apart from hits */
	uint64_t least, most; /* limits of a window's length, in ns */
	uint64_t length;      /* length of the next window, in ns */
	/* ns of cost: what hits in a window of that length are expected to take */
	double hits;
	double peak;	/* the same, in the most expensive of the last windows */
	unsigned known; /* number of windows that these come from */
};

void window_size_init(struct window_size *w, double fixed, uint64_t least, uint64_t most);
/* A window is over that was to last @length ns (> 0): its hits took @hits ns. */
void window_size_over(struct window_size *w, uint64_t length, double hits);
/*
 * Windows begin once more. After what happened meanwhile, or was no window, the size is a guess.
 */
void window_size_again(struct window_size *w);
/* The cost of windows so far says nothing of those to come. */
void window_size_forget(struct window_size *w);
/* The expected cost of the next window; 0: nothing is known. */
double window_size_cost(const struct window_size *w);

#endif
