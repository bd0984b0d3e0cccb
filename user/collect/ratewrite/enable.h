/*
 * user/collect/ratewrite/enable.h - what all rates of the runtime have in common that are switched on:
 * where they may be written, and what is reported. collect/ratewrite/guardian.h does the writing.
 */
#ifndef COLLECT_RATEWRITE_ENABLE_H
#define COLLECT_RATEWRITE_ENABLE_H

#include "collect/ratewrite/guardian.h"
#include "profile/profile.h"
#include "subject/subject.h"

/* One switch, from guardian_start() on. */
struct enabled {
	const char *kind; /* of the profile, for messages: "heap" */
	const char *name; /* of the variable: "runtime.MemProfileRate" */
	struct guardian_said began;
	struct guardian_said ended; /* how is -1 when it could not be restored */
};

/*
 * Checks before anything is written to the live address @addr: two ways to find the address must
 * agree, and the Go version must be known here. -ENOTSUP, -EBADMSG, -ENOENT.
 */
int enable_check_address(struct subject *s, enum rtvar v, uint64_t addr, struct err *e);

/* Reports on stderr what began. */
void enable_tell_begun(const struct enabled *x, pid_t guardian, const struct collect_opts *o);

/*
 * Restores the rate, waits until that is done, sets x->ended and reports the result. To be called
 * once. It does not fail, because there is a profile to write in any case.
 */
void enable_end(struct enabled *x, struct guardian *g, const struct collect_opts *o);

/*
 * Puts the same into one comment of the profile, and adds a loss when the rate could not be
 * restored.
 */
int enable_comment(const struct enabled *x, struct prof *p, struct err *e);

#endif
