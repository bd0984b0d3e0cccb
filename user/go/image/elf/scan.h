/* user/go/image/elf/scan.h - go through a long range of a struct mem in chunks that overlap. */
#ifndef GO_IMAGE_ELF_SCAN_H
#define GO_IMAGE_ELF_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

enum { SCAN_CHUNK = 1 << 16 };

struct scan {
	const uint8_t *buf; /* this chunk, SCAN_CHUNK + @keep bytes at most */
	size_t n;	    /* bytes in it */
	uint64_t at;	    /* address of its first byte */
	/* private */
	struct mem *m;
	uint64_t next, left;
	size_t keep;
	uint8_t *own;
};

/*
 * The range [@addr, @addr + @len). The last @keep (at most 4096) bytes of a chunk are shown again at
 * the start of the following one, so that a thing of keep + 1 bytes is whole in one of them.
 */
int scan_init(struct scan *s, struct mem *m, uint64_t addr, uint64_t len, size_t keep,
	      struct err *e);
void scan_fini(struct scan *s);

/* 1: a chunk; 0: the end; or mem_read's error. */
int scan_next(struct scan *s, struct err *e);

#endif
