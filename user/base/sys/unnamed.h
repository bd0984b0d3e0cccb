/*
 * user/base/sys/unnamed.h - files without a name, of which nothing is left however the process ends.
 */
#ifndef BASE_SYS_UNNAMED_H
#define BASE_SYS_UNNAMED_H

#include "base/err.h"

/* Where they lie: TMPDIR, or /tmp. */
const char *unnamed_dir(void);
/* A descriptor to read and write, which the caller closes; or a negative errno. */
int unnamed_open(struct err *e);

#endif
