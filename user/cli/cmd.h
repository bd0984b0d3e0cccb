/* user/cli/cmd.h - the commands, one per cmd_<name>.c, and the exit statuses they share. */
#ifndef CLI_CMD_H
#define CLI_CMD_H

enum exit_status {
	EXIT_DONE = 0,
	EXIT_FAILED = 1, /* something that was asked for was not delivered */
	EXIT_USAGE = 2,
	EXIT_LOSSES = 3, /* all was delivered, and something was lost on the way */
};

/* Each command gets argv from its own name on, and returns the exit status. */

/*
 * Profiles a live process: goprof-bpf -p PID ... This is the command when no other one is named.
 */
int cmd_profile(int argc, char **argv);
/* List the Go processes and what would work on each. */
int cmd_ps(int argc, char **argv);
/* Tell what this kernel and our privileges allow. */
int cmd_doctor(int argc, char **argv);
/* Free breakpoints that were left behind in other processes. */
int cmd_heal(int argc, char **argv);
/* Read a heap dump that a Go program wrote. */
int cmd_heapdump(int argc, char **argv);
/* Read an execution trace that a Go program wrote. */
int cmd_trace(int argc, char **argv);

#endif
