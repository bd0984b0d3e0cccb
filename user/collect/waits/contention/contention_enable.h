/*
 * user/collect/waits/contention/contention_enable.h - a block or mutex profile of a target that does not record
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
#ifndef COLLECT_WAITS_CONTENTION_CONTENTION_ENABLE_H
#define COLLECT_WAITS_CONTENTION_CONTENTION_ENABLE_H

#include "collect/source.h"
#include "collect/waits/contention/contention.h"
#include "subject/subject.h"

/*
 * Returns 1 when the program records it itself: nothing was done, and it should be read. 0 and
 * *out when it records from now on. Negative when it does not, and the target is unchanged:
 * -EBADMSG when what was found is not the variable, -EINVAL for a rate that cannot be written,
 * -EBUSY, -EPERM, -ESRCH.
 */
int contention_enable_start(struct subject *s, const struct collect_opts *o, enum contention what,
			    struct sourced *out, struct err *e);

#endif
