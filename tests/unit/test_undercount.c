/*
 * tests/unit/test_undercount.c - programs that wait for 0.2 to 10 ms, observed by windows and by looks, on an
 * idle machine and on one with too few CPUs: does the stated error of the number of waits cover the truth?
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "wait_world.h"

/* ---- results ---- */

struct told {
	double count, before, under,
		lacks; /* variances: by time alone; as stated, and of that what windows lack */
	bool by_length;
	double looks, windows;
};

static struct told tell(struct wait_window *w, const struct looks_sums *u, double dilation)
{
	const struct tally_part *p = &w->engine.tally.sites.at[0].sums;
	const double one = GPB_COUNT_ONE;
	struct told out = {};

	assert_int_equal(w->engine.tally.sites.n, 1);
	undercounts_learn(&w->engine.under, &w->engine.tally, u, GPB_G_SYSCALL, dilation, -1);
	for (size_t i = 0; i < w->engine.tally.entries.n; i++) {
		struct looks_estimate o = looks_sums_of(u, i);

		out.count += (double)wait_window_estimate(w, i).count / one + o.count;
		out.before += o.count_variance;
	}
	out.looks = w->engine.under.at[0].looks_ns;
	out.windows = p->delays.x;
	out.under = fmax(wait_window_site(w, 0).count, 0) / one / one + out.before;
	out.before += fmax(tally_part_counts(&w->engine.tally, p).variance, 0) / one / one;
	out.lacks = undercounts_site(&w->engine.under, 0,
				     tally_part_delays(&w->engine.tally, p).variance,
				     looks_site_variance(u, 0));
	out.by_length = w->engine.under.at[0].factor > 0;
	return out;
}

static struct told run(const struct world *in)
{
	struct wait_window w = { .engine = { .s = &subject,
					     .counter = { .s = &subject,
							  .open_again = { .at = UINT64_MAX } } } };
	struct looks_sums u = { .tally = &w.engine.tally };
	struct wait any = { .end = MS };
	struct gpb_stack st = stack_of(&any, 0);
	struct told out;
	int32_t entry;
	bool known;

	wait_window_init(&w, not_runtime);
	w.engine.paced = 1e300;
	w.conf.terms.begin_ns = w.conf.terms.own.ns = WAIT_BEGIN_NS;
	assert_int_equal(looks_sums_entry(&u, &st, 0, true, &known, &entry, NULL), 0);
	make_waits(in);
	look_on(&u, entry, in);
	observe(&w, (double)looks_stands_from(&u), in);
	out = tell(&w, &u, in->slower > 0 ? in->slower : 1);
	looks_sums_fini(&u);
	wait_window_fini(&w);
	return out;
}

struct coverage {
	int with,
		without; /* programs whose number is within two errors, or has none that is known */
	int unknown, by_length;
	double rms, stated;    /* errors, as parts of the number */
	double ratio;	       /* of the stated standard errors, with and without */
	double looks, windows; /* ns a program */
	double part;	       /* of all waits that were told */
};

static struct coverage cover(struct world w)
{
	struct coverage c = {};

	for (int i = 0; i < PROGRAMS; i++) {
		struct told t = run(&w);
		double off = fabs(t.count - (double)n);

		assert_true(t.before >= 0);
		c.unknown += t.lacks < 0;
		c.by_length += t.by_length;
		c.rms += off * off / (double)n / (double)n / PROGRAMS;
		c.stated += (t.under + fmax(t.lacks, 0)) / (double)n / (double)n / PROGRAMS;
		c.without += off <= 2 * sqrt(t.before);
		c.with += t.lacks < 0 || off <= 2 * sqrt(t.under + fmax(t.lacks, 0));
		c.ratio += t.before > 0 ? sqrt((t.under + fmax(t.lacks, 0)) / t.before) / PROGRAMS :
					  0;
		c.looks += t.looks / PROGRAMS;
		c.windows += t.windows / PROGRAMS;
		c.part += t.count / (double)n / PROGRAMS;
	}
	print_message(
		"lacks %.2f late %.1f %4.1f-%4.1f ms%s: covered %d (%d unknown, %d by length), before %d; mean %.3f, rms "
		"%.3f, stated %.3f; errors x %.2f; looks %.0f windows %.0f\n",
		w.lacks, w.late, w.shortest, w.longest, w.uneven ? " exp" : "", c.with, c.unknown,
		c.by_length, c.without, c.part, sqrt(c.rms), sqrt(c.stated), c.ratio, c.looks / MS,
		c.windows / MS);
	return c;
}

