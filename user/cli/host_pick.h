/*
 * user/cli/host_pick.h - which Go processes of this machine are meant: --match and --exclude.
 *
 * A pattern is TEXT or FIELD=TEXT, where FIELD is name, exe, cmd, user, cgroup (which has the ids of
 * containers and the names of services) or module. TEXT with one of "*?[" is a shell's pattern for
 * the whole field; other TEXT may be anywhere in it. Without FIELD, one field that fits is enough.
 */
#ifndef CLI_HOST_PICK_H
#define CLI_HOST_PICK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "inspect/survey.h"

enum { PICK_MAX = 32 };

struct pick {
	const char *match[PICK_MAX], *exclude[PICK_MAX]; /* borrowed */
	size_t nmatch, nexclude;
};

/* -EINVAL: FIELD is none of these, or TEXT is empty. */
int pick_check(const char *pattern, struct err *e);

/* Does one of match fit (or is there none), and none of exclude? */
bool pick_wants(const struct pick *p, const struct survey_proc *proc);

/* The same of one that could not be looked at (survey.closed): false when what is known of it rules it out. */
bool pick_may_want(const struct pick *p, const struct survey_proc *proc);

#endif
