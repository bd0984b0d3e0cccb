/*
 * tests/unit/test_engine.c - the lives of targets in an engine: slots and generations, windows one
 * after another, ends and execs. Processes, files and the kinds of profile are engine_fakes.h's.
 */
#include "engine_fakes.h"
#include "probe/uprobes/attacher.h"

/* ---- the tests ---- */

static bool k_probed(const void *kept)
{
	return kept;
}

/* Two that probe, and look at what they probe: alone, or by the same probes. */
static struct engine_kind probing, probing_too;

static struct engine *en;
static struct {
	pid_t pid;
	uint32_t slot;
	enum engine_state state;
	uint64_t cpu_ns;
} sunk[PIDS];
static size_t nsunk;

static void sink(void *arg, const struct engine_target *t, const struct engine_result *results)
{
	(void)arg;
	assert_non_null(results[0].prof);
	assert_null(results[0].failed);
	assert_true(t->until_ns >= t->since_ns);
	sunk[nsunk].pid = t->id.pid;
	sunk[nsunk].slot = t->slot;
	sunk[nsunk].cpu_ns = t->cpu_ns;
	sunk[nsunk++].state = t->state;
}

static const struct engine_kind *const only = &kind;

static int setup(void **state)
{
	struct collect_opts o = { 0 };

	(void)state;
	memset(procs, 0, sizeof(procs));
	k = other = (struct kind){ 0 };
	nsunk = 0;
	return engine_open(&o, &only, 1, 4, &en, NULL);
}

static int setup_bounded(void **state)
{
	struct collect_opts o = { .host.taken_ppm = 50000 };

	setup(state);
	engine_free(en);
	return engine_open(&o, &only, 1, 4, &en, NULL);
}

static int teardown(void **state)
{
	(void)state;
	engine_free(en);
	for (int i = 0; i < PIDS; i++)
		if (procs[i].opened)
			close(procs[i].fd);
	return open_subjects;
}

static struct target *held(pid_t pid)
{
	struct target *t = calloc(1, sizeof(*t));

	t->pid = pid;
	return t;
}

static uint32_t add(pid_t pid)
{
	const struct engine_target *t;

	assert_int_equal(engine_add(en, held(pid), NULL, &t, NULL), 0);
	return t->slot;
}

static void end_window(void)
{
	nsunk = 0;
	assert_int_equal(engine_end(en, sink, NULL, NULL), 0);
}

static void windows_follow_each_other(void **state)
{
	(void)state;
	add(1);
	add(2);
	for (int i = 1; i <= 3; i++) {
		assert_int_equal(engine_begin(en, NULL), 0);
		assert_int_equal(engine_tick(en, NULL), 0);
		end_window();
		assert_int_equal(nsunk, 2);
		assert_true(sunk[0].pid == 1 && sunk[1].pid == 2);
		assert_true(sunk[0].cpu_ns && sunk[0].cpu_ns < 1000000000);
		assert_int_equal(sunk[0].state, ENGINE_ON);
		assert_int_equal(k.forgotten, 2 * i);
		assert_int_equal(k.put, 2 * i);
	}
	assert_int_equal(k.opened, 1);
	assert_int_equal(procs[1].opened, 1);
}

static void one_that_ends_is_told_and_its_slot_is_given_again(void **state)
{
	uint32_t one = add(1), two = add(2);

	(void)state;
	assert_int_equal(engine_begin(en, NULL), 0);
	process_ends(1);
	assert_int_equal(engine_poll(en, NULL), 0);
	assert_int_equal(engine_targets(en), 1);
	assert_int_equal(k.removed, 1);
	end_window();
	assert_int_equal(nsunk, 2);
	assert_int_equal(sunk[0].state, ENGINE_ENDED);
	assert_int_equal(sunk[1].state, ENGINE_ON);
	assert_int_equal(engine_ntargets(en), 1);
	assert_int_equal(add(3), one + (1u << GPB_SLOT_GENERATION));
	assert_int_equal(engine_target_at(en, 0)->slot, two);
}

