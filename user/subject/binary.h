/*
 * user/subject/binary.h - one executable file, understood once for all processes that run it.
 *
 * What is known of a file that a process runs cannot change, because the kernel lets nobody write
 * into it meanwhile; size and modification time tell a file apart from a later one of its inode.
 */
#ifndef SUBJECT_BINARY_H
#define SUBJECT_BINARY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "go/image/gobin.h"
#include "go/layout/layout.h"
#include "target/target.h"

struct binary_key {
	uint64_t dev, ino, size;
	int64_t mtime_ns;
};

struct binary {
	struct binary_key key;
	struct gobin *bin; /* link-time addresses; owned */
	int fd;		   /* owned */
	uint16_t id;	   /* 1 or more, never used again */
	struct golayout layout;
	bool layout_known;
	bool plugins, plugins_known; /* it can load plugins */
	/* what folders above found out of it: memory that free() releases; NULL: nothing yet */
	void *kept;
	unsigned users;	   /* private */
	uint64_t last_use; /* private */
	struct binary *next;
};

/*
 * Those that no process of ours runs are kept, at most this many; each takes up to 3 MB. The one
 * that was used least recently goes first.
 */
enum { BINARIES_IDLE_MAX = 8 };

struct binaries {
	struct binary *first;
	unsigned numbers; /* that were given */
	uint64_t clock;	  /* private */
};

/*
 * The executable of @t. The first time, the file is read, and @t's memory where the file alone does
 * not tell. Errors as gobin_open(); -E2BIG: no more numbers. binary_put() gives it back.
 */
int binary_get(struct binaries *c, struct target *t, struct binary **out, struct err *e);
void binary_put(struct binary *b);

/* The number of a file that is not shared; 0 when there are no more. */
uint16_t binaries_number(struct binaries *c);

/* To be called from time to time: closes those that nobody uses, but BINARIES_IDLE_MAX. */
void binaries_trim(struct binaries *c);

/* Closes all. Nobody may use one any more. */
void binaries_fini(struct binaries *c);

#endif
