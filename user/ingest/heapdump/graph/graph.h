/*
 * user/ingest/heapdump/graph/graph.h - the heap graph of a heap dump.
 *
 * Three passes over the file, as heapgraph.h wants them.
 */
#ifndef INGEST_HEAPDUMP_GRAPH_H
#define INGEST_HEAPDUMP_GRAPH_H

#include "base/map.h"
#include "heapgraph/classes.h"
#include "heapgraph/heapgraph.h"
#include "ingest/heapdump/heapdump.h"

struct dumpgraph {
	struct heapgraph heap;
	struct heapdump_memstats memstats;
	bool whole;	     /* the dump's end was reached, */
	struct err damage;   /* and if not, why, */
	uint64_t damage_off; /* and in the record that begins there */
	bool settled;	     /* private: the first pass is over, which tells these */
	bool edges;	     /* private: as asked for */
	uint64_t left;	     /* bytes behind the dump's end mark */
	uint64_t phantoms;   /* slots that Go 1.22 and newer dump though no object can be there */
	bool inline_marks;   /* spans reserve room for mark bits, too (Green Tea) */
	uint64_t astray; /* records of objects that are no nodes: phantoms, and those told twice */
	uint64_t behind; /* pointers on stacks that the dump names, but does not have */
	struct map
		defers; /* private: objects that are deferred calls, and where their contents are */
	/* The first one with globals; len 0: none. Programs that are put anywhere have it anywhere. */
	struct {
		uint64_t addr, len;
	} segment;
	/*
	 * Offsets: of the first record that is neither parameters, type, itab nor object (0: there is
	 * none), and before which all objects' records begin.
	 */
	uint64_t holders_off, objects_end;
	struct classes classes; /* private until dumpclasses_read() */
	/* By run of objects: the offset of its first record. Of dumpgraph_read_objects() alone. */
	VEC(uint64_t) run_offs;
};

/*
 * @d: from a file. What could be read of a damaged dump is there (damage). Objects come first; before
 * the rest the caller may say what is known of global variables (heap.variables), each of which is one
 * holder then. Without @edges objects and holders are there, and nothing is known of what is retained.
 * @path: its way is to be found; NULL: none is.
 */
int dumpgraph_begin(struct dumpgraph *g, struct heapdump *d, bool edges, struct heap_path *path,
		    struct err *e);
int dumpgraph_finish(struct dumpgraph *g, struct heapdump *d, struct err *e);
/* Both, with edges and no path, or without edges. */
int dumpgraph_read(struct dumpgraph *g, struct heapdump *d, struct err *e);
int dumpgraph_read_objects(struct dumpgraph *g, struct heapdump *d, struct err *e);
void dumpgraph_fini(struct dumpgraph *g);

/*
 * Once more over the file, after dumpgraph_read(): calls @fn for each pointer of each thing, with its
 * offset in the object, the frame or the variable (of other things 0), and where it points to, which may be
 * nowhere. Things come in rising order but goroutines, which come after their frames. An error of
 * @fn ends it and is returned.
 */
typedef int dumpgraph_pointer(void *arg, uint32_t thing, uint64_t offset, uint64_t addr,
			      struct err *e);
int dumpgraph_pointers(struct dumpgraph *g, struct heapdump *d, dumpgraph_pointer *fn, void *arg,
		       struct err *e);
/* The same of holders alone: objects, which are nearly all of the file, are not read. */
int dumpgraph_held(struct dumpgraph *g, struct heapdump *d, dumpgraph_pointer *fn, void *arg,
		   struct err *e);

/*
 * What a pass over the dump with @d returned. The first pass keeps damage in @g, and what came before
 * it counts. Later ones meet the same damage, which is no error; -EIO: they met some before it, so
 * that the dump changed meanwhile. @e: why, and the error.
 */
int dumpgraph_damaged(struct dumpgraph *g, const struct heapdump *d, int ret, struct err *e);

#endif