/* Whoever has its number by then has a clock, too. */
static void its_clock_is_not_read_once_the_number_is_free(void **state)
{
	const struct engine_target *t;
	uint64_t cpu_ns;

	(void)state;
	add(1);
	assert_int_equal(engine_begin(en, NULL), 0);
	assert_int_equal(engine_tick(en, NULL), 0);
	t = engine_target_at(en, 0);
	cpu_ns = t->cpu_ns;
	assert_true(t->cpu_exact && cpu_ns);
	procs[1].reaped = true;
	process_ends(1);
	assert_int_equal(engine_poll(en, NULL), 0);
	assert_true(!t->cpu_exact && t->cpu_ns == cpu_ns);
}

static void takes(uint64_t ms, int slowed)
{
	k.taken_ns += ms * 1000000;
	assert_int_equal(engine_tick(en, NULL), 0);
	assert_int_equal(k.slowed, slowed);
}

/* 5 % of a second are 50 ms, which may be taken ahead. What was taken before the window does not count. */
static void what_takes_too_much_is_slowed_down(void **state)
{
	(void)state;
	add(1);
	k.taken_ns = 1000000000;
	for (int i = 1; i <= 2; i++) {
		assert_int_equal(engine_begin(en, NULL), 0);
		k.slowed = 0;
		takes(40, 0);
		takes(15, 1);
		takes(40, 1); /* since then */
		takes(15, 2);
		assert_int_equal(engine_cost(en).slowed, 2);
		assert_int_equal(engine_cost(en).taken_ns, 110000000);
		end_window();
	}
}

static uint64_t prober_ns;

static uint64_t prober_taken_ns(void *state)
{
	(void)state;
	return prober_ns;
}

/* Probes have nine tenths of 5 %. */
static int setup_probing(void **state)
{
	static struct engine_kind prober;
	static const struct engine_kind *const both[] = { &kind, &prober };
	struct collect_opts o = { .host.taken_ppm = 50000 };

	prober = other_kind;
	prober.probes = true;
	prober.taken_ns = prober_taken_ns;
	setup(state);
	engine_free(en);
	return engine_open(&o, both, 2, 4, &en, NULL);
}

static void what_probes_take_in_bursts_slows_down_nobody_else(void **state)
{
	(void)state;
	add(1);
	assert_int_equal(engine_begin(en, NULL), 0);
	takes(4, 0);
	prober_ns += 100000000;
	takes(0, 0);
	assert_int_equal(engine_cost(en).taken_ns, 104000000);
	takes(2, 1); /* more than a tenth of 50 ms */
	takes(0, 1);
	assert_int_equal(engine_cost(en).slowed, 1);
}

static uint64_t helper_ns = 1000000;
uint64_t attacher_process_cpu_ns(const struct attacher_process *p)
{
	return p ? helper_ns : 0;
}

/* The process that keeps the probes works for us. */
static void what_the_helper_works_is_our_own(void **state)
{
	(void)state;
	add(1);
	assert_int_equal(engine_begin(en, NULL), 0);
	*k.attachers = (struct attacher_process *)&helper_ns;
	takes(0, 0); /* to slow that down would not help */
	assert_true(engine_cost(en).own_ns >= helper_ns);
}

/* Its slot is not given away in the same window: its samples are still in the tables. */
static void exec_makes_another_target(void **state)
{
	uint32_t first = add(1), second;

	(void)state;
	assert_int_equal(engine_begin(en, NULL), 0);
	engine_exec(en, 1, 99); /* the one after which it was opened */
	assert_int_equal(engine_targets(en), 1);
	procs[1].became = true;
	engine_exec(en, 1, 101);
	assert_int_equal(engine_targets(en), 0);
	procs[1].became = false;
	second = add(1);
	assert_int_not_equal(second & 0xffff, first & 0xffff);
	end_window();
	assert_int_equal(nsunk, 2);
	assert_true(sunk[0].state == ENGINE_BECAME && sunk[0].slot == first);
	assert_true(sunk[1].state == ENGINE_ON && sunk[1].slot == second);
}

