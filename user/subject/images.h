/*
 * user/subject/images.h - the Go code of one process: which of its files hold some.
 *
 * Mostly that is the executable. A C program may have loaded a Go library (c-shared), and then
 * that library's runtime is the one that is looked at. A Go program may have loaded plugins,
 * which contain functions of their own, and copies of the runtime's functions that work on the
 * host's variables.
 */
#ifndef SUBJECT_IMAGES_H
#define SUBJECT_IMAGES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "go/image/gobin.h"
#include "target/target.h"

struct binaries;
struct binary;

struct image {
	struct gobin *bin; /* owned, unless it is shared */
	uint64_t bias;	   /* live address = link-time address + bias */
	uint64_t lo, hi;   /* live addresses of its Go text */
	dev_t dev;	   /* of its file, as /proc/PID/maps says */
	uint64_t inode;
	int fd;	     /* of its file, owned; bin reads from it */
	uint16_t id; /* what its unwinding rules are filed under */
	/* whose bin and fd these are, where processes share them; NULL: its own */
	struct binary *shared;
};

/* Files with Go code in one process: the program and its plugins; as GPB_IMAGES. */
enum { IMAGES_MAX = 8 };

struct images {
	struct image at[IMAGES_MAX]; /* [0] has the runtime that is looked at */
	size_t n;
	size_t left_out; /* Go files that there was no room for, or that cannot be read */
	size_t runtimes; /* other runtimes in the same process: not looked at */
	/* that files are shared in, and which numbers them; borrowed; NULL: none are shared */
	struct binaries *cache;
};

/*
 * Finds those of @t by its maps. -ENOENT: no file of it holds a Go runtime. A bad executable is
 * an error; a bad library is left out. @cache: where executables are shared; may be NULL.
 */
int images_open(struct target *t, struct binaries *cache, struct images *out, struct err *e);
void images_fini(struct images *im);

/*
 * Adds what is mapped now and was not before; returns the number added. target_maps() must be
 * called first.
 */
size_t images_refresh(struct target *t, struct images *im);

/* The image whose text holds the live address @pc; at[0] when none does. */
const struct image *images_at(const struct images *im, uint64_t pc);

/* The image that this mapping belongs to, or NULL. */
const struct image *images_of(const struct images *im, const struct mapping *m);

#endif
