/*
 * user/collect/heap_use.h - the in-use columns of a probed heap profile: each stack's estimate of
 * what was allocated, times the share of its followed objects that lives. What was sampled in
 * full and in windows stands for different numbers, and so has a share of its own each.
 *
 * Their standard errors. Observed in full, each sampled object that lives stands for 1/p, which is
 * a variance of (1 - p) / p^2; those without a known place add that of the share, as long as that
 * is by chance: where there was no room for them the error is not known. In windows the
 * error of what was allocated, times the share, and the error of the share, from how much groups
 * of windows differ, are added up as if they went together: that is the most they can be.
 */
#ifndef COLLECT_HEAP_USE_H
#define COLLECT_HEAP_USE_H

#include <sys/types.h>

#include "collect/heap_live.h"
#include "collect/heap_window.h"

struct heap_use {
	struct heap_live *live; /* NULL: what is in use cannot be told, */
	struct err why_not;	/* and why */
	struct tally *tally;	/* borrowed */
	uint64_t astray;	/* followed objects whose stack nobody knows */
	uint64_t bunched;	/* not followed for want of room: many at once, not some of all */
	struct heap_share {
		/* [1]: in windows. share: live of followed; of its size class where none was. */
		double followed[2], live[2], share[2];
		uint64_t objects[2]; /* whose place became known */
	} * shares;		     /* by entry of the tally; only at the end */
	struct heap_spread {
		double made, live;	      /* estimated in windows */
		double off[HEAP_LIVE_GROUPS]; /* what each group would have more of it */
		double least;		      /* of the variance: few objects tell little */
	} * spreads;			      /* by site of the tally, and at the end, too */
	size_t groups;			      /* of windows, that saw an object */
};

/* 0 also where it cannot be told. Before the BPF object is loaded. */
int heap_use_open(struct heap_use *u, struct subject *s, struct err *e);
void heap_use_fini(struct heap_use *u);

/* The columns, the default one. */
int heap_use_types(const struct heap_use *u, struct prof *p, struct err *e);

/* After load: @f's records of objects are taken from now on, and GC cycles watched. */
int heap_use_begin(struct heap_use *u, struct heap_bpf *obj, struct feed *f, struct tally *t,
		   bool multi, struct err *e);
/* Sets what the BPF side must know. Before probes are attached. */
int heap_use_target(const struct heap_use *u, struct heap_bpf *obj, struct gpb_target *t,
		    struct err *e);

/* Sites to be probed with the allocator's entries of image @i: their number, none mostly. */
size_t heap_use_sites(const struct heap_use *u, size_t i,
		      struct uprobe_site sites[HEAP_LIVE_SITES]);

/* For heap_window.weighed. */
void heap_use_weighed(void *u, uint64_t opened, double weight);

/* To be polled; -1 none. */
int heap_use_fd(const struct heap_use *u);
int heap_use_poll(struct heap_use *u, struct err *e);

/* After the last samples were drained into the tally of @w, and all windows are over. */
int heap_use_end(struct heap_use *u, const struct heap_window *w, struct err *e);
/* Of one entry of the tally; what windows add to the variance is told with its site's first. */
struct heap_estimate heap_use_of(const struct heap_use *u, const struct heap_window *w,
				 const struct tally_entry *en);
int heap_use_comments(const struct heap_use *u, const struct heap_bpf *obj, struct prof *p,
		      struct err *e);
void heap_use_losses(const struct heap_use *u, const struct heap_bpf *obj, struct loss *to);

#endif
