/*
 * user/go/image/elf/dwarfimg.h - the debug sections of a file that are wanted, as an ELF image in memory.
 *
 * For libdw, which else would load and inflate all of them. Sections may be compressed in the way of
 * ELF (Go 1.19 and newer) or by name (".zdebug_info", before).
 */
#ifndef GO_IMAGE_ELF_DWARFIMG_H
#define GO_IMAGE_ELF_DWARFIMG_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { DWARFIMG_SECTIONS = 12 };

struct dwarfimg {
	uint8_t *bytes; /* owned */
	size_t len;
};

/*
 * @names: at most DWARFIMG_SECTIONS, without their dot; the first two are debug_info and debug_abbrev,
 * without which it is -ENOENT. -EBADMSG: the file lies; -E2BIG: more than LIMIT_DWARF_IMAGE;
 * -ENOTSUP: compressed in an unknown way.
 */
int dwarfimg_read(int fd, const char *const *names, size_t n, struct dwarfimg *out, struct err *e);
void dwarfimg_fini(struct dwarfimg *im);

/* Bytes of .debug_info once inflated, 0 when there is none. */
int dwarfimg_bytes(int fd, uint64_t *bytes, struct err *e);

#endif
