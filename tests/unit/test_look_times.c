/* tests/unit/test_look_times.c - moments of looks, on a clock of this file's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "sampling/looks/look_times.h"
#include "sampling/looks/looks_sums.h"

#define MS    1000000ull
#define SEC   (1000 * MS)
#define SHARE 0.05

static uint64_t seed;

/* Looks for @ns, each of which takes @cpu_ns; @each is told of each. */
static uint64_t look_for(struct look_times *t, uint64_t from, uint64_t ns, uint64_t cpu_ns,
			 void (*each)(const struct look_times *t))
{
	uint64_t now = from;

	seed = 7;
	look_times_begin(t, now, 0, SHARE, &seed);
	while (t->due < from + ns) {
		now = t->due;
		assert_in_range(now, t->at, t->at + t->len - 1);
		if (each)
			each(t);
		look_times_looked(t);
		look_times_next(t, now + cpu_ns, cpu_ns, SHARE, &seed);
	}
	look_times_pause(t, from + ns);
	return now;
}

static uint64_t in_tenth[10], last_at;

static void count_tenth(const struct look_times *t)
{
	in_tenth[(t->due - t->at) * 10 / t->len]++;
	assert_true(!last_at || t->at == last_at + LOOKS_STRATUM_NS);
	last_at = t->at;
}

/* One in each, and the next one begins where it ends: each moment is as likely as any other. */
static void each_stratum_has_a_look_at_random(void **state)
{
	struct look_times t = { 0 };

	(void)state;
	last_at = 0;
	look_for(&t, 5 * SEC, 100 * SEC, 0, count_tenth);
	assert_in_range(t.looks, 49999, 50000);
	assert_true(t.looked_ns == (double)(t.looks * LOOKS_STRATUM_NS));
	assert_true(look_times_mean(&t) == (double)LOOKS_STRATUM_NS);
	assert_true(t.phases_ns == (double)(100 * SEC));
	for (size_t i = 0; i < 10; i++)
		assert_in_range(in_tenth[i], 4600, 5400); /* 6 deviations of 5,000 */
}

static double met;

/* Something waits for the first 0.6 ms of each 2 ms, which is how long strata are. */
static void meet(const struct look_times *t)
{
	if (t->due % (2 * MS) < 600000)
		met += (double)t->len;
}

static void a_rhythm_is_met_as_often_as_it_is_there(void **state)
{
	struct look_times t = { 0 };

	(void)state;
	met = 0;
	look_for(&t, 3 * SEC, 100 * SEC, 0, meet);
	assert_true(fabs(met / (double)(30 * SEC) - 1) < 0.05);
}

/* Dear looks are rare, and never more than so rare. */
static void looks_keep_to_their_share(void **state)
{
	struct look_times t = { 0 }, dear = { 0 };

	(void)state;
	look_for(&t, SEC, 100 * SEC, MS, NULL);
	assert_true(fabs(t.cost / (double)MS - 1) < 0.01);
	assert_true(fabs((double)t.len / (20 * MS) - 1) < 0.01);
	assert_true((double)(t.looks * MS) < 1.02 * SHARE * (double)(100 * SEC));
	look_for(&dear, SEC, 1000 * SEC, 900 * MS, NULL);
	assert_true((double)(dear.looks * 900 * MS) < 1.1 * SHARE * (double)(1000 * SEC));
	look_for(&dear, 2000 * SEC, 10000 * SEC, 9 * SEC, NULL);
	assert_int_equal(dear.len, 60 * SEC);
}

static void what_is_too_late_stands_for_no_more(void **state)
{
	struct look_times t = { 0 };
	uint64_t end;

	(void)state;
	seed = 1;
	look_times_begin(&t, SEC, 0, SHARE, &seed);
	end = t.at + t.len;
	look_times_looked(&t);
	/* Within the next stratum the next one is not left out, */
	look_times_next(&t, end + t.len - 1, 0, SHARE, &seed);
	assert_int_equal(t.at, end);
	look_times_looked(&t);
	/* and after it time begins anew. */
	look_times_next(&t, end + 100 * MS, 0, SHARE, &seed);
	assert_int_equal(t.at, end + 100 * MS);
	assert_int_equal(t.looks, 2);
	assert_true(t.looked_ns == 2.0 * LOOKS_STRATUM_NS);
}

