/* user/cli/trace/trace_input.h - the trace that is read: a file, or a pipe's copy in a file. */
#ifndef CLI_TRACE_TRACE_INPUT_H
#define CLI_TRACE_TRACE_INPUT_H

#include "cli/input.h"
#include "go/image/tables/pclntab12.h"
#include "ingest/exectrace/exectrace.h"

struct trace_input {
	int fd, exe_fd;	       /* exe_fd: -1: not told */
	struct pclntab12 *exe; /* NULL: the trace has names itself, or nobody told */
	const char *name;      /* for messages; borrowed */
	struct exectrace *trace;
	struct stat was; /* as it was opened */
	uint64_t began_ns;
};

/* "-": stdin. @exe: the program, for names; may be NULL. One sentence in @e, without the file's name. */
int trace_input_open(struct trace_input *in, const char *file, const char *exe, struct err *e);
void trace_input_fini(struct trace_input *in);

/* Draws how far it is read. */
void trace_input_tick(const struct trace_input *in);
/* As input_unchanged(). */
int trace_input_unchanged(const struct trace_input *in, struct err *e);

#endif
