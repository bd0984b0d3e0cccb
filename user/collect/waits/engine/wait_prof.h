/*
 * user/collect/waits/engine/wait_prof.h - a profile of probed waits while it is written: numbers and delays of
 * stacks, and how certain those of each site are.
 */
#ifndef COLLECT_WAITS_ENGINE_WAIT_PROF_H
#define COLLECT_WAITS_ENGINE_WAIT_PROF_H

#include "collect/site_errors.h"
#include "collect/waits/engine/wait_estimates.h"
#include "profile/profile.h"
#include "symbolize/stack_physical.h"

struct wait_prof {
	struct prof *prof; /* types "contentions" and "delay" */
	struct stack_physical ph;
	struct site_errors counts, delays; /* standard errors of estimates */
};

/* @how: of subject_prof(). wait_prof_fini() is called also after a failure, and does nothing to a zeroed struct. */
int wait_prof_begin(struct wait_prof *p, struct subject *s, const char *how, enum hide hide,
		    struct err *e);
void wait_prof_fini(struct wait_prof *p);

/* Adds a sample. Counts of one stack are added up before they are rounded, because Go rounds what it shows. */
int wait_prof_add(struct wait_prof *p, const struct gpb_stack *st, const struct wait_estimate *est,
		  const struct prof_label *labels, size_t nlabels, struct err *e);
/*
 * Says how long waits lasted while there were windows. @no_looks: why nobody looked, or NULL; @calls: what is said
 * of system calls, or NULL; @cut: as in struct wait_engine.
 */
int wait_prof_looks(struct wait_prof *p, const struct looks_result *r, const char *no_looks,
		    const char *calls, uint64_t cut, struct err *e);
/* Says how many runs no window stands for (dilation.h); 0: none that are worth it. @maybe: dilation_maybe_yields(). */
int wait_prof_unmet(struct wait_prof *p, double unmet, bool maybe, double yields, struct err *e);
/* Says how certain sites are, and @all of them together. */
int wait_prof_errors(struct wait_prof *p, const struct wait_error *all, struct err *e);
/* Nothing more is added: counts become whole numbers. The profile is the caller's. */
struct prof *wait_prof_take(struct wait_prof *p);

#endif
