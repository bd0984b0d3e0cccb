/*
 * tests/unit/test_pair.c - finds what is put in front of a call's result, in code as Go's
 * compiler writes it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "arch/pair.h"

enum { CODE = 0x401000 };

/* "type" in the listings is an even address, type+1 one that does not fit; the call has returned to the
 * first instruction, or to "from". */
static const struct {
	const char *name;
	uint8_t code[64];
	size_t n, from;
	uint64_t want; /* 0: nothing is found */
} cases[] = {
	/* A global, with the collector's barrier as Go 1.26 has it.
	 * lea type(%rip),%rcx; mov %rcx,glob(%rip); cmpl $0,0x100(%rip); je 1f; call far; 1:
	 * mov %rax,glob+8(%rip); ret
	 */
	{ "a global",
	  { 0x48, 0x8d, 0x0d, 0x2d, 0x00, 0x00, 0x00, 0x48, 0x89, 0x0d, 0x36, 0x00,
	    0x00, 0x00, 0x83, 0x3d, 0x00, 0x01, 0x00, 0x00, 0x00, 0x74, 0x05, 0xe8,
	    0x38, 0x00, 0x00, 0x00, 0x48, 0x89, 0x05, 0x29, 0x00, 0x00, 0x00, 0xc3 },
	  36,
	  0,
	  0x401034 },
	/* And as Go 1.18 has it: the call comes first.
	 * lea type(%rip),%rcx; mov %rcx,glob(%rip); cmpl $0,0x100(%rip); jne 1f; mov
	 * %rax,glob+8(%rip); jmp 2f; 1: call far; 2: ret
	 */
	{ "older barrier",
	  { 0x48, 0x8d, 0x0d, 0x2f, 0x00, 0x00, 0x00, 0x48, 0x89, 0x0d, 0x38, 0x00, 0x00,
	    0x00, 0x83, 0x3d, 0x00, 0x01, 0x00, 0x00, 0x00, 0x75, 0x09, 0x48, 0x89, 0x05,
	    0x30, 0x00, 0x00, 0x00, 0xeb, 0x05, 0xe8, 0x31, 0x00, 0x00, 0x00, 0xc3 },
	  38,
	  0,
	  0x401036 },
	/* Two arguments.
	 * mov %rax,%rbx; lea type(%rip),%rax; call far; ret
	 */
	{ "arguments",
	  { 0x48, 0x89, 0xc3, 0x48, 0x8d, 0x05, 0x16, 0x00, 0x00, 0x00, 0xe8, 0x31, 0x00, 0x00,
	    0x00, 0xc3 },
	  16,
	  0,
	  0x401020 },
	/* The second of three results.
	 * mov %rax,%rcx; lea type(%rip),%rbx; xor %eax,%eax; ret
	 */
	{ "results",
	  { 0x48, 0x89, 0xc1, 0x48, 0x8d, 0x1d, 0x14, 0x00, 0x00, 0x00, 0x31, 0xc0, 0xc3 },
	  13,
	  0,
	  0x40101e },
	/* Kept on the stack over a call, into a slice's element.
	 * mov %rax,0x40(%rsp); call far; lea type(%rip),%rdi; mov %rdi,(%rdx,%rsi,1); mov
	 * 0x40(%rsp),%rax; mov %rax,8(%rdx,%rsi,1); ret
	 */
	{ "spilled",
	  { 0x48, 0x89, 0x44, 0x24, 0x40, 0xe8, 0x46, 0x00, 0x00, 0x00, 0x48,
	    0x8d, 0x3d, 0x1f, 0x00, 0x00, 0x00, 0x48, 0x89, 0x3c, 0x32, 0x48,
	    0x8b, 0x44, 0x24, 0x40, 0x48, 0x89, 0x44, 0x32, 0x08, 0xc3 },
	  32,
	  0,
	  0x401030 },
	/* Further up in the function.
	 * 0: mov %rsi,8(%rax); ret; from: mov %rax,0x40(%rsp); call far; lea
	 * type(%rip),%rcx; mov %rcx,(%rax); mov 0x40(%rsp),%rsi; jmp 0b
	 */
	{ "loop",
	  { 0x48, 0x89, 0x70, 0x08, 0xc3, 0x48, 0x89, 0x44, 0x24, 0x40, 0xe8,
	    0x41, 0x00, 0x00, 0x00, 0x48, 0x8d, 0x0d, 0x1a, 0x00, 0x00, 0x00,
	    0x48, 0x89, 0x08, 0x48, 0x8b, 0x74, 0x24, 0x40, 0xeb, 0xe0 },
	  32,
	  5,
	  0x401030 },
	/* What does not fit is passed over.
	 * lea type+1(%rip),%rcx; mov %rcx,0x30(%rsp); mov %rax,0x38(%rsp); lea
	 * type(%rip),%rcx; mov %rcx,0x50(%rsp); mov %rax,0x58(%rsp); ret
	 */
	{ "itab",
	  { 0x48, 0x8d, 0x0d, 0x2e, 0x00, 0x00, 0x00, 0x48, 0x89, 0x4c, 0x24, 0x30,
	    0x48, 0x89, 0x44, 0x24, 0x38, 0x48, 0x8d, 0x0d, 0x1c, 0x00, 0x00, 0x00,
	    0x48, 0x89, 0x4c, 0x24, 0x50, 0x48, 0x89, 0x44, 0x24, 0x58, 0xc3 },
	  35,
	  0,
	  0x401034 },
	/*
	 * In a generic function the word in front is not an address in the code.
	 * mov 8(%rdx),%rcx; mov %rcx,glob(%rip); mov %rax,glob+8(%rip); lea type(%rip),%rcx;
	 * mov %rcx,glob(%rip); ret
	 */
	{ "dictionary",
	  { 0x48, 0x8b, 0x4a, 0x08, 0x48, 0x89, 0x0d, 0x37, 0x00, 0x00, 0x00,
	    0x48, 0x89, 0x05, 0x38, 0x00, 0x00, 0x00, 0x48, 0x8d, 0x0d, 0x19,
	    0x00, 0x00, 0x00, 0x48, 0x89, 0x0d, 0x22, 0x00, 0x00, 0x00, 0xc3 },
	  33,
	  0,
	  0 },
	/*
	 * An address is put in front of another place.
	 * mov %rax,glob+8(%rip); lea type(%rip),%rcx; mov %rcx,glob+8(%rip); mov
	 * %rcx,glob-8(%rip); ret
	 */
	{ "elsewhere",
	  { 0x48, 0x89, 0x05, 0x3f, 0x00, 0x00, 0x00, 0x48, 0x8d, 0x0d,
	    0x20, 0x00, 0x00, 0x00, 0x48, 0x89, 0x0d, 0x31, 0x00, 0x00,
	    0x00, 0x48, 0x89, 0x0d, 0x1a, 0x00, 0x00, 0x00, 0xc3 },
	  29,
	  0,
	  0 },
	/*
	 * The register's former contents are overwritten.
	 * lea type(%rip),%rcx; mov %rcx,0x30(%rsp); mov %ecx,0x34(%rsp); mov
	 * %rax,0x38(%rsp); mov %rax,%rbx; lea type(%rip),%rax; mov $1,%bl; call far; ret
	 */
	{ "overwritten",
	  { 0x48, 0x8d, 0x0d, 0x31, 0x00, 0x00, 0x00, 0x48, 0x89, 0x4c, 0x24, 0x30, 0x89,
	    0x4c, 0x24, 0x34, 0x48, 0x89, 0x44, 0x24, 0x38, 0x48, 0x89, 0xc3, 0x48, 0x8d,
	    0x05, 0x19, 0x00, 0x00, 0x00, 0xb3, 0x01, 0xe8, 0x32, 0x00, 0x00, 0x00, 0xc3 },
	  39,
	  0,
	  0 },
	/* Behind a call that does not return lies other code.
	 * mov %rax,0x40(%rsp); call far; nop; mov 0x40(%rsp),%rbx; lea type(%rip),%rax; call
	 * far; ret
	 */
	{ "no return",
	  { 0x48, 0x89, 0x44, 0x24, 0x40, 0xe8, 0x44, 0x00, 0x00, 0x00,
	    0x90, 0x48, 0x8b, 0x5c, 0x24, 0x40, 0x48, 0x8d, 0x05, 0x17,
	    0x00, 0x00, 0x00, 0xe8, 0x32, 0x00, 0x00, 0x00, 0xc3 },
	  29,
	  0,
	  0 },
};

