/* tests/bpfhost/test_unwind_rules.c - the BPF-side stack walk by rules, over stacks made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define GPB_HOST
#include "goprof_abi.h"
#include "host.h"

/* The rules of a made-up target: pc to rule. */
static struct {
	uint64_t pc;
	struct gpb_unwind_rule rule;
} known[64];
static size_t nknown;

static struct gpb_unwind_rule *rule_of(const struct gpb_target *t, __u64 pc)
{
	for (size_t i = 0; i < nknown; i++)
		if (t && known[i].pc == pc)
			return &known[i].rule;
	return NULL;
}

#include "go/unwind_rules.bpf.h"
#include "stacks.h"

static int reset(void **state)
{
	(void)state;
	nknown = 0;
	stacks_reset();
	return 0;
}

/* A return address is looked up one byte before, so its rule is filed there. */
static void rule(uint64_t pc, int32_t delta, uint32_t flags)
{
	known[nknown].pc = pc;
	known[nknown++].rule = (struct gpb_unwind_rule){ .delta = delta, .flags = flags };
}

static void run(uint64_t g, uint64_t pc, uint64_t sp)
{
	struct regs r = { .pc = pc, .sp = sp, .bp = 0x1234 };

	walk_interrupted(&walk, &st, &target, g, &r);
}

static void expect(size_t nfirst, size_t nsecond, const uint64_t *pcs)
{
	assert_int_equal(st.nfirst, nfirst);
	assert_int_equal(st.nsecond, nsecond);
	for (size_t i = 0; i < nfirst + nsecond; i++)
		assert_int_equal(st.pc[i], pcs[i]);
}

/* bp is garbage all the time: only the deltas matter. */
static void walks_by_deltas(void **state)
{
	(void)state;
	rule(TEXT + 0x50, 0, 0);
	rule(TEXT + 0x100 - 1, 24, 0);
	rule(TEXT + 0x200 - 1, 8, GPB_UNWIND_RULE_END);
	stack_words[10] = TEXT + 0x100;
	stack_words[11 + 3] = TEXT + 0x200;
	run(G, TEXT + 0x50, STACK + 80);
	assert_int_equal(walk.why, WALK_ROOT);
	expect(3, 0, (uint64_t[]){ TEXT + 0x51, TEXT + 0x100, TEXT + 0x200 });
}

/* Above sigpanic lies the pc that faulted. */
static void injected_calls_are_exact(void **state)
{
	(void)state;
	rule(TEXT + 0x50, 0, GPB_UNWIND_RULE_EXACT);
	rule(TEXT + 0x100, 8, 0);
	rule(TEXT + 0x200 - 1, 0, GPB_UNWIND_RULE_END);
	stack_words[10] = TEXT + 0x100;
	stack_words[12] = TEXT + 0x200;
	run(G, TEXT + 0x50, STACK + 80);
	expect(3, 0, (uint64_t[]){ TEXT + 0x51, TEXT + 0x101, TEXT + 0x200 });
}

/*
 * A return address that is the entry of a function was made up, and means that function. The last
 * instruction of the function before it, when it was interrupted, does not mean it.
 */
static void made_up_return_addresses(void **state)
{
	(void)state;
	rule(TEXT + 0x50, 0, GPB_UNWIND_RULE_LAST);
	rule(TEXT + 0x100 - 1, -1, GPB_UNWIND_RULE_LAST | GPB_UNWIND_RULE_END);
	rule(TEXT + 0x100, 8, 0);
	rule(TEXT + 0x200 - 1, 0, GPB_UNWIND_RULE_END);
	stack_words[10] = TEXT + 0x100;
	stack_words[12] = TEXT + 0x200;
	run(G, TEXT + 0x50, STACK + 80);
	assert_int_equal(walk.why, WALK_ROOT);
	expect(3, 0, (uint64_t[]){ TEXT + 0x51, TEXT + 0x101, TEXT + 0x200 });
}

