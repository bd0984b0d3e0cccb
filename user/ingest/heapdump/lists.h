/*
 * user/ingest/heapdump/lists.h - lists of fields, each read once for all objects that have it.
 *
 * A list follows an object's contents: a 1 and the pointer's offset for each pointer, and a 0 at the
 * end (Go 1.5 and newer). Nearly all objects of one size have one of a few lists, so that bytes are
 * compared instead of being read.
 */
#ifndef INGEST_HEAPDUMP_LISTS_H
#define INGEST_HEAPDUMP_LISTS_H

#include <string.h>

#include "ingest/heapdump/heapdump.h"

enum {
	LISTS_BUCKETS = 64,
	LISTS_WAYS = 4,
	LISTS_BYTES = 64, /* of the longest list that is kept */
	LISTS_ROOM = 96,  /* bytes that can be read where a list is asked for */
};

struct heapdump_list {
	uint64_t size;	     /* of the objects */
	uint64_t head, mask; /* its first 8 bytes, as far as they are of it; mask 0: empty */
	uint8_t n;	     /* bytes */
	uint8_t bytes[LISTS_BYTES];
	struct heapdump_layout layout;
};

/* A zeroed struct is empty. */
struct heapdump_lists {
	struct heapdump_list all[LISTS_BUCKETS][LISTS_WAYS];
	uint8_t last[LISTS_BUCKETS]; /* the way that was asked for last, */
	uint8_t next[LISTS_BUCKETS]; /* and the one that is given up next */
};

static inline unsigned lists_bucket(uint64_t size)
{
	return size / 8 % LISTS_BUCKETS;
}

static inline bool list_is(const struct heapdump_list *l, uint64_t size, const uint8_t *p)
{
	uint64_t head;

	memcpy(&head, p, sizeof(head));
	return l->mask && l->size == size && (head & l->mask) == l->head &&
	       (l->n <= sizeof(head) ||
		!memcmp(p + sizeof(head), l->bytes + sizeof(head), l->n - sizeof(head)));
}

/* The list at @p of an object of @size bytes, with pointers of @word bytes; NULL: it is none to keep. */
struct heapdump_list *lists_find(struct heapdump_lists *x, const uint8_t *p, uint64_t size,
				 uint64_t word);

static inline struct heapdump_list *lists_get(struct heapdump_lists *x, const uint8_t *p,
					      uint64_t size, uint64_t word)
{
	unsigned bucket = lists_bucket(size);
	struct heapdump_list *l = &x->all[bucket][x->last[bucket]];

	return list_is(l, size, p) ? l : lists_find(x, p, size, word);
}

#endif
