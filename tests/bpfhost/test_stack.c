/*
 * tests/bpfhost/test_stack.c - the BPF-side stack walk by frame pointers, over stacks made by
 * hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define GPB_HOST
#include "go/stack.bpf.h"

#include "stacks.h"

static int reset(void **state)
{
	(void)state;
	stacks_reset();
	return 0;
}

static uint64_t at(size_t word)
{
	return STACK + 8 * word;
}

/* A frame record at @word: caller's record at @next (0: none), return address @ret. */
static void frame(size_t word, size_t next, uint64_t ret)
{
	stack_words[word] = next ? at(next) : 0;
	stack_words[word + 1] = ret;
}

static void run(uint64_t g, uint64_t pc, uint64_t sp, uint64_t bp, int delta)
{
	struct regs r = { .pc = pc, .sp = sp, .bp = bp };

	walk_user(&walk, &st, &target, g, &r, delta);
}

static void expect(size_t n, const uint64_t *pcs)
{
	assert_int_equal(st.nfirst + st.nsecond, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(st.pc[i], pcs[i]);
}

/* bp belongs to the leaf: the chain is complete, and nothing is inserted. */
static void own_frame_pointer(void **state)
{
	(void)state;
	frame(10, 20, TEXT + 0x100);
	frame(20, 0, TEXT + 0x200);
	run(G, TEXT + 0x50, at(4), at(10), 8 * 7);
	expect(3, (uint64_t[]){ TEXT + 0x51, TEXT + 0x100, TEXT + 0x200 });
}

/* A leaf without a frame: the return address lies at sp, and bp is the caller's. */
static void frameless_leaf_keeps_its_caller(void **state)
{
	(void)state;
	stack_words[9] = TEXT + 0x300;
	frame(10, 0, TEXT + 0x200);
	run(G, TEXT + 0x50, at(9), at(10), 0);
	expect(3, (uint64_t[]){ TEXT + 0x51, TEXT + 0x300, TEXT + 0x200 });
}

/* Between push %rbp and mov %rsp,%rbp: the delta is 8 already, and bp is still the caller's. */
static void half_a_prologue(void **state)
{
	(void)state;
	stack_words[8] = at(10);
	stack_words[9] = TEXT + 0x300;
	frame(10, 0, TEXT + 0x200);
	run(G, TEXT + 0x50, at(8), at(10), 8);
	expect(3, (uint64_t[]){ TEXT + 0x51, TEXT + 0x300, TEXT + 0x200 });
}

static void senseless_return_address_is_counted(void **state)
{
	(void)state;
	stack_words[9] = 0xdeadbeef;
	run(G, TEXT + 0x50, at(9), 0, 0);
	assert_true(st.flags & GPB_STACK_CALLER);
	expect(1, (uint64_t[]){ TEXT + 0x51 });
}

/* A chain that loops, goes down, leaves the stack or the text, or is not aligned, ends there. */
static void garbage_chains_end(void **state)
{
	static const struct {
		uint64_t next, ret;
	} bad[] = {
		{ STACK + 80, TEXT + 0x200 },	     /* itself */
		{ STACK + 8, TEXT + 0x200 },	     /* downwards */
		{ STACK + 81, TEXT + 0x200 },	     /* not aligned */
		{ STACK + 8 * WORDS, TEXT + 0x200 }, /* off the stack */
		{ 0xffffffffffffffffull, TEXT + 0x200 },
		{ 0, TEXT + 0x200 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		st = (struct gpb_stack){};
		stack_words[10] = bad[i].next;
		stack_words[11] = bad[i].ret;
		run(G, TEXT + 0x50, at(9), at(10), 16);
		expect(2, (uint64_t[]){ TEXT + 0x51, TEXT + 0x200 });
	}
	st = (struct gpb_stack){};
	stack_words[11] = TEXT_END;
	run(G, TEXT + 0x50, at(9), at(10), 16);
	expect(1, (uint64_t[]){ TEXT + 0x51 });
}

static void deep_stacks_are_cut_and_say_so(void **state)
{
	(void)state;
	for (size_t i = 0; i < 300; i++)
		frame(10 + 2 * i, 12 + 2 * i, TEXT + 0x200);
	run(G, TEXT + 0x50, at(9), at(10), 16);
	assert_true(st.flags & GPB_STACK_CUT);
	assert_int_equal(st.nfirst, GPB_MAX_USER);
}

/*
 * The stub of the write barrier is called without a frame and calls another function: there are
 * two return addresses.
 */
static void stub_keeps_its_caller(void **state)
{
	(void)state;
	frame(10, 20, TEXT + 0xa10);
	stack_words[12] = TEXT + 0x300;
	frame(20, 0, TEXT + 0x200);
	run(G, TEXT + 0x50, at(4), at(10), 8 * 7);
	expect(4, (uint64_t[]){ TEXT + 0x51, TEXT + 0xa10, TEXT + 0x300, TEXT + 0x200 });
}

static void system_stack_gives_two_segments(void **state)
{
	(void)state;
	/*
	 * On g0 there is one frame, called by systemstack, whose bp leads to the goroutine's
	 * stack.
	 */
	stack0_words[10] = at(100);
	stack0_words[11] = TEXT + 0x800;
	g_words[3] = at(90); /* sched.sp: systemstack's own frame, bp == sp (Go 1.21+) */
	g_words[4] = TEXT + 0x810;
	g_words[5] = at(90);
	frame(90, 100, TEXT + 0x600);
	frame(100, 0, TEXT + 0x700);
	run(G0, TEXT + 0x50, STACK0 + 8 * 4, STACK0 + 8 * 10, 8 * 7);
	assert_int_equal(st.nfirst, 2);
	assert_int_equal(st.nsecond, 3);
	expect(5,
	       (uint64_t[]){ TEXT + 0x51, TEXT + 0x800, TEXT + 0x810, TEXT + 0x600, TEXT + 0x700 });
}

/* Up to Go 1.20 systemstack has no frame: its caller is at sched.sp. */
static void frameless_systemstack(void **state)
{
	(void)state;
	stack0_words[10] = at(100);
	stack0_words[11] = TEXT + 0x800;
	g_words[3] = at(90);
	g_words[4] = TEXT + 0x810;
	g_words[5] = at(100);
	stack_words[90] = TEXT + 0x600;
	frame(100, 0, TEXT + 0x700);
	run(G0, TEXT + 0x50, STACK0 + 8 * 4, STACK0 + 8 * 10, 8 * 7);
	expect(5,
	       (uint64_t[]){ TEXT + 0x51, TEXT + 0x800, TEXT + 0x810, TEXT + 0x600, TEXT + 0x700 });
}

/* A plugin's code counts as Go code, and what lies between the files does not. */
static void plugins_are_text(void **state)
{
	(void)state;
	assert_true(in_text(&target, TEXT) && !in_text(&target, TEXT_END));
	assert_true(in_text(&target, PLUGIN) && in_text(&target, PLUGIN_END - 1));
	assert_true(!in_text(&target, PLUGIN - 1) && !in_text(&target, PLUGIN_END));
	assert_ptr_equal(image_at(&target, TEXT + 1), &target.image[0]);
	assert_ptr_equal(image_at(&target, PLUGIN + 1), &target.image[1]);
	assert_ptr_equal(image_at(&target, 1), &target.image[0]);
}

static void mcall_ends_the_stack(void **state)
{
	(void)state;
	stack0_words[10] = STACK0 + 8 * 20;
	stack0_words[11] = TEXT + 0x910;
	stack0_words[20] = 0;
	stack0_words[21] = TEXT + 0x100;
	m_words[1] = 0;
	run(G0, TEXT + 0x50, STACK0 + 8 * 4, STACK0 + 8 * 10, 8 * 7);
	expect(2, (uint64_t[]){ TEXT + 0x51, TEXT + 0x910 });
}

/*
 * newstack, on g0, is copying the goroutine's stack. Both copies have frames at words 100, 110
 * and 120. In the copy that g.stack names, @adjusted of the frame pointers lead to frames of that
 * copy.
 */
static void while_moving(size_t adjusted, int swapped)
{
	static const size_t word[] = { 100, 110, 120 };
	uint64_t *from = &g_words[5];

	stacks_reset();
	if (!swapped) {
		g_words[0] = OLD_STACK;
		g_words[1] = OLD_STACK + sizeof(old_words);
	}
	stack0_words[10] = 0;
	stack0_words[11] = TEXT + 0x800;
	g_words[3] = (swapped ? STACK : OLD_STACK) + 8 * 90;
	g_words[4] = TEXT + 0x500;
	stack_words[90] = old_words[90] = TEXT + 0x600;
	g_words[9] = 0x1000 | 8; /* _Gcopystack, and being scanned */
	for (size_t i = 0; i < 3; i++) {
		*from = (i < adjusted ? STACK : OLD_STACK) + 8 * word[i];
		from = &stack_words[word[i]];
		old_words[word[i]] = i < 2 ? OLD_STACK + 8 * word[i + 1] : 0;
		stack_words[word[i] + 1] = old_words[word[i] + 1] = TEXT + 0x700 + i;
	}
	*from = 0;
	run(G0, TEXT + 0x50, STACK0 + 8 * 4, STACK0 + 8 * 10, 8 * 7);
}

static void stack_that_is_moved_is_whole(void **state)
{
	static const uint64_t whole[] = { TEXT + 0x51,	TEXT + 0x800, TEXT + 0x500, TEXT + 0x600,
					  TEXT + 0x700, TEXT + 0x701, TEXT + 0x702 };

	(void)state;
	for (size_t adjusted = 0; adjusted <= 3; adjusted++) {
		while_moving(adjusted, 1);
		expect(7, whole);
	}
	while_moving(0, 0);
	expect(7, whole);
	while_moving(1, 0);
	expect(7, whole);
	assert_int_equal(st.flags, 0);
}

/*
 * For a stack that is not being moved, a pointer that leads elsewhere ends the walk; and a moved
 * one is not believed for ever.
 */
static void stack_that_is_not_moved_ends_at_its_bounds(void **state)
{
	(void)state;
	while_moving(1, 1);
	g_words[9] = 2;
	st = (struct gpb_stack){};
	run(G0, TEXT + 0x50, STACK0 + 8 * 4, STACK0 + 8 * 10, 8 * 7);
	assert_int_equal(st.nfirst + st.nsecond, 5);
	while_moving(1, 1);
	old_words[110] = STACK + 8 * 100;
	st = (struct gpb_stack){};
	run(G0, TEXT + 0x50, STACK0 + 8 * 4, STACK0 + 8 * 10, 8 * 7);
	assert_in_range(st.nfirst + st.nsecond, 6, 8);
}

static void vdso_goes_to_the_go_caller(void **state)
{
	(void)state;
	m_words[3] = at(50);
	m_words[4] = TEXT + 0x400;
	stack_words[48] = at(60);
	stack_words[49] = TEXT + 0x400;
	frame(60, 0, TEXT + 0x500);
	run(G, 0x7fff00000123ull, STACK0, 0x1234, 0);
	expect(2, (uint64_t[]){ TEXT + 0x400, TEXT + 0x500 });
	assert_int_equal(st.flags, 0);
}

static void c_code_goes_to_the_go_caller(void **state)
{
	(void)state;
	m_words[2] = 1;
	g_words[6] = at(50);
	g_words[7] = TEXT + 0x400;
	g_words[8] = at(60);
	frame(60, 0, TEXT + 0x500);
	run(G0, 0x7f1234560000ull, STACK0, 0x1234, 0);
	expect(2, (uint64_t[]){ TEXT + 0x400, TEXT + 0x500 });
}

static void outside_of_go_is_told(void **state)
{
	(void)state;
	m_words[6] = 5; /* len(preemptoff) */
	run(G, 0x7f1234560000ull, STACK0, 0, 0);
	assert_int_equal(st.flags, GPB_STACK_OUTSIDE | GPB_STACK_GC);
	expect(1, (uint64_t[]){ 0x7f1234560001ull });
	st = (struct gpb_stack){};
	run(0, 0x7f1234560000ull, STACK0, 0, 0);
	assert_int_equal(st.flags, GPB_STACK_NO_G);
}

/* bp lies inside the stack's bounds, but the page is not there. */
static void unreadable_stack_is_counted(void **state)
{
	(void)state;
	g_words[1] = STACK + 2 * sizeof(stack_words);
	run(G, TEXT + 0x50, at(9), STACK + sizeof(stack_words) + 64, 0);
	assert_true(st.flags & GPB_STACK_FAULT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(own_frame_pointer, reset),
		cmocka_unit_test_setup(frameless_leaf_keeps_its_caller, reset),
		cmocka_unit_test_setup(half_a_prologue, reset),
		cmocka_unit_test_setup(senseless_return_address_is_counted, reset),
		cmocka_unit_test_setup(garbage_chains_end, reset),
		cmocka_unit_test_setup(deep_stacks_are_cut_and_say_so, reset),
		cmocka_unit_test_setup(stub_keeps_its_caller, reset),
		cmocka_unit_test_setup(system_stack_gives_two_segments, reset),
		cmocka_unit_test_setup(frameless_systemstack, reset),
		cmocka_unit_test_setup(plugins_are_text, reset),
		cmocka_unit_test_setup(mcall_ends_the_stack, reset),
		cmocka_unit_test_setup(stack_that_is_moved_is_whole, reset),
		cmocka_unit_test_setup(stack_that_is_not_moved_ends_at_its_bounds, reset),
		cmocka_unit_test_setup(vdso_goes_to_the_go_caller, reset),
		cmocka_unit_test_setup(c_code_goes_to_the_go_caller, reset),
		cmocka_unit_test_setup(outside_of_go_is_told, reset),
		cmocka_unit_test_setup(unreadable_stack_is_counted, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
