/*
 * user/go/image/tables/pclntab12.h - functions and lines of programs of Go 1.2 to 1.15, which gobin.h does not know:
 * for files that have addresses of such programs. Of any class and byte order.
 *
 * Source: debug/gosym/pclntab.go (ver12) and runtime/symtab.go, Go 1.5.
 */
#ifndef GO_IMAGE_TABLES_PCLNTAB12_H
#define GO_IMAGE_TABLES_PCLNTAB12_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

struct pclntab12;

/* -ENOENT: the file has no such table; -EBADMSG: its bytes lie. @path is for messages. */
int pclntab12_open(int fd, const char *path, struct pclntab12 **out, struct err *e);
/* The table itself; @bytes: borrowed. -ENOENT: it is none of that time. */
int pclntab12_of(const uint8_t *bytes, size_t n, bool big_endian, struct pclntab12 **out,
		 struct err *e);
void pclntab12_free(struct pclntab12 *t);
DEFINE_FREEP(struct pclntab12, pclntab12)

/* Borrowed from the table; file: NULL, line: 0: not known. */
struct pcline {
	const char *func, *file;
	uint32_t line;
};

/* Where that instruction is (for an address to which a call returns: that minus 1). False: not in the program. */
bool pclntab12_find(const struct pclntab12 *t, uint64_t pc, struct pcline *out);

#endif
