/*
 * user/ingest/exectrace/summary/mmu.h - minimum mutator utilisation: the least share of its Ps that a program
 * had for itself, rather than for garbage collection, in any window of a length.
 *
 * Source: Cheng and Blelloch, "A Parallel, Real-Time Garbage Collector" (2001); internal/trace/gc.go,
 * Go 1.27. The mean over a window is a linear function of its place between those places where one of
 * its edges meets a change of the utilisation. So the windows that begin or end at a change have the
 * least one, exactly; only the changes in the last second are kept.
 */
#ifndef INGEST_EXECTRACE_SUMMARY_MMU_H
#define INGEST_EXECTRACE_SUMMARY_MMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { MMU_WINDOWS = 4 }; /* 1 ms, 10 ms, 100 ms, 1 s */

struct mmu;

int mmu_new(struct mmu **out, struct err *e);
void mmu_free(struct mmu *m);
DEFINE_FREEP(struct mmu, mmu)

/*
 * From this time on it is @util, from 0 to 1. Times do not go back. The first call begins the
 * function.
 */
int mmu_set(struct mmu *m, int64_t time_ns, double util, struct err *e);
/* The function ends; to be called once. */
void mmu_end(struct mmu *m, int64_t time_ns);

struct mmu_window {
	int64_t ns;
	bool known; /* the function is as long as that, and had not too many changes in one window */
	double min;
	int64_t at_ns; /* where the worst one begins */
};

struct mmu_window mmu_window(const struct mmu *m, size_t i); /* of MMU_WINDOWS */
/* Its mean over all the time, after mmu_end(). Less than 0: there was none. */
double mmu_mean(const struct mmu *m);

#endif
