/* user/collect/waits/looks_priv.h - for tests: replaces the clock and the pauses. */
#ifndef COLLECT_WAITS_LOOKS_PRIV_H
#define COLLECT_WAITS_LOOKS_PRIV_H

#include "collect/waits/looks.h"

/* @now: nanoseconds; @cpu: of this thread; @rest: does nothing for so long. */
void looks_set_clock(struct looks *k, uint64_t (*now)(void), uint64_t (*cpu)(void),
		     void (*rest)(uint64_t ns));
/* To be called before looks_begin(): the live address of runtime.allgs. */
void looks_set_allgs(struct looks *k, uint64_t addr);
void looks_set_seed(struct looks *k, uint64_t seed);

#endif
