/* user/go/layout/layout_priv.h - between layout.c, layout_dwarf.c, the generated table and its generator. */
#ifndef GO_LAYOUT_LAYOUT_PRIV_H
#define GO_LAYOUT_LAYOUT_PRIV_H

#include "go/layout/layout.h"

/*
 * One known release. Rows are sorted by arch, minor, patch. Of a minor there are the first and
 * the last release that can be had, and both sides of every change between them.
 */
struct layout_row {
	uint8_t arch; /* enum arch_id */
	uint8_t minor, patch;
	uint8_t offsets; /* index into layout_offsets */
	uint8_t classes; /* index into layout_classes */
};

extern const struct layout_row layout_rows[];
extern const size_t layout_nrows;
extern const int32_t layout_offsets[][LAYOUT_COUNT];
extern const struct sizeclasses layout_classes[];

/*
 * The row for go1.@minor.@patch (-1 for a version nobody understands) and how well it
 * fits: LAYOUT_TABLE when it is that release, or one of two around it that agree. NULL when the release is older than all rows of that arch, or the arch unknown.
 */
const struct layout_row *layout_row_find(enum arch_id arch, int minor, int patch,
					 enum layout_how *how);

/* Bytes of .debug_info once inflated, 0 when there is none. */
int layout_dwarf_bytes(int fd, uint64_t *bytes, struct err *e);

/*
 * Offsets from the DWARF of the ELF file behind @fd, and @header_over as in struct
 * sizeclasses. Works in this process: hostile DWARF may cost memory and time.
 */
int layout_dwarf_read(int fd, int32_t off[LAYOUT_COUNT], uint32_t *header_over, struct err *e);

/*
 * The same in a forked child with limits on time and memory, which crashes instead of us. -E2BIG:
 * too long; -ENOMEM: more than @most_bytes.
 */
int layout_dwarf_within(int fd, uint64_t most_bytes, int32_t off[LAYOUT_COUNT],
			uint32_t *header_over, struct err *e);
/* Within what is right for a Go program's. */
int layout_dwarf_apart(int fd, int32_t off[LAYOUT_COUNT], uint32_t *header_over, struct err *e);

#endif
