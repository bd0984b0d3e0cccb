/*
 * user/collect/waits/contention/contention_probe.h - block and mutex profiles of a program that keeps none: its
 * waits are watched (collect/waits/contention/sched.h), and nothing is written in it.
 *
 * What the numbers are. Block: waits that ended in the window, from the moment that a channel or
 * semaphore could not be had to the moment that the goroutine was made ready, by the stack of the
 * goroutine that waited; the waits that Go's own profile has, and no others. Mutex: contentions,
 * by the stack of the unlock that ended one, charged as that Go version does it. Short waits, and
 * all but one contention in --mutex-fraction, are sampled, and scaled as Go scales its own. Locks
 * of the runtime itself, which Go's mutex profile has from Go 1.22 on, are not seen.
 */
#ifndef COLLECT_WAITS_CONTENTION_CONTENTION_PROBE_H
#define COLLECT_WAITS_CONTENTION_CONTENTION_PROBE_H

#include "collect/source.h"
#include "collect/waits/contention/contention.h"
#include "profile/profile.h"
#include "subject/subject.h"

struct contention_probe;

/* -ENOTSUP when this Go cannot be probed so, with why. */
int contention_probe_start(struct subject *s, const struct collect_opts *o, enum contention kind,
			   struct sourced *out, struct err *e);
void contention_probe_free(struct contention_probe *c);

/*
 * One of many targets, of which nothing is added any more: fills its profile from @sched (sched_priv.h), whose start and end are
 * set. The owner adds to contention_probe_prof() what is said of all, and takes it: counts become whole numbers then.
 */
struct sched;
int contention_probe_finish(struct sched *sched, enum contention kind, int64_t start_unix_ns,
			    struct contention_probe **out, struct err *e);
struct prof *contention_probe_prof(struct contention_probe *c);
struct prof *contention_probe_take(struct contention_probe *c);

/*
 * Adds losses to the result of a profile that lasted @ns: waits that are known from elsewhere, and of which its
 * windows met none or next to none.
 */
struct sched_result;
void contention_probe_unseen(enum contention kind, int64_t ns, struct sched_result *r);
DEFINE_FREEP(struct contention_probe, contention_probe)

#endif
