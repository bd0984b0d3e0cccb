/* user/go/runtime/types/gotypes_dwarf_priv.h - between the reader of DWARF and what makes numbers of references. */
#ifndef GO_RUNTIME_TYPES_GOTYPES_DWARF_PRIV_H
#define GO_RUNTIME_TYPES_GOTYPES_DWARF_PRIV_H

#include "base/map.h"
#include "go/runtime/types/gotypes_priv.h"

/* A typedef that is only another name: no type is one when all is linked. */
enum { GOTYPES_ALIAS = GOTYPE_KINDS };

/* The receiver that a method value keeps. No reference leads to its type, only the function's name. */
struct gotypes_receiver {
	uint32_t field, type; /* number of the closure's field; the type's name */
};

struct gotypes_refs {
	struct map by_offset; /* of entries: the number of their type */
	VEC(struct gotypes_receiver) receivers;
};

void gotypes_refs_fini(struct gotypes_refs *r);

/*
 * Until then, elem, of, and the types of fields, variables and slots are offsets of entries; 0: none.
 * It also finds out what roles structs have, and how large variables and closures are. @word: bytes of a
 * pointer.
 */
int gotypes_link(struct gotypes_made *m, const struct gotypes_refs *refs, uint64_t word,
		 struct err *e);

#endif
