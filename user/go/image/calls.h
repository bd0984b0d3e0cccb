/* user/go/image/calls.h - does the code of one function call another? */
#ifndef GO_IMAGE_CALLS_H
#define GO_IMAGE_CALLS_H

#include <stdbool.h>

#include "arch/arch.h"
#include "go/image/gobin.h"

enum { CALLS_CODE_MAX = 1 << 16 }; /* bytes of a function that are looked through */

/*
 * Is one of the @nto functions at @to (those with entry 0 are skipped) the target of a call or
 * jump in @f? @code has room for CALLS_CODE_MAX bytes. False also where the code cannot be
 * decoded.
 */
bool calls_any(struct gobin *b, struct arch *a, const struct gofunc *f, const struct gofunc *to,
	       size_t nto, uint8_t *code);

#endif
