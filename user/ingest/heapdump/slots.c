/* user/ingest/heapdump/slots.c - drops the last slots of pages that reserve room at their end. */
#include "ingest/heapdump/slots.h"

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
		    int (*add)(void *arg, uint64_t addr, uint64_t size, bool pointers,
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

static int flush(struct dumpslots *s, struct err *e)
{
	uint64_t reserved = (s->pointers ? s->bitmap : 0) +
			    (s->size >= MARKS_SIZE_MIN ? s->marks : 0);
	uint64_t end = s->page + DUMPSLOTS_PAGE - reserved;
	int ret = 0;

	for (size_t i = 0; !ret && i < s->n; i++) {
		if (s->addr[i] + s->size > end)
			s->phantoms++;
		else
			ret = s->add(s->arg, s->addr[i], s->size, s->has[i], e);
	}
	s->n = 0;
	s->pointers = false;
	return ret;
}

int dumpslots_object(struct dumpslots *s, const struct heapdump_object *o, bool pointers,
		     struct err *e)
{
	uint64_t page = o->addr & ~(uint64_t)(DUMPSLOTS_PAGE - 1);
	bool small = o->contents.len <= s->limit;
	int ret = 0;

	if (s->n &&
	    (!small || page != s->page || o->contents.len != s->size || s->n == DUMPSLOTS_MOST))
		ret = flush(s, e);
	if (ret || !small)
		return ret ? ret : s->add(s->arg, o->addr, o->contents.len, pointers, e);
	s->page = page;
	s->size = o->contents.len;
	s->addr[s->n] = o->addr;
	s->has[s->n++] = pointers;
	s->pointers |= pointers;
	return 0;
}

int dumpslots_end(struct dumpslots *s, struct err *e)
{
	return flush(s, e);
}
