/*
 * user/ingest/heapdump/classes.h - the classes of a dump's objects, by what the dump itself tells.
 */
#ifndef INGEST_HEAPDUMP_CLASSES_H
#define INGEST_HEAPDUMP_CLASSES_H

#include "heapgraph/classes.h"
#include "ingest/heapdump/graph.h"

/* One more pass over the file, after dumpgraph_read(). @c: not initialised; it uses @g's names. */
int dumpclasses_read(struct classes *c, struct dumpgraph *g, struct heapdump *d, struct err *e);

#endif
