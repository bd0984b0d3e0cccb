/*
 * tests/bpfhost/test_cpu_program.c - cpu.bpf.c as a whole: whom ticks of a CPU are samples of, how many samples threads of some
 * milliseconds get, and what processes that have ended were charged.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include <linux/ptrace.h>
#include <linux/bpf_perf_event.h>

static inline long bpf_get_stack(void *ctx, void *to, uint32_t n, uint64_t flags)
{
	(void)ctx, (void)to, (void)n, (void)flags;
	return 0;
}

#include "cpu.bpf.c"

#include "program.h"
#include "goroutines.h"

enum { SLOT = 3, NEXT_SLOT = 1 << GPB_SLOT_GENERATION | SLOT, PID = 700, TLS_G = 64 };
#define TLS 0x50000ull

static uint64_t tls[16];
static struct task_struct leader, thread;
static struct signal_struct shared;
static struct mm_struct memory;

static void observe(uint32_t pid, uint32_t slot)
{
	assert_int_equal(bpf_map_update_elem(&slot_of_tgid, &pid, &slot, BPF_ANY), 0);
}

static int reset(void **state)
{
	struct gpb_target with_tls = target;
	uint32_t at = SLOT;

	(void)state;
	goroutines_init(SLOT);
	for (int i = 0; i < GOROUTINES; i++) /* it stands there, and is in no call */
		know(PC(i) + 1, (struct gpb_unwind_rule){ .delta = 0 });
	with_tls.tls_g = TLS_G;
	with_tls.start_stack = 5;
	memset(charges, 0, sizeof(charges));
	tick_weight = 1;
	host_map(TLS, tls, sizeof(tls));
	memory.start_stack = 5;
	shared.sum_sched_runtime = 0;
	leader = (struct task_struct){ .pid = PID, .tgid = PID, .signal = &shared };
	thread = (struct task_struct){ .pid = PID + 1, .tgid = PID, .signal = &shared };
	observe(PID, SLOT);
	return (int)bpf_map_update_elem(&targets, &at, &with_tls, BPF_ANY);
}

/* The current thread is one of process @pid, at goroutine @i. */
static struct bpf_perf_event_data runs(uint32_t pid, int i)
{
	host_task = (struct task_struct){
		.pid = (int)pid + 1, .tgid = (int)pid, .mm = &memory, .thread.fsbase = TLS
	};
	tls[TLS_G / 8] = g_of(i);
	m_words[1] = g_of(i);
	return (struct bpf_perf_event_data){
		.regs = { .rip = PC(i), .rsp = g_words[i][3], .rbp = g_words[i][5], .cs = 3 }
	};
}

/* ---- samples ---------------------------------------------------------------------------------- */

static uint64_t told[GOROUTINES], told_in_all;

static void add(const struct gpb_stack *s)
{
	assert_int_equal(s->slot, SLOT);
	told[goroutine_of(s)] += s->count;
	told_in_all += s->count;
}

static void look_at_samples(void)
{
	memset(told, 0, sizeof(told));
	told_in_all = 0;
	each_sample(add);
	assert_int_equal(lost_in_all(SLOT), 0);
}

static void a_tick_is_a_sample_of_whoever_runs_there(void **state)
{
	struct bpf_perf_event_data ctx;

	(void)state;
	for (int i = 0; i < 5; i++) {
		ctx = runs(PID, i);
		for (int n = 0; n <= i; n++)
			host_clock(&ctx);
		ctx = runs(PID + 10, i);
		host_clock(&ctx);
	}
	look_at_samples();
	for (int i = 0; i < 5; i++)
		assert_int_equal(told[i], i + 1);
	assert_int_equal(tallies[SLOT].samples, 15);
}

static void fewer_ticks_count_for_more(void **state)
{
	struct bpf_perf_event_data ctx = runs(PID, 2);

	(void)state;
	tick_weight = 4;
	host_clock(&ctx);
	host_clock(&ctx);
	look_at_samples();
	assert_true(told[2] == 8 && tallies[SLOT].samples == 8);
}

static void another_program_of_the_process_is_not_sampled(void **state)
{
	struct bpf_perf_event_data ctx = runs(PID, 2);

	(void)state;
	memory.start_stack = 6;
	host_clock(&ctx);
	look_at_samples();
	assert_true(!told_in_all && !tallies[SLOT].samples);
}

