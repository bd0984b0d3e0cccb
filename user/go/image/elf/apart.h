/*
 * user/go/image/elf/apart.h - work on bytes that nobody vouches for, in a process of its own.
 *
 * Malicious DWARF may make libdw crash, loop, or take memory without end. In a forked child that
 * costs one answer and not the program, and the child's memory is given back when it ends.
 */
#ifndef GO_IMAGE_ELF_APART_H
#define GO_IMAGE_ELF_APART_H

#include <stdint.h>

#include "base/err.h"

/* The child's exit status when a library has no memory and cannot say so otherwise. */
enum { APART_NO_MEMORY = 3 };

struct apart {
	const char *what; /* for messages: "reading the DWARF" */
	int (*work)(void *arg, int out,
		    struct err *e); /* in the child; writes its answer to @out */
	void *arg;
	unsigned ms;   /* how long it may take */
	uint64_t more; /* bytes of memory that it may take beyond what there is now */
};

/*
 * Runs @a->work in a child, with @out (a file, borrowed). What it returns is returned, with its
 * message. -E2BIG: it took too long; -ENOMEM: more than its memory; -EBADMSG: it died.
 */
int apart_run(const struct apart *a, int out, struct err *e);

#endif
