/*
 * user/cli/run/host/host_some.h - processes of which one line tells: how many they are, the first of them by name, and why it
 * happened to the first.
 */
#ifndef CLI_RUN_HOST_HOST_SOME_H
#define CLI_RUN_HOST_HOST_SOME_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

enum { SOME_NAMED = 5, SOME_TEXT = 256 };

struct some {
	size_t n, named;
	struct {
		pid_t pid;
		char comm[16]; /* foreign bytes; "": unknown */
	} first[SOME_NAMED];   /* .named of them */
	struct err why;
};

/* @comm may be NULL. A zeroed struct has none. */
void some_add(struct some *s, pid_t pid, const char *comm, const struct err *why);

/* So many more, of whom no pid is known. */
void some_count(struct some *s, size_t n);

/* "pid 12 (api), 13 (cart) and 4 others"; returns @buf. "": none is named. */
const char *some_text(const struct some *s, char buf[SOME_TEXT]);

#endif
