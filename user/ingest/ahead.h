/*
 * user/ingest/ahead.h - reading ahead: a thread reads the next pieces of a file while one is looked at.
 *
 * The kernel copies what is read, which takes nearly as long as looking at it; so on two CPUs both go on at once.
 * The thread begins with the first piece that is asked for.
 */
#ifndef INGEST_AHEAD_H
#define INGEST_AHEAD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

/* AHEAD_ROOM: in front of each piece, for what is left of the one before. */
enum { AHEAD_PIECE = 1 << 19, AHEAD_ROOM = 1 << 16 };

struct ahead;

/* @fd: borrowed, a file. NULL: there is no memory, or no thread can be had. */
struct ahead *ahead_new(int fd);
void ahead_free(struct ahead *a);
DEFINE_FREEP(struct ahead, ahead)

/*
 * The piece from @off on: usually where the last one ended; anywhere else what was read ahead is given up. @tail, of
 * at most AHEAD_ROOM bytes, may lie in the last piece, and lies in front of the new one then. *to:
 * where it begins; valid until the next call. Returns how many bytes the piece has; 0: the file ends;
 * or a negative errno, after which the same may be asked for again.
 */
ssize_t ahead_next(struct ahead *a, uint64_t off, const uint8_t *tail, size_t ntail, uint8_t **to);

#endif
