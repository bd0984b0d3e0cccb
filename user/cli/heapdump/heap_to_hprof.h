/* user/cli/heapdump/heap_to_hprof.h - a heap dump as an HPROF file: reads it again, pass by pass, and writes. */
#ifndef CLI_HEAPDUMP_HEAP_TO_HPROF_H
#define CLI_HEAPDUMP_HEAP_TO_HPROF_H

#include <stdio.h>

#include "ingest/heapdump/graph/graph.h"
#include "output/hprof/heap_hprof.h"

/* How often the dump is read, if its classes do not make it one more. */
enum { HEAP_TO_HPROF_PASSES = 1 };

struct heap_to_hprof {
	struct heapdump *dump; /* from a file, */
	int fd;		       /* this one */
	struct dumpgraph *graph;
	const struct classes *classes;
	struct heap_hprof_opts opts;
	/* out: what is not in the file */
	struct heap_hprof_losses losses;
	uint64_t
		samples; /* allocation samples whose objects are not there, or not in their order */
};

/* An output_writer; @arg: struct heap_to_hprof. */
int heap_to_hprof(void *arg, FILE *f, struct err *e);

#endif
