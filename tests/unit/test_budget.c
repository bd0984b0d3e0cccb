/*
 * tests/unit/test_budget.c - the budget of probes as an account: what comes in, what goes out,
 * and who has to stop. The clocks are made up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "sampling/windows/budget.h"

static uint64_t now_ns, cpu_ns;
static bool gone; /* the target has exited, and its clock is gone */

static uint64_t told_now(void *arg)
{
	(void)arg;
	return now_ns;
}

static uint64_t told_cpu(void *arg)
{
	(void)arg;
	return gone ? 0 : cpu_ns;
}

#define MS 1000000.0

struct world {
	struct budget_owner o;
	struct budget *shared;
};

static struct world world(unsigned ppm)
{
	now_ns = 5000000000ull;
	cpu_ns = 100000000ull;
	gone = false;
	return (struct world){
		.o = { .now_ns = told_now, .cpu_ns = told_cpu, .share = ppm / 1e6 }
	};
}

static struct budget *join(struct world *w, struct budget_member *m)
{
	struct budget *b = budget_join(&w->shared, &w->o, m);

	assert_non_null(b);
	return b;
}

/* Lets so much time pass, in which the target uses @cpus CPUs. */
static void pass_ms(double ms, double cpus)
{
	now_ns += (uint64_t)(ms * MS);
	cpu_ns += (uint64_t)(ms * cpus * MS);
}

static void near(double got, double want)
{
	if (got < want * 0.999 - 1 || got > want * 1.001 + 1)
		print_error("%f instead of %f\n", got, want);
	assert_true(got >= want * 0.999 - 1 && got <= want * 1.001 + 1);
}

/* ---- the members ---- */

static void members_share_one(void **state)
{
	struct world w = world(50000), own = world(0);
	struct budget_member a = {}, b = {}, c = {};
	struct budget *x = join(&w, &a), *y = join(&w, &b), *z;

	(void)state;
	assert_ptr_equal(x, y);
	assert_ptr_equal(w.shared, x);
	budget_leave(&w.shared, x, &a);
	assert_ptr_equal(w.shared, x);
	budget_leave(&w.shared, x, &b);
	assert_null(w.shared);

	/* A member without a bound does not join those that have one. */
	x = join(&w, &a);
	own.shared = x;
	z = join(&own, &c);
	assert_ptr_not_equal(x, z);
	assert_ptr_equal(own.shared, x);
	budget_leave(&own.shared, z, &c);
	assert_ptr_equal(own.shared, x);
	budget_leave(&w.shared, x, &a);
}

/* ---- what comes in and goes out ---- */

static void a_moment_is_no_habit(void **state)
{
	struct world w = world(50000);
	struct budget_member m = { .full = true };
	struct budget *b = join(&w, &m);

	(void)state;
	budget_spend(b, &m, 10 * MS);
	assert_false(budget_exceeded(b, &m));
	budget_spend(b, &m, 1);
	assert_true(budget_exceeded(b, &m));
	near(m.spent, 10 * MS + 1);
	budget_leave(&w.shared, b, &m);
}

static void no_bound_is_never_exceeded(void **state)
{
	struct world w = world(0);
	struct budget_member m = { .full = true };
	struct budget *b = join(&w, &m);

	(void)state;
	budget_spend(b, &m, 1e18);
	assert_false(budget_exceeded(b, &m));
	budget_leave(&w.shared, b, &m);
}

/*
 * Two CPUs for a second at 5 %: 100 ms. At most one second's worth is saved up, and 10 ms are
 * lent.
 */
static void credit_is_a_share_of_cpu_time(void **state)
{
	struct world w = world(50000);
	struct budget_member m = { .full = true };
	struct budget *b = join(&w, &m);

	(void)state;
	for (int i = 0; i < 100; i++) {
		pass_ms(100, 2);
		budget_spend(b, &m, 0);
	}
	budget_spend(b, &m, 109.9 * MS);
	assert_false(budget_exceeded(b, &m));
	budget_spend(b, &m, 0.2 * MS);
	assert_true(budget_exceeded(b, &m));
	near(budget_cpu_ns(b), 20000 * MS);

	/* The loan is paid back from what comes in. */
	pass_ms(10, 2);
	budget_spend(b, &m, 0);
	assert_false(budget_exceeded(b, &m));
	budget_leave(&w.shared, b, &m);
}

