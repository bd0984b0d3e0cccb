/*
 * tests/unit/test_enable.c - a rate that is switched on for a window: where it may be written at all, what is read while it is on,
 * and that it is switched off whatever fails. Its world is enable_world.h.
 */
#include "enable_world.h"

enum { RATE = 1000, THEIRS = 512, PROGRAMS = 77 };

static struct enable x;
static struct {
	int fails;	/* what a reading returns; 0: it works */
	int rate_fails; /* what reading the rate returns */
	uint64_t takes; /* ns: one reading */
	unsigned count; /* of those that count */
} reading;

static int rate(void *arg, uint64_t *out, struct err *e)
{
	assert_ptr_equal(arg, &reading);
	if (reading.rate_fails)
		return err_set(e, reading.rate_fails, "no rate");
	*out = w.word;
	return 0;
}

/* As collectors do it: a reading counts when the rate is ours after it. */
static int read_once(void *arg, struct err *e)
{
	bool ours = false;
	int ret;

	assert_ptr_equal(arg, &reading);
	did("read");
	w.now += reading.takes;
	if (reading.fails)
		return err_set(e, reading.fails, "it cannot be read");
	ret = enable_is_ours(&x, &ours, e);
	if (ret || !ours)
		return ret;
	reading.count++;
	x.last_ns = w.now;
	return 0;
}

static int set_up(void **state)
{
	(void)state;
	begin_world();
	memset(&reading, 0, sizeof(reading));
	x = (struct enable){ .s = &subject,
			     .o = &opts,
			     .kind = "heap",
			     .name = "runtime.MemProfileRate",
			     .rate = rate,
			     .read = read_once,
			     .arg = &reading };
	return enable_init(&x, NULL);
}

/* Whatever a test did: no guardian is left. */
static int tear_down(void **state)
{
	(void)state;
	enable_fini(&x);
	return w.guardians;
}

static void on(void)
{
	assert_int_equal(enable_on(&x, BIAS + RATE_ADDR, RATE, CLAIM_HEAP_RATE, NULL), 0);
}

/* It is on, and the window has begun. */
static void begin(void)
{
	on();
	assert_int_equal(enable_from(&x, w.now, NULL), 0);
}

/* The timer rings, and @readings count until now. */
static void polled(unsigned readings)
{
	ring(x.timer);
	assert_int_equal(enable_poll(&x, NULL), 0);
	assert_int_equal(reading.count, readings);
}

/* ---- where nothing is written ---- */

static void a_command_that_has_not_run_sets_its_own_rates(void **state)
{
	struct err e = { "" };

	(void)state;
	opts.held = true;
	assert_int_equal(enable_init(&x, &e), -ENOTSUP);
	assert_non_null(strstr(e.msg, "--source=probe"));
	assert_int_equal(x.timer, -1); /* and enable_fini() closes nothing */
}

static int check(struct err *e)
{
	return enable_check_address(&subject, RTVAR_MEMPROFILERATE, BIAS + RATE_ADDR, e);
}

static void two_ways_must_find_one_address(void **state)
{
	struct err e = { "" };

	(void)state;
	assert_int_equal(check(&e), 0);
	w.decoded = RATE_ADDR + 8;
	assert_int_equal(check(&e), -EBADMSG);
	assert_non_null(strstr(e.msg, "runtime.MemProfileRate is at 0x5000 by symbol and at "
				      "0x5008 by its users"));
	w.decoded = BIAS + RATE_ADDR; /* a live address is none of the file's */
	assert_int_equal(check(&e), -EBADMSG);
	w.decoded = 0;
	assert_int_equal(check(&e), -ENOENT);
	assert_non_null(strstr(e.msg, "nothing is written"));
	assert_non_null(strstr(e.msg, "no code uses it"));
}

static void a_go_that_is_not_known_is_not_written_to(void **state)
{
	static const struct {
		enum layout_how how;
		bool newer;
		int ret;
	} cases[] = { { LAYOUT_DWARF, false, 0 },
		      { LAYOUT_NEAREST, false, 0 },
		      { LAYOUT_GUESSED, false, -ENOTSUP },
		      { LAYOUT_DWARF, true, -ENOTSUP } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err e = { "" };

		subject.layout.how = cases[i].how;
		subject.layout.newer = cases[i].newer;
		assert_int_equal(check(&e), cases[i].ret);
		assert_true(!cases[i].ret || strstr(e.msg, "go1.27.1"));
	}
}

