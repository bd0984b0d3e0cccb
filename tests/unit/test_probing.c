/*
 * tests/unit/test_probing.c - the closed loop of windows and budget, over simulated programs.
 */
#include "collect/heap/window/heap_window.h"
#include "collect/waits/engine/wait_engine.h"
#include "probing_world.h"

/* ---- tests ---- */

static void a_light_one_is_seen_in_full(void **state)
{
	(void)state;
	run_one(light, true, 0.1, 8);
	assert_int_equal(w.at[0].windows, 0);
	assert_true(share_observed(&w.at[0], 8) > 0.98);
	/* The probes of the first window stayed in, and were paid for once. */
	assert_int_equal(w.at[0].attachings, 1);
	assert_int_equal(w.at[0].paid, 1);
	assert_non_null(strstr(w.at[0].receipt, ", all of the time observed"));
}

/* Between the first window and what is decided by it. */
static void run_disturbed(bool kill_first, uint64_t stop_ns, uint64_t seconds)
{
	struct program *p = program(light, NULL);
	bool counts = true;

	begin_world(0.1, 1);
	w.kill_first = kill_first;
	w.stop_ns = stop_ns;
	run((const struct program *[]){ p }, &counts, 1, seconds);
	free(p);
}

/*
 * Probes that stay in are taken out by their attacher when we do not come back, and put in again when we
 * do: what is observed, and paid for, begins then.
 */
static void probes_do_not_stay_in_while_we_are_stopped(void **state)
{
	const struct probes *s = &w.at[0];

	(void)state;
	run_disturbed(false, 10 * SEC, 15);
	assert_true(s->let_go > w.begin && s->let_go <= w.begin + SEC);
	assert_int_equal(s->attachings, 2);
	assert_true(share_observed(s, 15) > 0.31 && share_observed(s, 15) < 5.0 / 15);
	assert_true((double)s->spent.hits < 6.2 * light(0));
}

static void a_attacher_that_dies_before_the_decision_is_followed(void **state)
{
	const struct probes *s = &w.at[0];

	(void)state;
	run_disturbed(true, 0, 8);
	assert_int_equal(s->kills, 1);
	assert_int_equal(s->loss.n[LOSS_ATTACHER_KILLED], 1);
	assert_int_equal(s->attachings, 2);
	assert_int_equal(s->paid, 2);
	assert_true(share_observed(s, 8) > 0.98);
}

/* Somebody kills each attacher in the first window: that is tried so often, and then it is an error. */
static void attachers_that_all_die_are_not_followed_for_ever(void **state)
{
	struct target target = { .pid = 1 };
	struct subject subject = { .target = &target };
	struct program *p = program(light, NULL);
	bool counts = true;

	(void)state;
	begin_world(0.1, 1);
	w.kill_ns = MS;
	prepare(&subject, (const struct program *const[]){ p }, &counts, 1);
	assert_int_equal(probing_begin(w.at[0].p, NULL), -ECHILD);
	assert_true(w.at[0].kills > UPROBES_MENDS);
	assert_int_equal(w.at[0].open.bits, 0);
	probing_free(w.at[0].p);
	free(p);
}

/* Most of the cost of its windows is that of attaching, so they are long. Before them goes what the account lends. */
static void one_that_is_nearly_light_has_long_windows(void **state)
{
	(void)state;
	run_one(nearly_light, true, 0.08, 20);
	assert_true(w.at[0].full < 2000 * MS);
	assert_true(w.at[0].length > 20 * MS && w.at[0].length <= 50 * MS);
	assert_true(share_observed(&w.at[0], 20) > 0.04);
	run_one(heavy, true, 1, 20);
	assert_int_equal(w.at[0].length, 8 * MS);
}

/* Waits: what begins in the first part of a long window has no more time to end than in a short one. */
static void first_parts_become_longer_with_windows(void **state)
{
	const struct probes *s = &w.at[0];

	(void)state;
	parts.begin_ns = 3 * MS;
	run_one(nearly_light, false, 0.08, 20);
	assert_true(s->length > 20 * MS);
	assert_int_equal(s->length - s->first_part, 5 * MS);
	run_one(heavy, false, 1, 20);
	assert_int_equal(s->length, 8 * MS);
	assert_int_equal(s->first_part, 3 * MS);
}

