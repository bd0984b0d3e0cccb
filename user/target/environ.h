/* user/target/environ.h - the environment that a process was started with. */
#ifndef TARGET_ENVIRON_H
#define TARGET_ENVIRON_H

#include "target/target.h"

/*
 * The value of the environment variable @name, as the kernel laid it out when the program began.
 * Changes that the program made since are not seen. -ENOENT when there is none, -E2BIG when the
 * value is longer than @cap - 1 bytes or the environment longer than 1 MB, -EPERM, -ESRCH.
 */
int target_environ(struct target *t, const char *name, char *value, size_t cap);

#endif
