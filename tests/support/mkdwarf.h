/*
 * tests/support/mkdwarf.h - a small ELF file with the DWARF of a made-up Go runtime.
 *
 * It knows runtime.g, m, stack, bucket, sudog, mspan and internal/abi.Type; their offsets are
 * those of the tests that use it, not of any Go release.
 */
#ifndef TESTS_MKDWARF_H
#define TESTS_MKDWARF_H

#include <stddef.h>
#include <stdint.h>

enum mkdwarf_packing { MKDWARF_PLAIN, MKDWARF_COMPRESSED, MKDWARF_ZDEBUG };

struct mkdwarf {
	int version; /* of DWARF: 4 or 5 */
	enum mkdwarf_packing packing;
	int no_g;		 /* leave runtime.g out */
	int old_sudog;		 /* sudog.elem is a pointer, as to Go 1.25 */
	int location_expression; /* member offsets as DW_OP_plus_uconst */
	uint64_t claim;		 /* inflated size that .debug_info claims, 0: the truth */
};

enum { MKDWARF_MAX = 8192 };

/* Returns the file's length. */
size_t mkdwarf(const struct mkdwarf *how, uint8_t out[MKDWARF_MAX]);

#endif
