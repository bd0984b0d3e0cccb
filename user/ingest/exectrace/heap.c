/* user/ingest/exectrace/heap.c - each item is no later than the two at twice its place. */
#include "ingest/exectrace/heap.h"

#include "base/limits.h"

void heap_fini(struct heap *h)
{
	vec_fini(&h->items);
}

static bool before(const struct heap_item *a, const struct heap_item *b)
{
	return a->key != b->key ? a->key < b->key : a->id < b->id;
}

bool heap_push(struct heap *h, struct heap_item item)
{
	size_t i = h->items.n;

	if (!vec_add(&h->items, LIMIT_TRACE_IDS))
		return false;
	for (; i && before(&item, &h->items.at[(i - 1) / 2]); i = (i - 1) / 2)
		h->items.at[i] = h->items.at[(i - 1) / 2];
	h->items.at[i] = item;
	return true;
}

struct heap_item heap_pop(struct heap *h)
{
	struct heap_item first = h->items.at[0], last = h->items.at[--h->items.n];
	size_t i = 0, n = h->items.n;

	for (size_t k = 1; k < n; k = 2 * i + 1) {
		if (k + 1 < n && before(&h->items.at[k + 1], &h->items.at[k]))
			k++;
		if (!before(&h->items.at[k], &last))
			break;
		h->items.at[i] = h->items.at[k];
		i = k;
	}
	if (n)
		h->items.at[i] = last;
	return first;
}
