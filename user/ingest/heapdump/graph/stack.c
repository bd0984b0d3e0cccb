/* user/ingest/heapdump/graph/stack.c - which part of a frame pointers of the stack lead to. */
#include "ingest/heapdump/graph/stack.h"

#include "ingest/heapdump/graph/slots.h"

/*
 * Addresses that are waiting for their frame. Most are of the next few frames; of a stack with more
 * the later ones are missed.
 */
enum { BEYOND_MAX = 4096, STACK_MAX = 1 << 30 };
enum { VERSION_STACK_OBJECTS = 7, MINOR_STACK_OBJECTS = 12 };

void dumpstack_fini(struct dumpstack *s)
{
	vec_fini(&s->beyond);
}

/* Up to Go 1.16 the dump does not tell which Go wrote it. */
void dumpstack_goroutine(struct dumpstack *s, unsigned version, const struct heapdump_params *p)
{
	unsigned minor = dumpslots_go(p);

	s->on = version == VERSION_STACK_OBJECTS && (!minor || minor >= MINOR_STACK_OBJECTS);
	s->beyond.n = 0;
}

void dumpstack_word(struct dumpstack *s, uint64_t addr)
{
	uint64_t *to;

	if (!s->on || addr < s->sp || addr - s->sp > STACK_MAX)
		return;
	if (addr - s->sp < s->len) {
		if (addr - s->sp < s->from)
			s->from = addr - s->sp;
		return;
	}
	to = vec_add(&s->beyond, BEYOND_MAX);
	if (to)
		*to = addr;
}

void dumpstack_frame(struct dumpstack *s, uint64_t sp, uint64_t len)
{
	size_t n = s->beyond.n;

	s->sp = sp;
	s->len = s->from = len;
	s->beyond.n = 0;
	for (size_t i = 0; i < n; i++)
		dumpstack_word(s, s->beyond.at[i]);
}
