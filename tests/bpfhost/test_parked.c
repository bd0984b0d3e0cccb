/*
 * tests/bpfhost/test_parked.c - goroutines that wait: which of their status changes are waits,
 * which waits are samples, and stacks from saved registers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define GPB_HOST
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

static uint64_t next_random;

static __u64 random64(void)
{
	return next_random;
}

#include "parked.bpf.h"
#include "stacks.h"
#include "go/standing.bpf.h"

static int reset(void **state)
{
	(void)state;
	nknown = 0;
	stacks_reset();
	return 0;
}

/* ---- changes --------------------------------------------------------------------------------- */

enum { IDLE, RUNNABLE, RUNNING, SYSCALL, WAITING, DEAD = 6 };

static struct gpb_standing at, was;
static uint64_t now_ns;

static void begin(uint32_t old, uint32_t new)
{
	now_ns = 1000;
	at = standing_first(&(struct change){ .now = now_ns, .old = old, .new = new });
}

static enum standing_end move(uint32_t old, uint32_t new)
{
	struct change c = { .now = now_ns += 10, .old = old, .new = new };

	return standing_move(&at, &c, &was);
}

static void expect_ended(uint32_t old, uint32_t new, uint64_t ns)
{
	assert_int_equal(move(old, new), STANDING_ENDED);
	assert_int_equal(now_ns - was.since, ns);
	assert_int_equal(was.status, old);
}

static void a_life(void **state)
{
	(void)state;
	begin(DEAD, RUNNABLE);
	assert_int_equal(at.from, DEAD);
	expect_ended(RUNNABLE, RUNNING, 10);
	assert_int_equal(was.from, DEAD);
	assert_int_equal(move(RUNNING, WAITING), STANDING_NOTHING);
	expect_ended(WAITING, RUNNABLE, 10);
	expect_ended(RUNNABLE, RUNNING, 10);
	assert_int_equal(was.from, WAITING);
	assert_int_equal(move(RUNNING, SYSCALL), STANDING_NOTHING);
	expect_ended(SYSCALL, RUNNING, 10);
	assert_int_equal(move(RUNNING, SYSCALL), STANDING_NOTHING);
	expect_ended(SYSCALL, RUNNABLE, 10);
	expect_ended(RUNNABLE, RUNNING, 10);
	assert_int_equal(move(RUNNING, RUNNABLE), STANDING_NOTHING);
	expect_ended(RUNNABLE, RUNNING, 10);
	assert_int_equal(was.from, RUNNING);
	/* It waits without giving its thread away, for example because it stops the world. */
	assert_int_equal(move(RUNNING, WAITING), STANDING_NOTHING);
	expect_ended(WAITING, RUNNING, 10);
}

/*
 * reentersyscall reports a change, then casgstatus reports the same one, and so on the way back:
 * it must count once.
 */
static void seen_twice(void **state)
{
	(void)state;
	begin(RUNNABLE, RUNNING);
	assert_int_equal(move(RUNNING, SYSCALL), STANDING_NOTHING);
	assert_int_equal(move(RUNNING, SYSCALL), STANDING_NOTHING);
	expect_ended(SYSCALL, RUNNING, 10);
	assert_int_equal(move(SYSCALL, RUNNING), STANDING_NOTHING);
	assert_int_equal(move(RUNNING, SYSCALL), STANDING_NOTHING);
	expect_ended(SYSCALL, RUNNING, 10);
}

/*
 * From Go 1.26 on, a goroutine that returns from the kernel and finds no P goes on as if it ran.
 */
static void back_without_a_p(void **state)
{
	(void)state;
	begin(RUNNABLE, RUNNING);
	move(RUNNING, SYSCALL);
	expect_ended(SYSCALL, RUNNING, 10);
	assert_int_equal(move(RUNNING, RUNNABLE), STANDING_NOTHING);
	expect_ended(RUNNABLE, RUNNING, 10);
}

/*
 * Where a change was not seen, no wait has a length. It is a loss only where a wait ended there.
 */
static void holes(void **state)
{
	(void)state;
	begin(RUNNABLE, RUNNING);
	/* A GC stopped it (9) and lets it continue. */
	assert_int_equal(move(WAITING, RUNNABLE), STANDING_UNSEEN);
	assert_int_equal(at.from, RUNNING);
	expect_ended(RUNNABLE, RUNNING, 10);
	/* The probe missed its wake-up. */
	move(RUNNING, WAITING);
	assert_int_equal(move(RUNNABLE, RUNNING), STANDING_LOST);
	/* Both changes were missed, and it parks again: that wait begins now. */
	move(RUNNING, WAITING);
	assert_int_equal(move(RUNNING, WAITING), STANDING_NOTHING);
	expect_ended(WAITING, RUNNABLE, 10);
	/* A goroutine made for iter.Pull waits from its beginning, which no probe sees. */
	begin(DEAD, WAITING);
	assert_int_equal(move(RUNNING, SYSCALL), STANDING_UNSEEN);
}

