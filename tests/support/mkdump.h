/*
 * tests/support/mkdump.h - writes heap dumps, by the tables of the format.
 *
 * Source: the Go wiki's page on the format, and the runtime where that is wrong; see
 * user/ingest/heapdump/layouts.h. Nothing of the reader is used.
 */
#ifndef TESTS_MKDUMP_H
#define TESTS_MKDUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ingest/heapdump/heapdump.h"

/* The dump that is being written. */
extern struct dump {
	uint8_t at[1 << 20];
	size_t n;
	unsigned version; /* 3 to 7 */
	bool big;	  /* endian */
	unsigned ptr;	  /* bytes of a pointer */
} dump;
/* What dumps of version 7 say of their toolchain. */
extern const char *dump_toolchain;

void dump_number(uint64_t v);
void dump_numbers(const uint64_t *v, size_t n);
void dump_text(const char *s);
/* Contents, with their length. */
void dump_words(const uint64_t *v, size_t n);

#define DUMP_NUMBERS(...) \
	dump_numbers((const uint64_t[]){ __VA_ARGS__ }, sizeof((uint64_t[]){ __VA_ARGS__ }) / 8)
#define DUMP_WORDS(...) \
	dump_words((const uint64_t[]){ __VA_ARGS__ }, sizeof((uint64_t[]){ __VA_ARGS__ }) / 8)

enum { DUMP_HCHAN = 96 };

/* Header and parameters. */
void dump_begin(unsigned version, bool big, unsigned ptr);
/* Those of the draft of Go 1.3's format, and of gccgo. */
void dump_begin_draft(void);
void dump_begin_gccgo(void);

/* One at a time; a pipe holds 64 kB. */
struct heapdump *dump_open(bool pipe);
void dump_close(struct heapdump *d);
/* The same as a file descriptor that is a file. */
int dump_fd(void);

#endif
