/*
 * user/ingest/typing/index.h - where in a dump's file things are, so that they can be read in any
 * order; and what its types are to be told by.
 */
#ifndef INGEST_TYPING_INDEX_H
#define INGEST_TYPING_INDEX_H

#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "ingest/heapdump/graph/graph.h"

struct typing_func {
	uint64_t entry;
	uint32_t name; /* in the graph's names */
};

/* A descriptor that the dump names: those of types that are in interfaces with methods. */
struct typing_desc {
	uint64_t addr, size;
	uint32_t name;
};

struct typing_index {
	struct heapdump *d; /* borrowed */
	/* Of every 32nd object or so: its index, and its record's offset. */
	VEC(uint32_t) at;
	VEC(uint64_t) off;
	uint64_t roots;	  /* offset of the first record of a goroutine, or what comes after them */
	struct map itabs; /* by address: that of the type */
	VEC(struct typing_desc) types;
	VEC(struct typing_func) funcs; /* those that have frames */
	VEC(uint64_t) pcs;	       /* of frames: each inside of the call instruction; rising */
	struct heapdump_segment data, bss;
	bool has_data, has_bss;
	/* private: */
	struct mem file;
	struct memcache *cache;
	struct map seen; /* pcs and entries */
	uint64_t size;	 /* of the file */
	uint32_t next;	 /* the object whose record is at next_off, ... */
	uint64_t next_off;
};

/* One pass over the file. Damage ends it, and is no error. */
int typing_index_make(struct typing_index *ix, struct dumpgraph *g, struct heapdump *d,
		      struct err *e);
void typing_index_fini(struct typing_index *ix);

/* Where a pc is looked up: for a return address, in the call before it. */
static inline uint64_t typing_pc(const struct heapdump_frame *f)
{
	return f->pc > f->entry ? f->pc - 1 : f->pc;
}

/* Offset of an object's contents; false: it cannot be found any more. */
bool typing_index_find(struct typing_index *ix, const struct object *o, uint64_t *contents);
/* Reads through a cache. */
bool typing_index_read(struct typing_index *ix, uint64_t off, void *buf, size_t n);

#endif
