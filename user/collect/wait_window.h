/*
 * user/collect/wait_window.h - numbers of waits of every kind: what stretches (probing.h) say, and
 * what is seen from outside meanwhile (onlook.h). As sched_window.h has it, but:
 *
 * All that a goroutine does between two waits is to run, and how often goroutines begin to run
 * the runtime counts itself: numbers of short waits are made to agree with that.
 *
 * Looks do not count system calls (onlook_conf.all). Long ones are counted by windows when they
 * end, whenever they began. One that is there at all looks is many if a window saw any end.
 */
#ifndef COLLECT_WAIT_WINDOW_H
#define COLLECT_WAIT_WINDOW_H

#include "collect/feed.h"
#include "collect/onlook.h"
#include "collect/probing.h"
#include "collect/slowness.h"
#include "collect/tally.h"
#include "wait.skel.h"

/* A window's parts, ns. */
#define WAIT_BEGIN_NS 3000000ull
#define WAIT_END_NS   10000000ull

struct wait_window {
	struct subject *s; /* borrowed, as the next ones */
	struct wait_bpf *obj;
	struct feed *feed;
	struct collect_opts o;
	struct gpb_waiting conf;
	struct tally tally;    /* group: GPB_WAIT_SHORT, _LONG or _CALL */
	struct map leaves;     /* of system calls: function -> the pc that stands for it */
	bool full;	       /* all is observed */
	bool windowed;	       /* it was not, at some time */
	struct onlook *onlook; /* NULL: not yet, or see why */
	struct err why;
	struct slowness slow;
	uint64_t runs, paced_runs;	   /* at the end of the last stretch */
	double paced;			   /* runs of all windows that no probe makes fewer */
	uint64_t cut;			   /* waits under way when a stretch in full ended */
	struct gpb_waiting_seen forgotten; /* seen before anything counted */
};

/* The first members and conf.g_waitreason are set. */
int wait_window_put(struct wait_window *w, struct err *e);
/* Takes a stack that came through the ring. */
int wait_window_add(void *w, const struct gpb_stack *st, struct err *e);

/* For struct probing_user. @w: a wait_window. */
int wait_window_spent(void *w, struct gpb_spent *out, struct err *e);
int wait_window_turn(void *w, bool windows, double hit_ns, uint64_t window_ns, struct err *e);
int wait_window_over(void *w, const struct stretch *s, struct err *e);

/* Nothing counts any more: looks end, and the runtime's count, before probes are taken out. */
void wait_window_stop(struct wait_window *w);
/* When nothing is probed any more: what came of looks. */
void wait_window_end(struct wait_window *w, struct onlook_result *out);
int wait_window_seen(const struct wait_window *w, struct gpb_waiting_seen *out, struct err *e);

/* What was observed in full as it was, windows added. */
struct wait_estimate {
	int64_t count, delay;		 /* in 1 / GPB_COUNT_ONE; ns */
	double count_error, delay_error; /* variances, < 0 not known */
};
struct wait_estimate wait_window_estimate(const struct wait_window *w, size_t entry);
void wait_window_fini(struct wait_window *w);

#endif
