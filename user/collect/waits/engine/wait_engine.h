/*
 * user/collect/waits/engine/wait_engine.h - probed waits: what stretches (probing.h) say, and what is seen of
 * waits from outside meanwhile (looks.h). Block and mutex profiles (sched_window.h) and wait profiles
 * (wait_window.h) are its two kinds.
 *
 * A window has two parts. In the first part waits may begin; those that do are counted when they
 * end, at the latest in the second part. Windows are there to tell how many waits there are.
 * Waits that looks from outside see for long enough are counted there, and the probes leave them
 * out (looks_count of bpf/parked.bpf.h). Only looks tell how long waits last, because probes
 * slow down what is waited for (the observer effect).
 *
 * Overhead dilation would make the numbers too small. Therefore short waits count when they began
 * within a given amount of the target's own time on that CPU (struct gpb_wait_clock). Longer
 * waits, which a clock or the outside world paces, count when they began anywhere in the first
 * part (GPB_LONG_NS).
 *
 * The way of a wait: the BPF side counts it; kind.add puts its stack into the tally, when it comes
 * through the ring or when its stretch is over; wait_engine_close() gives the stretch its weight; and
 * wait_estimates.h says at the end what all of them stand for.
 */
#ifndef COLLECT_WAITS_ENGINE_WAIT_ENGINE_H
#define COLLECT_WAITS_ENGINE_WAIT_ENGINE_H

#include "collect/waits/looks/looks.h"
#include "collect/waits/engine/run_counter.h"
#include "sampling/dilation.h"
#include "sampling/looks/undercount.h"
#include "engine/probing.h"
#include "goprof_abi.h"
#include "probe/reports.h"
#include "sampling/tally.h"

/*
 * The parts of a window at its shortest, and how long it may be where hits are few, in ns. The second
 * part is equally long in all windows. A burst that comes just then must bear a window of that length.
 */
#define WAIT_BEGIN_NS 3000000ull
#define WAIT_END_NS   10000000ull
#define WAIT_MOST_NS  30000000ull
#define WAIT_PARTS              \
	((struct window_parts){ \
		.begin_ns = WAIT_BEGIN_NS, .end_ns = WAIT_END_NS, .most_ns = WAIT_MOST_NS })

/* What the probes have seen up to now, as far as both kinds count alike. */
struct wait_counts {
	struct gpb_spent spent;
	struct gpb_wait_clock clock;
	/*
	 * While beginning waits counted, how often goroutines parked (block and mutex) or began to run
	 * (wait); and how often they began to run after a wait that a clock paces, which is not in runs.
	 */
	uint64_t runs, paced_runs;
	/* block and mutex, as in gpb_sched_seen */
	uint64_t cut, charged_ns, waited_ns;
};

/* A window, when what it stands for is known. */
struct wait_window_sum {
	double stratum_ns; /* the time that it stands for */
	double own_ns;	   /* of the window: the target's own time */
	double begin_ns;   /* of the window: the time in which waits may have begun */
	double weight;	   /* stratum_ns / own_ns */
	double length_ns;  /* of the window: all of it */
	/* wait_counts of this window alone */
	double runs, paced_runs, cut, charged_ns, waited_ns;
};

struct wait_estimate; /* wait_estimates.h */
struct wait_error;

/* Where the two kinds differ. @arg: wait_engine.arg. */
struct wait_kind {
	const char *name; /* for messages */
	/* Sizes of the values of wait_object.seen, in u64, at most WAIT_SEEN_WORDS, and of .waits, in bytes. */
	size_t seen_words, wait_bytes;
	uint64_t late_ns; /* so long after a window has opened waits begin to count */
	/*
	 * Group 0 of the tally is compared with the runs that windows saw, and these with the runtime's count
	 * (dilation_lack). False: it is compared with the runtime's count at their moment.
	 */
	bool sees_runs;
	uint64_t but;	   /* for undercounts_learn() */
	size_t not_looked; /* the tally's whole whose waits looks do not see; TALLY_WHOLES: none */

