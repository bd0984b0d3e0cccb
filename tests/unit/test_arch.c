/* tests/unit/test_arch.c - the instruction decoders, on bytes as Go's compiler and linker wrote them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "arch/arch.h"
#include "arch/arm64_tls.h"

enum { ENTRY = 0x401000, INSNS = 16 };

struct decoded {
	struct insn at[INSNS];
	size_t n;
};

static struct decoded decode(enum arch_id id, const uint8_t *code, size_t n)
{
	struct arch *a CLEANUP(arch_freep) = NULL;
	struct decoded d = { .n = 0 };

	assert_int_equal(arch_open(id, &a, NULL), 0);
	for (size_t at = 0; at < n && d.n < INSNS; at += d.at[d.n++].len) {
		arch_decode(a, code + at, n - at, ENTRY + at, &d.at[d.n]);
		if (d.at[d.n].kind == INSN_BAD) {
			d.n++;
			break;
		}
	}
	return d;
}

#define CODE(...) ((const uint8_t[]){ __VA_ARGS__ }), sizeof((const uint8_t[]){ __VA_ARGS__ })
/* Little-endian words of AArch64. */
#define W(w) (w) & 0xff, (w) >> 8 & 0xff, (w) >> 16 & 0xff, (w) >> 24 & 0xff

