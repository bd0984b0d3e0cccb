/*
 * tests/unit/test_goroutine.c - goroutine profiles: when the program is looked at, which goroutines count and what stands
 * in for a stack, how long one is known to wait, and what is told of what could not be seen.
 */
#include "goroutine_fakes.h"

/* ---- when it looks ---- */

/* A window that is no longer than a look is one look. */
static void no_window_is_one_look(void **state)
{
	(void)state;
	add(1);
	opts.window_ns = 100 * NS_PER_MS;
	start();
	w.now += 5 * NS_PER_S; /* whoever asked was late */
	stop();
	assert_int_equal(w.looks, 1);
	assert_int_equal(count_of("main.wait", NULL), 1);
	assert_int_equal(prof_header(prof).time_ns, 1050 * NS_PER_S);
}

static void the_end_of_a_window_is_looked_at(void **state)
{
	(void)state;
	add(1);
	opts.window_ns = 101 * NS_PER_MS;
	start();
	add(2)->func = "main.late";
	w.now += 101 * NS_PER_MS;
	stop();
	assert_int_equal(w.looks, 2);
	assert_int_equal(w.refreshed, 1); /* plugins that were loaded since */
	assert_int_equal(count_of("main.late", NULL), 1);
	assert_int_equal(prof_header(prof).time_ns, 1050 * NS_PER_S + 101 * NS_PER_MS);
}

/* Nobody said how long it would be, and it was no longer than a look. */
static void a_window_that_ended_at_once_is_one_look(void **state)
{
	(void)state;
	opts.window_ns = 0;
	w.look_ns = 300 * NS_PER_MS;
	add(1);
	start();
	w.now += 99 * NS_PER_MS;
	stop();
	assert_int_equal(w.looks, 1);
}

static void a_window_of_unknown_length_is_a_window(void **state)
{
	(void)state;
	opts.window_ns = 0;
	w.look_ns = 300 * NS_PER_MS;
	add(1);
	start();
	w.now += 100 * NS_PER_MS;
	stop();
	assert_int_equal(w.looks, 2);
}

/* Of a program that exited in the window the look at its beginning remains, and its age is told. */
static void a_program_that_went_is_as_it_was(void **state)
{
	(void)state;
	add(1);
	start();
	w.now += 3 * NS_PER_S;
	w.alive = -ESRCH;
	stop();
	assert_int_equal(w.looks, 1);
	assert_int_equal(count_of("main.wait", NULL), 1);
	assert_true(says("state: as of 3.000 s before the end of the window; the target went"));
}

/* It may also go while it is looked at: what was read after that is no look. */
static void a_program_that_goes_meanwhile_is_as_it_was(void **state)
{
	(void)state;
	add(1);
	start();
	w.now += 3 * NS_PER_S;
	w.read = -ESRCH;
	stop();
	assert_int_equal(w.looks, 2);
	assert_true(says("state: as of 3.000 s before"));
}

static void a_look_that_fails_at_the_end_is_an_error(void **state)
{
	(void)state;
	add(1);
	start();
	w.now += 3 * NS_PER_S;
	w.read = -EBADMSG;
	assert_int_equal(c->stop(state_of, &prof, &err), -EBADMSG);
	assert_string_equal(err.msg, "pid 7: goroutines: no luck");
	assert_null(prof);
}

static void nothing_is_polled(void **state)
{
	(void)state;
	add(1);
	start();
	assert_int_equal(c->fd(state_of), -1);
	assert_int_equal(c->poll(state_of, NULL), 0);
	tick_after(9000);
	assert_int_equal(w.looks, 1); /* ticks are for commands alone */
}

/* ---- commands: a program that is held before it begins ---- */

static void a_command_is_looked_at_when_it_runs(void **state)
{
	(void)state;
	opts.held = true;
	opts.window_ns = 0;
	add(1);
	start();
	assert_int_equal(w.looks, 0);
	tick_after(99);
	assert_int_equal(w.looks, 0);
	tick_after(1);
	assert_int_equal(w.looks, 1);
	tick_after(999);
	assert_int_equal(w.looks, 1);
	tick_after(1);
	assert_int_equal(w.looks, 2);
	add(2)->func = "main.late";
	tick_after(1000);
	w.now += 500 * NS_PER_MS;
	w.alive = -ESRCH;
	stop();
	assert_int_equal(w.looks, 3);
	assert_int_equal(count_of("main.late", NULL), 1);
	assert_true(says("state: as of 0.500 s before"));
}