static void a_program_that_has_it_on_is_left_alone(void **state)
{
	(void)state;
	w.word = PROGRAMS;
	assert_int_equal(enable_on(&x, BIAS + RATE_ADDR, RATE, CLAIM_HEAP_RATE, NULL), 1);
	assert_null(x.g);
	assert_string_equal(w.said, "");
	enable_fini(&x);
	assert_string_equal(w.log, "");
	assert_int_equal(w.word, PROGRAMS);
}

/* ---- it is on ---- */

static void the_guardian_is_told_what_to_write(void **state)
{
	const struct guardian_job *job = &w.guardian.job;

	(void)state;
	on();
	assert_int_equal(w.word, RATE);
	assert_ptr_equal(job->target, &target);
	assert_string_equal(job->name, "runtime.MemProfileRate");
	assert_int_equal(job->addr, BIAS + RATE_ADDR);
	assert_int_equal(job->value, RATE);
	assert_int_equal(job->what, CLAIM_HEAP_RATE);
	assert_true(job->window_ns == 10 * NS_PER_S);
	assert_false(job->force_exe);
	assert_true(was_said("heap: source enable: runtime.MemProfileRate was 0, is 1000 until "
			     "this ends; process 4711 guards it"));
	assert_false(was_said("may be killed"));
}

static void a_guardian_that_is_not_spared_is_told(void **state)
{
	(void)state;
	w.exposed = true;
	on();
	assert_true(was_said("the guardian may be killed"));
}

/* Another goprof-bpf has it on, at a value of its own: that is the rate. */
static void what_others_switched_on_is_shared(void **state)
{
	bool ours = false;

	(void)state;
	w.word = w.claimed = THEIRS;
	on();
	assert_int_equal(w.word, THEIRS);
	assert_int_equal(x.began.value, THEIRS);
	assert_true(was_said("is on at 512, claimed by a lock on the target"));
	assert_false(was_said("was 0"));
	assert_int_equal(enable_is_ours(&x, &ours, NULL), 0);
	assert_true(ours);
}

static void a_guardian_that_does_not_start_is_an_error(void **state)
{
	struct err e = { "" };

	(void)state;
	w.fault_at = 1;
	assert_int_equal(enable_on(&x, BIAS + RATE_ADDR, RATE, CLAIM_HEAP_RATE, &e), -EFAULT);
	assert_string_equal(e.msg, "step 1 fails");
	assert_null(x.g);
	assert_int_equal(w.word, 0);
}

/* A later step of the start fails, and nobody asks for the end. */
static void freeing_restores(void **state)
{
	int timer;

	(void)state;
	begin();
	timer = x.timer;
	enable_fini(&x);
	assert_int_equal(w.word, 0);
	assert_int_equal(w.guardians, 0);
	assert_int_equal(fcntl(timer, F_GETFD), -1);
	assert_string_equal(w.log, "write free ");
	x.g = NULL;
	x.timer = -1;
}

static void only_the_value_in_force_is_ours(void **state)
{
	bool ours = true;

	(void)state;
	on();
	w.word = PROGRAMS;
	assert_int_equal(enable_is_ours(&x, &ours, NULL), 0);
	assert_false(ours);
	assert_true(x.over);
	w.word = 0; /* switched off is not ours, either */
	x.over = false;
	ours = true;
	assert_int_equal(enable_is_ours(&x, &ours, NULL), 0);
	assert_false(ours);
	assert_true(x.over);
	w.word = RATE; /* and once it was another one, our value proves nothing */
	assert_int_equal(enable_is_ours(&x, &ours, NULL), 0);
	assert_true(x.over);
}

/* That the rate could not be read says nothing of it. */
static void a_rate_that_cannot_be_read_ends_nothing(void **state)
{
	bool ours = true;

	(void)state;
	on();
	reading.rate_fails = -EFAULT;
	assert_int_equal(enable_is_ours(&x, &ours, NULL), -EFAULT);
	assert_true(ours); /* not written */
	assert_false(x.over);
	assert_int_equal(enable_from(&x, w.now, NULL), -EFAULT);
	assert_int_equal(x.timer, -1);
}

/* ---- the window ---- */

static void a_program_that_sets_it_at_the_start_is_to_be_read(void **state)
{
	struct err e = { "" };

	(void)state;
	on();
	w.word = PROGRAMS;
	assert_int_equal(enable_from(&x, w.now, &e), -EBUSY);
	assert_non_null(strstr(e.msg, "has set runtime.MemProfileRate to 77 itself"));
	enable_fini(&x);
	assert_int_equal(w.word, PROGRAMS);
	x.g = NULL;
}

