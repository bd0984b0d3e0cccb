/*
 * user/ingest/heapdump/graph/slots.h - which slots of a dumped span are objects.
 *
 * From Go 1.22 on, a span of one page with small objects keeps a bitmap of pointers at its end and,
 * with the Green Tea collector (from 1.25 on, the default from 1.26 on), mark bits beside it. The runtime's
 * dumper still writes as many slots as the page would have without them, so that the last ones are
 * no objects. Source: runtime/heapdump.go (dumpobjs), runtime/mbitmap.go (heapBitsInSpan),
 * runtime/mgcmark_greenteagc.go (spanInlineMarkBits), Go 1.22 to 1.27.
 */
#ifndef INGEST_HEAPDUMP_SLOTS_H
#define INGEST_HEAPDUMP_SLOTS_H

#include "ingest/heapdump/heapdump.h"

enum { DUMPSLOTS_PAGE = 8192, DUMPSLOTS_HELD = 64 };

struct dumpslots {
	int (*add)(void *arg, uint64_t off, uint64_t addr, uint64_t size, struct err *e);
	void *arg;
	uint64_t limit;		/* larger objects are in other spans */
	uint64_t bitmap, marks; /* bytes of a page that are reserved for them; 0: none */
	uint64_t phantoms;	/* slots that were no objects */
	/* The page that is being read. */
	uint64_t page, size;
	bool pointers; /* an object in it has some */
	uint64_t sure; /* where the room ends if one has */
	/* Objects without pointers, of which later ones decide, and what comes after them. */
	size_t n;
	struct {
		uint64_t addr, off;
	} held[DUMPSLOTS_HELD];
};

/* Go's minor version that wrote the dump; 0: not told. */
unsigned dumpslots_go(const struct heapdump_params *p);
/*
 * Do spans have such bitmaps, and larger objects begin with their type? Go 1.22 and 1.23 could be
 * built without: "go1.22.12 X:noallocheaders". Source: internal/buildcfg/exp.go.
 */
bool dumpslots_headers(const struct heapdump_params *p);
/* @marks: Green Tea is on. @add: an object that had to wait, and has no pointers. */
void dumpslots_init(struct dumpslots *s, const struct heapdump_params *p, bool marks,
		    int (*add)(void *arg, uint64_t off, uint64_t addr, uint64_t size,
			       struct err *e),
		    void *arg);
/*
 * *is: it is an object, and the next one. Or it is none, or waits for others of its page; those that
 * waited are told before. @off: where its record is.
 */
int dumpslots_object(struct dumpslots *s, uint64_t addr, uint64_t size, uint64_t off, bool pointers,
		     bool *is, struct err *e);
/* Is it an object without a doubt, and of the page of the last one? Then nothing needs to be said. */
static inline bool dumpslots_sure(const struct dumpslots *s, uint64_t addr, uint64_t size,
				  bool pointers)
{
	if (!s->limit)
		return true;
	return addr - s->page < DUMPSLOTS_PAGE && size == s->size && size && !s->n &&
	       (s->pointers || !pointers) && addr + size <= s->sure;
}
int dumpslots_end(struct dumpslots *s, struct err *e);

#endif
