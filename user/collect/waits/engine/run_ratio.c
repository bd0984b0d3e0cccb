/* user/collect/waits/engine/run_ratio.c - times runnable, by windows and looks, compared with the runtime's count of runs. */
#include "collect/waits/engine/run_ratio.h"

#include <math.h>

#include "sampling/looks/undercount.h"

/* Windows that tell the number of all runs worse than that, in a standard error, tell nothing of what is lacking. */
#define KNOWN_WITHIN 0.25
/* Up to go1.25 the runtime counts the return from a system call as a run. Source: runtime/proc.go (exitsyscall), runtime/runtime2.go. */
enum { CALLS_RUN_UNTIL = 25 };

struct runnable {
	double windows, looks;
};

static bool calls_run(const struct wait_engine *w)
{
	return gobin_info(w->s->bin)->minor <= CALLS_RUN_UNTIL;
}

static struct runnable runnable_of(const struct wait_engine *w)
{
	bool calls = calls_run(w);
	struct runnable r = {};

	for (size_t i = 0; i < w->tally.entries.n; i++) {
		const struct tally_entry *en = &w->tally.entries.at[i];

		if (!en->follows && !(calls && en->st->wait.kind == w->kind->but))
			continue;
		r.windows += en->counts.x / GPB_COUNT_ONE * undercounts_factor(&w->under, en);
		r.looks += w->looks ? looks_of(w->looks, i).count : 0;
	}
	return r;
}

double run_unplaced(const struct wait_engine *w)
{
	double runs = w->tally.groups[0].x;

	if (!w->kind->sees_runs)
		return 0;
	for (size_t i = 0; i < w->tally.entries.n; i++) {
		const struct tally_entry *en = &w->tally.entries.at[i];

		if (en->follows && !en->group)
			runs -= en->counts.x / GPB_COUNT_ONE;
	}
	return fmax(runs, 0);
}

/*
 * The count is right, also where a target that must wait for CPUs does less in windows than otherwise. Runs at
 * a pace that no window met are left out of it: the waits that windows saw have no part in them. For waits that
 * a clock paces there is only an estimate, so this is not done where most waits are paced.
 */
bool run_regressed(const struct wait_engine *w)
{
	return w->tally.windows && w->tally.groups[0].x - w->unplaced >= w->paced &&
	       dilation_met(&w->slow) > w->paced;
}

static bool windows_know(const struct wait_engine *w)
{
	struct tally_estimate runs = tally_group(&w->tally, 0);

	runs.value += w->paced;
	return runs.value > 0 && runs.variance >= 0 &&
	       sqrt(runs.variance) < KNOWN_WITHIN * runs.value;
}

double run_ratio(const struct wait_engine *w)
{
	double counted = dilation_met(&w->slow);
	struct runnable r;

	if (!w->kind->sees_runs || !w->tally.windows || counted <= 0 ||
	    dilation_unmet(&w->slow) > 0 || run_regressed(w) || !windows_know(w))
		return 1;
	r = runnable_of(w);
	if (r.windows <= 0 || counted <= r.looks)
		return 1;
	return fmin(fmax((counted - r.looks) / r.windows, 1.0 / RUN_DILATED), RUN_DILATED);
}

double run_ratio_variance(double ratio, double n, double variance, double part)
{
	double others = (ratio - 1) * n * (1 - part);

	return variance < 0 ? -1 : ratio * ratio * variance + others * others;
}