#define WIDE .shortest = 0.2, .longest = 10

/* Most numbers of waits of up to 5 ms are by length. What is by time says that windows lack waits. */
static void windows_that_lack_waits(void **state)
{
	(void)state;
	for (double late = 0; late < 1; late += 0.3) {
		struct coverage c = cover((struct world){ .lacks = 0.56, .late = late, WIDE });

		assert_true(c.with >= COVERED_LEAST);
		assert_true(late > 0 || fabs(c.part - 1) < 0.06);
	}
}

static const double shorts[][2] = { { 0.05, 0.2 }, { 0.2, 1 }, { 1, 3 }, { 2, 2 } };

/* The mean length in windows, and the delay of looks: neither depends on how many waits windows lack. */
static void short_waits_by_length(void **state)
{
	(void)state;
	for (double lacks = 0; lacks < 0.6; lacks += 0.56) {
		for (size_t i = 0; i < ARRAY_LEN(shorts) * 3; i++) {
			struct coverage c = cover((struct world){ .lacks = lacks,
								  .late = (double)(i % 3) * 0.3,
								  .shortest = shorts[i / 3][0],
								  .longest = shorts[i / 3][1] });

			assert_true(c.by_length >= COVERED_LEAST);
			assert_true(c.with >= COVERED_OF_MANY);
			assert_true(fabs(c.part - 1) < 0.05);
			assert_true(c.rms < 0.15);
		}
	}
}

/* Some of these were seen by enough looks to be counted: by chance, those that the looks met well. */
static void medium_waits_by_length(void **state)
{
	static const double lengths[][2] = { { 3, 5 }, { 5, 5 }, { 4, 7 }, { 0.2, 20 } };

	(void)state;
	for (double lacks = 0; lacks < 0.6; lacks += 0.56) {
		for (size_t i = 0; i < ARRAY_LEN(lengths) * 3; i++) {
			struct coverage c = cover((struct world){ .lacks = lacks,
								  .late = (double)(i % 3) * 0.3,
								  .shortest = lengths[i / 3][0],
								  .longest = lengths[i / 3][1] });

			assert_true(c.with >= COVERED_OF_MANY);
			assert_true(fabs(c.part - 1) < (i % 3 ? 0.2 : 0.06));
		}
	}
}

static void bursts_are_covered(void **state)
{
	(void)state;
	for (int at_once = 2; at_once < 30; at_once *= 3) {
		for (size_t i = 1; i < ARRAY_LEN(shorts); i++) {
			struct coverage c = cover((struct world){ .bursts = at_once,
								  .shortest = shorts[i][0],
								  .longest = shorts[i][1] });

			assert_true(c.with >= COVERED_OF_MANY);
		}
	}
}

/* Probes make waits longer, but not fewer: then there are as many as windows say. */
static void longer_in_windows(void **state)
{
	(void)state;
	for (double dilation = 1; dilation < 2.1; dilation += 0.25) {
		for (size_t i = 1; i < ARRAY_LEN(shorts); i++) {
			struct coverage c = cover((struct world){ .dilation = dilation,
								  .slower = dilation,
								  .shortest = shorts[i][0],
								  .longest = shorts[i][1] });

			assert_true(c.with >= COVERED_OF_MANY);
			assert_true(fabs(c.part - 1) < 0.06);
		}
	}
}

