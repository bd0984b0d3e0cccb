/*
 * tests/unit/test_cpu.c - CPU profiles: what the BPF side is told before it is loaded, when clocks take long steps, and
 * what is made of all the counts at the end.
 */
#include "cpu_fakes.h"

/* ---- the start ---- */

static void rate_is(unsigned hz, uint64_t period, uint64_t step)
{
	opts.cpu.hz = hz;
	start();
	assert_int_equal(rodata.period_ns, period);
	assert_int_equal(rodata.step_ns, step);
	assert_int_equal(w.step, step);
	stop();
	assert_int_equal(prof_header(prof).period, period);
	tear_down(NULL);
	set_up(NULL);
}

/* Steps are of a millisecond or a little more, and a whole number of them is a period. */
static void steps_are_a_millisecond(void **state)
{
	(void)state;
	rate_is(100, 10000000, 1000000);
	rate_is(99, 10101010, 1010101);
	rate_is(300, 3333333, 1111111);
	rate_is(7, 142857112, 1006036); /* 142 steps */
	rate_is(999, 1001001, 1001001);
	rate_is(1000, 1000000, 1000000);
	rate_is(4000, 250000, 250000);
}

static void the_bpf_side_is_told_what_it_needs(void **state)
{
	(void)state;
	start();
	assert_true(w.loaded && w.host_clock_off && w.ends_off);
	assert_int_equal(w.entries[TARGETS], 1);
	assert_int_equal(w.entries[SLOTS], 1);
	assert_int_equal(w.entries[RING], 0); /* as it is */
	assert_int_equal(rodata.pidns_ino, PIDNS);
	assert_int_equal(rodata.kernel_stack, KERNEL_STACK);
	assert_int_equal(w.targets_put, 1);
	assert_int_equal(k->fd(state_of), RING_FD);
	assert_int_equal(k->poll(state_of, NULL), 0);
	w.drain = -EIO;
	assert_int_equal(k->poll(state_of, NULL), -EIO);
}

/* While other kinds are prepared nobody takes what is in the ring: 4 MiB. */
static void beside_others_its_ring_is_larger(void **state)
{
	(void)state;
	opts.others = true;
	start();
	assert_int_equal(w.entries[RING], 4 << 20);
}

/* Steps can be long only where a clock's count can be read, and births are seen. */
static void births_are_watched_where_steps_may_be_long(void **state)
{
	(void)state;
	start();
	assert_true(rodata.reads_kernel == 1 && w.watched);
	tear_down(NULL);
	set_up(NULL);
	opts.cpu.hz = 1000; /* a step is a period */
	start();
	assert_true(rodata.reads_kernel == 1 && !w.watched);
	tear_down(NULL);
	set_up(NULL);
	w.no_helper = true;
	start();
	assert_true(!rodata.reads_kernel && !w.watched);
	tear_down(NULL);
	set_up(NULL);
	w.old = true;
	start();
	assert_true(!rodata.reads_kernel && !w.watched);
}

static void kernel_names_may_be_hidden(void **state)
{
	(void)state;
	w.hidden = true;
	start();
	assert_string_equal(w.said, "");
	stop();
	assert_false(says("hidden"));
	tear_down(NULL);
	set_up(NULL);
	w.hidden = opts.cpu.kernel = true;
	start();
	assert_string_equal(w.said, "cpu: warning: kernel names are hidden");
	stop();
	assert_true(says("kernel names are hidden"));
}

static void fails(int *what, const char *why)
{
	*what = -EIO;
	assert_int_equal(k->start(&subject, &opts, &state_of, &err), -EIO);
	assert_string_equal(err.msg, why);
	assert_null(state_of);
	tear_down(NULL);
	set_up(NULL);
}

/* Whatever fails, what was there by then is freed. */
static void what_fails_at_the_start_is_told(void **state)
{
	(void)state;
	fails(&w.verify, "no offsets");
	fails(&w.pidns, "no namespace");
	fails(&w.open, "it is not loaded");
	fails(&w.load, "it is not loaded");
	fails(&w.fill, "no target");
	fails(&w.map, "target table: Input/output error");
	fails(&w.clocks, "pid 7: no clock");
}

/* ---- samples ---- */