	reports_add *add; /* takes a stack: wait_engine_add() */
	/* @seen: the value of wait_object.seen, of one CPU or summed up over all. */
	struct wait_counts (*counts)(const void *seen);
	/* What was seen in the @ns before anything counted, for rates(). */
	void (*before)(void *arg, const void *seen, double ns);
	/*
	 * Sets the rates of what comes next. @choose: those of full observation, which begins for the
	 * first time, may be chosen by what before() saw.
	 */
	void (*rates)(void *arg, bool windows, bool choose);
	/* The quantity that group 0 is compared with (tally_window.n), in that window. */
	double (*runs)(void *arg, const struct wait_window_sum *sum);
	/* @wait: a value of wait_object.waits. When did it begin? 0: it has ended. */
	uint64_t (*since)(const void *wait);
	/* Measures what a hit costs: wait_engine_hit_cost(). */
	int (*hit_cost)(void *arg, struct hit_cost *out, struct cost_probes **rest, struct err *e);
	/* At the end: what is told of an entry, and how certain it is what is told of a site. */
	struct wait_estimate (*estimate)(const void *arg, size_t entry);
	struct wait_error (*site)(const void *arg, size_t site);
};

/* The BPF side: what both objects have, borrowed from the skeleton. */
struct wait_object {
	struct bpf_object *obj;
	struct bpf_program *probe;
	const struct bpf_map *ring, *rules, *targets, *stacks, *scratches;
	const struct bpf_map *settings; /* struct gpb_sched or gpb_waiting */
	const struct bpf_map *seen;	/* struct gpb_sched_seen or gpb_waiting_seen, by CPU */
	const struct bpf_map *waits;	/* by goroutine: struct gpb_wait or gpb_standing */
	const struct bpf_map *bss;
	struct gpb_rounds *rounds;
	volatile struct gpb_open *open; /* by slot, as the next ones; in @bss */
	volatile uint64_t *counted;	/* as in looks_conf */
	const struct gpb_tally *losses;
	bool multi; /* one multi link for each file */
};

enum {
	WAIT_SEEN_WORDS = (sizeof(struct gpb_sched_seen) > sizeof(struct gpb_waiting_seen) ?
				   sizeof(struct gpb_sched_seen) :
				   sizeof(struct gpb_waiting_seen)) /
			  8
};

enum { WAIT_SLOT = 1 }; /* of one target; GPB_PRICED is another one's */

struct wait_engine {
	const struct wait_kind *kind;
	void *arg; /* of the kind's functions */
	void *settings;
	struct gpb_wait_terms *terms; /* a part of the settings */
	/* These six are set before wait_engine_open(). */
	struct subject *s; /* borrowed */
	struct wait_object object;
	struct collect_opts o;	  /* its rates: those of full observation */
	struct looks_conf looked; /* reasons, semas, apart, all, settle: what looks look at */

	/* Of many targets what is shared is borrowed: */
	bool shared;
	uint32_t slot; /* in the tables of the object */
	struct reports *reports, own_reports;
	struct probing *probing; /* NULL of many: not yet */
	struct attacher_process **attachers;
	int ep; /* one descriptor for the ring, the budget and looks */
	bool ended;
	/* Of many: is there room for one more distinct stack? */
	bool (*room)(void *room_arg);
	void *room_arg;
	struct labels_room labels_room; /* for a label set that looks have read */

	struct tally tally;
	bool full;		    /* everything is observed */
	bool windowed;		    /* at some time not everything was observed */
	bool rates_used;	    /* they stay what they are */
	uint64_t opened;	    /* when the last stretch of full observation began */
	double look_share;	    /* looks_conf.share */
	struct looks *looks;	    /* NULL: not yet, or see why */
	struct err why;		    /* why there are no looks */
	struct looks_result result; /* set at the end, as the next one */
	struct undercounts under;   /* if there were looks */
	struct dilation slow;
	struct run_counter counter; /* of what it compares windows with */
	double own,
		length; /* ns: of the last window the target's own time, and from open to closed */
	double begins_ns;	 /* of all windows: the time in which waits could begin */
	struct wait_counts last; /* at the end of the last stretch */
	/* in all windows: runs that probes do not make fewer, because a clock paces them */
	double paced;
	/* share by which numbers from the runtime's count are too small, roughly, and how far off that may be */
	double too_few;
	double ratio;	 /* run_ratio(); 0 until the end */
	double unplaced; /* runs of group 0 after waits of which windows did not see how they began */
	uint64_t crowded; /* waits of stacks that there was no room for */
	/*
	 * Waits that were under way when a stretch of full observation ended: those that the look after that may see, of which
	 * nothing is missing then; and how many others.
	 */
	VEC(struct looks_begun) begun;
	uint64_t nbegun; /* in all such stretches */
	uint64_t cut;
	uint64_t forgotten[WAIT_SEEN_WORDS]; /* seen before anything counted */
};

