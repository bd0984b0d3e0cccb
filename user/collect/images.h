/*
 * user/collect/images.h - the Go code of one process: which of its files hold some.
 *
 * Mostly that is the executable. A C program may have loaded a Go library (c-shared), whose
 * runtime is then the one that is looked at; a Go program may have loaded plugins, which
 * bring functions of their own and copies of the runtime's, on the host's variables.
 */
#ifndef COLLECT_IMAGES_H
#define COLLECT_IMAGES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "go/gobin.h"
#include "goprof_abi.h"
#include "target/target.h"

struct image {
	struct gobin *bin; /* owned */
	uint64_t bias;	   /* live address = link-time address + bias */
	uint64_t lo, hi;   /* live addresses of its Go text */
	dev_t dev;	   /* of its file, as /proc/PID/maps says */
	uint64_t inode;
	int fd; /* of its file, owned; bin reads from it */
};

struct images {
	struct image at[GPB_IMAGES]; /* [0] has the runtime that is looked at */
	size_t n;
	size_t left_out; /* Go files for which there was no room, or that cannot be read */
	size_t runtimes; /* other runtimes in the same process: not looked at */
};

/*
 * Those of @t as its maps say. -ENOENT: no file of it holds a Go runtime. Errors of the
 * executable are errors; a library that is no good is left out.
 */
int images_open(struct target *t, struct images *out, struct err *e);
void images_fini(struct images *im);

/* Add what is mapped now and was not; the number added. target_maps() comes before. */
size_t images_refresh(struct target *t, struct images *im);

/* The one whose text holds the live address @pc; at[0] when none does. */
const struct image *images_at(const struct images *im, uint64_t pc);

/* The one that this mapping is of, or NULL. */
const struct image *images_of(const struct images *im, const struct mapping *m);

#endif
