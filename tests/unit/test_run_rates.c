/* tests/unit/test_run_rates.c - storms of yields that come with the runtime's sweeper, and storms that do not. */
#include "sampling/run_rates.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/random.h"

#define MS	1e6
#define STEP_NS (5 * MS)
#define USUAL	60.0	/* runs in a step */
#define STORM	12000.0 /* more in one with a storm */

enum { STEPS = 2000, WORLDS = 400 };

/* How often: parts of all steps. */
struct world {
	double swept;	      /* in which the sweeper is at work */
	double sweeper_storm; /* of these, with a storm of its own */
	double user_storm;    /* of all, with a storm that has nothing to do with it */
};

struct truth {
	double sweeper, user;
};

static struct run_unmet run(const struct world *w, uint64_t *seed, struct truth *t)
{
	static struct run_rates r;
	struct run_unmet u;

	r = (struct run_rates){ 0 };
	*t = (struct truth){ 0 };
	for (int i = 0; i < STEPS; i++) {
		bool swept = random_part(seed) < w->swept;
		double own = swept && random_part(seed) < w->sweeper_storm ? STORM : 0;
		double user = random_part(seed) < w->user_storm ? STORM : 0;

		t->sweeper += own;
		t->user += user;
		(swept ? run_rates_swept : run_rates_step)(&r, USUAL + own + user, STEP_NS);
	}
	for (int i = 0; i < 40; i++)
		run_rates_window(&r, 2 * USUAL, 2 * STEP_NS, STEPS / 40 * STEP_NS);
	u = run_rates_unmet(&r);
	return u;
}

/* Nats-server 2.11, go1.27.4, 20 connections: 20 GC cycles a second, and a storm in each second one. */
static void storms_of_the_sweeper_are_its_yields(void **state)
{
	const struct world w = { .swept = 0.2, .sweeper_storm = 0.3 };
	uint64_t seed = 3;

	(void)state;
	for (int i = 0; i < WORLDS; i++) {
		struct truth t;
		struct run_unmet u = run(&w, &seed, &t);

		assert_true(u.runs > 0.98 * t.sweeper && u.yields > 0.98 * u.runs);
		assert_true(u.maybe <= 0.02 * u.runs);
	}
}

/* Some of those fall into its time: they are no yields. All of them do in so few profiles as chance allows. */
static void storms_of_others_are_no_yields(void **state)
{
	const double often[] = { 0.0005, 0.001, 0.005, 0.05 };
	uint64_t seed = 5;

	(void)state;
	for (size_t k = 0; k < 4; k++) {
		const struct world w = { .swept = 0.3, .user_storm = often[k] };
		double maybe = 0, others = 0;
		int wrong = 0;

		for (int i = 0; i < WORLDS; i++) {
			struct truth t;
			struct run_unmet u = run(&w, &seed, &t);

			assert_true(u.runs >= 0.98 * t.user);
			maybe += u.maybe;
			others += u.runs - u.yields;
			wrong += u.yields > 0;
		}
		printf("# %.2f %%: %d of %d\n", 100 * often[k], wrong, WORLDS);
		assert_true(wrong <= WORLDS / 40);
		assert_true(maybe < 0.4 * others); /* by chance */
	}
}

/* Both: what is told is what others had, in the mean. */
static void of_both_those_of_others_are_told(void **state)
{
	const struct world w = { .swept = 0.2, .sweeper_storm = 0.3, .user_storm = 0.02 };
	double told = 0, user = 0;
	uint64_t seed = 7;

	(void)state;
	for (int i = 0; i < WORLDS; i++) {
		struct truth t;
		struct run_unmet u = run(&w, &seed, &t);

		assert_true(u.yields > 0);
		told += u.runs - u.yields;
		user += t.user;
	}
	printf("# told %.3f of it\n", told / user);
	assert_true(told > 0.95 * user && told < 1.05 * user);
}

/* One storm may be anybody's; where the sweeper is always at work so may be all of them. */
static void little_evidence_is_none(void **state)
{
	static struct run_rates r;
	const struct world always = { .swept = 0.95, .sweeper_storm = 0.05 };
	struct truth t;
	struct run_unmet u;
	uint64_t seed = 9;

	(void)state;
	r = (struct run_rates){ 0 };
	run_rates_window(&r, USUAL, STEP_NS, STEPS * STEP_NS);
	for (int i = 0; i < STEPS; i++)
		(i % 8 ? run_rates_step : run_rates_swept)(&r, USUAL + (i == 800 ? STORM : 0),
							   STEP_NS);
	u = run_rates_unmet(&r);
	assert_true(u.runs > 0.98 * STORM && u.yields == 0 && u.maybe > 0.98 * u.runs);
	u = run(&always, &seed, &t);
	assert_true(u.runs > 0.98 * t.sweeper && u.yields <= u.runs);
	assert_true(u.maybe >= 0.98 * (u.runs - u.yields));
	for (int i = 0; i < STEPS; i++)
		run_rates_swept(&r, USUAL, STEP_NS);
	assert_true(run_rates_unmet(&r).yields == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(storms_of_the_sweeper_are_its_yields),
		cmocka_unit_test(storms_of_others_are_no_yields),
		cmocka_unit_test(of_both_those_of_others_are_told),
		cmocka_unit_test(little_evidence_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
