/*
 * user/collect/onlook.h - how long goroutines wait, seen from outside: looks at all of them at
 * random moments, while nothing of the target is touched.
 *
 * What a site's waits last in all, in a stretch of time, is the time times how many wait there at
 * a random moment of it (J. D. C. Little, Operations Research 9, 1961): short waits and long ones
 * alike. Probes would make the short ones longer. So a look stands for the stratum of time that
 * its moment was drawn from evenly, and a wait for the looks that saw it:
 *
 *	time	|--- stratum ---|--- stratum ---|--- stratum ---|
 *	look	       x                   x      x
 *
 * Two looks in a row that see one goroutine have seen one wait when it was the same (parked_same).
 * A wait counts once a look finds that it has ended. One that the first look found does not, nor
 * one that the last did: when it began, or will end, is not known. One that ONLOOK_COUNTS
 * looks saw is counted, too, and not by probes (onlook_conf.counted): so few that probes count what
 * they themselves make a little longer, and so many that it ends while they are there.
 *
 * A wait that is shorter than reading its stack takes has the stack that its goroutine is next
 * found with, waiting for the same: one that the probes have seen, or that stood still. Or else
 * the one that it was last found with.
 */
#ifndef COLLECT_ONLOOK_H
#define COLLECT_ONLOOK_H

#include "collect/labels.h"
#include "collect/subject_priv.h"
#include "collect/tally.h"

#define ONLOOK_STRATUM_NS 2000000ull
enum { ONLOOK_COUNTS = 3, ONLOOK_MAX = 1 << 18 /* goroutines that are looked at */ };

struct onlook;

/* What looks say of one entry of the tally. */
struct onlook_estimate {
	double count, count_variance; /* waits that ONLOOK_COUNTS looks saw */
	double beyond;		      /* of these: those that outlast a window (onlook_conf) */
	/* Of all of its waits. Chance is counted by site, at the first entry of each. */
	double delay_ns, delay_variance;
	double own_variance; /* of it, what is not by chance of looks: additive */
	/* Of those that were there at all looks, up to the first that they were not, or to the last. */
	double unsure_ns;
};

struct onlook_result {
	uint64_t looks, cpu_ns;
	double stratum_ns;	 /* the mean */
	uint64_t early, waiting; /* waits seen at the first look, and at the last */
	double lost_ns;		 /* of those whose stacks could not be read */
	uint64_t beyond;	 /* goroutines beyond ONLOOK_MAX, at most at once */
	uint64_t labels_cut;
	uint64_t crowded; /* waits of stacks that there was no room for */
};

/*
 * Of waits for @reasons, a bit each, or of @all, those for a thread to run on and system calls
 * among them (of which ONLOOK_COUNTS looks do not count any: whether it is one is not known): then
 * stacks have the size of wait profiles. Of @semas, semaphores, those that Go's block profile has.
 * Stacks become entries of @t (borrowed, as @labels). *@counted: what began before that and
 * lasts has been seen by ONLOOK_COUNTS looks; CLOCK_MONOTONIC, 0 none.
 * -ENOTSUP when the layout does not tell what is needed.
 */
struct onlook_conf {
	/* A window of probes sees the end of a wait that begins in its first part. */
	double begin_ns, end_ns;
	struct labelsets *labels;
	struct tally *tally;
	uint64_t reasons, semas;
	uint64_t apart; /* of these delays are summed apart, too */
	bool all;
	/* Of all: what is to be done with the stack of a system call, which looks find on its way in. */
	void (*settle)(void *arg, struct gpb_stack *st);
	void *settle_arg;
	volatile uint64_t *counted;
};
int onlook_new(struct subject *s, const struct collect_opts *o, const struct onlook_conf *c,
	       struct onlook **out, struct err *e);
void onlook_free(struct onlook *k);
DEFINE_FREEP(struct onlook, onlook)

/* From now on, until onlook_pause. What waits at a pause counts up to it. */
int onlook_begin(struct onlook *k, struct err *e);
int onlook_pause(struct onlook *k, struct err *e);

/* Looks are for the time up to now; there are no more of them. */
void onlook_stop(struct onlook *k);

/* To be polled for reading; onlook_poll then looks when it is time. */
int onlook_fd(const struct onlook *k);
int onlook_poll(struct onlook *k, struct err *e);

/* What came of them: who waits now has not ended. */
void onlook_end(struct onlook *k, struct onlook_result *out);
/* How delays were learned, for a profile's comments; the rest as in onlook_conf. */
int onlook_comment(const struct onlook_result *r, uint64_t begin_ns, uint64_t end_ns,
		   struct prof *p, struct err *e);
/* After onlook_end; @entry: its index in the tally. */
struct onlook_estimate onlook_of(const struct onlook *k, size_t entry);
/* For what is told of a site, or of all (onlook_sums.h). */
struct onlook_sums;
const struct onlook_sums *onlook_sums(const struct onlook *k);

#endif
