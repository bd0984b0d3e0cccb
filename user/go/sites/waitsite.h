/*
 * user/go/sites/waitsite.h - where in a Go program every change of a goroutine's status is seen.
 *
 * All changes go through runtime.casgstatus(gp, old, new), with a few exceptions: from Go 1.26 on
 * a system call changes the status in reentersyscall and exitsyscall themselves, and a
 * profile-guided build copies casgstatus into its callers (seen in execute, reentersyscall and
 * casGToWaiting, Go 1.24 to 1.26). Such a function gets a site of its own, where it is known
 * which change it makes. What the instructions say decides, never the version. Source:
 * runtime/proc.go, Go 1.16 to 1.27.
 */
#ifndef GO_SITES_WAITSITE_H
#define GO_SITES_WAITSITE_H

#include <stdint.h>

#include "go/sites/probesite.h"

enum waitsite_who {
	/* casgstatus itself: its arguments are the goroutine, the old and the new status */
	WAITSITE_ARGS,
	WAITSITE_ARG0,	  /* the goroutine is the first argument */
	WAITSITE_CURRENT, /* the goroutine is the current one */
};

struct waitsite {
	const char *name; /* of the function; static */
	struct probesite site;
	enum waitsite_who who;
	uint8_t old, new; /* status; not set for WAITSITE_ARGS */
};

enum { WAITSITES_MAX = 16 };

/*
 * Returns the number found. @g_atomicstatus: its offset. One change may be seen at two of the
 * sites. -ENOENT, -ENOTSUP with the function that is not as expected.
 */
int waitsites_find(struct gobin *b, int32_t g_atomicstatus, struct waitsite out[WAITSITES_MAX],
		   struct err *e);

#endif