/* 20 ms, twice as long each time, up to a second. */
static void pauses_grow_to_a_second(void **state)
{
	static const unsigned pauses[] = { 20, 40, 80, 160, 320, 640, 1000, 1000 };

	(void)state;
	begin();
	assert_int_equal(enable_fd(&x), x.timer);
	for (unsigned i = 0; i < ARRAY_LEN(pauses); i++) {
		assert_true(w.pause == pauses[i] * MS);
		polled(i + 1);
		assert_false(readable(x.timer));
	}
}

/* They take a twentieth of the time at most, and the pause grows above a second for that. */
static void slow_readings_are_rare(void **state)
{
	(void)state;
	begin();
	reading.takes = 30 * MS;
	polled(1);
	assert_true(w.pause == 600 * MS);
	reading.takes = 200 * MS;
	polled(2);
	assert_true(w.pause == 4000 * MS);
	reading.takes = 0;
	polled(3);
	assert_true(w.pause == 1000 * MS);
}

static void numbers_end_where_the_program_sets_the_rate(void **state)
{
	uint64_t last;

	(void)state;
	begin();
	polled(1);
	last = x.last_ns;
	w.word = PROGRAMS;
	polled(1);
	assert_true(x.over && x.last_ns == last);
	assert_true(w.pause == 0); /* nobody need look again */
	assert_false(readable(x.timer));
	w.word = RATE;
	w.log[0] = '\0';
	assert_int_equal(enable_poll(&x, NULL), 0);
	assert_string_equal(w.log, "");
	assert_int_equal(enable_end(&x, NULL), 0);
	assert_string_equal(w.log, "end ");
}

/* What came after the guardian had restored was not sampled. */
static void numbers_end_where_the_guardian_restores_by_itself(void **state)
{
	(void)state;
	begin();
	polled(1);
	w.by_itself = true;
	w.log[0] = '\0';
	polled(1);
	assert_string_equal(w.log, "");
	assert_true(x.over);
	assert_int_equal(w.pause, 0);
}

static void a_tick_shows_that_we_live(void **state)
{
	(void)state;
	begin();
	for (unsigned i = 1; i <= 3; i++) {
		assert_int_equal(enable_tick(&x, NULL), 0);
		assert_int_equal(w.checks, i);
		assert_false(x.over);
	}
	w.by_itself = true;
	assert_int_equal(enable_tick(&x, NULL), 0);
	assert_true(x.over);
}

/* So does a poll, before it reads: a reading may take long. */
static unsigned checks_at_reading;

static int read_late(void *arg, struct err *e)
{
	checks_at_reading = w.checks;
	return read_once(arg, e);
}

static void a_poll_shows_that_we_live(void **state)
{
	(void)state;
	x.read = read_late;
	begin();
	polled(1);
	assert_int_equal(checks_at_reading, 1);
}

static unsigned times_said(const char *what)
{
	unsigned n = 0;

	for (const char *at = w.said; (at = strstr(at, what)); at++)
		n++;
	return n;
}

/* What is there stays, and the next one may succeed. It is said once. */
static void a_reading_that_fails_costs_only_itself(void **state)
{
	struct err e = { "" };
	uint64_t pause;

	(void)state;
	begin();
	polled(1);
	pause = w.pause;
	reading.fails = -EFAULT;
	for (int i = 0; i < 2; i++) {
		ring(x.timer);
		assert_int_equal(enable_poll(&x, &e), 0);
	}
	assert_int_equal(times_said("a reading in between failed: it cannot be read"), 1);
	assert_true(w.pause > pause && !x.over);
}

/* That the program has exited is told elsewhere. */
static void a_program_that_exits_is_no_failed_reading(void **state)
{
	struct err e = { "" };

	(void)state;
	begin();
	reading.fails = -ESRCH;
	ring(x.timer);
	assert_int_equal(enable_poll(&x, &e), 0);
	assert_int_equal(times_said("a reading in between failed"), 0);
}

/* No profile is made of what was sampled under it, as with any other rate of its own. */
static void a_rate_that_nothing_sensible_sets_is_the_programs(void **state)
{
	bool ours = true;

	(void)state;
	begin();
	reading.rate_fails = -EBADMSG;
	assert_int_equal(enable_is_ours(&x, &ours, NULL), 0);
	assert_true(!ours && x.over);
	x.over = false;
	reading.rate_fails = -EFAULT;
	assert_int_equal(enable_is_ours(&x, &ours, NULL), -EFAULT);
	assert_false(x.over);
}

