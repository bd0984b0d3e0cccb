/* user/collect/waits/looks/looks_priv.h - what looks.c remembers; and for tests: replaces the clock and the pauses. */
#ifndef COLLECT_WAITS_LOOKS_LOOKS_PRIV_H
#define COLLECT_WAITS_LOOKS_LOOKS_PRIV_H

#include "collect/waits/looks/looks.h"

#include "collect/waits/looks/parked.h"

/* The stack that a goroutine was last found with when it waited for this. */
struct found {
	uint64_t goid;
	double owed_ns; /* the strata of looks that saw the wait without a stack */
	int32_t entry;	/* of the tally, or LOOKS_NOT_COUNTED; LOOKS_UNFOUND: no stack yet */
	uint16_t what;	/* parked_for() of the wait; 0: none */
};
enum { FOUND = 3, LOOKS_UNFOUND = -2 };

/* A goroutine, at its index in allgs. */
struct seen {
	uint64_t g;
	struct parked was;
	double ns;	/* the strata of looks that saw this wait */
	uint64_t since; /* about when it began to wait */
	uint32_t looks;
	int32_t entry; /* as found.entry */
	struct found found[FOUND];
	uint8_t turn;  /* index in found: the next to be forgotten */
	uint64_t look; /* the look that saw it last, from 1 on */
	bool waits, begun_before,
		known; /* known: since is, though it began before the first look */
};

/* Indices of looks.at; a VEC. */
struct places {
	uint32_t *at;
	size_t n, cap;
};

struct looks {
	struct subject *s;
	const struct collect_opts *o; /* borrowed */
	struct looks_conf c;
	struct gpb_target t;
	size_t nimages;
	struct parked_reader reader;
	uint64_t allgs, array, n; /* where; what was there at the last look */
	uint64_t *list;		  /* LOOKS_MAX */
	VEC(struct seen) at;
	struct places fresh;	   /* goroutines whose wait began since the last look */
	struct places busy, later; /* whose state changed: at the last look; at this one */
	struct looks_sums sums;
	struct gpb_stack st;
	struct gpb_rec_raw raw;
	uint8_t *copies; /* PARKED_BATCH * SHALLOW */
	struct looks_result sum;
	uint64_t (*now)(void), (*cpu)(void);
	void (*rest)(uint64_t ns);
	uint64_t random;
	struct look_times times;
	const struct looks_begun *begun; /* looks_know() */
	size_t nbegun;
	uint64_t at_ns, looked,
		looked_before; /* this look, the last one of its phase and the one before */
	uint64_t paused;       /* when the last phase ended, until the first look of the next one */
	int fd;
	bool gone;
};

/* Of waits that are sorted by their g: when that of @g began; 0: there is none. */
uint64_t looks_begun_since(const struct looks_begun *b, size_t n, uint64_t g);

/*
 * Of a wait that was under way when looks paused, until @until. If it is the same then (@same), it went on all the time. Otherwise it
 * lasted about as long after the pause began as before, since at a random moment what is over of a wait and what is to come are alike.
 * Adds that to g->ns, and returns when it ended, or @until.
 */
uint64_t looks_over_pause(struct looks *k, struct seen *g, bool same, uint64_t until);

/* @now: nanoseconds; @cpu: of this thread; @rest: does nothing for so long. */
void looks_set_clock(struct looks *k, uint64_t (*now)(void), uint64_t (*cpu)(void),
		     void (*rest)(uint64_t ns));
/* To be called before looks_begin(): the live address of runtime.allgs. */
void looks_set_allgs(struct looks *k, uint64_t addr);
void looks_set_seed(struct looks *k, uint64_t seed);

#endif