/* A program that does nothing earns as if it used a tenth of a CPU. */
static void there_is_a_floor(void **state)
{
	struct world w = world(50000);
	struct budget_member m = { .full = true };
	struct budget *b = join(&w, &m);

	(void)state;
	budget_spend(b, &m, 12 * MS);
	pass_ms(380, 0);
	budget_spend(b, &m, 0);
	assert_true(budget_exceeded(b, &m));
	pass_ms(40, 0);
	budget_spend(b, &m, 0);
	assert_false(budget_exceeded(b, &m));
	budget_leave(&w.shared, b, &m);
}

/* Of two that observe everything, the more expensive one has to stop. */
static void the_dearer_one_stops(void **state)
{
	struct world w = world(50000);
	struct budget_member a = { .full = true }, c = { .full = true };
	struct budget *b = join(&w, &a);

	(void)state;
	join(&w, &c);
	for (int i = 0; i < 50; i++) {
		pass_ms(20, 1);
		budget_spend(b, &a, 2 * MS);
		budget_spend(b, &c, 1 * MS);
	}
	near(a.lately, 0.1);
	near(c.lately, 0.05);
	assert_true(budget_exceeded(b, &a));
	assert_false(budget_exceeded(b, &c));
	a.full = false;
	assert_true(budget_exceeded(b, &c));
	budget_leave(&w.shared, b, &a);
	budget_leave(&w.shared, b, &c);
}

/* ---- clocks that misbehave ---- */

static void time_that_goes_back_earns_nothing(void **state)
{
	struct world w = world(50000);
	struct budget_member m = { .full = true };
	struct budget *b = join(&w, &m);

	(void)state;
	budget_spend(b, &m, 10 * MS);
	now_ns -= 1000000000;
	cpu_ns += 1000000000;
	budget_spend(b, &m, 1);
	assert_true(budget_exceeded(b, &m));
	assert_true(m.lately >= 0 && m.lately < 1e9);
	now_ns += 2000000000; /* and forward again: all of the CPU time is credited, once */
	budget_spend(b, &m, 0);
	assert_false(budget_exceeded(b, &m));
	near(budget_cpu_ns(b), 1000 * MS);
	budget_leave(&w.shared, b, &m);
}

/* Payments within one tick of the clock are not forgotten. */
static void a_payment_in_no_time_counts_later(void **state)
{
	struct world w = world(50000);
	struct budget_member m = { .full = true };
	struct budget *b = join(&w, &m);

	(void)state;
	budget_spend(b, &m, 3 * MS);
	budget_spend(b, &m, 2 * MS);
	near(m.lately * 1e9, 0);
	pass_ms(100, 1);
	budget_spend(b, &m, 0);
	near(m.lately * 1e9, 0.05 * 1e9);
	budget_leave(&w.shared, b, &m);
}

/* Its clock is gone, or belongs to another process now: what was known stays. */
static void a_target_that_exits_earns_no_more(void **state)
{
	struct world w = world(50000);
	struct budget_member m = { .full = true };
	struct budget *b = join(&w, &m);

	(void)state;
	pass_ms(1000, 1);
	near(budget_cpu_ns(b), 1000 * MS);
	gone = true;
	pass_ms(1000, 1);
	near(budget_cpu_ns(b), 1000 * MS);
	budget_spend(b, &m, 61 * MS);
	assert_true(budget_exceeded(b, &m));
	gone = false;
	cpu_ns = 5;
	near(budget_cpu_ns(b), 1000 * MS);
	budget_leave(&w.shared, b, &m);
}

/* ---- windows ---- */

static void windows_are_as_far_apart_as_they_cost(void **state)
{
	struct world w = world(50000);
	struct budget_member m = {};
	struct budget *b = join(&w, &m);

	(void)state;
	for (int i = 0; i < 10; i++) {
		pass_ms(100, 1);
		budget_spend(b, &m, 5 * MS);
	}
	/* 5 % of one CPU. */
	near(budget_stratum(b, &m, 5 * MS), 100 * MS);
	near(budget_stratum(b, &m, 50 * MS), 1000 * MS);
	/* A debt is paid back with half of what comes in. */
	budget_spend(b, &m, 40 * MS);
	near(budget_stratum(b, &m, 5 * MS), 200 * MS);
	/* A small debt is paid back at once. */
	near(budget_stratum(b, &m, 50 * MS), (50 + 40) * MS / 0.05);
	budget_leave(&w.shared, b, &m);
}

static void no_stratum_is_for_ever(void **state)
{
	struct world w = world(1);
	struct budget_member m = {};
	struct budget *b = join(&w, &m);
	static const double costs[] = { 0, 1, 1e9, 1e30, 1e308, 1.0 / 0.0, 0.0 / 0.0 };

	(void)state;
	pass_ms(100, 1);
	for (size_t i = 0; i < sizeof(costs) / sizeof(*costs); i++) {
		double ns = budget_stratum(b, &m, costs[i]);

		assert_true(ns >= 0 && ns <= 1e12);
	}
	budget_leave(&w.shared, b, &m);
}

