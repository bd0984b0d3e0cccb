/*
 * user/collect/ticks.h - how many cputicks a second has: what turns the cycles of block and mutex
 * buckets into nanoseconds.
 *
 * Go's own profiles divide by runtime.ticksPerSecond(). It measures once, when somebody first
 * asks (a rate is set in ns, or a profile is written), and keeps the answer in runtime.ticks; then
 * ours is the same. Before that, from Go 1.22 on, runtime.ticks has both clocks as they stood when
 * the program began, and ours is what Go would find now. All of it is checked against a measure of
 * this machine, and where it does not fit that measure is used: a process may have come here
 * from another machine, or have a clock of its own (time namespaces).
 *
 * Source: runtime/runtime.go, Go 1.16 to 1.27: ticks, tickspersecond, ticksPerSecond, ticksType.
 */
#ifndef COLLECT_TICKS_H
#define COLLECT_TICKS_H

#include "collect/subject_priv.h"

enum ticks_how {
	TICKS_OWN,	/* runtime.ticks.val: what the program itself divides by */
	TICKS_START,	/* since the program's start */
	TICKS_MEASURED, /* here and now */
};

struct ticks {
	enum ticks_how how;
	double per_second; /* to be used; > 0 */
	double measured;   /* ticks_measure() */
	double own;	   /* what runtime.ticks says when that is not used; 0: nothing */
};

/* Cputicks per second of this machine; takes 20 ms. -EBADMSG when the clocks make no sense. */
int ticks_measure(double *per_second, struct err *e);

/*
 * Those of the target at this moment; @measured as ticks_measure() gave it. Never fails: what
 * cannot be read is as if it were not there.
 */
struct ticks ticks_of(struct subject *s, double measured);

/* One sentence for the profile's comments: which, and by how much others differ. */
int ticks_comment(const struct ticks *t, struct prof *p, struct err *e);

/* The parts of ticks_of() that need no process; for tests. */
struct ticks_words {
	int64_t start_ticks, start_ns; /* 0 before go1.22 */
	int64_t val;		       /* 0: nobody asked yet */
};
struct ticks ticks_choose(const struct ticks_words *w, double measured, int64_t now_ticks,
			  int64_t now_ns);

#endif
