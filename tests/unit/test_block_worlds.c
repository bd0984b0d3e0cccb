/*
 * tests/unit/test_block_worlds.c - numbers of blocked goroutines in windows, in programs that change their pace: are
 * they unbiased, and does two standard errors cover the truth, or is it told that no window met what there was?
 * Simulated programs: calm and busy ones, ones that yield, and ones with busy phases which windows may or may not
 * meet. A probe's hit makes a busy program several times slower.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "base/random.h"
#include "collect/waits/contention/sched_window.h"
#include "mksubject.h"

enum {
	PROGRAMS = 1000,
	/* Of 1,000 intervals that cover with 95 %, fewer than 930 would cover by chance in 3 of 1,000 runs. */
	COVERED_LEAST = 930,
	STRATA = 40,
	CELLS = 500, /* ms in a stratum */
	OPEN = 10,   /* ms of a window */
	ALL = STRATA * CELLS,
	STEP = RUN_STEP_NS / 1000000,
};

#define MS     1000000.0
#define HIT_NS 1500.0
#define EXACTLY \
	0.01 /* windows slow the program down for up to so much of its time, and that is in no error */

static uint64_t seed;

static double between(double from, double to)
{
	return from + (to - from) * random_part(&seed);
}

/* What happens in each ms: waits of a place in busy phases, and of one that is there all the time; runs that no probe sees. */
enum { PHASE, ALWAYS, PLACES };
static const uint64_t pcs[PLACES] = { 0x1000, 0x5000 };
static double waits[PLACES][ALL], yields[ALL];

static void fill(double *of, double from, double to, double each)
{
	for (int i = (int)from; i < (int)to && i < ALL; i++)
		of[i] = each * between(0.9, 1.1);
}

static void make(double always, double others)
{
	fill(waits[PHASE], 0, ALL, 0);
	fill(waits[ALWAYS], 0, ALL, always);
	fill(yields, 0, ALL, others);
}

static void make_calm(void)
{
	make(between(5, 30), between(0, 30));
}

static void make_busy(void)
{
	make(between(1000, 4000), 0);
}

static void make_yielding(void)
{
	make(between(20, 60), between(20, 120));
}

/* Busy for a second and more, every now and then. */
static void make_phases(void)
{
	double busy = between(1000, 4000);

	make(between(5, 30), 0);
	for (double at = between(0, 5000); at < ALL; at += between(6000, 12000)) {
		double end = at + between(2000, 4000);

		fill(waits[PHASE], at, end, busy);
		at = end;
	}
}

/* Others want the CPUs: every now and then the program gets none for some ms. */
static void make_starved(void)
{
	make_busy();
	for (double at = between(0, 100); at < ALL; at += between(60, 150)) {
		double end = at + between(5, 15);

		fill(waits[ALWAYS], at, end, 0);
		at = end;
	}
}

/* Whenever there is a window the program gets no CPU: its profiler has it. */
static bool shut_out;

static void make_shut_out(void)
{
	make_busy();
	shut_out = true;
}

/* One busy phase, which few windows meet, or none. */
static void make_spike(void)
{
	double at = between(100, ALL - 1500);

	make(between(5, 30), between(0, 10));
	fill(waits[PHASE], at, at + between(100, 1200), between(1000, 4000));
}

/* The runtime's count up to now: each eighth run of a goroutine, for all eight. */
static int counted_ms;
static double counted_left;

static void count_until(struct sched_window *w, int until)
{
	for (; counted_ms + STEP <= until; counted_ms += STEP) {
		double runs;

		for (int k = counted_ms; k < counted_ms + STEP; k++)
			counted_left += waits[PHASE][k] + waits[ALWAYS][k] + yields[k];
		runs = 8 * floor(counted_left / 8);
		counted_left -= runs;
		w->engine.slow.switches += runs;
		dilation_step(&w->engine.slow,
			      &(struct dilation_step){ .end = (counted_ms + STEP) * MS,
						       .ns = RUN_STEP_NS,
						       .runs = runs,
						       .busy_ns = RUN_STEP_NS });
	}
}

