/* user/ingest/exectrace/heap.c - each item is no later than the two at twice its place. */
#include "ingest/exectrace/heap.h"

#include "base/limits.h"

void heap_fini(struct heap *h)
{
	vec_fini(&h->items);
}

bool heap_push(struct heap *h, struct heap_item item)
{
	size_t i = h->items.n;

	if (!vec_add(&h->items, LIMIT_TRACE_IDS))
		return false;
	for (; i && heap_before(&item, &h->items.at[(i - 1) / 2]); i = (i - 1) / 2)
		h->items.at[i] = h->items.at[(i - 1) / 2];
	h->items.at[i] = item;
	return true;
}

/* The place of the first one is empty. */
static void sink(struct heap *h, struct heap_item item)
{
	size_t i = 0, n = h->items.n;

	for (size_t k = 1; k < n; k = 2 * i + 1) {
		if (k + 1 < n && heap_before(&h->items.at[k + 1], &h->items.at[k]))
			k++;
		if (!heap_before(&h->items.at[k], &item))
			break;
		h->items.at[i] = h->items.at[k];
		i = k;
	}
	h->items.at[i] = item;
}

struct heap_item heap_pop(struct heap *h)
{
	struct heap_item first = h->items.at[0], last = h->items.at[--h->items.n];

	if (h->items.n)
		sink(h, last);
	return first;
}

struct heap_item heap_replace(struct heap *h, struct heap_item item)
{
	struct heap_item first = h->items.at[0];

	sink(h, item);
	return first;
}
