/* user/ingest/heapdump/lists.c - reads a list that is new. */
#include "ingest/heapdump/lists.h"

#include "ingest/heapdump/heapdump_priv.h"

/* Bytes of the list; 0: it is damaged, or too long. */
static size_t read_list(struct heapdump_layout *to, const uint8_t *p, uint64_t size, uint64_t word)
{
	const uint8_t *at = p;
	uint64_t offset;

	while (*at == HEAPDUMP_PTR) {
		at = uvarint_inside(at + 1, &offset);
		if (!at || at - p >= LISTS_BYTES || to->n == HEAPDUMP_LAYOUT_MAX ||
		    offset > UINT16_MAX || word > size || offset > size - word)
			return 0;
		to->offset[to->n++] = (uint16_t)offset;
	}
	return *at ? 0 : (size_t)(at - p) + 1;
}

static struct heapdump_list *add(struct heapdump_lists *x, unsigned bucket, const uint8_t *p,
				 uint64_t size, uint64_t word)
{
	struct heapdump_list new = { .size = size }, *to;
	size_t n = read_list(&new.layout, p, size, word);

	if (!n)
		return NULL;
	new.n = (uint8_t)n;
	new.mask = UINT64_MAX;
	memcpy(new.bytes, p, n);
	if (n < sizeof(new.mask)) {
		new.mask = 0;
		memset(&new.mask, 0xff, n);
	}
	memcpy(&new.head, p, sizeof(new.head));
	new.head &= new.mask;
	x->last[bucket] = x->next[bucket];
	x->next[bucket] = (x->next[bucket] + 1) % LISTS_WAYS;
	to = &x->all[bucket][x->last[bucket]];
	*to = new;
	return to;
}

struct heapdump_list *lists_find(struct heapdump_lists *x, const uint8_t *p, uint64_t size,
				 uint64_t word)
{
	unsigned bucket = lists_bucket(size);

	for (uint8_t i = 0; i < LISTS_WAYS; i++)
		if (list_is(&x->all[bucket][i], size, p)) {
			x->last[bucket] = i;
			return &x->all[bucket][i];
		}
	return add(x, bucket, p, size, word);
}