/* ---- the end ---- */

static void it_is_read_and_then_restored(void **state)
{
	struct err e = { "" };

	(void)state;
	begin();
	w.log[0] = '\0';
	assert_int_equal(enable_end(&x, &e), 0);
	assert_string_equal(w.log, "read end ");
	assert_int_equal(reading.count, 1);
	assert_int_equal(w.word, 0);
	assert_int_equal(x.ended.how, GUARDIAN_RESTORED);
	assert_true(was_said("heap: runtime.MemProfileRate is 0 again, after 0.000 s"));
}

/* The last reading fails: the one before stands, and the rate is restored. */
static void it_is_restored_when_it_cannot_be_read(void **state)
{
	uint64_t last;

	(void)state;
	begin();
	polled(1);
	last = x.last_ns;
	reading.fails = -EBADMSG;
	assert_int_equal(enable_end(&x, NULL), 0);
	assert_int_equal(w.word, 0);
	assert_true(x.last_ns == last);
	assert_false(was_said("it cannot be read"));
}

static void a_window_without_a_reading_is_an_error(void **state)
{
	struct err e = { "" };

	(void)state;
	begin();
	reading.fails = -EFAULT;
	assert_int_equal(enable_end(&x, &e), -ESRCH);
	assert_non_null(strstr(e.msg, "over before anything could be read"));
	assert_int_equal(w.word, 0);
	assert_true(was_said("heap: it cannot be read"));
}

static bool told(const char *what)
{
	struct prof *p = NULL;
	bool yes;

	assert_int_equal(prof_new(&p, NULL), 0);
	assert_int_equal(enable_comment(&x, p, NULL), 0);
	yes = says(p, what);
	assert_int_equal(prof_loss(p)->n[LOSS_NOT_RESTORED], x.ended.how == -1);
	prof_free(p);
	return yes;
}

static void what_could_not_be_restored_is_a_loss(void **state)
{
	(void)state;
	begin();
	w.end_fails = -EBUSY;
	assert_int_equal(enable_end(&x, NULL), 0);
	assert_int_equal(x.ended.how, -1);
	assert_true(was_said("heap: it goes on trying"));
	assert_false(was_said("0 again"));
	assert_true(told("enabled: runtime.MemProfileRate was 0 and was set to 1000; IT COULD NOT "
			 "BE RESTORED"));
}

/* After a window of two seconds. */
static void ends(int how)
{
	w.now += 2 * NS_PER_S;
	assert_int_equal(enable_end(&x, NULL), 0);
	assert_int_equal(x.ended.how, how);
}

static void a_profile_tells_that_it_was_restored(void **state)
{
	(void)state;
	begin();
	ends(GUARDIAN_RESTORED);
	assert_true(told("enabled: runtime.MemProfileRate was 0 and was set to 1000 for 2.000 s; "
			 "it is 0 again"));
	assert_false(told("in time"));
}

static void a_profile_tells_that_others_have_it_on(void **state)
{
	(void)state;
	w.word = w.claimed = THEIRS;
	begin();
	ends(GUARDIAN_LEFT);
	assert_int_equal(w.word, THEIRS);
	assert_true(was_said("stays 512 while a lock on the target claims it"));
	assert_false(was_said("0 again"));
	assert_true(told("was on, claimed by a lock on the target, at 512; after 2.000 s it is "
			 "left on"));
}

/* The first of two: those who came later restore. */
static void a_profile_tells_that_it_is_left_to_others(void **state)
{
	(void)state;
	begin();
	w.claimed = RATE;
	ends(GUARDIAN_LEFT);
	assert_int_equal(w.word, RATE);
	assert_true(told("was 0 and was set to 1000; after 2.000 s it is left on"));
}

static void a_profile_tells_that_the_program_set_it(void **state)
{
	(void)state;
	begin();
	polled(1);
	w.word = PROGRAMS;
	ends(GUARDIAN_CHANGED);
	assert_int_equal(w.word, PROGRAMS);
	assert_true(was_said("the program has set runtime.MemProfileRate to 77 itself: left"));
	assert_true(told("set to 1000; the program has set it to 77 itself, which was left alone"));
}

