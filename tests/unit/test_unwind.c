/* tests/unit/test_unwind.c - stacks of words, and what the tables say of each pc. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "go/runtime/unwind.h"

enum { SP = 0x1000, TOP = 1, SPWRITE = 2 };

/* pc 0x100: delta 16; 0x200: delta 0; 0x900: goexit; and so on. */
struct known {
	uint64_t pc;
	struct unwind_frame f;
};

struct book {
	const struct known *k;
	size_t n;
	uint64_t traps; /* bit i: the i-th call of look had trap set */
	unsigned looks;
};

static int look(void *arg, uint64_t pc, bool trap, enum func_id callee, struct unwind_frame *out)
{
	struct book *b = arg;

	(void)callee;
	b->traps |= (uint64_t)trap << b->looks++;
	for (size_t i = 0; i < b->n; i++) {
		if (b->k[i].pc != pc)
			continue;
		*out = b->k[i].f;
		out->cookie = (uint32_t)pc;
		return 0;
	}
	return -ENOENT;
}

static const struct known usual[] = {
	{ 0x100, { .delta = 16 } },
	{ 0x200, { .delta = 0 } },
	{ 0x300, { .delta = -8 } },
	{ 0x400, { .delta = 1 << 30 } },
	{ 0x500, { .flags = SPWRITE } },
	{ 0x600, { .id = FUNC_SIGPANIC } },
	{ 0x700, { .id = FUNC_ASYNCPREEMPT } },
	{ 0x800, { .id = FUNC_CGOCALLBACK, .flags = SPWRITE } },
	{ 0x900, { .id = FUNC_GOEXIT } },
	{ 0xa00, { .flags = TOP } },
};

struct result {
	uint32_t at[64];
	size_t n;
	enum unwind_end end;
	uint64_t traps;
};

static struct result run(enum arch_id arch, int minor, bool syscall, uint64_t pc,
			 const uint64_t *stack, size_t words)
{
	struct book b = { usual, sizeof(usual) / sizeof(usual[0]), 0, 0 };
	struct unwind u = { .arch = arch,
			    .minor = minor,
			    .pc = pc,
			    .sp = SP,
			    .syscall = syscall,
			    .stack = (const uint8_t *)stack,
			    .n = words * 8,
			    .look = look,
			    .arg = &b };
	unwind_cookies out = { 0 };
	struct result r = { .n = 0 };
	struct err e;

	assert_int_equal(unwind_stack(&u, &out, &r.end, &e), 0);
	assert_true(out.n <= 64);
	r.n = out.n;
	if (out.n)
		memcpy(r.at, out.at, out.n * sizeof(*out.at));
	r.traps = b.traps;
	vec_fini(&out);
	return r;
}

