/* user/collect/waits/onlook_priv.h - for tests: replaces the clock and the pauses. */
#ifndef COLLECT_WAITS_ONLOOK_PRIV_H
#define COLLECT_WAITS_ONLOOK_PRIV_H

#include "collect/waits/onlook.h"

/* @now: nanoseconds; @cpu: of this thread; @rest: does nothing for so long. */
void onlook_set_clock(struct onlook *k, uint64_t (*now)(void), uint64_t (*cpu)(void),
		      void (*rest)(uint64_t ns));
/* To be called before onlook_begin(): the live address of runtime.allgs. */
void onlook_set_allgs(struct onlook *k, uint64_t addr);
void onlook_set_seed(struct onlook *k, uint64_t seed);

/* When onlook_poll() has something to do; 0: never. */
uint64_t onlook_due(const struct onlook *k);

#endif
