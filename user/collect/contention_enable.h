/*
 * user/collect/contention_enable.h - a block or mutex profile of a target that does not record
 * contention, by having its runtime do so for the time of the window: runtime.blockprofilerate or
 * mutexprofilerate is written, and restored by a guardian whatever happens (collect/guardian.h).
 * The runtime's buckets are read before and after: the profile is what they gained.
 *
 * What the numbers are: Go's own, for the window. A wait is counted by Go when it ends, and only
 * when the rate was on as it began: waits that began before the window or have not ended by then
 * are not in it.
 *
 * Source: runtime/chan.go, select.go, sema.go, mprof.go, Go 1.16 to 1.27: blockprofilerate and
 * mutexprofilerate are looked at before a goroutine parks (releasetime, acquiretime) and again
 * when the wait is counted, so that after the restoring nothing more is.
 */
#ifndef COLLECT_CONTENTION_ENABLE_H
#define COLLECT_CONTENTION_ENABLE_H

#include "collect/contention.h"
#include "collect/subject_priv.h"

struct contention_enable;

/*
 * 1 when the program records it itself: nothing was done, read it. 0 and *out when it
 * records now. Negative when it does not, and the target is as it was: -EBADMSG what was found
 * is no such variable, -EINVAL a rate that cannot be written, -EBUSY, -EPERM, -ESRCH.
 */
int contention_enable_start(struct subject *s, const struct collect_opts *o, enum contention what,
			    struct contention_enable **out, struct err *e);
int contention_enable_fd(struct contention_enable *c);
/* A reading now and then, so that a target that goes leaves something. */
int contention_enable_poll(struct contention_enable *c, struct err *e);
void contention_enable_tick(
	struct contention_enable *c); /* ten times a second: shows the guardian that we run */
/* Restores, waits until that is done, and hands over the profile. */
int contention_enable_stop(struct contention_enable *c, struct prof **out, struct err *e);
void contention_enable_free(struct contention_enable *c); /* restores too */
DEFINE_FREEP(struct contention_enable, contention_enable)

#endif
