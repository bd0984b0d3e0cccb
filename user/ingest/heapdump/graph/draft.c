/* user/ingest/heapdump/graph/draft.c - frames and roots, sorted by the stack pointer. */
#include "ingest/heapdump/graph/draft.h"

void dumpdraft_fini(struct dumpdraft *s)
{
	vec_fini(&s->frames);
	vec_fini(&s->roots);
	vec_fini(&s->goroutines);
}

static int frames_by_sp(const void *a, const void *b)
{
	const struct draft_frame *x = a, *y = b;

	return (x->sp > y->sp) - (x->sp < y->sp);
}

static int roots_by_sp(const void *a, const void *b)
{
	const struct draft_root *x = a, *y = b;

	if (x->sp != y->sp)
		return x->sp > y->sp ? 1 : -1;
	return (x->addr > y->addr) - (x->addr < y->addr);
}

void dumpdraft_seal(struct dumpdraft *s)
{
	if (s->frames.n)
		qsort(s->frames.at, s->frames.n, sizeof(*s->frames.at), frames_by_sp);
	if (s->roots.n)
		qsort(s->roots.at, s->roots.n, sizeof(*s->roots.at), roots_by_sp);
}

struct draft_frame *dumpdraft_take(struct dumpdraft *s, uint64_t sp)
{
	size_t low = 0, high = s->frames.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (s->frames.at[mid].sp < sp)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == s->frames.n || s->frames.at[low].sp != sp || s->frames.at[low].taken)
		return NULL;
	s->frames.at[low].taken = true;
	return &s->frames.at[low];
}

size_t dumpdraft_roots(const struct dumpdraft *s, uint64_t sp)
{
	size_t low = 0, high = s->roots.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (s->roots.at[mid].sp < sp)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}
