/* user/cli/trace/trace_text.h - what a trace is like, as text or JSON on stdout. */
#ifndef CLI_TRACE_TRACE_TEXT_H
#define CLI_TRACE_TRACE_TEXT_H

#include "ingest/exectrace/summary/trace_summary.h"

struct trace_report {
	const struct trace_summary *s; /* that has ended */
	const char *file;
	unsigned version;
	int64_t start_ns;   /* the first event of all: times are told from there on */
	int64_t unix_ns;    /* what that was; 0: not known */
	const char *damage; /* where the trace breaks off, and why; "": it is whole */
	bool part;	    /* --from or --to */
};

void trace_text(const struct trace_report *r);
/* The exit status. */
int trace_json(const struct trace_report *r, int status);

#endif
