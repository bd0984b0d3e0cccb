/* user/cli/heapdump/heapdump_opt.h - the command line of heapdump, checked whole before anything is done. */
#ifndef CLI_HEAPDUMP_HEAPDUMP_OPT_H
#define CLI_HEAPDUMP_HEAPDUMP_OPT_H

#include "output/output.h"

struct heapdump_opts {
	const char *files[2]; /* borrowed from argv, as all names; "-": stdin */
	size_t nfiles;	      /* two: what grew between them */
	bool json;
	const char *exe; /* the program that wrote the dumps; NULL: not told */
	const char *pprof, *holders, *dot, *hprof; /* where to; NULL: not asked for */
	bool contents;				   /* of objects without pointers, in hprof */
	bool path;				   /* to the object at this address */
	uint64_t address;
	int64_t heap_rate;
	const struct output_format *format; /* of pprof and holders */
	mode_t mode;			    /* of files; 0: 0600 */
};

/* -1 to go on, else the exit status: then --help was answered, or the complaint was printed. */
int heapdump_opt_parse(int argc, char **argv, struct heapdump_opts *o);

/* Does something go to a file, or is a path asked for? Otherwise it is a summary. */
bool heapdump_opt_outputs(const struct heapdump_opts *o);
/* Is something asked for that needs the graph? Otherwise one pass over the dump is enough. */
bool heapdump_opt_graph(const struct heapdump_opts *o);

#endif
