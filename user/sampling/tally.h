/*
 * user/sampling/tally.h - distinct stacks, how much was seen of each, and what that stands for.
 *
 * For full observation the sums are kept as they are. What was seen in windows (probing.h) is an
 * estimate: a stack's share of its group (stratum) in windows, times the group's total where that
 * is known from elsewhere (a ratio estimator). The standard error comes from how much windows
 * differ: windows are the sampling units, because what happens within one is alike.
 *
 * A tally is of one target. What finds a stack from outside need not know the slot that the target's probes have.
 *
 * A group is a set with a total of its own: a size class of allocations, or all waits together.
 */
#ifndef SAMPLING_TALLY_H
#define SAMPLING_TALLY_H

#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "goprof_abi.h"

/*
 * Sums over all windows, for a ratio estimator: in each window x is the quantity, and n the same
 * quantity of its whole group.
 */
struct tally_sum {
	double x, xx, xn;
	double now; /* value in the present window */
};

struct tally_entry {
	struct gpb_stack *st; /* owned; ends behind the last pc in use */
	size_t group;
	uint64_t count, delay; /* full observation: sums of gpb_stack.count and .delay */
	uint64_t sampled;      /* in windows: sums of gpb_stack.count */
	struct tally_sum counts, delays;
	size_t site;
	size_t seen;  /* index in tally.seen, if it is still there */
	bool touched; /* it was seen in the present window */
	bool parked;  /* tally.parked, as the next one */
	bool follows;
};

/*
 * Sums over several stacks. Stacks of one program come and go together, so the variance of a sum
 * is not the sum of the variances: it is computed from the sum's own numbers, window by window.
 */
struct tally_part {
	struct tally_sum counts; /* n: that of its group or, where groups are merged, of group 0 */
	struct tally_sum delays; /* n: the delays of its whole */
	struct tally_sum compared; /* counts of group 0 alone; n: that of group 0 */
	/*
	 * Long waits of parked goroutines: entries of tally.parked in groups other than 0. Their counts (n:
	 * their delays) and their delays; the counts of entries of tally.follows in these groups, and of all
	 * others (n as for counts).
	 */
	struct tally_sum parked, parked_ns, follow, others;
	double full, full_delay; /* full observation: sums of gpb_stack.count and .delay */
	bool touched;
};

/* A place in the program: stacks that begin alike, in one group unless groups are merged. */
struct tally_site {
	size_t group, whole, first; /* first: its first entry */
	struct tally_part sums;
	/* by column: sum over windows of its count times that column's. May be NULL */
	double *with;
};

/*
 * The columns of the regression (calibrate.h): groups for which windows tell all there was in
 * them, and not only samples. They are the first ones that were seen.
 */
enum { TALLY_COLUMNS = 40 };
struct tally_columns {
	size_t n, group[TALLY_COLUMNS];
	uint8_t of[GPB_CLASSES]; /* by group: its column + 1 */
	double sum[TALLY_COLUMNS];
	double cross[TALLY_COLUMNS][TALLY_COLUMNS]; /* sums of products */
	/* the same with what samples say: [group][column] */
	double with[TALLY_COLUMNS][TALLY_COLUMNS];
};

/* What was drained and belongs to a stretch that has not ended yet. */
struct tally_seen {
	size_t entry;
	uint64_t count, delay;
	double weight; /* how many it stands for; 0: the window tells */
};

enum { TALLY_GROUPS = GPB_CLASSES, TALLY_WHOLES = 3 };

struct tally {
	/*
	 * How many pcs of a stack, from the innermost on, lead to its site: the last of them is
	 * the site. NULL: the first few together are.
	 */
	size_t (*depth)(void *arg, const struct gpb_stack *st);
	/* The number of the sum over sites that a stack belongs to, < TALLY_WHOLES. NULL: 0. */
	size_t (*whole)(void *arg, const struct gpb_stack *st);
	/* Does a parked goroutine wait there? NULL: no. */
	bool (*parked)(void *arg, const struct gpb_stack *st);
	/* Outside of group 0: does every wait of a parked goroutine end in one of these? NULL: no. */
	bool (*follows)(void *arg, const struct gpb_stack *st);
	void *arg;   /* for all callbacks */
	bool merged; /* a site comprises all groups */
	VEC(struct tally_entry) entries;
	VEC(struct tally_site) sites;
	struct map by_site;
	VEC(struct tally_seen) seen;
	/* from hashes to indices: our own hashes, and the kernel's keys */
	struct map by_stack, by_key;
	struct tally_sum groups[TALLY_GROUPS];
	struct tally_part wholes[TALLY_WHOLES];
	/* owned; NULL: there was no window with them, or no memory */
	struct tally_columns *columns;
	uint64_t sampled[TALLY_GROUPS]; /* by group, in windows */
	uint64_t windows;
	double weights; /* of all of them */
	/*
	 * The time that was observed in full, and the time that windows stand for. Only
	 * tally_part_missed() needs them; the user of the tally adds them up.
	 */
	double full_ns, windows_ns;
};

