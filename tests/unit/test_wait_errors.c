/*
 * tests/unit/test_wait_errors.c - do the confidence intervals of block, mutex and wait profiles
 * cover the truth? Many simulated programs have waits that come in bursts, from many callers at
 * once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "base/random.h"
#include "collect/waits/contention/sched_window.h"
#include "collect/waits/engine/run_ratio.h"
#include "collect/waits/wait/wait_window.h"
#include "mksubject.h"

enum {
	PROGRAMS = 1000,
	STRATA = 60,
	CALLERS = 100,
	PARTS = 100 /* windows that fit into a stratum */
};

/*
 * Of 1,000 intervals of two standard errors, each of which covers with 95 %, fewer than 930 would
 * cover by chance in 3 of 1,000 runs.
 */
enum { COVERED_LEAST = 930 };

static uint64_t seed;

struct program {
	double in_burst[STRATA]; /* the part of each stratum that is a burst */
	bool met[STRATA];	 /* whether the stratum's window met the burst */
	double truth;		 /* waits */
};

/* Each caller waits twice in a window that meets a burst. */
static void make_program(struct program *p)
{
	p->truth = 0;
	for (int i = 0; i < STRATA; i++) {
		p->in_burst[i] = 0.4 * random_part(&seed);
		p->met[i] = random_part(&seed) < p->in_burst[i];
		p->truth += p->in_burst[i] * PARTS * CALLERS * 2;
	}
}

static struct gpb_stack wait_of(int caller, bool goid, uint64_t kind)
{
	return (struct gpb_stack){
		.count = 2 * GPB_COUNT_ONE,
		.delay = 1000,
		.nfirst = 2,
		.goid = goid ? (uint64_t)caller + 1 : 0,
		.wait.kind = kind,
		.pc = { 0x1000, 0x2000 + 16 * (goid ? 0 : (uint64_t)caller) },
	};
}

typedef int add_fn(void *w, const struct gpb_stack *st, struct err *e);

static void run(const struct program *p, void *w, struct tally *t, add_fn *add, bool goid,
		uint64_t kind)
{
	for (int i = 0; i < STRATA; i++) {
		const struct tally_window tw = { .weight = PARTS };

		for (int c = 0; p->met[i] && c < CALLERS; c++) {
			struct gpb_stack st = wait_of(c, goid, kind);

			assert_int_equal(add(w, &st, NULL), 0);
		}
		tally_window(t, &tw);
	}
}

static bool covers(double value, double variance, double truth)
{
	assert_true(variance >= 0);
	return fabs(value - truth) <= 2 * sqrt(variance);
}

/* The result of one program: the estimate, and its variance as for a site and for all. */
struct told {
	double count, site, whole;
	size_t sites, entries;
};

static const double one = GPB_COUNT_ONE;

static struct told told_by_sched(const struct program *p, bool goid)
{
	struct sched_window w = { .engine = { .s = &subject } };
	struct told out = {};

	sched_window_init(&w);
	run(p, &w, &w.engine.tally, sched_window_add, goid, GPB_WAIT_BLOCK);
	out.sites = w.engine.tally.sites.n;
	out.entries = w.engine.tally.entries.n;
	for (size_t i = 0; i < out.entries; i++) {
		struct wait_estimate est = sched_window_estimate(&w, i);

		out.count += (double)est.count / one;
		out.site += est.count_error / one / one;
	}
	if (out.sites)
		out.site += sched_window_site(&w, 0).count / one / one;
	out.whole = sched_window_whole(&w, GPB_WAIT_BLOCK).count / one / one;
	sched_window_fini(&w);
	return out;
}

static bool not_runtime(struct subject *s, const struct gpb_stack *st)
{
	(void)s;
	(void)st;
	return false;
}

static struct told told_by_wait(const struct program *p, bool goid)
{
	struct wait_window w = { .engine = { .s = &subject } };
	struct told out = {};

