/*
 * user/arch/arm64_tls.h - what runtime.load_g of arm64 says of where g is.
 *
 *	adrp x27,iscgo; [add x27,x27,#lo;] ldrsb x0,[x27,#lo]; cbz x0,ret
 *	mrs x0,tpidr_el0
 *	mov x27,#off  or  movz x27,#hi,lsl #16; movk x27,#lo  or  adrp x27,got; ldr x27,[x27,#lo]
 *	ldr x28,[x0,x27]
 *
 * Source: runtime/tls_arm64.s; R_ARM64_TLS_LE and _IE in cmd/link/internal/arm64/asm.go; Go 1.16 to 1.27.
 */
#ifndef ARCH_ARM64_TLS_H
#define ARCH_ARM64_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arm64_load_g {
	uint64_t iscgo; /* address of the byte without which g is in x28 alone */
	uint64_t got; /* address of the word with the offset, which the dynamic linker writes; 0: */
	int64_t off;  /* the offset from the thread pointer */
};

/* @code: @n bytes of the function, which lies at @addr. False when it does something else. */
bool arm64_load_g(const uint8_t *code, size_t n, uint64_t addr, struct arm64_load_g *out);

#endif
