/* tests/unit/test_trace_sums.c - quantiles, utilisation and stretches of a trace, beside plain sums. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "ingest/exectrace/summary/mmu.h"
#include "ingest/exectrace/summary/quantiles.h"
#include "ingest/exectrace/summary/trace_kinds.h"

static struct err e;

/* The same row of numbers in every run. */
static uint64_t row = 1;
static uint64_t draw(void)
{
	row = row * 6364136223846793005u + 1442695040888963407u;
	return row >> 16;
}

/* ---- quantiles ---- */

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void quantiles_are_near(void **state)
{
	enum { N = 5000 };
	static uint64_t values[N];
	struct quantiles q = {};
	uint64_t sum = 0;

	(void)state;
	for (size_t i = 0; i < N; i++) {
		values[i] = draw() >> (draw() % 47); /* of all lengths */
		sum += values[i];
		assert_true(quantiles_add(&q, values[i]));
	}
	qsort(values, N, sizeof(values[0]), by_value);
	assert_int_equal(q.n, N);
	assert_int_equal(q.sum, sum);
	assert_int_equal(q.min, values[0]);
	assert_int_equal(q.max, values[N - 1]);
	for (unsigned i = 1; i <= N; i++) {
		uint64_t got = quantiles_get(&q, (double)i / N), want = values[i - 1];
		uint64_t off = got > want ? got - want : want - got;

		assert_true(off <= want / 128);
	}
	quantiles_fini(&q);
}

static void quantiles_of_few(void **state)
{
	struct quantiles q = {};

	(void)state;
	assert_int_equal(quantiles_get(&q, 0.5), 0);
	assert_true(quantiles_add(&q, 1000003));
	assert_int_equal(quantiles_get(&q, 0), 1000003);
	assert_int_equal(quantiles_get(&q, 0.5), 1000003);
	assert_int_equal(quantiles_get(&q, 1), 1000003);
	assert_true(quantiles_add(&q, UINT64_MAX));
	assert_int_equal(quantiles_get(&q, 1), UINT64_MAX);
	assert_int_equal(q.sum, UINT64_MAX);
	quantiles_fini(&q);
}

/* ---- utilisation ---- */

enum { STEPS = 400 };
static int64_t times[STEPS + 1]; /* the last: the end */
static double utils[STEPS];

static double integral(int64_t from, int64_t to)
{
	double sum = 0;

	for (size_t i = 0; i < STEPS; i++) {
		int64_t a = times[i] > from ? times[i] : from;
		int64_t b = times[i + 1] < to ? times[i + 1] : to;

		if (a < b)
			sum += utils[i] * (double)(b - a);
	}
	return sum;
}

static double worst(int64_t ns)
{
	double min = 2;

	for (size_t i = 0; i < 2 * (STEPS + 1); i++) {
		int64_t from = times[i / 2] - (i % 2 ? ns : 0);
		double mean;

		if (from < times[0] || from + ns > times[STEPS])
			continue;
		mean = integral(from, from + ns) / (double)ns;
		min = mean < min ? mean : min;
	}
	return min;
}

/* @mean_ns: between two changes */
static void compare(int64_t mean_ns)
{
	struct mmu *m = NULL;
	size_t known = 0;

	for (size_t i = 0; i <= STEPS; i++) {
		times[i] = i ? times[i - 1] + (int64_t)(draw() % (uint64_t)(2 * mean_ns)) : 12345;
		if (i < STEPS)
			utils[i] = (double)(draw() % 5) / 4;
	}
	assert_int_equal(mmu_new(&m, &e), 0);
	for (size_t i = 0; i < STEPS; i++)
		assert_int_equal(mmu_set(m, times[i], utils[i], &e), 0);
	mmu_end(m, times[STEPS]);
	for (size_t i = 0; i < MMU_WINDOWS; i++) {
		struct mmu_window w = mmu_window(m, i);

		assert_int_equal(w.known, times[STEPS] - times[0] >= w.ns);
		if (!w.known)
			continue;
		known++;
		assert_true(w.min - worst(w.ns) < 1e-9 && worst(w.ns) - w.min < 1e-9);
		assert_true(integral(w.at_ns, w.at_ns + w.ns) / (double)w.ns - w.min < 1e-9);
	}
	assert_true(known);
	assert_true(mmu_mean(m) -
			    integral(times[0], times[STEPS]) / (double)(times[STEPS] - times[0]) <
		    1e-9);
	mmu_free(m);
}

static void utilisation_is_exact(void **state)
{
	(void)state;
	for (size_t i = 0; i < 10; i++) {
		compare(10000);
		compare(1000000);
		compare(30000000);
	}
}

