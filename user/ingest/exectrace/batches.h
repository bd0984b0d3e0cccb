/*
 * user/ingest/exectrace/batches.h - events as bytes again, in a batch of each thread or P, while a part of a
 * trace is written.
 */
#ifndef INGEST_EXECTRACE_BATCHES_H
#define INGEST_EXECTRACE_BATCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

/* A batch is written when it has that many bytes: the runtime's have 64 KiB at most, and so have Go's readers. */
enum { BATCH_FULL = 32 << 10, VARINT_MAX = 10 };

/* A batch that is being made. */
struct making {
	int64_t of;		/* a thread or P */
	uint64_t base, ticks;	/* of its first event, and of its last one */
	uint64_t base_seq, seq; /* the same of the numbers that Go 1.5 gives events */
	VEC(uint8_t) bytes;
};

struct batches {
	VEC(struct making) at;
	struct map by_id; /* index in at */
};

void batches_fini(struct batches *b);
/* The batch of this thread or P; NULL: no memory. Valid until the next call. */
struct making *batches_of(struct batches *b, int64_t id);
/* False: no memory. */
bool making_put(struct making *b, const void *bytes, size_t n);

/* How many bytes it took. */
static inline size_t varint_put(uint8_t to[VARINT_MAX], uint64_t v)
{
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		to[n++] = (uint8_t)(v | 0x80);
	to[n++] = (uint8_t)v;
	return n;
}

#endif
