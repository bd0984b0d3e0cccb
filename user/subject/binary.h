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

struct binary {
	struct file_id key;
	struct gobin *bin; /* link-time addresses; owned */
	int fd;		   /* owned */
	uint16_t id;	   /* binaries_number() */
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
 * All that are known take at most BINARIES_BYTES, and at most BINARIES_IDLE_MAX of them are those that no process of
 * ours runs (each has a descriptor). The one that was used least recently is forgotten first; when only such are
 * left that are in use, it gives back its cache of the file (up to 3 MB).
 */
enum { BINARIES_BYTES = 5 << 20, BINARIES_IDLE_MAX = 32 };

struct binaries {
	struct binary *first;
	size_t most; /* bytes; 0: BINARIES_BYTES */
	/*
	 * Forgets what is filed under a number that was a file's; false: something of it stays, so nobody gets the number again.
	 * NULL: nothing is filed.
	 */
	bool (*forget)(void *arg, uint16_t number);
	void *arg;
	uint64_t clock; /* private, like what follows */
	uint16_t last;	/* number that was given */
	uint8_t taken[(UINT16_MAX + 1) / 8];
};

/*
 * The executable of @t, by its exe_id. The first time, the file is read, and @t's memory where the file alone does
 * not tell. Errors as gobin_open(); -E2BIG: UINT16_MAX files are in use. binary_put() gives it back.
 */
int binary_get(struct binaries *c, struct target *t, struct binary **out, struct err *e);
void binary_put(struct binary *b);
/* One more has it, who gives it back, too. */
struct binary *binary_share(struct binary *b);

/*
 * What unwinding rules of a file are filed under in the kernel: 1 or more; 0: each one is some file's now. A number that was
 * given back is the last to be given again, and never while anything is filed under it.
 */
uint16_t binaries_number(struct binaries *c);
void binaries_give_back(struct binaries *c, uint16_t number);

/* To be called from time to time: makes the bounds true. */
void binaries_trim(struct binaries *c);

/* What all take, in bytes. */
size_t binaries_bytes(const struct binaries *c);

/* Closes all. Nobody may use one any more, and nothing is forgotten by number. */
void binaries_fini(struct binaries *c);

#endif