/* Without ASLR the new program may look like the old one; who heard of the exec knows when it was. */
static void an_exec_is_believed_by_its_time(void **state)
{
	(void)state;
	add(1);
	assert_int_equal(engine_begin(en, NULL), 0);
	engine_exec(en, 1, 101);
	assert_int_equal(engine_targets(en), 0);
	end_window();
	assert_int_equal(sunk[0].state, ENGINE_BECAME);
}

/* A host has many processes, and each of them has but one descriptor here. */
static void one_that_is_observed_rests(void **state)
{
	const struct engine_target *t;

	(void)state;
	add(1);
	assert_true(engine_target_at(en, 0)->subject->target->resting);
	assert_int_equal(engine_add(en, held(2), NULL, &t, NULL), 0);
	assert_int_equal(t->id.pid, 2);
	assert_true(t->subject->target->resting);
	assert_int_equal(engine_begin(en, NULL), 0);
	assert_true(t->subject->target->resting);
	end_window();
	assert_true(t->subject->target->resting);
	assert_int_equal(engine_add(en, held(2), NULL, &t, NULL), -EEXIST);
	assert_int_equal(open_subjects, 2);
}

/* Whoever adds what it runs now has not heard of the exec before. */
static void one_that_called_exec_is_not_in_the_way(void **state)
{
	uint32_t first = add(1), second;

	(void)state;
	assert_int_equal(engine_begin(en, NULL), 0);
	procs[1].became = true;
	second = add(1);
	assert_int_not_equal(second & 0xffff, first & 0xffff);
	assert_int_equal(engine_targets(en), 1);
	end_window();
	assert_int_equal(nsunk, 2);
	assert_true(sunk[0].state == ENGINE_BECAME && sunk[1].state == ENGINE_ON);
}

static void an_exec_that_nobody_told_is_found(void **state)
{
	(void)state;
	add(1);
	add(2);
	assert_int_equal(engine_begin(en, NULL), 0);
	procs[2].became = true;
	assert_int_equal(engine_tick(en, NULL), 0);
	assert_int_equal(engine_targets(en), 1);
	end_window();
	assert_int_equal(sunk[1].state, ENGINE_BECAME);
}

static void what_cannot_be_observed_costs_itself_alone(void **state)
{
	const struct engine_target *t = NULL;
	struct err e = { "" };

	(void)state;
	add(1);
	assert_int_equal(engine_add(en, held(NOT_GO), NULL, &t, &e), -ENOENT);
	assert_string_equal(e.msg, "pid 666 is not a Go program");
	assert_int_equal(engine_add(en, held(1), NULL, &t, &e), -EEXIST);
	k.refuses = 5;
	assert_int_equal(engine_add(en, held(5), NULL, &t, &e), -ENOTSUP);
	assert_null(t);
	assert_int_equal(open_subjects, 1);
	assert_int_equal(engine_begin(en, NULL), 0);
	end_window();
	assert_int_equal(nsunk, 1);
	/* One that was observed may be refused in a later window. */
	k.refuses = 1;
	assert_int_equal(engine_begin(en, NULL), 0);
	assert_int_equal(engine_targets(en), 0);
}

static void there_are_so_many_slots(void **state)
{
	const struct engine_target *t;
	struct err e = { "" };

	(void)state;
	for (pid_t p = 1000; p < 1000 + GPB_CPU_TARGETS; p++)
		add(p);
	assert_true(engine_add(en, held(1999), NULL, &t, &e) == -E2BIG && engine_is_full(en));
	assert_int_equal(engine_begin(en, NULL), 0);
	end_window();
	assert_int_equal(nsunk, GPB_CPU_TARGETS);
	for (size_t i = 1; i < nsunk; i++)
		assert_int_not_equal(sunk[i].slot, sunk[i - 1].slot);
}