static void assert_kinds(const struct decoded *d, const enum insn_kind *kinds, size_t n)
{
	assert_int_equal(d->n, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(d->at[i].kind, kinds[i]);
}
#define assert_insns(d, ...)                                        \
	assert_kinds(&(d), (const enum insn_kind[]){ __VA_ARGS__ }, \
		     sizeof((const enum insn_kind[]){ __VA_ARGS__ }) / sizeof(enum insn_kind))

static void amd64_small_frame(void **state)
{
	/* cmp 0x10(%r14),%rsp; jbe +4; push %rbp; mov %rsp,%rbp; ret */
	struct decoded d = decode(ARCH_AMD64, CODE(0x49, 0x3b, 0x66, 0x10, 0x76, 0x04, 0x55, 0x48,
						   0x89, 0xe5, 0xc3));

	(void)state;
	assert_insns(d, INSN_STACK_CMP, INSN_STACK_BRANCH, INSN_OTHER, INSN_OTHER, INSN_RET);
	assert_int_equal(d.at[1].target, ENTRY + 10);
	assert_int_equal(d.at[1].len, 2);
}

static void amd64_large_frame(void **state)
{
	/* lea -0x388(%rsp),%r12; cmp 0x10(%r14),%r12; jbe */
	struct decoded d = decode(ARCH_AMD64,
				  CODE(0x4c, 0x8d, 0xa4, 0x24, 0x78, 0xfc, 0xff, 0xff, 0x4d, 0x3b,
				       0x66, 0x10, 0x0f, 0x86, 0x8b, 0, 0, 0));

	(void)state;
	assert_insns(d, INSN_OTHER, INSN_STACK_CMP, INSN_STACK_BRANCH);
}

static void amd64_huge_frame(void **state)
{
	/* mov %rsp,%r12; sub $0x18640,%r12; jb; cmp 0x10(%r14),%r12; jbe */
	struct decoded d = decode(ARCH_AMD64,
				  CODE(0x49, 0x89, 0xe4, 0x49, 0x81, 0xec, 0x40, 0x86, 0x01, 0x00,
				       0x72, 0x70, 0x4d, 0x3b, 0x66, 0x10, 0x76, 0x6a));

	(void)state;
	assert_insns(d, INSN_OTHER, INSN_OTHER, INSN_BRANCH, INSN_STACK_CMP, INSN_STACK_BRANCH);
	assert_int_equal(d.at[2].target, d.at[4].target);
}

static void amd64_g_in_tls(void **state)
{
	/* go1.16: mov %fs:-8,%rcx; cmp 0x10(%rcx),%rsp; jbe */
	struct decoded d = decode(ARCH_AMD64,
				  CODE(0x64, 0x48, 0x8b, 0x0c, 0x25, 0xf8, 0xff, 0xff, 0xff, 0x48,
				       0x3b, 0x61, 0x10, 0x0f, 0x86, 0x4d, 0x0a, 0, 0));
	/* PIE: mov $-8,%rcx; mov %fs:(%rcx),%rcx; cmp 0x10(%rcx),%rsp; jbe */
	struct decoded p = decode(ARCH_AMD64,
				  CODE(0x48, 0xc7, 0xc1, 0xf8, 0xff, 0xff, 0xff, 0x64, 0x48, 0x8b,
				       0x09, 0x48, 0x3b, 0x61, 0x10, 0x0f, 0x86, 0x6b, 0x0a, 0, 0));

	(void)state;
	assert_insns(d, INSN_OTHER, INSN_STACK_CMP, INSN_STACK_BRANCH);
	assert_insns(p, INSN_OTHER, INSN_OTHER, INSN_STACK_CMP, INSN_STACK_BRANCH);
}

static void amd64_huge_frame_of_go116(void **state)
{
	/* mov %fs:-8,%rcx; mov 0x10(%rcx),%rsi; cmp $stackPreempt,%rsi; je; lea 0x3a0(%rsp),%rax;
	 * sub %rsi,%rax; cmp $0x189e8,%rax; jbe */
	struct decoded d = decode(ARCH_AMD64,
				  CODE(0x64, 0x48, 0x8b, 0x0c, 0x25, 0xf8, 0xff, 0xff, 0xff, 0x48,
				       0x8b, 0x71, 0x10, 0x48, 0x81, 0xfe, 0xde, 0xfa, 0xff, 0xff,
				       0x0f, 0x84, 0xb3, 0, 0, 0, 0x48, 0x8d, 0x84, 0x24, 0xa0, 3,
				       0, 0, 0x48, 0x29, 0xf0, 0x48, 0x3d, 0xe8, 0x89, 1, 0, 0x0f,
				       0x86, 0x9c, 0, 0, 0));

	(void)state;
	assert_insns(d, INSN_OTHER, INSN_OTHER, INSN_OTHER, INSN_BRANCH, INSN_OTHER, INSN_OTHER,
		     INSN_STACK_CMP, INSN_STACK_BRANCH);
	assert_int_equal(d.at[3].target, d.at[7].target);
}

/* A compare of sp with anything other than g's guard is not a stack check. */
static void amd64_other_compares(void **state)
{
	/* cmp 0x10(%rcx),%rsp; jbe: rcx is not known to hold g */
	struct decoded a = decode(ARCH_AMD64, CODE(0x48, 0x3b, 0x61, 0x10, 0x76, 0x04));
	/* cmp 0x20(%r14),%rsp; jbe: not the guard */
	struct decoded b = decode(ARCH_AMD64, CODE(0x49, 0x3b, 0x66, 0x20, 0x76, 0x04));
	/* mov %rax,%r14; cmp 0x10(%r14),%rsp; jbe: r14 is not g any more */
	struct decoded c = decode(ARCH_AMD64,
				  CODE(0x49, 0x89, 0xc6, 0x49, 0x3b, 0x66, 0x10, 0x76, 0x04));
	/* cmp 0x10(%r14),%rsp; ja: the wrong condition */
	struct decoded d = decode(ARCH_AMD64, CODE(0x49, 0x3b, 0x66, 0x10, 0x77, 0x04));
	/* cmp 0x10(%r14),%rsp; xor %eax,%eax; jbe: other flags */
	struct decoded f = decode(ARCH_AMD64, CODE(0x49, 0x3b, 0x66, 0x10, 0x31, 0xc0, 0x76, 0x04));

	(void)state;
	assert_insns(a, INSN_OTHER, INSN_BRANCH);
	assert_insns(b, INSN_OTHER, INSN_BRANCH);
	assert_insns(c, INSN_OTHER, INSN_OTHER, INSN_BRANCH);
	assert_insns(d, INSN_STACK_CMP, INSN_BRANCH);
	assert_insns(f, INSN_STACK_CMP, INSN_OTHER, INSN_BRANCH);
}

static void amd64_static_operands(void **state)
{
	/* mov 0x100(%rip),%rcx; movl $1,0x10(%rip); lea 0x20(%rip),%rax; call +0; jmp *%rax */
	struct decoded d = decode(ARCH_AMD64, CODE(0x48, 0x8b, 0x0d, 0, 1, 0, 0, 0xc7, 0x05, 0x10,
						   0, 0, 0, 1, 0, 0, 0, 0x48, 0x8d, 0x05, 0x20, 0,
						   0, 0, 0xe8, 0, 0, 0, 0, 0xff, 0xe0));

	(void)state;
	assert_insns(d, INSN_OTHER, INSN_OTHER, INSN_OTHER, INSN_CALL, INSN_BRANCH);
	assert_int_equal(d.at[0].mem_addr, ENTRY + 7 + 0x100);
	assert_int_equal(d.at[0].mem_width, 8);
	assert_int_equal(d.at[0].mem_write, 0);
	assert_int_equal(d.at[1].mem_addr, ENTRY + 17 + 0x10);
	assert_int_equal(d.at[1].mem_width, 4);
	assert_int_equal(d.at[1].mem_write, 1);
	assert_int_equal(d.at[2].mem_addr, ENTRY + 24 + 0x20);
	assert_int_equal(d.at[2].mem_width, 0);
	assert_int_equal(d.at[3].target, ENTRY + 29);
	assert_int_equal(d.at[4].target, 0);
}

static void amd64_bad_bytes(void **state)
{
	struct decoded d = decode(ARCH_AMD64, CODE(0x90, 0x06));
	/* The last instruction is cut. */
	struct decoded cut = decode(ARCH_AMD64, CODE(0x90, 0x0f, 0x86, 0x00));

	(void)state;
	assert_insns(d, INSN_OTHER, INSN_BAD);
	assert_int_equal(d.at[1].len, 0);
	assert_insns(cut, INSN_OTHER, INSN_BAD);
}

static void arm64_stack_checks(void **state)
{
	/* ldr x16,[x28,#16]; cmp sp,x16; b.ls */
	struct decoded small = decode(ARCH_ARM64,
				      CODE(W(0xf9400b90), W(0xeb3063ff), W(0x54000d69)));
	/* ldr x1,[x28,#16]; sub x2,sp,#48; cmp x2,x1; b.ls */
	struct decoded large = decode(ARCH_ARM64, CODE(W(0xf9400b81), W(0xd100c3e2), W(0xeb01005f),
						       W(0x54004909)));
	/* ldr x16; mov x27; movk x27; subs x17,sp,x27; b.lo; cmp x17,x16; b.ls */
	struct decoded huge = decode(ARCH_ARM64, CODE(W(0xf9400b90), W(0xd290ca1b), W(0xf2a0003b),
						      W(0xeb3b63f1), W(0x54000583), W(0xeb10023f),
						      W(0x54000549)));

	(void)state;
	assert_insns(small, INSN_OTHER, INSN_STACK_CMP, INSN_STACK_BRANCH);
	assert_int_equal(small.at[2].target, ENTRY + 8 + 107 * 4);
	assert_insns(large, INSN_OTHER, INSN_OTHER, INSN_STACK_CMP, INSN_STACK_BRANCH);
	assert_insns(huge, INSN_OTHER, INSN_OTHER, INSN_OTHER, INSN_OTHER, INSN_BRANCH,
		     INSN_STACK_CMP, INSN_STACK_BRANCH);
	assert_int_equal(huge.at[4].target, huge.at[6].target);
}

static void arm64_huge_frame_of_go116(void **state)
{
	struct decoded d = decode(ARCH_ARM64,
				  CODE(W(0xf9400b81), W(0x9280a43b), W(0xeb1b003f), W(0x540006e0),
				       W(0x910e83e2), W(0xcb010042), W(0xd2913e03), W(0xf2a00023),
				       W(0xeb03005f), W(0x54000629)));

	(void)state;
	assert_insns(d, INSN_OTHER, INSN_OTHER, INSN_OTHER, INSN_BRANCH, INSN_OTHER, INSN_OTHER,
		     INSN_OTHER, INSN_OTHER, INSN_STACK_CMP, INSN_STACK_BRANCH);
	assert_int_equal(d.at[3].target, d.at[9].target);
}

static void arm64_static_operands(void **state)
{
	/* adrp x4,page; add x4,x4,#88; ldar x4,[x4]; adrp x1; ldr w2,[x1,#4]; strb w2,[x1,#1] */
	struct decoded d = decode(ARCH_ARM64, CODE(W(0x90000804), W(0x91016084), W(0xc8dffc84),
						   W(0x90000801), W(0xb9400422), W(0x39000422)));
	uint64_t page = ENTRY + (0x100ULL << 12);

	(void)state;
	assert_int_equal(d.n, 6);
	assert_int_equal(d.at[1].mem_addr, page + 88);
	assert_int_equal(d.at[1].mem_width, 0);
	assert_int_equal(d.at[2].mem_addr, page + 88);
	assert_int_equal(d.at[2].mem_width, 8);
	assert_int_equal(d.at[2].mem_write, 0);
	assert_int_equal(d.at[4].mem_addr, page + 4);
	assert_int_equal(d.at[4].mem_width, 4);
	assert_int_equal(d.at[5].mem_addr, page + 1);
	assert_int_equal(d.at[5].mem_width, 1);
	assert_int_equal(d.at[5].mem_write, 1);
}

/* Fields by loads, and by addresses that are made for atomics. */
static void arm64_fields(void **state)
{
	/* ldr x1,[x0,#0x90]; add x6,x0,#0x90; add x6,x28,#0x98; casal w27,w8,[x6]; ldr x1,[x28,#0x10] */
	struct decoded d = decode(ARCH_ARM64, CODE(W(0xf9404801), W(0x91024006), W(0x91026386),
						   W(0x88fbfcc8), W(0xf9400b81)));
	/* add x6,x0,#0x90,lsl #12; add x6,x0,x1; sub x6,x0,#0x90; add x6,sp,#0x90; adrp x1; add x1,x1,#0x90 */
	struct decoded no = decode(ARCH_ARM64, CODE(W(0x91424006), W(0x8b010006), W(0xd1024006),
						    W(0x910243e6), W(0x90000801), W(0x91024021)));

	(void)state;
	assert_int_equal(d.n, 5);
	assert_int_equal(d.at[0].base, BASE_OTHER);
	assert_int_equal(d.at[1].base, BASE_OTHER);
	assert_int_equal(d.at[1].off, 0x90);
	assert_int_equal(d.at[1].pair, 0);
	assert_int_equal(d.at[2].base, BASE_G);
	assert_int_equal(d.at[2].off, 0x98);
	assert_int_equal(d.at[3].base, BASE_NONE);
	assert_int_equal(d.at[4].base, BASE_G);
	assert_int_equal(no.n, 6);
	for (size_t i = 0; i < no.n; i++)
		assert_int_equal(no.at[i].base, BASE_NONE);
}

/* The kernel refuses halves of exclusive accesses, exceptions and most hints; udf is no code. */
static void arm64_never_probed(void **state)
{
	/* ldaxr w0,[x6]; stlxr w1,w2,[x6]; ldxp x0,x1,[x2]; svc #0; brk #1; yield; udf #0 */
	struct decoded d = decode(ARCH_ARM64,
				  CODE(W(0x885ffcc0), W(0x8801fcc2), W(0xc87f0440), W(0xd4000001),
				       W(0xd4200020), W(0xd503203f), W(0x00000000)));
	/* ldar w0,[x6]; stlr w0,[x6]; casal w27,w8,[x6]; nop; mrs x0,tpidr_el0; dmb ish; b.ls */
	struct decoded may = decode(ARCH_ARM64,
				    CODE(W(0x88dffcc0), W(0x889ffcc0), W(0x88fbfcc8), W(0xd503201f),
					 W(0xd53bd040), W(0xd5033bbf), W(0x54000d69)));

	(void)state;
	assert_int_equal(d.n, 7);
	assert_int_equal(may.n, 7);
	for (size_t i = 0; i < d.n; i++) {
		assert_int_equal(d.at[i].no_probe, 1);
		assert_int_equal(may.at[i].no_probe, 0);
	}
}

static void arm64_control(void **state)
{
	/* bl +8; b +4; br x1; ret; udf #0; a branch of no known kind */
	struct decoded d = decode(ARCH_ARM64, CODE(W(0x94000002), W(0x14000001), W(0xd61f0020),
						   W(0xd65f03c0), W(0x00000000), W(0x54000010)));

	(void)state;
	assert_insns(d, INSN_CALL, INSN_BRANCH, INSN_BRANCH, INSN_RET, INSN_BRANCH, INSN_BAD);
	assert_int_equal(d.at[4].target, 0);
	assert_int_equal(d.at[5].len, 0);
	assert_int_equal(d.at[0].target, ENTRY + 8);
	assert_int_equal(d.at[1].target, ENTRY + 8);
	assert_int_equal(d.at[2].target, 0);
}

/* casal w27,w2,[x5]: it transfers no control, but may have written anything. */
static void arm64_unknown_atomics(void **state)
{
	/* ldr x16,[x28,#16]; casal; cmp sp,x16; b.ls */
	struct decoded d = decode(ARCH_ARM64,
				  CODE(W(0xf9400b90), W(0x88fbfca2), W(0xeb3063ff), W(0x54000d69)));

	(void)state;
	assert_insns(d, INSN_OTHER, INSN_OTHER, INSN_OTHER, INSN_BRANCH);
	assert_int_equal(d.at[1].len, 4);
	assert_int_equal(d.at[1].arg_write, 1);
}

/* The beginning of runtime.casgstatus, which has no stack check. */
static void arm64_probed(void **state)
{
	/*
	 * str x30,[sp,#-112]!; stur x29,[sp,#-8]; sub x29,sp,#8; str x0,[sp,#120]; str w1,[sp,#128];
	 * tbnz w1,#12; then mov x1,x3; ldr w2,[x3]; ldr x3,[x0],#8; nop
	 */
	struct decoded d = decode(ARCH_ARM64,
				  CODE(W(0xf8190ffe), W(0xf81f83fd), W(0xd10023fd), W(0xf9003fe0),
				       W(0xb90083e1), W(0x37600081), W(0xaa0303e1), W(0xb9400062),
				       W(0xf8408403), W(0xd503201f)));

	(void)state;
	assert_int_equal(d.n, 10);
	for (size_t i = 0; i < d.n; i++) {
		assert_int_equal(d.at[i].sets_frame, i == 2);
		assert_int_equal(d.at[i].arg_write, i >= 6 && i <= 8);
		assert_int_equal(d.at[i].emulated, i == 5);
	}
}

static bool load_g(const uint8_t *code, size_t n, struct arm64_load_g *out)
{
	return arm64_load_g(code, n, 0x97850, out);
}

/* runtime.load_g of Go 1.27 and 1.18 (PIE), and of a library. */
static void arm64_thread_local_g(void **state)
{
	/* adrp x27; ldrsb x0,[x27,#3396]; cbz; mrs x0; mov x27,#16; ldr x28,[x0,x27]; ret */
	static const uint8_t plain[] = { W(0xb000067b), W(0x39b51360), W(0xb4000080), W(0xd53bd040),
					 W(0xd280021b), W(0xf87b681c), W(0xd65f03c0) };
	/* adrp; add x27,x27,#0x40; ldrsb x0,[x27]; cbz; mrs; movz x27,#1,lsl #16; movk x27,#16; ldr */
	static const uint8_t pie[] = { W(0xb000045b), W(0x9101037b), W(0x39800360), W(0xb40000a0),
				       W(0xd53bd040), W(0xd2a0003b), W(0xf280021b), W(0xf87b681c) };
	/* adrp; ldrsb; cbz; mrs; adrp x27,page; ldr x27,[x27,#0x40]; ldr x28,[x0,x27] */
	static const uint8_t lib[] = { W(0xb000067b), W(0x39b51360), W(0xb4000080), W(0xd53bd040),
				       W(0x9000067b), W(0xf940237b), W(0xf87b681c) };
	/* The index register was made before the thread pointer was read: it is something else. */
	static const uint8_t other[] = { W(0xb000067b), W(0x39b51360), W(0xd280021b), W(0xd53bd040),
					 W(0xf87b681c) };
	struct arm64_load_g l;

	(void)state;
	assert_true(load_g(plain, sizeof(plain), &l));
	assert_int_equal(l.iscgo, 0x164000 + 3396);
	assert_int_equal(l.off, 16);
	assert_int_equal(l.got, 0);
	assert_true(load_g(pie, sizeof(pie), &l));
	assert_int_equal(l.iscgo, 0x120040);
	assert_int_equal(l.off, 0x10010);
	assert_true(load_g(lib, sizeof(lib), &l));
	assert_int_equal(l.got, 0x163040);
	assert_false(load_g(other, sizeof(other), &l));
	for (size_t n = 0; n < 6 * sizeof(uint32_t); n++)
		assert_false(load_g(plain, n, &l));
}

/* The contents of registers must be forgotten when decoding continues elsewhere in the text. */
static void forgets_when_the_line_breaks(void **state)
{
	static const uint8_t tls[] = { 0x64, 0x48, 0x8b, 0x0c, 0x25, 0xf8, 0xff, 0xff, 0xff };
	static const uint8_t cmp[] = { 0x48, 0x3b, 0x61, 0x10 };
	struct arch *a CLEANUP(arch_freep) = NULL;
	struct insn in;

	(void)state;
	assert_int_equal(arch_open(ARCH_AMD64, &a, NULL), 0);
	arch_decode(a, tls, sizeof(tls), ENTRY, &in);
	arch_decode(a, cmp, sizeof(cmp), ENTRY + sizeof(tls), &in);
	assert_int_equal(in.kind, INSN_STACK_CMP);
	arch_decode(a, tls, sizeof(tls), ENTRY, &in);
	arch_decode(a, cmp, sizeof(cmp), ENTRY + 0x100, &in);
	assert_int_equal(in.kind, INSN_OTHER);
}

static void unknown_machine(void **state)
{
	struct arch *a = NULL;
	struct err e = { "" };

	(void)state;
	assert_int_equal(arch_open((enum arch_id)9, &a, &e), -ENOTSUP);
	assert_null(a);
	assert_non_null(strstr(e.msg, "9"));
}

/* The compares that tell one case of a choice from another. */
static void choices(void **state)
{
	/* cmp $3,%rcx; jne +0; je +0; jbe +0; jmp +0; cmpb $0,0x10(%rip) */
	struct decoded x = decode(ARCH_AMD64, CODE(0x48, 0x83, 0xf9, 0x03, 0x75, 0, 0x74, 0, 0x76,
						   0, 0xeb, 0, 0x80, 0x3d, 0x10, 0, 0, 0, 0));
	/* cmp x1,#3; b.ne +4; b.eq +4; b +4; cbz x0,+4; ldp x0,x1,[x0] after adrp x0,#0 */
	struct decoded a = decode(ARCH_ARM64,
				  CODE(W(0xf1000c3f), W(0x54000021), W(0x54000020), W(0x14000001),
				       W(0xb4000020), W(0x90000000), W(0xa9400400)));

	(void)state;
	assert_true(x.at[0].cmp && x.at[0].cmp_imm == 3);
	assert_int_equal(x.at[1].cond, COND_NE);
	assert_int_equal(x.at[1].target, ENTRY + 6);
	assert_int_equal(x.at[2].cond, COND_EQ);
	assert_int_equal(x.at[3].cond, COND_OTHER);
	assert_int_equal(x.at[4].cond, COND_NONE);
	assert_int_equal(x.at[5].mem_width, 1);
	assert_true(a.at[0].cmp && a.at[0].cmp_imm == 3);
	assert_int_equal(a.at[1].cond, COND_NE);
	assert_int_equal(a.at[1].target, ENTRY + 8);
	assert_int_equal(a.at[2].cond, COND_EQ);
	assert_int_equal(a.at[3].cond, COND_NONE);
	assert_int_equal(a.at[4].cond, COND_OTHER);
	assert_int_equal(a.at[6].mem_addr, ENTRY);
	assert_int_equal(a.at[6].mem_width, 16);
	assert_int_equal(a.at[6].mem_write, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(amd64_small_frame),
		cmocka_unit_test(amd64_large_frame),
		cmocka_unit_test(amd64_huge_frame),
		cmocka_unit_test(amd64_g_in_tls),
		cmocka_unit_test(amd64_huge_frame_of_go116),
		cmocka_unit_test(amd64_other_compares),
		cmocka_unit_test(amd64_static_operands),
		cmocka_unit_test(amd64_bad_bytes),
		cmocka_unit_test(arm64_stack_checks),
		cmocka_unit_test(arm64_huge_frame_of_go116),
		cmocka_unit_test(arm64_static_operands),
		cmocka_unit_test(arm64_fields),
		cmocka_unit_test(arm64_never_probed),
		cmocka_unit_test(arm64_control),
		cmocka_unit_test(arm64_unknown_atomics),
		cmocka_unit_test(arm64_probed),
		cmocka_unit_test(arm64_thread_local_g),
		cmocka_unit_test(forgets_when_the_line_breaks),
		cmocka_unit_test(unknown_machine),
		cmocka_unit_test(choices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