/* A slower target says nothing of waits that a clock paces. */
static void slower_but_not_longer(void **state)
{
	(void)state;
	for (double lacks = 0; lacks < 0.6; lacks += 0.56) {
		struct coverage c = cover((struct world){
			.slower = 20, .lacks = lacks, .shortest = 1, .longest = 3 });

		assert_true(c.with >= COVERED_LEAST);
		assert_true(fabs(c.part - 1) < 0.06);
	}
}

/*
 * Windows that meet hardly any wait, as those of a program that only runs while nobody observes it: looks
 * counted a few of the waits, and no more than these was in the stated error.
 */
static void windows_that_meet_hardly_any_say_so(void **state)
{
	static const struct world worlds[] = {
		{ .lacks = 0.9, WIDE },
		{ .lacks = 0.98, WIDE },
		{ .lacks = 1, WIDE },
		{ .lacks = 0.98, .late = 0.3, WIDE },
		{ .lacks = 1, .late = 0.6, WIDE },
		{ .lacks = 0.98, .shortest = 0.2, .longest = 2 },
		{ .lacks = 1, .shortest = 0.2, .longest = 2 },
		{ .lacks = 0.9, .shortest = 0.2, .longest = 12, .uneven = true },
		{ .lacks = 0.98, .shortest = 0.2, .longest = 12, .uneven = true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(worlds); i++) {
		struct coverage c = cover(worlds[i]);

		assert_true(c.without < COVERED_LEAST / 2);
		assert_true(c.with - c.unknown >= 0.93 * (PROGRAMS - c.unknown));
		assert_true(worlds[i].lacks < 1 || c.unknown == PROGRAMS);
	}
}

/* Waits that no window counts have a known number, too, where enough looks see most of them. */
static void counted_by_looks_alone(void **state)
{
	static const double lengths[][2] = { { 7, 10 }, { 8, 8 }, { 12, 20 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lengths) * 3; i++) {
		struct coverage c = cover((struct world){ .lacks = 1,
							  .late = (double)(i % 3) * 0.3,
							  .shortest = lengths[i / 3][0],
							  .longest = lengths[i / 3][1] });

		assert_int_equal(c.unknown, 0);
		assert_true(c.with >= COVERED_LEAST);
	}
}

/*
 * Looks 40 ms apart see waits that outlast windows, and too rarely to count them. Their length is no number of short ones: windows
 * say how many those are, and the others are a part of the error.
 */
static void some_outlast_windows(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(shorts); i++) {
		for (double outlast = 0.05; outlast < 0.3; outlast *= 2) {
			struct coverage c = cover((struct world){ .outlast = outlast,
								  .rare = 20,
								  .shortest = shorts[i][0],
								  .longest = shorts[i][1] });

			assert_true(c.with >= COVERED_OF_MANY);
			assert_true(fabs(c.part - (1 - outlast)) < 0.06);
		}
	}
}

/* Waits of 7 ms and longer that end in a window are counted by looks, and not by the window as well. */
static void no_wait_counts_twice(void **state)
{
	(void)state;
	for (double late = 0; late < 0.8; late += 0.3) {
		struct coverage c = cover((struct world){ .late = late, WIDE });

		assert_true(fabs(c.part - 1) < 0.025);
		assert_true(c.with >= COVERED_LEAST);
	}
}

/* Times runnable after a paced wait are of its group and last a microsecond: looks do not say how many lack. */
static void short_ones_do_not_lack(void **state)
{
	struct wait_window w = { .engine = { .s = &subject,
					     .counter = { .s = &subject,
							  .open_again = { .at = UINT64_MAX } } } };
	struct looks_sums u = { .tally = &w.engine.tally };
	const struct wait brief = { .end = 1000 };
	struct gpb_stack st = stack_of(&brief, GPB_WAIT_LONG), seen = stack_of(&brief, 0);
	struct undercounts under = {};
	const struct tally_window tw = { .weight = 100 };
	int32_t entry;
	bool known;

	(void)state;
	wait_window_init(&w, not_runtime);
	st.wait.kind = seen.wait.kind = GPB_G_RUNNABLE;
	assert_int_equal(looks_sums_entry(&u, &seen, 0, true, &known, &entry, NULL), 0);
	looks_sums_saw(&u, entry, 2 * MS);
	looks_sums_over(&u, entry, 2 * MS, 0);
	assert_int_equal(wait_window_add(&w, &st, NULL), 0);
	tally_window(&w.engine.tally, &tw);
	looks_sums_end(&u, 100 * MS, 100 * MS);
	undercounts_learn(&under, &w.engine.tally, &u, GPB_G_SYSCALL, 1, -1);
	assert_true(under.at[0].looks_ns > under.at[0].windows_ns);
	assert_true(undercounts_site(&under, 0, 0, 0) == 0);
	undercounts_fini(&under);
	looks_sums_fini(&u);
	wait_window_fini(&w);
}

