/*
 * tests/unit/test_wait_estimates.c - what windows and looks say together. Stacks are added to a tally; what looks saw, what
 * windows lack and the runtime's own count are written here. Numbers are small enough to be worked out by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "collect/waits/engine/run_ratio.h"
#include "collect/waits/engine/wait_estimates.h"

#define MS 1000000.0

enum { PROGRAM, RUNTIME };			      /* wholes */
enum { A = 0x1000, B = 0x2000, OF_RUNTIME = 0x9000 }; /* sites */
enum { WEIGHT = 10, ENTRIES = 8 };

static const double one = GPB_COUNT_ONE;

/* ---- the runtime's count ---- */

static struct {
	double met, unmet, lack, unsure; /* in runs */
	double windows,
		lack_told; /* how many runs windows say there were, as it was told; and this */
} runs;

double dilation_met(const struct dilation *w)
{
	(void)w;
	return runs.met;
}

double dilation_unmet(const struct dilation *w)
{
	(void)w;
	return runs.unmet;
}

double dilation_of_site(const struct dilation *w)
{
	(void)w;
	return runs.unmet * runs.unmet;
}

double dilation_lack(const struct dilation *w, const struct tally_estimate *windows)
{
	(void)w;
	runs.windows = windows->value;
	return runs.lack;
}

double dilation_unsure(const struct dilation *w, const struct tally_estimate *windows, double lack)
{
	(void)w;
	runs.windows = windows->value;
	runs.lack_told = lack;
	return runs.unsure;
}

/* ---- looks ---- */

static struct {
	struct looks_estimate of[ENTRIES];
	double site_variance, site_lost, site_count, site_unmet; /* of each site */
	double all_variance, all_lost;
} looked;
static struct looks *const looks = (struct looks *)&looked; /* nobody looks into it */

struct looks_estimate looks_of(const struct looks *k, size_t entry)
{
	assert_ptr_equal(k, looks);
	assert_true(entry < ENTRIES);
	return looked.of[entry];
}

const struct looks_sums *looks_sums(const struct looks *k)
{
	assert_ptr_equal(k, looks);
	return (const struct looks_sums *)k;
}

double looks_site_variance(const struct looks_sums *u, size_t site)
{
	assert_non_null(u);
	(void)site;
	return looked.site_variance;
}

double looks_all_variance(const struct looks_sums *u)
{
	assert_non_null(u);
	return looked.all_variance;
}

double looks_site_lost(const struct looks_sums *u, size_t site)
{
	assert_non_null(u);
	(void)site;
	return looked.site_lost;
}

double looks_all_lost(const struct looks_sums *u)
{
	assert_non_null(u);
	return looked.all_lost;
}

double looks_site_unmet(const struct looks_sums *u, size_t site)
{
	assert_non_null(u);
	(void)site;
	return looked.site_unmet;
}

double looks_site_count(const struct looks_sums *u, size_t site)
{
	assert_non_null(u);
	(void)site;
	return looked.site_count;
}

/* ---- what windows lack ---- */

static struct {
	double factor, site, all;
	bool is_apart, counted;
	double apart;	       /* the variance of those; < 0: not known */
	double windows, looks; /* variances that were compared */
} lacks;

double undercounts_factor(const struct undercounts *u, const struct tally_entry *en)
{
	(void)u;
	(void)en;
	return lacks.factor;
}

bool undercounts_apart(const struct undercounts *u, size_t site, double *variance)
{
	(void)u;
	(void)site;
	if (lacks.is_apart)
		*variance = lacks.apart;
	return lacks.is_apart;
}

double undercounts_site(const struct undercounts *u, size_t site, double windows, double by_looks)
{
	(void)u;
	(void)site;
	lacks.windows = windows;
	lacks.looks = by_looks;
	return lacks.site;
}

double undercounts_all(const struct undercounts *u, double windows, double by_looks)
{
	(void)u;
	lacks.windows = windows;
	lacks.looks = by_looks;
	return lacks.all;
}

bool undercounts_counted(const struct undercounts *u, size_t site, double by_looks)
{
	(void)u;
	(void)site;
	assert_true(by_looks == looked.site_variance);
	return lacks.counted;
}

/* ---- a profile ---- */

