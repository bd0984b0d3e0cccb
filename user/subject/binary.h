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
#include "base/map.h"
#include "base/vec.h"
#include "go/image/gobin.h"
#include "go/layout/layout.h"
#include "go/runtime/rtvar.h"
#include "target/target.h"

struct binary {
	struct file_id key;
	struct gobin *bin; /* link-time addresses; owned */
	int fd;		   /* owned */
	uint16_t
		id; /* 1 or more; of this file for the whole run, also when it was forgotten in between */
	struct golayout layout;
	bool layout_known;
	bool plugins, plugins_known; /* it can load plugins */
	uint64_t vars
		[RTVAR_COUNT]; /* link-time addresses that were found; 0: not yet, or there is none */
	/* what folders above found out of it: memory that free() releases; NULL: nothing yet */
	void *kept;
	unsigned users;	   /* private */
	uint64_t last_use; /* private */
	struct binary *next;
};

/*
 * All that are known take at most BINARIES_BYTES, and at most BINARIES_IDLE_MAX of them are those that no process of
 * ours runs (each has a descriptor). The one that was used least recently is forgotten first; when only such are
 * left that are in use, it gives back its cache of the file (up to 3 MB).
 */
enum { BINARIES_BYTES = 12 << 20, BINARIES_IDLE_MAX = 32 };

struct binaries {
	struct binary *first;
	size_t most;	  /* bytes; 0: BINARIES_BYTES */
	unsigned numbers; /* that were given */
	uint64_t clock;	  /* private */
	/* private: the numbers of files that were forgotten, by the hash of their keys */
	struct map given;
	VEC(struct file_id) given_to;
	VEC(uint16_t) given_number;
};

/*
 * The executable of @t, by its exe_id. The first time, the file is read, and @t's memory where the file alone does
 * not tell. Errors as gobin_open(); -E2BIG: no more numbers. binary_put() gives it back.
 */
int binary_get(struct binaries *c, struct target *t, struct binary **out, struct err *e);
void binary_put(struct binary *b);

/* The number of a file that is not shared; 0 when there are no more. */
uint16_t binaries_number(struct binaries *c);

/* To be called from time to time: makes the bounds true. */
void binaries_trim(struct binaries *c);

/* What all take, in bytes. */
size_t binaries_bytes(const struct binaries *c);

/* Closes all. Nobody may use one any more. */
void binaries_fini(struct binaries *c);

#endif