/*
 * With the parts that each kind of probes has, where hits are few: its windows grow to twice their
 * shortest length at least, so that what is rare is seen more often, and end before a burst costs
 * more than the target can bear.
 */
static void every_kind_has_long_windows(void **state)
{
	static const struct window_parts kinds[] = {
		HEAP_PARTS,
		WAIT_PARTS,
	};
	const struct probes *s = &w.at[0];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		parts = kinds[i];
		run_one(nearly_light, false, 0.08, 20);
		assert_true(s->length > 20 * MS && s->length <= 50 * MS);
		assert_true(s->length > 2 * parts.end_ns);
		assert_true(!parts.begin_ns || s->first_part > 5 * parts.begin_ns);
	}
}

static int ordinary_parts(void **state)
{
	(void)state;
	parts = (struct window_parts)ORDINARY_PARTS;
	return 0;
}

/* Those that need little get no more than they need, and those that can use the rest get it. */
static void kinds_share_what_there_is(void **state)
{
	struct program *p[] = { program(nearly_light, NULL), program(light, NULL),
				program(light, NULL) };
	static const bool counts[] = { true, false, false };

	(void)state;
	begin_world(0.08, 1);
	run((const struct program *const *)p, counts, 3, 10);
	assert_int_equal(w.at[1].windows + w.at[2].windows, 0);
	assert_true(share_observed(&w.at[1], 10) > 0.97 && share_observed(&w.at[2], 10) > 0.97);
	assert_true(share_observed(&w.at[0], 10) > 0.01);
	for (int i = 0; i < 3; i++)
		free(p[i]);
}

/* At the first probe, nothing begins; later, what was seen until then is told, and that it ends there. */
static void nothing_is_put_in_where_the_kernel_takes_long(void **state)
{
	static double (*const rates[])(double) = { light, heavy };
	const struct probes *s = &w.at[0];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rates); i++) {
		struct program *p = program(rates[i], NULL);
		bool counts = false;

		begin_world(i ? 1 : 0.1, 1);
		w.crowded = w.begin + 2 * SEC;
		run((const struct program *[]){ p }, &counts, 1, 8);
		/* Probes that are in stay, as they hold nobody up. */
		assert_int_equal(s->loss.n[LOSS_CROWDED], i);
		assert_false(s->attached);
		assert_int_equal(windows_between(s, 2.2, 8), 0);
		assert_true(!i || windows_between(s, 0, 2) >= 2);
		free(p);
	}
}

static void a_crowd_at_the_start_is_an_error(void **state)
{
	struct target target = { .pid = 1 };
	struct subject subject = { .target = &target };
	static const struct collect_opts o = { .budget.ppm = 50000 };
	struct probes *s = &w.at[0];
	const struct probing_user u = { .what = "test",
					.open = &s->open,
					.parts = parts,
					.spent = spent_so_far,
					.over = over,
					.arg = s };
	struct program *p = program(light, NULL);
	struct err e = { "" };

	(void)state;
	begin_world(0.1, 1);
	w.crowded = w.begin;
	w.n = 1;
	s->program = p;
	assert_int_equal(probing_new(&subject, &o, &u, true, &s->p, NULL), 0);
	assert_int_equal(probing_set(s->p, &(struct uprobe_group){ .n = PROBED }, 1, NULL), 0);
	pass(w.timers ? s->timer : w.now);
	assert_int_equal(probing_begin(s->p, &e), -EUSERS);
	assert_string_equal(e.msg, "it takes long");
	assert_int_equal(probing_poll(s->p, NULL), 0);
	assert_int_equal(s->attachings, 1);
	probing_free(s->p);
	free(p);
}