static struct wait_kind kind;
static struct wait_engine w;

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

static bool parks(void *arg, const struct gpb_stack *st)
{
	(void)arg;
	return st->wait.kind == GPB_G_WAITING;
}

static int set_up(void **state)
{
	(void)state;
	memset(&runs, 0, sizeof(runs));
	memset(&looked, 0, sizeof(looked));
	memset(&lacks, 0, sizeof(lacks));
	lacks.factor = runs.lack = 1;
	kind = (struct wait_kind){ .sees_runs = true, .not_looked = TALLY_WHOLES };
	w = (struct wait_engine){ .kind = &kind };
	tally_init(&w.tally);
	w.tally.merged = true;
	w.tally.depth = innermost;
	w.tally.whole = whole_of;
	w.tally.parked = parks;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	tally_fini(&w.tally);
	return 0;
}

/* Waits of goroutines at a site, whose entries differ by the caller. */
static struct gpb_stack stack_of(uint64_t site, uint64_t caller, double waits, double ns)
{
	return (struct gpb_stack){ .count = (uint64_t)(waits * one),
				   .delay = (uint64_t)ns,
				   .nfirst = 2,
				   .pc = { site, caller } };
}

static void saw(uint64_t site, uint64_t caller, double waits, double ns)
{
	const struct gpb_stack st = stack_of(site, caller, waits, ns);

	assert_int_equal(tally_add(&w.tally, &st, GPB_WAIT_SHORT, NULL), 0);
}

static void saw_long(uint64_t site, double waits, double ns)
{
	struct gpb_stack st = stack_of(site, 99, waits, ns);

	st.wait.kind = GPB_G_WAITING;
	assert_int_equal(tally_add(&w.tally, &st, GPB_WAIT_LONG, NULL), 0);
}

/* Full observation. */
static void saw_in_full(uint64_t site, double waits, double ns)
{
	const struct gpb_stack st = stack_of(site, 1, waits, ns);

	assert_int_equal(tally_add_full(&w.tally, &st, GPB_WAIT_SHORT, NULL), 0);
}

/* A window is over that saw so many runs, and stands for WEIGHT times its length. */
static void window(double seen)
{
	const double n = seen * WEIGHT;

	tally_window(&w.tally, &(struct tally_window){ .weight = WEIGHT, .n = &n });
}

static void is(double value, double expected)
{
	if (fabs(value - expected) > 1e-6 * fabs(expected) + 1e-6)
		fail_msg("%.9g, not %.9g", value, expected);
}

static double waits_of(size_t entry)
{
	return (double)wait_estimates_of(&w, entry, false).count / one;
}

static double squared(double x)
{
	return x * x;
}

/*
 * Four windows, by which there were 1,000 runs. In each, A's two callers have four waits and one wait for ten runs,
 * and B has three waits, however many runs there are. By the runtime's count there were 3,000 runs.
 */
static void four_windows(void)
{
	for (int i = 1; i <= 4; i++) {
		saw(A, 1, 4 * i, 4000);
		saw(A, 2, i, 1000);
		saw(B, 1, 3, 5000);
		window(10 * i);
	}
	runs.met = 3000;
}

enum { A1, A2, B1 };

/* ---- is the runtime's count used? ---- */

static void the_count_is_used_where_windows_met_runs(void **state)
{
	(void)state;
	runs.met = 3000;
	assert_false(run_regressed(&w)); /* there was no window */
	four_windows();
	assert_true(run_regressed(&w));
	runs.met = -1; /* it is not known */
	assert_false(run_regressed(&w));
	runs.met = 0; /* no window met any of it */
	assert_false(run_regressed(&w));
}

/* Of these there is only an estimate: windows saw 1,000 other runs, and the count has 3,000 of both. */
static void the_count_is_not_used_where_a_clock_paces_most(void **state)
{
	(void)state;
	four_windows();
	w.paced = 900;
	assert_true(run_regressed(&w));
	w.paced = 1100;
	assert_false(run_regressed(&w));
	w.paced = 900;
	runs.met = 800; /* it says that there were fewer in all */
	assert_false(run_regressed(&w));
}

/* ---- numbers ---- */

