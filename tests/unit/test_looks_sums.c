/* tests/unit/test_looks_sums.c - which stacks that looks find become entries of the tally, and how sure their sums are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "base/random.h"
#include "sampling/looks/looks_sums.h"

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
	for (; u.look < n; looks_sums_looked(&u)) {
		double ns = mean - spread +
			    2 * spread * (double)random_below(random, 10001) / 10000;

		looks_sums_look(&u, 1000);
		looks_sums_saw(&u, at, ns);
		*total += ns;
		if (!u.look) /* one that began before, and that others see, too */
			looks_sums_saw(&u, at, 1e9);
		if (u.look == 1)
			looks_sums_unsaw(&u, at, 1e9);
	}
	looks_sums_end(&u, 1000, 1000);
	variance = looks_site_variance(&u, 0);
	/* there may be places that no look met */
	assert_true(fabs(looks_all_variance(&u) - variance - u.unmet) < 1);
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

/* ---- strata that grow ---- */

/*
 * The cost of a look is learnt while it is looked, and many processes share what looks may take: strata begin with 2 ms and are a second
 * a moment later.
 */
static const double grown[] = { 2,   2,	  2,	2,    2,    2,	  2,	2,    40,
				300, 900, 1000, 1000, 1000, 1000, 1000, 1000, 1000 };

/* A goroutine that is at one place for a @share of its time, @ms each time, and its times. */
struct comer {
	double share, ms, from, to; /* the present wait */
	double waited;		    /* in the time that is over */
	uint64_t *random;
};

static double drawn(struct comer *c, double mean)
{
	return -mean * log(1 - random_part(c->random));
}

static void comes(struct comer *c)
{
	c->waited += c->to - c->from;
	c->from = c->to + drawn(c, c->ms / c->share - c->ms);
	c->to = c->from + drawn(c, c->ms);
}

/*
 * Of @together such goroutines, all of which wait at the same times. *error: what is stated; the result: by how much the estimate is off, both in
 * ms. *met: how many looks met them.
 */
static double off(double share, double ms, int together, uint64_t *random, double *error, int *met)
{
	struct gpb_stack st = { .nfirst = 1, .pc = { 100 } };
	struct comer c = { .share = share, .ms = ms, .random = random };
	double at = 0, seen = 0, last = -1, all = 0;
	struct tally t = {};
	struct looks_sums u = { .tally = &t };
	bool known;
	int32_t entry;

	tally_init(&t);
	assert_int_equal(looks_sums_entry(&u, &st, 0, true, &known, &entry, NULL), 0);
	comes(&c);
	c.waited = *met = 0;
	for (size_t i = 0; i < ARRAY_LEN(grown); i++, looks_sums_looked(&u)) {
		double now = at + grown[i] * random_part(random);

		looks_sums_look(&u, grown[i]);
		while (c.to <= now)
			comes(&c);
		for (int k = 0; k < together && seen > 0 && (c.from > now || c.from != last); k++)
			looks_sums_over(&u, entry, seen, 0);
		if (c.from > now || c.from != last)
			seen = 0;
		if (c.from <= now) {
			for (int k = 0; k < together; k++)
				looks_sums_saw(&u, entry, grown[i]);
			++*met;
			all += grown[i] * together;
			seen += grown[i];
			last = c.from;
		}
		at += grown[i];
	}
	while (c.to <= at)
		comes(&c);
	c.waited += fmax(0, at - c.from);
	looks_sums_end(&u, at, at);
	*error = sqrt(looks_site_variance(&u, 0));
	looks_sums_fini(&u);
	tally_fini(&t);
	return all - c.waited * together;
}

/*
 * Where a place was met in the short strata alone, the long ones that did not meet it say little: 40 +- 2 ms were stated in place of 3.8 s, for 14
 * of 300 places.
 */
static void rare_looks_say_how_little_they_know(void **state)
{
	enum { TRIES = 4000 };
	static const double shares[] = { 0.03, 0.1, 0.2, 0.38, 0.5, 0.7, 0.9, 0.98 };
	uint64_t random = 2;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(shares); i++) {
		double beyond2 = 0, beyond4 = 0, stated = 0, squares = 0, error;
		int met;

		for (size_t try = 0; try < TRIES; try++) {
			double by = off(shares[i], 5, 1, &random, &error, &met);

			beyond2 += fabs(by) > 2 * error;
			beyond4 += fabs(by) > 4 * error;
			stated += error / TRIES;
			squares += by * by / TRIES;
		}
		print_message(
			"%2.0f %%: beyond 2 s.e. %.4f, beyond 4 %.5f; stated %.0f ms of %.0f\n",
			100 * shares[i], beyond2 / TRIES, beyond4 / TRIES, stated, sqrt(squares));
		assert_true(beyond2 < 0.06 * TRIES && beyond4 < 0.003 * TRIES);
	}
}

/*
 * Twenty that wait for the same, once in a while: met by no look, nobody knows how many they are; but one look that met them, of a short stratum as
 * well, says it. Of 8 to 40 processes with 20 goroutines each half had an error of one goroutine in place of 20.
 */
static void those_who_wait_together_are_missed_together(void **state)
{
	enum { TRIES = 20000, TOGETHER = 20 };
	static const double shares[] = { 0.05, 0.1, 0.2, 0.38, 0.7 };
	uint64_t random = 3;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(shares); i++) {
		double beyond4 = 0, n = 0, error;
		int met;

		for (size_t try = 0; try < TRIES; try++) {
			double by = off(shares[i], 5, TOGETHER, &random, &error, &met);

			n += met > 1; /* the first one may be the very first look */
			beyond4 += met > 1 && fabs(by) > 4 * error;
		}
		print_message("%2.0f %%: %.0f met, beyond 4 s.e. %.5f\n", 100 * shares[i], n,
			      beyond4 / n);
		assert_true(beyond4 < 0.003 * n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lost_waits_may_be_of_any_such_place),
		cmocka_unit_test(probes_make_stacks_known),
		cmocka_unit_test(what_there_is_no_room_for_is_counted),
		cmocka_unit_test(the_variance_is_that_of_chance),
		cmocka_unit_test(rare_looks_say_how_little_they_know),
		cmocka_unit_test(those_who_wait_together_are_missed_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
