/*
 * tests/bpfhost/test_types.c - the type that a goroutine's growslice or makechan was called with is
 * found again at its allocation, whoever else makes something in between.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define GPB_HOST
#include "go/types.bpf.h"

#include "stacks.h"

static struct maker_set sets[MAKER_SETS];

static struct maker_set *maker_set_at(__u32 key)
{
	return &sets[key];
}

/* as many goroutines side by side as a set has ways */
enum { BESIDE = 4 };

enum { RET = TEXT + 0x100, CALLER = TEXT + 0x200 };

static int reset(void **state)
{
	(void)state;
	stacks_reset();
	memset(sets, 0, sizeof(sets));
	return 0;
}

/* The goroutine @g is in a function that was called with @type and returns to CALLER. */
static void enter(uint64_t g, uint64_t type)
{
	struct maker m = { .who = maker_who(g, 0),
			   .type = type,
			   .pc = CALLER,
			   .depth = g_words[1] - (STACK + 8 * 20) };

	maker_keep(&m);
}

/* The goroutine allocates, two calls further down. All goroutines have the stack of G here. */
static uint64_t allocates(uint64_t g)
{
	struct gpb_stack s = { .nfirst = 3, .pc = { TEXT + 0x50, RET, CALLER } };

	stacks_reset();
	stack_words[20] = CALLER;
	if (g != G)
		host_map(g, g_words, sizeof(g_words));
	return maker_type(&target, &s, g, STACK + 8 * 10);
}

/* The next address after @from that shares a set with @g. */
static uint64_t sharing(uint64_t g, uint64_t from)
{
	do
		from += 0x1000;
	while (maker_set_of(maker_who(from, 0)) != maker_set_of(maker_who(g, 0)));
	return from;
}

static void found_again(void **state)
{
	(void)state;
	enter(G, 0x1000);
	assert_int_equal(allocates(G), 0x1000);
	enter(G, 0x2000);
	assert_int_equal(allocates(G), 0x2000);
}

/*
 * As many goroutines as a set has ways, side by side; those that were there before do not matter.
 */
static void side_by_side(void **state)
{
	uint64_t g[BESIDE];

	(void)state;
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < BESIDE; i++) {
			g[i] = sharing(G, i ? g[i - 1] : 0x40000000ull * (uint64_t)(round + 1));
			enter(g[i], 0x1000 + 8 * (uint64_t)i);
		}
		for (int i = 0; i < BESIDE; i++)
			assert_int_equal(allocates(g[i]), 0x1000 + 8 * i);
		for (int i = BESIDE; i-- > 0;)
			assert_int_equal(allocates(g[i]), 0x1000 + 8 * i);
	}
}

/* With one goroutine too many, or a half-written entry, there is no type rather than another's. */
static void never_anothers(void **state)
{
	uint64_t other = G;

	(void)state;
	enter(G, 0x1000);
	for (int i = 0; i < BESIDE; i++) {
		other = sharing(G, other);
		enter(other, 0x2000);
	}
	assert_int_equal(allocates(G), 0);
	enter(G, 0x1000);
	maker_in(maker_set_of(maker_who(G, 0)), maker_who(G, 0))->type = 0x2000;
	assert_int_equal(allocates(G), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(found_again, reset),
		cmocka_unit_test_setup(side_by_side, reset),
		cmocka_unit_test_setup(never_anothers, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
