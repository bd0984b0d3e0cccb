/*
 * tests/bpfhost/test_arm64.c - the BPF-side stack walks as arm64 needs them: the return address is in
 * x30 or at sp, frame records lie below sp, and a signal handler pushes x30.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define GPB_HOST
#define __TARGET_ARCH_arm64
#include "goprof_abi.h"
#include "host.h"

static struct {
	uint64_t pc;
	struct gpb_unwind_rule rule;
} known[16];
static size_t nknown;

static struct gpb_unwind_rule *rule_of(const struct gpb_target *t, __u64 pc)
{
	for (size_t i = 0; i < nknown; i++)
		if (t && known[i].pc == pc)
			return &known[i].rule;
	return NULL;
}

static __u64 random64(void)
{
	return 0;
}

#include "parked.bpf.h"
#include "stacks.h"

#include "collect/waits/looks/parked.h"

/* Return addresses, each with its rule one byte before; LEAF is where the thread is. */
#define LEAF	(TEXT + 0x50)
#define CALLER	(TEXT + 0x100)
#define CALLER2 (TEXT + 0x200)
#define ROOT	(TEXT + 0x300)

static struct gpb_target t;

static void rule(uint64_t pc, int32_t delta, uint32_t flags)
{
	known[nknown].pc = pc;
	known[nknown++].rule = (struct gpb_unwind_rule){ .delta = delta, .flags = flags };
}

static int reset(void **state)
{
	(void)state;
	nknown = 0;
	stacks_reset();
	memset(&walk, 0x5a, sizeof(walk)); /* left over from another walk */
	t = target;
	t.g_sched_bp = 80; /* lr at 72 */
	t.g_atomicstatus = -1;
	rule(ROOT - 1, 16, GPB_UNWIND_RULE_END);
	return 0;
}

#define AT(word) (STACK + 8 * (word))

static void run(uint64_t g, uint64_t pc, uint64_t sp, uint64_t lr)
{
	struct regs r = { .pc = pc, .sp = sp, .bp = 0x1234, .lr = lr, .g = g };

	walk_interrupted(&walk, &st, &t, g, &r);
}

static void expect(size_t nfirst, size_t nsecond, const uint64_t *pcs)
{
	assert_int_equal(st.nfirst, nfirst);
	assert_int_equal(st.nsecond, nsecond);
	for (size_t i = 0; i < nfirst + nsecond; i++)
		assert_int_equal(st.pc[i], pcs[i]);
}

/* Without a frame the leaf returns to x30; with one, x30 is of a call that has returned. */
static void leaves(void **state)
{
	(void)state;
	rule(LEAF, 0, 0);
	rule(LEAF + 4, 32, 0);
	rule(CALLER - 1, 48, 0);
	stack_words[10] = ROOT;
	run(G, LEAF, AT(10), CALLER);
	expect(3, 0, (uint64_t[]){ LEAF + 1, CALLER, ROOT });
	assert_int_equal(walk.why, WALK_ROOT);
	assert_int_equal(walk.sp, AT(16));

	stacks_reset();
	stack_words[10] = CALLER;
	stack_words[14] = ROOT;
	run(G, LEAF + 4, AT(10), TEXT + 0x999);
	expect(3, 0, (uint64_t[]){ LEAF + 5, CALLER, ROOT });
}

/* sigpanic was called as if by the pc that faulted; x30 of the function there was pushed. */
static void injected(void **state)
{
	(void)state;
	rule(LEAF, 32, GPB_UNWIND_RULE_EXACT);
	rule(CALLER, 0, 0);
	rule(CALLER2 - 1, 16, 0);
	rule(CALLER + 8, 16, 0);
	stack_words[10] = CALLER;  /* sigpanic's own return address */
	stack_words[14] = CALLER2; /* pushed, and 16 bytes */
	stack_words[16] = ROOT;	   /* of CALLER2's frame, since CALLER's has no bytes */
	run(G, LEAF, AT(10), 0);
	expect(4, 0, (uint64_t[]){ LEAF + 1, CALLER + 1, CALLER2, ROOT });

	/* The interrupted function has a frame, so what was pushed does not count. */
	stacks_reset();
	stack_words[10] = CALLER + 8;
	stack_words[14] = TEXT + 0x999;
	stack_words[16] = ROOT;
	run(G, LEAF, AT(10), 0);
	expect(3, 0, (uint64_t[]){ LEAF + 1, CALLER + 9, ROOT });
}

