/* tests/unit/test_calibrate.c - the regression estimator for sites, and rhythms. */
#include "sampling/windows/calibrate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sampling/windows/burstiness.h"

static void add(struct tally *t, uint64_t pc, size_t group, double n)
{
	struct gpb_stack st = { .count = (uint64_t)n, .nfirst = 1, .of = { group } };

	st.pc[0] = pc;
	if (st.count)
		assert_int_equal(tally_add(t, &st, group, NULL), 0);
}

static double estimate(const struct tally *t, const struct calibrate *c, uint64_t pc, size_t group,
		       double total, double *variance)
{
	for (size_t i = 0; i < t->entries.n; i++) {
		const struct tally_entry *en = &t->entries.at[i];
		struct tally_estimate est;

		if (en->st->pc[0] != pc || en->group != group)
			continue;
		est = calibrate_site(c, t, en, total);
		*variance = est.variance;
		return est.value;
	}
	fail();
	return 0;
}

/*
 * One thread makes 2 of class 1 for each one of class 2; another makes only class 1, from a site
 * of its own. Windows see only half of what the first thread does.
 */
static void unequal(struct tally *t, size_t windows)
{
	for (size_t k = 0; k < windows; k++) {
		double a = 100 + 7 * (double)(k % 5), b = 100 + 9 * (double)(k % 7);
		double all[GPB_CLASSES] = { 0, 2 * a + b, a };
		const struct tally_window w = { .weight = 1, .all = all };

		add(t, 11, 1, 2 * a);
		add(t, 12, 1, b);
		add(t, 21, 2, a);
		tally_window(t, &w);
	}
}

static void test_unequal(void **state)
{
	double total[TALLY_GROUPS] = {}, a = 0, b = 0, variance;
	const double bytes[TALLY_GROUPS] = { 0, 3, 2 };
	struct calibrate c;
	struct tally t;

	(void)state;
	tally_init(&t);
	unequal(&t, 70);
	for (size_t i = 0; i < t.entries.n; i++) {
		a += t.entries.at[i].st->pc[0] == 21 ? t.entries.at[i].counts.x : 0;
		b += t.entries.at[i].st->pc[0] == 12 ? t.entries.at[i].counts.x : 0;
	}
	total[2] = 2 * a;
	total[1] = 4 * a + b;
	calibrate_init(&c, &t, total, bytes);
	assert_int_equal(c.n, 2);
	assert_true(fabs(estimate(&t, &c, 11, 1, total[1], &variance) / (4 * a) - 1) < 0.02);
	assert_true(variance >= 0 && sqrt(variance) < 0.1 * a);
	assert_true(fabs(estimate(&t, &c, 12, 1, total[1], &variance) / b - 1) < 0.04);
	assert_true(fabs(estimate(&t, &c, 21, 2, total[2], &variance) / (2 * a) - 1) < 1e-9);
	/* The plain share is far off. */
	assert_true(tally_counts(&t, &t.entries.at[0], total[1]).value < 0.9 * 4 * a);
	tally_fini(&t);
}

/* With few windows, or without known totals, plain shares are given. */
static void test_nothing_to_go_by(void **state)
{
	double total[TALLY_GROUPS] = { 0, 1000, -1 }, variance;
	const double bytes[TALLY_GROUPS] = { 0, 3, 2 };
	struct calibrate c;
	struct tally t;

	(void)state;
	tally_init(&t);
	unequal(&t, 7);
	calibrate_init(&c, &t, total, bytes);
	assert_int_equal(c.n, 0);
	assert_true(fabs(estimate(&t, &c, 11, 1, 1000, &variance) +
			 estimate(&t, &c, 12, 1, 1000, &variance) - 1000) < 1e-6);
	unequal(&t, 100);
	calibrate_init(&c, &t, total, bytes);
	assert_int_equal(c.n, 1);
	assert_true(estimate(&t, &c, 21, 2, -1, &variance) == t.entries.at[2].counts.x);
	tally_fini(&t);
}

/*
 * Classes that always come in the same proportion give no direction, and must not give wild
 * numbers.
 */
static void test_alike(void **state)
{
	double total[TALLY_GROUPS] = { 0, 8000, 100000 }, variance;
	const double bytes[TALLY_GROUPS] = { 0, 1, 1 };
	struct calibrate c;
	struct tally t;

	(void)state;
	tally_init(&t);
	for (size_t k = 0; k < 40; k++) {
		double all[GPB_CLASSES] = { 0, 200, 100 };
		const struct tally_window w = { .weight = 1, .all = all };

		add(&t, 11, 1, 50 + (double)(k % 3));
		add(&t, 12, 1, 150 - (double)(k % 3));
		add(&t, 21, 2, 100);
		tally_window(&t, &w);
	}
	calibrate_init(&c, &t, total, bytes);
	assert_true(fabs(estimate(&t, &c, 11, 1, 8000, &variance) - 2040) < 100);
	assert_true(isfinite(variance));
	tally_fini(&t);
}

