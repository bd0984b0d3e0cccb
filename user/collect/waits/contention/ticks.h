/*
 * user/collect/waits/contention/ticks.h - how many cputicks a second has: this turns the cycles of block and mutex
 * buckets into nanoseconds.
 *
 * Go's own profiles divide by runtime.ticksPerSecond(). It measures once, when somebody first
 * asks (a rate is set in ns, or a profile is written), and keeps the answer in runtime.ticks;
 * then our value is that one. Before that, from Go 1.22 on, runtime.ticks has the values of both
 * clocks when the program began, and our value is what Go would compute now. Both are compared
 * with a measurement of this machine. Where they do not agree with it, the measurement is used: a
 * process may have come here from another machine, or have a clock of its own (time namespaces).
 *
 * Source: runtime/runtime.go, Go 1.16 to 1.27: ticks, tickspersecond, ticksPerSecond, ticksType.
 */
#ifndef COLLECT_WAITS_CONTENTION_TICKS_H
#define COLLECT_WAITS_CONTENTION_TICKS_H

#include "profile/profile.h"
#include "subject/subject.h"

enum ticks_how {
	TICKS_OWN,	/* runtime.ticks.val: the program's own divisor */
	TICKS_START,	/* computed from the clocks at the program's start */
	TICKS_MEASURED, /* measured on this machine, now */
};

struct ticks {
	enum ticks_how how;
	double per_second; /* the value to use; > 0 */
	double measured;   /* ticks_measure() */
	double own;	   /* the value of runtime.ticks when it is not used; 0: there is none */
};

/*
 * Measures the cputicks per second of this machine; takes 20 ms. -EBADMSG when the clocks make no
 * sense.
 */
int ticks_measure(double *per_second, struct err *e);

/*
 * The value for the target at this moment; @measured comes from ticks_measure(). Never fails:
 * what cannot be read is treated as absent.
 */
struct ticks ticks_of(struct subject *s, double measured);

/*
 * Writes one sentence into the profile's comments: which value is used, and by how much the
 * others differ.
 */
int ticks_comment(const struct ticks *t, struct prof *p, struct err *e);

/* The parts of ticks_of() that need no process; for tests. */
struct ticks_words {
	int64_t start_ticks, start_ns; /* 0 before go1.22 */
	int64_t val;		       /* 0: nobody has asked yet */
};
struct ticks ticks_choose(const struct ticks_words *w, double measured, int64_t now_ticks,
			  int64_t now_ns);

#endif