static void a_missing_rule_is_asked_for(void **state)
{
	(void)state;
	rule(TEXT + 0x50, 0, 0);
	stack_words[10] = TEXT + 0x100;
	run(G, TEXT + 0x50, STACK + 80);
	assert_true(st.flags & GPB_STACK_UNRULED);
	expect(2, 0, (uint64_t[]){ TEXT + 0x51, TEXT + 0x100 });
	assert_int_equal(walk.pc, TEXT + 0x100 - 1);
	assert_int_equal(walk.sp, STACK + 88);
	assert_int_equal(walk.second, 0);
}

/* Processes that run a file at different addresses share its rules; other files have their own. */
static void rules_belong_to_files(void **state)
{
	struct gpb_target a = {
		.nimages = 2,
		.image = { { .text_lo = TEXT, .text_hi = TEXT_END, .bias = 0x1000, .id = 7 },
			   { .text_lo = PLUGIN,
			     .text_hi = PLUGIN_END,
			     .bias = PLUGIN - 0x1000,
			     .id = 9 } }
	};
	struct gpb_target b = { .nimages = 1,
				.image = { { .text_lo = TEXT + 0x5000,
					     .text_hi = TEXT_END + 0x5000,
					     .bias = 0x6000,
					     .id = 7 } } };
	struct gpb_target c = b;

	(void)state;
	c.image[0].id = 8;
	assert_int_equal(rule_key(&a, TEXT + 0x50), 7ull << 48 | (TEXT + 0x50 - 0x1000));
	assert_int_equal(rule_key(&b, TEXT + 0x5050), rule_key(&a, TEXT + 0x50));
	assert_int_not_equal(rule_key(&c, TEXT + 0x5050), rule_key(&a, TEXT + 0x50));
	assert_int_equal(rule_key(&a, PLUGIN + 0x50), 9ull << 48 | 0x1050);
}

static void systemstack_goes_on(void **state)
{
	(void)state;
	rule(TEXT + 0x50, 8, 0);
	rule(TEXT + 0x800 - 1, 8, GPB_UNWIND_RULE_SEAM);
	rule(TEXT + 0x600 - 1, 16, 0);
	rule(TEXT + 0x700 - 1, 0, GPB_UNWIND_RULE_END);
	stack0_words[11] = TEXT + 0x800;
	g_words[3] = STACK + 8 * 90;
	g_words[4] = TEXT + 0x810;
	stack_words[91] = TEXT + 0x600;
	stack_words[94] = TEXT + 0x700;
	run(G0, TEXT + 0x50, STACK0 + 80);
	expect(2, 3,
	       (uint64_t[]){ TEXT + 0x51, TEXT + 0x800, TEXT + 0x810, TEXT + 0x600, TEXT + 0x700 });
}

static void morestack_goes_on_at_the_saved_pc(void **state)
{
	(void)state;
	rule(TEXT + 0x50, -1, GPB_UNWIND_RULE_SEAM);
	rule(TEXT + 0x300 - 1, 0, 0);
	rule(TEXT + 0x700 - 1, 0, GPB_UNWIND_RULE_END);
	g_words[3] = STACK + 8 * 90;
	g_words[4] = TEXT + 0x300;
	stack_words[90] = TEXT + 0x700;
	run(G0, TEXT + 0x50, STACK0 + 80);
	expect(1, 2, (uint64_t[]){ TEXT + 0x51, TEXT + 0x300, TEXT + 0x700 });
}

/*
 * The system stack has no rules yet, but the goroutine's stack has: its frames are walked
 * already.
 */
