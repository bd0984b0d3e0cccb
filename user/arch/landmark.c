/* user/arch/landmark.c - the beginning of a Go function, and its end. */
#include "arch/landmark.h"

#ifdef __x86_64__

/*
 * Go's calling convention: arguments in AX, BX and CX, g in R14, the stack's limit at 16(R14).
 * Source: abi-internal.md.
 */
__asm__(".text\n"
	".type landmark_go, @function\n"
	"landmark_go:\n"
	"	cmp 0x10(%r14), %rsp\n"
	".globl landmark_branch\n"
	"landmark_branch:\n"
	"	jbe 1f\n"
	".globl landmark_ret\n"
	"landmark_ret:\n"
	"	ret\n"
	"1:	ret\n"
	".size landmark_go, . - landmark_go\n"
	".type landmark_loop, @function\n"
	".globl landmark_loop\n"
	"landmark_loop:\n" /* rdi: n, rsi: size, rdx: g */
	"	push %rbx\n"
	"	push %r14\n"
	"	mov %rdx, %r14\n"
	"2:	mov %rsi, %rax\n"
	"	xor %ebx, %ebx\n"
	"	xor %ecx, %ecx\n"
	"	call landmark_go\n"
	"	dec %rdi\n"
	"	jnz 2b\n"
	"	pop %r14\n"
	"	pop %rbx\n"
	"	ret\n"
	".size landmark_loop, . - landmark_loop\n");

extern const char landmark_branch[], landmark_ret[];
void landmark_loop(uint64_t n, uint64_t size, const void *g);

void landmark_call(uint64_t n, uint64_t size)
{
	static const uint64_t g[8]; /* a g of which no field leads anywhere */

	if (n)
		landmark_loop(n, size, g);
}

uint64_t landmark_site(void)
{
	return (uint64_t)(uintptr_t)landmark_branch;
}

uint64_t landmark_return(void)
{
	return (uint64_t)(uintptr_t)landmark_ret;
}

#else

void landmark_call(uint64_t n, uint64_t size)
{
	(void)n;
	(void)size;
}

uint64_t landmark_site(void)
{
	return 0;
}

uint64_t landmark_return(void)
{
	return 0;
}

#endif