/* A thread of C's that calls Go borrows a g, which has been in no system call. */
static void borrowed(void **state)
{
	(void)state;
	begin(DEAD, SYSCALL);
	assert_int_equal(move(SYSCALL, RUNNING), STANDING_NOTHING);
	assert_int_equal(move(RUNNING, SYSCALL), STANDING_NOTHING);
	expect_ended(SYSCALL, RUNNING, 10);
}

static void clock_that_goes_back(void **state)
{
	(void)state;
	begin(RUNNING, WAITING);
	now_ns = 500;
	assert_int_equal(move(WAITING, RUNNABLE), STANDING_NOTHING);
}

/* ---- which are samples ----------------------------------------------------------------------- */

static void long_ones_always(void **state)
{
	struct weight w;

	(void)state;
	next_random = UINT64_MAX;
	assert_true(weigh(&w, 1000, 1000));
	assert_int_equal(w.count, GPB_COUNT_ONE);
	assert_int_equal(w.delay, 1000);
	assert_true(weigh(&w, 123456, 1000));
	assert_int_equal(w.delay, 123456);
	assert_true(weigh(&w, 0, 1));
	assert_int_equal(w.delay, 1);
}

/* How many samples are expected: what each wait adds, divided by the rate. */
static void expected_samples(void **state)
{
	static const uint64_t delays[] = { 0, 1, 7, 999, 1000, 5000 };
	uint64_t sum = 0, samples = 0;
	struct weight w;

	(void)state;
	for (size_t i = 1; i < sizeof(delays) / sizeof(delays[0]); i++) {
		sum += capped(delays[i], 1000);
		for (next_random = 0; next_random < 1000; next_random++)
			samples += (uint64_t)weigh(&w, delays[i], 1000);
	}
	assert_int_equal(samples, sum);
	assert_int_equal(capped(delays[0], 1000), 0);
}

/* No wait is counted twice: by looks, and by the window that saw it end. */
static void what_looks_count(void **state)
{
	const uint64_t counted = 100, from = 7000;

	(void)state;
	assert_true(looks_count(99, 1, counted, from));
	assert_false(looks_count(100, 6999, counted, from));
	assert_true(looks_count(100, 7000, counted, from));
	assert_true(looks_count(99, 1, counted, 0));
	assert_false(looks_count(100, UINT64_MAX, counted, 0));
}

/* Where it is not yet known what goroutines did before the window, none of their waits begins to count. */
static void when_waits_may_begin(void **state)
{
	const uint64_t begin = 3000000;

	(void)state;
	assert_false(may_begin(0, begin));
	assert_false(may_begin(GPB_LONG_NS - 1, begin));
	assert_true(may_begin(GPB_LONG_NS, begin));
	assert_true(may_begin(begin - 1, begin));
	assert_false(may_begin(begin, begin));
}

/* Summed over all random numbers, the counts equal the waits. */
static void short_ones_in_proportion(void **state)
{
	static const uint64_t delays[] = { 1, 7, 100, 499, 999 };

	(void)state;
	for (size_t i = 0; i < sizeof(delays) / sizeof(delays[0]); i++) {
		uint64_t count = 0, delay = 0;
		struct weight w;

		for (next_random = 0; next_random < 1000; next_random++)
			if (weigh(&w, delays[i], 1000)) {
				count += w.count;
				delay += w.delay;
			}
		assert_int_equal(delay, 1000 * delays[i]);
		assert_in_range(count, 1000ull * GPB_COUNT_ONE - 1000, 1000ull * GPB_COUNT_ONE);
	}
}

/* ---- stacks ---------------------------------------------------------------------------------- */

