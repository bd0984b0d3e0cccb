/*
 * user/collect/waits/engine/run_ratio.h - numbers of waits agree with the runtime's own count of runs, where most of them are paced by a
 * clock.
 *
 * A wait that a clock paces counts by time, as if probes did not make it longer. But its goroutine runs between two of them, and where a
 * hundred of them sleep for 0.5 ms each, and one thread wakes them one after the other, probes make each turn longer: windows then met 0.78
 * of them. And of waits that are too long for windows, and too short for looks, they met a tenth. Each run of a goroutine comes after a
 * time runnable, of which windows meet those of both, so that all of these together are as many as the runtime counted runs (a ratio
 * estimator). The number of each place is so many times what windows say.
 */
#ifndef COLLECT_WAITS_ENGINE_RUN_RATIO_H
#define COLLECT_WAITS_ENGINE_RUN_RATIO_H

#include "collect/waits/engine/wait_engine.h"

/* Are numbers of short waits made to agree with the runtime's own count of runs by a regression (wait_estimates.c)? */
bool run_regressed(const struct wait_engine *w);

/*
 * How many times more waits there were than windows say; 1: the runtime's count does not tell, or the numbers are made to agree with it in
 * another way (run_regressed).
 */
double run_ratio(const struct wait_engine *w);

/*
 * How many runs of group 0 windows lay before no wait, or time runnable, that they saw: those of goroutines that waited already when the
 * window began. Where looks and windows are compared by the runtime's count, these tell nothing of short waits.
 */
double run_unplaced(const struct wait_engine *w);

/*
 * The variance of a number that is that many times what windows say, @n with this @variance, of a place that has @part of all: where
 * others have more, or fewer, it may have less of what windows lack, or more.
 */
double run_ratio_variance(double ratio, double n, double variance, double part);

#endif
