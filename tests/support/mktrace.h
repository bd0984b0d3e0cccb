/* tests/support/mktrace.h - an execution trace that is made event by event. */
#ifndef TESTS_MKTRACE_H
#define TESTS_MKTRACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct mktrace {
	VEC(uint8_t) bytes;
	size_t size_at; /* of the batch that is open: where its size goes, in three bytes */
};

/* @header: as "go 1.22 trace". */
struct mktrace mktrace(const char *header);
void mktrace_done(struct mktrace *m);
/* A file with what there is; the caller closes it. */
int mktrace_fd(struct mktrace *m);

void mktrace_byte(struct mktrace *m, uint8_t b);
void mktrace_numbers(struct mktrace *m, const uint64_t *v, size_t n);
/* String @id, of either version; its bytes are all @c. */
void mktrace_string(struct mktrace *m, uint8_t type, uint64_t id, char c, size_t n);

/* Version 2: a batch of one thread. Its size is known when the next one begins. */
void mktrace_batch(struct mktrace *m, uint64_t gen, uint64_t thread, uint64_t time);
void mktrace_end_batch(struct mktrace *m);
/* A nanosecond is a tick. */
void mktrace_clock(struct mktrace *m, uint64_t gen);

/* Version 1: an event with its arguments, of which the first is the time since the one before. */
void mktrace_event1(struct mktrace *m, uint8_t type, const uint64_t *v, size_t n);

#define NUMBERS(...)                         \
	((const uint64_t[]){ __VA_ARGS__ }), \
		(sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))
#define EVENT2(m, type, ...) (mktrace_byte(m, type), mktrace_numbers(m, NUMBERS(__VA_ARGS__)))
#define EVENT1(m, type, ...) mktrace_event1(m, type, NUMBERS(__VA_ARGS__))

#endif
