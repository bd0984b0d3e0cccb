/* tests/support/mktrace.c - bytes of execution traces. */
#include "mktrace.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ingest/exectrace/v2/generation.h"

void mktrace_byte(struct mktrace *m, uint8_t b)
{
	uint8_t *to = vec_add(&m->bytes, SIZE_MAX);

	BUG_ON(!to);
	*to = b;
}

static void number(struct mktrace *m, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		mktrace_byte(m, (uint8_t)(v | 0x80));
	mktrace_byte(m, (uint8_t)v);
}

void mktrace_numbers(struct mktrace *m, const uint64_t *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		number(m, v[i]);
}

void mktrace_string(struct mktrace *m, uint8_t type, uint64_t id, char c, size_t n)
{
	mktrace_byte(m, type);
	number(m, id);
	number(m, n);
	for (size_t i = 0; i < n; i++)
		mktrace_byte(m, (uint8_t)c);
}

struct mktrace mktrace(const char *header)
{
	struct mktrace m = { .size_at = 0 };
	char h[EXECTRACE_HEADER_BYTES] = { 0 };

	memcpy(h, header, strlen(header));
	for (size_t i = 0; i < sizeof(h); i++)
		mktrace_byte(&m, (uint8_t)h[i]);
	return m;
}

void mktrace_done(struct mktrace *m)
{
	vec_fini(&m->bytes);
}

int mktrace_fd(struct mktrace *m)
{
	int fd = memfd_create("mktrace", MFD_CLOEXEC);

	mktrace_end_batch(m);
	BUG_ON(fd < 0 || write(fd, m->bytes.at, m->bytes.n) != (ssize_t)m->bytes.n);
	return fd;
}

void mktrace_end_batch(struct mktrace *m)
{
	size_t size = m->bytes.n - m->size_at - 3;

	if (!m->size_at)
		return;
	BUG_ON(size >= 1 << 21);
	for (size_t i = 0; i < 3; i++)
		m->bytes.at[m->size_at + i] = (uint8_t)((size >> (7 * i) & 0x7f) |
							(i < 2 ? 0x80 : 0));
	m->size_at = 0;
}

void mktrace_batch(struct mktrace *m, uint64_t gen, uint64_t thread, uint64_t time)
{
	mktrace_end_batch(m);
	mktrace_byte(m, EV_BATCH);
	mktrace_numbers(m, NUMBERS(gen, thread, time));
	m->size_at = m->bytes.n;
	for (int i = 0; i < 3; i++)
		mktrace_byte(m, 0);
}

void mktrace_clock(struct mktrace *m, uint64_t gen)
{
	mktrace_batch(m, gen, UINT64_MAX, 0);
	EVENT2(m, EV_FREQUENCY, 1000000000);
}

void mktrace_event1(struct mktrace *m, uint8_t type, const uint64_t *v, size_t n)
{
	struct mktrace args = { .size_at = 0 };

	mktrace_byte(m, (uint8_t)(type | (n > 3 ? 3 : n - 1) << 6));
	mktrace_numbers(&args, v, n);
	if (n > 3)
		number(m, args.bytes.n);
	for (size_t i = 0; i < args.bytes.n; i++)
		mktrace_byte(m, args.bytes.at[i]);
	mktrace_done(&args);
}
