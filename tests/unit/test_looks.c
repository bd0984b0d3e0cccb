/*
 * tests/unit/test_looks.c - looks from outside at goroutines of a made-up address space, whose
 * waits come and go as time passes.
 */
#include "looks_world.h"

static void its_stack_and_length(void **state)
{
	const struct gpb_stack *st;
	struct looks_estimate o;
	struct looks_result r;

	(void)state;
	gor[7].begins = START + 50 * MS;
	gor[7].lasts = 100 * MS;
	run_for(300 * MS);
	r = result();
	assert_int_equal(r.looks, 150);
	assert_int_equal(r.begun_before + r.waiting, 0);
	assert_int_equal(tally.entries.n, 1);
	o = of(7);
	assert_true(o.count == 1 && o.count_variance == 0);
	assert_true(fabs(o.delay_ns - 100 * MS) <= 2 * MS);
	st = tally.entries.at[0].st;
	assert_int_equal(st->nfirst, 3);
	assert_int_equal(st->pc[0], PC0);
	assert_int_equal(st->pc[1], PC1);
	assert_int_equal(st->pc[2], PC2);
	assert_int_equal(st->flags, 0);
	assert_int_equal(st->wait.kind, GPB_WAIT_BLOCK);
	assert_int_equal(st->wait.reason, REASON);
	assert_true(tally.entries.at[0].count == 0 && tally.entries.at[0].sampled == 0);
}

/*
 * Waits of any length are estimated without bias, also those as long as a stratum, and those far
 * shorter than any look.
 */
static void without_bias(void **state)
{
	static const struct {
		uint64_t lasts, period;
	} kind[] = {
		{ 180, 470 },
		{ 7, 1000 },
		{ 900 * US, 1000 * US },
		{ 1000 * US, 2000 * US },
		{ 2000 * US, 4000 * US },
		{ 20 * MS, 20 * MS + 300 },
		{ 300 * MS, 300 * MS + US },
		{ 9 * MS, 40 * MS },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(kind); i++) {
		double share = (double)kind[i].lasts / (double)kind[i].period;
		double most = (double)LONG / (double)kind[i].period;
		struct looks_estimate o;

		tear_down(NULL);
		set_up(NULL);
		gor[0].begins = START + 3 * MS;
		gor[0].lasts = kind[i].lasts;
		gor[0].period = kind[i].period;
		run_for(LONG);
		result();
		o = of(0);
		within(o.delay_ns, share * (double)LONG, o.delay_variance, 4);
		/* It must not be worse than so many independent draws. */
		assert_true(sqrt(o.delay_variance) <
			    1.1 * (double)LONG * sqrt(share * (1 - share) / 4000) +
				    (double)kind[i].lasts + 3 * (double)MS);
		if (kind[i].lasts >= 7 * MS)
			within(o.count, most, o.count_variance + 1, 3);
		/* now and then it is in a similar wait 256 looks later */
		else if (kind[i].period < 2 * MS)
			assert_true(o.count < 40);
	}
}

static void disturb(uint64_t each_read_ns)
{
	double variance = 0;

	ngor = 2;
	/* Once their waits are long enough for a stack. */
	for (size_t i = 0; i < ngor; i++) {
		gor[i].begins = now_ns;
		gor[i].lasts = 10 * MS;
	}
	run_for(20 * MS);
	turns.on = true;
	turns.at = now_ns;
	read_ns = each_read_ns;
	turns.left = part[0].ns;
	run_for(8 * LONG);
	take_turns();
	result();
	for (size_t i = 0; i < 2; i++) {
		struct looks_estimate o = of(i);

		/* both are at one place, and the estimate is for either */
		variance += o.delay_variance;
		if (fabs(o.delay_ns / turns.waited[i] - 1) >= 0.04)
			fail_msg("%.0f instead of %.0f", o.delay_ns, turns.waited[i]);
	}
	assert_true(variance > 0 && sqrt(variance) < 0.02 * turns.waited[0]);
}

/*
 * Each look delays them. How long they are seen to wait, and which of them, must still be right.
 */
static void those_that_looks_disturb(void **state)
{
	(void)state;
	disturb(150);
	tear_down(NULL);
	set_up(NULL);
	disturb(700);
}

/*
 * Waits that began before, waits that do not end, and waits that are cut off when everything is
 * observed in full.
 */