/* A sample stands for one period of CPU time. */
static void a_sample_is_a_period(void **state)
{
	struct gpb_stack st = { .count = 3 };
	struct prof_header_view h;

	(void)state;
	start();
	assert_int_equal(w.reports->add(w.reports->arg, &st, NULL), 0);
	assert_int_equal(w.value[0], 3);
	assert_int_equal(w.value[1], 30000000);
	assert_int_equal(w.nlabels, 1);
	stop();
	assert_int_equal(lost(LOSS_LABELS_CUT), 3);
	assert_int_equal(lost(LOSS_SAMPLES_DROPPED), 3);
	h = prof_header(prof);
	assert_int_equal(h.ntypes, 2);
	assert_string_equal(strtab_get(prof_strings(prof), h.types[0].type), "samples");
	assert_string_equal(strtab_get(prof_strings(prof), h.types[1].type), "cpu");
	assert_string_equal(strtab_get(prof_strings(prof), h.types[1].unit), "nanoseconds");
	assert_string_equal(strtab_get(prof_strings(prof), h.period_type.type), "cpu");
}

/* A plugin that was loaded meanwhile has code of its own. */
static void new_images_are_told(void **state)
{
	(void)state;
	start();
	assert_int_equal(k->tick(state_of, NULL), 0);
	assert_int_equal(w.targets_put, 1);
	subject.images.n = 2;
	assert_int_equal(k->tick(state_of, NULL), 0);
	assert_int_equal(w.targets_put, 2);
	assert_int_equal(k->tick(state_of, NULL), 0);
	assert_int_equal(w.targets_put, 2);
	subject.images.n = 3;
	w.fill = -ESRCH;
	assert_int_equal(k->tick(state_of, NULL), -ESRCH);
}

/* ---- long steps ---- */

static void tick_after(uint64_t ms)
{
	w.now += ms * MS;
	assert_int_equal(k->tick(state_of, NULL), 0);
}

/* A record from the ring. */
static void record(uint64_t type, uint64_t id, bool coarse, size_t len)
{
	const struct gpb_rec_clock r = { .type = type, .id = id, .coarse = coarse };

	assert_int_equal(w.reports->other(w.reports->other_arg, &r, len, NULL), 0);
}

static void asks(uint64_t id, bool coarse)
{
	record(GPB_REC_CLOCK, id, coarse, sizeof(struct gpb_rec_clock));
}

/* After a second without a birth clocks that ask for it get steps of a period, and after a birth short ones. */
static void without_births_steps_are_long(void **state)
{
	(void)state;
	start();
	tick_after(999);
	assert_int_equal(bss.coarsen, 0);
	tick_after(1);
	assert_int_equal(bss.coarsen, 1);
	asks(71, true);
	asks(72, true);
	asks(71, false);
	assert_int_equal(w.nset, 3);
	assert_true(w.set_id[0] == 71 && w.set_step[0] == 10 * MS);
	assert_true(w.set_id[1] == 72 && w.set_step[1] == 10 * MS);
	assert_true(w.set_id[2] == 71 && w.set_step[2] == 0);
	assert_int_equal(w.refined, 0);
	bss.births++;
	tick_after(100);
	assert_int_equal(bss.coarsen, 0);
	assert_int_equal(w.refined, 1);
	/* Each calm has its own number, so that clocks ask again. */
	tick_after(2000);
	assert_int_equal(bss.coarsen, 2);
}

/* What was asked in a calm that is over is too late. */
static void a_birth_is_seen_before_anything_is_set(void **state)
{
	(void)state;
	start();
	asks(71, true);
	tick_after(1000);
	bss.births++;
	asks(71, true);
	assert_int_equal(w.nset, 0);
	assert_int_equal(w.refined, 1);
	assert_int_equal(bss.coarsen, 0);
}

/* The record of a birth makes us look; it is no clock's. */
static void a_birth_is_no_clock(void **state)
{
	(void)state;
	start();
	tick_after(1000);
	asks(0, true);
	assert_int_equal(w.nset, 0);
	assert_int_equal(w.refined, 0);
	bss.births++;
	asks(0, false);
	assert_int_equal(w.refined, 1);
}

static void other_records_are_no_clocks(void **state)
{
	(void)state;
	start();
	tick_after(1000);
	record(GPB_REC_STACK, 71, true, sizeof(struct gpb_rec_clock));
	record(GPB_REC_CLOCK, 71, true, sizeof(struct gpb_rec_clock) - 1);
	assert_int_equal(w.nset, 0);
}