/* Of threads that run for less than a period each as many are met as their time says. */
static void short_threads_are_met_by_their_time(void **state)
{
	enum { THREADS = 2000, STEPS = 3, PERIOD = 10 };
	const double expected = THREADS * STEPS / (double)PERIOD;
	struct bpf_perf_event_data ctx;

	(void)state;
	*(volatile __u64 *)(uintptr_t)&period_ns = PERIOD * 1000000;
	*(volatile __u64 *)(uintptr_t)&step_ns = 1000000;
	for (int i = 0; i < THREADS; i++) {
		ctx = runs(PID, i % GOROUTINES);
		host_task.pid = PID + i;
		host_task.start_time = (uint64_t)i;
		for (int n = 0; n < STEPS; n++) {
			host_now_ns += 1000000;
			thread_clock(&ctx);
		}
	}
	look_at_samples();
	assert_int_equal(told_in_all, tallies[SLOT].samples);
	assert_true(fabs((double)told_in_all - expected) < 5 * sqrt(expected));
}

/* ---- processes that end ------------------------------------------------------------------------ */

static void ends(struct task_struct *task)
{
	unsigned long long args[] = { (uintptr_t)task };

	host_task = *task;
	on_end(args);
}

static void is_freed(struct task_struct *task)
{
	unsigned long long args[] = { (uintptr_t)task };

	host_task = (struct task_struct){ .pid = 1, .tgid = 1 }; /* whoever runs there */
	on_reaped(args);
}

/* The kernel has it when the first thread is reaped, the last of all. */
static void what_a_process_was_charged_is_known_when_it_is_reaped(void **state)
{
	(void)state;
	ends(&thread);
	ends(&leader);
	shared.sum_sched_runtime = 3000;
	is_freed(&thread);
	assert_int_equal(charges[SLOT].ns, 0);
	shared.sum_sched_runtime = 5000;
	is_freed(&leader);
	assert_true(charges[SLOT].ns == 5000 && charges[SLOT].slot == SLOT);
}

/* Its number is another process' by then, which is none of ours or has a slot of its own. */
static void a_number_that_was_given_again_is_another_process(void **state)
{
	struct signal_struct others = { .sum_sched_runtime = 9 };
	struct task_struct other = { .pid = PID, .tgid = PID, .signal = &others };

	(void)state;
	ends(&leader);
	observe(PID, NEXT_SLOT);
	is_freed(&other);
	assert_int_equal(charges[SLOT].ns, 0);
	shared.sum_sched_runtime = 5000;
	is_freed(&leader);
	assert_true(charges[SLOT].ns == 5000 && charges[SLOT].slot == SLOT);
	ends(&other);
	is_freed(&other);
	assert_true(charges[SLOT].ns == 9 && charges[SLOT].slot == NEXT_SLOT);
}

static void who_is_no_target_is_not_told_of(void **state)
{
	(void)state;
	leader.pid = leader.tgid = PID + 10;
	shared.sum_sched_runtime = 5000;
	ends(&leader);
	is_freed(&leader);
	for (size_t i = 0; i < SLOTS; i++)
		assert_int_equal(charges[i].ns, 0);
}

/* The old first thread has another number then, and is freed while the process goes on. */
static void a_thread_that_calls_exec_takes_the_first_ones_place(void **state)
{
	(void)state;
	ends(&leader);
	leader.pid = PID + 1;
	thread.pid = PID;
	shared.sum_sched_runtime = 3000;
	is_freed(&leader);
	assert_int_equal(charges[SLOT].ns, 0);
	ends(&thread);
	shared.sum_sched_runtime = 8000;
	is_freed(&thread);
	assert_int_equal(charges[SLOT].ns, 8000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_tick_is_a_sample_of_whoever_runs_there, reset),
		cmocka_unit_test_setup(fewer_ticks_count_for_more, reset),
		cmocka_unit_test_setup(another_program_of_the_process_is_not_sampled, reset),
		cmocka_unit_test_setup(short_threads_are_met_by_their_time, reset),
		cmocka_unit_test_setup(what_a_process_was_charged_is_known_when_it_is_reaped,
				       reset),
		cmocka_unit_test_setup(a_number_that_was_given_again_is_another_process, reset),
		cmocka_unit_test_setup(who_is_no_target_is_not_told_of, reset),
		cmocka_unit_test_setup(a_thread_that_calls_exec_takes_the_first_ones_place, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