static void at_the_ends(void **state)
{
	struct looks_result r;

	(void)state;
	gor[0].lasts = 50 * MS;
	gor[1].begins = START + 10 * MS;
	gor[1].lasts = UINT64_MAX;
	gor[0].begins = gor[2].begins = START - MS;
	gor[2].lasts = UINT64_MAX;
	run_for(100 * MS);
	r = result();
	assert_int_equal(r.begun_before, 1);
	assert_int_equal(r.waiting, 2);
	for (size_t i = 0; i < 3; i++) {
		assert_true(of(i).count == 0 && of(i).delay_ns == 0);
		assert_true(of(i).count_variance == 1);
	}
	within(of(1).delay_ns, 90e6, of(1).delay_variance, 1.1);
	/* The error of a site that no look met is what looks may not have met. */
	assert_true(fabs(sqrt(looks_of(k, tally.entries.n).delay_variance) /
				 (sqrt(2) * LOOKS_STRATUM_NS) -
			 1) < 0.2);
}

/* Waits that are much shorter than the time between two looks: of 20 looks the first and the last one count as well. */
static void brief_ones_at_the_ends(void **state)
{
	double told = 0, truth = 0;

	(void)state;
	for (uint64_t times = 0; times < 400; times++) {
		tear_down(NULL);
		set_up(NULL);
		looks_set_seed(k, 1000 + times);
		for (size_t i = 0; i < ngor; i++) {
			gor[i].begins = START - 10 * MS - times * i * US;
			gor[i].period = (100 + 7 * i) * US;
			gor[i].lasts = gor[i].period / 2;
		}
		run_for(40 * MS);
		result();
		for (size_t i = 0; i < ngor; i++) {
			told += of(i).delay_ns;
			truth += 20e6;
		}
	}
	assert_true(fabs(told / truth - 1) < 0.02);
}

static struct looks_begun begun(size_t i)
{
	return (struct looks_begun){ .g = G_AT + i * G_SIZE, .since = gor[i].begins };
}

/* What began while everything was observed is whole: it ends while looks are made, or it has not ended. */
static void those_whose_beginning_is_known(void **state)
{
	struct looks_begun known[3];
	struct looks_result r;

	(void)state;
	for (size_t i = 0; i < 4; i++)
		gor[i] = (struct gor){ .begins = START - 80 * MS,
				       .lasts = 130 * MS,
				       .status = GSTATUS_WAITING,
				       .reason = REASON };
	gor[1].lasts = UINT64_MAX;
	gor[2].lasts = 10 * MS; /* it was over before */
	known[0] = begun(2);
	known[1] = begun(0);
	known[2] = begun(1);
	looks_begun_sort(known, 3);
	looks_know(k, known, 3);
	run_for(100 * MS);
	r = result();
	assert_true(r.known == 2 && r.begun_before == 1 && r.waiting == 1);
	assert_true(of(0).count == 1 && of(0).count_variance == 0);
	assert_true(fabs(of(0).delay_ns - 130 * MS) <= 2 * MS && of(0).delay_variance < 2e13);
	assert_true(fabs(of(0).counted_ns - 130 * MS) <= 2 * MS);
	assert_true(of(1).count == 0 && of(1).delay_ns == 0);
	within(of(1).delay_ns, 180e6, of(1).delay_variance, 1.1);
	assert_true(of(2).count == 0 && of(3).count == 0 && of(3).delay_ns == 0);
}

/* A wait goes on in a pause: it is one wait, as long as it is. */
static void a_pause(void **state)
{
	(void)state;
	gor[1].begins = START + 10 * MS;
	gor[1].lasts = 640 * MS;
	run_for(100 * MS);
	assert_int_equal(looks_pause(k, NULL), 0);
	assert_int_equal(looks_due(k), 0);
	assert_int_equal(counted, 0);
	run_for(500 * MS);
	assert_int_equal(looks_begin(k, 0, NULL), 0);
	run_for(100 * MS);
	result();
	assert_true(of(1).count == 1);
	assert_true(fabs(of(1).delay_ns - 640 * MS) <= 6 * MS);
	assert_true(fabs(of(1).counted_ns - 640 * MS) <= 6 * MS);
}

/* Nobody sees when it ends there: 0.5 s of each are over at random when the pause begins, and as much is to come. */
static void waits_that_end_in_a_pause(void **state)
{
	double told = 0;

	(void)state;
	for (size_t i = 0; i < ngor; i++) {
		gor[i].begins = START + 10 * MS + (90 * MS * (2 * i + 1)) / (2 * ngor);
		gor[i].lasts = 90 * MS;
	}
	run_for(100 * MS);
	assert_int_equal(looks_pause(k, NULL), 0);
	run_for(200 * MS);
	assert_int_equal(looks_begin(k, 0, NULL), 0);
	run_for(20 * MS);
	result();
	for (size_t i = 0; i < ngor; i++) {
		told += of(i).delay_ns;
		assert_true(of(i).delay_ns > 0 && of(i).delay_ns < 190 * MS);
	}

	assert_true(fabs(told / (double)ngor - 90 * MS) < 5 * MS);
}