/* A host on which programs start and end all the time: their slots are given again within a window. */
static void those_that_ended_are_handed_over_in_between(void **state)
{
	uint32_t slots[ENGINE_REAP + 1];

	(void)state;
	for (pid_t p = 0; p <= ENGINE_REAP; p++)
		slots[p] = add(p + 1);
	assert_int_equal(engine_begin(en, NULL), 0);
	for (pid_t p = 1; p <= ENGINE_REAP; p++) {
		assert_int_equal(engine_reap(en, ENGINE_REAP, sink, NULL, NULL), 0);
		assert_int_equal(nsunk, 0);
		process_ends(p);
		assert_int_equal(engine_poll(en, NULL), 0);
	}
	assert_int_equal(engine_reap(en, ENGINE_REAP, sink, NULL, NULL), 0);
	assert_int_equal(nsunk, ENGINE_REAP);
	assert_int_equal(sunk[0].state, ENGINE_ENDED);
	assert_int_equal(k.drained, 1);
	assert_int_equal(k.stopped, 0);
	assert_int_equal(engine_ntargets(en), 1);
	assert_int_equal(open_subjects, 1);
	assert_int_equal(add(100), slots[0] + (1u << GPB_SLOT_GENERATION));
	end_window();
	assert_int_equal(nsunk, 2);
	assert_true(sunk[0].pid == ENGINE_REAP + 1 && sunk[1].pid == 100);
}

/* What the kernel tells of a process when its parent has reaped it is waited for, but not for ever. */
static void one_of_which_something_is_to_come_is_handed_over_later(void **state)
{
	(void)state;
	for (pid_t p = 1; p <= 3; p++)
		add(p);
	assert_int_equal(engine_begin(en, NULL), 0);
	k.awaited = 1;
	process_ends(1);
	assert_int_equal(engine_poll(en, NULL), 0);
	assert_int_equal(engine_reap(en, 1, sink, NULL, NULL), 0);
	assert_int_equal(nsunk, 0);
	assert_int_equal(k.drained, 0);
	process_ends(2);
	assert_int_equal(engine_poll(en, NULL), 0);
	assert_int_equal(engine_reap(en, 1, sink, NULL, NULL), 0);
	assert_true(nsunk == 1 && sunk[0].pid == 2);
	assert_int_equal(engine_ntargets(en), 2);
	k.awaited = 0;
	assert_int_equal(engine_reap(en, 1, sink, NULL, NULL), 0);
	assert_true(nsunk == 2 && sunk[1].pid == 1);
	k.awaited = 3;
	process_ends(3);
	assert_int_equal(engine_poll(en, NULL), 0);
	end_window();
	assert_true(nsunk == 1 && sunk[0].pid == 3);
	assert_int_equal(engine_ntargets(en), 0);
}

static void a_window_that_cannot_be_read_is_an_error(void **state)
{
	struct err e = { "" };

	(void)state;
	add(1);
	assert_int_equal(engine_begin(en, NULL), 0);
	k.drain_fails = 1;
	assert_int_equal(engine_end(en, sink, NULL, &e), -EIO);
	assert_int_equal(nsunk, 0);
}

/* ---- two kinds ---- */

static struct {
	bool prof[2];
	char failed[2][64];
	bool refused[2], probed[2];
} two[4];

static void sink_two(void *arg, const struct engine_target *t, const struct engine_result *results)
{
	(void)arg;
	for (int i = 0; i < 2; i++) {
		two[t->id.pid].prof[i] = results[i].prof;
		two[t->id.pid].refused[i] = results[i].refused;
		two[t->id.pid].probed[i] = results[i].probed;
		snprintf(two[t->id.pid].failed[i], sizeof(two[0].failed[0]), "%.60s",
			 results[i].failed ? results[i].failed->msg : "");
	}
	nsunk++;
}

