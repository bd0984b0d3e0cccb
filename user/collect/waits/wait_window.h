/*
 * user/collect/waits/wait_window.h - numbers of waits of every kind: what stretches (probing.h) say,
 * and what is seen from outside meanwhile (onlook.h). It works as sched_window.h describes, with
 * two differences:
 *
 * A goroutine does nothing between two waits except run, and the runtime itself counts how often
 * goroutines begin to run. So numbers of short waits are made to agree with that count, except for
 * time of a pace that no window met (run_rates.h).
 *
 * Looks do not count system calls (onlook_conf.all). Windows count long ones when they end,
 * whenever they began. When every look finds a goroutine in a system call at the same place, that
 * may be one call that never ended, or many calls. It is taken for many if some window saw a call
 * end at that stack.
 */
#ifndef COLLECT_WAITS_WAIT_WINDOW_H
#define COLLECT_WAITS_WAIT_WINDOW_H

#include "collect/waits/onlook.h"
#include "collect/waits/slowness.h"
#include "collect/waits/undercount.h"
#include "engine/fine_rate.h"
#include "engine/probing.h"
#include "goprof_abi.h"
#include "probe/feed.h"
#include "sampling/tally.h"
#include "wait.skel.h"

/*
 * The parts of a window at its shortest, and how long it may be where hits are few, in ns. The second
 * part is equally long in all windows. A burst that comes just then must bear a window of that length.
 */
#define WAIT_BEGIN_NS 3000000ull
#define WAIT_END_NS   10000000ull
#define WAIT_PARTS              \
	((struct window_parts){ \
		.begin_ns = WAIT_BEGIN_NS, .end_ns = WAIT_END_NS, .most_ns = 30000000 })

enum wait_whole { WAIT_WHOLE_PROGRAM, WAIT_WHOLE_RUNTIME };

struct wait_window {
	struct subject *s; /* borrowed, as the next ones */
	struct wait_bpf *obj;
	struct feed *feed;
	struct collect_opts o;	 /* its wait_rate: that of full observation */
	bool rate_used;		 /* it stays what it is */
	struct fine_waits light; /* what was seen before anything counted */
	struct gpb_waiting conf;
	struct tally tally; /* group: GPB_WAIT_SHORT, _LONG or _CALL; whole: enum wait_whole */
	bool (*by_runtime)(struct subject *s, const struct gpb_stack *st);
	struct map leaves;     /* for system calls: function -> the pc that stands for it */
	bool full;	       /* everything is observed */
	bool windowed;	       /* at some time not everything was observed */
	struct onlook *onlook; /* NULL: not yet, or see why */
	struct err why;
	struct slowness slow;
	double own; /* ns: of the window that was closed last, the target's own time */
	struct undercounts under;  /* set at the end, if there were looks */
	double length;		   /* ns: of the window that was closed last, from open to closed */
	uint64_t runs, paced_runs; /* at the end of the last stretch */
	/* in all windows: runs that probes do not make fewer, because a clock paces them */
	double paced;
	uint64_t crowded; /* waits of stacks that there was no room for */
	/* waits that were under way when a stretch of full observation ended */
	uint64_t cut;
	struct gpb_waiting_seen forgotten; /* seen before anything counted */
};

/*
 * @w must be zero except for s. It must not be moved afterwards. @by_runtime: does a stack belong
 * to one of the runtime's own goroutines, which the profile leaves out?
 */
void wait_window_init(struct wait_window *w,
		      bool (*by_runtime)(struct subject *s, const struct gpb_stack *st));
/* The first members and conf.g_waitreason must be set. */
int wait_window_put(struct wait_window *w, struct err *e);
/* Takes a stack that came through the ring. */
int wait_window_add(void *w, const struct gpb_stack *st, struct err *e);

/* For struct probing_user. @w: a wait_window. */
int wait_window_spent(void *w, struct gpb_spent *out, struct err *e);
int wait_window_turn(void *w, bool windows, uint64_t since, double hit_ns, uint64_t window_ns,
		     struct err *e);
int wait_window_over(void *w, const struct stretch *s, struct err *e);

/* Looks, when onlook_fd() is readable; to be called often in any case. */
int wait_window_poll(struct wait_window *w, struct err *e);
/* For tests: what was added since the last window was seen in this one; @now: sums over all CPUs. */
void wait_window_close(struct wait_window *w, const struct stretch *s,
		       const struct gpb_waiting_seen *now);
/* From now on nothing counts: looks end, and the runtime's count, before probes are taken out. */
void wait_window_stop(struct wait_window *w);
/* To be called when nothing is probed any more: the results of looks. */
void wait_window_end(struct wait_window *w, struct onlook_result *out);
int wait_window_seen(const struct wait_window *w, struct gpb_waiting_seen *out, struct err *e);

/*
 * Full observation as it was, with what windows add. These variances belong to one stack alone,
 * and may be added up. The other errors are known only of a site, or of all sites together; < 0:
 * not known.
 */
struct wait_estimate {
	int64_t count, delay; /* in 1 / GPB_COUNT_ONE; ns */
	double count_error, delay_error;
};
struct wait_error {
	double count, delay; /* variances */
};
struct wait_estimate wait_window_estimate(const struct wait_window *w, size_t entry);
/* For a site of the tally; for all waits of the program's own goroutines. */
struct wait_error wait_window_site(const struct wait_window *w, size_t site);
struct wait_error wait_window_whole(const struct wait_window *w);
void wait_window_fini(struct wait_window *w);

#endif
