/*
 * user/collect/heap/window/heap_window.h - the numbers of a probed heap profile: what its stretches
 * (probing.h) say, combined with what the runtime counts itself.
 */
#ifndef COLLECT_HEAP_WINDOW_HEAP_WINDOW_H
#define COLLECT_HEAP_WINDOW_HEAP_WINDOW_H

#include "base/again.h"
#include "engine/fine_rate.h"
#include "engine/probing.h"
#include "go/runtime/counters/rtcounters.h"
#include "goprof_abi.h"
#include "probe/reports.h"
#include "profile/profile.h"
#include "profile/scale.h"
#include "sampling/windows/calibrate.h"
#include "sampling/undilated.h"
#include "sampling/windows/paces.h"
#include "sampling/tally.h"
#include "heap.skel.h"

/*
 * The length of a window at its shortest, and how long it may be where hits are few, in ns. A window
 * is over earlier when no CPU has own time left in it. A burst may begin while such a long window is
 * open, so the budget must allow for one of the greatest length.
 */
#define HEAP_WINDOW_NS	    8000000
#define HEAP_WINDOW_MOST_NS 50000000
#define HEAP_PARTS \
	((struct window_parts){ .end_ns = HEAP_WINDOW_NS, .most_ns = HEAP_WINDOW_MOST_NS })

struct heap_window {
	struct subject *s; /* borrowed, as the next ones */
	struct heap_bpf *obj;
	uint32_t slot; /* of the target, in all tables of obj */
	struct reports *reports;
	const struct gpb_heap *heap;	/* its classes */
	uint64_t rate, rate_in_windows; /* mean bytes between samples */
	uint64_t sampled, crowded;	/* crowded: samples of stacks that there was no room for */
	uint64_t forgotten_allocs, forgotten_bytes; /* allocations seen before anything counted */
	bool keys; /* the kernel's keys of stacks are needed, too */
	struct tally tally;
	struct undilated own;
	bool large; /* large objects are observed all the time, so windows are not about them */
	uint64_t large_seen; /* how many there were, at the last look */
	/*
	 * Tells the BPF side how long the next window is. @full: it comes after a stretch of full
	 * observation.
	 */
	int (*next)(void *next_arg, bool full, struct err *e);
	void *next_arg;
	/* Called for each window with what it stands for, when all of it has been taken. */
	void (*weighed)(void *arg, uint64_t opened, double weight);
	void *weighed_arg;
	uint64_t seen_before[GPB_CLASSES]; /* the counts when the last stretch ended */
	uint64_t counted_before;
	struct calibrate calibrate; /* set by heap_window_end() */
	size_t ncpu;
	double nominal;	    /* ns: wall time of the next window, which its own time is a part of */
	uint64_t rate_most; /* what the user asked for, or Go's: windows are sampled as densely */
	bool rate_used;	    /* rate stays what it is */
	struct fine_seen light; /* what was seen before anything counted */
	/* slowdown that was measured before anything counted; 0: not known */
	double gauged;
	struct rtcounters *counters; /* NULL until there are windows */
	struct again open_again;     /* when they are searched for again */
	struct err why;		     /* why they could not be read lately */
	uint64_t missed;	     /* allocations that did not pass the probes */
	bool ending;		     /* no windows will follow full observation */
	bool watched;		     /* the next two are set */
	uint64_t watch_exact[GPB_CLASSES], watch_seen[GPB_CLASSES];
	uint64_t watch_skew,
		/* ns that passed while these two, and the last ones, were read */
		last_skew;
	uint64_t last[GPB_CLASSES]; /* at the last look */
	uint64_t last_seen[GPB_CLASSES];
	uint64_t last_ns;	       /* CLOCK_MONOTONIC: when that was */
	bool last_known, last_watched; /* last_watched: last_seen was read at the same moment */
	bool last_current;	       /* nothing was read since */
	uint64_t first[GPB_CLASSES];   /* the runtime's counts when windows began */
	bool marked;		       /* first is set, or was when full observation ended: */
	uint64_t marked_ns;
	uint64_t windows_since; /* CLOCK_MONOTONIC, ns; 0: there are none now */
	uint64_t gone_ns;	/* CLOCK_MONOTONIC; 0: the target is there */
	uint64_t
		end_ns; /* CLOCK_MONOTONIC: of what moment the counts are that windows ended with last; 0: not known */
	/* ns in which there were windows, and the part of it of which the runtime's counts are not known */
	double windows_ns, uncounted_ns;
	/* Allocated while there were windows, as counted, and about so much more if it went on at the pace before. */
	double counted_bytes, uncounted_bytes;
	double stood_ns;	     /* the part of it that windows stand for */
	uint64_t stood_for;	     /* CLOCK_MONOTONIC: when the last of them closed */
	double in_full[GPB_CLASSES]; /* samples of full observation; set at the end */
	double total[GPB_CLASSES];   /* growth while there were windows; -1: unknown */
	/* Bytes of large objects, of whole pages: at the last reading, when windows began, and their growth as of total[0]. */
	uint64_t large_now, large_first;
	double large_bytes;
	struct paces paces; /* of that growth, and of what windows saw */
	/*
	 * Parts of total, set at the end (run_rates_unmet). met: at a pace for which windows stand.
	 * unmet: at a far higher pace, for which no window stands. faster: of met, at a pace somewhat
	 * above the highest of all windows.
	 */
	double met[GPB_CLASSES], unmet[GPB_CLASSES], faster[GPB_CLASSES];
};

