/*
 * user/arch/pair.h - which address code puts in front of a value that a call returned.
 *
 * Go keeps an interface as two words, its type and its data, in memory or in two registers for
 * arguments. Where a call makes the data, the code behind the call says of which type they are.
 * So that code is followed, over its branches: which registers and places in memory hold the
 * call's result, and which ones an address that is known from the code.
 *
 * Source: cmd/compile/internal/walk/convert.go, walkConvInterface; abi-internal.md; Go 1.18 to
 * 1.27.
 */
#ifndef ARCH_PAIR_H
#define ARCH_PAIR_H

#include <stdbool.h>

#include "arch/arch.h"

/*
 * Could this address be the first word of a pair? The walk ignores addresses for which this is
 * false.
 */
typedef bool (*arch_pair_fits)(void *arg, uint64_t addr);

/*
 * The address that is put in front of the result of the call which returns to @from. The
 * function's @code (@n bytes) lies at @addr. 0: it cannot be told.
 */
uint64_t arch_pair(struct arch *a, const uint8_t *code, size_t n, uint64_t addr, uint64_t from,
		   arch_pair_fits fits, void *arg);

#endif