/* The same on AArch64, in whole words; "type" is at 0x402000 plus what is added. */
static const struct {
	const char *name;
	uint32_t code[16];
	size_t n, from; /* words */
	uint64_t want;
} cases64[] = {
	/* With the collector's barrier as Go 1.27 has it.
	 * adrp x1,type; add x1,x1,#0x328; adrp x27,glob; str x1,[x27,#112]; adrp x27; ldr w3,[x27,#32]; cbz w3,1f;
	 * ldr x3,[x27,#120]; bl far; stp x0,x3,[x25]; 1: adrp x27,glob; str x0,[x27,#120]; ret
	 */
	{ "a global",
	  { 0xb0000001, 0x910ca021, 0xd000001b, 0xf9003b61, 0xf000001b, 0xb9402363, 0x34000083,
	    0xf9403f63, 0x94000100, 0xa9000f20, 0xd000001b, 0xf9003f60, 0xd65f03c0 },
	  13,
	  0,
	  0x402328 },
	/* adrp x2,type; add x2,x2,#0x68; stp x2,x0,[sp,#240]; ret */
	{ "stored at once", { 0xb0000002, 0x9101a042, 0xa90f03e2, 0xd65f03c0 }, 4, 0, 0x402068 },
	/* mov x1,x0; adrp x0,type; add x0,x0,#0x20; bl far; ret */
	{ "arguments",
	  { 0xaa0003e1, 0xb0000000, 0x91008000, 0x94000100, 0xd65f03c0 },
	  5,
	  0,
	  0x402020 },
	/* mov x2,x0; adrp x1,type; add x1,x1,#0x20; mov x0,#0; ret */
	{ "results",
	  { 0xaa0003e2, 0xb0000001, 0x91008021, 0xd2800000, 0xd65f03c0 },
	  5,
	  0,
	  0x402020 },
	/* str x0,[sp,#232]; bl far; adrp x3,type; add x3,x3,#0x38; str x3,[x0]; ldr x3,[sp,#232]; str x3,[x0,#8]; ret */
	{ "spilled",
	  { 0xf90077e0, 0x94000100, 0xb0000003, 0x9100e063, 0xf9000003, 0xf94077e3, 0xf9000403,
	    0xd65f03c0 },
	  8,
	  0,
	  0x402038 },
	/* str x0,[sp,#232]; bl far; adrp x3,type; add x3,x3,#0x38; ldp x4,x5,[sp,#224]; stp x3,x5,[x0]; ret */
	{ "loaded with another",
	  { 0xf90077e0, 0x94000100, 0xb0000003, 0x9100e063, 0xa94e17e4, 0xa9001403, 0xd65f03c0 },
	  7,
	  0,
	  0x402038 },
	/* 0: str x1,[x2,#8]; ret; from: str x0,[sp,#64]; bl far; adrp x3,type; add x3,x3,#0x38; str x3,[x2];
	 * ldr x1,[sp,#64]; b 0b
	 */
	{ "loop",
	  { 0xf9000441, 0xd65f03c0, 0xf90023e0, 0x94000100, 0xb0000003, 0x9100e063, 0xf9000043,
	    0xf94023e1, 0x17fffff8 },
	  9,
	  2,
	  0x402038 },
	/* adrp x2,type; add x2,x2,#0x69; stp x2,x0,[sp,#240]; adrp x2; add x2,x2,#0x68; stp x2,x0,[sp,#256]; ret */
	{ "itab",
	  { 0xb0000002, 0x9101a442, 0xa90f03e2, 0xb0000002, 0x9101a042, 0xa91003e2, 0xd65f03c0 },
	  7,
	  0,
	  0x402068 },
	/* As Go 1.18 to 1.22 have it.
	 * lsl x5,x3,#4; adrp x6,type; add x6,x6,#0x300; str x6,[x4,x5]; add x4,x4,x3,lsl #4; str x0,[x4,#8]; ret
	 */
	{ "an element",
	  { 0xd37cec65, 0xb0000006, 0x910c00c6, 0xf8256886, 0x8b031084, 0xf9000480, 0xd65f03c0 },
	  7,
	  0,
	  0x402300 },
	/* The same, but x3 is another one in between; and another element. */
	{ "an element of another index",
	  { 0xd37cec65, 0xb0000006, 0x910c00c6, 0xd2800003, 0xf8256886, 0x8b031084, 0xf9000480,
	    0xd65f03c0 },
	  8,
	  0,
	  0 },
	{ "another element",
	  { 0xd37cec65, 0xb0000006, 0x910c00c6, 0xf8256886, 0x8b030c84, 0xf9000480, 0xd65f03c0 },
	  7,
	  0,
	  0 },
	/* ldr x1,[x26,#8]; stp x1,x0,[sp,#240]; adrp x1,type; add x1,x1,#0x68; str x1,[sp,#240]; ret */
	{ "dictionary",
	  { 0xf9400741, 0xa90f03e1, 0xb0000001, 0x9101a021, 0xf9007be1, 0xd65f03c0 },
	  6,
	  0,
	  0 },
	/* str x0,[sp,#248]; adrp x2,type; add x2,x2,#0x68; str x2,[sp,#248]; str x2,[sp,#232]; ret */
	{ "elsewhere",
	  { 0xf9007fe0, 0xb0000002, 0x9101a042, 0xf9007fe2, 0xf90077e2, 0xd65f03c0 },
	  6,
	  0,
	  0 },
	/* adrp x2,type; add x2,x2,#0x68; str x2,[sp,#240]; str w3,[sp,#244]; str x0,[sp,#248]; mov x1,x0; adrp x0,type;
	 * add x0,x0,#0x20; mov w1,#1; bl far; ret
	 */
	{ "overwritten",
	  { 0xb0000002, 0x9101a042, 0xf9007be2, 0xb900f7e3, 0xf9007fe0, 0xaa0003e1, 0xb0000000,
	    0x91008000, 0x52800021, 0x94000100, 0xd65f03c0 },
	  11,
	  0,
	  0 },
	/* adrp x2,type; add x2,x2,#0x68; str x2,[x4]; str x0,[x4,#8]!; ret */
	{ "the base moves",
	  { 0xb0000002, 0x9101a042, 0xf9000082, 0xf8008c80, 0xd65f03c0 },
	  5,
	  0,
	  0 },
	/* adrp x2,type; add x2,x2,#0x68; str x2,[x4]; st1 {v0.16b},[x5]; str x0,[x4,#8]; ret */
	{ "a store of another kind",
	  { 0xb0000002, 0x9101a042, 0xf9000082, 0x4c0070a0, 0xf9000480, 0xd65f03c0 },
	  6,
	  0,
	  0 },
	/* str x0,[sp,#64]; bl far; nop; ldr x1,[sp,#64]; adrp x0,type; add x0,x0,#0x20; bl far; ret */
	{ "no return",
	  { 0xf90023e0, 0x94000100, 0xd503201f, 0xf94023e1, 0xb0000000, 0x91008000, 0x94000100,
	    0xd65f03c0 },
	  8,
	  0,
	  0 },
};

