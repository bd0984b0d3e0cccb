/*
 * tests/unit/test_wait_estimates_each.c - which stacks of a tally are handed over, and with which errors. What is told of a
 * stack and of a site is this file's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "collect/waits/engine/wait_estimates.h"

enum { PROGRAM, RUNTIME };			      /* wholes */
enum { A = 0x1000, B = 0x2000, OF_RUNTIME = 0x9000 }; /* sites */
enum { ENTRIES = 8 };

static struct wait_estimate estimates[ENTRIES];
static struct wait_error sites[ENTRIES];
static int site_calls;
static struct wait_engine w;

static struct wait_estimate estimate(const void *arg, size_t entry)
{
	assert_ptr_equal(arg, estimates);
	return estimates[entry];
}

static struct wait_error site_of(const void *arg, size_t site)
{
	assert_ptr_equal(arg, estimates);
	site_calls++;
	return sites[site];
}

static size_t innermost(void *arg, const struct gpb_stack *st)
{
	(void)arg;
	(void)st;
	return 1;
}

static size_t whole_of(void *arg, const struct gpb_stack *st)
{
	(void)arg;
	return st->pc[0] == OF_RUNTIME ? RUNTIME : PROGRAM;
}

static int set_up(void **state)
{
	static const struct wait_kind kind = { .estimate = estimate, .site = site_of };

	(void)state;
	memset(&estimates, 0, sizeof(estimates));
	memset(&sites, 0, sizeof(sites));
	site_calls = 0;
	w = (struct wait_engine){ .kind = &kind, .arg = estimates };
	tally_init(&w.tally);
	w.tally.depth = innermost;
	w.tally.whole = whole_of;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	tally_fini(&w.tally);
	return 0;
}

static void add(uint64_t site, uint64_t caller)
{
	const struct gpb_stack st = { .count = 1, .nfirst = 2, .pc = { site, caller } };

	assert_int_equal(tally_add(&w.tally, &st, GPB_WAIT_SHORT, NULL), 0);
}

static struct wait_estimate taken[ENTRIES];
static uint64_t taken_at[ENTRIES];
static size_t ntaken, asked, fails_at;

static int take(void *arg, const struct gpb_stack *st, const struct wait_estimate *est,
		struct err *e)
{
	assert_ptr_equal(arg, &w);
	if (asked++ == fails_at)
		return err_set(e, -ENOMEM, "no room");
	taken_at[ntaken] = st->pc[0] + st->pc[1];
	taken[ntaken++] = *est;
	return 0;
}

/* Three entries of A, of which nothing is told of the first, one of the runtime's own, and two of B. */
static void six_entries(void)
{
	static const uint64_t of[] = { A, A, OF_RUNTIME, A, B, B };

	for (size_t i = 0; i < 6; i++) {
		add(of[i], i);
		estimates[i] = (struct wait_estimate){ (int64_t)i, 0, 10, 20 };
	}
	estimates[5] = (struct wait_estimate){ 0, 7, 10, 20 };
	sites[0] = (struct wait_error){ 300, 400 };   /* A */
	sites[1] = (struct wait_error){ 1000, 2000 }; /* the runtime's own */
	sites[2] = (struct wait_error){ 500, -1 };    /* B */
	ntaken = asked = 0;
	fails_at = ENTRIES;
}

static void hands_over(size_t whole, struct wait_error *all)
{
	*all = (struct wait_error){ 1, 2 };
	assert_int_equal(wait_estimates_each(&w, whole, take, &w, all, NULL), 0);
	assert_int_equal(wait_estimates_number(&w, whole), ntaken);
}

static void those_that_are_not_0_are_handed_over(void **state)
{
	struct wait_error all;

	(void)state;
	six_entries();
	hands_over(PROGRAM, &all);
	assert_int_equal(ntaken, 4);
	assert_int_equal(taken_at[0], A + 1);
	assert_int_equal(taken_at[1], A + 3);
	assert_int_equal(taken_at[2], B + 4);
	assert_int_equal(taken_at[3], B + 5); /* a delay is something, too */
	assert_true(taken[1].count == 3 && taken[3].delay == 7);
	ntaken = 0;
	hands_over(RUNTIME, &all);
	assert_int_equal(ntaken, 1);
	assert_int_equal(taken_at[0], OF_RUNTIME + 2);
}

/* A site's error comes once, with its first stack that is told, and is no part of that of all together. */
static void a_sites_error_is_told_once(void **state)
{
	struct wait_error all;

	(void)state;
	six_entries();
	hands_over(PROGRAM, &all);
	assert_true(taken[0].count_error == 310 && taken[0].delay_error == 420);
	assert_true(taken[1].count_error == 10 && taken[1].delay_error == 20);
	assert_true(taken[2].count_error == 510 && taken[2].delay_error < 0);
	assert_true(taken[3].count_error == 10 && taken[3].delay_error == 20);
	assert_int_equal(site_calls, 2);
	assert_true(all.count == 1 + 4 * 10 && all.delay == 2 + 4 * 20);
}

static void one_stack_that_is_not_known_makes_all_unknown(void **state)
{
	struct wait_error all;

	(void)state;
	six_entries();
	estimates[3].count_error = -1;
	hands_over(PROGRAM, &all);
	assert_true(all.count < 0 && all.delay == 2 + 4 * 20);
	assert_true(taken[1].count_error < 0 && taken[0].count_error == 310);
}

static void who_cannot_take_more_is_given_no_more(void **state)
{
	struct wait_error all = {};
	struct err e = { "" };

	(void)state;
	six_entries();
	fails_at = 1;
	assert_int_equal(wait_estimates_each(&w, PROGRAM, take, &w, &all, &e), -ENOMEM);
	assert_string_equal(e.msg, "no room");
	assert_true(ntaken == 1 && asked == 2);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(those_that_are_not_0_are_handed_over),
		TEST(a_sites_error_is_told_once),
		TEST(one_stack_that_is_not_known_makes_all_unknown),
		TEST(who_cannot_take_more_is_given_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
