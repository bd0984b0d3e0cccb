/*
 * user/arch/pair.h - which address code puts in front of what a call gave it.
 *
 * Go keeps an interface as two words, its type and its data, in memory or in two registers for
 * arguments. Where a call makes the data, the code behind it says of which type that is.
 * It is followed from there on over its branches: which registers and places in memory hold
 * the call's result, and which an address that the code itself has.
 *
 * Source: cmd/compile/internal/walk/convert.go, walkConvInterface; abi-internal.md; Go 1.18 to 1.27.
 */
#ifndef ARCH_PAIR_H
#define ARCH_PAIR_H

#include <stdbool.h>

#include "arch/arch.h"

/* Could it be the first word? Others are passed over. */
typedef bool (*arch_pair_fits)(void *arg, uint64_t addr);

/*
 * The address in front of the result of the call that returns to @from, in the function of which
 * @code (@n bytes) lies at @addr. 0: it cannot be told, or not on this machine.
 */
uint64_t arch_pair(struct arch *a, const uint8_t *code, size_t n, uint64_t addr, uint64_t from,
		   arch_pair_fits fits, void *arg);

#endif