/*
 * @w must be zero but for members that are set before wait_engine_open(), and must not be moved afterwards.
 * Callbacks of its tally are called with @w.
 */
void wait_engine_init(struct wait_engine *w, const struct wait_kind *kind, void *arg,
		      void *settings, struct gpb_wait_terms *terms);
/*
 * Makes the target, its reports, and probes that keep to a budget; nothing is attached. @what: for messages, borrowed.
 * wait_engine_fini() is called also after a failure.
 */
int wait_engine_open(struct wait_engine *w, const char *what, struct err *e);
/*
 * One of many in the slot @slot, instead: ring, probes and @ep are the owner's, who calls wait_engine_turn() and, when a
 * stretch is over, wait_engine_before(), takes all samples, and wait_engine_after().
 */
void wait_engine_share(struct wait_engine *w, uint32_t slot, struct reports *reports,
		       struct attacher_process **attachers, int ep);
int wait_engine_turn(void *w, bool windows, uint64_t since, double hit_ns, uint64_t window_ns,
		     struct err *e);
void wait_engine_before(struct wait_engine *w, const struct stretch *s);
int wait_engine_after(struct wait_engine *w, const struct stretch *s, struct err *e);
void wait_engine_fini(struct wait_engine *w);

/* Writes the target's offsets, also when images have come, and the settings for the BPF side. */
int wait_engine_target(struct wait_engine *w, struct err *e);
int wait_engine_put(struct wait_engine *w, struct err *e);
/* Delays are told by looks, for all of the time from @since on (looks_begin). */
int wait_engine_look(struct wait_engine *w, uint64_t since, struct err *e);
/* To be called when @ep is readable, and often in any case. */
int wait_engine_poll(struct wait_engine *w, struct err *e);
/* Looks, and the runtime's count: to be called often while there are windows. */
int wait_engine_watch(struct wait_engine *w, struct err *e);
/* From when on that has something to do (CLOCK_MONOTONIC); 0: never. */
uint64_t wait_engine_due(const struct wait_engine *w);
/* Of many: looks take this share of a CPU from now on, and the runtime's count is read each @count_every_ns, or as often as that of one. */
void wait_engine_look_seldom(struct wait_engine *w, double share, uint64_t count_every_ns);
/* CPU time that a reading of that count takes us, about. */
double wait_engine_count_ns(const struct wait_engine *w);
/* There are no looks from now on. */
void wait_engine_look_no_more(struct wait_engine *w);
/* Both end. */
void wait_engine_unwatch(struct wait_engine *w);
/* From now on nothing counts: looks end, and the runtime's count, before probes are taken out. */
int wait_engine_stop(struct wait_engine *w, struct err *e);
/* To be called when nothing is probed any more: the results of looks. */
void wait_engine_end(struct wait_engine *w);

/* For kind.add. What there is no room for is counted as crowded. */
int wait_engine_add(struct wait_engine *w, const struct gpb_stack *st, size_t group, struct err *e);
/* For kind.hit_cost, by a process of our own in the slot GPB_PRICED, which has these settings. */
int wait_engine_hit_cost(struct wait_engine *w, const void *settings, uint64_t cookie,
			 struct hit_cost *out, struct cost_probes **rest, struct err *e);
/* For these settings: a window that never ends, and all time is the target's own. */
struct gpb_wait_terms wait_engine_endless(void);

/* A window is over. For tests, too: what was added since the last one was seen in this one. */
void wait_engine_close(struct wait_engine *w, const struct stretch *s,
		       const struct wait_counts *now);
/* The sums of all that was seen since waits count: a value of wait_object.seen. */
int wait_engine_seen(const struct wait_engine *w, void *out, struct err *e);
/* Counts the target's waits that began at @from or later, by @since (kind.since, or what else). */
int wait_engine_waiting(const struct wait_engine *w, uint64_t from,
			uint64_t (*since)(const void *wait), uint64_t *out, struct err *e);
/* Adds what was lost, also by looks that had no room for a stack; of many only what is its own, of which @left are samples of its stacks. */
void wait_engine_lost(const struct wait_engine *w, uint64_t left, struct loss *to);
void wait_engine_losses(const struct wait_engine *w, struct loss *to);

#endif
