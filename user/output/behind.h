/*
 * user/output/behind.h - writing behind: a thread writes one buffer while the next one is filled.
 *
 * The kernel copies what is written, which takes as long as making it; so on two CPUs both take half of the time.
 * The thread begins with the first buffer that is full, so that small files have none.
 */
#ifndef OUTPUT_BEHIND_H
#define OUTPUT_BEHIND_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

struct behind;

/* @f: borrowed, and nobody else's from behind_put() to behind_wait(). @size: bytes of a buffer. */
int behind_new(FILE *f, size_t size, struct behind **out, struct err *e);
/* Waits for what is being written. */
void behind_free(struct behind *b);
DEFINE_FREEP(struct behind, behind)

/* The buffer that is to be filled; behind_put() begins another one. */
uint8_t *behind_buffer(struct behind *b);
/* Its first @n bytes are to be written. Waits for the buffer before. */
void behind_put(struct behind *b, size_t n);
/* All of it is written. Returns 0 or the errno of the first write that failed, which was the last one. */
int behind_wait(struct behind *b);
/* The same of what was written so far, without waiting. */
int behind_failed(const struct behind *b);

#endif
