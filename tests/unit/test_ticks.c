/* tests/unit/test_ticks.c - which tick rate is believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "arch/cputicks.h"
#include "collect/waits/contention/ticks.h"

#define SECOND 1000000000ll

/* This machine: 2.5 ticks in a nanosecond, and it is up for an hour. */
static const double here = 2.5e9;
static const int64_t now_ns = 3600 * SECOND, now_ticks = 9000 * SECOND;

static struct ticks choose(int64_t start_ticks, int64_t start_ns, int64_t val)
{
	struct ticks_words w = { start_ticks, start_ns, val };

	return ticks_choose(&w, here, now_ticks, now_ns);
}

static void expect(struct ticks t, enum ticks_how how, double per_second)
{
	assert_int_equal(t.how, how);
	if (t.per_second < per_second * 0.999999 || t.per_second > per_second * 1.000001)
		fail_msg("%f, not %f", t.per_second, per_second);
	assert_true(t.measured == here);
}

/* The program's own divisor is used even when it is somewhat off. */
static void own(void **state)
{
	(void)state;
	expect(choose(0, 0, 2500000001), TICKS_OWN, 2500000001.0);
	expect(choose(now_ticks - 10, now_ns - 5, 2400000000), TICKS_OWN, 2.4e9);
	expect(choose(1, 1, 2700000000), TICKS_OWN, 2.7e9);
}

/* But an impossible one is not used. */
static void own_nonsense(void **state)
{
	static const int64_t vals[] = { 1, 1000000000, 2800000000, INT64_MAX, -2500000000 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(vals); i++)
		expect(choose(0, 0, vals[i]), TICKS_MEASURED, here);
	assert_true(choose(0, 0, 1000000000).own == 1e9);
}

static void since_start(void **state)
{
	(void)state;
	/* Ten minutes ago, by a clock that runs 0.1 % faster than what was measured here. */
	expect(choose(now_ticks - 600 * 2502500000ll, now_ns - 600 * SECOND, 0), TICKS_START,
	       2.5025e9);
}

static void start_nonsense(void **state)
{
	(void)state;
	/* another machine's ticks; a clock of its own; the future; just now; not begun */
	expect(choose(now_ticks - 600 * SECOND, now_ns - 600 * SECOND, 0), TICKS_MEASURED, here);
	expect(choose(now_ticks - 600 * 2500000000ll, now_ns - 6000 * SECOND, 0), TICKS_MEASURED,
	       here);
	expect(choose(now_ticks + 100, now_ns + 40, 0), TICKS_MEASURED, here);
	expect(choose(now_ticks - 2500000, now_ns - 1000000, 0), TICKS_MEASURED, here);
	expect(choose(0, 0, 0), TICKS_MEASURED, here);
	expect(choose(INT64_MIN, INT64_MAX, 0), TICKS_MEASURED, here);
	expect(choose(INT64_MAX, INT64_MIN, 0), TICKS_MEASURED, here);
}

static void measures(void **state)
{
	struct err e = { "" };
	double a = 0, b = 0;
	int64_t before = arch_cputicks();

	(void)state;
	if (ticks_measure(&a, &e) || ticks_measure(&b, &e))
		fail_msg("%s", e.msg);
	assert_true(arch_cputicks() > before);
	assert_true(a > 1e6 && a < 1e11);
	assert_true(a < b * 1.01 && b < a * 1.01);
}

static bool says(const struct ticks *t, const char *want)
{
	CLEANUP(prof_freep) struct prof *p = NULL;
	struct prof_header_view h;

	assert_int_equal(prof_new(&p, NULL), 0);
	assert_int_equal(ticks_comment(t, p, NULL), 0);
	h = prof_header(p);
	return h.ncomments == 1 && strstr(strtab_get(prof_strings(p), h.comments[0]), want);
}

static void tells(void **state)
{
	struct ticks t = choose(0, 0, 2500000000);

	(void)state;
	assert_true(
		says(&t, "clock: 2500000000 ticks in a second, as the program itself measured it"));
	assert_false(says(&t, "off of"));
	t = choose(0, 0, 2450000000);
	assert_true(says(&t, "that is -2.0 % off of what is measured here"));
	t = choose(0, 0, 0);
	assert_true(says(&t, "measured here; the program has not measured it yet"));
	t = choose(0, 0, 1000);
	assert_true(says(&t, "measured here; the program says 1000, which cannot be"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own),	       cmocka_unit_test(own_nonsense),
		cmocka_unit_test(since_start), cmocka_unit_test(start_nonsense),
		cmocka_unit_test(measures),    cmocka_unit_test(tells),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