/* A goroutine in systemstack: its frame is at the saved sp. */
static void systemstack(void **state)
{
	(void)state;
	rule(LEAF, 16, 0);
	rule(TEXT + 0x800 - 1, 16, GPB_UNWIND_RULE_SEAM);
	rule(CALLER - 1, 16, 0);
	g0_words[2] = M;
	stack0_words[10] = TEXT + 0x800;
	g_words[3] = AT(20);
	g_words[4] = TEXT + 0x818; /* systemstack_switch */
	stack_words[20] = CALLER;
	stack_words[22] = ROOT;
	run(G0, LEAF, STACK0 + 80, 0);
	expect(2, 3, (uint64_t[]){ LEAF + 1, TEXT + 0x800, TEXT + 0x818, CALLER, ROOT });
}

/* Under morestack the function that called it has no frame yet: its x30 was saved. */
static void morestack(void **state)
{
	(void)state;
	rule(LEAF, -1, GPB_UNWIND_RULE_SEAM);
	rule(CALLER - 1, 0, 0);
	rule(CALLER2 - 1, 16, 0);
	g_words[3] = AT(20);
	g_words[4] = CALLER;
	g_words[9] = CALLER2; /* sched.lr */
	stack_words[20] = ROOT;
	run(G0, LEAF, STACK0 + 80, 0);
	expect(1, 3, (uint64_t[]){ LEAF + 1, CALLER, CALLER2, ROOT });
}

/* A missing rule: what is needed to finish is left as it was, also when the goroutine is walked ahead. */
static void a_missing_rule(void **state)
{
	(void)state;
	run(G, LEAF, AT(10), CALLER);
	assert_true(st.flags & GPB_STACK_UNRULED);
	assert_int_equal(walk.lr, CALLER);
	assert_int_equal(walk.sp, AT(10));

	reset(NULL);
	rule(CALLER - 1, 0, 0);
	g_words[3] = AT(20);
	g_words[4] = CALLER;
	g_words[9] = ROOT;
	run(G0, LEAF, STACK0 + 80, CALLER2);
	assert_int_equal(walk.lr, CALLER2);
	assert_int_equal(walk.sp, STACK0 + 80);
	expect(1, 2, (uint64_t[]){ LEAF + 1, CALLER, ROOT });
}

/* What is sent begins with x30, as if it had been pushed. */
static void records(void **state)
{
	struct gpb_rec_raw raw = { .sp = AT(10) };

	(void)state;
	raw_begin(&raw);
	assert_int_equal(raw.sp, AT(9));
	raw_end(&raw, CALLER);
	assert_int_equal(raw.top[0], CALLER);
}

/* At a stack check the caller is in x30, and the frame records are the caller's. */
static void probed(void **state)
{
	struct regs r = { .pc = LEAF, .sp = AT(10), .bp = AT(9), .lr = CALLER, .g = G };

	(void)state;
	stack_words[9] = AT(19); /* the record of CALLER's function */
	stack_words[10] = CALLER2;
	stack_words[19] = 0;
	stack_words[20] = ROOT;
	walk_user(&walk, &st, &t, G, &r, 0);
	expect(4, 0, (uint64_t[]){ LEAF + 1, CALLER, CALLER2, ROOT });
	assert_int_equal(st.flags, 0);

	/* With its own frame the record says it; x30 is of another call. */
	r.lr = TEXT + 0x999;
	walk_user(&walk, &st, &t, G, &r, framed_delta(&r));
	expect(3, 0, (uint64_t[]){ LEAF + 1, CALLER2, ROOT });

	/* The record is not set up yet, but x30 is stored. */
	r.sp = AT(6);
	stack_words[6] = CALLER;
	walk_user(&walk, &st, &t, G, &r, 32);
	expect(4, 0, (uint64_t[]){ LEAF + 1, CALLER, CALLER2, ROOT });

	r.lr = 1;
	walk_user(&walk, &st, &t, G, &r, 0);
	assert_true(st.flags & GPB_STACK_CALLER);
}

