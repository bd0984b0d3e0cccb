/* user/cli/outdir.h - the directory that profiles go to, and their names in it. */
#ifndef CLI_OUTDIR_H
#define CLI_OUTDIR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * Makes @dir if it is missing (but not its parents) and proves that a file can be created in it,
 * so that nobody profiles for an hour in vain. *made: the directory did not exist before.
 */
int outdir_prepare(const char *dir, bool *made, struct err *e);

/*
 * Writes "DIR/COMM.PID.KIND.EXT". @comm is chosen by the target, so only letters, digits and
 * "._+-@" of it are kept, no '/' and no leading '.'.
 */
int outdir_path(const char *dir, const char *comm, pid_t pid, const char *kind, const char *ext,
		char *buf, size_t cap, struct err *e);

#endif
