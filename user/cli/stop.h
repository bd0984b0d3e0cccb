/*
 * user/cli/stop.h - being asked to stop: SIGINT, SIGTERM, SIGHUP.
 *
 * The first signal asks: stop_fd() becomes readable, and the work ends early in good order. At a
 * later one the process exits immediately, with 128 + the signal. SIGHUP stays ignored where it
 * was ignored (nohup). SIGINT does not, though shells start background jobs that way: a script
 * that sends SIGINT to us wants us to stop. There is one of these in a process.
 *
 * Where a signal is not even handled, because we wait for memory of the target that never comes, the
 * process ends a second or two later, with a sentence and status 1. Only stop_init() has that.
 */
#ifndef CLI_STOP_H
#define CLI_STOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

int stop_init(struct err *e);

/*
 * To be called instead of stop_init() when there is a command, which then decides what a signal
 * means. Every signal that a process sends us is sent on to the process that stop_pass_to()
 * named. While there is none (before that call, and after a call with 0), SIGINT and its like ask
 * us to stop.
 *
 * SIGCHLD, SIGPIPE, SIGXFSZ, SIGTTIN and SIGTTOU are not passed on: they are about us.
 *
 * A signal sent to a whole process group reaches the command twice, because nothing tells the two
 * apart.
 */
int stop_init_passing(struct err *e);
/*
 * @pid must not be reaped before this is called with 0, because its number could then be another
 * process'.
 */
void stop_pass_to(pid_t pid);

/*
 * While that is so there is nothing to keep or to undo, and the first signal ends the process at
 * once, with a sentence and status 1: what reads a target's files may take seconds.
 */
void stop_at_once(bool yes);

/* Readable once we were asked to stop; -1 before stop_init(). */
int stop_fd(void);
/* When that was: the time of CLOCK_MONOTONIC in ms; 0 before. */
uint64_t stop_asked_ms(void);

#endif
