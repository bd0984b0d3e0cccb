/*
 * user/probe/uprobes/healing.h - leftovers (leftovers.h) of many processes, freed while they are probed already.
 *
 * To look at one takes less than half a millisecond of CPU time. To free them takes the kernel some ten milliseconds a process,
 * and for ever where one is stuck; so an attacher does that, for one after another, and nobody waits for it. Nor are they
 * watched first: those that somebody uses stay, and how many that are is not known.
 */
#ifndef PROBE_UPROBES_HEALING_H
#define PROBE_UPROBES_HEALING_H

#include "probe/uprobes/uprobes.h"
#include "target/target.h"

/* Zeroed at first, but for what the owner sets: */
struct healing {
	struct attacher_process **attachers; /* borrowed */
	bool multi;
	/* private */
	struct uprobes u;
	bool held, asked;
	unsigned last; /* the newest set of u */
	int failed;    /* why some may still be there, or 0 */
	struct err why;
};

/* What there was in one. */
struct healing_found {
	size_t n;	   /* breakpoints */
	bool not_searched; /* its code, or a part of it */
};

/*
 * To be called while nothing of ours is in @t's code. One that is being traced keeps them, and so does one that has more than
 * HEALING_MOST in a file.
 */
enum { HEALING_MOST = 1024 };
void healing_look(struct healing *h, struct target *t, struct healing_found *out);
/* Begins to free what was found in all. What is found later waits for the next call. */
void healing_begin(struct healing *h);
/* To be polled; -1: nothing is under way. When it is over healing_end() is to be called. */
int healing_fd(struct healing *h);
bool healing_over(struct healing *h);
/* It waits for what is under way. Safe on a zeroed struct. */
void healing_end(struct healing *h);

#endif