static void a_profile_tells_that_the_program_went(void **state)
{
	(void)state;
	begin();
	polled(1);
	w.gone = true;
	reading.fails = -ESRCH;
	ends(GUARDIAN_GONE);
	assert_true(told("set to 1000 for 2.020 s, until the program was gone"));
}

/* We were stopped, and nobody asked in time. */
static void a_profile_tells_that_the_end_was_late(void **state)
{
	(void)state;
	begin();
	polled(1);
	w.by_itself = true;
	w.imitated = true;
	assert_int_equal(enable_tick(&x, NULL), 0);
	ends(GUARDIAN_RESTORED);
	assert_true(was_said("restored 2.0 s after it was set, for nobody had asked in time"));
	assert_true(was_said("it counts for nothing"));
	assert_true(told("for 2.020 s (nobody had asked for its end in time); it is 0 again"));
}

static void a_profiles_window_ends_at_the_last_reading(void **state)
{
	struct prof_header_view v;
	struct prof *p = NULL;

	(void)state;
	on();
	w.now += 500 * MS;
	assert_int_equal(enable_from(&x, w.now - 250 * MS, NULL), 0);
	assert_true(enable_seconds(&x) == 0); /* nothing was read yet */
	w.now += 750 * MS;
	polled(1);
	w.word = PROGRAMS;
	ends(GUARDIAN_CHANGED);
	assert_int_equal(prof_new(&p, NULL), 0);
	enable_set_window(&x, p);
	v = prof_header(p);
	assert_int_equal(v.duration_ns, 1020 * MS);
	assert_int_equal(v.time_ns, UNIX_NS + 1000 * NS_PER_S + 250 * MS);
	assert_true(enable_seconds(&x) > 1.0199 && enable_seconds(&x) < 1.0201);
	assert_int_equal(prof_loss(p)->n[LOSS_WINDOW_CUT], 1);
	prof_free(p);
}

static void a_whole_window_is_no_loss(void **state)
{
	struct prof *p = NULL;

	(void)state;
	begin();
	ends(GUARDIAN_RESTORED);
	assert_int_equal(prof_new(&p, NULL), 0);
	enable_set_window(&x, p);
	assert_true(loss_total(prof_loss(p)) == 0);
	prof_free(p);
}

static void steps_are_told_with_v_only(void **state)
{
	(void)state;
	enable_step(&x, "%d buckets", 3);
	assert_string_equal(w.said, "");
	opts.verbose = true;
	enable_step(&x, "%d buckets", 3);
	assert_string_equal(w.said, "heap: 3 buckets\n");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_command_that_has_not_run_sets_its_own_rates),
		TEST(two_ways_must_find_one_address),
		TEST(a_go_that_is_not_known_is_not_written_to),
		TEST(a_program_that_has_it_on_is_left_alone),
		TEST(the_guardian_is_told_what_to_write),
		TEST(a_guardian_that_is_not_spared_is_told),
		TEST(what_others_switched_on_is_shared),
		TEST(a_guardian_that_does_not_start_is_an_error),
		TEST(freeing_restores),
		TEST(only_the_value_in_force_is_ours),
		TEST(a_rate_that_cannot_be_read_ends_nothing),
		TEST(a_program_that_sets_it_at_the_start_is_to_be_read),
		TEST(pauses_grow_to_a_second),
		TEST(slow_readings_are_rare),
		TEST(numbers_end_where_the_program_sets_the_rate),
		TEST(numbers_end_where_the_guardian_restores_by_itself),
		TEST(a_tick_shows_that_we_live),
		TEST(a_poll_shows_that_we_live),
		TEST(a_reading_that_fails_costs_only_itself),
		TEST(a_program_that_exits_is_no_failed_reading),
		TEST(a_rate_that_nothing_sensible_sets_is_the_programs),
		TEST(it_is_read_and_then_restored),
		TEST(it_is_restored_when_it_cannot_be_read),
		TEST(a_window_without_a_reading_is_an_error),
		TEST(what_could_not_be_restored_is_a_loss),
		TEST(a_profile_tells_that_it_was_restored),
		TEST(a_profile_tells_that_others_have_it_on),
		TEST(a_profile_tells_that_it_is_left_to_others),
		TEST(a_profile_tells_that_the_program_set_it),
		TEST(a_profile_tells_that_the_program_went),
		TEST(a_profile_tells_that_the_end_was_late),
		TEST(a_profiles_window_ends_at_the_last_reading),
		TEST(a_whole_window_is_no_loss),
		TEST(steps_are_told_with_v_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
