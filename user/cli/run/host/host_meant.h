/*
 * user/cli/run/host/host_meant.h - which processes of a survey a run is about, and what is told of those of which that
 * cannot be known.
 */
#ifndef CLI_RUN_HOST_HOST_MEANT_H
#define CLI_RUN_HOST_HOST_MEANT_H

#include "cli/run/host/host_run.h"
#include "cli/run/host/host_some.h"
#include "inspect/survey.h"

/* survey.judge with @opts, the struct host_opts, where all are meant that fit. */
int host_judge(void *opts, const struct survey_proc *p);

bool host_means(const struct host_opts *o, const struct survey_proc *p);
/* Could it be one of those that are meant? Of one that could not be looked at not everything is known. */
bool host_may_mean(const struct host_opts *o, const struct survey_proc *p);

/* The head of the table: @found are meant, and @closed of those that could not be looked at may be. */
void host_head(const struct host_opts *o, const struct survey *s, size_t found, size_t closed,
	       FILE *f);

/* What that makes of the run: these could not be profiled; some could not be looked at. */
struct unseen {
	struct some *failed;
	bool lossy;
};
/* Tells of those that may be meant, and of what s->left_out and s->hidden say, which is told once; adds to @u. */
void host_tell_unseen(const struct host_opts *o, struct survey *s, struct unseen *u);

#endif
