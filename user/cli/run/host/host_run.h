/*
 * user/cli/run/host/host_run.h - profiles of many processes in one run: those that were named, or all Go
 * processes of this machine, also those that start meanwhile.
 */
#ifndef CLI_RUN_HOST_HOST_RUN_H
#define CLI_RUN_HOST_HOST_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "host/pick.h"
#include "cli/run/run_files.h"
#include "engine/engine.h"
#include "subject/open.h"

struct host_opts {
	bool all; /* every Go process that pick wants; else: */
	const pid_t *pids;
	size_t npids;
	struct pick pick;
	bool dry_run; /* only the table */
	uint64_t duration_ns;
	struct run_files_to to;
	const struct engine_kind *const *kinds; /* at least one */
	size_t nkinds;
	struct collect_opts collect;
	int stop_fd; /* readable: the run is to end early */
};

/*
 * Tells what it will do, collects, writes, and tells where CPU time, memory and waits went. Returns the
 * exit status: a process that has not all profiles, or lost something, makes it 3; where processes were named, and
 * none can be profiled, it is 1.
 */
int host_run(const struct host_opts *o);

#endif