static void a_target_that_is_gone_is_not_probed(void **state)
{
	struct target target = { .pid = 1 };
	struct subject subject = { .target = &target };
	static const struct collect_opts o = { .budget.ppm = 50000 };
	struct probes *s = &w.at[0];
	const struct probing_user u = { .what = "test", .open = &s->open, .parts = parts };
	struct err e = { "" };

	(void)state;
	begin_world(0.1, 1);
	w.cpu = -1;
	assert_int_equal(probing_new(&subject, &o, &u, true, &s->p, &e), -ESRCH);
	assert_string_equal(e.msg, "the target exited");
	assert_null(subject.budget);
	assert_null(s->p);
}

/*
 * Below that limit windows are so rare that the kernel's work is a hundredth of the time; and the
 * receipt has it.
 */
static void work_for_mappings_is_charged(void **state)
{
	struct program *p = program(heavy, NULL);
	bool counts = false;
	const struct probes *s = &w.at[0];

	(void)state;
	begin_world(1, 1);
	w.mapped_ns = 4 * MS; /* 80 ms in all */
	run((const struct program *[]){ p }, &counts, 1, 38);
	assert_in_range(windows_between(s, 4, 38), 3, 6);
	assert_true(w.spent > (double)(s->windows + 1) * 76 * MS);
	free(p);
}

/*
 * The opening burst may be a large part of what a program does; what comes after it must be seen
 * all the same.
 */
static void windows_come_back_after_an_opening_burst(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct program *p = program(opening, NULL);
		bool counts = true;

		begin_world(0.3, seed);
		run((const struct program *[]){ p }, &counts, 1, 8);
		assert_true(windows_between(&w.at[0], 2, 4) >= 3);
		assert_true(windows_between(&w.at[0], 4, 8) >= 8);
		free(p);
	}
}

/* A program that does nothing any more is not looked at all the time. */
static void windows_are_paid_for_when_nothing_is_done(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct program *p = program(then_nothing, NULL);
		bool counts = true;

		begin_world(0.05, seed);
		run((const struct program *[]){ p }, &counts, 1, 8);
		assert_in_range(windows_between(&w.at[0], 4, 8), 0, 10);
		free(p);
	}
}

/*
 * The mean of many runs is the truth, for each site, except for so much of it: the last stratum
 * of a program that is seen in bursts never ends.
 */
static void unbiased(double (*rate)(double), double (*share)(double), double cpus, double last)
{
	enum { RUNS = 300, RUN_S = 20 };
	struct program *p = program(rate, share);
	double sum[SITES] = {}, squares[SITES] = {};
	double part;
	bool counts = true;

	for (uint64_t seed = 1; seed <= RUNS; seed++) {
		begin_world(cpus, seed * 1000003);
		run((const struct program *[]){ p }, &counts, 1, RUN_S);
		part = 1 - (double)w.at[0].loss.n[LOSS_UNWATCHED] / (RUN_S * 1000);
		assert_int_equal(w.at[0].loss.n[LOSS_ATTACHER_KILLED], w.at[0].kills);
		for (size_t i = 0; i < SITES; i++) {
			sum[i] += w.at[0].estimate[i] / part;
			squares[i] += pow(w.at[0].estimate[i] / part, 2);
		}
	}
	for (size_t i = 0; i < SITES; i++) {
		double mean = sum[i] / RUNS, spread = sqrt(squares[i] / RUNS - mean * mean);
		double truth = site_by(p, i, w.begin + RUN_S * SEC);

		if (fabs(mean - truth) > 4 * spread / sqrt(RUNS) + last * truth)
			fail_msg("site %zu: %.3f of the truth, spread %.3f", i, mean / truth,
				 spread / truth);
	}
	free(p);
}

static void estimates_are_unbiased(void **state)
{
	(void)state;
	unbiased(heavy, second_half, 2, 0);
	unbiased(nearly_light, second_half, 0.08, 0);
	unbiased(opening, second_half, 0.3, 0);
	unbiased(bursts, other_bursts, 0.5, 0.05);
	unbiased(uneven, other_bursts, 0.5, 0.05);
}

static double restless_seed;