static void add(struct sched_window *w, uint64_t pc, double n)
{
	struct gpb_stack st = {
		.count = (uint64_t)n * GPB_COUNT_ONE,
		.nfirst = 2,
		.wait.kind = GPB_WAIT_BLOCK,
		.pc = { pc, 0x2000 },
	};

	if (n >= 1)
		assert_int_equal(sched_window_add(w, &st, NULL), 0);
}

/* Each hit takes its time, so there is less of what is probed. */
static void slow_down(int from, int to)
{
	for (int i = from; i < to && i < ALL; i++) {
		double slower = 1 + HIT_NS * (waits[PHASE][i] + waits[ALWAYS][i]) / MS;

		for (int p = 0; p < PLACES; p++)
			waits[p][i] /= slower;
	}
}

/*
 * One CPU in a window: the target's own clock takes own_share of each short time between two hits for the
 * target's (bpf/undilated.bpf.h), and what is seen ends with it or with the first part of the window.
 */
static void window(struct sched_window *w, int at, struct wait_counts *sum)
{
	const struct stretch s = { .window = true,
				   .asked = (uint64_t)(at * MS),
				   .opened = (uint64_t)(at * MS),
				   .closed = (uint64_t)((at + OPEN) * MS),
				   .weight = CELLS / (double)OPEN };
	struct dilation_terms t = dilation_terms(&w->engine.slow, WAIT_BEGIN_NS);
	double all = waits[PHASE][at] + waits[ALWAYS][at] + 0.001, part = waits[PHASE][at] / all;
	double mean = MS / all + HIT_NS, n, phase;
	bool close = mean <= (double)t.short_ns;
	double own = close ? mean * (double)t.own_share / GPB_SHARE_ONE : mean - HIT_NS;

	slow_down(at, at + OPEN);
	count_until(w, at + OPEN);
	n = floor(fmin((double)t.own.ns / own, (double)WAIT_BEGIN_NS / mean) + random_part(&seed));
	n *= !shut_out;
	w->conf.terms.own = t.own;
	w->conf.terms.begin_ns = WAIT_BEGIN_NS;
	sum->runs += (uint64_t)n;
	sum->clock.parks += (uint64_t)n;
	if (close) {
		sum->clock.shorts += (uint64_t)n;
		sum->clock.short_ns += (uint64_t)(n * mean);
	} else {
		sum->clock.longs += (uint64_t)n;
		sum->clock.long_ns += (uint64_t)(n * mean);
	}
	phase = floor(n * part + random_part(&seed));
	add(w, pcs[PHASE], phase);
	add(w, pcs[ALWAYS], n - phase);
	wait_engine_close(&w->engine, &s, sum);
}

struct told {
	double count, variance, truth;
};
struct tolds {
	struct told place[PLACES], all;
	double unmet;
};

static void tell(struct sched_window *w, struct tolds *out)
{
	const double one = GPB_COUNT_ONE;

	out->unmet = dilation_unmet(&w->engine.slow);
	/* Of a place that no window met, only what was unmet is told. */
	for (int p = 0; p < PLACES; p++)
		out->place[p].variance = out->unmet * out->unmet;
	for (size_t i = 0; i < w->engine.tally.entries.n; i++) {
		const struct tally_entry *en = &w->engine.tally.entries.at[i];
		struct told *t = &out->place[en->st->pc[0] == pcs[PHASE] ? PHASE : ALWAYS];

		t->count = (double)sched_window_estimate(w, i).count / one;
		t->variance = sched_window_site(w, en->site).count;
		t->variance /= t->variance < 0 ? 1 : one * one;
	}
	out->all.variance = sched_window_whole(w, GPB_WAIT_BLOCK).count;
	out->all.variance /= out->all.variance < 0 ? 1 : one * one;
	for (int p = 0; p < PLACES; p++) {
		for (int i = 0; i < ALL; i++)
			out->place[p].truth += waits[p][i];
		out->all.truth += out->place[p].truth;
		out->all.count += out->place[p].count;
	}
}

static struct tolds run(void (*make_it)(void))
{
	static struct target target = { .pid = -1 };
	struct wait_counts sum = {};
	struct subject s = subject;
	struct sched_window w = {
		.engine = { .s = &s, .counter = { .s = &s, .open_again = { .at = UINT64_MAX } } }
	};
	struct tolds out = {};

