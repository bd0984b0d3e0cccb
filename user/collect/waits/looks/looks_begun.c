/* user/collect/waits/looks/looks_begun.c - waits that began in time that was observed in full, or were under way then. */
#include "collect/waits/looks/looks_priv.h"

static int by_g(const void *a, const void *b)
{
	const struct looks_begun *x = a, *y = b;

	return (x->g > y->g) - (x->g < y->g);
}

void looks_begun_sort(struct looks_begun *b, size_t n)
{
	if (n)
		qsort(b, n, sizeof(*b), by_g);
}

uint64_t looks_begun_since(const struct looks_begun *b, size_t n, uint64_t g)
{
	const struct looks_begun it = { .g = g };
	const struct looks_begun *at = n ? bsearch(&it, b, n, sizeof(*b), by_g) : NULL;

	return at ? at->since : 0;
}

uint64_t looks_over_pause(struct looks *k, struct seen *g, bool same, uint64_t until)
{
	uint64_t pause = until - k->paused,
		 before = k->paused > g->since ? k->paused - g->since : 0;
	uint64_t more = same || before > pause ? pause : before;

	g->ns += (double)more;
	if (!same && g->entry != LOOKS_NOT_COUNTED)
		looks_sums_guessed(&k->sums, g->entry, (double)more);
	return k->paused + more;
}
