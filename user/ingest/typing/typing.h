/*
 * user/ingest/typing/typing.h - the Go types of a dump's objects, by the program that wrote it.
 *
 * Types start from what has one: objects that begin with it (Go 1.22 and newer, above 512 bytes),
 * values in interfaces, objects with finalizers, global variables, and variables in the frames of
 * goroutines; and flow along pointers. Everything else keeps the class that the dump alone tells
 * (heapdump/classes.h).
 */
#ifndef INGEST_TYPING_H
#define INGEST_TYPING_H

#include "heapgraph/classes.h"
#include "ingest/heapdump/graph/graph.h"

struct typing {
	/*
	 * The dump breaks off before its data segment, by which its program is known: unchecked, it is
	 * not known by types either, and objects have none; else so many types agree.
	 */
	bool unchecked;
	int by_types;
	bool dwarf;	  /* false: the program has none, so that only global variables got names */
	uint64_t unknown; /* interfaces and objects with types that the DWARF does not describe */
	uint64_t lost;	  /* objects that were not looked through for want of room */
	uint64_t cut;	  /* types of which not all pointers are followed */
	struct typing_job *job; /* private */
};

/*
 * Between dumpgraph_begin() and dumpgraph_finish(): which program it is, by one pass over the dump,
 * and its global variables (@g's heap.variables, until typing_fini()). @g, @d and @exe, the file of
 * the program, are borrowed; @path: its name for messages. -EINVAL: another program's dump; -ENOTSUP:
 * of a processor whose programs are not read; other errors as of gobin_open() and gotypes_read().
 */
int typing_open(struct typing *t, struct dumpgraph *g, struct heapdump *d, int exe,
		const char *path, struct err *e);
/* After dumpclasses_read(): gives objects their types. It reads objects at random. */
int typing_flow(struct typing *t, struct classes *c, struct err *e);
/* Also of one that is all zero. */
void typing_fini(struct typing *t);

#endif
