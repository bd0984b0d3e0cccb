/* user/cli/input.h - files that are read: opened, copied when they are pipes, and watched. */
#ifndef CLI_INPUT_H
#define CLI_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"

enum { INPUT_HEADER_MAX = 64 };

struct input_kind {
	const char *what;    /* "dump", for messages */
	const char *named;   /* "heap dump", the same */
	size_t header_bytes; /* at most INPUT_HEADER_MAX */
	/* What does not begin as it should is not copied: it may have no end. */
	int (*check)(const void *header, size_t n, struct err *e);
};

/* Opens @file ("-": stdin), which is no directory. *was: as it is now. Returns the descriptor. */
int input_open(const char *file, const struct input_kind *kind, struct stat *was, struct err *e);

/* Since when a pipe has stood at an offset. A zeroed struct but for the name: it never did. */
struct input_stall {
	const char *name; /* for the message; borrowed */
	uint64_t offset, since_ns;
	bool told;
};

/* Reading is at @offset. After 10 s without a byte that is said, once: whoever waits may have forgotten to write. */
void input_stands(struct input_stall *s, uint64_t offset);
/* Waits until @fd has more than the @offset bytes that came, or has ended, or we are to end. */
void input_await(struct input_stall *s, int fd, uint64_t offset);

/*
 * Copies all that comes from *fd to a file without a name in TMPDIR (or /tmp), closes *fd, and has
 * the file there in its place. @began_ns: of the monotonic clock, for the bar. *size: of the copy.
 */
int input_spool(int *fd, const struct input_kind *kind, struct input_stall *stall,
		uint64_t began_ns, uint64_t *size, struct err *e);

/* -EIO: the file has another size or time than when it was opened. Of a pipe's copy it has not. */
int input_unchanged(int fd, const struct input_kind *kind, const struct stat *was, struct err *e);

/* Would writing to @path replace the file that is open as @fd (-1: none is)? */
bool input_is(int fd, const char *path);

#endif