static void goroutine_goes_ahead(void **state)
{
	(void)state;
	rule(TEXT + 0x600 - 1, 16, 0);
	rule(TEXT + 0x700 - 1, 0, GPB_UNWIND_RULE_END);
	g_words[3] = STACK + 8 * 90;
	g_words[4] = TEXT + 0x810;
	stack_words[91] = TEXT + 0x600;
	stack_words[94] = TEXT + 0x700;
	run(G0, TEXT + 0x50, STACK0 + 80);
	assert_true(st.flags & GPB_STACK_UNRULED);
	assert_int_equal(walk.sp, STACK0 + 80);
	assert_int_equal(walk.pc, TEXT + 0x50);
	expect(1, 3, (uint64_t[]){ TEXT + 0x51, TEXT + 0x810, TEXT + 0x600, TEXT + 0x700 });
}

static void senseless_words_end_a_walk(void **state)
{
	(void)state;
	rule(TEXT + 0x50, 0, 0);
	stack_words[10] = 0xdeadbeef;
	run(G, TEXT + 0x50, STACK + 80);
	assert_int_equal(walk.why, WALK_BROKEN);
	expect(1, 0, (uint64_t[]){ TEXT + 0x51 });
	st = (struct gpb_stack){};
	run(G, TEXT + 0x50, 0x10);
	assert_true(st.flags & GPB_STACK_FAULT);
}

/* A rule that leads back to itself ends when there is no more room for frames. */
static void deep_stacks_are_cut(void **state)
{
	(void)state;
	rule(TEXT + 0x100 - 1, 0, 0);
	for (size_t i = 0; i < WORDS; i++)
		stack_words[i] = TEXT + 0x100;
	run(G, TEXT + 0x100 - 1, STACK);
	assert_int_equal(walk.why, WALK_FULL);
	assert_true(st.flags & GPB_STACK_CUT);
	assert_int_equal(st.nfirst, GPB_MAX_USER);
}

static void vdso_and_c_start_at_the_go_caller(void **state)
{
	(void)state;
	rule(TEXT + 0x400 - 1, 16, 0);
	rule(TEXT + 0x500 - 1, 0, GPB_UNWIND_RULE_END);
	m_words[3] = STACK + 8 * 50;
	m_words[4] = TEXT + 0x400;
	stack_words[52] = TEXT + 0x500;
	run(G, 0x7fff00000123ull, STACK0);
	expect(2, 0, (uint64_t[]){ TEXT + 0x400, TEXT + 0x500 });

	st = (struct gpb_stack){};
	m_words[3] = m_words[4] = 0;
	m_words[2] = 1;
	g_words[6] = STACK + 8 * 50;
	g_words[7] = TEXT + 0x400;
	run(G0, 0x7f1234560000ull, STACK0);
	expect(2, 0, (uint64_t[]){ TEXT + 0x400, TEXT + 0x500 });
}

static void outside_of_go_is_told(void **state)
{
	(void)state;
	m_words[6] = 5; /* len(preemptoff) */
	run(G, 0x7f1234560000ull, STACK0);
	assert_int_equal(st.flags, GPB_STACK_OUTSIDE | GPB_STACK_GC);
	expect(1, 0, (uint64_t[]){ 0x7f1234560001ull });
	st = (struct gpb_stack){};
	run(0, 0x7f1234560000ull, STACK0);
	assert_int_equal(st.flags, GPB_STACK_NO_G);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(walks_by_deltas, reset),
		cmocka_unit_test_setup(injected_calls_are_exact, reset),
		cmocka_unit_test_setup(made_up_return_addresses, reset),
		cmocka_unit_test_setup(a_missing_rule_is_asked_for, reset),
		cmocka_unit_test_setup(rules_belong_to_files, reset),
		cmocka_unit_test_setup(systemstack_goes_on, reset),
		cmocka_unit_test_setup(morestack_goes_on_at_the_saved_pc, reset),
		cmocka_unit_test_setup(goroutine_goes_ahead, reset),
		cmocka_unit_test_setup(senseless_words_end_a_walk, reset),
		cmocka_unit_test_setup(deep_stacks_are_cut, reset),
		cmocka_unit_test_setup(vdso_and_c_start_at_the_go_caller, reset),
		cmocka_unit_test_setup(outside_of_go_is_told, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
