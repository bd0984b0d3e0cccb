/* user/cli/run/outdir.h - the directory that profiles go to, and their names in it. */
#ifndef CLI_RUN_OUTDIR_H
#define CLI_RUN_OUTDIR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "output/output.h"

/*
 * Makes @dir if it is missing (but not its parents), for whom @access names (NULL: nobody), and
 * proves that a file can be created in it,
 * so that nobody profiles for an hour in vain. *made: the directory did not exist before.
 */
int outdir_prepare(const char *dir, const struct output_access *access, bool *made, struct err *e);

/*
 * Sets who asked for the files, when we are root because of sudo (SUDO_UID, SUDO_GID), and only
 * then: a program that is set-user-ID has these variables from anybody.
 */
void outdir_asked_by(struct output_access *access);

/* Who uses sudo may expect to read what it leaves: tells once when that is not so. To be called after each file. */
void outdir_tell_kept(struct output_access *access);

/*
 * Writes "DIR/COMM.PID.KIND.EXT". @comm is chosen by the target, so only letters, digits and
 * "._+-@" of it are kept, no '/' and no leading '.'.
 */
int outdir_path(const char *dir, const char *comm, pid_t pid, const char *kind, const char *ext,
		char *buf, size_t cap, struct err *e);

#endif