static void full_observation_counts_as_it_was(void **state)
{
	struct wait_estimate est;

	(void)state;
	saw_in_full(A, 7.5, 1234);
	est = wait_estimates_of(&w, 0, false);
	is((double)est.count / one, 7.5);
	assert_int_equal(est.delay, 1234);
	assert_true(est.count_error == 0 && est.delay_error == 0);
}

static void windows_stand_for_their_time(void **state)
{
	(void)state;
	saw_in_full(A, 7, 1234);
	saw(A, 1, 2, 100);
	window(0);
	saw(A, 1, 1, 200);
	window(0);
	runs.met = -1;
	is(waits_of(0), 7 + 10 * 2 + 10 * 1);
	assert_int_equal(wait_estimates_of(&w, 0, false).delay, 1234 + 10 * 100 + 10 * 200);
}

/* Probes slow down what they measure, so where looks were made only these tell how long waits last. */
static void with_looks_delays_are_those_of_looks(void **state)
{
	struct wait_estimate est;

	(void)state;
	saw_in_full(A, 7, 1234);
	saw(A, 1, 2, 999);
	window(0);
	runs.met = -1;
	w.looks = looks;
	looked.of[0] = (struct looks_estimate){ .count = 3.5,
						.count_variance = 4,
						.delay_ns = 5000,
						.unsure_ns = 600,
						.own_variance = 77,
						.delay_variance = 88 };
	est = wait_estimates_of(&w, 0, false);
	is((double)est.count / one, 7 + 20 + 3.5);
	assert_int_equal(est.delay, 1234 + 5000);
	is(est.count_error / one / one, 4);
	is(est.delay_error, 77); /* the rest is told with the site */
	assert_int_equal(wait_estimates_of(&w, 0, true).delay, 1234 + 5600);
}

/* Where waits grow with runs they are as many as there were runs; where they do not, they are those of windows. */
static void numbers_agree_with_the_count(void **state)
{
	(void)state;
	four_windows();
	is(waits_of(A1), 3000 * 0.4);
	is(waits_of(A2), 3000 * 0.1);
	is(waits_of(B1), 4 * 3 * WEIGHT);
}

/* It has no part in the runs that windows saw. */
static void a_site_that_no_window_met_keeps_what_was_seen_in_full(void **state)
{
	(void)state;
	four_windows();
	saw_in_full(OF_RUNTIME, 7, 1234);
	is(waits_of(3), 7);
	assert_int_equal(wait_estimates_of(&w, 3, false).delay, 1234);
}

static void runs_that_a_clock_paces_are_no_part_of_it(void **state)
{
	(void)state;
	four_windows();
	w.paced = 500;
	is(waits_of(A1), 2500 * 0.4);
	is(runs.windows, 1000 + 500); /* the count that windows are compared with has both */
}

/* A window has half of the program's work: then also what does not grow with runs is twice as much. */
static void windows_lack_alike_everywhere(void **state)
{
	(void)state;
	four_windows();
	runs.lack = 2;
	is(waits_of(A1), 3000 * 0.4);
	is(waits_of(B1), 2 * 4 * 3 * WEIGHT);
	kind.sees_runs = false; /* its windows were compared with the count itself */
	is(waits_of(B1), 4 * 3 * WEIGHT);
}

static void all_numbers_are_too_small_alike(void **state)
{
	(void)state;
	four_windows();
	w.too_few = 0.25;
	is(waits_of(A1), 1.25 * 3000 * 0.4);
	is(waits_of(B1), 1.25 * 120);
}

/* Long waits are not compared with runs; what is known of their lengths tells their number. */
static void long_waits_are_by_time_or_by_length(void **state)
{
	const size_t at = 3;

	(void)state;
	four_windows();
	saw_long(A, 6, 60 * MS);
	window(50);
	assert_int_equal(w.tally.entries.at[at].group, GPB_WAIT_LONG);
	is(waits_of(at), 60);
	lacks.factor = 1.5;
	is(waits_of(at), 90);
}

/* ---- errors ---- */

static struct wait_site_errors errors_of(size_t site)
{
	return wait_estimates_site(&w, site);
}

/* Of A two windows stand for 10 and 30 waits: so does each for 20, give or take 14.1; and both for 40, 20 or so. */
static void two_windows(void)
{
	saw(A, 1, 1, 1000);
	window(0);
	saw(A, 1, 3, 3000);
	window(0);
	runs.met = -1;
}

