/*
 * user/collect/waits/contention_enable.h - a block or mutex profile of a target that does not record
 * contention. Its runtime is made to do so for the time of the window: runtime.blockprofilerate
 * or mutexprofilerate is written, and restored by a guardian whatever happens
 * (collect/ratewrite/guardian.h). The runtime's buckets are read before and after: the profile is what they
 * gained.
 *
 * The numbers are Go's own, for the window. Go counts a wait when it ends, and only when the rate
 * was on as it began: waits that began before the window, or have not ended by its end, are not
 * included.
 *
 * Source: runtime/chan.go, select.go, sema.go, mprof.go, Go 1.16 to 1.27: blockprofilerate and
 * mutexprofilerate are read before a goroutine parks (releasetime, acquiretime) and again when
 * the wait is counted, so that nothing more is counted after the restoring.
 */
#ifndef COLLECT_WAITS_CONTENTION_ENABLE_H
#define COLLECT_WAITS_CONTENTION_ENABLE_H

#include "collect/waits/contention.h"
#include "profile/profile.h"
#include "subject/subject.h"

struct contention_enable;

/*
 * Returns 1 when the program records it itself: nothing was done, and it should be read. 0 and
 * *out when it records from now on. Negative when it does not, and the target is unchanged:
 * -EBADMSG when what was found is not the variable, -EINVAL for a rate that cannot be written,
 * -EBUSY, -EPERM, -ESRCH.
 */
int contention_enable_start(struct subject *s, const struct collect_opts *o, enum contention what,
			    struct contention_enable **out, struct err *e);
int contention_enable_fd(struct contention_enable *c);
/* Makes a reading from time to time, so that something remains when the target goes. */
int contention_enable_poll(struct contention_enable *c, struct err *e);
void contention_enable_tick(
	struct contention_enable *c); /* ten times a second: shows the guardian that we run */
/* Restores the rate, waits until that is done, and hands over the profile. */
int contention_enable_stop(struct contention_enable *c, struct prof **out, struct err *e);
void contention_enable_free(struct contention_enable *c); /* also restores the rate */
DEFINE_FREEP(struct contention_enable, contention_enable)

#endif
