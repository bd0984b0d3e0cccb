/*
 * tests/unit/test_heap_worlds.c - simulated programs whose allocations are seen in windows, while the runtime's
 * own counts are known: steady ones, bursts, and phases in which another site allocates far more often.
 *
 * Each world is run RUNS times. No site may be farther off than SURE times its stated error; what no window met must
 * be told; and where windows met all, nothing may be told, and no error may be larger than without paces.h. The worlds
 * with phases show without it that they do what they are for: there sites are too far off.
 *
 * The coverage of stated intervals: of PROGRAMS programs that are drawn at random, steady, periodic, bursty, phased, and
 * ones of which windows see too little of one thread, two standard errors cover each site's truth as often as theory says.
 */
#include "collect/heap/window/heap_window.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/random.h"

#define MS  1000000ull
#define SEC 1000000000ull

enum { SIZE = 64, CLASS = 5, OTHER = 1024, OTHER_CLASS = 28, SITES = 3, RUNS = 100 };
enum { BEGIN = 5 }; /* s: the time that windows begin at */
#define SURE 4

/* Calm and heavy allocate objects of one size, and the third site those of another one. */
static const uint32_t size_of[SITES] = { SIZE, SIZE, OTHER };
static const unsigned class_of[SITES] = { CLASS, CLASS, OTHER_CLASS };
static const struct gpb_heap heap = { .class_size = { [CLASS] = SIZE, [OTHER_CLASS] = OTHER } };

/* Allocations per second of each site, at a time in s. */
typedef void rates(double at, double out[SITES]);

struct world {
	rates *rates;
	double seconds;
	double stratum_s; /* the mean length of strata */
	double own_s;	  /* the length of a window in the target's own time */
	double sees; /* of a site at its most, windows see this part: the price of a hit is wrong */
};

static uint64_t seed;

/* A Poisson number; a normal one where the mean is large. */
static double poisson(double mean)
{
	double left = exp(-mean), n = -1;

	if (mean > 500) {
		double u = random_part(&seed) + 1e-12, v = random_part(&seed);

		n = mean + sqrt(mean) * sqrt(-2 * log(u)) * cos(2 * M_PI * v);
		return n > 0 ? floor(n) : 0;
	}
	for (double p = 1; p > left; n++)
		p *= random_part(&seed);
	return n;
}

static void step_counts(const struct world *w, double at, double s, double n[SITES])
{
	double per_s[SITES];

	w->rates(at, per_s);
	for (int i = 0; i < SITES; i++)
		n[i] = per_s[i] > 0 ? poisson(per_s[i] * s) : 0;
}

/* What a window sees of each site: fewer than there are of one that does nothing but allocate. */
static void see(struct heap_window *h, const struct world *w, double at, double stratum_s)
{
	double n[SITES], all[GPB_CLASSES] = {}, busy;
	struct tally_window window = { .weight = stratum_s / w->own_s, .all = all };
	double opened = (BEGIN + at) * 1e9;

	step_counts(w, at, w->own_s, n);
	for (int i = 0; i < SITES; i++) {
		struct gpb_stack st = { .nfirst = 1, .object.size = size_of[i] };

		busy = n[i] / w->own_s > 1e6 ? w->sees : 1;
		st.count = (uint32_t)(n[i] * busy);
		st.pc[0] = (uint64_t)i + 1;
		all[class_of[i]] += st.count;
		if (st.count)
			assert_int_equal(tally_add(&h->tally, &st, class_of[i], NULL), 0);
	}
	paces_window(&h->paces, (uint64_t)opened, (uint64_t)(opened + 2e7), all, w->own_s * 1e9,
		     stratum_s * 1e9);
	for (int i = 0; i < GPB_CLASSES; i++)
		all[i] *= window.weight;
	tally_window(&h->tally, &window);
}

struct result {
	double truth[SITES], value[SITES],
		error[SITES]; /* error < 0: unknown; value < 0: it was not seen */
	struct heap_unseen unseen;
	uint64_t windows;
};