static void where_births_are_not_seen_steps_are_short(void **state)
{
	(void)state;
	w.old = true;
	start();
	tick_after(5000);
	asks(71, true);
	assert_int_equal(bss.coarsen, 0);
	assert_int_equal(w.nset, 0);
	stop();
	assert_false(says("steps:"));
}

/* 1 s until it is calm, 3 s of calm; 2 s more until it is calm again, and the rest is calm. */
static void long_steps_are_told(void **state)
{
	(void)state;
	start();
	tick_after(1000);
	tick_after(2000);
	bss.births++;
	tick_after(1000);
	tick_after(2000);
	w.now += 4 * S;
	bss.births_coarse = 2;
	stop();
	assert_true(
		says("steps: of 1 ms, and of whole periods for 7.0 s in which no thread was born"));
	assert_true(says("born: 2 threads began with steps of a whole period: up to 0.020 s of "
			 "their CPU time is in no sample"));
	assert_true(says("window: 10.020 s"));
}

static void a_calm_may_be_over_at_the_end(void **state)
{
	(void)state;
	start();
	tick_after(1000);
	bss.births++;
	tick_after(3000);
	tick_after(1500);
	stop();
	assert_true(says("of whole periods for 3.0 s"));
	assert_false(says("born:"));
}

static void without_calm_steps_are_not_told(void **state)
{
	(void)state;
	start();
	tick_after(900);
	stop();
	assert_false(says("steps:") || says("born:"));
}

/* ---- what was missed ---- */

/* A profile at 100 Hz of so much CPU time by the clocks, in which so many samples came. */
static void took(uint64_t clocks_ns, uint64_t samples)
{
	start();
	w.clocks_ns = clocks_ns;
	w.charged += clocks_ns;
	bss.tallies[0].samples = samples;
	bss.threads_seen = 20;
	w.now += 10 * S;
	stop();
}

/* Of 200 periods 4 may be missing, and for each thread's end half a step, and one for the last. */
static void missed(uint64_t samples, uint64_t want)
{
	took(2 * S, samples);
	assert_int_equal(lost(LOSS_CLOCK_MISSED), want);
	tear_down(NULL);
	set_up(NULL);
}

static void ticks_that_did_not_come_are_a_loss(void **state)
{
	(void)state;
	missed(200, 0);
	missed(250, 0);
	missed(193, 0); /* 1 + 20 ends of a step of a tenth, and 2 % */
	missed(192, 8);
	missed(0, 200);
}

/* A thread that began with a step of a whole period may end before it. */
static void threads_of_long_steps_miss_more(void **state)
{
	(void)state;
	start();
	w.clocks_ns = 2 * S;
	bss.threads_seen = 20;
	bss.births_coarse = 5;
	bss.tallies[0].samples = 188;
	stop();
	assert_int_equal(lost(LOSS_CLOCK_MISSED), 0);
	tear_down(NULL);
	set_up(NULL);
	start();
	w.clocks_ns = 2 * S;
	bss.threads_seen = 20;
	bss.births_coarse = 5;
	bss.tallies[0].samples = 187;
	stop();
	assert_int_equal(lost(LOSS_CLOCK_MISSED), 13);
}

static void threads_without_clocks_are_a_loss(void **state)
{
	(void)state;
	w.missed = 3;
	took(2 * S, 200);
	assert_int_equal(lost(LOSS_THREADS_MISSED), 3);
}

static void a_profile_tells_of_its_window(void **state)
{
	(void)state;
	took(2 * S, 200);
	assert_true(says("window: 10.020 s"));
	assert_true(says("rate: 100 Hz of each thread's CPU time"));
	assert_true(says("hits: 200 samples, 2.000 s of CPU time"));
	assert_true(says("charged: 2.000 s of CPU time by the kernel"));
	assert_true(says("rules: some"));
	assert_false(says("unclocked:"));
	assert_int_equal(prof_header(prof).time_ns, 1050 * S);
	assert_int_equal(prof_header(prof).duration_ns, 10 * S + 20 * MS);
}

/* ---- what the kernel charged ---- */

/* By the clocks and by /proc, which is read before the clocks stop and after it: 30 ms more. */
static void charged(uint64_t clocks_ns, uint64_t proc_ns, const char *want)
{
	start();
	w.clocks_ns = clocks_ns;
	w.charged += proc_ns;
	stop();
	assert_true(want ? says(want) : !says("charged:"));
	tear_down(NULL);
	set_up(NULL);
}