/* Heavy for a random time, then light for another. */
static double restless(double t)
{
	double phase = floor(t * (0.3 + restless_seed)), draw = sin(phase * 12.9898) * 43758.5453;

	return draw - floor(draw) < 0.3 ? 40000 : 300;
}

/*
 * To and fro between windows and full observation, whatever that takes: each instant counts once. Where
 * putting probes in takes longer than it did, that is a gap, and said.
 */
static void each_instant_counts_once(void **state)
{
	uint64_t flips = 0, gaps = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct program *p;
		bool counts = false;

		restless_seed = (double)(seed % 7) / 10;
		p = program(restless, NULL);
		begin_world(0.3, seed * 7919);
		w.detach_ns = seed % 4 * 40 * MS;
		w.attach_ns = seed % 3 ? 0 : 60 * MS;
		w.price_ns = seed % 5 * 90 * MS;
		run((const struct program *[]){ p }, &counts, 1, SECONDS);
		flips += w.at[0].flips;
		gaps += w.at[0].gap_ns;
		free(p);
	}
	print_message("%lu flips %lu gaps\n", flips, gaps);
	assert_true(flips > 200);
	assert_true(gaps > 0);
}

static double busy(double at)
{
	(void)at;
	return 40000;
}

/*
 * To take probes out takes a busy machine's kernel seconds. Then nobody waits, other probes have their windows meanwhile, and the windows
 * that begin stand for that time, too.
 */
static void others_go_on_while_probes_are_taken_out(void **state)
{
	struct target target = { .pid = 1 };
	struct subject subject = { .target = &target };
	struct program *p[] = { program(restless, NULL), program(busy, NULL) };
	const bool counts[] = { false, false };
	uint64_t leaving = 0, windows = 0, before;

	(void)state;
	begin_world(0.3, 1);
	prepare(&subject, (const struct program *const *)p, counts, 2);
	for (int i = 0; i < 2; i++)
		assert_int_equal(probing_begin(w.at[i].p, NULL), 0);
	w.detach_ns = 3 * SEC;
	while (w.now < w.begin + SECONDS * SEC) {
		uint64_t next = w.now + 10 * MS;
		bool left = w.at[0].p->state == LEAVING;

		before = w.at[1].windows;
		step_all(next);
		assert_true(w.now < next + SEC);
		leaving += left;
		windows += left ? w.at[1].windows - before : 0;
	}
	assert_true(leaving > 100 && windows > 5);
	w.detach_ns = 0;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(probing_end(w.at[i].p, NULL), 0);
		probing_free(w.at[i].p);
		free(p[i]);
	}
}

/* Some hundred thousand to some million events a second, another number every 5 ms. */
static double noisy(double t)
{
	double draw = sin(floor(t * 200) * 12.9898) * 43758.5453;

	return 1e6 * (1 + 0.5 * (draw - floor(draw)));
}

/*
 * Once the kernel takes a second to take probes out, which then cost the program 400 ms. That is paid back slowly: windows go on, and are
 * half as many at worst; in the end the budget is kept. It is told how far apart they were at most.
 */
static void a_stall_is_a_debt(void **state)
{
	struct target target = { .pid = 1 };
	struct subject subject = { .target = &target };
	struct program *p = program(noisy, NULL);
	const struct probes *s = &w.at[0];
	bool counts = false, stalled = false;

	(void)state;
	begin_world(2, 1);
	prepare(&subject, (const struct program *const *)&p, &counts, 1);
	assert_int_equal(probing_begin(w.at[0].p, NULL), 0);
	while (w.now < w.begin + 20 * SEC) {
		if (s->asked && w.stall_ns)
			w.stall_ns = 0, stalled = true;
		if (w.now >= w.begin + 4 * SEC && !s->asked && !stalled)
			w.stall_ns = SEC;
		step_all(w.begin + 20 * SEC);
	}
	assert_true(3 * windows_between(s, 5.3, 7.3) >= windows_between(s, 2, 4));
	assert_true(w.cost < 0.0525 * w.cpu);
	take_receipt(&w.at[0]);
	assert_non_null(strstr(s->receipt, ", at most 1.0"));
	assert_int_equal(probing_end(w.at[0].p, NULL), 0);
	probing_free(w.at[0].p);
	free(p);
}

