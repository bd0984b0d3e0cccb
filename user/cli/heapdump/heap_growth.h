/*
 * user/cli/heapdump/heap_growth.h - what grew between two heap dumps of one program.
 *
 * Each dump is reduced to sums by name before the next one is read, so that there is one graph at a
 * time. Names are compared, not addresses: objects move from dump to dump, types and stacks do not.
 */
#ifndef CLI_HEAPDUMP_HEAP_GROWTH_H
#define CLI_HEAPDUMP_HEAP_GROWTH_H

#include "base/map.h"
#include "heapgraph/describe.h"
#include "heapgraph/holdings.h"
#include "ingest/heapdump/graph/graph.h"
#include "profile/profile.h"

enum growth_kind {
	GROWTH_TYPES,
	GROWTH_HOLDERS,
	GROWTH_GOROUTINES,
	GROWTH_SITES,
	GROWTH_BELOW, /* "ROOT\nTYPE": what a root holds by objects of a type; it is not shown */
	GROWTH_KINDS,
};

/* [0]: in the dump before, [1]: in the one after. */
struct grown {
	uint32_t name; /* in names; of stacks a line for each frame */
	uint64_t count[2], bytes[2];
	int64_t moved; /* bytes of the change that others hold now, or held before */
};

struct growth_table {
	struct grown *at;
	size_t n, cap;
	struct map keys; /* by name */
};

struct growth {
	struct strtab *names;
	struct growth_table tables[GROWTH_KINDS];
	const char *files[2];  /* borrowed */
	char programs[2][256]; /* Go's version and the architecture */
	uint64_t objects[2], bytes[2];
	bool whole[2];
	uint64_t segment[2], segment_len[2]; /* where globals lay: the caller's */
	int64_t moved_up, moved_down;	     /* sums of the holders that only gave or took */
	size_t nmoved;
	int64_t rate; /* one sample in so many bytes: it is assumed */
};

int growth_init(struct growth *g, int64_t rate, struct err *e);
void growth_fini(struct growth *g);

/* @x: summed up (holdings_sum). @sites: NULL, there is no memory profile in it. */
int growth_add(struct growth *g, int side, const char *file, const struct heapdump *d,
	       const struct dumpgraph *graph, const struct classes *c, const struct holdings *x,
	       const struct prof *sites, struct err *e);

void growth_text(struct growth *g);
/* The exit status. */
int growth_json(struct growth *g, int status);

#endif