static void windows_that_differ_are_uncertain(void **state)
{
	struct wait_site_errors at;

	(void)state;
	two_windows();
	at = errors_of(0);
	is(at.told.count / one / one, 400);
	is(at.told.delay, 4e8); /* 10,000 and 30,000 ns */
	assert_true(at.lacking == 0 && at.unmet == 0);
	assert_true(at.missed.count == 0 && at.missed.delay == 0);
	is(wait_estimates_told(&w, PROGRAM).count / one / one, 400);
	is(wait_estimates_told(&w, PROGRAM).delay, 4e8);
	assert_true(wait_estimates_told(&w, RUNTIME).count == 0);
	assert_true(wait_estimates_told(&w, RUNTIME).delay == 0);
}

/* Two sites that come together are less certain than two of which one comes when the other does not. */
static void sites_are_added_up_window_by_window(void **state)
{
	(void)state;
	saw(A, 1, 1, 100);
	saw(B, 1, 1, 100);
	saw(OF_RUNTIME, 1, 50, 100);
	window(0);
	saw(A, 1, 3, 100);
	saw(B, 1, 3, 100);
	window(0);
	runs.met = -1;
	is(errors_of(0).told.count / one / one, 400);
	is(errors_of(1).told.count / one / one, 400);
	is(wait_estimates_told(&w, PROGRAM).count / one / one, 1600);
	is(wait_estimates_told(&w, RUNTIME).count / one / one, 500 * 500);
}

/* From one window nobody knows what another one would have seen. */
static void one_window_tells_no_error(void **state)
{
	(void)state;
	saw(A, 1, 1, 1000);
	window(0);
	runs.met = -1;
	assert_true(errors_of(0).told.count < 0 && errors_of(0).told.delay < 0);
	assert_true(wait_estimates_told(&w, PROGRAM).count < 0);
}

/* Waits that are exactly a half of runs are as uncertain as the number of runs is. */
static void an_error_of_the_count_is_one_of_waits(void **state)
{
	(void)state;
	four_windows();
	assert_true(errors_of(0).told.count / one / one < 1e-6);
	runs.unsure = 100;
	is(errors_of(0).told.count / one / one, 50 * 50);
	assert_true(errors_of(1).told.count / one / one < 1e-6); /* B's do not depend on it */
	is(runs.windows, 1000);
	assert_true(runs.lack_told == 1);
	runs.lack = 2;
	is(errors_of(0).told.count / one / one, 50 * 50);
	assert_true(runs.lack_told == 2);
	is(wait_estimates_told(&w, PROGRAM).count / one / one, 50 * 50);
}

/* What all sites have in common, and nobody knows well. */
static void what_is_too_few_is_uncertain_by_as_much(void **state)
{
	(void)state;
	four_windows();
	w.paced = 500;
	w.too_few = 0.1;
	is(errors_of(0).told.count / one / one, squared(0.1 * 1.1 * 1250));
	runs.unsure = 100;
	is(errors_of(0).told.count / one / one, squared(0.1 * 1.1 * 1250) + squared(1.1 * 50));
}

/*
 * A has short waits, as above, and long ones that differ more, but whose number is known by their length: then it is
 * that number's error.
 */
static void long_waits_may_have_an_error_of_their_own(void **state)
{
	(void)state;
	saw(A, 1, 1, 1000);
	saw_long(A, 2, 20 * MS);
	window(0);
	saw(A, 1, 3, 3000);
	saw_long(A, 8, 80 * MS);
	window(0);
	runs.met = -1;
	is(errors_of(0).told.count / one / one, squared(80));
	lacks.is_apart = true;
	lacks.apart = 49;
	is(errors_of(0).told.count / one / one, 400 + 49);
	lacks.apart = -1;
	assert_true(errors_of(0).told.count < 0);
}

static void with_looks_delays_are_as_certain_as_looks(void **state)
{
	(void)state;
	two_windows();
	w.looks = looks;
	looked.site_variance = 100;
	looked.site_lost = 7;
	looked.all_variance = 1000;
	looked.all_lost = 30;
	is(errors_of(0).told.delay, 100 + 49);
	is(wait_estimates_told(&w, PROGRAM).delay, 1000 + 900);
	is(errors_of(0).told.count / one / one, 400); /* that of windows */
}