/*
 * Whatever a window costs beside its hits is found out, to what the target's own pace tells: what
 * is spent is within the budget, and the receipt is right within its error.
 */
static void windows_cost_what_they_cost(void **state)
{
	static const double costs[] = { 0.5e6, 2e6, 20e6 };
	enum { RUNS = 30 };
	struct program *p = program(noisy, NULL);
	bool counts = true;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		double off = 0; /* the sum of errors, each in its own standard error */

		for (uint64_t seed = 1; seed <= RUNS; seed++) {
			begin_world(2, seed * 1009);
			w.window_ns = costs[i];
			run((const struct program *[]){ p }, &counts, 1, SECONDS);
			if (w.cost > 0.0525 * w.cpu || fabs(w.spent - w.cost) > 4 * w.error)
				fail_msg(
					"%g ms: %.2f%% of the CPU time, %.1f ms said to be %.1f +- %.1f, %lu windows",
					costs[i] / 1e6, 100 * w.cost / w.cpu, w.cost / 1e6,
					w.spent / 1e6, w.error / 1e6,
					(unsigned long)w.at[0].windows);
			off += (w.spent - w.cost) / w.error;
		}
		/* Nor does the cost that is assumed at first pull it to one side. */
		if (fabs(off) > 4 * sqrt(RUNS))
			fail_msg("%g ms: %.2f standard errors off in the mean", costs[i] / 1e6,
				 off / RUNS);
	}
	free(p);
}

/* One hit in thirty costs forty times as much as the others: that is in the budget and in the receipt. */
static void single_steps_are_paid_for(void **state)
{
	struct program *p = program(heavy, NULL);
	bool counts = true;

	(void)state;
	begin_world(2, 1);
	w.cost_known = true;
	w.stepped = 1 / 30.0;
	w.stepped_ns = 16000;
	run((const struct program *[]){ p }, &counts, 1, 20);
	assert_true(w.cost > 0.02 * w.cpu && w.cost < 0.05 * w.cpu);
	assert_true(fabs(w.spent - w.cost) < 0.02 * w.cost + 4 * w.error);
	assert_true(w.at[0].windows >
		    10); /* nor is what is left of measuring a price mistaken for one */
	free(p);
}

/*
 * The more processes run the same file, the rarer windows are: however many there are, putting
 * probes in and out on their account takes at most 1 % of the time, after the first two windows. A
 * few change nothing.
 */
static void bystanders_are_spared(void **state)
{
	static const size_t many[] = { 0, 1, 800, 20000 };
	uint64_t windows[4];

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		others = many[i];
		run_one(heavy, true, 2, SECONDS);
		windows[i] = w.at[0].windows;
		if ((double)w.work_ns > 0.011 * SECONDS * 1e9 + 2 * (double)others * WORK_NS / 200)
			fail_msg("%zu others: %.1f ms of work for them, %lu windows", others,
				 (double)w.work_ns / 1e6, (unsigned long)windows[i]);
	}
	assert_true(windows[1] >= windows[0] * 49 / 50);
	assert_true(windows[2] < windows[0] / 2 && windows[2] >= 30);
	assert_in_range(windows[3], 1, 5);
	others = 800;
	unbiased(heavy, second_half, 2, 0);
	unbiased(bursts, other_bursts, 0.5, 0.05);
	others = 0;
}

/* ---- libraries that are loaded meanwhile: other probes from then on ---- */

static double little(double at)
{
	(void)at;
	return 1000;
}

static double much_at_first(double at)
{
	return at < 3 ? 3e6 : 1000;
}

/* Until @until; what is probed changes every @every from @from on. */
static struct probes *run_and_set(double (*rate)(double), uint64_t until, uint64_t every)
{
	static struct target target = { .pid = 1 };
	static struct subject subject = { .target = &target };
	static const struct collect_opts o = { .budget.ppm = 50000 };
	struct probes *s = &w.at[0];
	const struct probing_user u = { .what = "test",
					.open = &s->open,
					.parts = ORDINARY_PARTS,
					.spent = spent_so_far,
					.over = over,
					.arg = s };
	uint64_t next;

