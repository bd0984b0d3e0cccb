/*
 * user/collect/waits/looks/looks.h - how long goroutines wait, seen from outside: all of them are looked at,
 * at random moments, and nothing of the target is changed.
 *
 * Little's law: the total length of a site's waits in a period is the period times the mean
 * number of goroutines that wait there at a random moment (J. D. C. Little, Operations Research
 * 9, 1961). This holds for short waits and long ones alike, while probes would make short ones
 * longer. So a look stands for the stratum of time that its moment was drawn from uniformly, and
 * a wait for the looks that saw it:
 *
 * 	time	|--- stratum ---|--- stratum ---|--- stratum ---|
 * 	look	       x                   x      x
 *
 * Two looks in a row that see one goroutine have seen one wait when it was the same
 * (parked_same). A wait counts when a look finds that it has ended. A wait that the first look
 * found, or the last one, does not count, because its beginning or its end is not known. A wait
 * that LOOKS_COUNTS looks saw is counted here and not by probes (looks_conf.counted). That
 * number is small enough that probes need not count waits which they make a little longer, and
 * large enough that a shorter wait ends while probes are there.
 *
 * A wait that is shorter than the reading of its stack gets the stack that its goroutine is found
 * with next, waiting for the same: one that the probes have seen, or that stood still; or else
 * the stack that it was last found with.
 */
#ifndef COLLECT_WAITS_LOOKS_LOOKS_H
#define COLLECT_WAITS_LOOKS_LOOKS_H

#include "goprof_abi.h"
#include "probe/stacks/labels.h"
#include "sampling/looks/look_times.h"
#include "sampling/looks/looks_sums.h"
#include "subject/subject.h"

enum { LOOKS_MAX = 1 << 18 /* goroutines that are looked at */ };

struct looks;

/* The share of a CPU that looks take at most, in the long run. */
#define LOOKS_SHARE_MOST 0.05

struct looks_result {
	uint64_t looks, cpu_ns;
	double stratum_ns; /* mean length */
	uint64_t begun_before,
		waiting; /* waits that were seen at the first look, and at the last */
	uint64_t known;	 /* waits of looks_know() that were seen at the first look */
	double lost_ns;	 /* length of waits whose stacks could not be read */
	uint64_t beyond; /* largest number of goroutines beyond LOOKS_MAX at a time */
	uint64_t labels_cut;
	uint64_t crowded; /* waits of stacks that there was no room for */
};

/*
 * Which waits are looked at. @reasons: one bit for each reason. @all: every wait, with those for
 * a thread and system calls; then stacks have the size of wait profiles. System calls are never
 * counted by LOOKS_COUNTS looks, because it is not known whether several looks saw one call.
 * @semas: of semaphores, those that Go's block profile has. Stacks become entries of @t
 * (borrowed, as @labels). *@counted: waits that began before this time and still last have been
 * seen by LOOKS_COUNTS looks; CLOCK_MONOTONIC, 0: none. -ENOTSUP when the layout lacks what is
 * needed.
 */
struct looks_conf {
	struct labelsets *labels;
	struct tally *tally;
	uint64_t reasons, semas;
	uint64_t apart; /* of these delays are summed apart, too */
	bool all;
	/*
	 * With @all: what is to be done with the stack of a system call, which looks find on its
	 * way into the kernel.
	 */
	void (*settle)(void *arg, struct gpb_stack *st);
	void *settle_arg;
	/* The share of a CPU that they take at most (borrowed); NULL: LOOKS_SHARE_MOST. */
	const double *share;
	/* Is there room in @tally for one more stack? NULL: as much as it has. */
	bool (*room)(void *room_arg);
	void *room_arg;
	struct labels_room labels_room; /* in @labels */
	volatile uint64_t *counted;
	struct look_pair *pair; /* with whom it looks at once, if they can; borrowed, may be NULL */
};
int looks_new(struct subject *s, const struct collect_opts *o, const struct looks_conf *c,
	      struct looks **out, struct err *e);
void looks_free(struct looks *k);
DEFINE_FREEP(struct looks, looks)

/*
 * Looks are made from now on, until looks_pause(), and stand for all of the time from @since on
 * (CLOCK_MONOTONIC, not long ago; 0: now). A wait that is under way at a pause is one wait, and its length in the pause counts,
 * too: all of that if it is there at the next look, else as much as it had lasted.
 */
int looks_begin(struct looks *k, uint64_t since, struct err *e);
int looks_pause(struct looks *k, struct err *e);

/* A wait of the goroutine at @g that began before looks did, or in a pause: in time that was observed in full. */
struct looks_begun {
	uint64_t g, since; /* CLOCK_MONOTONIC */
};
/*
 * These may be under way at the next look, a phase's first one: then each counts from its beginning on. @b is sorted by g, and borrowed until
 * that look. To be called after looks_begin().
 */
void looks_know(struct looks *k, const struct looks_begun *b, size_t n);
void looks_begun_sort(struct looks_begun *b, size_t n);

/* Looks are for the time up to now; no more are made. */
void looks_stop(struct looks *k);

/* To be polled for reading; looks_poll() then looks when it is time. */
int looks_fd(const struct looks *k);
int looks_poll(struct looks *k, struct err *e);
/* When that has something to do; 0: never. */
uint64_t looks_due(const struct looks *k);

/* The results. Waits that are there now have not ended. */
void looks_end(struct looks *k, struct looks_result *out);
/* To be called after looks_end(); @entry: its index in the tally. */
struct looks_estimate looks_of(const struct looks *k, size_t entry);
/* For what is told of a site, or of all (looks_sums.h). */
const struct looks_sums *looks_sums(const struct looks *k);

#endif
