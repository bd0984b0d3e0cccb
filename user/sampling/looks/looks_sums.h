/*
 * user/sampling/looks/looks_sums.h - the sums of looks (collect/waits/looks/looks.h), by entry of the tally and by place
 * in the program.
 */
#ifndef SAMPLING_LOOKS_LOOKS_SUMS_H
#define SAMPLING_LOOKS_LOOKS_SUMS_H

#include "goprof_abi.h"
#include "sampling/tally.h"

#define LOOKS_STRATUM_NS 2000000ull
enum { LOOKS_COUNTS = 3 };
enum { LOOKS_WHATS = 64 };
enum { LOOKS_LENGTHS = 24, LOOKS_NOT_COUNTED = -1 };

/* What looks say of one entry of the tally. */
struct looks_estimate {
	double count, count_variance; /* number of waits that LOOKS_COUNTS looks saw */
	/*
	 * Total length of all of its waits. The variance from random looks is that of the site,
	 * and is reported with the first entry of each site.
	 */
	double delay_ns, delay_variance;
	/* Waits that fewer than LOOKS_COUNTS looks saw: their number, and their delay. */
	double few, few_ns;
	/*
	 * The total length of the waits that are counted. Chance selects which of those that last
	 * about LOOKS_COUNTS looks are among them, so it may be too large by edge_ns.
	 */
	double counted_ns, edge_ns;
	/*
	 * Waits of the same lengths that too few looks saw, by chance: the waits that are counted
	 * stand for them, too. Their number, total length, and the variance of that length.
	 */
	double missed, missed_ns, missed_variance;
	double own_variance; /* of it, what is not by chance of looks: additive */
	/*
	 * Total length of waits that were there at every look, from the first one on or until the
	 * last one.
	 */
	double unsure_ns;
};

struct looks_sum {
	double count, ns, unsure_ns;
	double few, few_ns, counted_ns, edge_ns, missed, missed_ns,
		missed_variance; /* as in looks_estimate */
	/* variances that do not come from the random moments of looks */
	double count_variance, ns_variance;
	bool known;	 /* it was seen in a stack that stood still */
	bool apart;	 /* looks_conf.apart */
	size_t site;	 /* index in the tally, and in looks_sums.sites */
	int32_t counted; /* 1, LOOKS_NOT_COUNTED, or 0 while this is not known */
};

/* The waits of one place in the program, or of all of them; looks are the sampling units. */
struct looks_site {
	bool known;
	size_t first; /* the first entry that counts */
	double at_first, now, last;
	double squares;	    /* of the differences between looks, from the first one on */
	double count;	    /* number of waits that LOOKS_COUNTS looks saw */
	uint64_t look;	    /* number of the look that now belongs to */
	double len, before; /* strata of that look, and of the one before */
	/* How many waited at once, of the looks that saw any: the most and the least; and how many looks those are. */
	double most, least;
	uint64_t met;
	/* How many waits ended between two looks: the most, and until now before the look of that number. */
	unsigned ended_most, ended;
	uint64_t ended_look;
};

/* A struct that is zeroed, except for its first eight members, is empty. */
struct looks_sums {
	struct tally *tally; /* borrowed */
	/* Is this wait in none of Go's block profiles? NULL: they all count. */
	bool (*left_out)(void *arg, const struct gpb_stack *st, uint8_t reason);
	void *arg;
	uint64_t reasons_apart;
	bool (*room)(void *room_arg); /* as in looks_conf */
	void *room_arg;
	VEC(struct looks_sum) at;     /* by entry */
	VEC(struct looks_site) sites; /* by site of the tally */
	struct looks_site all;	      /* all sites of the tally's first whole */
	struct looks_site apart;      /* the sites of looks_conf.apart */
	uint64_t crowded;	      /* waits of stacks that there was no room for */
	uint64_t look;		      /* the number of the present look */
	double len, len_before;	      /* its stratum, and that of the last one */
	double lens, len_squares;     /* sums over all looks */
	/* before: gap before the last one; gap: the last one; sum of all gaps */
	double before, gap, gaps_ns;
	double missed[LOOKS_LENGTHS];
	double lost_ns[LOOKS_WHATS]; /* looks_sums_lost(), by what was waited for */
	uint64_t *
		whats; /* owned; by site of the tally, at the end: what was waited for there, a bit each */
	size_t nwhats;
	/*
	 * Set at the end: all of the time divided by the strata of looks; the variance of what
	 * looks may not have met.
	 */
	double scale, unmet;
};

