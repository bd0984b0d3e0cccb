/*
 * user/go/module.h - find the function table and moduledata of an executable.
 *
 * Source: moduledata in runtime/symtab.go, Go 1.16 to 1.27; cmd/link/internal/ld: section
 * names .gopclntab, .data.rel.ro.gopclntab (PIE to 1.25), .go.module (1.26).
 */
#ifndef GO_MODULE_H
#define GO_MODULE_H

#include "go/elfimg.h"
#include "go/gobin.h"
#include "go/pclntab.h"

/*
 * By section, else by search through the segments that are not executable.
 * -ENOENT when there is none; a named section with a bad table is that table's error.
 */
int module_find_pclntab(struct elfimg *img, struct pclntab *out, struct err *e);

/*
 * By section, by search, by relocations, at last in the running process (@live, may be NULL,
 * at @bias). What is found agrees with @t and describes itself without contradiction.
 * -ENOENT when it is nowhere.
 */
int module_find(struct elfimg *img, const struct pclntab *t, struct mem *live, uint64_t bias,
		struct gomodule *out, struct err *e);

#endif