static int setup_two(void **state)
{
	static const struct engine_kind *const both[] = { &kind, &other_kind };
	struct collect_opts o = { 0 };

	if (setup(state))
		return -1;
	engine_free(en);
	memset(two, 0, sizeof(two));
	return engine_open(&o, both, 2, 4, &en, NULL);
}

static void a_kind_that_cannot_leaves_the_target_to_the_others(void **state)
{
	const struct engine_target *t;
	struct err e = { "" };

	(void)state;
	k.refuses = 1;
	other.refuses = 2;
	add(1);
	add(2);
	add(3);
	other.fails = 3;
	k.refuses = other.refuses = 99;
	assert_int_equal(engine_add(en, held(99), NULL, &t, &e), -ENOTSUP);
	assert_string_equal(e.msg, "pid 99: not this one");
	assert_int_equal(engine_begin(en, NULL), 0);
	assert_int_equal(k.put, 2);
	assert_int_equal(other.put, 2);
	process_ends(1);
	assert_int_equal(engine_poll(en, NULL), 0);
	assert_int_equal(k.removed, 0);
	assert_int_equal(other.removed, 1);
	nsunk = 0;
	assert_int_equal(engine_end(en, sink_two, NULL, NULL), 0);
	assert_int_equal(nsunk, 3);
	assert_true(!two[1].prof[0] && two[1].prof[1] && two[1].refused[0] && !two[1].refused[1]);
	assert_string_equal(two[1].failed[0], "pid 1: not this one");
	assert_true(two[2].prof[0] && !two[2].prof[1] && two[2].refused[1]);
	assert_string_equal(two[2].failed[1], "pid 2: not this one");
	assert_true(two[3].prof[0] && !two[3].prof[1] && !two[3].refused[1]);
	assert_string_equal(two[3].failed[1], "pid 3: no profile");
	assert_int_equal(k.forgotten + other.forgotten, 4);
	/* in the next window, too */
	assert_int_equal(engine_begin(en, NULL), 0);
	assert_true(k.put == 4 && other.put == 3);
	assert_int_equal(k.stopped + other.stopped, 2);
	assert_int_equal(engine_end(en, sink_two, NULL, NULL), 0);
	assert_true(two[2].prof[0] && !two[2].prof[1] && two[2].refused[1]);
}

/* Its end is heard of a moment later. */
static void an_end_between_two_kinds_is_no_refusal(void **state)
{
	(void)state;
	other.ended = 1;
	add(1);
	assert_int_equal(engine_begin(en, NULL), 0);
	assert_int_equal(engine_end(en, sink_two, NULL, NULL), 0);
	assert_true(two[1].prof[0] && !two[1].prof[1]);
	assert_string_equal(two[1].failed[1], "");
}

/* What had no room in one window may have some in the next. */
static void what_was_full_is_tried_again(void **state)
{
	(void)state;
	k.full_for = 1;
	add(1);
	assert_int_equal(engine_begin(en, NULL), 0);
	assert_int_equal(engine_end(en, sink_two, NULL, NULL), 0);
	assert_true(two[1].refused[0] && !two[1].refused[1]);
	assert_string_equal(two[1].failed[0], "pid 1: there is no room");
	k.full_for = 0;
	assert_int_equal(engine_begin(en, NULL), 0);
	assert_int_equal(engine_end(en, sink_two, NULL, NULL), 0);
	assert_true(two[1].prof[0] && !two[1].refused[0]);
}

static void open_probing(const struct engine_kind *with)
{
	const struct engine_kind *const both[] = { &probing, &probing_too };
	const struct collect_opts o = { .host.own_ppm = 20000, .host.taken_ppm = 50000 };

	engine_free(en);
	probing_too = other_kind;
	probing_too.reads = probing_too.probes = true;
	probing_too.readers = 3;
	probing = probing_too;
	probing.arg = NULL;
	probing.probed = k_probed;
	probing_too.with = with;
	assert_int_equal(engine_open(&o, both, 2, 4, &en, NULL), 0);
}