/* At a command's start time may be taken ahead; the bound holds for what comes after that. */
static void what_may_be_taken_ahead(void **state)
{
	struct world w = world(50000);
	struct budget_member m = { .full = true };
	struct budget *b;

	(void)state;
	w.o.ahead_ns = 1000000000;
	b = join(&w, &m);
	for (int i = 0; i < 10; i++)
		pass_ms(100, 1), budget_spend(b, &m, 99 * MS);
	assert_false(budget_exceeded(b, &m));
	assert_false(budget_in_debt(b));
	near(m.spent, 990 * MS);
	pass_ms(10, 1), budget_spend(b, &m, 90 * MS);
	assert_true(budget_in_debt(b)); /* 50.5 ms had come in, and 80 ms have gone out */
	assert_true(budget_exceeded(b, &m));
	budget_leave(&w.shared, b, &m);
}

/*
 * Two in windows have half each; beside one that observes everything they share what that leaves.
 */
static void windows_share_what_is_left(void **state)
{
	struct world w = world(50000);
	struct budget_member a = {}, c = {};
	struct budget *b = join(&w, &a);

	(void)state;
	join(&w, &c);
	for (int i = 0; i < 10; i++)
		pass_ms(100, 1), budget_spend(b, &a, 3 * MS), budget_spend(b, &c, 2 * MS);
	near(budget_stratum(b, &a, 5 * MS), 200 * MS);
	c.full = true;
	near(c.lately, 0.02);
	near(budget_stratum(b, &a, 5 * MS), 5 * MS / 0.03);
	/* However much the other one takes, half is left, and a debt at most doubles the pause. */
	for (int i = 0; i < 100; i++)
		pass_ms(100, 1), budget_spend(b, &c, 4 * MS);
	near(c.lately, 0.04);
	near(budget_stratum(b, &a, 5 * MS), 5 * MS / 0.025);
	pass_ms(1000, 1), budget_spend(b, &c, 900 * MS);
	near(budget_stratum(b, &a, 5 * MS), 2 * 5 * MS / 0.025);
	budget_leave(&w.shared, b, &a);
	budget_leave(&w.shared, b, &c);
}

/*
 * What the others do not use may be taken by whoever can use it, and more of it the more is saved
 * up.
 */
static void who_can_use_it_takes_the_rest(void **state)
{
	struct world w = world(50000);
	struct budget_member a = {}, c = {}, d = {};
	struct budget *b = join(&w, &a);

	(void)state;
	join(&w, &c);
	join(&w, &d);
	near(budget_stratum(b, &a, 5 * MS), 5 * MS / (0.005 / 3));
	pass_ms(1000, 1), budget_spend(b, &a, (50 - 12.5) * MS);
	near(budget_stratum(b, &a, 5 * MS), 5 * MS / (0.05 * (1 + 2 * 0.5) / 3));
	pass_ms(1000, 1);
	near(budget_stratum(b, &a, 5 * MS), 100 * MS);
	/* No member gets more than there is. */
	budget_spend(b, &c, 50 * MS);
	near(budget_stratum(b, &a, 5 * MS), 300 * MS);
	budget_leave(&w.shared, b, &a);
	budget_leave(&w.shared, b, &c);
	budget_leave(&w.shared, b, &d);
}

/*
 * Two that observe everything and keep within their parts need not pay for the windows of a third
 * one.
 */
static void a_debt_of_others_stops_nobody(void **state)
{
	struct world w = world(50000);
	struct budget_member a = { .full = true }, c = {};
	struct budget *b = join(&w, &a);

	(void)state;
	join(&w, &c);
	for (int i = 0; i < 20; i++)
		pass_ms(100, 1), budget_spend(b, &a, 2 * MS), budget_spend_once(b, &c, 4 * MS);
	near(a.lately, 0.02);
	assert_true(budget_in_debt(b));
	assert_false(budget_exceeded(b, &a));
	/* The other half belongs to the member in windows, so this is too much. */
	for (int i = 0; i < 20; i++)
		pass_ms(100, 1), budget_spend(b, &a, 3 * MS), budget_spend_once(b, &c, 3 * MS);
	assert_true(budget_exceeded(b, &a));
	budget_leave(&w.shared, b, &a);
	budget_leave(&w.shared, b, &c);
}

