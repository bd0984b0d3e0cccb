/*
 * user/collect/probing.h - probes on a target that keep to what they may cost it.
 *
 * All probes of a target share one budget, a share of its CPU time. While they keep to it all
 * that happens is observed. When they do not, they are attached for short windows at random
 * times, and what was seen stands for more than itself:
 *
 *	time  |---- stratum ----|---- stratum ----|-- stratum --|
 *	open        [==]              [==]          [==]
 *
 * Each stratum's length is settled before it begins, its window's place in it is drawn evenly,
 * so that whatever happens in a window stands for stratum / window times as much, without bias.
 * Where what is probed is counted by the target itself, and is all done in a small part of the time,
 * strata are equal in what is counted instead: then windows meet bursts, and not what is between.
 * What probes cost is counted hit by hit with a price that was measured on this machine
 * (price.h).
 */
#ifndef COLLECT_PROBING_H
#define COLLECT_PROBING_H

#include "collect/price.h"
#include "collect/subject_priv.h"
#include "collect/uprobes.h"

/* A time in which hits counted. */
struct stretch {
	bool window;		 /* else all was observed, from one change of mind to the next */
	bool let_go;		 /* it ended before this was known: we were stopped */
	uint64_t opened, closed; /* CLOCK_MONOTONIC */
	double weight; /* how many times its length it stands for: 1 when no window; 0: to be forgotten */
	double hit_ns;	  /* what a hit cost in it */
	uint64_t next_ns; /* how long the next window will last, at most */
	/* Of a window that stands for so much by the target's count, and for no time: */
	double mass;
	double rate; /* per ns, of that count, as the window was asked for */
};

/* Whose probes they are. */
struct probing_user {
	const char *what;		/* "heap": for messages */
	volatile struct gpb_open *open; /* in the BPF object's .bss */
	uint64_t begin_ns, end_ns;	/* a window's parts, as struct uprobe_window */
	uint64_t most_ns; /* how long end_ns may become where hits are few; 0: it stays */
	bool by_own;	  /* as there */
	/* What a hit costs, measured (price.h). May be NULL. */
	int (*price)(void *arg, struct price *out, struct err *e);
	/*
	 * What the target has done so far, by its own count; it may be called every few ms.
	 * False: not known. May be NULL.
	 */
	bool (*look)(void *arg, double *count);
	/* What all hits so far were. */
	int (*spent)(void *arg, struct gpb_spent *out, struct err *e);
	/*
	 * From now on in windows, of which the first will last @window_ns at most, or in full again:
	 * nothing is open. May be NULL.
	 */
	int (*turn)(void *arg, bool windows, double hit_ns, uint64_t window_ns, struct err *e);
	/* A stretch is over; nothing is open. */
	int (*over)(void *arg, const struct stretch *s, struct err *e);
	void *arg;
};

struct probing;

/* *out attaches nothing yet. @u is copied. */
int probing_new(struct subject *s, const struct collect_opts *o, const struct probing_user *u,
		bool multi, struct probing **out, struct err *e);
/*
 * Attaches these, and no longer what was attached before; then hits count. For the first time, of a
 * target that is not held and to a budget, probing_begin() or the first probing_poll() does that, once a
 * window that counts for nothing has told whether the target can bear it: until then others can be
 * made ready, while nobody polls. Groups and sites are copied.
 */
int probing_set(struct probing *p, const struct uprobe_group *g, size_t n, struct err *e);
int probing_begin(struct probing *p, struct err *e);

/* To be polled; -1 where there is no budget. */
int probing_fd(const struct probing *p);
int probing_poll(struct probing *p, struct err *e);

/* Nothing counts any more, the last stretch has been handed over, all is detached. */
int probing_end(struct probing *p, struct err *e);
/* CLOCK_MONOTONIC: from when on hits counted, in full or in windows; 0: not yet. */
uint64_t probing_since(const struct probing *p);
bool probing_windowed(const struct probing *p); /* not all of the time was observed */
/* That it was ended early: windows were needed, and this kernel has no way to make them. And so on. */
void probing_losses(const struct probing *p, struct loss *to);
double probing_hit_ns(const struct probing *p); /* what a hit costs */
/* What it was given, and took: for the profile's comments. */
int probing_comment(const struct probing *p, struct prof *prof, struct err *e);
void probing_free(struct probing *p);
DEFINE_FREEP(struct probing, probing)

#endif
