/*
 * user/collect/heap/heap_probe.h - a heap profile of a target that does not sample its own heap:
 * its allocator is probed, sampled in the kernel by the runtime's rule, nothing written.
 *
 * Gives alloc_objects and alloc_space of the window, and of these what is in use, where the
 * sampled objects can be followed (collect/heap/live/heap_use.h); else those columns are absent.
 */
#ifndef COLLECT_HEAP_HEAP_PROBE_H
#define COLLECT_HEAP_HEAP_PROBE_H

#include "collect/source.h"
#include "subject/subject.h"

struct heap_probe;

int heap_probe_start(struct subject *s, const struct collect_opts *o, struct sourced *out,
		     struct err *e);
void heap_probe_free(struct heap_probe *h);
DEFINE_FREEP(struct heap_probe, heap_probe)

#endif