static void probes_share_a_budget_and_tell_of_it(void **state)
{
	(void)state;
	open_probing(NULL);
	assert_true(!k.with && !other.with && k.attachers && k.attachers == other.attachers);
	assert_true(k.budget_ppm == 22500 && other.budget_ppm == 22500);
	assert_true(k.own == other.own && k.own->parts == 6);
	open_probing(&kind); /* which is not there */
	assert_true(!other.with && other.budget_ppm == 22500);
	open_probing(&probing);
	assert_true(!k.with && other.with == &k);
	assert_true(k.budget_ppm == 45000 && other.budget_ppm == 45000);
	assert_int_equal(k.own->parts, 3);
	add(1);
	assert_int_equal(engine_begin(en, NULL), 0);
	assert_true(k.own->part == 0.02 * OWN_READ_LEAST / 3); /* shared out */
	assert_int_equal(engine_end(en, sink_two, NULL, NULL), 0);
	assert_true(two[1].probed[0] && !two[1].probed[1]);
}

/* Whoever has something filed under the number of a file is asked before another file gets it. */
static void a_file_that_nobody_runs_is_forgotten_by_all(void **state)
{
	(void)state;
	assert_int_equal(engine_begin(en, NULL), 0);
	for (int keeps = 0; keeps < 2; keeps++) {
		k_keeps = keeps;
		k_forgot = 0;
		unused_number = 7;
		assert_int_equal(engine_tick(en, NULL), 0);
		assert_int_equal(k_forgot, 7);
		assert_int_equal(given_back, !keeps);
	}
	k_keeps = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(windows_follow_each_other, setup, teardown),
		cmocka_unit_test_setup_teardown(one_that_ends_is_told_and_its_slot_is_given_again,
						setup, teardown),
		cmocka_unit_test_setup_teardown(its_clock_is_not_read_once_the_number_is_free,
						setup, teardown),
		cmocka_unit_test_setup_teardown(what_takes_too_much_is_slowed_down, setup_bounded,
						teardown),
		cmocka_unit_test_setup_teardown(what_probes_take_in_bursts_slows_down_nobody_else,
						setup_probing, teardown),
		cmocka_unit_test_setup_teardown(what_the_helper_works_is_our_own, setup_bounded,
						teardown),
		cmocka_unit_test_setup_teardown(exec_makes_another_target, setup, teardown),
		cmocka_unit_test_setup_teardown(an_exec_is_believed_by_its_time, setup, teardown),
		cmocka_unit_test_setup_teardown(one_that_is_observed_rests, setup, teardown),
		cmocka_unit_test_setup_teardown(an_exec_that_nobody_told_is_found, setup, teardown),
		cmocka_unit_test_setup_teardown(one_that_called_exec_is_not_in_the_way, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_cannot_be_observed_costs_itself_alone, setup,
						teardown),
		cmocka_unit_test_setup_teardown(there_are_so_many_slots, setup, teardown),
		cmocka_unit_test_setup_teardown(those_that_ended_are_handed_over_in_between, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			one_of_which_something_is_to_come_is_handed_over_later, setup, teardown),
		cmocka_unit_test_setup_teardown(what_was_full_is_tried_again, setup_two, teardown),
		cmocka_unit_test_setup_teardown(an_end_between_two_kinds_is_no_refusal, setup_two,
						teardown),
		cmocka_unit_test_setup_teardown(probes_share_a_budget_and_tell_of_it, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_kind_that_cannot_leaves_the_target_to_the_others,
						setup_two, teardown),
		cmocka_unit_test_setup_teardown(a_file_that_nobody_runs_is_forgotten_by_all,
						setup_two, teardown),
		cmocka_unit_test_setup_teardown(a_window_that_cannot_be_read_is_an_error, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
