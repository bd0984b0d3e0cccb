/*
 * user/sampling/windows/paces.h - are there allocations that no window stands for? run_rates.h, for each size class.
 *
 * The runtime's own count of a size class is the known total that the shares of sites in windows are applied to
 * (a ratio estimator). That is right only if windows met the program at every pace: a phase in which another
 * site allocates a thousand times as often would be credited to the sites of the calm phases that windows met.
 * So time at a far higher pace than that of any window is a stratum without a window: its allocations are taken
 * out of the total, are told apart, and are the error of all sites of their class.
 */
#ifndef SAMPLING_WINDOWS_PACES_H
#define SAMPLING_WINDOWS_PACES_H

#include <stdbool.h>

#include "base/vec.h"
#include "goprof_abi.h"
#include "sampling/run_rates.h"

/* The time between two readings of the runtime's counts (CLOCK_MONOTONIC, ns), and allocations per ns in it. */
struct pace_step {
	uint64_t began, ended; /* ended: 0: there was none */
	double all, pace[GPB_CLASSES];
};

/* A window of which the steps around it are not all known yet. */
struct pace_window {
	uint64_t opened, closed; /* closed: 0: there is none */
	double own_ns, stands_ns;
	struct pace_step saw;
};

/* Of a class, the steps at one pace: a bin of run_rates.h. */
struct pace_bin {
	uint16_t class, bin;
	double allocs, ns;
};

/*
 * A struct that is zeroed is a new one. Of some hundred processes most allocate in few classes, and a class at few paces: so
 * there is memory for those bins alone that have something.
 */
enum { PACE_STEPS = 4 };
struct paces {
	VEC(struct pace_bin) bins;    /* ascending */
	double still_ns[GPB_CLASSES]; /* the steps without any, since the first one of a class */
	double most[GPB_CLASSES];     /* as in struct run_rates */
	double windows_ns;	      /* of all that windows stand for */
	bool no_memory;		      /* steps are missing: nothing is taken for unmet */
	uint64_t last[GPB_CLASSES], began; /* the counts when the present step began, and when */
	bool known;			   /* these two are set */
	struct pace_step
		steps[PACE_STEPS]; /* the last ones; the next one is put at [nsteps % PACE_STEPS] */
	unsigned nsteps;
	struct pace_window window; /* the last one */
};

/*
 * The runtime's counts at @now (CLOCK_MONOTONIC, ns), while there are windows. To be called every few ms. False:
 * there is no memory, and no allocation will be taken for unmet.
 */
bool paces_step(struct paces *p, const uint64_t counts[GPB_CLASSES], uint64_t now);
/* Allocations per ns lately: from the beginning of the last step until @now, when the counts were these. 0: nothing is known. */
void paces_lately(const struct paces *p, const uint64_t counts[GPB_CLASSES], uint64_t now,
		  double pace[GPB_CLASSES]);
/* There are no windows any more: time until the next step belongs to none. */
void paces_pause(struct paces *p);
/*
 * A window that was open from @opened until @closed saw so many in @own_ns of the target's own time, and stands for
 * @stands_ns.
 */
void paces_window(struct paces *p, uint64_t opened, uint64_t closed, const double seen[GPB_CLASSES],
		  double own_ns, double stands_ns);
/* Nothing is added any more. */
void paces_end(struct paces *p);
/* run_rates_unmet(), of a class. */
struct run_unmet paces_unmet(const struct paces *p, unsigned class);
void paces_fini(struct paces *p);

#endif