static void phases_are_added_up(void **state)
{
	struct look_times t = { 0 };

	(void)state;
	assert_true(look_times_mean(&t) == 0);
	look_times_pause(&t, SEC);
	assert_true(t.phases_ns == 0);
	look_times_begin(&t, 10 * SEC, 10 * SEC - 5 * MS, SHARE, &seed);
	look_times_pause(&t, 11 * SEC);
	look_times_pause(&t, 12 * SEC);
	look_times_begin(&t, 20 * SEC, 0, SHARE, &seed);
	assert_true(t.on);
	look_times_pause(&t, 22 * SEC);
	assert_false(t.on);
	assert_true(t.phases_ns == (double)(3 * SEC + 5 * MS));
}

/* ---- two of one target ---- */

enum { A, B, COLD = 500000, HOT = 50000 };
static struct look_times two[2];

/*
 * Both look for @ns, each with its own @share: whoever looks at a moment at which the other one has just done so needs HOT ns, else COLD. Returns how
 * many looks of both were made so.
 */
static uint64_t look_both(uint64_t ns, const double *share)
{
	uint64_t now = SEC, last = 0, hot = 0;

	while (now < SEC + ns) {
		struct look_times *t = &two[two[B].due < two[A].due];
		uint64_t cost = t->due > last + MS ? COLD : HOT;

		now = t->due > now ? t->due : now;
		last = now;
		hot += cost == HOT;
		look_times_looked(t);
		now += cost;
		look_times_next(t, now, cost, share[t == &two[B]], &seed);
	}
	return hot;
}

static void begin_both(const double *share)
{
	static struct look_pair pair;

	memset(two, 0, sizeof(two));
	memset(&pair, 0, sizeof(pair));
	seed = 3;
	for (int i = 0; i < 2; i++) {
		look_times_join(&two[i], &pair);
		look_times_begin(&two[i], SEC + (uint64_t)i * 300 * MS, 0, share[i], &seed);
	}
}

/* Each of them takes its share, for which it would look half as often alone. */
static void two_of_one_target_look_at_once(void **state)
{
	static const double share[] = { 0.001, 0.001 };
	uint64_t hot;

	(void)state;
	begin_both(share);
	hot = look_both(1000 * SEC, share);
	print_message("%llu and %llu looks, %llu at once\n", (unsigned long long)two[A].looks,
		      (unsigned long long)two[B].looks, (unsigned long long)hot);
	assert_true(two[A].looks > 3300 && two[A].looks < 3900 && two[B].looks > 3300 &&
		    two[B].looks < 3900);
	assert_true((double)hot > 0.98 * (double)two[A].looks);
	assert_true(fabs(two[A].looked_ns / (double)(1000 * SEC) - 1) < 0.02);
	assert_true(fabs(two[B].looked_ns / (double)(1000 * SEC) - 1) < 0.02);
}

/* One that may look much more often does not make the other one do so. */
static void those_that_do_not_suit_look_apart(void **state)
{
	static const double share[] = { 0.001, 0.05 };

	(void)state;
	begin_both(share);
	look_both(100 * SEC, share);
	assert_true(two[A].looks > 180 && two[A].looks < 500);
	assert_true(two[B].looks > 9000);
}

/* While the other one pauses, or has left, it is alone. */
static void one_that_does_not_look_is_nobody_to_wait_for(void **state)
{
	static const double share[] = { 0.001, 0.001 };
	struct look_times third = { 0 };

	(void)state;
	begin_both(share);
	look_times_join(&third, two[A].pair);
	assert_null(third.pair);
	look_times_leave(&third);
	look_both(10 * SEC, share);
	look_times_pause(&two[B], 11 * SEC);
	two[B].due = UINT64_MAX;
	look_both(100 * SEC, share);
	assert_in_range(two[A].looks, 180, 300);
	look_times_leave(&two[B]);
	assert_null(two[A].pair->of[B]);
	look_times_join(&third, two[A].pair);
	assert_ptr_equal(two[A].pair->of[B], &third);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_stratum_has_a_look_at_random),
		cmocka_unit_test(a_rhythm_is_met_as_often_as_it_is_there),
		cmocka_unit_test(looks_keep_to_their_share),
		cmocka_unit_test(what_is_too_late_stands_for_no_more),
		cmocka_unit_test(phases_are_added_up),
		cmocka_unit_test(two_of_one_target_look_at_once),
		cmocka_unit_test(those_that_do_not_suit_look_apart),
		cmocka_unit_test(one_that_does_not_look_is_nobody_to_wait_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
