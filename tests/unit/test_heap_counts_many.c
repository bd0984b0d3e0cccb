/*
 * tests/unit/test_heap_counts_many.c - when the runtimes' counts of many targets are read: rounds, what they may take of a CPU, and those that
 * have not run. Clocks, targets and windows are replaced by functions of these names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <time.h>

#include "collect/heap/window/heap_counts.h"

#define MS 1000000ull

enum { TARGETS = 4, CLOCK = 1000 };

static uint64_t now, own_cpu, cost, cpu_of[TARGETS];
static unsigned reads[TARGETS], stills[TARGETS], wakes[TARGETS], lingers[TARGETS];
static int wake_fails;

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	uint64_t ns = 0;

	if (clock == CLOCK_MONOTONIC)
		ns = now;
	else if (clock == CLOCK_PROCESS_CPUTIME_ID)
		ns = own_cpu;
	else if (clock >= CLOCK && clock < CLOCK + TARGETS)
		ns = cpu_of[clock - CLOCK];

	*ts = (struct timespec){ (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
	return 0;
}

int target_wake(struct target *t, struct err *e)
{
	wakes[t->pid]++;
	return t->pid == wake_fails ? err_set(e, -ESRCH, "it has gone") : 0;
}

void target_linger(struct target *t)
{
	lingers[t->pid]++;
}

static struct heap_window windows[TARGETS];

void heap_window_count(struct heap_window *w, bool still)
{
	size_t i = (size_t)(w - windows);

	(*(still ? &stills : &reads))[i]++;
	own_cpu += still ? 0 : cost;
	w->last_current = true;
}

int probed_watch(struct probed *p, int fd, struct err *e)
{
	(void)p;
	(void)e;
	assert_true(fd >= 0);
	return 0;
}

static struct probed probed;
static struct set_member members[TARGETS];

struct set_member *probed_member(const struct probed *p, uint32_t i)
{
	assert_true(p == &probed && i < TARGETS + 1);
	return i ? &members[i - 1] : NULL;
}

static struct probe_set set;
static struct target targets[TARGETS];
static struct subject subjects[TARGETS];
static struct engine_target held[TARGETS];
static struct heap_counted counted[TARGETS];
static struct heap_counts k;
static struct own_work own;

static struct heap_counted *counted_of(void *part)
{
	return part;
}

static int set_up(void **state)
{
	const struct collect_opts o = { .host.own = &own };

	(void)state;
	own = (struct own_work){ .part = 0.01 };
	now = 1000 * MS;
	own_cpu = cost = 0;
	wake_fails = -1;
	set.turn.windows = true;
	probed.slots = TARGETS + 1;
	for (int i = 0; i < TARGETS; i++) {
		reads[i] = stills[i] = wakes[i] = lingers[i] = 0;
		cpu_of[i] = 1;
		windows[i] = (struct heap_window){ 0 };
		counted[i] = (struct heap_counted){ .window = &windows[i] };
		targets[i].pid = i;
		subjects[i].target = &targets[i];
		held[i] = (struct engine_target){ .subject = &subjects[i], .clock = CLOCK + i };
		members[i] = (struct set_member){
			.set = &set, .t = &held[i], .part = &counted[i], .on = true
		};
	}
	k = (struct heap_counts){ .probed = &probed, .of = counted_of };
	assert_int_equal(heap_counts_open(&k, &o, NULL), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	heap_counts_fini(&k);
	return 0;
}

static void all_run(void)
{
	for (int i = 0; i < TARGETS; i++)
		cpu_of[i]++;
}

/* Each millisecond somebody wakes us, and all have run. */
static void for_ms(unsigned ms)
{
	for (; ms; ms--, now += MS) {
		all_run();
		heap_counts_poll(&k);
	}
}

static void they_are_read_each_few_ms(void **state)
{
	(void)state;
	for_ms(1000);
	for (int i = 0; i < TARGETS; i++)
		assert_true(reads[i] == 200 && !stills[i] && lingers[i] == 200);
	assert_int_equal(k.timer.at_ns, k.due_ns);
}

static void what_has_not_run_is_not_read(void **state)
{
	(void)state;
	for_ms(1);
	for (int i = 0; i < 9; i++) {
		now += 5 * MS;
		cpu_of[2]++;
		heap_counts_poll(&k);
	}
	assert_true(reads[0] == 1 && stills[0] == 9 && wakes[0] == 1);
	assert_true(reads[2] == 10 && stills[2] == 0);
	windows[0].last_current = false; /* the last reading has failed */
	now += 5 * MS;
	heap_counts_poll(&k);
	assert_true(reads[0] == 2 && wakes[0] == 2);
}

/* Half of 2 % of a CPU: 4 * 50 us each 20 ms. */
static void they_take_no_more_than_their_share(void **state)
{
	(void)state;
	cost = 50000;
	for_ms(10000);
	assert_in_range(own_cpu, 90 * MS, 110 * MS);
	assert_in_range(reads[0], 460, 550);
}

static void only_who_is_in_windows_is_read(void **state)
{
	(void)state;
	members[1].on = false;
	members[2].done = true;
	wake_fails = 3;
	for_ms(10);
	assert_true(reads[0] == 2 && !reads[1] && !reads[2] && !reads[3]);
	set.turn.windows = false;
	for_ms(10);
	assert_true(reads[0] == 2 && k.due_ns == UINT64_MAX && !k.timer.at_ns);
	set.turn.windows = true;
	for_ms(10);
	assert_int_equal(reads[0], 2);
	heap_counts_turn(&k);
	for_ms(10);
	assert_int_equal(reads[0], 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(they_are_read_each_few_ms, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_has_not_run_is_not_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(they_take_no_more_than_their_share, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(only_who_is_in_windows_is_read, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
