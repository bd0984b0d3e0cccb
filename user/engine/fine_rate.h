/*
 * user/engine/fine_rate.h - how densely a target under full observation is sampled when the user
 * did not give a rate.
 *
 * Go's default rates are made for a program that samples itself all the time. With probes, each
 * event has been paid for already, and a light program has few events: sampled at Go's rate, some
 * seconds of it would show next to nothing. So the rate is as fine as a fifth of the budget pays
 * for.
 */
#ifndef ENGINE_FINE_RATE_H
#define ENGINE_FINE_RATE_H

#include <stdint.h>

#include "profile/profile.h"
#include "subject/open.h"

/* What a short look saw before anything counted. A zeroed struct: there was none. */
struct fine_seen {
	double events, bytes; /* bytes: of all of them */
	double ns;	      /* for how long */
};

/* What such a look saw of waits. Zeroed: there was none. */
struct fine_waits {
	double waits;	  /* that ended */
	double capped_ns; /* the sum of their lengths, of each at most the default rate */
	double ns;	  /* for how long */
};

/* One in how many events may be sampled; >= 1. @budget_ppm > 0. */
double fine_every(const struct fine_seen *s, unsigned budget_ppm);
/* Mean number of bytes between samples of allocations; at most @most. */
uint64_t fine_heap_rate(const struct fine_seen *s, unsigned budget_ppm, uint64_t most);
/* From which length on (ns) all waits are samples, at most @most. */
uint64_t fine_wait_rate(const struct fine_waits *s, unsigned budget_ppm, uint64_t most);
/* One in how many contentions is a sample, at most @most. */
uint64_t fine_mutex_fraction(const struct fine_waits *s, unsigned budget_ppm, uint64_t most);
/* Is the rate ours to choose? Then the one that was used is told at the end. */
bool fine_chosen(const struct collect_opts *o, bool fine);
/* What is said of a rate when probing begins: "", or that it may become finer. */
const char *fine_words(const struct collect_opts *o, bool fine);

/* The rate that was used, whose it is, and whether nobody asked for one. */
struct fine_rate {
	const struct collect_opts *o;
	const char *kind;
	bool fine;
};
/* The comment "rate: ...". Where the rate was chosen here, it is said, too. */
int fine_comment(const struct fine_rate *r, struct prof *prof, struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#endif
