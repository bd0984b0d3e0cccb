/*
 * user/probe/family.h - the programs that the descendants of one process run, or all processes.
 *
 * The kernel reports each fork and exec. No process is held, so a program runs already when it is
 * reported. Only programs that start after family_open() are seen.
 */
#ifndef PROBE_FAMILY_H
#define PROBE_FAMILY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct family;

struct family_exec {
	pid_t pid;
	uint64_t when_ns; /* CLOCK_MONOTONIC: when the new program was in place */
};

/*
 * @root counts as well, if it calls exec; 0: all processes that have a number here. -EPERM names the
 * capability that is missing.
 */
int family_open(pid_t root, struct family **out, struct err *e);
/* Readable when there may be a new one. */
int family_fd(const struct family *f);
/* Takes the oldest one that was not handed out yet; false when there is none now. */
bool family_next(struct family *f, struct family_exec *out);
/* How many could not be reported. */
uint64_t family_lost(const struct family *f);
void family_free(struct family *f);
DEFINE_FREEP(struct family, family)

#endif