/* Looks take at most a tenth of a CPU or so. */
static void long_looks_are_less_frequent(void **state)
{
	(void)state;
	opts.held = true;
	w.look_ns = 400 * NS_PER_MS;
	add(1);
	start();
	tick_after(100);
	assert_int_equal(w.looks, 1);
	tick_after(3599); /* a look ends 400 ms after it began */
	assert_int_equal(w.looks, 1);
	tick_after(1);
	assert_int_equal(w.looks, 2);
}

/* Its runtime is not there yet: it is tried again soon. */
static void a_command_may_begin_late(void **state)
{
	(void)state;
	opts.held = true;
	add(1);
	start();
	w.read = -EBADMSG;
	tick_after(100);
	tick_after(100);
	w.read = 0;
	tick_after(99);
	assert_int_equal(w.looks, 2);
	tick_after(1);
	assert_int_equal(w.looks, 3);
	/* A look that fails does not replace one that did not. */
	w.read = -EBADMSG;
	tick_after(1000);
	assert_int_equal(w.looks, 4);
	w.alive = -ESRCH;
	w.now += NS_PER_S;
	stop();
	assert_int_equal(count_of("main.wait", NULL), 1);
}

static void a_command_that_ends_at_once_was_not_seen(void **state)
{
	(void)state;
	opts.held = true;
	start();
	tick_after(50);
	w.alive = -ESRCH;
	assert_int_equal(c->stop(state_of, &prof, &err), -ESRCH);
	assert_string_equal(err.msg, "pid 7: the command ended before its goroutines were looked "
				     "at, 100 ms after its start");
}

/* ---- what cannot be looked at ---- */

static void without_its_list_there_is_no_profile(void **state)
{
	(void)state;
	w.find = -ENOENT;
	assert_int_equal(c->start(&subject, &opts, &state_of, &err), -ENOENT);
	assert_string_equal(err.msg, "pid 7: goroutines: no luck");
	assert_null(state_of);
	assert_int_equal(w.looks, 0);
}

static void a_program_that_is_gone_has_no_profile(void **state)
{
	(void)state;
	w.alive = -ESRCH;
	assert_int_equal(c->start(&subject, &opts, &state_of, &err), -ESRCH);
	assert_string_equal(err.msg, "no luck"); /* that says all, and the same for all kinds */
	assert_null(state_of);
}

/* Offsets that may be another version's are not used. */
static void offsets_are_verified_first(void **state)
{
	(void)state;
	w.verify = -ENOTSUP;
	assert_int_equal(c->start(&subject, &opts, &state_of, &err), -ENOTSUP);
	assert_string_equal(err.msg, "pid 7: goroutines: no luck");
	assert_int_equal(w.looks, 0);
}

/* ---- which goroutines count ---- */

static void each_goroutine_of_the_program_is_one(void **state)
{
	struct prof_header_view h;

	(void)state;
	add(1);
	add(2);
	add(3)->g.startpc = GORIGIN_SYSTEM;
	add(4)->func = "main.sleep";
	look();
	assert_int_equal(count_of("main.wait", NULL), 2);
	assert_int_equal(count_of("main.sleep", NULL), 1);
	assert_int_equal(prof_nsamples(prof), 2);
	assert_int_equal(ntold, 3);
	assert_true(says("hits: 3 goroutines; read again because they moved: 0"));
	h = prof_header(prof);
	assert_int_equal(h.ntypes, 1);
	assert_string_equal(strtab_get(prof_strings(prof), h.types[0].type), "goroutine");
	assert_string_equal(strtab_get(prof_strings(prof), h.types[0].unit), "count");
}

