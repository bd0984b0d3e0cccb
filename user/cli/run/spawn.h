/*
 * user/cli/run/spawn.h - start a command and hold it before its first instruction.
 *
 * This is the only use of ptrace in this program, and only on a process that we started.
 * PTRACE_SEIZE is used before the process calls exec, so that it stops when exec is done and
 * nothing of the new program has run. As long as the image is not the one that is wanted (a
 * shell, env, nice), it is let go until its next exec; then it is released for good. If we die,
 * the kernel lets it run on.
 *
 * The command gets what we were given: descriptors, signal mask and dispositions, limits, process
 * group, terminal. Source: ptrace(2); kernel/ptrace.c, exit_ptrace().
 *
 * This takes SIGCHLD over. There is one spawn at most in a process.
 */
#ifndef CLI_RUN_SPAWN_H
#define CLI_RUN_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

enum spawn_state {
	SPAWN_HELD,  /* a new image is in place, nothing of it has run */
	SPAWN_RUNS,  /* it runs, and stops at its next exec unless released */
	SPAWN_ENDED, /* it ended, and is a zombie until spawn_reap() */
};

struct spawn;

/*
 * Remembers how signals are handled now. To be called first in main, before any of that is
 * changed.
 */
void spawn_remember_signals(void);

/*
 * Starts argv[0], looked for in PATH, and waits until it is held (spawn_step() tells). Where the
 * kernel does not let us hold it, it runs, and spawn_not_held() says why. -ENOENT: there is no
 * such command. Another error of exec: it cannot be run. *failed_exec tells these from failures
 * of our own. Signals that come for us are passed to it from here on (stop.h).
 */
int spawn_start(char **argv, struct spawn **out, bool *failed_exec, struct err *e);
pid_t spawn_pid(const struct spawn *s);

/* Readable when spawn_step has news. */
int spawn_fd(const struct spawn *s);
/* Finds out what has happened; does not block. */
enum spawn_state spawn_step(struct spawn *s);

/* Lets a held command run to its next exec. */
void spawn_continue(struct spawn *s);
/* Lets a held command run for good. */
void spawn_release(struct spawn *s);

/* True when it will stop at its next exec. */
bool spawn_traces(const struct spawn *s);

/* Why it could not be held; NULL when it could. */
const char *spawn_not_held(const struct spawn *s);

/*
 * True when a held command is a set-user-ID or set-group-ID program that runs without that user's
 * rights. This happens to held programs unless the holder has CAP_SYS_PTRACE.
 */
bool spawn_lost_setid(const struct spawn *s);

/* Once it has ended: its exit status as a shell tells it, or 128 + the signal that killed it. */
int spawn_status(const struct spawn *s);

/* Waits for its end if needed and removes it from the table of processes. */
void spawn_reap(struct spawn *s);

/* Lets it run on whatever it does, and does not end it. */
void spawn_free(struct spawn *s);
DEFINE_FREEP(struct spawn, spawn)

#endif
