/*
 * user/probe/exec_watch.h - the programs that the descendants of one process run, or all processes.
 *
 * The kernel reports each fork and exec. No process is held, so a program runs already when it is
 * reported. Only programs that start after exec_watch_open() are seen.
 */
#ifndef PROBE_EXEC_WATCH_H
#define PROBE_EXEC_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct exec_watch;

struct exec_seen {
	pid_t pid;
	uint64_t when_ns; /* CLOCK_MONOTONIC: when the new program was in place */
};

/*
 * @root counts as well, if it calls exec; 0: all processes that have a number here. -EPERM names the
 * capability that is missing.
 */
int exec_watch_open(pid_t root, struct exec_watch **out, struct err *e);
/* Readable when there may be a new one. */
int exec_watch_fd(const struct exec_watch *f);
/* Takes the oldest one that was not handed out yet; false when there is none now. */
bool exec_watch_next(struct exec_watch *f, struct exec_seen *out);
/* How many could not be reported. */
uint64_t exec_watch_lost(const struct exec_watch *f);
void exec_watch_free(struct exec_watch *f);
DEFINE_FREEP(struct exec_watch, exec_watch)

#endif
