/* tests/unit/test_window_size.c - the length of windows, from what their hits take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "sampling/windows/window_size.h"

#define MS 1000000.0

enum { LEAST = 8000000, MOST = 50000000 };

/* Windows of a program whose hits take @rate ns of each ns. */
static struct window_size after(int windows, double rate)
{
	struct window_size w;

	window_size_init(&w, 2 * MS, LEAST, MOST);
	for (int i = 0; i < windows; i++)
		window_size_over(&w, w.length, rate * (double)w.length);
	return w;
}

static void near(double got, double want)
{
	if (fabs(got - want) > 0.01 * want)
		print_error("%f instead of %f\n", got, want);
	assert_true(fabs(got - want) <= 0.01 * want);
}

static void as_long_as_makes_hits_cost_half(void **state)
{
	struct window_size w = after(20, 0.025);

	(void)state;
	near((double)w.length, 40 * MS);
	near(window_size_cost(&w), 3 * MS);
	w = after(20, 0.5);
	assert_int_equal(w.length, LEAST);
	near(window_size_cost(&w), 6 * MS);
	w = after(20, 0.001);
	assert_int_equal(w.length, MOST);
	near(window_size_cost(&w), 2.05 * MS);
	w = after(20, 0);
	assert_int_equal(w.length, MOST);
}

/*
 * Windows become longer little by little, because one moment may have been quiet, but shorter at
 * once.
 */
static void a_burst_shortens_them(void **state)
{
	struct window_size w = after(1, 0);

	(void)state;
	assert_int_equal(w.length, 2 * LEAST);
	w = after(20, 0.001);
	window_size_over(&w, w.length, 50 * MS);
	assert_int_equal(w.length, LEAST);
	assert_true(window_size_cost(&w) < 5 * MS);
	/* And they stay short as long as one of a few meets a burst. */
	for (int i = 0; i < 40; i++) {
		window_size_over(&w, w.length, i % 4 ? 0 : 4 * MS);
		assert_int_equal(w.length, LEAST);
	}
}

static void what_is_not_known(void **state)
{
	struct window_size w = after(0, 0);
	static const double costs[] = { 0, -1, 1e300, 1.0 / 0.0, 0.0 / 0.0 };

	(void)state;
	assert_true(window_size_cost(&w) == 0);
	w = after(20, 0.025);
	window_size_again(&w);
	assert_int_equal(w.length, LEAST);
	near(window_size_cost(&w), 2.2 * MS); /* and not 3, because it is shorter */
	window_size_over(&w, w.length, 4 * MS);
	near(window_size_cost(&w), 6 * MS);
	window_size_forget(&w);
	assert_true(window_size_cost(&w) == 0);
	for (size_t i = 0; i < sizeof(costs) / sizeof(*costs); i++) {
		w = after(3, 0.05);
		window_size_over(&w, w.length, costs[i]);
		assert_true(w.length >= LEAST && w.length <= MOST);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_long_as_makes_hits_cost_half),
		cmocka_unit_test(a_burst_shortens_them),
		cmocka_unit_test(what_is_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