/* The runtime's goroutine counts while it runs one of the program's functions. */
static void finalizers_and_cleanups_are_the_programs(void **state)
{
	(void)state;
	add(1)->g.startpc = GORIGIN_FINALIZERS;
	add(2)->g.startpc = GORIGIN_CLEANUPS;
	w.at[0].func = "finalizers";
	w.at[1].func = "cleanups";
	look();
	assert_int_equal(prof_nsamples(prof), 0);
	prof_free(prof);
	c->free(state_of);
	w.at[0].finalizer = true;
	w.at[1].g.cleanups = true;
	look();
	assert_int_equal(count_of("finalizers", NULL), 1);
	assert_int_equal(count_of("cleanups", NULL), 1);
}

/* Nobody can see what it does, so it counts. */
static void a_running_finalizer_is_the_programs(void **state)
{
	(void)state;
	running(1)->g.startpc = GORIGIN_FINALIZERS;
	running(2)->g.startpc = GORIGIN_CLEANUPS;
	running(3)->g.startpc = GORIGIN_SYSTEM;
	look();
	assert_int_equal(count_of("[running]", "main.begun"), 1);
	assert_true(says("hits: 1 goroutines"));
}

/* Go's tools show it so: it runs, and where it began. */
static void one_that_runs_is_where_it_began(void **state)
{
	(void)state;
	running(1);
	running(2);
	look();
	assert_int_equal(count_of("[running]", "main.begun"), 2);
	assert_true(says("running: 2 goroutines, whose stacks cannot be read"));
	assert_int_equal(prof_loss(prof)->n[LOSS_STACKS_BROKEN], 0);
}

/* ---- labels ---- */

static void labels_are_its_own(void **state)
{
	struct rtlabel sets[] = { { 0, 2 }, { 4, 6 }, { 8, 10 } };
	char bytes[] = "a\0b\0c\0d\0e\0f";
	struct rtlabels labels = { .at = { .at = sets, .n = 3 },
				   .text = { .at = bytes, .n = sizeof(bytes) } };
	const struct strtab *strings;
	struct prof_sample_view s;

	(void)state;
	add(1)->g.labels = (struct rtlabel_set){ .first = 1, .n = 2, .cut = true };
	w.at[0].g.text = &labels;
	add(2);
	look();
	strings = prof_strings(prof);
	assert_int_equal(prof_nsamples(prof), 2);
	s = prof_sample_at(prof, 0);
	assert_int_equal(s.nlabels, 2);
	for (size_t i = 0; i < 2; i++) {
		bool first = !strcmp(strtab_get(strings, s.labels[i].key), "c");

		assert_string_equal(strtab_get(strings, s.labels[i].key), first ? "c" : "e");
		assert_string_equal(strtab_get(strings, s.labels[i].str), first ? "d" : "f");
	}
	assert_int_equal(prof_sample_at(prof, 1).nlabels, 0);
	assert_int_equal(prof_loss(prof)->n[LOSS_LABELS_CUT], 1);
}

/* ---- how long it has waited ---- */

/* A goroutine that waits at both looks, which are 10 s apart; @change happens meanwhile. */
static uint64_t seen_after(void (*change)(struct person *p))
{
	struct person *p = add(1);

	p->g.seq = 5;
	p->g.waitreason = 14;
	start();
	ntold = 0;
	w.now += 10 * NS_PER_S;
	if (change)
		change(p);
	stop();
	assert_int_equal(ntold, 1);
	assert_int_equal(told[0].now_ns, 60 * NS_PER_S);
	return told[0].seen_ns;
}

static void one_that_stayed_has_waited_since(void **state)
{
	(void)state;
	assert_int_equal(seen_after(NULL), 10 * NS_PER_S);
	assert_false(says("waiting:"));
}

static void moves_on(struct person *p)
{
	p->g.pc++;
}

static void goes_deeper(struct person *p)
{
	p->g.sp -= 8;
}

static void ran_meanwhile(struct person *p)
{
	p->g.seq++;
}

static void waits_for_another_thing(struct person *p)
{
	p->g.waitreason++;
}

static void is_in_a_system_call(struct person *p)
{
	p->g.status = GSTATUS_SYSCALL;
}