/* It never ends, and the pause is the last thing that is known. */
static void a_pause_at_the_end(void **state)
{
	(void)state;
	gor[1].begins = START + 10 * MS;
	gor[1].lasts = UINT64_MAX;
	run_for(100 * MS);
	assert_int_equal(looks_pause(k, NULL), 0);
	run_for(50 * MS);
	result();
	assert_true(of(1).count == 1);
	assert_true(fabs(of(1).delay_ns - 140 * MS) <= 4 * MS);
}

/* What began in the pause, in time that was observed in full, is whole; what looks saw before it is another wait. */
static void those_that_begin_in_a_pause(void **state)
{
	struct looks_begun known[1];

	(void)state;
	gor[0].lasts = 0;
	run_for(50 * MS);
	assert_int_equal(looks_pause(k, NULL), 0);
	gor[0] = (struct gor){ .begins = START + 150 * MS,
			       .lasts = 130 * MS,
			       .status = GSTATUS_WAITING,
			       .reason = REASON };
	known[0] = begun(0);
	run_for(200 * MS);
	assert_int_equal(looks_begin(k, 0, NULL), 0);
	looks_know(k, known, 1);
	run_for(100 * MS);
	assert_int_equal(result().known, 1);
	assert_true(of(0).count == 1 && fabs(of(0).delay_ns - 130 * MS) <= 3 * MS);
}

/* A wait that began before *counted was seen by three looks. */
static void what_it_tells_the_probes(void **state)
{
	(void)state;
	gor[0].begins = START + 50 * MS;
	gor[0].lasts = 20 * MS;
	for (uint64_t ms = 0; ms < 20; ms++) {
		run_for(ms ? MS : 50 * MS);
		if (counted && gor[0].begins < counted)
			break;
	}
	assert_in_range(now_ns, START + 51 * MS, START + 60 * MS);
	assert_true(now_ns - counted >= MS / 100 && now_ns - counted < 10 * MS);
}

static void others(void **state)
{
	(void)state;
	gor[0].begins = gor[1].begins = START + 5 * MS;
	gor[0].lasts = gor[1].lasts = 50 * MS;
	gor[0].reason = REASON + 1;
	gor[1].status = GSTATUS_RUNNABLE;
	ngor = 2;
	run_for(20 * MS);
	assert_int_equal(tally.entries.n, 0);
	/* This goroutine is created later. */
	gor[2].begins = now_ns;
	gor[2].lasts = 20 * MS;
	ngor = 3;
	run_for(50 * MS);
	result();
	assert_int_equal(tally.entries.n, 1);
	assert_true(of(2).count == 1);
}

/*
 * Each look finds another wait than the one its stack belongs to: only those count that are known
 * otherwise.
 */
static void stacks_that_do_not_hold(void **state)
{
	struct looks_result r;

	(void)state;
	gor[0].begins = START + 10 * MS;
	gor[0].lasts = 100 * MS;
	torn = true;
	run_for(60 * MS);
	assert_int_equal(tally.entries.n, 0);
	torn = false; /* now it gets what it is still owed */
	run_for(60 * MS);
	r = result();
	assert_true(r.lost_ns == 0);
	assert_true(fabs(of(0).delay_ns - 100 * MS) <= 2 * MS);
	assert_true(of(0).count == 1);
}

/*
 * It is met in two waits, and in the second one before it has counted that: it seems to have stood still. But it ran
 * when its stack was read.
 */
static void stacks_of_who_ran_meanwhile(void **state)
{
	(void)state;
	for (uint64_t period = 600; period <= 1600; period += 100) {
		tear_down(NULL);
		set_up(NULL);
		read_ns = 300;
		gor[0].begins = START + 10 * MS;
		gor[0].period = period;
		gor[0].lasts = period / 10 * 4;
		gor[0].lags = 100;
		run_for(LONG / 8);
		assert_true(result().lost_ns > 0.3 * (double)LONG / 8);
		assert_int_equal(tally.entries.n, 0);
	}
}

static void stacks_that_move(void **state)
{
	struct looks_result r;

	(void)state;
	gor[0].begins = START + 10 * MS;
	gor[0].lasts = 50 * MS;
	gor[0].moves = true;
	run_for(100 * MS);
	r = result();
	assert_int_equal(tally.entries.n, 0);
	assert_true(fabs(r.lost_ns - 50 * MS) <= 2 * MS);
}

