/* user/cli/outdir.h - the directory that profiles go to, and their names in it. */
#ifndef CLI_OUTDIR_H
#define CLI_OUTDIR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * Makes @dir if it is missing (not its parents) and proves that a file can be made in it,
 * so that nobody profiles for an hour in vain. *made: it was not there.
 */
int outdir_prepare(const char *dir, bool *made, struct err *e);

/*
 * "DIR/COMM.PID.KIND.EXT". @comm is the target's choice: no '/', no leading '.', and only
 * letters, digits and "._+-@" of it are kept.
 */
int outdir_path(const char *dir, const char *comm, pid_t pid, const char *kind, const char *ext,
		char *buf, size_t cap, struct err *e);

#endif
