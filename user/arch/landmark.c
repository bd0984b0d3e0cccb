/* user/arch/landmark.c - the beginning of a Go function, and its end. */
#include "arch/landmark.h"

#include <stddef.h>

#ifdef __x86_64__

/*
 * Go's calling convention: arguments in AX, BX and CX, g in R14, the stack's limit at 16(R14).
 * Source: abi-internal.md. Its caller gets rdi: n, rsi: size, rdx: g.
 */
#define LANDMARK(name)                                         \
	__asm__(".text\n"                                      \
		".p2align 4\n"                                 \
		".type " name "_go, @function\n" name "_go:\n" \
		"	cmp 0x10(%r14), %rsp\n"                      \
		".globl " name "_branch\n" name "_branch:\n"   \
		"	jbe 1f\n"                                    \
		".globl " name "_return\n" name "_return:\n"   \
		"	ret\n"                                       \
		"1:	ret\n"                                     \
		".size " name "_go, . - " name "_go\n"         \
		".p2align 4\n"                                 \
		".type " name "_loop, @function\n"             \
		".globl " name "_loop\n" name "_loop:\n"       \
		"	push %rbx\n"                                 \
		"	push %r14\n"                                 \
		"	mov %rdx, %r14\n"                            \
		"2:	mov %rsi, %rax\n"                          \
		"	xor %ebx, %ebx\n"                            \
		"	xor %ecx, %ecx\n"                            \
		"	call " name "_go\n"                    \
		"	dec %rdi\n"                                  \
		"	jnz 2b\n"                                    \
		"	pop %r14\n"                                  \
		"	pop %rbx\n"                                  \
		"	ret\n"                                       \
		".size " name "_loop, . - " name "_loop\n")

#elif defined(__aarch64__)

/*
 * Arguments in x0, x1 and x2, g in x28, the return address in x30. Source: abi-internal.md. Its
 * caller gets x0: n, x1: size, x2: g, and keeps n in x19 and the size in x20.
 */
#define LANDMARK(name)                                         \
	__asm__(".text\n"                                      \
		".p2align 4\n"                                 \
		".type " name "_go, %function\n" name "_go:\n" \
		"	ldr x16, [x28, #16]\n"                       \
		"	cmp sp, x16\n"                               \
		".globl " name "_branch\n" name "_branch:\n"   \
		"	b.ls 1f\n"                                   \
		".globl " name "_return\n" name "_return:\n"   \
		"	ret\n"                                       \
		"1:	ret\n"                                     \
		".size " name "_go, . - " name "_go\n"         \
		".p2align 4\n"                                 \
		".type " name "_loop, %function\n"             \
		".globl " name "_loop\n" name "_loop:\n"       \
		"	stp x29, x30, [sp, #-48]!\n"                 \
		"	mov x29, sp\n"                               \
		"	stp x19, x20, [sp, #16]\n"                   \
		"	str x28, [sp, #32]\n"                        \
		"	mov x19, x0\n"                               \
		"	mov x20, x1\n"                               \
		"	mov x28, x2\n"                               \
		"2:	mov x0, x20\n"                             \
		"	mov x1, xzr\n"                               \
		"	mov x2, xzr\n"                               \
		"	bl " name "_go\n"                      \
		"	subs x19, x19, #1\n"                         \
		"	b.ne 2b\n"                                   \
		"	ldr x28, [sp, #32]\n"                        \
		"	ldp x19, x20, [sp, #16]\n"                   \
		"	ldp x29, x30, [sp], #48\n"                   \
		"	ret\n"                                       \
		".size " name "_loop, . - " name "_loop\n")

#endif

#ifdef LANDMARK

LANDMARK("landmark_first");
LANDMARK("landmark_last");
LANDMARK("landmark_bare");

extern const char landmark_first_branch[], landmark_last_return[];
typedef void loop(uint64_t n, uint64_t size, const void *g);
loop landmark_first_loop, landmark_last_loop, landmark_bare_loop;

void landmark_call(enum landmark which, uint64_t n, uint64_t size)
{
	static const uint64_t g[8]; /* a g of which no field leads anywhere */

	if (!n)
		return;
	if (which == LANDMARK_BRANCH)
		landmark_first_loop(n, size, g);
	else if (which == LANDMARK_RETURN)
		landmark_last_loop(n, size, g);
	else
		landmark_bare_loop(n, size, g);
}

uint64_t landmark_site(enum landmark which)
{
	const char *at = which == LANDMARK_BRANCH ? landmark_first_branch :
			 which == LANDMARK_RETURN ? landmark_last_return :
						    NULL;

	return (uint64_t)(uintptr_t)at;
}

#else

void landmark_call(enum landmark which, uint64_t n, uint64_t size)
{
	(void)which;
	(void)n;
	(void)size;
}

uint64_t landmark_site(enum landmark which)
{
	(void)which;
	return 0;
}

#endif
