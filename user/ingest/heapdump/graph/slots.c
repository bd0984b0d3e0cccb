/* user/ingest/heapdump/graph/slots.c - drops the last slots of pages that reserve room at their end. */
#include "ingest/heapdump/graph/slots.h"

#include <string.h>

enum { MINOR_BITMAP = 22, MARKS_BYTES = 128, MARKS_SIZE_MIN = 16 };

/* "go1.27.4", "devel go1.28-0123456789" */
unsigned dumpslots_go(const struct heapdump_params *p)
{
	const char *at = p->toolchain.len ? strstr(p->toolchain.at, "go1.") : NULL;
	unsigned minor = 0;

	for (at = at ? at + 4 : ""; *at >= '0' && *at <= '9' && minor < 1000; at++)
		minor = 10 * minor + (unsigned)(*at - '0');
	return minor;
}

bool dumpslots_headers(const struct heapdump_params *p)
{
	return dumpslots_go(p) >= MINOR_BITMAP && !strstr(p->toolchain.at, "noallocheaders");
}

void dumpslots_init(struct dumpslots *s, const struct heapdump_params *p, bool marks,
		    int (*add)(void *arg, uint64_t off, uint64_t addr, uint64_t size,
			       struct err *e),
		    void *arg)
{
	*s = (struct dumpslots){ .add = add, .arg = arg };
	if (!dumpslots_headers(p))
		return;
	s->limit = p->ptrsize * p->ptrsize * 8; /* 512, or 128 on 32 bits */
	s->bitmap = DUMPSLOTS_PAGE / p->ptrsize / 8;
	s->marks = marks ? MARKS_BYTES : 0;
}

/* Where the room for objects of the page ends, with or without a bitmap. */
static uint64_t room_end(const struct dumpslots *s, bool pointers)
{
	uint64_t reserved = (pointers ? s->bitmap : 0) + (s->size >= MARKS_SIZE_MIN ? s->marks : 0);

	return s->page + DUMPSLOTS_PAGE - reserved;
}

static int flush(struct dumpslots *s, struct err *e)
{
	uint64_t end = room_end(s, s->pointers);
	int ret = 0;

	for (size_t i = 0; !ret && i < s->n; i++) {
		if (s->held[i].addr + s->size > end)
			s->phantoms++;
		else
			ret = s->add(s->arg, s->held[i].off, s->held[i].addr, s->size, e);
	}
	s->n = 0;
	return ret;
}

static int next_page(struct dumpslots *s, uint64_t page, uint64_t size, struct err *e)
{
	int ret = s->n ? flush(s, e) : 0;

	s->page = page;
	s->size = size;
	s->pointers = false;
	s->sure = size ? room_end(s, true) : 0;
	return ret;
}

/* One near the page's end without pointers waits for one that has some, and others wait for it. */
static int hold(struct dumpslots *s, uint64_t addr, uint64_t off, struct err *e)
{
	int ret = s->n == DUMPSLOTS_HELD ? flush(s, e) : 0;

	s->held[s->n].addr = addr;
	s->held[s->n++].off = off;
	return ret;
}

int dumpslots_object(struct dumpslots *s, uint64_t addr, uint64_t size, uint64_t off, bool pointers,
		     bool *is, struct err *e)
{
	uint64_t page = addr & ~(uint64_t)(DUMPSLOTS_PAGE - 1);
	bool large = size > s->limit;
	int ret = 0;

	*is = true;
	if (large || page != s->page || size != s->size)
		ret = next_page(s, large ? 0 : page, large ? 0 : size, e);
	if (ret || large)
		return ret;
	if (pointers && !s->pointers) {
		s->pointers = true;
		ret = s->n ? flush(s, e) : 0;
	}
	if (ret || (!s->n && addr + size <= s->sure))
		return ret;
	*is = false;
	if (addr + size > room_end(s, s->pointers)) {
		s->phantoms++;
		return 0;
	}
	if (!s->pointers)
		return hold(s, addr, off, e);
	*is = true;
	return 0;
}

int dumpslots_end(struct dumpslots *s, struct err *e)
{
	return flush(s, e);
}