static void expect(size_t n, const uint64_t *pcs)
{
	assert_int_equal(st.nfirst, n);
	assert_int_equal(st.nsecond, 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(st.pc[i], pcs[i]);
}

static void saved(uint64_t pc, uint64_t sp, uint64_t bp)
{
	g_words[3] = sp;
	g_words[4] = pc;
	g_words[5] = bp;
}

/* It is in gopark, whose frame pointer was saved; a word that looks like code lies at its sp. */
static void parked(void **state)
{
	(void)state;
	saved(TEXT + 0x10, STACK + 80, STACK + 96);
	stack_words[10] = TEXT + 0x666;
	stack_words[12] = STACK + 160;
	stack_words[13] = TEXT + 0x100;
	stack_words[20] = 0;
	stack_words[21] = TEXT + 0x200;
	walk_parked(&walk, &st, &target, G);
	expect(3, (uint64_t[]){ TEXT + 0x10, TEXT + 0x100, TEXT + 0x200 });
	assert_int_equal(st.flags, 0);
}

static void parked_on_a_torn_stack(void **state)
{
	(void)state;
	saved(TEXT + 0x10, STACK + 80, STACK + 96);
	stack_words[12] = STACK + 96; /* a cycle of frame pointers */
	stack_words[13] = TEXT + 0x100;
	walk_parked(&walk, &st, &target, G);
	expect(2, (uint64_t[]){ TEXT + 0x10, TEXT + 0x100 });
	stacks_reset();
	saved(TEXT + 0x10, STACK + 80, 0xdead0000);
	walk_parked(&walk, &st, &target, G);
	expect(1, (uint64_t[]){ TEXT + 0x10 });
	stacks_reset();
	walk_parked(&walk, &st, &target, 0);
	assert_int_equal(st.nfirst, 1);
}

/*
 * The collector moves the stack to a smaller one meanwhile: g.stack is the new one, and the frame
 * pointers in it still lead into the old one, which is complete.
 */
static void parked_while_the_stack_moves(void **state)
{
	(void)state;
	saved(TEXT + 0x10, STACK + 80, STACK + 96);
	g_words[0] = STACK + 64;
	g_words[1] = STACK + 160;
	stack_words[12] = STACK + 256; /* in the old one */
	stack_words[13] = TEXT + 0x100;
	stack_words[32] = STACK + 288;
	stack_words[33] = TEXT + 0x200;
	stack_words[36] = 0;
	stack_words[37] = TEXT + 0x300;
	g_words[9] = 4;
	walk_parked(&walk, &st, &target, G);
	expect(2, (uint64_t[]){ TEXT + 0x10, TEXT + 0x100 });
	g_words[9] = 4 | GPB_G_SCAN;
	walk_parked(&walk, &st, &target, G);
	expect(4, (uint64_t[]){ TEXT + 0x10, TEXT + 0x100, TEXT + 0x200, TEXT + 0x300 });
}

/*
 * newstack gave the processor away at this function's entry: there is no frame yet, so frame
 * pointers alone would lose its caller.
 */
static void preempted(void **state)
{
	(void)state;
	known[nknown].pc = TEXT + 0x10 - 1;
	known[nknown++].rule = (struct gpb_unwind_rule){ .delta = 0 };
	known[nknown].pc = TEXT + 0x100 - 1;
	known[nknown++].rule = (struct gpb_unwind_rule){ .delta = 8, .flags = GPB_UNWIND_RULE_END };
	saved(TEXT + 0x10, STACK + 80, STACK + 800);
	stack_words[10] = TEXT + 0x100;
	walk_saved(&walk, &st, &target, G);
	expect(2, (uint64_t[]){ TEXT + 0x10, TEXT + 0x100 });
	assert_int_equal(st.flags, 0);
}

static void preempted_where_a_rule_is_missing(void **state)
{
	(void)state;
	saved(TEXT + 0x10, STACK + 80, STACK + 800);
	stack_words[100] = 0;
	stack_words[101] = TEXT + 0x300;
	walk_saved(&walk, &st, &target, G);
	assert_int_equal(st.nfirst, 1);
	assert_true(st.flags & GPB_STACK_UNRULED);
	assert_int_equal(walk.pc, TEXT + 0x10 - 1);
	assert_int_equal(walk.sp, STACK + 80);
	assert_int_equal(walk.hi, STACK + sizeof(stack_words));
	assert_int_equal(st.hints, 1);
	assert_int_equal(st.pc[1], TEXT + 0x300);
}

/* It stands at the entry of its function; pcs are looked up one byte before. */
static void fresh(void **state)
{
	(void)state;
	saved(TEXT + 0x400, STACK + 160, 0);
	stack_words[20] = TEXT + 0x501;
	walk_fresh(&walk, &st, &target, G);
	expect(2, (uint64_t[]){ TEXT + 0x401, TEXT + 0x501 });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_life, reset),
		cmocka_unit_test_setup(seen_twice, reset),
		cmocka_unit_test_setup(back_without_a_p, reset),
		cmocka_unit_test_setup(holes, reset),
		cmocka_unit_test_setup(borrowed, reset),
		cmocka_unit_test_setup(clock_that_goes_back, reset),
		cmocka_unit_test_setup(long_ones_always, reset),
		cmocka_unit_test_setup(expected_samples, reset),
		cmocka_unit_test_setup(what_looks_count, reset),
		cmocka_unit_test_setup(when_waits_may_begin, reset),
		cmocka_unit_test_setup(short_ones_in_proportion, reset),
		cmocka_unit_test_setup(parked, reset),
		cmocka_unit_test_setup(parked_on_a_torn_stack, reset),
		cmocka_unit_test_setup(parked_while_the_stack_moves, reset),
		cmocka_unit_test_setup(preempted, reset),
		cmocka_unit_test_setup(preempted_where_a_rule_is_missing, reset),
		cmocka_unit_test_setup(fresh, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
