/*
 * user/collect/enable.h - what switching a rate of the runtime's on has in common, whichever it
 * is: where it may be written, and what is said of it. The doing is collect/guardian.h's.
 */
#ifndef COLLECT_ENABLE_H
#define COLLECT_ENABLE_H

#include "collect/guardian.h"
#include "collect/subject_priv.h"

/* One switch, from guardian_start() on. */
struct enabled {
	const char *kind; /* of the profile, for messages: "heap" */
	const char *name; /* of the variable: "runtime.MemProfileRate" */
	struct guardian_said began;
	struct guardian_said ended; /* how is -1 when it could not be restored */
};

/*
 * Two ways to the address (live: @addr) must agree before anything is written there, and the Go
 * must be one that is known here: -ENOTSUP, -EBADMSG, -ENOENT.
 */
int enable_check_address(struct subject *s, enum rtvar v, uint64_t addr, struct err *e);

/* Has a goprof-bpf, this one or another, switched it on? @what: CLAIM_HEAP_RATE, ... */
bool enable_is_borrowed(struct target *t, unsigned what);

/* What began, to the person who waits. */
void enable_tell_begun(const struct enabled *x, pid_t guardian, const struct collect_opts *o);

/*
 * Restores, waits until that is done, sets x->ended and says what came of it. To be called once;
 * it does not fail, for whatever happens there is a profile to write.
 */
void enable_end(struct enabled *x, struct guardian *g, const struct collect_opts *o);

/* The same as one comment of the profile, and as a loss when it could not be restored. */
int enable_comment(const struct enabled *x, struct prof *p, struct err *e);

#endif
