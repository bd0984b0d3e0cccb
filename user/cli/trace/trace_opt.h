/* user/cli/trace/trace_opt.h - the command line of trace, checked whole before anything is done. */
#ifndef CLI_TRACE_TRACE_OPT_H
#define CLI_TRACE_TRACE_OPT_H

#include "ingest/exectrace/summary/trace_profile.h"
#include "output/output.h"

struct trace_opts {
	const char *file;			/* borrowed from argv, as all names; "-": stdin */
	const char *pprof[TRACE_PROFILE_KINDS]; /* where to; NULL: not asked for */
	const char *perfetto, *cut;		/* the same */
	const char *exe;			/* the traced program; NULL: not told */
	bool json, events;			/* on stdout */
	bool has_to;				/* is there an end? */
	int64_t from_ns, to_ns;			/* from the first event on */
	const struct output_format *format;	/* of profiles */
	mode_t mode;				/* of files; 0: 0600 */
};

/* -1 to go on, else the exit status: then --help was answered, or the complaint was printed. */
int trace_opt_parse(int argc, char **argv, struct trace_opts *o);

/* Is the summary asked for? */
bool trace_opt_summary(const struct trace_opts *o);

/* "1.5s", "200ms", "12.000000001" (seconds), in ns. */
bool trace_opt_time(const char *s, int64_t *ns);

#endif
