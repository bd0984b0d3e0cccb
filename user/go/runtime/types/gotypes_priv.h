/* user/go/runtime/types/gotypes_priv.h - tables while they are made, and as they go from the child to the parent. */
#ifndef GO_RUNTIME_TYPES_GOTYPES_PRIV_H
#define GO_RUNTIME_TYPES_GOTYPES_PRIV_H

#include "base/vec.h"
#include "go/runtime/types/gotypes.h"

/* Before each array stands nothing: they follow in this order, text last. */
struct gotypes_head {
	uint64_t dwarf, ntypes, nfields, nvars, nslots, nclosures, nfuncs, ntext;
};

struct gotypes_made {
	bool dwarf;
	VEC(struct gotype) types;
	VEC(struct gofield) fields;
	VEC(struct govar) vars;
	VEC(struct goslot) slots;
	VEC(struct goclosure) closures;
	VEC(struct gofuncname) funcs;
	VEC(char) text; /* text.at[0] is "" */
};

/* The text's offset; 0 when there is no room. A text longer than LIMIT_NAME is cut. */
uint32_t gotypes_add_text(struct gotypes_made *m, const char *s);

/* Fills @m with what the DWARF of @fd says. -ENOENT: it has none. */
int gotypes_from_dwarf(int fd, const struct gotypes_want *want, struct gotypes_made *m,
		       struct err *e);
/* Adds the symbols of data that lie in the ranges of @want. */
int gotypes_from_symbols(int fd, const struct gotypes_want *want, struct gotypes_made *m,
			 struct err *e);

#endif