/* Only looks can tell that. Both variances of delays are compared. */
static void what_windows_lack_is_an_error(void **state)
{
	(void)state;
	two_windows();
	lacks.site = 25;
	lacks.all = 36;
	assert_true(errors_of(0).lacking == 0);
	is(wait_estimates_told(&w, PROGRAM).count / one / one, 400);
	w.looks = looks;
	looked.site_variance = 100;
	looked.all_variance = 200;
	is(errors_of(0).lacking / one / one, 25);
	is(lacks.windows, 4e8);
	is(lacks.looks, 100);
	is(wait_estimates_told(&w, PROGRAM).count / one / one, 400 + 36);
	is(lacks.windows, 4e8);
	is(lacks.looks, 200);
	lacks.site = lacks.all = -1;
	assert_true(errors_of(0).lacking < 0);
	assert_true(wait_estimates_told(&w, PROGRAM).count < 0);
}

/* All of it may have been waits of any site. */
static void runs_that_no_window_met_are_an_error(void **state)
{
	(void)state;
	two_windows();
	runs.unmet = 30;
	is(errors_of(0).unmet, 900);
}

/* ---- sites that no window met ---- */

/*
 * Full observation saw three waits of 2 ms of B, and windows saw none. Such a burst may have come between windows; had
 * more than one come for each WEIGHT, a window would have met one.
 */
static void b_was_missed(void)
{
	two_windows();
	saw_in_full(B, 3, 3 * 2 * MS);
}

static void a_burst_may_have_come_between_windows(void **state)
{
	struct wait_site_errors at;

	(void)state;
	b_was_missed();
	at = errors_of(1);
	is(at.missed.count / one / one, squared(3 * WEIGHT));
	is(at.missed.delay, squared(3 * WEIGHT * 2 * MS));
	assert_true(at.told.count == 0 && at.told.delay == 0);
}

/* In windows of 100 ms in all, of each of which 0.5 ms were the target's own: waits of 2 ms count in all of that. */
static void long_waits_count_in_all_of_a_window(void **state)
{
	(void)state;
	b_was_missed();
	w.tally.windows_ns = 500 * MS;
	w.begins_ns = 100 * MS;
	w.tally.full_ns = 500 * MS;
	is(errors_of(1).missed.count / one / one,
	   squared(5)); /* a single one may have come; two bursts of three, by full observation */
	saw_in_full(B, 1000, 0); /* of which most are short */
	is(errors_of(1).missed.count / one / one, squared(1003) * 2);
}

static void looks_would_have_seen_it(void **state)
{
	struct wait_error m;

	(void)state;
	b_was_missed();
	w.looks = looks;
	looked.site_variance = 100;
	lacks.counted = true;
	m = errors_of(1).missed;
	is(m.count / one / one, squared(3 * WEIGHT)); /* they count long ones alone */
	assert_true(m.delay == 0);
	looked.site_count = 4; /* and these are all that there were */
	m = errors_of(1).missed;
	assert_true(m.count == 0 && m.delay == 0);
	lacks.counted = false; /* or they saw others, too */
	m = errors_of(1).missed;
	is(m.count / one / one, squared(3 * WEIGHT));
}

/*
 * For half a second in full B was seen, and windows stand for nine times that; four waits of A were seen in windows, which stand for 40 of
 * 1,000 ns each.
 */
static void who_no_look_met_may_go_on_to_come(void **state)
{
	(void)state;
	b_was_missed();
	w.looks = looks;
	w.tally.full_ns = 500 * MS;
	w.tally.windows_ns = 4500 * MS;
	looked.site_unmet = squared(1000 * MS);
	is(errors_of(1).missed.delay, squared(9 * 3 * 2 * MS));
	is(errors_of(0).missed.delay, squared(40 * 1000));
	looked.site_unmet = squared(5000); /* looks would have met them */
	is(errors_of(1).missed.delay, squared(3 * 5000));
	is(errors_of(0).missed.delay, squared(4 * 5000));
	looked.site_unmet = 0; /* one did */
	is(errors_of(1).missed.delay, 0);
}

