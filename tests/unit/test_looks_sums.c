/* tests/unit/test_looks_sums.c - which stacks that looks find become entries of the tally, and how sure their sums are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "base/random.h"
#include "sampling/looks_sums.h"

static bool room;

static bool has_room(void *arg)
{
	assert_ptr_equal(arg, &room);
	return room;
}

/* Many targets share the room for stacks: what finds none is counted, and what has an entry keeps it. */
static void what_there_is_no_room_for_is_counted(void **state)
{
	struct gpb_stack st[2] = { { .nfirst = 1, .pc = { 100 } }, { .nfirst = 1, .pc = { 200 } } };
	struct tally t = {};
	struct looks_sums u = { .tally = &t, .room = has_room, .room_arg = &room };
	bool known;
	int32_t at;

	(void)state;
	tally_init(&t);
	room = true;
	assert_int_equal(looks_sums_entry(&u, &st[0], 0, true, &known, &at, NULL), 0);
	assert_true(known && at == 0 && !u.crowded);
	room = false;
	assert_int_equal(looks_sums_entry(&u, &st[1], 0, true, &known, &at, NULL), 0);
	assert_true(known && at == LOOKS_NOT_COUNTED);
	assert_int_equal(u.crowded, 1);
	assert_int_equal(looks_sums_entry(&u, &st[0], 0, true, &known, &at, NULL), 0);
	assert_true(known && at == 0);
	assert_true(t.entries.n == 1 && u.crowded == 1);
	looks_sums_fini(&u);
	tally_fini(&t);
}

/* Waits without a stack are an error of each place where goroutines wait for the same, and of no other. */
static void lost_waits_may_be_of_any_such_place(void **state)
{
	enum { RECEIVE = 14, SLEEP = 19 };
	struct gpb_stack at[] = { { .nfirst = 1, .wait.reason = RECEIVE, .pc = { 100 } },
				  { .nfirst = 1, .wait.reason = SLEEP, .pc = { 200 } },
				  { .nfirst = 1, .wait.kind = GPB_G_RUNNABLE, .pc = { 300 } },
				  { .nfirst = 1, .wait.kind = GPB_G_SYSCALL, .pc = { 400 } } };
	struct tally t = {};
	struct looks_sums u = { .tally = &t, .reasons_apart = 1ull << SLEEP };
	size_t entry;

	(void)state;
	tally_init(&t);
	for (size_t i = 0; i < ARRAY_LEN(at); i++)
		assert_int_equal(tally_index(&t, &at[i], 0, &entry, NULL), 0);
	looks_sums_lost(&u, &(struct gpb_stack){ .wait.reason = RECEIVE }, 5);
	looks_sums_lost(&u, &(struct gpb_stack){ .wait.reason = RECEIVE }, 2);
	looks_sums_lost(&u, &(struct gpb_stack){ .wait.kind = GPB_G_SYSCALL }, 3);
	looks_sums_end(&u, 2000, 1000);
	assert_true(looks_site_lost(&u, 0) == 14 && looks_site_lost(&u, 1) == 0);
	assert_true(looks_site_lost(&u, 2) == 0 && looks_site_lost(&u, 3) == 6);
	assert_true(looks_all_lost(&u) == 20 && looks_apart_lost(&u) == 0);
	/* of a place that came later nothing is known */
	assert_true(looks_site_lost(&u, 4) == 20);
	looks_sums_fini(&u);
	tally_fini(&t);
}

/* What the probes of a target saw makes a stack known that looks find, though these do not know its slot. */
static void probes_make_stacks_known(void **state)
{
	struct gpb_stack probed = {
		.slot = 7 | 3u << 16, .nfirst = 1, .count = GPB_COUNT_ONE, .pc = { 100 }
	};
	struct gpb_stack looked = { .nfirst = 1, .pc = { 100 } };
	const struct tally_window w = { .weight = 1 };
	struct looks_sums u;
	struct tally t;
	bool known;
	int32_t at;

	(void)state;
	tally_init(&t);
	u = (struct looks_sums){ .tally = &t };
	assert_int_equal(looks_sums_entry(&u, &looked, 0, false, &known, &at, NULL), 0);
	assert_false(known);
	assert_int_equal(tally_add(&t, &probed, 0, NULL), 0);
	tally_window(&t, &w);
	assert_int_equal(looks_sums_entry(&u, &looked, 0, false, &known, &at, NULL), 0);
	assert_true(known && at == 0);
	assert_int_equal(t.entries.n, 1);
	looks_sums_fini(&u);
	tally_fini(&t);
}

/* One place, whose waits last @mean +- @spread (evenly spread) at each of @n looks. *total: of all. */
static double variance_of(size_t n, double mean, double spread, uint64_t *random, double *total)
{
	struct gpb_stack st = { .nfirst = 1, .pc = { 100 } };
	struct tally t = {};
	struct looks_sums u = { .tally = &t };
	double variance;
	bool known;
	int32_t at;

	tally_init(&t);
	assert_int_equal(looks_sums_entry(&u, &st, 0, true, &known, &at, NULL), 0);
	*total = 0;
	for (; u.look < n; u.look++) {
		double ns = mean - spread +
			    2 * spread * (double)random_below(random, 10001) / 10000;

		looks_sums_saw(&u, at, ns);
		*total += ns;
		if (!u.look) /* one that began before, and that others see, too */
			looks_sums_saw(&u, at, 1e9);
		if (u.look == 1)
			looks_sums_unsaw(&u, at, 1e9);
	}
	looks_sums_end(&u, 1000, 1000);
	variance = looks_site_variance(&u, 0);
	assert_true(variance == looks_all_variance(&u));
	looks_sums_fini(&u);
	tally_fini(&t);
	return variance;
}

/* Whatever looks see alike is certain, and what differs by chance is within the variance as often as theory gives (Student's t). */
static void the_variance_is_that_of_chance(void **state)
{
	enum { TRIES = 4000 };
	static const struct {
		size_t looks;
		double beyond2, beyond4, most; /* most: mean of the stated error, of the true one */
	} of[] = { { 6, 0.06, 0.01, 1.6 }, { 10, 0.06, 0.005, 1.25 }, { 30, 0.06, 0.001, 1.1 } };
	uint64_t random = 1;
	double total;

	(void)state;
	assert_true(sqrt(variance_of(7, 1000, 1, &random, &total)) < 5);
	/* of few looks nothing is known */
	assert_true(sqrt(variance_of(3, 1000, 1, &random, &total)) > 900);
	for (size_t i = 0; i < ARRAY_LEN(of); i++) {
		double n = (double)of[i].looks, beyond2 = 0, beyond4 = 0, stated = 0;

		for (size_t try = 0; try < TRIES; try++) {
			double error = sqrt(variance_of(of[i].looks, 1000, 500, &random, &total));

			stated += error / TRIES;
			beyond2 += fabs(total - n * 1000) > 2 * error;
			beyond4 += fabs(total - n * 1000) > 4 * error;
		}
		assert_true(beyond2 < of[i].beyond2 * TRIES && beyond4 < of[i].beyond4 * TRIES);
		assert_true(stated < of[i].most * 500 / sqrt(3) * sqrt(n));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lost_waits_may_be_of_any_such_place),
		cmocka_unit_test(probes_make_stacks_known),
		cmocka_unit_test(what_there_is_no_room_for_is_counted),
		cmocka_unit_test(the_variance_is_that_of_chance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
