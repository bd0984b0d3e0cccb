/* tests/unit/test_ahead.c - a file's bytes arrive in their order, from wherever they are asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "ingest/ahead.h"
#include "ingest/stream.h"

enum { BYTES = 17 * AHEAD_PIECE + 12345 };

static int fd;

static uint8_t byte_at(uint64_t i)
{
	return (uint8_t)(i * 2654435761u >> 24);
}

static int make_file(void **state)
{
	FILE *f = tmpfile();
	uint8_t *all = malloc(BYTES);

	(void)state;
	assert_non_null(f);
	assert_non_null(all);
	for (uint64_t i = 0; i < BYTES; i++)
		all[i] = byte_at(i);
	assert_int_equal(fwrite(all, 1, BYTES, f), BYTES);
	assert_int_equal(fflush(f), 0);
	fd = dup(fileno(f));
	fclose(f);
	free(all);
	return fd < 0;
}

static int close_file(void **state)
{
	(void)state;
	return close(fd);
}

static void are(const uint8_t *p, uint64_t off, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != byte_at(off + i))
			fail_msg("at %llu", (unsigned long long)(off + i));
}

/* Goes on from @off with a tail of @tail bytes each time, for @pieces or to the end. Returns where that is. */
static uint64_t go_on(struct ahead *a, uint64_t off, size_t tail, unsigned pieces)
{
	const uint8_t *end = NULL;
	size_t left = 0;
	uint8_t *p;
	ssize_t n = 1;

	while (pieces--) {
		n = ahead_next(a, off, left ? end - left : NULL, left, &p);
		assert_true(n >= 0 && n <= AHEAD_PIECE);
		if (!n)
			break;
		are(p - left, off - left, left + (size_t)n);
		off += (uint64_t)n;
		end = p + n;
		left = tail < (size_t)n ? tail : (size_t)n;
	}
	return off;
}

static void in_order(void **state)
{
	struct ahead *a = ahead_new(fd);

	(void)state;
	assert_non_null(a);
	assert_int_equal(go_on(a, 0, 0, UINT32_MAX), BYTES);
	assert_int_equal(go_on(a, 0, 777, UINT32_MAX), BYTES);
	assert_int_equal(go_on(a, 0, AHEAD_ROOM, UINT32_MAX), BYTES);
	ahead_free(a);
}

static void anywhere(void **state)
{
	struct ahead *a = ahead_new(fd);
	uint64_t off = 1;

	(void)state;
	assert_non_null(a);
	for (unsigned i = 0; i < 60; i++) {
		off = off * 6364136223846793005u + 1442695040888963407u;
		go_on(a, (off >> 33) % (BYTES + 1000), i % 100, 1 + i % 5);
	}
	ahead_free(a); /* in the middle of reading */
	ahead_free(ahead_new(fd));
}

/* At the end it may be asked again, and a file may have grown. */
static void the_end(void **state)
{
	struct ahead *a = ahead_new(fd);
	uint8_t *p, more[3] = { byte_at(BYTES), byte_at(BYTES + 1), byte_at(BYTES + 2) };

	(void)state;
	assert_non_null(a);
	assert_int_equal(go_on(a, BYTES - 5, 0, UINT32_MAX), BYTES);
	assert_int_equal(ahead_next(a, BYTES, NULL, 0, &p), 0);
	assert_int_equal(pwrite(fd, more, 3, BYTES), 3);
	assert_int_equal(ahead_next(a, BYTES, NULL, 0, &p), 3);
	are(p, BYTES, 3);
	assert_int_equal(ftruncate(fd, BYTES), 0);
	ahead_free(a);
}

static void a_failure(void **state)
{
	int dir = open("/", O_RDONLY | O_DIRECTORY);
	struct ahead *a = ahead_new(dir);
	uint8_t *p;

	(void)state;
	assert_non_null(a);
	assert_int_equal(ahead_next(a, 0, NULL, 0, &p), -EISDIR);
	assert_int_equal(ahead_next(a, 5, NULL, 0, &p), -EISDIR);
	ahead_free(a);
	close(dir);
}

/* ---- a stream that has it ---- */

/* Takes @n bytes as one. */
static void take(struct stream *s, size_t n)
{
	stream_mark(s);
	assert_true(stream_have(s, n));
	are(s->buf + s->at, stream_offset(s), n);
	assert_true(stream_skip(s, n));
}

/* Records of all lengths, kept and passed, up to the end; and back again. */
static void through_a_stream(void **state)
{
	struct stream s;
	struct err e;

	(void)state;
	assert_int_equal(stream_open(&s, fd, &e), 0);
	stream_read_ahead(&s);
	for (int round = 0; round < 3; round++) {
		if (round < 2)
			stream_seek(&s, round * 1000);
		else
			stream_seek_until(&s, 70000, 3 << 20);
		for (uint64_t i = 0; s.size - stream_offset(&s) > STREAM_WINDOW; i++) {
			take(&s, 1 + i * 7919 % (i % 100 ? 3000 : STREAM_WINDOW / 2));
			assert_true(
				stream_skip(&s,
					    i * 104729 % ((i + 1) % 1000 ? 500 : 2 * AHEAD_ROOM)));
			/* What was marked is kept, and can be gone back to. */
			if (i % 10 == 0)
				stream_seek(&s, s.base + s.mark);
		}
		assert_true(round == 2 || s.ahead);
		take(&s, (s.size - stream_offset(&s)) / 2);
		take(&s, s.size - stream_offset(&s));
		assert_false(stream_have(&s, 1));
		assert_int_equal(s.failed, 0);
	}
	stream_fini(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_order),	    cmocka_unit_test(anywhere),
		cmocka_unit_test(the_end),	    cmocka_unit_test(a_failure),
		cmocka_unit_test(through_a_stream),
	};

	return cmocka_run_group_tests(tests, make_file, close_file);
}