	s.target = &target;
	counted_ms = 0;
	counted_left = 8 * random_part(&seed);
	sched_window_init(&w);
	dilation_begin(&w.engine.slow, HIT_NS);
	shut_out = false;
	make_it();
	for (int i = 0; i < STRATA; i++) {
		int at = i * CELLS + (int)((CELLS - OPEN) * random_part(&seed));

		count_until(&w, at);
		window(&w, at, &sum);
	}
	count_until(&w, ALL);
	sched_window_end(&w);
	tell(&w, &out);
	sched_window_fini(&w);
	return out;
}

static bool covers(const struct told *t)
{
	return t->variance < 0 ||
	       fabs(t->count - t->truth) <= 2 * sqrt(t->variance) + EXACTLY * t->truth;
}

/* The error of the sum is not known where there is something that no window met, and only there. */
static bool honest(const struct tolds *t)
{
	return covers(&t->all) && (t->all.variance < 0) == (t->unmet > 0);
}

/* Of what is told of a place, or of all: how often it was covered, how far off it was, and how far by its error. */
struct score {
	int covered;
	double sum, off, error;
};

static void judge(struct score *s, const struct told *t, double told_apart, bool unmet)
{
	double off = t->truth ? t->count / t->truth - 1 : 0;

	s->covered += covers(t);
	s->sum += t->truth ? (t->count + told_apart) / t->truth : 1;
	if (unmet || !t->truth || t->variance < 0)
		return;
	s->off += off * off;
	s->error += t->variance / t->truth / t->truth;
}

static bool right(const char *name, const struct score *s, const char *of, double error_most,
		  double biased_most)
{
	double larger = s->off > 0 ? sqrt(s->error / s->off) : 1, mean = s->sum / PROGRAMS;

	print_message("%s, %s: %.3f of the truth; %d of %d covered; errors %.2f times too large\n",
		      name, of, mean, s->covered, PROGRAMS, larger);
	return s->covered >= COVERED_LEAST && fabs(mean - 1) <= biased_most && larger <= error_most;
}

static void world(const char *name, void (*make_it)(void), double error_most, bool may_miss)
{
	struct score place[PLACES] = {}, all = {};
	int whole = 0, unmet = 0;
	bool ok = true;

	seed = 7;
	for (int i = 0; i < PROGRAMS; i++) {
		struct tolds t = run(make_it);

		whole += honest(&t);
		unmet += t.unmet > 0;
		for (int p = 0; p < PLACES; p++)
			judge(&place[p], &t.place[p], p == PHASE || shut_out ? t.unmet : 0,
			      t.unmet > 0);
		judge(&all, &t.all, t.unmet, t.unmet > 0);
	}
	print_message("%s: something unmet in %d\n", name, unmet);
	ok &= right(name, &all, "all", error_most, 0.03);
	ok &= right(name, &place[PHASE], "phase", error_most, 0.05);
	ok &= right(name, &place[ALWAYS], "always", error_most, 0.05);
	if (!ok || whole < COVERED_LEAST || (unmet && !may_miss))
		fail_msg("%s", name);
}

static void test_calm(void **state)
{
	(void)state;
	world("calm", make_calm, 10, false);
}

static void test_busy(void **state)
{
	(void)state;
	world("busy", make_busy, 10, false);
}

static void test_yielding(void **state)
{
	(void)state;
	world("yielding", make_yielding, 10, false);
}

static void test_phases(void **state)
{
	(void)state;
	world("phases", make_phases, 10, true);
}

static void test_starved(void **state)
{
	(void)state;
	world("starved", make_starved, 10, false);
}

static void test_shut_out(void **state)
{
	(void)state;
	world("shut out", make_shut_out, 10, true);
}

static void test_spike(void **state)
{
	(void)state;
	world("spike", make_spike, 10, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calm),	 cmocka_unit_test(test_busy),
		cmocka_unit_test(test_yielding), cmocka_unit_test(test_phases),
		cmocka_unit_test(test_starved),	 cmocka_unit_test(test_spike),
		cmocka_unit_test(test_shut_out),
	};

	return cmocka_run_group_tests(tests, open_subject, close_subject);
}