static struct burstiness burstiness_of(unsigned busy_ms, unsigned period_ms, unsigned ms)
{
	struct burstiness r = {};
	double count = 0;

	for (unsigned now = 0; now <= ms; now += 5) {
		count += now % period_ms < busy_ms ? 1000 : 1;
		burstiness_look(&r, 1 + now * 1000000ull, count);
	}
	return r;
}

static void test_burstiness(void **state)
{
	struct burstiness r;

	(void)state;
	r = burstiness_of(50, 1000, 5000);
	assert_true(burstiness_is_high(&r));
	assert_true(fabs(r.mean * 1e9 / 10190 - 1) < 0.2);
	r = burstiness_of(100, 100, 5000);
	assert_false(burstiness_is_high(&r));
	r = burstiness_of(125, 250, 5000);
	assert_false(burstiness_is_high(&r));
	r = burstiness_of(50, 1000, 300); /* too early to tell */
	assert_false(burstiness_is_high(&r));
	burstiness_look(&r, r.at, r.count - 10); /* no time, and a count that went down */
	assert_true(isfinite(r.mean) && r.mean >= 0);
}

/* @rate of the steps of 5 ms, from @from ms until @to. True: it forgot what it knew. */
static bool look_on(struct burstiness *r, unsigned from, unsigned to, double rate)
{
	bool forgot = false;

	for (unsigned now = from; now < to; now += 5)
		forgot |= burstiness_look(r, 1 + now * 1000000ull, r->count + rate);
	return forgot;
}

/* A burst that does not come again says nothing of the future; one that does is one of many. */
static void test_last_burst(void **state)
{
	struct burstiness r = {};

	(void)state;
	assert_false(look_on(&r, 0, 1000, 5000));
	assert_false(look_on(&r, 1000, 1990, 100));
	assert_true(look_on(&r, 1990, 2100, 100));
	assert_false(burstiness_is_high(&r));
	assert_true(fabs(r.mean * 1e9 / 20000 - 1) < 0.1);
	assert_false(look_on(&r, 2100, 10000, 100));
	/* From here on bursts are 0.9 s apart. */
	for (unsigned i = 0; i < 10; i++) {
		assert_false(look_on(&r, 10000 + i * 1000, 10100 + i * 1000, 20000));
		assert_false(look_on(&r, 10100 + i * 1000, 11000 + i * 1000, 100));
		if (i > 7)
			assert_true(burstiness_is_high(&r));
	}
	/* A pause twice as long is not the end yet. */
	assert_false(look_on(&r, 20000, 20800, 100));
	assert_true(burstiness_is_high(&r));
	assert_true(look_on(&r, 20800, 30000, 100));
	assert_false(burstiness_is_high(&r));
	assert_true(fabs(r.mean * 1e9 / 20000 - 1) < 0.1);
}

/* It holds for bursts that are far apart, too: 6 s, and then no more. */
static void test_last_of_rare_bursts(void **state)
{
	struct burstiness r = {};
	bool forgot = false;

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		look_on(&r, i * 6000, 100 + i * 6000, 2e6);
		look_on(&r, 100 + i * 6000, 6000 + i * 6000, 100);
	}
	for (unsigned s = 36; s < 60; s += 4)
		forgot |= look_on(&r, s * 1000, s * 1000 + 4000, 100);
	assert_true(forgot);
	assert_true(fabs(r.mean * 1e9 / 20000 - 1) < 0.1);
}

/* It did something once and does nothing now: that is not a burst. */
static void test_nothing_any_more(void **state)
{
	struct burstiness r = {};

	(void)state;
	look_on(&r, 0, 300, 5000);
	assert_true(look_on(&r, 300, 2000, 0));
	assert_true(r.mean == 0);
	look_on(&r, 2000, 10000, 0);
	assert_false(burstiness_is_high(&r));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unequal),
		cmocka_unit_test(test_nothing_to_go_by),
		cmocka_unit_test(test_alike),
		cmocka_unit_test(test_burstiness),
		cmocka_unit_test(test_last_burst),
		cmocka_unit_test(test_last_of_rare_bursts),
		cmocka_unit_test(test_nothing_any_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
