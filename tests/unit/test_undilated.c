/*
 * tests/unit/test_undilated.c - windows in the target's own time, and the price of a hit that this
 * needs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "sampling/undilated.h"

#define WINDOW 8e6
#define PRICE  800.0

static void near(double got, double want)
{
	if (fabs(got - want) > 1e-6 * fabs(want))
		print_error("%f instead of %f\n", got, want);
	assert_true(fabs(got - want) <= 1e-6 * fabs(want));
}

/*
 * A CPU that hits probes all the time is slowed down; the slowest CPU must have had its own time
 * before the window ends.
 */
static void the_slowest_cpu_counts(void **state)
{
	struct undilated_window w = {};

	(void)state;
	undilated_cpu(&w, WINDOW, 0);
	assert_int_equal(w.active, 0);
	near(w.slow, 1);
	undilated_cpu(&w, WINDOW, WINDOW / 2);
	near(w.slow, 2);
	undilated_cpu(&w, WINDOW, WINDOW * 0.9);
	near(w.slow, 10);
	undilated_cpu(&w, WINDOW, WINDOW / 4);
	near(w.slow, 10);
	assert_int_equal(w.active, 3);
}

/* More time in probes than there was, and a window of no length. */
static void what_cannot_be_is_bounded(void **state)
{
	struct undilated_window w = {}, none = {};

	(void)state;
	undilated_cpu(&w, WINDOW, 1e30);
	near(w.slow, 10);
	undilated_cpu(&none, 0, 0);
	assert_true(none.slow >= 1 && none.slow <= 10);
	assert_int_equal(none.active, 0);
}

static void the_window_fits(void **state)
{
	struct undilated_window calm = { .slow = 1 }, busy = { .slow = 20, .active = 1 },
				wild = { .slow = 10 };
	struct undilated o;

	(void)state;
	undilated_init(&o, PRICE, WINDOW, 0);
	near(o.own, WINDOW / (1 + 2.8 * 7));
	assert_int_equal(undilated_abi(&o).ns, (uint64_t)o.own);
	assert_int_equal(undilated_abi(&o).hit_ns, 800);
	/* A larger slowdown than expected is believed at once. */
	undilated_over(&o, &busy, WINDOW, 10, 1, -1);
	near(o.own, WINDOW / (1 + 2.8 * 19));
	/* A smaller one is believed little by little. */
	undilated_over(&o, &calm, WINDOW, 10, 1, -1);
	near(o.slow, 0.9 * 20 + 0.1);
	for (int i = 0; i < 300; i++)
		undilated_over(&o, &calm, WINDOW, 10, 1, -1);
	assert_true(o.own > 0.99 * WINDOW && o.own <= WINDOW);
	for (int i = 0; i < 10; i++)
		undilated_over(&o, &wild, WINDOW, 10, 1, -1);
	assert_true(o.own > WINDOW / 30);
}

/*
 * When nothing is known, a few windows count more than the guess; a short measurement counts at
 * once.
 */
static void a_guess_is_soon_forgotten(void **state)
{
	struct undilated_window calm = { .slow = 1 };
	struct undilated o;

	(void)state;
	undilated_init(&o, PRICE, WINDOW, 0);
	for (int i = 0; i < 6; i++)
		undilated_over(&o, &calm, WINDOW, 10, 1, -1);
	near(o.slow, 2);
	undilated_init(&o, PRICE, WINDOW, 1);
	near(o.own, WINDOW / (1 + 2.8 * 0.25));
	undilated_init(&o, PRICE, WINDOW, 2);
	near(o.own, WINDOW / (1 + 2.8 * 2));
	undilated_init(&o, PRICE, WINDOW, 1e9);
	near(o.own, WINDOW / (1 + 2.8 * 9));
}

/* A window of no length would have no limit. */
static void no_window_is_without_limit(void **state)
{
	struct undilated_window wild = { .slow = 10, .active = 2 };
	struct undilated o;

	(void)state;
	undilated_init(&o, 0, 0, 0);
	assert_true(undilated_abi(&o).ns > 0);
	undilated_over(&o, &wild, 0, 1.0 / 0.0, 0.0 / 0.0, 5);
	undilated_over(&o, &wild, 0, 1, 5, 5);
	assert_true(undilated_abi(&o).ns > 0);
	assert_true(isfinite(o.hit) && isfinite(o.own));
}

/*
 * A program that does nothing but allocate, every @gap ns, in windows of its own time; a hit
 * really takes @truth. If the believed price is too high, a window ends after too many events; if
 * it is too low, after too few.
 */
static double believed_after(double truth, double gap, int windows, double first)
{
	struct undilated_window w = { .slow = 3, .active = 1 };
	struct undilated o;

	undilated_init(&o, first, WINDOW, 0);
	for (int i = 0; i < windows; i++) {
		double weight = 100,
		       seen = o.own / (gap + truth - o.hit > 1 ? gap + truth - o.hit : 1);
		double exact = weight * o.own / gap;

		undilated_over(&o, &w, WINDOW, weight, seen * weight, exact);
	}
	return o.hit;
}

static void the_price_comes_to_agree_with_the_runtime(void **state)
{
	(void)state;
	assert_true(fabs(believed_after(1000, 500, 2000, 800) - 1000) < 20);
	assert_true(fabs(believed_after(600, 500, 2000, 800) - 600) < 20);
	near(believed_after(800, 500, 2000, 800), 800);
	/* Too few windows say nothing yet. */
	near(believed_after(1000, 500, 3, 800), 800);
}

/* The price stays near the measured one, and finite, whatever the target claims to have done. */
static void no_target_talks_it_out_of_reason(void **state)
{
	static const double claims[] = { 0,	1,	   1e3,	      1e12, 1e19,
					 1e300, 1.0 / 0.0, 0.0 / 0.0, -1,   -1e9 };
	struct undilated_window w = { .slow = 5, .active = 2 };

	(void)state;
	for (size_t i = 0; i < sizeof(claims) / sizeof(*claims); i++) {
		for (size_t k = 0; k < sizeof(claims) / sizeof(*claims); k++) {
			struct undilated o;

			undilated_init(&o, PRICE, WINDOW, 0);
			for (int n = 0; n < 200; n++)
				undilated_over(&o, &w, WINDOW, 100, claims[i], claims[k]);
			assert_true(o.hit >= 0.6 * PRICE - 1e-6 && o.hit <= 2.5 * PRICE + 1e-6);
			assert_true(o.own > 0 && o.own <= WINDOW);
		}
	}
}

/* Windows for which the runtime's count is not known must not make it more certain. */
static void what_is_not_known_makes_nobody_sure(void **state)
{
	struct undilated_window w = { .slow = 5, .active = 2 };
	struct undilated o;

	(void)state;
	undilated_init(&o, PRICE, WINDOW, 0);
	for (int i = 0; i < 100; i++)
		undilated_over(&o, &w, WINDOW, 100, 1000, -1);
	assert_int_equal(o.windows, 0);
	undilated_over(&o, &w, WINDOW, 100, 1000, 5000);
	near(o.hit, PRICE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_slowest_cpu_counts),
		cmocka_unit_test(what_cannot_be_is_bounded),
		cmocka_unit_test(the_window_fits),
		cmocka_unit_test(a_guess_is_soon_forgotten),
		cmocka_unit_test(no_window_is_without_limit),
		cmocka_unit_test(the_price_comes_to_agree_with_the_runtime),
		cmocka_unit_test(no_target_talks_it_out_of_reason),
		cmocka_unit_test(what_is_not_known_makes_nobody_sure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
