/*
 * user/cli/run/follow.h - the Go programs that the descendants of one process run: one engine observes them all.
 *
 * They are not held: each is observed from some milliseconds after its exec on, once a child of ours has looked at it. The process
 * itself has collectors of its own (cli/run/job.h), until it becomes another program.
 */
#ifndef CLI_RUN_FOLLOW_H
#define CLI_RUN_FOLLOW_H

#include "base/loop/loop.h"
#include "cli/run/profile_run.h"
#include "probe/exec_watch.h"

struct follow;
struct attacher_process;

struct follow_opts {
	const struct run_opts *run;
	struct loop *loop;	 /* borrowed, as the next two */
	struct run_files *files; /* these are the run's */
	struct attacher_process **attachers;
	/* Is the program that @x tells of to be followed, or is it what the process itself has been held for? */
	bool (*wants)(void *arg, const struct exec_seen *x);
	void *arg;
};

/* Loads what is needed, which takes some tenths of a second: to be called before the process runs. */
int follow_open(const struct follow_opts *o, struct follow **out, struct err *e);
/* What starts from here on is followed: what @root calls exec for, too, if that is wanted. */
int follow_begin(struct follow *f, pid_t root, struct err *e);
/* To be called after each event, and with @tick each 100 ms or so. */
void follow_step(struct follow *f, bool tick);

/* What has become of it. */
struct follow_sum {
	size_t n; /* programs that are or were observed */
	bool failed, lossy;
};
struct follow_sum follow_sum(const struct follow *f);

/* The end of the window: writes what there is, and tells what is missing. follow_sum() is whole then. */
void follow_end(struct follow *f);
void follow_free(struct follow *f);
DEFINE_FREEP(struct follow, follow)

/* Writes into @p how late the watching began, as monotonic times, and how it ended. */
int follow_comment(struct prof *p, uint64_t exec_ns, uint64_t since_ns, const char *end,
		   struct err *e);

#endif