/* @w must be zero except for s. It must not be moved afterwards. */
void heap_window_init(struct heap_window *w);
/* Takes a stack that came through the ring. */
int heap_window_add(void *w, const struct gpb_stack *st, struct err *e);
/*
 * Full observation from now on is sampled as finely as the budget allows, judged by what was seen
 * before anything counted. Only the first such stretch decides this, so that all samples are
 * scaled alike; a stretch that comes after windows does not, because then the program is not
 * light.
 */
void heap_window_light(struct heap_window *w, unsigned budget_ppm);
/* The target has gone, now: nothing that is read later is of a later time. */
void heap_window_gone(struct heap_window *w);
/*
 * It called exec since what windows stand for began, and was not observed in full: the runtime's own counts began at 0. To be
 * called before heap_window_turn().
 */
void heap_window_fresh(struct heap_window *w);
/*
 * Between windows: reads the runtime's own counts, as heap_window_look() does, or where the target is @still (it has not run since
 * the last time) takes them for what they were.
 */
void heap_window_count(struct heap_window *w, bool still);
/* Changes to windows, or back from them. */
void heap_window_turn(struct heap_window *w, bool windows, double hit_ns, double window_ns);
/* Large objects are observed all the time from now on, or no longer. */
void heap_window_large(struct heap_window *w, bool always);
/* Takes what came since the last stretch. */
int heap_window_rest(struct heap_window *w, struct err *e);
/* For struct probing_user. @w: a heap_window. */
bool heap_window_look(void *w, double *count);
int heap_window_spent(void *w, struct gpb_spent *out, struct err *e);
int heap_window_over(void *w, const struct stretch *s, struct err *e);
/*
 * The same in two parts, of many targets: between them somebody takes all stacks, and heap_window_add()s them.
 * What the first part returns is for the second one.
 */
bool heap_window_before(struct heap_window *w, const struct stretch *s);
int heap_window_after(struct heap_window *w, const struct stretch *s, bool watched, struct err *e);
void heap_window_fini(struct heap_window *w);

/* Nothing more is added: estimates can be asked for. */
void heap_window_end(struct heap_window *w);
struct heap_estimate {
	double objects, variance; /* variance: -1: not known */
	/*
	 * Its part of the variance of all sites together; the number of all objects of a class is
	 * known.
	 */
	double of_all;
	struct scaled values;
	int64_t parts; /* the objects again, in parts of HEAP_ONE: what values has no room for is in it */
};
enum { HEAP_ONE = 1 << 16 };
/* @whole objects, and @cut of one more, which is less than one. */
int64_t heap_in_parts(int64_t whole, double cut);
/* Full observation is scaled by Go's own arithmetic; windows add to that. */
/* The part of it that windows saw, or that was borrowed from full observation. */
struct heap_made {
	struct tally_estimate seen; /* variance: of the whole site; -1: not known */
	double borrowed;
	bool missed; /* full observation saw the site, and no window */
};
struct heap_made heap_window_made(const struct heap_window *w, const struct tally_entry *en);
struct heap_estimate heap_window_estimate(const struct heap_window *w,
					  const struct tally_entry *en);

/*
 * From here on everything is observed: do all allocations pass the probes? A profile-guided build
 * may have copied the allocator into its callers. The runtime's own counts tell, when the stretch
 * is over. @begins: the process has not begun yet.
 */
void heap_window_watch(struct heap_window *w, bool begins);

/* What the runtime counted while there were windows, and no window stands for. */
struct heap_unseen {
	uint64_t allocs,
		bytes; /* in size classes that no window saw; of large objects: at least so many */
	uint64_t fast, fast_bytes; /* in others, at a pace that no window met */
	bool many;		   /* both: more than a hundredth of all bytes of that time */
	/*
	 * And more than one sample stands for at the rate that was asked for, or half of all: less than that Go's own profile is
	 * likely not to have, too.
	 */
	bool lost;
};
struct heap_unseen heap_window_unseen(const struct heap_window *w);
/* The part of the time with windows that none of them stands for. To be called when there are no more windows. */
double heap_window_unwatched(const struct heap_window *w);
/* Were the runtime's counts known of some of the time in which there were windows? */
bool heap_window_counted(const struct heap_window *w);

/*
 * Of a part of the time the runtime's counts are not known, and so are totals. That is told from this share on: of what it
 * allocated, if it went on at the pace before; or of the time in windows, from so many ns on: a program that exits does so
 * some ms after the last reading.
 */
#define HEAP_UNCOUNTED_SHARE 0.02
#define HEAP_UNCOUNTED_NS    25e6
static inline bool heap_window_lacks_counts(const struct heap_window *w)
{
	if (w->uncounted_bytes > HEAP_UNCOUNTED_SHARE * w->counted_bytes)
		return true;
	return w->uncounted_ns > HEAP_UNCOUNTED_SHARE * w->windows_ns &&
	       w->uncounted_ns > HEAP_UNCOUNTED_NS;
}

/*
 * heap_window_say.c. Writes as comments and losses by what numbers of windows were scaled, what no window stands
 * for, and what did not pass the probes.
 */
int heap_window_comment(const struct heap_window *w, const struct collect_opts *o, struct prof *p,
			struct loss *to, struct err *e);

/* The sums of all that was seen. */
int heap_window_seen(struct heap_window *w, uint64_t *allocs, uint64_t *bytes, struct err *e);

#endif
