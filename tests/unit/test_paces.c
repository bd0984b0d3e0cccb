/* tests/unit/test_paces.c - paces of classes say what histograms of each class say, in little memory. */
#include "sampling/windows/paces.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"

#define MS	  1000000ull
#define WINDOW_NS 2e7
#define STANDS_NS 4e7

enum { USED = 5, ROUNDS = 2000 };

/* Paces of a class differ by up to a million times; some steps have none of it. */
static uint64_t some(uint64_t *seed, unsigned class)
{
	double much = random_part(seed) * 20;

	return random_part(seed) < 0.3 ? 0 : (uint64_t)(1 << (unsigned)much) * (class + 1);
}

static void step(struct paces *p, struct run_rates *whole, uint64_t *counts, uint64_t *seed,
		 uint64_t now)
{
	for (unsigned i = 1; i <= USED; i++) {
		uint64_t more = p->known ? some(seed, i) : 1;

		counts[i] += more;
		if (p->known)
			run_rates_step(&whole[i], (double)more, (double)(now - p->began));
	}
	assert_true(paces_step(p, counts, now));
}

/* Far from any step, so that it is about what it saw itself. */
static void window(struct paces *p, struct run_rates *whole, uint64_t *seed, uint64_t now)
{
	double seen[GPB_CLASSES] = { 0 };

	for (unsigned i = 1; i <= USED; i++)
		seen[i] = (double)(some(seed, i) >> 12);
	for (unsigned i = 0; i < GPB_CLASSES; i++)
		run_rates_window(&whole[i], seen[i], WINDOW_NS, STANDS_NS);
	paces_window(p, now, now + (uint64_t)WINDOW_NS, seen, WINDOW_NS, STANDS_NS);
}

static void close_to(double a, double b)
{
	assert_true(a - b <= 1e-9 * (b > 1 ? b : 1) && b - a <= 1e-9 * (b > 1 ? b : 1));
}

static void they_say_what_whole_histograms_say(void **state)
{
	static struct run_rates whole[GPB_CLASSES];
	uint64_t counts[GPB_CLASSES] = { 0 }, seed = 7, now = MS, unmet = 0;
	struct paces p = { 0 };

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		step(&p, whole, counts, &seed, now);
		if (i % 9 == 0) {
			window(&p, whole, &seed, now + 300 * MS);
			paces_pause(&p);
			now += 600 * MS;
		}
		now += (5 + (uint64_t)(random_part(&seed) * 9)) * MS;
	}
	paces_end(&p);
	for (unsigned i = 0; i < GPB_CLASSES; i++) {
		struct run_unmet a = paces_unmet(&p, i), b = run_rates_unmet(&whole[i]);

		close_to(a.runs, b.runs);
		close_to(a.unsure, b.unsure);
		close_to(a.faster, b.faster);
		unmet += b.runs > 0 && b.unsure > 0 && b.faster > 0;
	}
	assert_int_equal(unmet, USED);
	paces_fini(&p);
}

/*
 * Of a program that makes 20 a ms, and in each second burst(s) of 20,000: what no window met, by counts that are read each @every_ms. The window
 * lies in a calm time, a moment after a burst, or (@both) between two.
 */
static double unmet_of(uint64_t every_ms, bool both)
{
	uint64_t counts[GPB_CLASSES] = { 0 }, made = 1, now = 1000 * MS;
	double seen[GPB_CLASSES] = { 0 };
	struct paces p = { 0 };
	struct run_unmet u;

	seen[1] = 20 * 5;
	for (uint64_t ms = 0; ms < 4000; ms += every_ms, now += every_ms * MS) {
		bool burst = ms % 1000 / every_ms == 400 / every_ms ||
			     (both && ms % 1000 / every_ms == 400 / every_ms + 1);

		counts[1] = made;
		assert_true(paces_step(&p, counts, now));
		if (ms % 1000 / every_ms ==
		    400 / every_ms + 1) { /* just after the step with the burst */
			paces_window(&p, now + MS, now + 6 * MS, seen, 5e6, 1e9);
			counts[1] = made + 120;
			assert_true(paces_step(&p, counts, now + 6 * MS));
		}
		made += 20 * every_ms + (burst ? 20000 : 0);
	}
	paces_end(&p);
	u = paces_unmet(&p, 1);
	paces_fini(&p);
	return u.runs;
}

static void bursts_in_long_steps_are_not_met_by_windows_beside_them(void **state)
{
	(void)state;
	/* 4,000 a ms is no pace that a window with 20 may have met; 150 a ms might be, but for the time after the window. */
	assert_true(unmet_of(5, false) > 70000);
	assert_true(unmet_of(150, false) > 70000);
	/* The price of a hit is not known: it may have been that fast all the time. */
	assert_true(unmet_of(150, true) == 0);
}

/* A process has some in most classes from its start on, and allocates nothing for hours. */
static void one_that_allocates_nothing_takes_no_memory(void **state)
{
	static const double none[GPB_CLASSES];
	uint64_t counts[GPB_CLASSES], now = MS;
	struct paces p = { 0 };

	(void)state;
	for (unsigned i = 0; i < GPB_CLASSES; i++)
		counts[i] = 100 + i;
	for (int i = 0; i < ROUNDS; i++, now += 20 * MS) {
		assert_true(paces_step(&p, counts, now));
		paces_window(&p, now + MS, now + 3 * MS, none, 2e6, 2e7);
	}
	assert_int_equal(p.bins.n, 0);
	assert_null(p.bins.at);
	counts[9]++;
	assert_true(paces_step(&p, counts, now));
	assert_int_equal(p.bins.n, 1);
	paces_fini(&p);
}

/* What has ended since the last step is judged by how it was just before: not by one that has only just begun, nor by old ones. */
static void the_pace_lately_is_of_the_last_step_and_after(void **state)
{
	uint64_t counts[GPB_CLASSES] = { 0 }, now = MS;
	double pace[GPB_CLASSES];
	struct paces p = { 0 };

	(void)state;
	paces_lately(&p, counts, now, pace);
	close_to(pace[3], 0);
	assert_true(paces_step(&p, counts, now));
	counts[3] = 40;
	paces_lately(&p, counts, now + 4 * MS, pace); /* no step has ended */
	close_to(pace[3], 40 / (4.0 * MS));
	assert_true(paces_step(&p, counts, now += 100 * MS));
	counts[3] += 1000;
	assert_true(paces_step(&p, counts, now += 20 * MS));
	paces_lately(&p, counts, now, pace);
	close_to(pace[3], 1000 / (20.0 * MS));
	close_to(pace[2], 0);
	counts[3] += 20;
	paces_lately(&p, counts, now + 5 * MS, pace);
	close_to(pace[3], 1020 / (25.0 * MS));
	paces_pause(&p);
	assert_true(paces_step(&p, counts, now += 1000 * MS)); /* that step is long ago */
	paces_lately(&p, counts, now, pace);
	close_to(pace[3], 0);
	paces_end(&p);
	paces_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(they_say_what_whole_histograms_say),
		cmocka_unit_test(bursts_in_long_steps_are_not_met_by_windows_beside_them),
		cmocka_unit_test(one_that_allocates_nothing_takes_no_memory),
		cmocka_unit_test(the_pace_lately_is_of_the_last_step_and_after),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