/* A probe on the system stack: by the records that systemstack or morestack saved. */
static void probed_on_g0(void **state)
{
	struct regs r = { .pc = LEAF, .sp = STACK0 + 80, .bp = 0, .lr = CALLER, .g = G0 };

	(void)state;
	g_words[3] = AT(20);
	g_words[4] = TEXT + 0x818;
	g_words[10] = AT(19);
	stack_words[19] = 0;
	stack_words[20] = ROOT;
	walk_user(&walk, &st, &t, G0, &r, 0);
	expect(2, 2, (uint64_t[]){ LEAF + 1, CALLER, TEXT + 0x818, ROOT });

	st.nsecond = 0;
	g_words[4] = CALLER;
	g_words[9] = CALLER2;
	g_words[10] = AT(29);
	stack_words[30] = ROOT;
	walk_user(&walk, &st, &t, G0, &r, 0);
	expect(2, 3, (uint64_t[]){ LEAF + 1, CALLER, CALLER, CALLER2, ROOT });
}

/* In C code and in the vdso: the record of the function that called out is right below its sp. */
static void outside_of_go(void **state)
{
	struct regs r = { .pc = 1, .sp = AT(2), .bp = 0x77, .lr = 5, .g = G };

	(void)state;
	t.g_syscallbp = -1;
	m_words[2] = 1;
	g_words[6] = AT(20);
	g_words[7] = CALLER;
	g_words[10] = AT(15); /* asmcgocall's own */
	stack_words[19] = 0;
	stack_words[20] = ROOT;
	walk_user(&walk, &st, &t, G, &r, 0);
	expect(2, 0, (uint64_t[]){ CALLER, ROOT });

	m_words[2] = 0;
	m_words[3] = AT(20);
	m_words[4] = CALLER2;
	walk_user(&walk, &st, &t, G, &r, 0);
	expect(2, 0, (uint64_t[]){ CALLER2, ROOT });
}

static void not_begun_and_preempted(void **state)
{
	(void)state;
	g_words[3] = AT(20);
	g_words[4] = LEAF;
	g_words[9] = ROOT;
	walk_fresh(&walk, &st, &t, G);
	expect(2, 0, (uint64_t[]){ LEAF + 1, ROOT });

	rule(LEAF - 1, 0, 0);
	rule(CALLER - 1, 32, 0);
	g_words[9] = CALLER;
	stack_words[20] = ROOT;
	walk_saved(&walk, &st, &t, G);
	expect(3, 0, (uint64_t[]){ LEAF, CALLER, ROOT });
}

static int read_fake(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	(void)m;
	return user_read(buf, (__u32)n, addr) ? err_set(e, -EFAULT, "no memory") : 0;
}

/* User space's reader finds the same, from a copy that begins below sp. */
static void looked_at(void **state)
{
	struct mem fake = { .read = read_fake };
	struct parked p = { .stack_lo = STACK,
			    .stack_hi = STACK + sizeof(stack_words),
			    .sp = AT(20),
			    .pc = CALLER,
			    .bp = AT(19),
			    .lr = CALLER2,
			    .below = 8 };
	bool deep = false;
	struct parked_stack k = { &fake, &t, &p, (const uint8_t *)&stack_words[19], 32, &deep };
	static struct gpb_rec_raw raw;
	static struct gpb_stack mine;

	(void)state;
	g_words[3] = p.sp;
	g_words[4] = p.pc;
	g_words[10] = p.bp;
	stack_words[20] = ROOT;
	walk_parked(&walk, &st, &t, G);
	assert_false(parked_walk(&k, &mine, &raw));
	assert_int_equal(mine.nfirst, st.nfirst);
	assert_memory_equal(mine.pc, st.pc, 8 * (size_t)st.nfirst);
	assert_int_equal(mine.nfirst, 2);
	assert_false(deep);

	parked_walk_saved(&k, false, &mine, &raw);
	assert_int_equal(mine.pc[1], CALLER2);
	assert_true(parked_walk_saved(&k, true, &mine, &raw));
	assert_int_equal(raw.sp, AT(19));
	assert_int_equal(raw.top[0], CALLER2);
	assert_int_equal(raw.top[1], ROOT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(leaves, reset),
		cmocka_unit_test_setup(injected, reset),
		cmocka_unit_test_setup(systemstack, reset),
		cmocka_unit_test_setup(morestack, reset),
		cmocka_unit_test_setup(a_missing_rule, reset),
		cmocka_unit_test_setup(records, reset),
		cmocka_unit_test_setup(probed, reset),
		cmocka_unit_test_setup(probed_on_g0, reset),
		cmocka_unit_test_setup(outside_of_go, reset),
		cmocka_unit_test_setup(not_begun_and_preempted, reset),
		cmocka_unit_test_setup(looked_at, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