/* However many members there are, those in windows share the other half. */
static void others_in_windows_forbid_nobody_to_see_all(void **state)
{
	struct world w = world(50000);
	struct budget_member a = {}, c = {}, d = { .full = true };
	struct budget *b = join(&w, &a);

	(void)state;
	join(&w, &c);
	join(&w, &d);
	for (int i = 0; i < 10; i++)
		pass_ms(100, 1), budget_spend(b, &d, 1 * MS);
	assert_true(budget_allows(b, &a, 0.019));
	assert_false(budget_allows(b, &a, 0.021));
	budget_leave(&w.shared, b, &a);
	budget_leave(&w.shared, b, &c);
	budget_leave(&w.shared, b, &d);
}

static void full_again_only_well_within(void **state)
{
	struct world w = world(50000);
	struct budget_member m = {};
	struct budget *b = join(&w, &m);

	(void)state;
	for (int i = 0; i < 10; i++)
		pass_ms(100, 1), budget_spend(b, &m, 0);
	assert_true(budget_allows(b, &m, 0.024));
	assert_false(budget_allows(b, &m, 0.026));
	assert_false(budget_allows(b, &m, 0.0 / 0.0));
	assert_false(budget_allows(b, &m, 1.0 / 0.0));
	assert_false(budget_in_debt(b));
	/* One or two windows make no debt: what comes next pays for them. */
	budget_spend(b, &m, 54.9 * MS);
	assert_false(budget_in_debt(b));
	budget_spend(b, &m, 0.2 * MS);
	assert_true(budget_in_debt(b));
	budget_leave(&w.shared, b, &m);
}

/*
 * While nobody watches, a member that keeps to the budget may go on longer than one that does
 * not.
 */
static void unwatched_for_so_long(void **state)
{
	struct world w = world(50000);
	struct budget_member m = { .full = true };
	struct budget *b = join(&w, &m);

	(void)state;
	for (int i = 0; i < 20; i++)
		pass_ms(100, 1), budget_spend(b, &m, 1 * MS);
	near(budget_lasts(b, &m), 3e9);
	for (int i = 0; i < 20; i++)
		pass_ms(100, 1), budget_spend(b, &m, 50 * MS);
	near(budget_lasts(b, &m), 1e9);
	m.lately = 1.0 / 0.0;
	near(budget_lasts(b, &m), 1e9);
	budget_leave(&w.shared, b, &m);
}

/* What is above the share at the end is told, with what allowed it. */
static void an_excess_is_told(void **state)
{
	struct world w = world(50000);
	struct budget_member m = {}, left = {};
	struct budget *b = join(&w, &m);
	double taken = -1;

	(void)state;
	assert_ptr_equal(join(&w, &left), b);
	assert_null(budget_excess(b, &taken)); /* there is no time yet */
	pass_ms(1000, 1);
	budget_spend_once(b, &m, 30 * MS);
	budget_spend(b, &left, 20.2 * MS);
	assert_null(budget_excess(b, &taken));
	budget_leave(&w.shared, b, &left); /* what it took was taken */
	budget_spend(b, &m, 9.8 * MS);
	assert_string_equal(budget_excess(b, &taken),
			    "some 10 ms are taken ahead, and more until that is noticed");
	near(taken * 1e6, 60000);
	budget_leave(&w.shared, b, &m);
}

static void an_excess_has_its_cause(void **state)
{
	struct world w = world(50000), none = world(0);
	struct budget_member m = {}, n = {};
	struct budget *b = join(&w, &m);
	double taken = -1;

	(void)state;
	pass_ms(10000, 0.02);
	budget_spend(b, &m, 50 * MS); /* of 200 ms; a twentieth of 1,000 ms */
	assert_non_null(strstr(budget_excess(b, &taken), "less than a tenth of a CPU"));
	near(taken * 1e6, 250000);
	budget_leave(&w.shared, b, &m);

	w.o.ahead_ns = 1000000000;
	m = (struct budget_member){};
	b = join(&w, &m);
	pass_ms(2000, 1);
	budget_spend(b, &m, 900 * MS);
	assert_non_null(strstr(budget_excess(b, &taken), "first second"));
	budget_leave(&w.shared, b, &m);

	b = join(&none, &n);
	pass_ms(1000, 1);
	budget_spend(b, &n, 900 * MS);
	assert_null(budget_excess(b, &taken));
	budget_leave(&none.shared, b, &n);
}

static struct budget *join_all(const struct world *w, uint64_t (*cpu)(void *arg), void *arg,
			       struct budget_least *least, struct budget_member *m)
{
	const struct budget_owner o = { told_now, cpu, arg, w->o.share, 0, least };
	struct budget *b = budget_join(NULL, &o, m);

