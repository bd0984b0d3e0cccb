/*
 * user/collect/ratewrite/enable.h - a rate of the runtime that is switched on for a window: where it may be
 * written, when readings are made, and what is reported. collect/ratewrite/guardian.h does the writing.
 *
 * 	enable_init	enable_check_address	enable_on	enable_from	(enable_poll ...)	enable_end
 */
#ifndef COLLECT_RATEWRITE_ENABLE_H
#define COLLECT_RATEWRITE_ENABLE_H

#include "collect/ratewrite/guardian.h"
#include "profile/profile.h"
#include "subject/subject.h"

struct enable {
	/* Set before enable_init(); what is pointed to is borrowed. */
	struct subject *s;
	const struct collect_opts *o;
	const char *kind; /* of the profile, for messages: "heap" */
	const char *name; /* of the variable: "runtime.MemProfileRate" */
	/* The rate in force. */
	int (*rate)(void *arg, uint64_t *rate, struct err *e);
	/* Makes one more reading. It counts if enable_is_ours() after it; then it sets last_ns. */
	int (*read)(void *arg, struct err *e);
	void *arg;

	struct guardian *g;	    /* NULL: there is none */
	struct guardian_said began; /* began.value is the rate */
	struct guardian_said ended; /* how is -1 when it could not be restored */
	/* CLOCK_MONOTONIC: the beginning of the window, and the last reading; 0: not read yet */
	uint64_t base_ns, last_ns;
	int64_t base_unix_ns;
	int timer; /* readable when enable_poll() is to be called */
	uint64_t next_ms;
	bool over; /* the rate is no longer ours: nothing more is read */
	bool told; /* a reading in between failed, which was said */
};

/* -ENOTSUP for a program that has not run yet. */
int enable_init(struct enable *x, struct err *e);
void enable_fini(struct enable *x); /* also restores the rate */

/* Prints a step with -v. */
void enable_step(const struct enable *x, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Checks before anything is written to the live address @addr: two ways to find the address must
 * agree, and the Go version must be known here. -ENOTSUP, -EBADMSG, -ENOENT.
 */
int enable_check_address(struct subject *s, enum rtvar v, uint64_t addr, struct err *e);

/* Switches it on, and reports that; 1: the program has it on by itself. @what: CLAIM_*. */
int enable_on(struct enable *x, uint64_t addr, uint64_t value, unsigned what, struct err *e);

/*
 * Is the rate that is in force ours? A rate that was in force before is not, so all that was recorded
 * until then was recorded with our rate.
 */
int enable_is_ours(struct enable *x, bool *ours, struct err *e);

/*
 * The window began at @base_ns, with a reading; others follow when the timer says so. -EBUSY when the
 * program has set the rate itself.
 */
int enable_from(struct enable *x, uint64_t base_ns, struct err *e);

/* These are functions of a struct source (collect/source.h), whose state begins with a struct enable. */
int enable_fd(void *state);
/* Makes a reading, so that something remains when the target goes. */
int enable_poll(void *state, struct err *e);
/* Ten times a second: shows the guardian that we run. */
int enable_tick(void *state, struct err *e);

/*
 * Makes the last reading, restores the rate, waits until that is done, and reports the result. To be
 * called once. -ESRCH when nothing was read of the window.
 */
int enable_end(struct enable *x, struct err *e);

/* How long the window was, in seconds. */
double enable_seconds(const struct enable *x);

/*
 * Puts into the profile what became of the rate, and a loss when it could not be restored; and its
 * window, with a loss when that was over too early.
 */
int enable_comment(const struct enable *x, struct prof *p, struct err *e);
void enable_set_window(const struct enable *x, struct prof *p);

#endif
