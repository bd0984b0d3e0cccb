/*
 * user/cli/stop.h - being asked to stop: SIGINT, SIGTERM, SIGHUP.
 *
 * The first one asks: stop_fd() becomes readable, and the work ends early in good order.
 * A later one means it: the process exits at once with 128 + the signal. SIGHUP stays ignored
 * where it was (nohup); SIGINT does not, though shells start background jobs that way: a
 * script that sends it to us means it. One per process.
 */
#ifndef CLI_STOP_H
#define CLI_STOP_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

int stop_init(struct err *e);

/*
 * With a command of our own the wish is the command's to grant: instead of stop_init. Every
 * signal that a process sends us is sent on to the one that stop_pass_to named; while there
 * is none (before, and after with 0), SIGINT and its like are wishes again.
 *
 * Not passed on are SIGCHLD, SIGPIPE, SIGXFSZ, SIGTTIN and SIGTTOU, which are about us.
 *
 * A signal sent to a whole process group reaches the command twice: nothing tells the two
 * apart.
 */
int stop_init_passing(struct err *e);
/* @pid must not be reaped before this is called with 0: its number could be another's. */
void stop_pass_to(pid_t pid);

/* Readable once asked; -1 before stop_init. */
int stop_fd(void);
bool stop_asked(void);

#endif
