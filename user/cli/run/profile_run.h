/*
 * user/cli/run/profile_run.h - profiles a live process, or a command that is started for it, and on
 * request their children, from start to files.
 *
 * What it drives comes as tables of functions, so that its tests need neither a target nor a
 * kernel.
 */
#ifndef CLI_RUN_PROFILE_RUN_H
#define CLI_RUN_PROFILE_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/run/run_files.h"
#include "collect/collect.h"

/* The functions of collect.h that concern a subject. */
struct run_subject {
	int (*open)(pid_t pid, const struct collect_opts *o, struct subject **out, struct err *e);
	void (*free)(struct subject *s);
	const char *(*comm)(const struct subject *s);
	const char *(*go_version)(const struct subject *s);
	int (*pidfd)(const struct subject *s);
	int (*alive)(struct subject *s, struct err *e);
	void (*refresh)(struct subject *s);
	bool (*became)(const struct subject *s);
};

struct run_opts {
	pid_t pid; /* either this process */
	/* or this argv, which ends with NULL; stop_init_passing() has been called */
	char **command;
	bool follow;	      /* also the Go programs that its children run */
	uint64_t duration_ns; /* 0: until the command ends */
	struct run_files_to to;
	const struct run_subject *subject;
	const struct collector *const *kinds; /* at most JOB_KINDS_MAX */
	size_t nkinds;
	const struct engine_kind *const
		*many; /* the same kinds, for the programs of its children */
	size_t nmany;
	struct collect_opts collect;
	int stop_fd; /* readable: the run is to end early; -1: none */
	bool verbose;
};

/*
 * Opens, collects, writes and reports. Returns the exit status: a kind that could not be
 * delivered makes it 1, though the others are written; a loss makes it 3.
 *
 * A command that could be started decides the status alone, as in a shell: its own, or 128 + the
 * signal that killed it. The status is 127 for one that does not exist, and 126 for one that
 * cannot be run.
 */
int profile_run(const struct run_opts *o);

#endif
