/*
 * user/collect/window_size.h - how long windows are to be, and what the next one will cost.
 *
 * Attaching and detaching cost a target the same however long a window is. Where its hits cost less
 * than that a longer one shows more of it for nearly the same price, and where there are several
 * kinds of probes to one budget that price is most of what there is. So a window is as long as
 * makes its hits cost half as much, in the dearest of the last windows: where some cost more there
 * are bursts or phases, and for them short ones are better, and more of them. None is longer than
 * is bearable when a burst comes just then.
 */
#ifndef COLLECT_WINDOW_SIZE_H
#define COLLECT_WINDOW_SIZE_H

#include <stdint.h>

struct window_size {
	double fixed;	      /* ns of cost: what a window takes beside hits */
	uint64_t least, most; /* ns that a window may last */
	uint64_t length;      /* ns, of the next one */
	double hits;	      /* ns of cost: what hits in one of that length are expected to take */
	double peak;	      /* the same, in the dearest of the last ones */
	unsigned known;	      /* windows that these are of */
};

void window_size_init(struct window_size *w, double fixed, uint64_t least, uint64_t most);
/* One is over that was to last @length ns, > 0: its hits took @hits ns. */
void window_size_over(struct window_size *w, uint64_t length, double hits);
/* Windows begin once more: after what happened meanwhile, or was no window, that is a guess. */
void window_size_again(struct window_size *w);
/* What windows cost so far says nothing of those to come. */
void window_size_forget(struct window_size *w);
/* What the next one is expected to cost; 0: nothing is known. */
double window_size_cost(const struct window_size *w);

#endif