static void clocks_are_believed_where_they_count_once(void **state)
{
	(void)state;
	charged(2 * S, 3 * S, "charged: 2.000 s");
	charged(3 * S, 2 * S, "charged: 3.000 s");
	charged(0, 2 * S, "charged: 2.030 s"); /* threads had two */
	/* Child processes may have clocks: whichever says less. */
	w.family = true;
	charged(2 * S, 3 * S, "charged: 2.000 s");
	w.family = true;
	charged(3 * S, 2 * S, "charged: 2.030 s");
}

static void what_was_charged_may_be_unknown(void **state)
{
	(void)state;
	w.uncharged = true;
	charged(0, 2 * S, NULL);
	w.uncharged = true;
	charged(2 * S, 0, "charged: 2.000 s");
	w.uncharged = w.family = true;
	charged(2 * S, 0, "charged: 2.000 s");
}

static bool unclocked(uint64_t clocks_ns, uint64_t proc_ns, const char *want)
{
	bool is;

	start();
	w.clocks_ns = clocks_ns;
	w.charged += proc_ns;
	stop();
	is = says("unclocked:");
	assert_true(!is || says(want));
	tear_down(NULL);
	set_up(NULL);
	return is;
}

/* While threads are switched no clock runs. It is told when it is more than 50 ms and 1 % of what they counted. */
static void time_of_no_clock_is_told(void **state)
{
	(void)state;
	assert_false(unclocked(2 * S, 2 * S + 70 * MS, ""));
	assert_true(unclocked(2 * S, 2 * S + 71 * MS, "unclocked: 0.07 s more were charged"));
	assert_true(unclocked(2 * S, 3 * S, "unclocked: 1.00 s more were charged"));
	assert_false(unclocked(2 * S, 1 * S, ""));
	w.charged = 0; /* a command has used none when it begins, and that is known */
	assert_true(unclocked(2 * S, 3 * S, "unclocked: 1.00 s more were charged"));
}

/* It cannot be told of what /proc did not show at the start or at the end. */
static void time_of_no_clock_may_be_unknown(void **state)
{
	(void)state;
	w.uncharged = true;
	start();
	w.uncharged = false;
	w.clocks_ns = 1 * S;
	stop();
	assert_false(says("unclocked:"));
	tear_down(NULL);
	set_up(NULL);
	start();
	w.uncharged = true;
	w.clocks_ns = 1 * S;
	stop();
	assert_false(says("unclocked:"));
}

/* ---- the end ---- */

static void what_fails_at_the_end_is_told(void **state)
{
	(void)state;
	start();
	w.drain = -EIO;
	assert_int_equal(k->stop(state_of, &prof, &err), -EIO);
	assert_string_equal(err.msg, "no table");
	assert_null(prof);
	tear_down(NULL);
	set_up(NULL);
	start();
	w.rules = -ENOMEM;
	assert_int_equal(k->stop(state_of, &prof, &err), -ENOMEM);
	assert_null(prof);
}

/* It is also freed where nobody stopped it, or where there is nothing. */
static void it_may_never_be_stopped(void **state)
{
	(void)state;
	k->free(NULL);
	start();
	assert_true(w.things > 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(steps_are_a_millisecond),
		TEST(the_bpf_side_is_told_what_it_needs),
		TEST(beside_others_its_ring_is_larger),
		TEST(births_are_watched_where_steps_may_be_long),
		TEST(kernel_names_may_be_hidden),
		TEST(what_fails_at_the_start_is_told),
		TEST(a_sample_is_a_period),
		TEST(new_images_are_told),
		TEST(without_births_steps_are_long),
		TEST(a_birth_is_seen_before_anything_is_set),
		TEST(a_birth_is_no_clock),
		TEST(other_records_are_no_clocks),
		TEST(where_births_are_not_seen_steps_are_short),
		TEST(long_steps_are_told),
		TEST(a_calm_may_be_over_at_the_end),
		TEST(without_calm_steps_are_not_told),
		TEST(ticks_that_did_not_come_are_a_loss),
		TEST(threads_of_long_steps_miss_more),
		TEST(threads_without_clocks_are_a_loss),
		TEST(a_profile_tells_of_its_window),
		TEST(clocks_are_believed_where_they_count_once),
		TEST(what_was_charged_may_be_unknown),
		TEST(time_of_no_clock_is_told),
		TEST(time_of_no_clock_may_be_unknown),
		TEST(what_fails_at_the_end_is_told),
		TEST(it_may_never_be_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
