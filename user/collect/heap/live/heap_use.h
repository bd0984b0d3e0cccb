/*
 * user/collect/heap/live/heap_use.h - the in-use columns of a probed heap profile: each stack's estimate of
 * what was allocated, times the share of its followed objects that lives. Samples of full
 * observation and samples of windows stand for different numbers, so each kind has a share of its
 * own.
 *
 * Their standard errors. In full observation, each sampled object that lives stands for 1/p
 * objects, where p is the chance of being sampled; that gives a variance of (1 - p) / p^2.
 * Objects whose slot did not become known add the variance of the share, as long as they are a
 * random choice; where there was no room for them the error is not known. In windows two errors
 * are added up as if they were fully correlated, which is an upper bound: the error of what was
 * allocated, times the share, and the error of the share, which comes from how much groups of
 * windows differ, but is never below what so few windows can know, and from the time that no window
 * stands for (sampling/windows/survival.h).
 */
#ifndef COLLECT_HEAP_LIVE_HEAP_USE_H
#define COLLECT_HEAP_LIVE_HEAP_USE_H

#include <sys/types.h>

#include "collect/heap/live/heap_live.h"
#include "collect/heap/window/heap_window.h"
#include "goprof_abi.h"
#include "profile/profile.h"

struct heap_use {
	struct heap_live *live; /* NULL: what is in use cannot be told, and */
	struct err why_not;	/* this is why */
	struct tally *tally;	/* borrowed */
	uint64_t astray;	/* followed objects whose stack nobody knows */
	/*
	 * objects that were not followed for want of room: many at the same time, so no random
	 * choice
	 */
	uint64_t bunched;
	struct heap_share {
		/*
		 * [1]: in windows. share: the live part of the followed objects; of its size
		 * class where none was followed.
		 */
		double followed[2], live[2], share[2];
		double maybe[2], maybe_live[2]; /* heap_live_count */
		uint64_t objects[2];		/* objects whose slot became known */
	} * shares;				/* by entry of the tally; made at the end */
	struct heap_spread {
		double made, live;	       /* estimated in windows */
		double maybe, maybe_live;      /* what of that heap_live_count calls so */
		double off[HEAP_LIVE_GROUPS];  /* how much more each group would have */
		double seen[HEAP_LIVE_GROUPS]; /* what each group's objects stand for */
		double once,
			always; /* sums of that, times the part that outlives one cycle, or all */
		/* a lower bound of the variance, because few objects tell little */
		double least;
	} * spreads;   /* by site of the tally; also made at the end */
	size_t groups; /* groups of windows that saw an object */
};

/* Returns 0 also where it cannot be told. To be called before the BPF object is loaded. @room: as in heap_live_open(). */
int heap_use_open(struct heap_use *u, struct subject *s, struct heap_live_room *room,
		  struct err *e);
/* Its file has no places where the slots of objects become known: it cannot be told. */
void heap_use_refuse(struct heap_use *u, const struct err *why);
void heap_use_fini(struct heap_use *u);

/* Adds the columns, and the default one. */
int heap_use_types(const struct heap_use *u, struct prof *p, struct err *e);

/*
 * To be called after the load: from now on @f's records of objects are taken. @f NULL: of many targets, whose records come
 * to live one by one.
 */
void heap_use_begin(struct heap_use *u, struct reports *f, struct tally *t);
/* Watches GC cycles; to be called again when there are more images. */
int heap_use_attach(struct heap_use *u, const struct heap_window *w, bool multi, struct err *e);
/* Sets what the BPF side must know. To be called before probes are attached. */
int heap_use_target(const struct heap_use *u, const struct heap_window *w, struct gpb_target *t,
		    struct err *e);

/*
 * The sites that are to be probed together with the allocator's entries of image @i. Returns
 * their number.
 */
size_t heap_use_sites(struct heap_use *u, size_t i, struct uprobe_site sites[HEAP_LIVE_SITES]);

/* For heap_window.weighed. */
void heap_use_weighed(void *u, uint64_t opened, double weight);

/* To be polled; -1: none. */
int heap_use_fd(const struct heap_use *u);
int heap_use_poll(struct heap_use *u, struct err *e);

/*
 * To be called after the last samples were drained into the tally of @w, and all windows are
 * over.
 */
int heap_use_end(struct heap_use *u, const struct heap_window *w, struct err *e);
/*
 * The estimate of one entry of the tally. What windows add to the variance of a site is reported
 * with the first entry of that site.
 */
struct heap_estimate heap_use_of(const struct heap_use *u, const struct heap_window *w,
				 const struct tally_entry *en);
int heap_use_comments(const struct heap_use *u, const struct heap_window *w, struct prof *p,
		      struct err *e);
void heap_use_losses(const struct heap_use *u, const struct heap_window *w, struct loss *to);

#endif
