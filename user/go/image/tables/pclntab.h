/*
 * user/go/image/tables/pclntab.h - the table of functions: pc -> function, its record, names, files.
 *
 * Read where it lies, through a struct mem; nothing is expanded. Tables of Go 1.16 and newer.
 * Source: runtime/symtab.go (pcHeader, findfunc, funcfile), cmd/link/internal/ld/pcln.go;
 * header magics 0xfffffffa (1.16, 1.17), 0xfffffff0 (1.18, 1.19), 0xfffffff1 (1.20 to 1.27).
 */
#ifndef GO_IMAGE_TABLES_PCLNTAB_H
#define GO_IMAGE_TABLES_PCLNTAB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "go/image/gobin.h"

enum pcln_shape {
	PCLN_116, /* 64-bit absolute entries */
	PCLN_118, /* 32-bit entries relative to runtime.text */
	PCLN_120, /* and a start line */
};

struct pclntab {
	struct mem *m; /* borrowed */
	enum pcln_shape shape;
	uint64_t addr, end;  /* of the table; end is where its section or segment ends */
	uint64_t text_start; /* as the header says, 0 when it does not */
	uint64_t nfunc;
	uint64_t funcname, cu, filetab, pctab, pcln; /* addresses, ascending */
	uint32_t quantum;
	/* Set by the owner after parsing; zero until then. */
	uint64_t text;	 /* runtime.text: base of relative entries */
	uint64_t gofunc; /* go:func.*: base of relative funcdata; 0 unknown */
	int minor;	 /* Go minor version: decides the function ids; -1 unknown */
};

/* One _func record, decoded. */
struct pclnfunc {
	uint64_t entry, end, addr; /* addr: of the record */
	uint32_t name, pcsp, pcfile, pcln, npcdata, cu, start_line;
	uint8_t raw_id, flags, nfuncdata;
};

enum { PCLN_PREFIX = 8 }; /* bytes that pclntab_looks needs */

/* Could a table start with these bytes? */
bool pclntab_looks(const uint8_t prefix[PCLN_PREFIX]);

/*
 * The header at @addr of a table that cannot reach beyond @end. -ENOTSUP: no magic or pointer
 * size we know; -EBADMSG: offsets that leave the table; -E2BIG: LIMIT_FUNCS.
 */
int pclntab_parse(struct mem *m, uint64_t addr, uint64_t end, struct pclntab *out, struct err *e);

/* Entry of the @i-th function, or where the last one ends for i == nfunc. */
int pclntab_entry(const struct pclntab *t, uint64_t i, uint64_t *entry, struct err *e);

/* The record of the @i-th function. -ENOENT for a hole that a foreign linker left. */
int pclntab_func(const struct pclntab *t, uint64_t i, struct pclnfunc *out, struct err *e);

/* Reads only the offset of its name, for passes over all functions. -ENOENT as above. */
int pclntab_nameoff(const struct pclntab *t, uint64_t i, uint32_t *off, struct err *e);

/* The function that holds @pc. -ENOENT outside; -EBADMSG for a table that is not sorted. */
int pclntab_find(const struct pclntab *t, uint64_t pc, struct pclnfunc *out, struct err *e);

/* Reads its record again, by the address that this table gave in a gofunc. */
int pclntab_record(const struct pclntab *t, uint64_t addr, struct pclnfunc *out, struct err *e);

enum func_id pclntab_id(const struct pclntab *t, uint8_t raw_id);

/*
 * A function name by its offset; @buf takes LIMIT_NAME bytes. At offset 0 the runtime has no
 * name. There are two exceptions: before Go 1.21 @inlined calls do have one there, and in a
 * plugin a true name is the first (runtime/symtab.go: cfuncname, funcnameFromNameoff; from 1.21
 * moduledata.funcName for both). Old plugins do not say their version; all from 1.21 on do.
 */
int pclntab_name(const struct pclntab *t, uint32_t off, bool inlined, char *buf, struct err *e);

/* File and line at @pc; "?" and 0 where the tables have none, as the runtime says. */
int pclntab_fileline(const struct pclntab *t, const struct pclnfunc *f, uint64_t pc, char *file,
		     uint32_t *line, struct err *e);

/* The value of a pc-value table of @f; *val = -1 where there is none. */
int pclntab_value(const struct pclntab *t, const struct pclnfunc *f, uint32_t off, uint64_t pc,
		  int32_t *val, struct err *e);

/* Offset of the @i-th PCDATA table, 0 when the function has none. */
int pclntab_pcdata(const struct pclntab *t, const struct pclnfunc *f, uint32_t i, uint32_t *off,
		   struct err *e);

/* Address of the @i-th FUNCDATA, 0 when the function has none. */
int pclntab_funcdata(const struct pclntab *t, const struct pclnfunc *f, uint32_t i, uint64_t *addr,
		     struct err *e);

#endif