static void read_counts(struct heap_window *h, const double done[GPB_CLASSES], double at)
{
	uint64_t counts[GPB_CLASSES] = {};

	for (int i = 0; i < GPB_CLASSES; i++)
		counts[i] = (uint64_t)done[i];
	assert_true(paces_step(&h->paces, counts, (uint64_t)((BEGIN + at) * 1e9)));
}

static void result_of(struct heap_window *h, struct result *r)
{
	heap_window_end(h);
	r->windows = h->tally.windows;
	r->unseen = heap_window_unseen(h);
	for (int i = 0; i < SITES; i++)
		r->value[i] = -1;
	for (size_t i = 0; i < h->tally.entries.n; i++) {
		const struct tally_entry *en = &h->tally.entries.at[i];
		struct heap_estimate est = heap_window_estimate(h, en);

		r->value[en->st->pc[0] - 1] = est.objects;
		r->error[en->st->pc[0] - 1] = est.variance < 0 ? -1 : sqrt(est.variance);
	}
}

/* @paces: as the program does it; otherwise the runtime's total is shared out among what windows saw. */
static struct result run(const struct world *w, bool paces)
{
	struct heap_window h = { .heap = &heap, .rate = 1, .rate_in_windows = 1 };
	double done[GPB_CLASSES] = {}, end = 0, window = 0, n[SITES];
	struct result r = {};

	tally_init(&h.tally);
	for (double at = 0; at < w->seconds; at += 0.001) {
		if (fmod(at + 1e-9, 0.005) < 0.001 && paces)
			read_counts(&h, done, at);
		if (at >= end) { /* the next stratum begins */
			end = at + w->stratum_s;
			window = at + random_part(&seed) * (w->stratum_s - w->own_s);
		}
		if (at >= window && window >= 0) {
			see(&h, w, at, w->stratum_s);
			window = -1;
			continue;
		}
		window = window < 0 && at + 0.001 >= end ? 0 : window;
		step_counts(w, at, 0.001, n);
		for (int i = 0; i < SITES; i++) {
			done[class_of[i]] += n[i];
			r.truth[i] += n[i];
		}
	}
	for (int i = 0; i < GPB_CLASSES; i++)
		h.total[i] = done[i];
	result_of(&h, &r);
	paces_fini(&h.paces);
	tally_fini(&h.tally);
	return r;
}

/* ---- programs ---- */

static void steady(double at, double out[SITES])
{
	(void)at;
	out[0] = 4e4;
	out[1] = 1e5;
	out[2] = 3e4;
}

/* Two threads that do nothing else. */
static void heavy(double at, double out[SITES])
{
	(void)at;
	out[0] = 4e6;
	out[1] = 1e7;
	out[2] = 2e6;
}

/* A garbage collector, a timer: all sites work together for a tenth of the time. */
static void pulsing(double at, double out[SITES])
{
	double part = fmod(at, 0.1) < 0.02 ? 5 : 0.1;

	out[0] = 4e4 * part;
	out[1] = 1e5 * part;
	out[2] = 3e4 * part;
}

/* One phase of a third of a second, in which only the heavy site works, a thousand times as often as the calm one. */
static void phase(double at, double out[SITES])
{
	bool heavy = at >= 3.1 && at < 3.4;

	out[0] = heavy ? 0 : 2000;
	out[1] = heavy ? 1e7 : 0;
	out[2] = 500;
}

/* The calm site goes on, and the heavy one makes three times as many in a quarter of the time. */
static void swell(double at, double out[SITES])
{
	out[0] = 2e4;
	out[1] = fmod(at, 2) < 0.5 ? 6e4 : 0;
	out[2] = 500;
}

/* For 20 ms of each second the heavy site works: many runs have no window there. */
static void bursts(double at, double out[SITES])
{
	out[0] = 2000;
	out[1] = fmod(at, 1) < 0.02 ? 2e6 : 0;
	out[2] = 500;
}

/* ---- judging ---- */

struct judged {
	unsigned known, off; /* estimates whose error is known; those that are too far off for it */
	unsigned unmet,
		untold; /* runs with allocations that no window met; where a site was not seen and that is not told */
	double errors; /* the sum of all that are known */
};