static void is_another_one(struct person *p)
{
	p->g.goid++;
}

static void one_that_moved_has_not(void **state)
{
	static void (*const changes[])(struct person * p) = {
		moves_on,
		goes_deeper,
		ran_meanwhile,
		waits_for_another_thing,
		is_in_a_system_call,
		is_another_one,
	};

	for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
		assert_int_equal(seen_after(changes[i]), 0);
		assert_true(
			says("waiting: 1 goroutines; for 1 of them it is not known since when"));
		tear_down(state);
		set_up(state);
	}
}

/* What does not wait has not waited, whatever it looks like. */
static void one_that_does_not_wait_has_not(void **state)
{
	(void)state;
	add(1)->g.status = GSTATUS_RUNNABLE;
	running(2)->g.status = GSTATUS_WAITING; /* it stopped while it was read */
	start();
	w.now += 10 * NS_PER_S;
	ntold = 0;
	w.at[0].g.status = GSTATUS_WAITING; /* it begins to, with the same registers */
	stop();
	assert_int_equal(ntold, 2);
	assert_int_equal(told[0].seen_ns, 0);
	assert_int_equal(told[1].seen_ns, 0);
	assert_true(says("waiting: 1 goroutines; for 1 of them"));
}

/* One that stayed from a command's first look to a later one has waited for the time between them, at least. */
static void a_command_is_seen_waiting_as_well(void **state)
{
	(void)state;
	opts.held = true;
	add(1);
	start();
	tick_after(100);
	assert_int_equal(told[0].seen_ns, 0);
	tick_after(1000);
	assert_int_equal(ntold, 2);
	assert_true(told[1].seen_ns >= NS_PER_S);
	w.alive = -ESRCH;
	stop();
	assert_false(says("waiting:"));
}

/* Since the first look that worked, and not since the command began. */
static void what_was_not_seen_is_not_told_as_waiting(void **state)
{
	(void)state;
	opts.held = true;
	add(1);
	start();
	w.alive = -EAGAIN;
	for (int i = 0; i < 10; i++)
		tick_after(100);
	w.alive = 0;
	tick_after(100);
	ntold = 0;
	tick_after(1000);
	assert_int_equal(ntold, 1);
	assert_true(told[0].seen_ns >= NS_PER_S && told[0].seen_ns < 2 * NS_PER_S);
	w.alive = -ESRCH;
	stop();
}

/* System calls and goroutines that wait for ever wait, too. Of some the runtime knows since when. */
static void who_waits_is_counted(void **state)
{
	(void)state;
	add(1)->g.status = GSTATUS_SYSCALL;
	w.at[0].g.syscall = true;
	add(2)->g.status = GSTATUS_LEAKED;
	add(3)->g.waitsince = 5;
	add(4)->g.status = GSTATUS_PREEMPTED;
	add(5);
	look();
	assert_true(says("waiting: 4 goroutines; for 3 of them it is not known since when"));
}

/* ---- stacks that could not be followed ---- */

/* A stack that makes no sense is read again. If it never does, it counts all the same. */
static void what_makes_no_sense_is_read_again(void **state)
{
	(void)state;
	add(1)->nonsense = 2;
	add(2)->ends = UNWIND_BROKEN;
	w.at[1].nonsense = 1;
	w.at[1].func = "main.broken";
	look();
	assert_true(says("hits: 2 goroutines; read again because they moved: 3"));
	assert_int_equal(count_of("main.wait", NULL), 1);
	assert_int_equal(count_of("main.broken", NULL), 1);
	assert_int_equal(prof_loss(prof)->n[LOSS_STACKS_BROKEN], 1);
	assert_int_equal(prof_loss(prof)->n[LOSS_STACKS_CUT], 0);
	assert_int_equal(told[0].end, UNWIND_WHOLE);
	assert_int_equal(told[1].end, UNWIND_BROKEN);
}