static void expect(const struct result *r, enum unwind_end end, size_t n, const uint32_t *pcs)
{
	assert_int_equal(r->end, end);
	assert_int_equal(r->n, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(r->at[i], pcs[i]);
}

static void follows_return_addresses(void **state)
{
	static const uint64_t stack[] = { 1, 2, 0x200, 0x100, 3, 4, 0x900, 5 };
	static const uint32_t want[] = { 0x100, 0x200, 0x100, 0x900 };
	struct result r = run(ARCH_AMD64, 27, false, 0x100, stack, 8);

	(void)state;
	expect(&r, UNWIND_WHOLE, 4, want);
}

static void ends_where_functions_are_marked(void **state)
{
	static const uint64_t stack[] = { 0xa00 };
	static const uint32_t want[] = { 0x200, 0xa00 };
	struct result r = run(ARCH_AMD64, 27, false, 0x200, stack, 1);

	(void)state;
	expect(&r, UNWIND_WHOLE, 2, want);
}

static void what_no_stack_has_is_broken(void **state)
{
	static const uint64_t unknown[] = { 0x123 }, zero[] = { 0 }, spwrite[] = { 0x500, 0x900 };
	static const uint32_t one[] = { 0x200 }, two[] = { 0x200, 0x500 }, neg[] = { 0x300 };
	struct result r;

	(void)state;
	r = run(ARCH_AMD64, 27, false, 0x200, unknown, 1);
	expect(&r, UNWIND_BROKEN, 1, one);
	r = run(ARCH_AMD64, 27, false, 0x200, zero, 1);
	expect(&r, UNWIND_BROKEN, 1, one);
	r = run(ARCH_AMD64, 27, false, 0x200, spwrite, 2);
	expect(&r, UNWIND_BROKEN, 2, two);
	r = run(ARCH_AMD64, 27, false, 0x300, unknown, 1);
	expect(&r, UNWIND_BROKEN, 1, neg);
	r = run(ARCH_AMD64, 27, false, 0x123, unknown, 1);
	expect(&r, UNWIND_BROKEN, 0, NULL);
}

static void bytes_that_end_are_a_cut(void **state)
{
	static const uint64_t stack[] = { 0x200, 0x100, 1 };
	static const uint32_t want[] = { 0x200, 0x200, 0x100 }, big[] = { 0x400 };
	struct result r = run(ARCH_AMD64, 27, false, 0x200, stack, 3);

	(void)state;
	expect(&r, UNWIND_CUT, 3, want);
	r = run(ARCH_AMD64, 27, false, 0x400, stack, 3);
	expect(&r, UNWIND_CUT, 1, big);
	r = run(ARCH_AMD64, 27, false, 0x200, NULL, 0);
	expect(&r, UNWIND_CUT, 1, want);
}

/* A system call's function changes sp, but the saved registers are from before that. */
static void the_leaf_of_a_system_call_may_write_sp(void **state)
{
	static const uint64_t stack[] = { 0x900 };
	static const uint32_t want[] = { 0x500, 0x900 }, cgo[] = { 0x800, 0x900 };
	struct result r = run(ARCH_AMD64, 27, true, 0x500, stack, 1);

	(void)state;
	expect(&r, UNWIND_WHOLE, 2, want);
	r = run(ARCH_AMD64, 27, false, 0x500, stack, 1);
	expect(&r, UNWIND_BROKEN, 1, want);
	r = run(ARCH_AMD64, 27, false, 0x800, stack, 1);
	expect(&r, UNWIND_WHOLE, 2, cgo);
}

/*
 * A function that a signal interrupted made no call. Before Go 1.21 that mattered for panics
 * only.
 */
static void what_was_interrupted_is_a_trap(void **state)
{
	static const uint64_t panics[] = { 0x200, 0x900 };
	struct result r = run(ARCH_AMD64, 27, false, 0x600, panics, 2);

	(void)state;
	assert_int_equal(r.traps, 1 << 1);
	assert_int_equal(run(ARCH_AMD64, 20, false, 0x600, panics, 2).traps, 1 << 1);
	assert_int_equal(run(ARCH_AMD64, 27, false, 0x700, panics, 2).traps, 1 << 1);
	assert_int_equal(run(ARCH_AMD64, 20, false, 0x700, panics, 2).traps, 0);
	assert_int_equal(run(ARCH_AMD64, -1, false, 0x700, panics, 2).traps, 1 << 1);
}

/* The return address is at sp, and the frame's size includes it. */
static void arm64_keeps_them_at_sp(void **state)
{
	static const uint64_t stack[] = { 0x100, 0, 0x900, 0 };
	static const uint32_t want[] = { 0x100, 0x100, 0x900 }, fresh[] = { 0x200 };
	struct result r = run(ARCH_ARM64, 27, false, 0x100, stack, 4);

	(void)state;
	expect(&r, UNWIND_WHOLE, 3, want);
	/* A goroutine that never ran is at its function's entry. */
	r = run(ARCH_ARM64, 27, false, 0x200, stack, 4);
	expect(&r, UNWIND_WHOLE, 1, fresh);
}

/* Whatever the words are, the walk ends, and within them. */
static void every_stack_ends(void **state)
{
	uint64_t stack[24], seed = 1;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		struct result r;

		for (size_t k = 0; k < 24; k++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			stack[k] = (seed >> 33) % 12 * 0x100;
		}
		r = run(i & 1 ? ARCH_ARM64 : ARCH_AMD64, 27, i & 2, stack[0], stack, 24);
		assert_true(r.n <= 2 * 24 + 2);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(follows_return_addresses),
		cmocka_unit_test(ends_where_functions_are_marked),
		cmocka_unit_test(what_no_stack_has_is_broken),
		cmocka_unit_test(bytes_that_end_are_a_cut),
		cmocka_unit_test(the_leaf_of_a_system_call_may_write_sp),
		cmocka_unit_test(what_was_interrupted_is_a_trap),
		cmocka_unit_test(arm64_keeps_them_at_sp),
		cmocka_unit_test(every_stack_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