	wait_window_init(&w, not_runtime);
	w.engine.paced = 1e300; /* numbers do not come from the runtime's count of switches */
	run(p, &w, &w.engine.tally, wait_window_add, goid, GPB_G_WAITING);
	out.sites = w.engine.tally.sites.n;
	out.entries = w.engine.tally.entries.n;
	for (size_t i = 0; i < out.entries; i++) {
		struct wait_estimate est = wait_window_estimate(&w, i);

		out.count += (double)est.count / one;
		out.site += est.count_error / one / one;
	}
	if (out.sites)
		out.site += wait_window_site(&w, 0).count / one / one;
	out.whole = wait_window_whole(&w).count / one / one;
	wait_window_fini(&w);
	return out;
}

static void cover(struct told (*told)(const struct program *p, bool goid))
{
	int site = 0, whole = 0;
	double error = 0, off = 0;

	seed = 7;
	for (int i = 0; i < PROGRAMS; i++) {
		struct program p;
		struct told by_goid, by_caller;

		make_program(&p);
		by_goid = told(&p, true);
		by_caller = told(&p, false);
		assert_int_equal(by_goid.entries, by_goid.sites ? CALLERS : 0);
		assert_true(by_goid.sites <= 1 && by_caller.sites == by_goid.sites);
		/* However a site is split, it stays the same site. */
		assert_true(fabs(by_goid.count - by_caller.count) < 1);
		assert_true(fabs(by_goid.site - by_caller.site) <= 1e-9 * by_caller.site);
		assert_true(fabs(by_goid.whole - by_goid.site) <= 1e-9 * by_goid.site);
		site += covers(by_goid.count, by_goid.site, p.truth);
		whole += covers(by_goid.count, by_goid.whole, p.truth);
		error += by_goid.site;
		off += (by_goid.count - p.truth) * (by_goid.count - p.truth);
	}
	if (site < COVERED_LEAST || whole < COVERED_LEAST)
		fail_msg("of %d programs %d are within two errors of the site, %d of the whole",
			 PROGRAMS, site, whole);
	/* The errors must not be so large that they cover anything. */
	if (sqrt(error / off) > 1.2)
		fail_msg("errors are %.2f times what they should be", sqrt(error / off));
}

static void block_profiles_cover(void **state)
{
	(void)state;
	cover(told_by_sched);
}

static void wait_profiles_cover(void **state)
{
	(void)state;
	cover(told_by_wait);
}

/*
 * Two sites have their bursts together: the error of their sum is not that of independent sites.
 */
static void a_whole_of_two_sites(void **state)
{
	struct sched_window w = { .engine = { .s = &subject } };
	struct program p;
	double sites, whole;

	(void)state;
	seed = 11;
	make_program(&p);
	sched_window_init(&w);
	for (int i = 0; i < STRATA; i++) {
		const struct tally_window tw = { .weight = PARTS };

		for (uint64_t at = 0; p.met[i] && at < 2; at++) {
			struct gpb_stack st = wait_of(0, true, GPB_WAIT_BLOCK);

			st.pc[0] += 64 * at;
			assert_int_equal(sched_window_add(&w, &st, NULL), 0);
		}
		tally_window(&w.engine.tally, &tw);
	}
	sites = sched_window_site(&w, 0).count + sched_window_site(&w, 1).count;
	whole = sched_window_whole(&w, GPB_WAIT_BLOCK).count;
	assert_true(fabs(whole / sites - 2) < 1e-6); /* (a + a)^2 beside a^2 + a^2 */
	sched_window_fini(&w);
}

/*
 * Where numbers are made to agree with the runtime's count, the error is that of the regression.
 */
