/*
 * user/collect/sched_window.h - numbers of probed waits: what stretches (probing.h) say, and what
 * is seen of waits from outside meanwhile (onlook.h).
 *
 * A window has two parts. In the first one waits may begin; those that do are counted when they
 * end, which is in the second one at the latest. How many there are is what windows are for. Which
 * of them look long enough from outside to be counted there the probes leave out
 * (sched_counted of bpf/sched.bpf.c). How long they last looks alone tell: probes slow down what
 * waits are for.
 *
 * Who makes others wait for a mutex looks do not see, but how long all of them wait (Go 1.22+,
 * where an unlock is charged with what all waiters waited): windows tell whose that is.
 *
 * So that slowness does not make the numbers too small, short waits count when they began within
 * so much time of the target's own on that CPU (struct gpb_wait_clock), longer ones, which are
 * paced by a clock or by who is outside, when they began in the first part at all (GPB_LONG_NS).
 */
#ifndef COLLECT_SCHED_WINDOW_H
#define COLLECT_SCHED_WINDOW_H

#include "collect/feed.h"
#include "collect/onlook.h"
#include "collect/probing.h"
#include "collect/slowness.h"
#include "collect/tally.h"
#include "sched.skel.h"

/* A window's parts, ns. */
#define SCHED_BEGIN_NS 3000000ull
#define SCHED_END_NS   10000000ull

struct sched_window {
	struct subject *s; /* borrowed, as the next ones */
	struct sched_bpf *obj;
	struct feed *feed;
	struct collect_opts o;
	struct gpb_sched *conf;
	struct tally tally;    /* group: GPB_WAIT_* */
	bool full;	       /* all is observed */
	bool windowed;	       /* it was not, at some time */
	uint64_t opened;       /* of the last stretch in full */
	struct onlook *onlook; /* NULL: not yet, or see why */
	struct err why;
	struct slowness slow;
	double too_few; /* the share that numbers by switches are too small by, about, and may be off */
	uint64_t parks_before;
	struct gpb_sched_seen forgotten; /* seen before anything counted */
	double outlasted;		 /* contentions that did not end in their window: about */
	uint64_t crowded;		 /* waits of stacks that there was no room for */
	uint64_t cut;	  /* waits under way when a stretch that was observed in full ended */
	uint64_t mutexes; /* wait reasons: those that are charged to who unlocks; 0 see locked */
	struct {
		bool known;			   /* by looks: */
		double delay, delay_error, beyond; /* of all; its variance; that outlast windows */
	} locked;
};

/* Of zeroes, with s set. It stays where it is. */
void sched_window_init(struct sched_window *w);
/* What the BPF side is to go by: conf. */
int sched_window_put(struct sched_window *w, struct err *e);
/* Takes a stack that came through the ring. */
int sched_window_add(void *w, const struct gpb_stack *st, struct err *e);

/* For struct probing_user. @w: a sched_window. */
int sched_window_spent(void *w, struct gpb_spent *out, struct err *e);
int sched_window_turn(void *w, bool windows, double hit_ns, uint64_t window_ns, struct err *e);
int sched_window_over(void *w, const struct stretch *s, struct err *e);

/* Somebody wants to know of waits of this kind, too: conf has it. */
int sched_window_joined(struct sched_window *w, struct err *e);
/* Looks at those that wait, when onlook_fd is readable. */
int sched_window_poll(struct sched_window *w, struct err *e);
/* Nothing counts any more: looks end, and the runtime's count, before probes are taken out. */
void sched_window_stop(struct sched_window *w);
/* When nothing is probed any more: what came of looks. */
void sched_window_end(struct sched_window *w, struct onlook_result *out);
/* All that was seen. */
int sched_window_seen(const struct sched_window *w, struct gpb_sched_seen *out, struct err *e);
/* Waits that the probes saw begin since @from, and have not seen end. */
int sched_window_waiting(const struct sched_window *w, uint64_t from, uint64_t *out, struct err *e);

/*
 * What was observed in full as it was, windows added. Variances are those of what stacks do not share,
 * and may be added up; the rest is known of a site, or of all sites together: < 0 not known.
 */
struct sched_estimate {
	int64_t count, delay; /* in 1 / GPB_COUNT_ONE; ns */
	double count_error, delay_error;
};
struct sched_error {
	double count, delay; /* variances */
};
/* Numbers of waits are made to agree with the runtime's own count of switches. */
bool sched_window_by_switches(const struct sched_window *w);
struct sched_estimate sched_window_estimate(const struct sched_window *w, size_t entry);
/* Of a site of the tally; of all of a kind, GPB_WAIT_*. */
struct sched_error sched_window_site(const struct sched_window *w, size_t site);
struct sched_error sched_window_whole(const struct sched_window *w, unsigned kind);
void sched_window_fini(struct sched_window *w);

#endif
