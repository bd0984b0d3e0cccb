/* user/ingest/heapdump/graph/objects.h - the first pass over a dump: which objects there are. */
#ifndef INGEST_HEAPDUMP_OBJECTS_H
#define INGEST_HEAPDUMP_OBJECTS_H

#include "ingest/heapdump/graph/graph.h"

/*
 * @d: its parameters were read. Fills @g's objects, what is known by counts and offsets, and, if
 * @classes, the class of each object and the offsets of runs.
 */
int dumpobjects_read(struct dumpgraph *g, struct heapdump *d, bool classes, struct err *e);

#endif