	begin_world(1, 1);
	w.n = 1;
	s->program = program(rate, NULL);
	assert_int_equal(probing_new(&subject, &o, &u, true, &s->p, NULL), 0);
	assert_int_equal(probing_set(s->p, NULL, 0, NULL), 0);
	assert_int_equal(probing_begin(s->p, NULL), 0);
	for (next = w.begin + every; w.now < w.begin + until; next += every) {
		while (w.now < next)
			step_all(next);
		assert_int_equal(probing_set(s->p, NULL, 0, NULL), 0);
		/* In full there is always somebody who observes. */
		assert_true(s->p->state != FULL || (s->attached && s->open.bits));
	}
	return s;
}

static void end_of(struct probes *s)
{
	assert_int_equal(probing_end(s->p, NULL), 0);
	s->gap_ns = s->p->gap_ns;
	probing_free(s->p);
	free((void *)s->program);
}

static void other_probes_in_full(void **state)
{
	struct probes *s = run_and_set(little, 20 * SEC, 300 * MS);

	(void)state;
	assert_int_equal(s->p->state, FULL);
	end_of(s);
	/* Each time two attachings of 10 ms are not observed, or less. */
	assert_true((double)s->full > 0.9 * 20 * SEC);
	assert_int_equal(s->spent.hits > 0, 1);
}

/* In the middle of windows, and where they become full observation again. */
static void other_probes_in_windows(void **state)
{
	struct probes *s;

	(void)state;
	for (uint64_t every = 170 * MS; every < 1200 * MS; every += 93 * MS) {
		s = run_and_set(much_at_first, 30 * SEC, every);
		assert_true(s->windows > 3);
		assert_int_equal(s->p->state, FULL);
		end_of(s);
	}
}

static void what_is_not_attached_observes_nothing(void **state)
{
	struct probes *s = run_and_set(little, 5 * SEC, SEC);
	uint64_t full;

	(void)state;
	assert_int_equal(s->p->state, FULL);
	w.refuses = true;
	assert_int_equal(probing_set(s->p, NULL, 0, NULL), -EINVAL);
	assert_int_equal(s->open.bits, 0);
	full = s->full;
	pass(w.now + 10 * SEC);
	end_of(s);
	assert_int_equal(s->full, full);
}

/* Each death is counted, and what nobody saw meanwhile; all else was observed. */
static void it_goes_on_when_its_attacher_is_killed(void **state)
{
	const struct probes *s = &w.at[0];
	double seen;

	(void)state;
	kill_every = 500 * MS;
	run_one(light, true, 0.1, 20);
	assert_in_range(s->kills, 20, 80);
	assert_int_equal(s->windows, 0);
	seen = share_observed(s, 20) + (double)s->loss.n[LOSS_UNWATCHED] / 20000;
	assert_true(seen > 0.98 && seen < 1.01);
	/* Who hears of it late was blind since then, too. */
	heard_late = 40 * MS;
	run_one(light, true, 0.1, 20);
	heard_late = 0;
	assert_true(s->loss.n[LOSS_UNWATCHED] > 40ull * s->kills && s->kills > 10);
	seen = share_observed(s, 20) + (double)s->loss.n[LOSS_UNWATCHED] / 20000;
	assert_true(seen > 0.98 && seen < 1.01);
	/* Beside a loss of seconds nobody is told that all was observed. */
	assert_null(strstr(s->receipt, "all of the time observed"));
	assert_non_null(strstr(s->receipt, "% of the time observed"));
	/* The attacher dies after windows, in full observation that has lasted long: only what follows is lost. */
	kill_every = 4 * SEC;
	run_one(much_at_first, true, 1, 30);
	assert_true(s->windows > 3 && s->kills > 2);
	assert_true((double)s->full / 1e6 + (double)s->loss.n[LOSS_UNWATCHED] < 30000);
	assert_true(s->loss.n[LOSS_UNWATCHED] < 100ull * s->kills);
	/* In windows: of a broken one the end is not known to the millisecond. */
	kill_every = 300 * MS;
	unbiased(heavy, NULL, 2, 0.005);
	kill_every = 0;
}