static void stacks_that_a_gc_moves(void **state)
{
	(void)state;
	gor[0].begins = START + 10 * MS;
	gor[0].lasts = 50 * MS;
	gor[0].held = START + 30 * MS;
	run_for(100 * MS);
	assert_true(result().lost_ns == 0);
	assert_int_equal(tally.entries.n, 1);
	assert_int_equal(tally.entries.at[0].st->nfirst, 3);
	assert_true(fabs(of(0).delay_ns - 50 * MS) <= 2 * MS);
}

/* The number of goroutines that cannot be looked at is reported: their waits are in no number. */
static void more_than_there_is_room_for(void **state)
{
	(void)state;
	ngor = LOOKS_MAX + 5;
	run_for(2 * MS);
	ngor = LOOKS_MAX + 3;
	run_for(2 * MS);
	assert_int_equal(result().beyond, 5);
}

/* It does not always run when it wants to. What was missed is made up for, and reported. */
static void when_looks_are_late(void **state)
{
	struct looks_estimate o;

	(void)state;
	for (int brief = 0; brief < 2; brief++) {
		tear_down(NULL);
		set_up(NULL);
		gor[0].begins = START;
		gor[0].lasts = brief ? 300 * US : 30 * MS;
		gor[0].period = brief ? 1000 * US : 30 * MS;
		for (uint64_t i = 0; i < 200; i++) {
			run_for(100 * MS);
			now_ns += (20 + i * 7919 % 40) * MS;
		}
		result();
		o = of(0);
		within(o.delay_ns, (brief ? 0.3 : 1) * (double)(now_ns - START), o.delay_variance,
		       4);
		if (brief)
			continue;
		within(o.count, (double)(now_ns - START) / 30e6, o.count_variance, 4);
		assert_true(o.count_variance > 1 && sqrt(o.count_variance) < 0.2 * o.count);
	}
}

/* @nth: of the share that looks at one target alone may take. */
static void costs(uint64_t nth)
{
	struct looks_estimate all = {};
	struct looks_result r;

	ngor = MANY;
	cpu_per_look = 300;
	for (size_t i = 0; i < MANY; i++) {
		gor[i].begins = START;
		gor[i].lasts = 300 * US;
		gor[i].period = 1000 * US;
	}
	run_for(LONG);
	r = result();
	assert_in_range(r.cpu_ns, LONG / nth / 40, LONG / nth / 12);
	assert_in_range((uint64_t)r.stratum_ns, nth * 15 * MS, nth * 100 * MS);
	for (size_t i = 0; i < MANY; i++) {
		all.delay_ns += of(i).delay_ns;
		all.delay_variance += of(i).delay_variance;
	}
	/* They are at one place: what looks see of one of them they see of the others. */
	within(all.delay_ns, 0.3 * MANY * (double)LONG, all.delay_variance, 4);
}

static void it_costs_little(void **state)
{
	(void)state;
	costs(1);
	tear_down(NULL);
	may_take /= 4;
	set_up(NULL);
	costs(4);
	may_take *= 4;
}

static void the_end_of_the_target(void **state)
{
	(void)state;
	gor[0].begins = START + 10 * MS;
	gor[0].lasts = 30 * MS;
	run_for(50 * MS);
	gone = true;
	run_for(50 * MS);
	assert_int_equal(looks_due(k), 0);
	result();
	assert_true(of(0).count == 1);
}

/* It is looked at from its exec on, when nothing of it is mapped yet; its runtime begins later. */
static void one_that_has_just_called_exec(void **state)
{
	(void)state;
	gor[0].begins = START + 200 * MS;
	gor[0].lasts = 30 * MS;
	begins = UNMAPPED;
	run_for(50 * MS);
	begins = UNSET;
	run_for(50 * MS);
	assert_int_equal(looks_sums(k)->look, 0);
	begins = 0;
	run_for(200 * MS);
	result();
	assert_true(of(0).count == 1);
}

/* What never comes is an error, and so is what was there and goes. */
static void one_whose_list_is_not_there(void **state)
{
	struct err e = { "" };
	int ret = 0;

	(void)state;
	begins = UNSET;
	while (!ret && now_ns < START + LONG) {
		now_ns = looks_due(k);
		ret = looks_poll(k, &e);
	}
	assert_int_equal(ret, -EBADMSG);
	assert_non_null(strstr(e.msg, "0 goroutines"));
	assert_in_range(now_ns, START + 4900 * MS, START + 6000 * MS);
	begins = 0;
	looks_pause(k, NULL);
	looks_begin(k, 0, NULL);
	run_for(50 * MS);
	assert_true(looks_sums(k)->look > 0);
	begins = UNMAPPED;
	now_ns = looks_due(k);
	assert_int_equal(looks_poll(k, &e), -EFAULT);
}