static void utilisation_of_nothing(void **state)
{
	struct mmu *m = NULL;

	(void)state;
	assert_int_equal(mmu_new(&m, &e), 0);
	mmu_end(m, 5);
	assert_true(mmu_mean(m) < 0);
	for (size_t i = 0; i < MMU_WINDOWS; i++)
		assert_false(mmu_window(m, i).known);
	mmu_free(m);
}

/* More changes in a second than there is room for: the shorter windows stay, and are right. */
static void utilisation_of_too_many_changes(void **state)
{
	struct mmu *m = NULL;
	int64_t now = 0;

	(void)state;
	assert_int_equal(mmu_new(&m, &e), 0);
	for (size_t i = 0; i < 5u * LIMIT_TRACE_STEPS / 2; i++, now += 500)
		assert_int_equal(mmu_set(m, now, i % 2 ? 0.25 : 0.75, &e), 0);
	mmu_end(m, now);
	assert_false(mmu_window(m, MMU_WINDOWS - 1).known);
	assert_true(mmu_window(m, MMU_WINDOWS - 2).known);
	assert_true(mmu_window(m, 0).min > 0.4999 && mmu_window(m, 0).min < 0.5001);
	mmu_free(m);
}

/* ---- stretches ---- */

static const struct trace_kind_sum *kind(const struct trace_kinds *k, uint32_t name)
{
	for (size_t i = 0; i < k->all.n; i++)
		if (k->all.at[i].name == name)
			return &k->all.at[i];
	return NULL;
}

static void stretches_nest(void **state)
{
	struct trace_kinds k = {};

	(void)state;
	assert_true(trace_kinds_begin(&k, 7, 1, 100, false));
	assert_true(trace_kinds_begin(&k, 7, 2, 110, false));
	assert_true(trace_kinds_begin(&k, 8, 1, 105, false));
	assert_true(trace_kinds_end(&k, 7, 2, 150, 0, false));
	assert_true(trace_kinds_goes_on(&k, 7));
	assert_true(trace_kinds_end(&k, 7, 1, 300, 0, false));
	assert_false(trace_kinds_goes_on(&k, 7));
	trace_kinds_finish(&k);
	assert_int_equal(k.all.n, 2);
	assert_int_equal(k.all.at[0].name, 1); /* the longest first */
	assert_int_equal(kind(&k, 1)->q.sum, 200);
	assert_int_equal(kind(&k, 1)->unfinished, 1);
	assert_int_equal(kind(&k, 2)->q.sum, 40);
	trace_kinds_fini(&k);
}

static void stretches_of_before(void **state)
{
	struct trace_kinds k = {};

	(void)state;
	/* one that was over before the time that counts, one that goes on then, one that nobody saw begin */
	assert_true(trace_kinds_begin(&k, 1, 1, 50, true));
	assert_true(trace_kinds_end(&k, 1, 1, 50, 50, true));
	assert_true(trace_kinds_begin(&k, 2, 2, 50, true));
	assert_true(trace_kinds_end(&k, 2, 2, 60, 50, false));
	assert_true(trace_kinds_end(&k, 3, 3, 90, 50, false));
	trace_kinds_finish(&k);
	assert_null(kind(&k, 1));
	assert_int_equal(kind(&k, 2)->earlier, 1);
	assert_int_equal(kind(&k, 2)->q.sum, 10);
	assert_int_equal(kind(&k, 3)->earlier, 1);
	assert_int_equal(kind(&k, 3)->q.sum, 40);
	trace_kinds_fini(&k);
}

static void stretches_of_those_that_are_gone(void **state)
{
	struct trace_kinds k = {};

	(void)state;
	assert_true(trace_kinds_begin(&k, 1, 1, 10, false));
	assert_true(trace_kinds_begin(&k, 1, 1, 20, false));
	trace_kinds_gone(&k, 1);
	assert_false(trace_kinds_goes_on(&k, 1));
	trace_kinds_finish(&k);
	assert_int_equal(kind(&k, 1)->unfinished, 2);
	trace_kinds_fini(&k);
}

static void stretches_of_too_many_names(void **state)
{
	struct trace_kinds k = {};

	(void)state;
	for (uint32_t i = 0; i < LIMIT_TRACE_KINDS + 10; i++) {
		assert_true(trace_kinds_begin(&k, i, i, 1, false));
		assert_true(trace_kinds_end(&k, i, i, 2, 0, false));
	}
	assert_int_equal(k.all.n, LIMIT_TRACE_KINDS);
	assert_int_equal(k.others, 10);
	trace_kinds_fini(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantiles_are_near),
		cmocka_unit_test(quantiles_of_few),
		cmocka_unit_test(utilisation_is_exact),
		cmocka_unit_test(utilisation_of_nothing),
		cmocka_unit_test(utilisation_of_too_many_changes),
		cmocka_unit_test(stretches_nest),
		cmocka_unit_test(stretches_of_before),
		cmocka_unit_test(stretches_of_those_that_are_gone),
		cmocka_unit_test(stretches_of_too_many_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