static void regressed_sites_cover(void **state)
{
	int covered = 0;

	(void)state;
	seed = 3;
	for (int i = 0; i < PROGRAMS; i++) {
		struct sched_window w = { .engine = { .s = &subject, .slow.sum = 1e9 } };
		double truth = 0, value = 0;

		sched_window_init(&w);
		for (int k = 0; k < STRATA; k++) {
			double busy = 1 + 9 * random_part(&seed), parks = 0, seen = 0;

			/*
			 * A stratum has as many as PARTS windows, of which the second half is
			 * busier.
			 */
			parks = PARTS * 1.5 * busy * CALLERS;
			truth += parks * 0.3;
			w.engine.slow.switches += parks;
			seen = (random_part(&seed) < 0.5 ? busy : 2 * busy) * CALLERS;
			for (int c = 0; c < CALLERS; c++) {
				struct gpb_stack st = wait_of(c, true, GPB_WAIT_BLOCK);

				st.count = (uint64_t)(seen * (0.2 + 0.2 * random_part(&seed)) *
						      one / CALLERS);
				assert_int_equal(sched_window_add(&w, &st, NULL), 0);
			}
			seen *= PARTS;
			tally_window(&w.engine.tally,
				     &(struct tally_window){ .weight = PARTS, .n = &seen });
		}
		assert_true(run_regressed(&w.engine));
		for (size_t n = 0; n < w.engine.tally.entries.n; n++)
			value += (double)sched_window_estimate(&w, n).count / one;
		covered += covers(value, sched_window_site(&w, 0).count / one / one, truth);
		sched_window_fini(&w);
	}
	if (covered < COVERED_LEAST)
		fail_msg("of %d programs %d are within two errors", PROGRAMS, covered);
}

/* Who makes others wait for a mutex is a share of the total that looks saw. */
static void shares_of_mutexes_cover(void **state)
{
	int covered = 0;

	(void)state;
	seed = 5;
	for (int i = 0; i < PROGRAMS; i++) {
		struct sched_window w = { .engine = { .s = &subject } };
		double truth = 0, all = 0, value = 0;
		struct program p;

		make_program(&p);
		sched_window_init(&w);
		for (int k = 0; k < STRATA; k++) {
			struct gpb_stack other = wait_of(0, true, GPB_WAIT_MUTEX);

			for (int c = 0; p.met[k] && c < CALLERS; c++) {
				struct gpb_stack st = wait_of(c, true, GPB_WAIT_MUTEX);

				assert_int_equal(sched_window_add(&w, &st, NULL), 0);
			}
			other.pc[0] = 0x9000;
			other.delay = 30000;
			assert_int_equal(sched_window_add(&w, &other, NULL), 0);
			tally_window(&w.engine.tally, &(struct tally_window){ .weight = PARTS });
			truth += p.in_burst[k] * PARTS * CALLERS * 1000;
			all += PARTS * (30000 + p.in_burst[k] * CALLERS * 1000);
		}
		w.locked.known = true;
		w.locked.delay = all;
		for (size_t n = 0; n < w.engine.tally.entries.n; n++)
			if (w.engine.tally.entries.at[n].st->pc[0] == 0x1000)
				value += (double)sched_window_estimate(&w, n).delay;
		for (size_t n = 0; n < w.engine.tally.sites.n; n++)
			if (w.engine.tally.entries.at[w.engine.tally.sites.at[n].first].st->pc[0] ==
			    0x1000)
				covered += covers(value, sched_window_site(&w, n).delay, truth);
		assert_true(sched_window_whole(&w, GPB_WAIT_MUTEX).delay < 1e-6 * all * all);
		sched_window_fini(&w);
	}
	if (covered < COVERED_LEAST)
		fail_msg("of %d programs %d are within two errors", PROGRAMS, covered);
}

/* ---- windows that are longer than others ---- */

#define MS 1000000.0

/*
 * Waits of 2 ms and system calls of as much, at random times. @longer: windows may last up to 30 ms, as where
 * hits are few; the attacher closes each some time late.
 */
static struct told told_by_length(bool longer, double *truth, double *calls)
{
	const double stratum = 200 * MS, length = 2 * MS, pace = 40 / stratum;
	static struct target target = { .pid = 1 };
	struct subject s = subject;
	struct wait_window w = {
		.engine = { .s = &s, .counter = { .s = &s, .open_again = { .at = UINT64_MAX } } }
	};
	struct told out = {};