/*
 * Whatever kind comes first frees what others left in the code, once for a target; not in a program that
 * is held before its first instruction, which nobody has probed.
 */
static void each_start_heals_once(void **state)
{
	struct target target = { .pid = 1 };
	struct subject running = { .target = &target }, started = { .target = &target };
	const struct probing_user u = { .what = "test",
					.open = &w.at[0].open,
					.parts = { 0, MS, MS } };

	(void)state;
	for (int held = 0; held <= 1; held++) {
		const struct collect_opts o = { .held = held };

		begin_world(1, 1);
		for (int kind = 0; kind < 3; kind++) {
			struct probing *p;

			assert_int_equal(probing_new(held ? &started : &running, &o, &u, true, &p,
						     NULL),
					 0);
			assert_int_equal(w.heals, !held);
			probing_free(p);
		}
	}
}

/* @runs of a program that needs windows, 200 ms long: how many have none; each of these is a loss of its time. */
static unsigned without_windows(unsigned runs, bool told)
{
	struct program *p = program(heavy, NULL);
	bool counts = false;
	unsigned none = 0;

	lasts_ns = 200 * MS;
	told_lasts = told;
	for (unsigned i = 0; i < runs; i++) {
		begin_world(0.1, 100 + i);
		run((const struct program *[]){ p }, &counts, 1, 1);
		none += !w.at[0].windows;
		if (w.at[0].windows)
			assert_int_equal(w.at[0].loss.n[LOSS_UNWATCHED], 0);
		else
			assert_in_range(w.at[0].loss.n[LOSS_UNWATCHED], 190, 220);
	}
	lasts_ns = 0;
	told_lasts = false;
	free(p);
	return none;
}

/* The first window comes before the profile ends, if it is told when that is. */
static void a_short_run_has_a_window(void **state)
{
	(void)state;
	assert_in_range(without_windows(40, false), 10, 35);
	assert_int_equal(without_windows(40, true), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_light_one_is_seen_in_full),
		cmocka_unit_test(probes_do_not_stay_in_while_we_are_stopped),
		cmocka_unit_test(a_attacher_that_dies_before_the_decision_is_followed),
		cmocka_unit_test(attachers_that_all_die_are_not_followed_for_ever),
		cmocka_unit_test(one_that_is_nearly_light_has_long_windows),
		cmocka_unit_test_teardown(first_parts_become_longer_with_windows, ordinary_parts),
		cmocka_unit_test_teardown(every_kind_has_long_windows, ordinary_parts),
		cmocka_unit_test(kinds_share_what_there_is),
		cmocka_unit_test(nothing_is_put_in_where_the_kernel_takes_long),
		cmocka_unit_test(a_crowd_at_the_start_is_an_error),
		cmocka_unit_test(a_target_that_is_gone_is_not_probed),
		cmocka_unit_test(work_for_mappings_is_charged),
		cmocka_unit_test(windows_come_back_after_an_opening_burst),
		cmocka_unit_test(windows_are_paid_for_when_nothing_is_done),
		cmocka_unit_test(estimates_are_unbiased),
		cmocka_unit_test(each_instant_counts_once),
		cmocka_unit_test(others_go_on_while_probes_are_taken_out),
		cmocka_unit_test(a_stall_is_a_debt),
		cmocka_unit_test(windows_cost_what_they_cost),
		cmocka_unit_test(single_steps_are_paid_for),
		cmocka_unit_test(bystanders_are_spared),
		cmocka_unit_test(other_probes_in_full),
		cmocka_unit_test(other_probes_in_windows),
		cmocka_unit_test(what_is_not_attached_observes_nothing),
		cmocka_unit_test(each_start_heals_once),
		cmocka_unit_test(a_short_run_has_a_window),
		cmocka_unit_test(it_goes_on_when_its_attacher_is_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
