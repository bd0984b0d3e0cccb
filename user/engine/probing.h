/*
 * user/engine/probing.h - probes on a target that keep to a budget.
 *
 * All probes of a target share one budget, a share of its CPU time. While they keep to it,
 * everything is observed. When they do not, they are attached for short windows at random times
 * (stratified sampling), and what was seen stands for more than itself:
 *
 * 	time  |---- stratum ----|---- stratum ----|-- stratum --|
 * 	open        [==]              [==]          [==]
 *
 * The length of each stratum is decided before it begins, and the place of its window in it is
 * drawn uniformly. So whatever happens in a window stands for stratum / window times as much,
 * without bias. Where the target itself counts what is probed, and does all of it in a small part
 * of the time, strata are equal in that count instead: then windows meet bursts, and not the time
 * between. What probes cost is counted hit by hit, with a price that was measured on this machine
 * (hit_cost.h).
 */
#ifndef ENGINE_PROBING_H
#define ENGINE_PROBING_H

#include "goprof_abi.h"
#include "probe/uprobes/hit_cost.h"
#include "probe/uprobes/uprobes.h"
#include "profile/profile.h"
#include "subject/subject.h"

/* A period in which hits counted. */
struct stretch {
	bool window;		 /* false: everything was observed, from one decision to the next */
	bool still;		 /* its target has not run since the last one was over */
	bool let_go;		 /* it ended before this was known, because we were stopped */
	uint64_t opened, closed; /* CLOCK_MONOTONIC */
	uint64_t asked;		 /* of a window: when the first probe may have been put in */
	/*
	 * how many times its own length this stretch stands for: 1 when it is no window; 0: it is
	 * to be dropped
	 */
	double weight;
	double hit_ns;	  /* what a hit cost in it */
	uint64_t next_ns; /* the longest that the next window will last */
	/*
	 * How much of the target's own count this window stands for; 0: it stands for time, as
	 * weight says. Only with mass:
	 */
	double mass;
	double rate; /* per ns, the rate of that count when the window was asked for */
};

/*
 * The parts of a window at its shortest, as in struct uprobe_window, and how long end_ns may become
 * where hits are few, at least end_ns. If begin_ns is not 0, the first part becomes longer by as
 * much as the window does.
 */
struct window_parts {
	uint64_t begin_ns, end_ns, most_ns;
};

/* The owner of the probes. */
struct probing_user {
	const char *what;		/* "heap": for messages */
	volatile struct gpb_open *open; /* in the BPF object's .bss: */
	const struct bpf_map *bss;
	struct window_parts parts;
	bool by_own; /* as in struct uprobe_window */
	/* Measures what a hit costs, as hit_cost_measure() does. May be NULL. */
	int (*hit_cost)(void *arg, struct hit_cost *out, struct cost_probes **rest, struct err *e);
	/*
	 * Reads what the target has done so far by its own count. It may be called every few ms.
	 * False: not known. May be NULL.
	 */
	bool (*look)(void *arg, double *count);
	/* Sums up all hits so far. */
	int (*spent)(void *arg, struct gpb_spent *out, struct err *e);
	/*
	 * Changes to windows, which stand for all of the time from @since on (CLOCK_MONOTONIC) and
	 * of which the first will last @window_ns at most, or back to full observation, which
	 * begins now. Nothing is open when it is called. May be NULL.
	 */
	int (*turn)(void *arg, bool windows, uint64_t since, double hit_ns, uint64_t window_ns,
		    struct err *e);
	/* Called when a stretch is over; nothing is open. */
	int (*over)(void *arg, const struct stretch *s, struct err *e);
	void *arg;
};

struct probing;

/* A file that several processes run. All of them are probed, whoever is a target. */
struct probed_file {
	int fd;				     /* of it; borrowed */
	struct attacher_process **attachers; /* borrowed */
	struct exes *exes;		     /* what all processes run; borrowed */
	size_t at_once;			     /* so many of them run at the same time, at most */
	bool multi;			     /* as probing_new() has it */
	struct budget_least *least;	     /* of all files; borrowed */
	/* CPU time of those that are targets, which grows. They share a budget. */
	uint64_t (*cpu_ns)(void *arg);
	void *arg;
};

/* *out attaches nothing yet. @u is copied. @multi: by one link for all probes; else there are no windows. */
int probing_new(struct subject *s, const struct collect_opts *o, const struct probing_user *u,
		bool multi, struct probing **out, struct err *e);
/* The same of a file. @u's look() is not asked. */
int probing_new_file(const struct probed_file *f, const struct collect_opts *o,
		     const struct probing_user *u, struct probing **out, struct err *e);
/* Targets came or went: probed_file.at_once is @n from now on, and a window costs as much more or less. */
void probing_file_at_once(struct probing *p, size_t n);
/*
 * Attaches these groups, and no longer those that were attached before; then hits count. The
 * first time, for a target that is not held and has a budget, probing_begin() or the first
 * probing_poll() does that, after a window that does not count has told whether the target can
 * bear it. Until then other kinds can be made ready, while nobody polls. Groups and sites are
 * copied.
 */
int probing_set(struct probing *p, const struct uprobe_group *g, size_t n, struct err *e);
int probing_begin(struct probing *p, struct err *e);
/* The same without a wait, as the first probing_poll() does it: a later one goes on when the first window is over. */
int probing_begin_soon(struct probing *p, struct err *e);
bool probing_beginning(const struct probing *p); /* it has not come so far */

/* To be polled; -1 where there is no budget. */
int probing_fd(const struct probing *p);
int probing_poll(struct probing *p, struct err *e);

/*
 * Where everything is observed nothing counts from now on, and that stretch has been handed over, without a wait: of several
 * all can be closed at the same moment. To be followed by probing_end().
 */
int probing_close(struct probing *p, struct err *e);
/*
 * From now on nothing counts, the last stretch has been handed over, and everything is detached.
 */
int probing_end(struct probing *p, struct err *e);
/* CLOCK_MONOTONIC: from when on hits counted, in full or in windows; 0: not yet. */
uint64_t probing_since(const struct probing *p);
bool probing_windowed(const struct probing *p); /* not all of the time was observed */
/*
 * Adds losses, for example that it ended early because windows were needed and this kernel has no
 * way to make them.
 */
void probing_losses(const struct probing *p, struct loss *to);
double probing_hit_ns(const struct probing *p); /* what a hit costs */
double probing_spent_ns(
	const struct probing *p); /* what all have cost so far, with the windows around them */
/*
 * Writes the receipt into the profile's comments: what the probes were given, and what they took.
 */
int probing_comment(const struct probing *p, struct prof *prof, struct err *e);
void probing_free(struct probing *p);
DEFINE_FREEP(struct probing, probing)

#endif
