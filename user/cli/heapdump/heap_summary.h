/* user/cli/heapdump/heap_summary.h - what a heap is like, as text or JSON on stdout. */
#ifndef CLI_HEAPDUMP_HEAP_SUMMARY_H
#define CLI_HEAPDUMP_HEAP_SUMMARY_H

#include "heapgraph/describe.h"
#include "ingest/heapdump/graph/graph.h"
#include "ingest/typing/typing.h"

enum { HEAP_TOP = 15, HEAP_SUSPECTS = 3, HEAP_CHAIN = 64 };

/* From one thing down to where what it retains comes together. */
struct heap_suspect {
	uint32_t chain[HEAP_CHAIN];
	size_t n;
};

struct heap_summary {
	const struct heapdump *dump;
	const struct dumpgraph *graph;
	const struct classes *classes;
	const struct typing *typing; /* NULL: the program is not known; set it after making */
	/* owned: */
	struct class_sum *types;
	size_t ntypes;
	struct goroutine_group *groups;
	size_t ngroups;
	struct held_group held[HEAP_TOP];
	size_t nheld;
	struct heap_suspect suspects[HEAP_SUSPECTS];
	size_t nsuspects;
};

int heap_summary_make(struct heap_summary *s, const struct heapdump *d, const struct dumpgraph *g,
		      const struct classes *c, struct err *e);
void heap_summary_fini(struct heap_summary *s);

void heap_summary_text(const struct heap_summary *s, const char *path);
/* The exit status. */
int heap_summary_json(const struct heap_summary *s, const char *path, int status);

#endif
