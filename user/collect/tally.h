/*
 * user/collect/tally.h - distinct stacks, how much was seen of each, and what that stands for.
 *
 * Of what was observed in full the sums are kept as they are. What was seen in windows
 * (probing.h) is an estimate: a stack's share of its group in windows, times the group's total
 * where that is known otherwise. The standard error comes from how much windows differ: they are
 * the sampling units, for what happens within one is alike.
 *
 * A group is what has a total of its own: a size class of allocations; all waits together.
 */
#ifndef COLLECT_TALLY_H
#define COLLECT_TALLY_H

#include "base/map.h"
#include "base/vec.h"
#include "goprof_abi.h"
#include "base/err.h"

/* One quantity over all windows: x in one of them, n that of its group in the same one. */
struct tally_sum {
	double x, xx, xn;
	double now; /* of the present window */
};

struct tally_entry {
	struct gpb_stack *st; /* owned; ends behind the last pc in use */
	size_t group;
	uint64_t count, delay; /* observed in full: sums of gpb_stack.count and .delay */
	uint64_t sampled;      /* in windows: sums of gpb_stack.count */
	struct tally_sum counts, delays;
	size_t site;
	size_t seen;  /* where it was put into tally.seen, if it is still there */
	bool touched; /* in the present window */
};

/*
 * Sums of several stacks. Stacks of one program come and go together, so the variance of a sum is
 * not the sum of their variances: it is taken from the sum's own numbers, window by window.
 */
struct tally_part {
	struct tally_sum counts; /* n: that of its group or, where groups are merged, of group 0 */
	struct tally_sum delays; /* n: the delays of its whole */
	struct tally_sum compared; /* counts of group 0 alone; n: that of group 0 */
	bool touched;
};

/* Stacks that begin alike, in one group unless groups are merged: a place in the program. */
struct tally_site {
	size_t group, whole, first; /* first: its first entry */
	struct tally_part sums;
	double *with; /* by column: sum of its count times that column's, over windows. May be NULL */
};

/*
 * Groups of which windows tell all there was in them, and not only of samples: what regression
 * goes by (calibrate.h). The first ones that were seen.
 */
enum { TALLY_COLUMNS = 40 };
struct tally_columns {
	size_t n, group[TALLY_COLUMNS];
	uint8_t of[GPB_CLASSES]; /* by group: its column + 1 */
	double sum[TALLY_COLUMNS];
	double cross[TALLY_COLUMNS][TALLY_COLUMNS]; /* sums of products */
	double with[TALLY_COLUMNS][TALLY_COLUMNS];  /* with what samples say: [group][column] */
};

/* What was drained and belongs to a stretch that has not been closed yet. */
struct tally_seen {
	size_t entry;
	uint64_t count, delay;
	double weight; /* how many it stands for; 0: as the window says */
};

enum { TALLY_GROUPS = GPB_CLASSES, TALLY_WHOLES = 3 };

struct tally {
	/*
	 * How many pcs of a stack, from its innermost, tell its site: the last of them does. NULL: the
	 * first few together.
	 */
	size_t (*depth)(void *arg, const struct gpb_stack *st);
	/* Which sum over sites a stack is part of, < TALLY_WHOLES. NULL: 0. */
	size_t (*whole)(void *arg, const struct gpb_stack *st);
	void *arg;   /* of both */
	bool merged; /* a site is the same in all groups */
	VEC(struct tally_entry) entries;
	VEC(struct tally_site) sites;
	struct map by_site;
	VEC(struct tally_seen) seen;
	struct map by_stack, by_key; /* hashes to indices: ours, and the kernel's */
	struct tally_sum groups[TALLY_GROUPS];
	struct tally_part wholes[TALLY_WHOLES];
	struct tally_columns columns;
	uint64_t sampled[TALLY_GROUPS]; /* by group, in windows */
	uint64_t windows;
	double weights; /* of all of them */
};