static void a_layout_that_does_not_tell(void **state)
{
	struct collect_opts o = {};
	struct looks *other = NULL;
	struct err e = {};

	(void)state;
	subject.layout.off[LAYOUT_g_trackingseq] = -1;
	assert_int_equal(looks_new(&subject, &o, &conf, &other, &e), -ENOTSUP);
	assert_non_null(strstr(e.msg, "g_trackingseq"));
}

static size_t settled;

static void settle(void *arg, struct gpb_stack *st)
{
	assert_ptr_equal(arg, &settled);
	assert_int_equal(st->wait.kind, GSTATUS_SYSCALL);
	settled++;
}

static void goes(size_t i, uint32_t status, uint64_t lasts, uint64_t period)
{
	gor[i] = (struct gor){ .begins = START + 30 * MS,
			       .lasts = lasts,
			       .period = period,
			       .status = status,
			       .reason = 40 + (uint8_t)i };
}

/*
 * Wait profiles: any reason, waiting for a thread, and system calls, which are not counted by
 * looks.
 */
static void waits_of_all_kinds(void **state)
{
	static const struct looks_conf all = { .tally = &tally,
					       .all = true,
					       .settle = settle,
					       .settle_arg = &settled,
					       .counted = &counted };
	static const uint32_t status[] = { GSTATUS_WAITING, GSTATUS_RUNNABLE, GSTATUS_SYSCALL };
	struct looks_estimate o;

	(void)state;
	tear_down(NULL);
	set_up_as(&all);
	for (size_t i = 0; i < ARRAY_LEN(status); i++)
		goes(i, status[i], 30 * MS, 50 * MS);
	goes(3, GSTATUS_SYSCALL, 2 * LONG, 0);
	gor[3].begins = START - MS;
	goes(4, GSTATUS_WAITING, 2 * LONG, 0);
	gor[4].begins = START - MS;
	settled = 0;
	run_for(LONG);
	result();
	for (size_t i = 0; i < ARRAY_LEN(status); i++) {
		o = of(i);
		within(o.delay_ns, 0.6 * (double)LONG, o.delay_variance, 4);
		if (status[i] == GSTATUS_SYSCALL)
			assert_true(o.count == 0);
		else
			within(o.count, (double)LONG / (50.0 * MS), o.count_variance + 1, 3);
	}
	assert_true(settled > 0);
	/* Whether it was there all the time, or came again, the caller decides. */
	o = of(3);
	assert_true(o.delay_ns == 0 && fabs(o.unsure_ns - (double)LONG) < 5 * MS);
	assert_true(of(4).delay_ns == 0 && of(4).count == 0);
	for (size_t n = 0; n < tally.entries.n; n++)
		if (tally.entries.at[n].st->goid == 1)
			assert_int_equal(tally.entries.at[n].st->of[0], GSTATUS_WAITING << 8 | 40);
}

/* Whoever polls is not woken by one that nobody asks any more: nothing would end that. */
static void one_that_stopped_wakes_nobody(void **state)
{
	struct pollfd fd = { .fd = looks_fd(k), .events = POLLIN };

	(void)state;
	assert_int_equal(poll(&fd, 1, 1000), 1); /* it was due long ago, by the system's clock */
	looks_stop(k);
	assert_int_equal(poll(&fd, 1, 0), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(its_stack_and_length),
		TEST(one_that_stopped_wakes_nobody),
		TEST(without_bias),
		TEST(those_that_looks_disturb),
		TEST(at_the_ends),
		TEST(brief_ones_at_the_ends),
		TEST(those_whose_beginning_is_known),
		TEST(a_pause),
		TEST(waits_that_end_in_a_pause),
		TEST(a_pause_at_the_end),
		TEST(those_that_begin_in_a_pause),
		TEST(what_it_tells_the_probes),
		TEST(others),
		TEST(waits_of_all_kinds),
		TEST(stacks_that_do_not_hold),
		TEST(stacks_of_who_ran_meanwhile),
		TEST(stacks_that_move),
		TEST(stacks_that_a_gc_moves),
		TEST(when_looks_are_late),
		TEST(more_than_there_is_room_for),
		TEST(it_costs_little),
		TEST(the_end_of_the_target),
		TEST(one_that_has_just_called_exec),
		TEST(one_whose_list_is_not_there),
		TEST(a_layout_that_does_not_tell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