	assert_non_null(b);
	return b;
}

/* Two targets' CPU time, of which one has gone: its part stays in the sum. */
static uint64_t several_ns(void *arg)
{
	const uint64_t *others = arg;

	return cpu_ns + *others;
}

/* An account of several targets is filled by all of their CPU time, and is nobody else's. */
static void several_fill_one(void **state)
{
	struct budget_member m = { .full = true }, alone = { .full = true };
	struct world w = world(50000);
	uint64_t others = 7000000000ull;
	struct budget_least least = { 0 };
	struct budget *b, *other;

	(void)state;
	b = join_all(&w, several_ns, &others, &least, &m);
	other = join(&w, &alone);
	assert_ptr_not_equal(b, other);
	pass_ms(1000, 1);
	others += 3000000000ull;
	near(budget_cpu_ns(b), 4000 * MS);
	near(budget_cpu_ns(other), 1000 * MS);
	/* 5 % of four CPUs: what would be too much for one. */
	assert_true(budget_allows(b, &m, 0.09));
	assert_false(budget_allows(other, &alone, 0.09));
	budget_leave(NULL, b, &m);
	budget_leave(&w.shared, other, &alone);
}

static uint64_t no_ns(void *arg)
{
	(void)arg;
	return 0;
}

/*
 * Many files, whose programs do next to nothing: for all of them there is one floor, and one loan. What takes nothing has no
 * part of them.
 */
static void a_host_has_one_floor(void **state)
{
	enum { FILES = 10, IDLE = 3 };
	struct budget_member m[FILES + IDLE] = { 0 };
	struct budget *b[FILES + IDLE];
	struct budget_least least = { 0 };
	struct world w = world(50000);
	double sum = 0, taken;

	(void)state;
	for (int i = 0; i < FILES + IDLE; i++)
		b[i] = join_all(&w, no_ns, NULL, &least, &m[i]);
	for (int i = 0; i < FILES; i++) {
		m[i].full = true;
		budget_spend(b[i], &m[i], 1);
	}
	budget_spend_once(b[FILES], &m[FILES], 1); /* it is probed, and meets none */
	assert_int_equal(least.busy, FILES);
	near(budget_lends(b[0]), 1 * MS);
	near(budget_lends(b[FILES]), 10 * MS / (FILES + 1)); /* were it to begin */
	/* 5 % of a tenth of a CPU is 5 ms a second, and each may be 1 ms in debt. */
	for (int i = 0; i < FILES; i++)
		sum += 1 * MS / budget_stratum(b[i], &m[i], 1 * MS);
	near(sum, 0.005);
	pass_ms(1, 0);
	budget_spend(b[0], &m[0], 0.9 * MS);
	assert_false(budget_exceeded(b[0], &m[0]));
	budget_spend(b[0], &m[0], 0.2 * MS);
	assert_true(budget_exceeded(b[0], &m[0]) && budget_in_debt(b[0]));
	assert_false(budget_exceeded(b[1], &m[1]));
	budget_excess(b[0], &taken);
	for (int i = 0; i < FILES + IDLE; i++) {
		budget_leave(NULL, b[i], &m[i]);
		assert_int_equal(least.busy, i < FILES ? FILES - 1 - i : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_share_one),
		cmocka_unit_test(several_fill_one),
		cmocka_unit_test(a_host_has_one_floor),
		cmocka_unit_test(a_moment_is_no_habit),
		cmocka_unit_test(no_bound_is_never_exceeded),
		cmocka_unit_test(credit_is_a_share_of_cpu_time),
		cmocka_unit_test(there_is_a_floor),
		cmocka_unit_test(the_dearer_one_stops),
		cmocka_unit_test(time_that_goes_back_earns_nothing),
		cmocka_unit_test(a_payment_in_no_time_counts_later),
		cmocka_unit_test(a_target_that_exits_earns_no_more),
		cmocka_unit_test(windows_are_as_far_apart_as_they_cost),
		cmocka_unit_test(no_stratum_is_for_ever),
		cmocka_unit_test(what_may_be_taken_ahead),
		cmocka_unit_test(windows_share_what_is_left),
		cmocka_unit_test(who_can_use_it_takes_the_rest),
		cmocka_unit_test(a_debt_of_others_stops_nobody),
		cmocka_unit_test(others_in_windows_forbid_nobody_to_see_all),
		cmocka_unit_test(full_again_only_well_within),
		cmocka_unit_test(unwatched_for_so_long),
		cmocka_unit_test(an_excess_is_told),
		cmocka_unit_test(an_excess_has_its_cause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