/* As who unlocks a mutex, which is no wait of his. */
static void looks_do_not_see_everything(void **state)
{
	struct wait_error m;

	(void)state;
	b_was_missed();
	w.looks = looks;
	looked.site_count = 4;
	lacks.counted = true;
	kind.not_looked = PROGRAM;
	m = errors_of(1).missed;
	is(m.count / one / one, squared(3 * WEIGHT));
	is(m.delay, squared(3 * WEIGHT * 2 * MS));
	kind.not_looked = RUNTIME;
	m = errors_of(1).missed;
	assert_true(m.count == 0 && m.delay == 0);
}

/* ---- all together ---- */

static const struct wait_error told = { 1000, 2000 };

static void a_whole_has_what_its_sites_may_have_missed(void **state)
{
	struct wait_error all;

	(void)state;
	b_was_missed();
	saw_in_full(OF_RUNTIME, 100, 1000 * MS);
	all = wait_estimates_whole(&w, PROGRAM, told);
	is(all.count, 1000 + squared(3 * WEIGHT) * one * one);
	is(all.delay, 2000 + squared(3 * WEIGHT * 2 * MS));
	all = wait_estimates_whole(&w, RUNTIME, told);
	is(all.count, 1000 + squared(100 * WEIGHT) * one * one);
}

/* These are told of each site alone. */
static void a_whole_has_the_long_waits_of_its_sites(void **state)
{
	struct wait_error all;

	(void)state;
	two_windows();
	saw_in_full(OF_RUNTIME, 0, 0);
	lacks.is_apart = true;
	lacks.apart = 49;
	all = wait_estimates_whole(&w, PROGRAM, told);
	is(all.count, 1000 + 49 * one * one);
	is(all.delay, 2000);
	lacks.apart = -1;
	assert_true(wait_estimates_whole(&w, PROGRAM, told).count < 0);
}

/* Nobody knows how many of these runs were waits; how long goroutines waited is known all the same. */
static void of_a_storm_that_no_window_met_the_number_is_not_known(void **state)
{
	struct wait_error all;

	(void)state;
	two_windows();
	runs.unmet = 30;
	all = wait_estimates_whole(&w, PROGRAM, told);
	assert_true(all.count < 0);
	is(all.delay, 2000);
}

static void an_error_that_is_not_known_stays_so(void **state)
{
	const struct wait_error unknown = { -1, -1 };
	struct wait_error all;

	(void)state;
	b_was_missed();
	all = wait_estimates_whole(&w, PROGRAM, unknown);
	assert_true(all.count < 0 && all.delay < 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_count_is_used_where_windows_met_runs),
		TEST(the_count_is_not_used_where_a_clock_paces_most),
		TEST(full_observation_counts_as_it_was),
		TEST(windows_stand_for_their_time),
		TEST(with_looks_delays_are_those_of_looks),
		TEST(numbers_agree_with_the_count),
		TEST(a_site_that_no_window_met_keeps_what_was_seen_in_full),
		TEST(runs_that_a_clock_paces_are_no_part_of_it),
		TEST(windows_lack_alike_everywhere),
		TEST(all_numbers_are_too_small_alike),
		TEST(long_waits_are_by_time_or_by_length),
		TEST(windows_that_differ_are_uncertain),
		TEST(sites_are_added_up_window_by_window),
		TEST(one_window_tells_no_error),
		TEST(an_error_of_the_count_is_one_of_waits),
		TEST(what_is_too_few_is_uncertain_by_as_much),
		TEST(long_waits_may_have_an_error_of_their_own),
		TEST(with_looks_delays_are_as_certain_as_looks),
		TEST(what_windows_lack_is_an_error),
		TEST(runs_that_no_window_met_are_an_error),
		TEST(a_burst_may_have_come_between_windows),
		TEST(long_waits_count_in_all_of_a_window),
		TEST(looks_would_have_seen_it),
		TEST(who_no_look_met_may_go_on_to_come),
		TEST(looks_do_not_see_everything),
		TEST(a_whole_has_what_its_sites_may_have_missed),
		TEST(a_whole_has_the_long_waits_of_its_sites),
		TEST(of_a_storm_that_no_window_met_the_number_is_not_known),
		TEST(an_error_that_is_not_known_stays_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
