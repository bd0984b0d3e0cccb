/* user/go/image/gobin_priv.h - the inside of a gobin, shared by the gobin*.c files. */
#ifndef GO_IMAGE_GOBIN_PRIV_H
#define GO_IMAGE_GOBIN_PRIV_H

#include "base/limits.h"
#include "base/strtab.h"
#include "go/image/buildinfo.h"
#include "go/image/elf/elfimg.h"
#include "go/image/gobin.h"
#include "go/image/tables/pclntab.h"

enum { FOUND_FUNCS = 256 };

struct found_func {
	uint64_t pc;
	struct gofunc f; /* end is 0: none */
};

struct gobin {
	struct elfimg *img;
	struct strtab *strings;
	size_t most_bytes; /* of strings and tables */
	struct pclntab pcln;
	struct gobin_info info;
	struct gomodule module;
	char name[LIMIT_NAME]; /* scratch for one name */
	void *kept;	       /* gobin_keep() */
	size_t kept_bytes;
	struct found_func *
		found; /* FOUND_FUNCS by pc: most stacks have frames that others had; NULL: none yet */
};

/* gobin_tls.c: finds gobin_info.tls_g. A library's is known only where it is loaded (@live). */
int gobin_find_tls(struct gobin *b, struct mem *live, uint64_t bias, int32_t *tls_g, struct err *e);

/* gobin_names.c: is there a function whose name starts with @prefix? 1, 0 or an error. */
int gobin_has_prefix(struct gobin *b, const char *prefix, struct err *e);

#endif
