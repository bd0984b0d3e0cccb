/*
 * user/go/image/tables/pcval.h - one pc-value table: the run-length code that Go uses for line, file,
 * inline index and sp delta.
 *
 * Source: step() and pcvalue() in runtime/symtab.go; the same in Go 1.16 to 1.27.
 */
#ifndef GO_IMAGE_TABLES_PCVAL_H
#define GO_IMAGE_TABLES_PCVAL_H

#include <stdint.h>

#include "base/cur.h"
#include "base/mem.h"

struct pcval {
	struct cur c;	  /* over the table's bytes */
	uint64_t pc, end; /* next pc to cover; one past the function's last byte */
	uint32_t quantum; /* bytes per pc unit: 1 on amd64, 4 on arm64 */
	uint32_t steps;	  /* runs decoded so far; at most LIMIT_PCVALUE_STEPS */
	int32_t val;	  /* starts at -1; the value of [start, pc) after a successful step */
};

/* 1: a run was decoded. 0: end of table. -EBADMSG, -E2BIG: the bytes lie; *e says where. */
int pcval_step(struct pcval *t, uint64_t *start, struct err *e);

/*
 * The value at @pc of the table at @addr, which cannot reach beyond @limit, of the function
 * [@entry, @end). 1 and *val; 0 when the table ends before @pc; or an error.
 */
int pcval_at(struct mem *m, uint64_t addr, uint64_t limit, uint64_t entry, uint64_t end,
	     uint32_t quantum, uint64_t pc, int32_t *val, struct err *e);

#endif
