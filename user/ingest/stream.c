/* user/ingest/stream.c - buffered reading that goes forward. */
#include "ingest/stream.h"

#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/loop/cancel.h"
#include "base/cleanup.h"

/*
 * AHEAD_MIN: bytes of a file for which a thread is worth its while; WINDOWS_MIN: that were read one after the other,
 * before it is asked to.
 */
enum { AHEAD_MIN = 1 << 23, WINDOWS_MIN = 4 };

int stream_open(struct stream *s, int fd, struct err *e)
{
	struct stat st;

	*s = (struct stream){ .fd = fd, .size = UINT64_MAX };
	if (fstat(fd, &st))
		return err_sys(e, "fstat");
	if (S_ISREG(st.st_mode)) {
		s->seekable = true;
		s->size = (uint64_t)st.st_size;
	}
	s->own = s->buf = malloc(STREAM_WINDOW);
	return s->own ? 0 : err_set(e, -ENOMEM, "no memory to read with");
}

void stream_fini(struct stream *s)
{
	ahead_freep(&s->ahead);
	free(s->own);
	s->own = s->buf = NULL;
}

void stream_read_ahead(struct stream *s)
{
	s->may_ahead = s->seekable && s->size >= AHEAD_MIN;
}

void stream_seek(struct stream *s, uint64_t off)
{
	s->ended = false;
	if (off >= s->base && off - s->base <= s->n) {
		s->at = s->mark = (size_t)(off - s->base);
		return;
	}
	s->base = off;
	s->at = s->n = s->mark = 0;
	s->buf = s->own;
	s->windows = 0;
}

void stream_seek_until(struct stream *s, uint64_t off, uint64_t until)
{
	stream_seek(s, off);
	s->until = until;
}

/* Keeps what comes from the mark on in a window of its own. */
static void drop_before_mark(struct stream *s)
{
	if (!s->mark && s->buf == s->own)
		return;
	memmove(s->own, s->buf + s->mark, s->n - s->mark);
	s->buf = s->own;
	s->base += s->mark;
	s->n -= s->mark;
	s->at -= s->mark;
	s->mark = 0;
}

/* A pipe may have nothing for as long as it likes: the caller is told so again and again. */
static void await_more(struct stream *s)
{
	struct pollfd p = { .fd = s->fd, .events = POLLIN };

	while (!s->seekable && s->tick && !cancelled() && !poll(&p, 1, STREAM_STALLS_MS))
		s->tick(s->tick_arg, s->base + s->n);
}

/* At least @n bytes are needed. */
static ssize_t read_more(struct stream *s, size_t n)
{
	uint64_t end = s->base + s->n;
	size_t room = STREAM_WINDOW - s->n;
	ssize_t got;

	if (s->until && (s->until <= end || s->until - end < room))
		room = s->until > end + n ? (size_t)(s->until - end) : n;
	await_more(s);
	do {
		if (s->seekable)
			got = pread(s->fd, s->buf + s->n, room, (off_t)end);
		else
			got = read(s->fd, s->buf + s->n, room);
	} while (got < 0 && errno == EINTR);
	return got;
}

/* Is the next piece to be one that was read ahead? Only for who has gone on for some windows. */
static bool goes_ahead(struct stream *s)
{
	if (!s->may_ahead || s->until || s->windows < WINDOWS_MIN || s->n - s->mark > AHEAD_ROOM)
		return false;
	if (!s->ahead)
		s->ahead = ahead_new(s->fd);
	s->may_ahead = s->ahead;
	return s->ahead;
}

/* The window becomes what is left of it, and the next piece. */
static ssize_t take_piece(struct stream *s)
{
	size_t left = s->n - s->mark;
	uint8_t *piece;
	ssize_t got = ahead_next(s->ahead, s->base + s->n, s->buf + s->mark, left, &piece);

	if (got < 0)
		errno = (int)-got;
	if (got <= 0)
		return got;
	s->buf = piece - left;
	s->base += s->mark;
	s->at -= s->mark;
	s->n = left;
	s->mark = 0;
	return got;
}

static ssize_t more(struct stream *s, size_t n)
{
	if (cancelled()) {
		errno = ECANCELED;
		return -1;
	}
	if (s->tick)
		s->tick(s->tick_arg, s->base + s->n);
	if (goes_ahead(s))
		return take_piece(s);
	drop_before_mark(s);
	s->windows += s->windows < WINDOWS_MIN;
	return read_more(s, n);
}

bool stream_fill(struct stream *s, size_t n)
{
	BUG_ON(n > STREAM_WINDOW / 2);
	/* What is marked may be too long to stay. */
	if (s->at - s->mark > STREAM_WINDOW - n)
		s->mark = s->at;
	while (s->n - s->at < n && !s->ended) {
		ssize_t got = more(s, n - (s->n - s->at));

		if (got < 0)
			s->failed = errno;
		if (got <= 0)
			s->ended = true;
		else
			s->n += (size_t)got;
	}
	return s->n - s->at >= n;
}

bool stream_skip_far(struct stream *s, uint64_t n)
{
	/* What has been read ahead is not given up for a few bytes. */
	if (s->may_ahead && n <= AHEAD_ROOM && stream_have(s, n)) {
		s->at += n;
		return true;
	}
	if (s->seekable) {
		if (n > s->size - stream_offset(s) || stream_offset(s) > s->size) {
			s->at = s->mark = s->n;
			s->ended = true;
			return false;
		}
		stream_seek(s, stream_offset(s) + n);
		return true;
	}
	while (n) {
		size_t step = n < STREAM_WINDOW / 2 ? (size_t)n : STREAM_WINDOW / 2;

		s->mark = s->at;
		if (!stream_have(s, step)) {
			s->at = s->n;
			return false;
		}
		s->at += step;
		n -= step;
	}
	return true;
}

uint64_t stream_rest(struct stream *s)
{
	uint64_t n = 0, at = stream_offset(s);

	if (s->seekable)
		return s->size > at ? s->size - at : 0;
	while (stream_have(s, 1)) {
		n += s->n - s->at;
		s->at = s->mark = s->n;
	}
	return n;
}

bool stream_uvarint_slow(struct stream *s, uint64_t *out)
{
	uint64_t v = 0;

	stream_fill(s, 10);
	for (unsigned i = 0; i < 10 && i < s->n - s->at; i++) {
		uint8_t b = s->buf[s->at + i];

		if (i == 9 && b > 1)
			return false;
		v |= (uint64_t)(b & 0x7f) << (7 * i);
		if (b < 0x80) {
			s->at += i + 1;
			*out = v;
			return true;
		}
	}
	return false;
}