void tally_init(struct tally *t);
void tally_fini(struct tally *t);

/* Adds what was drained. @group: what tally_entry.group is when it is new. -E2BIG: no room. */
int tally_add(struct tally *t, const struct gpb_stack *st, size_t group, struct err *e);
/* Adds what was observed in full, whatever the stretch that it came in. */
int tally_add_full(struct tally *t, const struct gpb_stack *st, size_t group, struct err *e);
/* As tally_add, of what tells by itself how many it stands for: it counts with the next window. */
int tally_add_weighted(struct tally *t, const struct gpb_stack *st, size_t group, double weight,
		       struct err *e);
/* Which entry a stack is, new if need be; nothing was seen of it by that. */
int tally_index(struct tally *t, const struct gpb_stack *st, size_t group, size_t *out,
		struct err *e);
/* Is there one? */
bool tally_has(const struct tally *t, const struct gpb_stack *st, size_t *out);
/* The kernel's key of a stack that was added; for what is told of it apart. */
int tally_key(struct tally *t, const struct gpb_hash *key, const struct gpb_stack *st,
	      struct err *e);
/* NULL when it is not known. */
struct tally_entry *tally_find(struct tally *t, const struct gpb_hash *key);

/* What was added since the last of these was observed in full. */
void tally_full(struct tally *t);

/* ... or in a window. */
struct tally_window {
	double weight; /* of the window, by time */
	/* How many a sampled one stands for; NULL: one. */
	double (*inverse)(void *arg, const struct gpb_stack *st);
	void *arg;
	/* With what group 0 of each window is compared; NULL: with all of that group in it. */
	const double *n;
	/* By group: all that was seen of it, weighted. May be NULL. */
	const double *all;
};
void tally_window(struct tally *t, const struct tally_window *w);

/* What came after the last window, with weights of its own. */
void tally_rest(struct tally *t);

/* Of one entry's windows, with the group's known total; @total < 0: unknown, x is the estimate. */
struct tally_estimate {
	double value, variance; /* of one window the variance is not known: -1 */
};
/* A variance of squares that were summed over windows, of which @fitted numbers were fitted. */
double tally_among(const struct tally *t, double squares, size_t fitted);
/* The least that the variance of an entry's, or its site's, share of its group can be. */
double tally_least(const struct tally *t, size_t group, double share);
struct tally_estimate tally_counts(const struct tally *t, const struct tally_entry *en,
				   double total);
/*
 * The same where windows were compared with something whose total is known, and with which counts
 * may go up and down or not.
 */
struct tally_estimate tally_regressed(const struct tally *t, const struct tally_entry *en,
				      double total);
struct tally_estimate tally_delays(const struct tally *t, const struct tally_entry *en);

/*
 * The variance of how many, of an entry that no window met: one may have come in between, and would
 * count as much as a window does. 0 of others, and where there was no window.
 */
double tally_missed(const struct tally *t, const struct tally_entry *en);
double tally_missed_part(const struct tally *t, const struct tally_part *p);

/* As tally_counts, of the entry's whole site. */
struct tally_estimate tally_site_counts(const struct tally *t, const struct tally_entry *en,
					double total);

/* Of a site or a whole: how many, and for how long. */
struct tally_estimate tally_part_counts(const struct tally *t, const struct tally_part *p);
struct tally_estimate tally_part_delays(const struct tally *t, const struct tally_part *p);
/*
 * As tally_regressed, of a part: its counts in group 0 are regressed on that group's n, whose sum over
 * all of the time is @total; those of other groups are as they are. .value is of group 0 alone.
 */
struct tally_estimate tally_part_regressed(const struct tally *t, const struct tally_part *p,
					   double total);
/* The part's share of the delays of its whole @all: a ratio estimator. */
struct tally_estimate tally_part_share(const struct tally *t, const struct tally_part *p,
				       const struct tally_part *all);

#endif
