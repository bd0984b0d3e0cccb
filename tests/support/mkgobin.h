/*
 * tests/support/mkgobin.h - a small Go executable made by hand, and bytes as memory.
 *
 * Functions, at text + offset:
 *	+0x00 runtime.text0	nothing inlined, sp delta 0
 *	+0x40 main.main		sp delta 0, 8 from +4; leaf inlined into mid into it at +0x10..0x20,
 *				mid alone at +0x20..0x30
 *	+0xc0 main.main		a wrapper of the same name, 16 bytes
 *	+0xd0 runtime.last	ends at +0x100
 * Lines are 10 + (the offset in main.main / 0x10), files a.go and, where leaf is, b.go.
 */
#ifndef TESTS_MKGOBIN_H
#define TESTS_MKGOBIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

enum {
	MK_BASE = 0x400000, /* link-time address of the file's first byte */
	MK_TEXT = MK_BASE + 0x200,
	MK_ETEXT = MK_TEXT + 0x100,
	MK_BYTES = 0x2000,
};

struct mkopt {
	int minor;	  /* 16 to 19: its table; 20 and newer: the newest */
	bool pie;	  /* ET_DYN */
	bool no_sections; /* as sstrip leaves it */
	/*
	 * moduledata's words are zero, as they are before a foreign linker's relocations are
	 * applied
	 */
	bool no_module;
	bool rela;	     /* the file has these relocations */
	bool by_symbol;	     /* and after them others, which are not in order */
	bool no_info;	     /* no build info */
	const char *version; /* in the build info; NULL: of minor */
};

/* The file, and the file offsets of parts that tests damage. */
struct mkgobin {
	uint8_t b[MK_BYTES];
	size_t n;
	size_t info, module, pcln, nfunc, functab, rec[4], names, inl_index, inl_tree, pcsp, gofunc,
		rela;
	uint64_t words[46]; /* moduledata with the right contents */
};

void mkgobin(struct mkgobin *g, const struct mkopt *o);

/* A memfd with these bytes; the caller closes it. */
int mkgobin_fd(const void *bytes, size_t n);

/* @n bytes at address @base; no other address is readable. */
struct bytemem {
	struct mem mem; /* first */
	uint64_t base;
	const uint8_t *at;
	size_t n;
};
struct bytemem bytemem_of(uint64_t base, const void *at, size_t n);

#endif
