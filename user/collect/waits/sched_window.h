/*
 * user/collect/waits/sched_window.h - numbers of probed waits: what stretches (probing.h) say, and what
 * is seen of waits from outside meanwhile (onlook.h).
 *
 * A window has two parts. In the first part waits may begin; those that do are counted when they
 * end, at the latest in the second part. Windows are there to tell how many waits there are.
 * Waits that looks from outside see for long enough are counted there, and the probes leave them
 * out (sched_counted of bpf/sched.bpf.c). Only looks tell how long waits last, because probes
 * slow down what is waited for (the observer effect).
 *
 * Looks do not see who makes others wait for a mutex, but they see how long all of them wait (Go
 * 1.22+, where an unlock is charged with what all waiters waited). Windows tell who is charged
 * with it.
 *
 * Overhead dilation would make the numbers too small. Therefore short waits count when they began
 * within a given amount of the target's own time on that CPU (struct gpb_wait_clock). Longer
 * waits, which a clock or the outside world paces, count when they began anywhere in the first
 * part (GPB_LONG_NS).
 */
#ifndef COLLECT_WAITS_SCHED_WINDOW_H
#define COLLECT_WAITS_SCHED_WINDOW_H

#include "collect/waits/onlook.h"
#include "collect/waits/slowness.h"
#include "collect/waits/undercount.h"
#include "engine/fine_rate.h"
#include "engine/probing.h"
#include "goprof_abi.h"
#include "probe/feed.h"
#include "sampling/tally.h"
#include "sched.skel.h"

/*
 * The parts of a window at its shortest, and how long it may be where hits are few, in ns. The second
 * part is equally long in all windows. A burst that comes just then must bear a window of that length.
 */
#define SCHED_BEGIN_NS 3000000ull
#define SCHED_END_NS   10000000ull
#define SCHED_PARTS             \
	((struct window_parts){ \
		.begin_ns = SCHED_BEGIN_NS, .end_ns = SCHED_END_NS, .most_ns = 30000000 })

struct sched_window {
	struct subject *s; /* borrowed, as the next ones */
	struct sched_bpf *obj;
	struct feed *feed;
	struct collect_opts o;			 /* its rates: those of full observation */
	bool rates_used;			 /* they stay what they are */
	struct fine_waits light[GPB_WAIT_KINDS]; /* what was seen before anything counted */
	struct gpb_sched *conf;
	struct tally tally;    /* group: GPB_WAIT_* */
	bool full;	       /* everything is observed */
	bool windowed;	       /* at some time not everything was observed */
	uint64_t opened;       /* when the last stretch of full observation began */
	struct onlook *onlook; /* NULL: not yet, or see why */
	struct err why;
	struct slowness slow;
	double own; /* ns: of the window that was closed last, the target's own time */
	struct undercounts under; /* set at the end, if there were looks */
	/*
	 * share by which numbers from switches are too small, roughly, and how far off that may
	 * be
	 */
	double too_few;
	struct {
		double parks, stand_for;
	} seen; /* in all windows */
	struct {
		double parks, told; /* all, and those of the kinds that are counted */
	} dense;		    /* in dense windows (slowness.h) */
	uint64_t parks_before;
	struct gpb_sched_seen forgotten; /* seen before anything counted */
	/* about how many contentions did not end in their window */
	double outlasted;
	uint64_t crowded; /* waits of stacks that there was no room for */
	uint64_t cut;	  /* waits that were under way when a stretch of full observation ended */
	uint64_t mutexes; /* wait reasons that are charged to who unlocks; 0: see locked */
	struct {
		bool known; /* known from looks: */
		/* total delay, its variance, and how many outlast windows */
		double delay, delay_error, beyond;
	} locked;
};

/* @w must be zero except for s. It must not be moved afterwards. */
void sched_window_init(struct sched_window *w);
/* Writes conf for the BPF side. */
int sched_window_put(struct sched_window *w, struct err *e);
/* Takes a stack that came through the ring. */
int sched_window_add(void *w, const struct gpb_stack *st, struct err *e);

/* For struct probing_user. @w: a sched_window. */
int sched_window_spent(void *w, struct gpb_spent *out, struct err *e);
int sched_window_turn(void *w, bool windows, uint64_t since, double hit_ns, uint64_t window_ns,
		      struct err *e);
int sched_window_over(void *w, const struct stretch *s, struct err *e);

/* For tests: what was added since the last window was seen in this one; @now: by CPU. */
void sched_window_close(struct sched_window *w, const struct stretch *s,
			const struct gpb_sched_seen *now, size_t ncpu);
/* To be called when a profile of another kind has joined; conf has that already. */
int sched_window_joined(struct sched_window *w, struct err *e);
/* Looks at goroutines that wait, when onlook_fd() is readable. */
int sched_window_poll(struct sched_window *w, struct err *e);
/* From now on nothing counts: looks end, and the runtime's count, before probes are taken out. */
void sched_window_stop(struct sched_window *w);
/* To be called when nothing is probed any more: the results of looks. */
void sched_window_end(struct sched_window *w, struct onlook_result *out);
/* The sums of all that was seen. */
int sched_window_seen(const struct sched_window *w, struct gpb_sched_seen *out, struct err *e);
/* Counts waits that the probes saw begin since @from, and did not see end. */
int sched_window_waiting(const struct sched_window *w, uint64_t from, uint64_t *out, struct err *e);

/*
 * Full observation as it was, with what windows add. These variances belong to one stack alone,
 * and may be added up. The other errors are known only of a site, or of all sites together; < 0:
 * not known.
 */
struct sched_estimate {
	int64_t count, delay; /* in 1 / GPB_COUNT_ONE; ns */
	double count_error, delay_error;
};
struct sched_error {
	double count, delay; /* variances */
};
/* Are numbers of short waits made to agree with the runtime's own count of runs? */
bool sched_window_by_switches(const struct sched_window *w);
struct sched_estimate sched_window_estimate(const struct sched_window *w, size_t entry);
/* For a site of the tally; for all of a kind, GPB_WAIT_*. */
struct sched_error sched_window_site(const struct sched_window *w, size_t site);
struct sched_error sched_window_whole(const struct sched_window *w, unsigned kind);
void sched_window_fini(struct sched_window *w);

#endif