static void begin(struct wait_window *w, struct looks_sums *u)
{
	*w = (struct wait_window){
		.engine = { .s = &subject,
			    .counter = { .s = &subject, .open_again = { .at = UINT64_MAX } } }
	};
	wait_window_init(w, not_runtime);
	*u = (struct looks_sums){ .tally = &w->engine.tally };
}

/* Windows met half of the 4,000 waits, and with each the time runnable that follows. */
static void meet_half(struct wait_window *w, struct looks_sums *u, double runs)
{
	const struct wait two = { .end = 2 * MS }, brief = { .end = 1000 };
	struct gpb_stack st = stack_of(&two, GPB_WAIT_LONG),
			 after = stack_of(&brief, GPB_WAIT_LONG);
	struct gpb_stack seen = stack_of(&two, 0), call = stack_of(&two, GPB_WAIT_CALL);
	const struct tally_window tw = { .weight = 100 };
	int32_t entry;
	bool known;

	begin(w, u);
	after.wait.kind = GPB_G_RUNNABLE;
	call.wait.kind = GPB_G_SYSCALL;
	assert_int_equal(looks_sums_entry(u, &seen, 0, true, &known, &entry, NULL), 0);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(wait_window_add(w, &st, NULL), 0);
		assert_int_equal(wait_window_add(w, &after, NULL), 0);
		assert_int_equal(wait_window_add(w, &call, NULL), 0);
		tally_window(&w->engine.tally, &tw);
	}
	for (int i = 0; i < 4000; i++, looks_sums_looked(u)) {
		looks_sums_look(u, 2 * MS);
		looks_sums_saw(u, entry, 2 * MS);
		looks_sums_over(u, entry, 2 * MS, 0);
		looks_sums_gap(u, 2 * MS);
	}
	looks_sums_end(u, 8000 * MS, 8000 * MS);
	undercounts_learn(&w->engine.under, &w->engine.tally, u, GPB_G_SYSCALL, 1, runs);
}

static void what_follows_is_scaled_as_well(void **state)
{
	struct wait_window w;
	struct looks_sums u;

	(void)state;
	meet_half(&w, &u, -1);
	for (size_t i = 0; i < w.engine.tally.entries.n; i++) {
		const struct tally_entry *en = &w.engine.tally.entries.at[i];
		double scaled = en->group == GPB_WAIT_LONG ? 2 : 1;

		assert_true(fabs(undercounts_factor(&w.engine.under, en) - scaled) < 1e-6);
	}
	looks_sums_fini(&u);
	wait_window_fini(&w);
}

/*
 * 4,000 waits of 10 ms, of which windows met 200, and all times runnable that follow. Looks are so far apart that they count none, and saw
 * @delay of all of them.
 */