	s.target = &target;
	wait_window_init(&w, not_runtime);
	w.engine.paced = 1e300;
	*truth = *calls = 0;
	for (int i = 0; i < STRATA; i++) {
		double end = longer ? (10 + 20 * random_part(&seed)) * MS : WAIT_END_NS;
		double closed = end + (random_part(&seed) < 0.3 ? 5 * MS : 0);
		double open = random_part(&seed) * (stratum - closed);
		struct stretch st = { .window = true, .opened = 1, .closed = 1 + (uint64_t)closed };
		struct wait_counts none = {};

		st.weight = stratum / (double)(st.closed - st.opened);
		w.conf.terms.begin_ns = (uint64_t)(end - (WAIT_END_NS - WAIT_BEGIN_NS));
		w.conf.terms.own.ns = w.conf.terms.begin_ns;
		/* The times between two of them are exponential. */
		for (double at = 0; (at -= log(1 - random_part(&seed)) / pace) < stratum;) {
			struct gpb_stack wait = wait_of(0, true, GPB_G_WAITING), call = wait;
			double done = at + length;

			*truth += 1;
			*calls += 1;
			wait.count = call.count = GPB_COUNT_ONE;
			wait.wait.length = GPB_WAIT_LONG;
			call.wait.length = GPB_WAIT_CALL;
			call.pc[0] = 0x5000;
			if (at >= open + GPB_LONG_NS && at < open + (double)w.conf.terms.begin_ns)
				assert_int_equal(wait_window_add(&w, &wait, NULL), 0);
			if (done >= open + GPB_LONG_NS && done < open + closed)
				assert_int_equal(wait_window_add(&w, &call, NULL), 0);
		}
		wait_engine_close(&w.engine, &st, &none);
	}
	for (size_t i = 0; i < w.engine.tally.entries.n; i++) {
		double n = (double)wait_window_estimate(&w, i).count / one;

		if (w.engine.tally.entries.at[i].group == GPB_WAIT_CALL)
			out.whole = n;
		else
			out.count = n;
	}
	out.site = wait_window_site(&w, 0).count / one / one;
	wait_window_fini(&w);
	return out;
}

static void windows_of_any_length_are_unbiased(void **state)
{
	double sum = 0, all = 0, calls = 0, every = 0, errors[2] = {};

	(void)state;
	for (int longer = 0; longer < 2; longer++) {
		for (int i = 0; i < PROGRAMS / 4; i++) {
			double truth, all_calls;
			struct told t = told_by_length(longer, &truth, &all_calls);

			sum += t.count;
			all += truth;
			calls += t.whole;
			every += all_calls;
			errors[longer] += (t.count / truth - 1) * (t.count / truth - 1);
		}
	}
	/* Of 500 programs with 2,400 waits each, the means are known to 0.5 %. */
	assert_true(fabs(sum / all - 1) < 0.02);
	assert_true(fabs(calls / every - 1) < 0.02);
	assert_true(errors[1] < 0.4 * errors[0]);
}

/* Pretends that there are as many entries as there can be. */
static void fill(struct tally *t)
{
	t->entries.n = t->entries.cap = 1 << 20;
	t->entries.at = calloc(t->entries.n, sizeof(*t->entries.at));
	assert_non_null(t->entries.at);
}

/*
 * One goroutine for each request, for a day: what there is no room for is a loss, and the rest
 * stays.
 */
static void more_stacks_than_there_is_room_for(void **state)
{
	struct sched_window w = { .engine = { .s = &subject, .full = true } };
	struct wait_window v = { .engine = { .s = &subject, .full = true } };
	struct gpb_stack st = wait_of(0, true, GPB_WAIT_BLOCK);

	(void)state;
	sched_window_init(&w);
	wait_window_init(&v, not_runtime);
	fill(&w.engine.tally);
	fill(&v.engine.tally);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(sched_window_add(&w, &st, NULL), 0);
		assert_int_equal(wait_window_add(&v, &st, NULL), 0);
	}
	assert_int_equal(w.engine.crowded, 2 * 3); /* each stack reports two waits */
	assert_int_equal(v.engine.crowded, 2 * 3);
	sched_window_fini(&w);
	wait_window_fini(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(block_profiles_cover),
		cmocka_unit_test(wait_profiles_cover),
		cmocka_unit_test(a_whole_of_two_sites),
		cmocka_unit_test(regressed_sites_cover),
		cmocka_unit_test(shares_of_mutexes_cover),
		cmocka_unit_test(windows_of_any_length_are_unbiased),
		cmocka_unit_test(more_stacks_than_there_is_room_for),
	};

	return cmocka_run_group_tests(tests, open_subject, close_subject);
}