static void judge_run(struct judged *j, const struct result *r)
{
	bool unseen = false;

	for (int i = 0; i < SITES; i++) {
		unseen |= r->value[i] < 0 && r->truth[i] > 0;
		if (r->value[i] < 0 || r->error[i] < 0)
			continue;
		j->known++;
		j->errors += r->error[i];
		j->off += fabs(r->value[i] - r->truth[i]) > SURE * fmax(r->error[i], 1);
	}
	j->unmet += r->unseen.fast > 0;
	j->untold += unseen && !r->unseen.many;
}

static struct judged judge(const struct world *w, bool paces)
{
	struct judged j = {};

	for (unsigned k = 0; k < RUNS; k++) {
		struct result r;

		seed = 1000 * k + 7;
		r = run(w, paces);
		judge_run(&j, &r);
	}
	print_message("paces %d: %u known, %u off, %u unmet, %u untold, errors %.0f\n", paces,
		      j.known, j.off, j.unmet, j.untold, j.errors);
	return j;
}

/* Windows meet all there is: they tell what they told without the runtime's paces. */
static void check_met(const struct world *w)
{
	struct judged without = judge(w, false), with = judge(w, true);

	assert_int_equal(with.known, SITES * RUNS);
	assert_int_equal(with.off, 0);
	assert_int_equal(with.unmet, 0);
	assert_true(with.errors <= without.errors * (1 + 1e-9));
}

static void check_unmet(const struct world *w)
{
	struct judged without = judge(w, false), with = judge(w, true);

	assert_true(without.off > RUNS / 10 && without.untold > RUNS / 10);
	assert_true(with.unmet > RUNS / 10 && with.known == without.known);
	assert_int_equal(with.off, 0);
	assert_int_equal(with.untold, 0);
}

static void test_steady(void **state)
{
	(void)state;
	check_met(&(struct world){ steady, 6, 0.1, 0.004, 1 });
	check_met(&(struct world){ steady, 6, 1, 0.004, 0.3 });
	check_met(&(struct world){ heavy, 3, 0.1, 0.0005, 0.2 });
}

static void test_pulses(void **state)
{
	(void)state;
	check_met(&(struct world){ pulsing, 6, 0.05, 0.004, 1 });
	check_met(&(struct world){ swell, 8, 0.25, 0.004, 1 });
}

/* Where windows see several times too few in what is taken for their own time, too. */
static void test_phase(void **state)
{
	(void)state;
	check_unmet(&(struct world){ phase, 6, 0.5, 0.004, 1 });
	check_unmet(&(struct world){ phase, 6, 0.5, 0.004, 0.2 });
}

static void test_bursts(void **state)
{
	(void)state;
	check_unmet(&(struct world){ bursts, 8, 0.25, 0.004, 1 });
}

/* ---- coverage ---- */

/*
 * Of 400 intervals of two standard errors, of which each covers with 94.5 % as those of 60 windows do, fewer than
 * 362 would cover by chance in one world of 4,000.
 */
enum { PROGRAMS = 400, COVERED_LEAST = 362 };

/* A program's parameters, drawn anew for each. */
static struct {
	double of[SITES]; /* allocations a second */
	double period, phase, duty;
	uint64_t seed;
} drawn;

static void draw(void)
{
	for (int i = 0; i < SITES; i++)
		drawn.of[i] = 5000 * exp(3 * random_part(&seed));
	drawn.period = 0.02 * exp(3 * random_part(&seed));
	drawn.phase = random_part(&seed);
	drawn.duty = 0.1 + 0.4 * random_part(&seed);
	drawn.seed = random_next(&seed);
}

/* A number from 0 to 1 that belongs to the @n-th part of @site's time. */
static double of_part(double n, int site)
{
	uint64_t at = drawn.seed + (uint64_t)n * 1000003 + (uint64_t)site * 7919;

	random_next(&at);
	return random_part(&at);
}

static void drawn_steady(double at, double out[SITES])
{
	(void)at;
	memcpy(out, drawn.of, sizeof(drawn.of));
}