void tally_init(struct tally *t);
void tally_fini(struct tally *t);

/*
 * Adds what was drained. @group: the value of tally_entry.group if the entry is new. -E2BIG:
 * there is no room.
 */
int tally_add(struct tally *t, const struct gpb_stack *st, size_t group, struct err *e);
/* Adds what full observation saw, whichever stretch it came in. */
int tally_add_full(struct tally *t, const struct gpb_stack *st, size_t group, struct err *e);
/*
 * As tally_add(), for something that itself tells how many it stands for; it counts with the next
 * window.
 */
int tally_add_weighted(struct tally *t, const struct gpb_stack *st, size_t group, double weight,
		       struct err *e);
/* The entry of a stack, which is made if there is none; nothing is counted by that. */
int tally_index(struct tally *t, const struct gpb_stack *st, size_t group, size_t *out,
		struct err *e);
/* Is there an entry? */
bool tally_has(const struct tally *t, const struct gpb_stack *st, size_t *out);
/* Remembers the kernel's key of a stack that was added, for what is reported of it apart. */
int tally_key(struct tally *t, const struct gpb_hash *key, const struct gpb_stack *st,
	      struct err *e);
/* NULL when the key is not known. */
struct tally_entry *tally_find(struct tally *t, const struct gpb_hash *key);

/* Ends a stretch of full observation: counts what was added since the last call of these. */
void tally_full(struct tally *t);

/* ... or ends a window. */
struct tally_window {
	double weight; /* of the window; from time */
	/* How many waits or objects a sampled one stands for; NULL: one. */
	double (*inverse)(void *arg, const struct gpb_stack *st);
	void *arg;
	/*
	 * The quantity that group 0 is compared with in each window; NULL: all of that group in
	 * it.
	 */
	const double *n;
	/* By group: all that was seen of it, weighted. May be NULL. */
	const double *all;
};
void tally_window(struct tally *t, const struct tally_window *w);

/* Counts what came after the last window and has weights of its own. */
void tally_rest(struct tally *t);

/*
 * The estimate of one entry from its windows, with the group's known total; @total < 0: it is not
 * known, and x is the estimate.
 */
struct tally_estimate {
	double value, variance; /* from one window alone the variance is not known: -1 */
};
/* The variance that follows from squares summed over windows, when @fitted numbers were fitted. */
double tally_among(const struct tally *t, double squares, size_t fitted);
/* A lower bound of the variance of the share that an entry, or its site, has of its group. */
double tally_least(const struct tally *t, size_t group, double share);
struct tally_estimate tally_counts(const struct tally *t, const struct tally_entry *en,
				   double total);
/*
 * The same by regression: windows were compared with a quantity whose total is known, with which
 * counts may or may not grow.
 */
struct tally_estimate tally_regressed(const struct tally *t, const struct tally_entry *en,
				      double total);
struct tally_estimate tally_delays(const struct tally *t, const struct tally_entry *en);

/*
 * The variance of a part that no window met: of its number, and of its total delay, as far as full
 * observation tells how long each wait is. 0 for other parts, and where there was no window. @weight: how many of the part's a window's
 * one stands for, in the mean.
 */
struct tally_missed {
	double count, delay; /* count: in whole waits */
};
struct tally_missed tally_part_missed(const struct tally *t, const struct tally_part *p,
				      double weight);

/* As tally_counts(), for the entry's whole site. */
struct tally_estimate tally_site_counts(const struct tally *t, const struct tally_entry *en,
					double total);

/* How many there are of a group, by windows alone. */
struct tally_estimate tally_group(const struct tally *t, size_t group);
/* The estimates of a site or a whole: the number, and the total delay. */
struct tally_estimate tally_part_counts(const struct tally *t, const struct tally_part *p);
struct tally_estimate tally_part_delays(const struct tally *t, const struct tally_part *p);
/* tally_part_counts() of nothing but what follows long waits of parked goroutines, and of nothing but these. */
struct tally_estimate tally_part_follow(const struct tally *t, const struct tally_part *p);
struct tally_estimate tally_part_parked(const struct tally *t, const struct tally_part *p);
struct tally_estimate tally_part_parked_delays(const struct tally *t, const struct tally_part *p);
/*
 * The number of long waits of parked goroutines that last @total_ns together: by their mean length in windows,
 * which is a ratio estimator. The variance is for a given @total_ns.
 */
struct tally_estimate tally_part_by_length(const struct tally_part *p, double total_ns);
/*
 * As tally_regressed(), for a part: its counts in group 0 are regressed on that group's n, whose
 * sum over all of the time is @total. Counts of other groups are taken as they are. .value is for
 * group 0 alone. @lack: all of group 0 is so many times what windows say, which is known from elsewhere.
 */
struct tally_estimate tally_part_regressed(const struct tally *t, const struct tally_part *p,
					   double total, double lack);
/* The part's share of the delays of its whole @all: a ratio estimator. */
struct tally_estimate tally_part_share(const struct tally *t, const struct tally_part *p,
				       const struct tally_part *all);

#endif