/* A stack may end before its root only where not all of its bytes were read. */
static void a_stack_is_cut_where_its_bytes_were(void **state)
{
	(void)state;
	add(1)->ends = UNWIND_CUT;
	w.at[0].g.cut = true;
	add(2)->ends = UNWIND_CUT;
	w.at[1].nonsense = 1;
	look();
	assert_int_equal(prof_loss(prof)->n[LOSS_STACKS_CUT], 1);
	assert_int_equal(prof_loss(prof)->n[LOSS_STACKS_BROKEN], 1);
	assert_int_equal(told[0].end, UNWIND_CUT);
	assert_int_equal(told[1].end, UNWIND_BROKEN);
}

/* Go's own profile has no more of it, so nothing is lost. */
static void a_deep_stack_is_no_loss(void **state)
{
	(void)state;
	add(1)->deep = true;
	add(2)->deep = true;
	w.at[1].ends = UNWIND_BROKEN;
	add(3);
	look();
	assert_true(says("deeper: 2 stacks have their first 128 calls, as in Go's own profile"));
	assert_int_equal(prof_loss(prof)->n[LOSS_STACKS_BROKEN], 0);
}

static void what_could_not_be_read_is_told(void **state)
{
	(void)state;
	add(1);
	w.seen = (struct rtgors_seen){ .torn = 3, .bad = 2, .again = 40, .spread_ns = 1500000 };
	look();
	assert_int_equal(prof_loss(prof)->n[LOSS_GOROUTINES_TORN], 3);
	assert_int_equal(prof_loss(prof)->n[LOSS_GOROUTINES_SKIPPED], 2);
	assert_true(says("its goroutines were read within 1.500 ms"));
	assert_true(says("read again because they moved: 40"));
	assert_false(says("running:") || says("deeper:") || says("text:"));
}

/* Text is made only for the format that shows it. */
static void text_is_made_when_it_is_asked_for(void **state)
{
	(void)state;
	add(1);
	opts.text = false;
	look();
	assert_int_equal(ntold, 0);
	assert_int_equal(prof_ntext(prof), 0);
	assert_int_equal(count_of("main.wait", NULL), 1);
}

/* There are as many lines as a text may have, or one more; those who are there after that have no block. */
static void a_text_ends_somewhere(void **state)
{
	(void)state;
	block_lines = LIMIT_TEXT_LINES / 2;
	for (uint64_t goid = 1; goid <= 5; goid++)
		add(goid);
	look();
	assert_int_equal(ntold, 3);
	assert_int_equal(count_of("main.wait", NULL), 5);
	assert_true(says("text: 2 goroutines have no block: it ends after 16777216 lines"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(no_window_is_one_look),
		TEST(the_end_of_a_window_is_looked_at),
		TEST(a_window_that_ended_at_once_is_one_look),
		TEST(a_window_of_unknown_length_is_a_window),
		TEST(a_program_that_went_is_as_it_was),
		TEST(a_program_that_goes_meanwhile_is_as_it_was),
		TEST(a_look_that_fails_at_the_end_is_an_error),
		TEST(nothing_is_polled),
		TEST(a_command_is_looked_at_when_it_runs),
		TEST(long_looks_are_less_frequent),
		TEST(a_command_may_begin_late),
		TEST(a_command_that_ends_at_once_was_not_seen),
		TEST(without_its_list_there_is_no_profile),
		TEST(a_program_that_is_gone_has_no_profile),
		TEST(offsets_are_verified_first),
		TEST(each_goroutine_of_the_program_is_one),
		TEST(finalizers_and_cleanups_are_the_programs),
		TEST(a_running_finalizer_is_the_programs),
		TEST(one_that_runs_is_where_it_began),
		TEST(labels_are_its_own),
		TEST(one_that_stayed_has_waited_since),
		TEST(one_that_moved_has_not),
		TEST(one_that_does_not_wait_has_not),
		TEST(a_command_is_seen_waiting_as_well),
		TEST(what_was_not_seen_is_not_told_as_waiting),
		TEST(who_waits_is_counted),
		TEST(what_makes_no_sense_is_read_again),
		TEST(a_stack_is_cut_where_its_bytes_were),
		TEST(a_deep_stack_is_no_loss),
		TEST(what_could_not_be_read_is_told),
		TEST(text_is_made_when_it_is_asked_for),
		TEST(a_text_ends_somewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
