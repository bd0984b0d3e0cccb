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

enum wait_whole { WAIT_WHOLE_PROGRAM, WAIT_WHOLE_RUNTIME };

struct wait_window {
	struct subject *s; /* borrowed, as the next ones */
	struct wait_bpf *obj;
	struct feed *feed;
	struct collect_opts o;
	struct gpb_waiting conf;
	struct tally tally; /* group: GPB_WAIT_SHORT, _LONG or _CALL; whole: enum wait_whole */
	bool (*by_runtime)(struct subject *s, const struct gpb_stack *st);
	struct map leaves;     /* of system calls: function -> the pc that stands for it */
	bool full;	       /* all is observed */
	bool windowed;	       /* it was not, at some time */
	struct onlook *onlook; /* NULL: not yet, or see why */
	struct err why;
	struct slowness slow;
	uint64_t runs, paced_runs;	   /* at the end of the last stretch */
	double paced;			   /* runs of all windows that no probe makes fewer */
	uint64_t crowded;		   /* waits of stacks that there was no room for */
	uint64_t cut;			   /* waits under way when a stretch in full ended */
	struct gpb_waiting_seen forgotten; /* seen before anything counted */
};

/*
 * Of zeroes, with s set. It stays where it is. @by_runtime: is that a goroutine of the runtime's own, of
 * which there is nothing in the profile?
 */
void wait_window_init(struct wait_window *w,
		      bool (*by_runtime)(struct subject *s, const struct gpb_stack *st));
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

/*
 * What was observed in full as it was, windows added. Variances are those of what stacks do not share,
 * and may be added up; the rest is known of a site, or of all sites together: < 0 not known.
 */
struct wait_estimate {
	int64_t count, delay; /* in 1 / GPB_COUNT_ONE; ns */
	double count_error, delay_error;
};
struct wait_error {
	double count, delay; /* variances */
};
struct wait_estimate wait_window_estimate(const struct wait_window *w, size_t entry);
/* Of a site of the tally; of all of the program's own. */
struct wait_error wait_window_site(const struct wait_window *w, size_t site);
struct wait_error wait_window_whole(const struct wait_window *w);
void wait_window_fini(struct wait_window *w);

#endif