static bool even(void *arg, uint64_t addr)
{
	(void)arg;
	return !(addr & 1);
}

static uint64_t pair_of(enum arch_id id, const uint8_t *code, size_t n, size_t from)
{
	struct arch *a CLEANUP(arch_freep) = NULL;

	assert_int_equal(arch_open(id, &a, NULL), 0);
	return arch_pair(a, code, n, CODE, CODE + from, even, NULL);
}

static void as_compiled(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint64_t is = pair_of(ARCH_AMD64, cases[i].code, cases[i].n, cases[i].from);

		if (is != cases[i].want)
			fail_msg("%s: 0x%llx", cases[i].name, (unsigned long long)is);
	}
	for (size_t i = 0; i < ARRAY_LEN(cases64); i++) {
		uint64_t is = pair_of(ARCH_ARM64, (const uint8_t *)cases64[i].code,
				      4 * cases64[i].n, 4 * cases64[i].from);

		if (is != cases64[i].want)
			fail_msg("arm64, %s: 0x%llx", cases64[i].name, (unsigned long long)is);
	}
}

/* Code that ends anywhere does no harm, and the same words say nothing on another machine. */
static void cut_short(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		for (size_t n = cases[i].from; n < cases[i].n; n++) {
			uint64_t is = pair_of(ARCH_AMD64, cases[i].code, n, cases[i].from);

			assert_true(!is || is == cases[i].want);
		}
		assert_int_equal(pair_of(ARCH_ARM64, cases[i].code, cases[i].n, 0), 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(cases64); i++)
		for (size_t n = 4 * cases64[i].from; n < 4 * cases64[i].n; n++) {
			uint64_t is = pair_of(ARCH_ARM64, (const uint8_t *)cases64[i].code, n,
					      4 * cases64[i].from);

			assert_true(!is || is == cases64[i].want);
		}
}

