/*
 * user/go/image/tables/module.h - find the function table and moduledata of an executable.
 *
 * Source: moduledata in runtime/symtab.go, Go 1.16 to 1.27; cmd/link/internal/ld: section
 * names .gopclntab, .data.rel.ro.gopclntab (PIE to 1.25), .go.module (1.26).
 */
#ifndef GO_IMAGE_TABLES_MODULE_H
#define GO_IMAGE_TABLES_MODULE_H

#include "go/image/elf/elfimg.h"
#include "go/image/gobin.h"
#include "go/image/tables/pclntab.h"

/*
 * Finds the table by its section, else by a search through the segments that are not executable.
 * -ENOENT when there is none; for a named section with a bad table, that table's error.
 */
int module_find_pclntab(struct elfimg *img, struct pclntab *out, struct err *e);

/*
 * Finds moduledata by section, by search, by relocations, and at last in the running process
 * (@live at @bias; may be NULL). What is found agrees with @t and does not contradict itself.
 * -ENOENT when it is nowhere.
 */
int module_find(struct elfimg *img, const struct pclntab *t, struct mem *live, uint64_t bias,
		struct gomodule *out, struct err *e);

#endif
