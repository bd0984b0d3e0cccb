/*
 * user/sampling/dilation.h - the overhead dilation: how much slower probes make a target while
 * they are in it, and how much of a window is the target's own time.
 *
 * It is estimated from how short the times between two hits are (struct gpb_wait_clock) and,
 * where it is known, from the runtime's own count of how often goroutines began to run.
 */
#ifndef SAMPLING_DILATION_H
#define SAMPLING_DILATION_H

#include "goprof_abi.h"
#include "sampling/run_rates.h"
#include "sampling/tally.h"

/* By the runtime's count and the target's clock: runs and CPU time in some milliseconds that ended at @end. */
struct dilation_step {
	double end, ns, runs, busy_ns; /* end: CLOCK_MONOTONIC, ns */
	bool swept;		       /* the runtime's sweeper may have yielded in it */
};
enum { DILATION_STEPS = 32 };

/* Paces of the time of a window, in runs per ns by the runtime's count. */
struct dilation_at {
	double beside;	    /* in the last step before a probe was put in; < 0: not known */
	double least, most; /* of the steps in which the window was */
	double close; /* beside it, if nearly all hits in it follow each other closely; otherwise 0 */
	/*
	 * Dense: so closely, and so much slower for it, that next to nothing but what is probed can have run.
	 * Faster: closely, and with probes in it the target ran faster than beside it without.
	 * Over: the target ran far less than beside it, by the count and by what was seen.
	 */
	bool known, dense, faster, over; /* known: least and most are */
};

/* A struct that is zeroed is a new one. */
struct dilation {
	double now, sum; /* how many times slower lately; the sum of that over windows */
	double hit_ns;	 /* ns that a hit takes, as measured */
	/* the runtime's count, over the time in which there were windows; < 0: not known */
	double switches;

	struct gpb_wait_clock clock; /* sums over all windows, at the last look */
	/* Of late: the times between two hits that follow closely; longs: how many do not. */
	double shorts, short_ns, longs;
	/*
	 * Of late, in windows in which next to all hits follow closely: how long they took, and how long they
	 * take at the pace beside the window.
	 */
	double taken_ns, own_ns;
	struct dilation_at at; /* of the window that was learned last */
	double dense;	       /* .beside of the last dense one; 0: there was none */

	struct run_rates rates; /* of the runtime's count, and of what windows saw of it */
	/* The last ones, from the oldest at nsteps % DILATION_STEPS on; nsteps: of all. */
	struct dilation_step steps[DILATION_STEPS];
	uint64_t nsteps;
};

/* Windows begin, and a hit costs @hit_ns. */
void dilation_begin(struct dilation *w, double hit_ns);
/* The runtime's count and the target's clock, in the next step of them. */
void dilation_step(struct dilation *w, const struct dilation_step *s);
/* Passes over what the clocks of all CPUs counted where there was no window. */
void dilation_skip(struct dilation *w, const struct gpb_wait_clock *sum);
/*
 * The window that was asked for and opened at these times is over, in which waits may have begun for @begin_ns, and in which so many runs were seen for each
 * ns of the target's own time; the clocks of all CPUs have added up to @sum since the first one.
 */
void dilation_learn(struct dilation *w, const struct gpb_wait_clock *sum, uint64_t asked,
		    uint64_t opened, double begin_ns, double seen);
/*
 * The target's own time in the part of the window that was learned last in which @runs were seen: @own_ns by the
 * clock of struct gpb_undilated. In a dense one it is as long as so many runs take beside it. It is so, too, where hits
 * follow closely and the clock is far shorter than that: other runs may have come in between, so it can only be longer.
 */
double dilation_own(const struct dilation *w, double runs, double own_ns);
/*
 * The pace of the runtime's count at that window, in runs per ns, as if there were no probes: that beside it, except
 * at the beginning and the end of a storm, and where the target got no CPU in the window. @seen: what the window
 * saw, in runs per ns of the target's own time.
 */
double dilation_pace(const struct dilation *w, double seen);
/* How many times slower, in the mean of @windows; 1: there was none. */
double dilation_mean(const struct dilation *w, uint64_t windows);
void dilation_add(struct gpb_wait_clock *sum, const struct gpb_wait_clock *cpu);

/* The parameters of the clocks in the next window, whose first part lasts @begin_ns. */
struct dilation_terms {
	struct gpb_undilated own;
	uint64_t own_share, short_ns;
};
struct dilation_terms dilation_terms(const struct dilation *w, uint64_t begin_ns);
/* The runtime's count without runs at a pace that no window met (run_rates.h); < 0: not known. */
double dilation_met(const struct dilation *w);
/* How many runs were at such a pace, but for the sweeper's yields; 0 as long as they are less than a hundredth of all. */
double dilation_unmet(const struct dilation *w);
/* May nearly all of these be its yields, too, as it was at work when they came? */
bool dilation_maybe_yields(const struct dilation *w);
/* How many yields of the sweeper were at such a pace; 0 as long as they are as few. */
double dilation_yields(const struct dilation *w);
#define DILATION_YIELDS                                                                                 \
	"yields: goroutines began to run about %llu times, by the runtime's own count, at a pace that " \
	"there is only while its sweeper is at work: it yields to others, which is no wait"
#define DILATION_UNMET                                                                                  \
	"unseen: goroutines began to run about %llu times, by the runtime's own count, at a pace that " \
	"no window met: waits or yields that are beside the estimates; nobody knows how many of them "  \
	"were waits, and the error of each place allows for all of them%s"
#define DILATION_MAYBE                                                                         \
	"; they came while its sweeper was at work, as it nearly always is where a program "   \
	"collects garbage often, and may be its yields: on a host short of CPUs it yields up " \
	"to 4,000 times a ms"
/*
 * What these runs add to the variance of any site's number of waits, in 1 / GPB_COUNT_ONE: it may have had them all,
 * however many longer ones looks counted.
 */
double dilation_of_site(const struct dilation *w);
/*
 * @windows: what these say of the same number. How many times fewer that is than the runtime's count where both
 * are at the same pace (run_rates_lack); 1 where the difference may be chance.
 */
double dilation_lack(const struct dilation *w, const struct tally_estimate *windows);
/*
 * How far off dilation_met() may be as a total for what windows saw. Where these do not fit beyond chance, time at
 * a somewhat higher pace than that of any window may be like other time or not. @lack: dilation_lack(), or 1.
 */
double dilation_unsure(const struct dilation *w, const struct tally_estimate *windows, double lack);

#endif
