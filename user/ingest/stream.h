/*
 * user/ingest/stream.h - a window that moves forward over a file or a pipe.
 *
 * Bytes are read in large pieces; what lies between the mark and the position stays in the window.
 */
#ifndef INGEST_STREAM_H
#define INGEST_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "ingest/ahead.h"

/* STREAM_STALLS_MS: how long a pipe has nothing until that is told. */
enum { STREAM_WINDOW = 1 << 18, STREAM_STALLS_MS = 10000 };

struct stream {
	int fd;		     /* borrowed */
	bool seekable;	     /* skipped bytes need not be read */
	uint64_t size;	     /* of a file; UINT64_MAX: not known */
	uint64_t base;	     /* offset of buf[0] */
	uint8_t *buf;	     /* the window: in own, or in a piece that was read ahead */
	uint8_t *own;	     /* STREAM_WINDOW bytes */
	size_t at, n;	     /* position and end in buf */
	size_t mark;	     /* <= at: nothing from here on is dropped */
	uint64_t until;	     /* 0: reads go as far ahead as they can, and not only to this offset */
	struct ahead *ahead; /* NULL: not yet, or never */
	bool may_ahead;
	unsigned windows; /* read one after the other */
	bool ended;	  /* a read met the end */
	int failed;	  /* errno of a read that failed, which is an end as well */
	/*
	 * Called before each read with the offset of what is read, and again each time that a pipe has
	 * had nothing there for STREAM_STALLS_MS; NULL: nobody wants to know.
	 */
	void (*tick)(void *arg, uint64_t offset);
	void *tick_arg;
};

int stream_open(struct stream *s, int fd, struct err *e);
void stream_fini(struct stream *s);
/* From now on a thread may read ahead of who goes through a file of some size in its order. */
void stream_read_ahead(struct stream *s);
/* Goes to an offset of a file that is seekable. */
void stream_seek(struct stream *s, uint64_t off);
/* The same to read no more than is needed, from there on to @until (0: to any offset). */
void stream_seek_until(struct stream *s, uint64_t off, uint64_t until);

/* Reads on until @n bytes (at most half a window) are there, or the end; false: there are fewer. */
bool stream_fill(struct stream *s, size_t n);
/* Skips bytes. False: the file ends before, or there. */
bool stream_skip_far(struct stream *s, uint64_t n);

/* How many bytes follow the position. Those of a pipe are read, and dropped. */
uint64_t stream_rest(struct stream *s);

static inline uint64_t stream_offset(const struct stream *s)
{
	return s->base + s->at;
}

static inline bool stream_have(struct stream *s, size_t n)
{
	return n <= s->n - s->at || stream_fill(s, n);
}

static inline bool stream_skip(struct stream *s, uint64_t n)
{
	if (n <= s->n - s->at) {
		s->at += (size_t)n;
		return true;
	}
	return stream_skip_far(s, n);
}

/* Keeps what comes from here on. */
static inline void stream_mark(struct stream *s)
{
	s->mark = s->at;
}

/* Unsigned LEB128. False: the file ends in it, or it has more than 64 bits. */
bool stream_uvarint_slow(struct stream *s, uint64_t *out);

static inline bool stream_uvarint(struct stream *s, uint64_t *out)
{
	const uint8_t *p = s->buf + s->at;
	uint64_t v = 0;

	if (s->n - s->at < 10)
		return stream_uvarint_slow(s, out);
	for (unsigned i = 0; i < 9; i++) {
		v |= (uint64_t)(p[i] & 0x7f) << (7 * i);
		if (p[i] < 0x80) {
			s->at += i + 1;
			*out = v;
			return true;
		}
	}
	return stream_uvarint_slow(s, out);
}

#endif