static void too_long_for_windows(struct wait_window *w, struct looks_sums *u, double delay)
{
	const struct wait ten = { .end = 10 * MS }, brief = { .end = 1000 };
	struct gpb_stack st = stack_of(&ten, GPB_WAIT_LONG),
			 after = stack_of(&brief, GPB_WAIT_LONG), seen = stack_of(&ten, 0);
	const struct tally_window tw = { .weight = 100 };
	int32_t entry;
	bool known;

	begin(w, u);
	after.wait.kind = GPB_G_RUNNABLE;
	assert_int_equal(looks_sums_entry(u, &seen, 0, true, &known, &entry, NULL), 0);
	for (int i = 0; i < 20; i++) {
		if (i % 10 == 0)
			assert_int_equal(wait_window_add(w, &st, NULL), 0);
		assert_int_equal(wait_window_add(w, &after, NULL), 0);
		assert_int_equal(wait_window_add(w, &after, NULL), 0);
		tally_window(&w->engine.tally, &tw);
	}
	for (int i = 0; i < 400; i++, looks_sums_looked(u)) {
		looks_sums_look(u, 20 * MS);
		looks_sums_saw(u, entry, delay * 100 * MS);
		looks_sums_over(u, entry, delay * 100 * MS, 0);
		looks_sums_gap(u, 20 * MS);
	}
	looks_sums_end(u, 8000 * MS, 8000 * MS);
	undercounts_learn(&w->engine.under, &w->engine.tally, u, GPB_G_SYSCALL, 1, 4200);
}

static void waits_are_as_many_as_times_runnable(void **state)
{
	struct wait_window w;
	struct looks_sums u;

	(void)state;
	too_long_for_windows(&w, &u, 1);
	assert_true(w.engine.under.at[0].as_follow);
	for (size_t i = 0; i < w.engine.tally.entries.n; i++) {
		const struct tally_entry *en = &w.engine.tally.entries.at[i];
		double scaled = en->parked && en->group ? 20 : 1;

		assert_true(fabs(undercounts_factor(&w.engine.under, en) - scaled) < 1e-6);
	}
	assert_true(undercounts_site(&w.engine.under, 0, 0, 0) == 0);
	assert_true(undercounts_all(&w.engine.under, 0, 0) == 0);
	looks_sums_fini(&u);
	wait_window_fini(&w);
}

/* Those that were preempted in that line waited for nothing: looks saw no more delay than windows. */
static void times_runnable_without_waits(void **state)
{
	struct wait_window w;
	struct looks_sums u;

	(void)state;
	too_long_for_windows(&w, &u, 0.05);
	assert_false(w.engine.under.at[0].as_follow);
	for (size_t i = 0; i < w.engine.tally.entries.n; i++)
		if (w.engine.tally.entries.at[i].parked)
			assert_true(undercounts_factor(&w.engine.under,
						       &w.engine.tally.entries.at[i]) < 2);
	looks_sums_fini(&u);
	wait_window_fini(&w);
}

/* Each wait ends in a run: where the runtime counts but 500 more than the 2,000 of windows, these lack no more, and their times runnable. */
static void no_more_than_runs(void **state)
{
	struct wait_window w;
	struct looks_sums u;
	double lacks;

	(void)state;
	meet_half(&w, &u, 2500);
	for (size_t i = 0; i < w.engine.tally.entries.n; i++)
		assert_true(undercounts_factor(&w.engine.under, &w.engine.tally.entries.at[i]) ==
			    1);
	lacks = sqrt(undercounts_site(&w.engine.under, 0, 0, 0));
	assert_true(lacks >= 500 && lacks <= 1000);
	looks_sums_fini(&u);
	wait_window_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_that_lack_waits),
		cmocka_unit_test(short_waits_by_length),
		cmocka_unit_test(medium_waits_by_length),
		cmocka_unit_test(bursts_are_covered),
		cmocka_unit_test(longer_in_windows),
		cmocka_unit_test(slower_but_not_longer),
		cmocka_unit_test(windows_that_meet_hardly_any_say_so),
		cmocka_unit_test(counted_by_looks_alone),
		cmocka_unit_test(some_outlast_windows),
		cmocka_unit_test(no_wait_counts_twice),
		cmocka_unit_test(short_ones_do_not_lack),
		cmocka_unit_test(what_follows_is_scaled_as_well),
		cmocka_unit_test(waits_are_as_many_as_times_runnable),
		cmocka_unit_test(times_runnable_without_waits),
		cmocka_unit_test(no_more_than_runs),
	};

	return cmocka_run_group_tests(tests, open_subject, close_subject);
}
