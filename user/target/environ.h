/* user/target/environ.h - what a process was started with. */
#ifndef TARGET_ENVIRON_H
#define TARGET_ENVIRON_H

#include "target/target.h"

/*
 * The value of the environment variable @name, as the kernel laid it out when the program began;
 * what the program itself set since is not seen. -ENOENT when there is none, -E2BIG when it is
 * longer than @cap - 1 bytes or the environment than 1 MB, -EPERM, -ESRCH.
 */
int target_environ(struct target *t, const char *name, char *value, size_t cap);

#endif
