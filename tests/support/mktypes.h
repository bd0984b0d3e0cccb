/*
 * tests/support/mktypes.h - a small ELF file with the DWARF and the symbols of a made-up Go program.
 *
 *	type node struct { next *node; name string; ints []int; any interface{}; f func() }
 *	type pair struct { a, b *node }
 *	var list *node				at MKTYPES_DATA + 16
 *	var m map[int]*node			at MKTYPES_DATA + 24
 *	var c chan node				at MKTYPES_BSS + 8
 *	func f(): local *node in its frame at CFA - 16 from MKTYPES_CODE + 8 on; text string in two
 *		parts, at CFA - 32 and - 48; and in a register before; whole pair at
 *		CFA - 64, parts pair at CFA - 40 and - 24, half pair of which a is at CFA - 8 and b
 *		nowhere. It captured p *node at 8.
 *	symbols: main.list, main.raw (8 bytes at MKTYPES_BSS + 64), main.f
 */
#ifndef TESTS_MKTYPES_H
#define TESTS_MKTYPES_H

#include <stddef.h>
#include <stdint.h>

enum {
	MKTYPES_CODE = 0x401000,
	MKTYPES_CODE_END = 0x401100,
	MKTYPES_METHODS =
		0x401200, /* 16 bytes each: method values of *node, pair and what is no type */
	MKTYPES_TYPES = 0x500000,
	MKTYPES_TYPES_END = 0x510000,
	MKTYPES_DATA = 0x600000,
	MKTYPES_DATA_END = 0x600100,
	MKTYPES_BSS = 0x602000,
	MKTYPES_BSS_END = 0x602100,
	MKTYPES_MAX = 16384,
};

struct mktypes {
	int version; /* of DWARF: 4 or 5 */
	int swiss;   /* maps are those of Go 1.24 */
	int cycle;   /* a struct that consists of itself, and a typedef of itself */
	int other;   /* the unit is C's */
};

/* Returns the file's length. */
size_t mktypes(const struct mktypes *how, uint8_t out[MKTYPES_MAX]);

#endif
