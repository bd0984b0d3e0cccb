/* tests/unit/test_wait.c - what a wait profile tells: whose waits, for what, and what was not seen. */
#include "wait_fakes.h"

static struct wait *w;

static int set_up(void **state)
{
	(void)state;
	begin_world();
	return wait_new(&subject, &o, &w, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	wait_free(w);
	assert_true(en.inits == 0 && open_profiles == 0);
	return 0;
}

/* A call may be the last instruction of its function: where it returns to is the next one's. */
static uint64_t returns_to(const char *func)
{
	assert_true(t.nnames < FUNCS_MAX);
	t.names[t.nnames++] = func;
	return TEXT + t.nnames * FUNC_BYTES;
}

/* Frames innermost first, up to NULL. */
static struct gpb_stack stack_of(unsigned kind, unsigned reason, const char *const *funcs)
{
	struct gpb_stack st = { .count = GPB_COUNT_ONE, .delay = 1000 };

	st.wait.kind = (uint8_t)kind;
	st.wait.reason = (uint8_t)reason;
	for (; *funcs; funcs++)
		st.pc[st.nfirst++] = returns_to(strcmp(*funcs, "?") ? *funcs : NULL);
	return st;
}

static void add(const struct gpb_stack *st)
{
	assert_int_equal(wait_window_add(&w->window, st, NULL), 0);
}

#define STACK(kind, reason, ...) stack_of(kind, reason, (const char *const[]){ __VA_ARGS__, NULL })
#define ADD(kind, reason, ...)                                           \
	do {                                                             \
		struct gpb_stack st_ = STACK(kind, reason, __VA_ARGS__); \
		add(&st_);                                               \
	} while (0)

static const struct prof *finish(void)
{
	if (wait_finish(w, &err))
		fail_msg("%s", err.msg);
	return w->out.prof;
}

/* The label of that key; NULL: it has none. */
static const char *label_of(const struct prof *p, size_t i, const char *key)
{
	struct prof_sample_view v = prof_sample_at(p, i);
	const struct strtab *s = prof_strings(p);

	for (size_t k = 0; k < v.nlabels; k++)
		if (!strcmp(strtab_get(s, v.labels[k].key), key))
			return strtab_get(s, v.labels[k].str);
	return NULL;
}

/* ---- for what ---- */

static void each_sample_says_what_was_waited_for(void **state)
{
	const struct prof *p;

	(void)state;
	ADD(GPB_G_WAITING, 19, "runtime.gopark", "main.wait");
	ADD(GPB_G_RUNNABLE, 19, "runtime.gopark", "main.wait"); /* of what made it runnable */
	ADD(GPB_G_SYSCALL, 0, "syscall.read", "main.read");
	p = finish();
	assert_int_equal(prof_nsamples(p), 3);
	assert_string_equal(label_of(p, 0, "reason"), "reason 19 of 1.27");
	assert_string_equal(label_of(p, 1, "reason"), "runnable");
	assert_string_equal(label_of(p, 2, "reason"), "syscall");
}

/* A program may call a label of its own so. */
static void a_programs_own_labels_stay(void **state)
{
	const struct prof *p;

	(void)state;
	t.label[0] = (struct prof_label){ .key = "reason", .str = "backup" };
	t.label[1] = (struct prof_label){ .key = "user", .str = "eve" };
	t.nlabels = 2;
	ADD(GPB_G_SYSCALL, 0, "syscall.read", "main.read");
	p = finish();
	assert_string_equal(label_of(p, 0, "reason"), "syscall");
	assert_string_equal(label_of(p, 0, "reason (label)"), "backup");
	assert_string_equal(label_of(p, 0, "user"), "eve");
	assert_int_equal(w->loss.n[LOSS_LABELS_CUT], 1); /* as labelsets_of() has it */
}

static void waits_alike_are_one_sample(void **state)
{
	struct gpb_stack st = STACK(GPB_G_WAITING, 19, "runtime.gopark", "main.wait");
	const struct prof *p;

	(void)state;
	add(&st);
	st.count = 3 * GPB_COUNT_ONE / 2;
	add(&st);
	p = finish();
	assert_int_equal(prof_nsamples(p), 1);
	assert_int_equal(prof_sample_at(p, 0).values[0], 5 * GPB_COUNT_ONE / 2);
	assert_int_equal(prof_sample_at(p, 0).values[1], 2000);
}

/* ---- whose ---- */

/* Is a goroutine with this stack shown? */
static bool shown(const struct gpb_stack *st)
{
	struct wait_window *k = &w->window;
	bool is;

	add(st);
	is = !k->engine.tally.sites.at[k->engine.tally.sites.n - 1].whole;
	assert_int_equal(k->engine.tally.entries.at[k->engine.tally.entries.n - 1].site,
			 k->engine.tally.sites.n - 1);
	return is;
}

#define SHOWN(...)                                                           \
	({                                                                   \
		struct gpb_stack st_ = STACK(GPB_G_WAITING, 1, __VA_ARGS__); \
		shown(&st_);                                                 \
	})

static void the_runtimes_own_goroutines_are_left_out(void **state)
{
	(void)state;
	assert_false(SHOWN("runtime.gopark", "runtime.bgsweep", "runtime.goexit"));
	assert_false(SHOWN("runtime.gopark", "runtime.bgsweep"));
	assert_false(SHOWN("internal/runtime/syscall.EpollWait", "runtime.netpoll",
			   "runtime.sysmon", "runtime.goexit"));
	assert_false(
		SHOWN("runtime/internal/syscall.EpollWait", "runtime.sysmon", "runtime.goexit"));
}

static void the_programs_goroutines_are_shown(void **state)
{
	(void)state;
	assert_true(SHOWN("runtime.gopark", "main.worker", "runtime.goexit"));
	assert_true(SHOWN("runtime.gopark", "main.main", "runtime.main", "runtime.goexit"));
	/* All that it does by itself is to wait for the end of main.init, say. */
	assert_true(SHOWN("runtime.gopark", "runtime.main", "runtime.goexit"));
	/* The name only begins alike. */
	assert_true(SHOWN("runtime.gopark", "runtime/trace.Start.func1", "runtime.goexit"));
	assert_true(SHOWN("runtime.gopark", "?"));
}

/* A finalizer is the program's, who runs it is not. */
static void what_the_program_gave_the_runtime_is_shown(void **state)
{
	(void)state;
	assert_true(SHOWN("runtime.gopark", "main.finalize", "runtime.runFinalizers",
			  "runtime.goexit"));
	assert_true(SHOWN("runtime.gopark", "?", "runtime.runFinalizers", "runtime.goexit"));
	assert_true(SHOWN("runtime.gopark", "runtime/debug.x", "runtime.runFinalizers",
			  "runtime.goexit"));
	assert_false(SHOWN("runtime.gopark", "runtime.runFinalizers", "runtime.goexit"));
}

/* Nobody knows how it began. */
static void a_stack_that_was_cut_is_shown(void **state)
{
	struct gpb_stack st = STACK(GPB_G_WAITING, 1, "runtime.gopark", "runtime.bgsweep");

	(void)state;
	st.flags = GPB_STACK_CUT;
	assert_true(shown(&st));
}

/* What follows the system stack decides. Frames of the kernel do not. */
static void both_parts_of_a_stack_are_looked_at(void **state)
{
	struct gpb_stack st = STACK(GPB_G_WAITING, 1, "runtime.mcall", "runtime.gopark",
				    "main.worker", "runtime.goexit");

	(void)state;
	st.nfirst = 1;
	st.nsecond = 3;
	assert_true(shown(&st));
	st = STACK(GPB_G_WAITING, 1, "schedule", "runtime.gopark", "runtime.bgsweep");
	st.nkernel = 1;
	st.nfirst = 2;
	assert_false(shown(&st));
}

static void how_many_are_left_out_is_said(void **state)
{
	const struct prof *p;

	(void)state;
	ADD(GPB_G_WAITING, 1, "runtime.gopark", "runtime.bgsweep");
	ADD(GPB_G_WAITING, 2, "runtime.gopark", "runtime.bgscavenge");
	ADD(GPB_G_WAITING, 3, "runtime.gopark", "main.worker");
	p = finish();
	assert_int_equal(prof_nsamples(p), 1);
	assert_true(says(p, "the runtime's own goroutines are left out: 2 stacks"));
}

/* ---- what was seen ---- */

static void what_was_seen_is_told(void **state)
{
	const struct prof *p;

	(void)state;
	en.seen.ended[GPB_G_WAITING] = 100;
	en.seen.sampled[GPB_G_WAITING] = 10;
	en.seen.ended[GPB_G_SYSCALL] = 200;
	en.seen.sampled[GPB_G_SYSCALL] = 20;
	en.seen.ended[GPB_G_RUNNABLE] = 300;
	en.seen.sampled[GPB_G_RUNNABLE] = 30;
	en.seen.ended[GPB_G_RUNNING] = en.seen.begun_before[GPB_G_RUNNING] = 4000; /* no wait */
	p = finish();
	assert_true(says(p, "hits: ended and sampled: 100 and 10 waits of parked goroutines, 200 "
			    "and 20 system calls, 300 and 30 times runnable"));
	assert_false(says(p, "early:") || says(p, "unseen:") || says(p, "left out"));
	assert_int_equal(w->loss.n[LOSS_WAITS_UNSEEN], 0);
}

static void what_was_not_seen_is_told(void **state)
{
	const struct prof *p;

	(void)state;
	en.seen.begun_before[GPB_G_WAITING] = 1;
	en.seen.begun_before[GPB_G_SYSCALL] = 20;
	en.seen.begun_before[GPB_G_RUNNABLE] = 300;
	en.seen.unseen = 5;
	en.seen.lost = 6;
	w->window.engine.result.beyond = 7;
	p = finish();
	assert_true(says(p, "early: 321 waits ended that had begun before the window"));
	assert_true(says(p, "unseen: 5 changes"));
	assert_int_equal(w->loss.n[LOSS_WAITS_UNSEEN], 6);
	assert_int_equal(w->loss.n[LOSS_WAITS_UNKNOWN], 7);
}

/* Then what had begun before is that of each window, and says nothing. */
static void in_windows_nothing_is_early(void **state)
{
	(void)state;
	en.seen.begun_before[GPB_G_WAITING] = 1;
	w->window.engine.windowed = true;
	assert_false(says(finish(), "early:"));
}

static void what_cannot_be_read_is_an_error(void **state)
{
	(void)state;
	en.seen_fails = -EBADMSG;
	assert_int_equal(wait_finish(w, &err), -EBADMSG);
	assert_string_equal(err.msg, "no table");
}

/* ---- who waits on ---- */

static void who_still_waits_is_told(void **state)
{
	const struct prof *p;

	(void)state;
	t.left = (struct wait_left){ .syscall = 1, .runnable = 3, .sum = 16 };
	t.left.waiting[19] = 5;
	t.left.waiting[2] = 7;
	p = finish();
	assert_true(says(p, "waiting: 16 goroutines waited when the window ended (reason 2 of 1.27 "
			    "7, reason 19 of 1.27 5, syscall 1, runnable 3): what has not ended is "
			    "not counted"));
	assert_string_equal(t.told,
			    "wait: not counted: 16 goroutines that still waited at the end");
}

static void nobody_waits(void **state)
{
	(void)state;
	assert_false(says(finish(), "waiting:"));
	assert_string_equal(t.told, "");
}

static void who_only_runs_or_calls_is_told_alike(void **state)
{
	(void)state;
	t.left = (struct wait_left){ .runnable = 3, .sum = 3 };
	assert_true(says(finish(), "(runnable 3)"));
}

static void it_is_told_alike_of_calls(void **state)
{
	(void)state;
	t.left = (struct wait_left){ .syscall = 3, .sum = 3 };
	assert_true(says(finish(), "(syscall 3)"));
}

/* There is room for some of them, and the number is that of all. */
static void many_reasons_are_cut(void **state)
{
	(void)state;
	for (size_t i = 0; i < WAIT_REASONS; i++)
		t.left.waiting[i] = 1;
	t.left.syscall = t.left.runnable = 1;
	t.left.sum = WAIT_REASONS + 2;
	assert_true(says(finish(), "waiting: 258 goroutines waited when the window ended (reason 0 "
				   "of 1.27 1, reason 1 of 1.27 1, "));
}

static void of_one_that_has_exited_it_is_not_known(void **state)
{
	(void)state;
	t.gone = -ESRCH;
	assert_true(
		says(finish(), "waiting: who still waited at the end is not known: it has exited"));
}

/* The profile is made all the same. */
static void offsets_of_goroutines_may_not_be_known(void **state)
{
	(void)state;
	wait_free(w);
	t.who_unsure = -ENOTSUP;
	assert_int_equal(wait_new(&subject, &o, &w, NULL), 0);
	t.left.sum = 16;
	assert_true(says(finish(), "is not known: offsets are not known"));
}

/* ---- how it was made ---- */

static void a_profile_says_how_it_was_made(void **state)
{
	struct prof_header_view h;
	const struct prof *p;

	(void)state;
	w->start = 10 * SEC;
	w->end = 10 * SEC + SEC / 4;
	w->start_unix_ns = 77;
	w->nsites = 3;
	p = finish();
	h = prof_header(p);
	assert_true(says(p, "source: probe (uprobes on changes of a goroutine's status)"));
	assert_true(says(p, "window: 0.250 s"));
	assert_true(says(p, "rate: waits of 10000 ns and longer, shorter ones in proportion"));
	assert_true(says(p, "probes: 3 (perf uprobes)"));
	assert_true(says(p, "budget: receipt"));
	assert_true(h.time_ns == 77 && h.duration_ns == SEC / 4 && h.period == 10000);
	assert_string_equal(strtab_get(prof_strings(p), h.period_type.type), "delay");
	assert_string_equal(strtab_get(prof_strings(p), h.default_type), "delay");
}

static void one_link_may_hold_all_probes(void **state)
{
	(void)state;
	w->nsites = 3;
	w->window.engine.object.multi = true;
	assert_true(says(finish(), "probes: 3 (one multi link)"));
}

/* The rate that was used: it may have become finer than what was asked for. */
static void the_rate_is_the_one_that_was_used(void **state)
{
	const struct prof *p;

	(void)state;
	w->window.engine.o.wait.rate_ns = 500;
	p = finish();
	assert_true(says(p, "rate: waits of 500 ns"));
	assert_int_equal(prof_header(p).period, 500);
}

/* ---- windows ---- */

static void full_observation_has_no_errors(void **state)
{
	const struct prof *p;

	(void)state;
	ADD(GPB_G_WAITING, 3, "main.worker");
	p = finish();
	assert_false(says(p, "error:") || says(p, "delays"));
}

static void windows_have_errors(void **state)
{
	struct wait_engine *e = &w->window.engine;
	const struct prof *p;
	struct gpb_stack st;

	(void)state;
	en.windowed = true;
	st = STACK(GPB_G_WAITING, 3, "main.worker", "runtime.goexit");
	for (uint64_t i = 0; i < 2;
	     i++) { /* with 50 waits and with 150, which stand for 10 times as many */
		st.count = (50 + 100 * i) * GPB_COUNT_ONE;
		st.delay = 500 + 1000 * i;
		assert_int_equal(tally_add(&e->tally, &st, GPB_WAIT_SHORT, NULL), 0);
		tally_window(&e->tally, &(struct tally_window){ .weight = 10 });
	}
	snprintf(e->why.msg, sizeof(e->why.msg), "offsets are missing");
	p = finish();
	assert_true(says(p, "error: all sites contentions 2000 +- 1000 (50.0%)"));
	assert_true(says(p, "main.worker main.go:7 contentions 2000 +- 1000 "));
	assert_true(says(p, "error: all sites delay 20000 +- 10000 (50.0%)"));
	assert_true(says(p, "not counted: offsets are missing"));
	assert_false(says(p, "looks from outside") || says(p, "began to run"));
}

static void windows_have_looks(void **state)
{
	struct wait_engine *e = &w->window.engine;
	const struct prof *p;

	(void)state;
	en.windowed = true;
	e->result = (struct looks_result){ .looks = 4711, .stratum_ns = 2e6 };
	e->cut = 12;
	p = finish();
	assert_true(says(p, "by 4711 looks from outside"));
	assert_true(says(p, "system calls: all counted by windows"));
	assert_true(says(p, "cut: 12 waits"));
}

/* What is lost beside waits of 3 ms that have a stack. */
static uint64_t unplaced(double lost_ns)
{
	struct wait_engine *e = &w->window.engine;
	struct gpb_stack st = STACK(GPB_G_WAITING, 3, "main.worker", "runtime.goexit");

	en.windowed = true;
	st.delay = 3000000;
	assert_int_equal(tally_add(&e->tally, &st, GPB_WAIT_SHORT, NULL), 0);
	tally_window(&e->tally, &(struct tally_window){ .weight = 1 });
	e->result = (struct looks_result){ .looks = 1, .lost_ns = lost_ns };
	finish();
	return w->loss.n[LOSS_WAITS_UNPLACED];
}

/* Goroutines that end before anybody reads their stacks. */
static void waits_of_which_none_has_a_stack_are_a_loss(void **state)
{
	(void)state;
	en.windowed = true;
	w->window.engine.result = (struct looks_result){ .looks = 1, .lost_ns = 2262458688.2 };
	assert_true(says(finish(), "lost: waits of 2262.459 ms"));
	assert_int_equal(w->loss.n[LOSS_WAITS_UNPLACED], 2263);
}

static void few_waits_without_a_stack_are_no_loss(void **state)
{
	(void)state;
	assert_int_equal(unplaced(1e6), 0);
}

static void many_waits_without_a_stack_are_a_loss(void **state)
{
	(void)state;
	assert_int_equal(unplaced(1.1e6), 2);
}

/* Goroutines ran a thousand times as often as in any window, for half of the time. */
static void unmet(bool swept)
{
	struct run_rates *r = &w->window.engine.slow.rates;
	char expected[64];
	uint64_t n;
	const struct prof *p;

	en.windowed = true;
	run_rates_window(r, 50, 50e6, 500e6);
	for (int i = 0; i < 100; i++) {
		(swept ? run_rates_swept : run_rates_step)(r, 5, 5e6);
		(swept ? run_rates_swept : run_rates_step)(r, 5000, 5e6);
	}
	w->window.engine.slow.switches = 500500;
	n = (uint64_t)dilation_unmet(&w->window.engine.slow);
	assert_true(n > 400000 && n <= 500000);
	snprintf(expected, sizeof(expected), "began to run about %llu times",
		 (unsigned long long)n);
	p = finish();
	assert_true(says(p, expected));
	assert_int_equal(says(p, "may be its yields"), swept);
	assert_int_equal(w->loss.n[LOSS_RUNS_UNMET], n);
}

static void a_storm_that_no_window_met_is_a_loss(void **state)
{
	(void)state;
	unmet(false);
}

/* A program that collects garbage all the time: the loss is the same, and its probable cause is told. */
static void it_may_be_the_sweepers(void **state)
{
	(void)state;
	unmet(true);
}

static void in_full_observation_no_window_is_missing(void **state)
{
	struct run_rates *r = &w->window.engine.slow.rates;

	(void)state;
	run_rates_window(r, 50, 50e6, 500e6);
	for (int i = 0; i < 100; i++)
		run_rates_step(r, 5000, 5e6);
	w->window.engine.slow.switches = 500000;
	assert_false(says(finish(), "began to run"));
	assert_int_equal(w->loss.n[LOSS_RUNS_UNMET], 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_sample_says_what_was_waited_for),
		TEST(a_programs_own_labels_stay),
		TEST(waits_alike_are_one_sample),
		TEST(the_runtimes_own_goroutines_are_left_out),
		TEST(the_programs_goroutines_are_shown),
		TEST(what_the_program_gave_the_runtime_is_shown),
		TEST(a_stack_that_was_cut_is_shown),
		TEST(both_parts_of_a_stack_are_looked_at),
		TEST(how_many_are_left_out_is_said),
		TEST(what_was_seen_is_told),
		TEST(what_was_not_seen_is_told),
		TEST(in_windows_nothing_is_early),
		TEST(what_cannot_be_read_is_an_error),
		TEST(who_still_waits_is_told),
		TEST(nobody_waits),
		TEST(who_only_runs_or_calls_is_told_alike),
		TEST(it_is_told_alike_of_calls),
		TEST(many_reasons_are_cut),
		TEST(of_one_that_has_exited_it_is_not_known),
		TEST(offsets_of_goroutines_may_not_be_known),
		TEST(a_profile_says_how_it_was_made),
		TEST(one_link_may_hold_all_probes),
		TEST(the_rate_is_the_one_that_was_used),
		TEST(full_observation_has_no_errors),
		TEST(windows_have_errors),
		TEST(windows_have_looks),
		TEST(waits_of_which_none_has_a_stack_are_a_loss),
		TEST(few_waits_without_a_stack_are_no_loss),
		TEST(many_waits_without_a_stack_are_a_loss),
		TEST(a_storm_that_no_window_met_is_a_loss),
		TEST(it_may_be_the_sweepers),
		TEST(in_full_observation_no_window_is_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
