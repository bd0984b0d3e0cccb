/*
 * user/go/image/tables/inltree.h - the calls that were inlined at one pc.
 *
 * Source: inlinedCall and inlineUnwinder in runtime/symtabinl.go (Go 1.21 to 1.27),
 * runtime/symtab.go (Go 1.16 to 1.20, 20-byte entries): FUNCDATA 3 indexed by PCDATA 2.
 */
#ifndef GO_IMAGE_TABLES_INLTREE_H
#define GO_IMAGE_TABLES_INLTREE_H

#include <stdint.h>

#include "go/image/tables/pclntab.h"

struct inlcall {
	uint32_t name;	     /* offset into funcnametab */
	uint32_t start_line; /* 0 before Go 1.20 */
	uint64_t parent_pc;  /* at which the caller is looked up; inside of the function */
	uint8_t raw_id;
};

struct inltree {
	const struct pclntab *t; /* borrowed, like f */
	const struct pclnfunc *f;
	uint64_t addr;	    /* of the entries; 0: nothing is inlined in this function */
	uint32_t index_tab; /* offset of the pc-value table of indexes */
};

int inltree_init(struct inltree *tree, const struct pclntab *t, const struct pclnfunc *f,
		 struct err *e);

/*
 * 1: the code at @pc belongs to an inlined call; 0: to the physical function. Asking again with
 * out->parent_pc gives the next caller. The tree may be wrong, so callers must bound their steps.
 */
int inltree_at(const struct inltree *tree, uint64_t pc, struct inlcall *out, struct err *e);

#endif
