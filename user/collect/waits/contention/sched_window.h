/*
 * user/collect/waits/contention/sched_window.h - the waits of block and mutex profiles, as a kind of wait_engine.h.
 *
 * Looks do not see who makes others wait for a mutex, but they see how long all of them wait (Go
 * 1.22+, where an unlock is charged with what all waiters waited). Windows tell who is charged
 * with it, and how much the runtime charges for what is waited.
 */
#ifndef COLLECT_WAITS_CONTENTION_SCHED_WINDOW_H
#define COLLECT_WAITS_CONTENTION_SCHED_WINDOW_H

#include "collect/waits/engine/wait_estimates.h"
#include "engine/fine_rate.h"

struct sched_window {
	struct wait_engine
		engine; /* groups: GPB_WAIT_BLOCK and _MUTEX, and long ones; whole: GPB_WAIT_* */
	struct gpb_sched conf;
	struct fine_waits light[GPB_WAIT_KINDS]; /* what was seen before anything counted */
	struct {
		double parks, stand_for;
	} seen; /* in all windows */
	struct {
		double parks, told; /* all, and those of the kinds that are counted */
	} dense;		    /* in dense windows (dilation.h) */
	double cut;		    /* about how many contentions were longer than their window */
	uint64_t mutexes; /* wait reasons that are charged to who unlocks; 0: see locked */
	struct {
		double charged, waited, cc, cw, ww; /* sums and sums of products, over windows */
	} unlocks; /* gpb_sched_seen, each window with what it stands for */
	struct {
		bool known;		   /* known from looks: */
		double delay, delay_error; /* total delay, and its variance */
	} locked;
};

/* @w must be zero but for what wait_engine_init() allows. It must not be moved afterwards. */
void sched_window_init(struct sched_window *w);
/* Takes a stack that came through the ring. */
int sched_window_add(void *w, const struct gpb_stack *st, struct err *e);
/* To be called when a profile of another kind has joined; conf has that already. */
int sched_window_joined(struct sched_window *w, struct err *e);
/* wait_engine_end(), and what follows from it for mutexes and for parks of other kinds. */
void sched_window_end(struct sched_window *w);
/* Counts waits that the probes saw begin since @from, and did not see end. */
int sched_window_waiting(const struct sched_window *w, uint64_t from, uint64_t *out, struct err *e);

/* For struct wait_kind. @w: a sched_window. */
struct wait_estimate sched_window_estimate(const void *w, size_t entry);
struct wait_error sched_window_site(const void *w, size_t site);
/* For all of a kind, GPB_WAIT_*. */
struct wait_error sched_window_whole(const struct sched_window *w, unsigned kind);
void sched_window_fini(struct sched_window *w);

#endif