/* jmp to itself, and a web of branches. */
static void without_end(void **state)
{
	static const uint8_t self[] = { 0xeb, 0xfe };
	uint8_t web[64];

	(void)state;
	assert_int_equal(pair_of(ARCH_AMD64, self, sizeof(self), 0), 0);
	for (size_t i = 0; i < sizeof(web); i += 2) {
		web[i] = 0x74;
		web[i + 1] = (uint8_t)(i % 7 * 2 - 8);
	}
	assert_int_equal(pair_of(ARCH_AMD64, web, sizeof(web), 32), 0);
}

/* Sums of addresses must not overflow: an executable can claim that its code lies anywhere. */
static void far_away(void **state)
{
	static const uint8_t code[] = {
		0x48, 0x8d, 0x0d, 0xff, 0xff, 0xff, 0x7f, /* lea rcx, [rip + 2^31 - 1] */
		0x48, 0x89, 0x05, 0xff, 0xff, 0xff, 0x7f, /* mov [rip + 2^31 - 1], rax */
		0x48, 0x89, 0x05, 0xf9, 0xff, 0xff, 0x7f, /* mov [rip + 2^31 - 7], rax */
		0xc3,
	};
	static const uint64_t at[] = { 0, INT64_MAX - 0x7fffffff - sizeof(code), INT64_MAX - 14,
				       INT64_MAX - 0x80000010ull, UINT64_MAX - sizeof(code) };

	(void)state;
	for (uint64_t by = 0; by < 32; by++)
		for (size_t i = 0; i < ARRAY_LEN(at); i++) {
			struct arch *a CLEANUP(arch_freep) = NULL;

			assert_int_equal(arch_open(ARCH_AMD64, &a, NULL), 0);
			assert_int_equal(arch_pair(a, code, sizeof(code), at[i] - by, at[i] - by,
						   even, NULL),
					 0);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_compiled),
		cmocka_unit_test(cut_short),
		cmocka_unit_test(without_end),
		cmocka_unit_test(far_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
