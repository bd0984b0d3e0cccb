/*
 * user/host/pick.h - which Go processes of this machine are meant: --match and --exclude.
 *
 * A pattern is TEXT or FIELD=TEXT, where FIELD is name (the process' or its executable's), exe, cmd, user (also as a
 * number, which must fit as a whole), cgroup (any of its cgroups: these have the ids of containers and the names of
 * services), container (its runtime and id, as ps shows them) or module. TEXT with one of "*?[" is a shell's pattern for
 * the whole field; other TEXT may be anywhere in it. Without FIELD, one field that fits is enough.
 */
#ifndef HOST_PICK_H
#define HOST_PICK_H

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

/* PICK_UNKNOWN: it depends on what is not known of it, since it could not be looked at, or its command line is cut. */
enum pick_fit { PICK_NOT, PICK_UNKNOWN, PICK_FITS };

/* Does one of match fit (or is there none), and none of exclude? A survey.judge, with command and cgroups. */
enum pick_fit pick_judge(const struct pick *p, const struct survey_proc *proc);

#endif