/*
 * The entry of a stack; LOOKS_NOT_COUNTED when Go's block profile has no such waits. @still: the
 * stack stood still, so it is valid; other stacks are *known when they have been seen elsewhere.
 * A wait whose stack there is no room for is followed as one that is not counted.
 */
int looks_sums_entry(struct looks_sums *u, const struct gpb_stack *st, uint8_t reason, bool still,
		     bool *known, int32_t *out, struct err *e);

/* What follows is seen by a look that stands for a stratum of @ns, until it was made: one that fails begins again. */
void looks_sums_look(struct looks_sums *u, double ns);
void looks_sums_looked(struct looks_sums *u);

/* This look saw a wait there, for @ns. */
void looks_sums_saw(struct looks_sums *u, int32_t entry, double ns);
/* The first look saw it for @ns, as the second one does: it does not count (looks_sums_unsure()). */
void looks_sums_unsaw(struct looks_sums *u, int32_t entry, double ns);
/*
 * A wait is over that looks saw for @ns in all; @length: about how long it lasted if
 * LOOKS_COUNTS looks saw it, else 0.
 */
void looks_sums_over(struct looks_sums *u, int32_t entry, double ns, double length);
/* A wait is over of which the beginning is known: it stands for itself alone. */
void looks_sums_whole(struct looks_sums *u, int32_t entry, double ns, double length);
/* Of a wait that is over about @ns were not seen, and guessed. */
void looks_sums_guessed(struct looks_sums *u, int32_t entry, double ns);
/*
 * For a wait that was there at the first look or still is at the last one: its length is not known,
 * so @ns and the wait itself are a part of the error.
 */
void looks_sums_unsure(struct looks_sums *u, int32_t entry, double ns);
/*
 * Waits that lasted @ns ended before a stack of theirs was found; @wait: what is known of them. They may be of
 * any place where goroutines wait for that, and are a part of its error.
 */
void looks_sums_lost(struct looks_sums *u, const struct gpb_stack *wait, double ns);
/* The time between this look and the last one. */
void looks_sums_gap(struct looks_sums *u, double ns);

/*
 * There are no more looks. @phase_ns: the time that they are for; @strata_ns: the sum of their
 * strata.
 */
void looks_sums_end(struct looks_sums *u, double phase_ns, double strata_ns);
struct looks_estimate looks_sums_of(const struct looks_sums *u, size_t entry);
/*
 * The variance of delays that comes from the random moments of looks: of a site of the tally, of all
 * sites together, and of those that are summed apart. A site that no look met has the variance of what looks may not have met.
 */
double looks_site_variance(const struct looks_sums *u, size_t site);
double looks_all_variance(const struct looks_sums *u);
double looks_apart_variance(const struct looks_sums *u);
/* Of a site that no look met, what one goroutine's is for that; 0: one did. */
double looks_site_unmet(const struct looks_sums *u, size_t site);
/* The length of the waits without a stack that may be of this site; of all sites; of those that are summed apart. */
double looks_site_lost(const struct looks_sums *u, size_t site);
double looks_all_lost(const struct looks_sums *u);
double looks_apart_lost(const struct looks_sums *u);
/* The number of waits that looks counted there. */
double looks_site_count(const struct looks_sums *u, size_t site);
/*
 * The length (ns) from which the waits that LOOKS_COUNTS looks saw are scaled up to all waits; 0: none are,
 * because looks are too rare, or it is not known.
 */
uint64_t looks_stands_from(const struct looks_sums *u);
void looks_sums_fini(struct looks_sums *u);

#endif
