/*
 * user/collect/heap_window.h - a probed heap profile's numbers: what its stretches (probing.h) say,
 * put together with what the runtime counts itself.
 */
#ifndef COLLECT_HEAP_WINDOW_H
#define COLLECT_HEAP_WINDOW_H

#include "collect/calibrate.h"
#include "collect/feed.h"
#include "collect/fine_rate.h"
#include "collect/owntime.h"
#include "collect/probing.h"
#include "collect/tally.h"
#include "go/rtcounters.h"
#include "heap.skel.h"
#include "profile/scale.h"

struct heap_window {
	struct subject *s; /* borrowed, as the next ones */
	struct heap_bpf *obj;
	struct feed *feed;
	const struct gpb_heap *heap;	/* its classes */
	uint64_t rate, rate_in_windows; /* mean bytes between samples */
	uint64_t sampled, crowded;	/* crowded: of stacks that there was no room for */
	uint64_t forgotten_allocs, forgotten_bytes; /* seen before anything counted */
	bool keys; /* the kernel's keys of stacks are wanted, too */
	struct tally tally;
	struct owntime own;
	bool large; /* large objects are observed all the time: no windows are about them */
	uint64_t large_seen; /* so many, at the last look */
	/* Tells the BPF side how long the next window is. @full: after a stretch in full. */
	int (*next)(struct heap_window *w, bool full, struct err *e);
	/* Told what each window stands for, when all of it has been taken. */
	void (*weighed)(void *arg, uint64_t opened, double weight);
	void *weighed_arg;
	uint64_t seen_before[GPB_CLASSES]; /* when the last stretch ended */
	uint64_t counted_before;
	struct calibrate calibrate; /* by heap_window_end() */
	size_t ncpu;
	double nominal;	    /* ns: what the next window's own time is a part of */
	uint64_t rate_most; /* what the user asked for, or Go's: windows are sampled as densely */
	bool rate_used;	    /* rate stays what it is */
	struct fine_seen light; /* what was seen before anything counted */
	double gauged;		/* how slow probes made it before anything counted; 0 not known */
	struct rtcounters *counters; /* NULL until there are windows */
	unsigned opened;	     /* how often that was tried */
	struct err why, why_not;     /* why they cannot be read */
	uint64_t missed;	     /* allocations that did not pass the probes */
	bool watched;		     /* the next two are known */
	uint64_t watch_exact[GPB_CLASSES], watch_seen[GPB_CLASSES];
	uint64_t watch_skew,
		last_skew;	    /* ns that passed while these two, and the last, were read */
	uint64_t last[GPB_CLASSES]; /* at the last look */
	uint64_t last_seen[GPB_CLASSES];
	bool last_known, last_watched; /* last_watched: last_seen is of the same moment */
	uint64_t first[GPB_CLASSES];   /* the runtime's counts when windows began */
	bool marked;		       /* first was set when a stretch observed in full ended */
	double in_full[GPB_CLASSES];   /* samples of what was observed in full, at the end */
	double total[GPB_CLASSES];     /* what they grew by while there were windows; -1 unknown */
};

/* Of zeroes, with s set. It stays where it is. */
void heap_window_init(struct heap_window *w);
/* Takes a stack that came through the ring. */
int heap_window_add(void *w, const struct gpb_stack *st, struct err *e);
/*
 * What is observed in full from now on is sampled as finely as the budget bears, by what was seen before
 * anything counted. Only the first such stretch settles that, so that all samples are scaled alike, and
 * not one that comes after windows: then the program is not light.
 */
void heap_window_light(struct heap_window *w, unsigned budget_ppm);
/* From now on windows, or no more of them. */
void heap_window_turn(struct heap_window *w, bool windows, double hit_ns, double window_ns);
/* Large objects are observed all the time from now on, or no more. */
void heap_window_large(struct heap_window *w, bool always);
/* What came since the last stretch. */
int heap_window_rest(struct heap_window *w, struct err *e);
/* For struct probing_user. @w: a heap_window. */
bool heap_window_look(void *w, double *count);
int heap_window_spent(void *w, struct gpb_spent *out, struct err *e);
int heap_window_over(void *w, const struct stretch *s, struct err *e);
void heap_window_fini(struct heap_window *w);

/* Nothing is added any more: estimates can be had. */
void heap_window_end(struct heap_window *w);
struct heap_estimate {
	double objects, variance; /* -1: not known */
	/* Its part of the variance of all sites together: the number of all objects of a class is known. */
	double of_all;
	struct scaled values;
};
/* What was observed in full is Go's own arithmetic; windows add to it. */
/* The part of it that windows saw, or borrowed from what was observed in full. */
struct heap_made {
	struct tally_estimate seen; /* variance: of the whole site; -1 not known */
	double borrowed;
};
struct heap_made heap_window_made(const struct heap_window *w, const struct tally_entry *en);
struct heap_estimate heap_window_estimate(const struct heap_window *w,
					  const struct tally_entry *en);

/*
 * Where everything is observed from here on: do all allocations pass the probes? A profile-guided
 * build may have copied the allocator into its callers. The runtime's own counts tell, when the
 * stretch is over. @begins: of a process that has not begun yet.
 */
void heap_window_watch(struct heap_window *w, bool begins);

/* What the runtime counted while there were windows, in sizes that none of them saw. */
struct heap_unseen {
	uint64_t allocs, bytes; /* of large ones: at least so many */
	bool many;		/* more than a hundredth of all bytes of that time */
};
struct heap_unseen heap_window_unseen(const struct heap_window *w);

/* All that was seen. */
int heap_window_seen(struct heap_window *w, uint64_t *allocs, uint64_t *bytes, struct err *e);

#endif