/* Each site has its part of a period. */
static void drawn_periodic(double at, double out[SITES])
{
	for (int i = 0; i < SITES; i++) {
		double where = fmod(at / drawn.period + drawn.phase + i * 0.3, 1);

		out[i] = drawn.of[i] * (where < drawn.duty ? 1 / drawn.duty : 0.1);
	}
}

/* Each 10 ms a site works, or not. */
static void drawn_bursty(double at, double out[SITES])
{
	for (int i = 0; i < SITES; i++)
		out[i] = drawn.of[i] * (of_part(floor(at * 100), i) < 0.3 ? 3 : 0.1);
}

/* Each second another mix. */
static void drawn_phased(double at, double out[SITES])
{
	for (int i = 0; i < SITES; i++)
		out[i] = drawn.of[i] * (0.2 + 1.6 * of_part(floor(at), i));
}

/*
 * One thread, of which windows see nine tenths, makes two of the first site for each of the third; the second site is
 * alone in its thread. That windows lack some of the first one shows only in what the runtime counted of the third one's class.
 */
static void drawn_unequal(double at, double out[SITES])
{
	double busy = 1 + of_part(floor(at * 20), 0);

	out[0] = 2.2e6 * busy;
	out[2] = 1.1e6 * busy;
	out[1] = (3e5 + 3 * drawn.of[1]) * (0.5 + of_part(floor(at * 20), 1));
}

static bool covers(const struct result *r, int site)
{
	return r->value[site] >= 0 &&
	       (r->error[site] < 0 ||
		fabs(r->value[site] - r->truth[site]) <= 2 * r->error[site] + 1);
}

/* Of a site, over all programs: how near to the truth it was, and how near it said that it was. */
struct score {
	double sum, off, error;
	unsigned covered;
};

static void score_run(struct score score[SITES], const struct result *r)
{
	for (int i = 0; i < SITES; i++) {
		struct score *s = &score[i];

		s->covered += covers(r, i);
		s->sum += r->value[i] / r->truth[i] / PROGRAMS;
		s->off += pow(r->value[i] / r->truth[i] - 1, 2) / PROGRAMS;
		s->error += pow(r->error[i] / r->truth[i], 2) / PROGRAMS;
	}
}

/* Errors may be stated up to @error_most times too large: the spread between strata is in them, which windows do not have. */
static void check_coverage(const char *name, const struct world *w, double error_most)
{
	struct score score[SITES] = {};
	bool ok = true;

	for (unsigned k = 0; k < PROGRAMS; k++) {
		struct result r;

		seed = 31 * k + 11;
		draw();
		r = run(w, true);
		score_run(score, &r);
	}
	for (int i = 0; i < SITES; i++) {
		const struct score *s = &score[i];
		double larger = s->off > 1e-9 ? sqrt(s->error / s->off) : 1;

		print_message(
			"%s, site %d: %.3f of the truth; %u of %u covered; errors %.2f times, %.2f %%\n",
			name, i, s->sum, s->covered, PROGRAMS, larger, 100 * sqrt(s->off));
		ok &= s->covered >= COVERED_LEAST && fabs(s->sum - 1) < 0.02 &&
		      larger <= error_most;
	}
	if (!ok)
		fail_msg("%s", name);
}

static void test_coverage(void **state)
{
	(void)state;
	check_coverage("steady", &(struct world){ drawn_steady, 8, 0.1, 0.004, 1 }, 1.5);
	check_coverage("periodic", &(struct world){ drawn_periodic, 8, 0.1, 0.004, 1 }, 1.5);
	check_coverage("bursty", &(struct world){ drawn_bursty, 8, 0.1, 0.004, 1 }, 1.5);
	check_coverage("phased", &(struct world){ drawn_phased, 8, 0.1, 0.004, 1 }, 6);
	check_coverage("unequal", &(struct world){ drawn_unequal, 8, 0.1, 0.004, 0.9 }, 1.5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steady),	 cmocka_unit_test(test_pulses),
		cmocka_unit_test(test_phase),	 cmocka_unit_test(test_bursts),
		cmocka_unit_test(test_coverage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
