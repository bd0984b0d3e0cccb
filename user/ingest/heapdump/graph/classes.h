/*
 * user/ingest/heapdump/graph/classes.h - the classes of a dump's objects, by what the dump itself tells.
 */
#ifndef INGEST_HEAPDUMP_CLASSES_H
#define INGEST_HEAPDUMP_CLASSES_H

#include "heapgraph/classes.h"
#include "ingest/heapdump/graph/graph.h"

/*
 * After dumpgraph_read() or dumpgraph_read_objects(), once: hands over the classes of objects, which
 * use @g's names, and reads the allocation samples behind the objects. @c: not initialised.
 */
int dumpclasses_read(struct classes *c, struct dumpgraph *g, struct heapdump *d, struct err *e);

#endif
