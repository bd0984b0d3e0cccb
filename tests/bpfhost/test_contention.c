/*
 * tests/bpfhost/test_contention.c - sched.bpf.c over goroutines that contend for one mutex, in windows: what the
 * windows stand for is compared with what the runtime itself would charge all of the time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "sched.bpf.c"

#include "program.h"
#include "goroutines.h"

enum { SLOT = 5, MUTEX = 4, SUDOG = 104, KINDS = 3, WINDOWS = 40000, US = 1000, MS = 1000000 };
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define S(i)	 (0x900000ull + SUDOG * (uint64_t)(i))
#define ADDR	 0x500000ull
#define ROOT	 0x600000ull

static const uint64_t begin_ns = 3 * MS, last_ns = 7 * MS, stratum = 60 * MS;

static uint8_t sudogs[GOROUTINES * SUDOG], root[16];

/* How many contend, and how long one of each third holds the mutex, and then does without it. */
static struct world {
	int n;
	uint64_t hold[KINDS], idle[KINDS];
	bool all; /* Go 1.22+ */
} world;

/* The runtime's side of the mutex. */
static int list[GOROUTINES], queued, holder;
static uint16_t waiters;
static uint64_t stamp[GOROUTINES], asked[GOROUTINES], wakes[GOROUTINES], unlocks_at;

/* By kind of who unlocks: what the runtime charged, and what windows say. */
static struct sums {
	double n, ns;
} truth[KINDS], told[KINDS];
static double waited; /* by all, together */
static uint64_t opens, closes;

static uint64_t *word(int s, int off)
{
	return (uint64_t *)(void *)(sudogs + s * SUDOG + off);
}

static void write_queue(void)
{
	for (int i = 0; i < queued; i++) {
		*word(list[i], 0) = g_of(list[i]);
		*word(list[i], 24) = ADDR;
		*word(list[i], 72) = i + 1 < queued ? S(list[i + 1]) : 0;
		*word(list[i], 80) = !i && queued > 1 ? S(list[queued - 1]) : 0;
	}
	if (queued)
		*(uint16_t *)(void *)(sudogs + list[0] * SUDOG + 62) = waiters;
	*(uint64_t *)(void *)(root + 8) = queued ? S(list[0]) : 0;
}

static void hit(uint64_t kind, int g, uint64_t r14, uint64_t arg0, uint64_t arg1, uint64_t arg2)
{
	struct pt_regs regs = { .rax = arg0, .rbx = arg1, .rcx = arg2, .r14 = r14 };

	regs.rip = g_words[g][4];
	regs.rsp = g_words[g][3];
	regs.rbp = g_words[g][5];
	host_cpu = below(4);
	host_cookie = kind | GPB_COOKIE_ENTRY | (uint64_t)SLOT << GPB_COOKIE_SLOT_SHIFT;
	sched_probe(&regs);
}

static uint64_t about(uint64_t ns)
{
	return ns / 2 + below((uint32_t)ns) + 1;
}

static void hold(int i)
{
	holder = i;
	unlocks_at = host_now_ns + about(world.hold[i % KINDS]);
}

static void ask(int i)
{
	wakes[i] = UINT64_MAX;
	if (holder < 0) {
		hold(i);
		return;
	}
	hit(GPB_AT_SEMA, i, g_of(i), ADDR, 0, GPB_SEMA_BLOCK | GPB_SEMA_MUTEX);
	stamp[i] = asked[i] = host_now_ns;
	set_waitreason(i, MUTEX);
	hit(GPB_AT_PARK, i, G0, g_of(i), 0, 0);
	waiters = (uint16_t)(queued ? waiters + 1 : 0);
	list[queued++] = i;
	write_queue();
}

/* As dequeue() and semrelease1(). */
static double go_charge(void)
{
	int s = list[0], tail = list[queued - 1];
	double dt0 = (double)(host_now_ns - stamp[s]), dtail = dt0;
	uint16_t behind = waiters;

	if (queued > 1) {
		if (waiters > 1)
			waiters--;
		stamp[list[1]] = host_now_ns;
		dtail = (double)(host_now_ns - stamp[tail]);
		if (world.all)
			stamp[tail] = host_now_ns;
	}
	return dt0 + (world.all ? (dt0 + dtail) / 2 * behind : 0);
}

static void unlock(void)
{
	int was = holder, next = list[0];

	holder = -1;
	unlocks_at = UINT64_MAX;
	wakes[was] = host_now_ns + about(world.idle[was % KINDS]);
	if (!queued)
		return;
	hit(GPB_AT_DEQUEUE, was, g_of(was), ROOT, ADDR, 0);
	truth[was % KINDS].n++;
	truth[was % KINDS].ns += go_charge();
	waited += (double)(host_now_ns - asked[next]);
	queued--;
	memmove(list, list + 1, (size_t)queued * sizeof(list[0]));
	write_queue();
	hit(GPB_AT_READY, was, g_of(was), g_of(next), 0, 0);
	hold(next);
}

static void turn_window(void)
{
	if (host_now_ns >= closes) {
		open_for[SLOT].bits = 0;
		closes = UINT64_MAX;
	}
	if (host_now_ns >= opens) {
		open_for[SLOT] = (struct gpb_open){ .since = opens, .bits = GPB_OPEN };
		closes = opens + begin_ns + last_ns + below(MS);
		opens = opens - opens % stratum + stratum + below((uint32_t)stratum - 12 * MS);
	}
}

static void live(void)
{
	for (uint64_t end = host_now_ns + WINDOWS * stratum; host_now_ns < end;) {
		uint64_t at = opens < closes ? opens : closes;
		int who = -1;

		for (int i = 0; i < world.n; i++)
			if (wakes[i] < at)
				at = wakes[who = i];
		if (unlocks_at <= at) {
			host_now_ns = unlocks_at;
			unlock();
		} else {
			host_now_ns = at > host_now_ns ? at : host_now_ns;
			if (who >= 0)
				ask(who);
			else
				turn_window();
		}
	}
}

static void add_told(const struct gpb_stack *s)
{
	struct sums *of = &told[goroutine_of(s) % KINDS];

	assert_int_equal(s->wait.kind, GPB_WAIT_MUTEX);
	of->n += (double)s->count / GPB_COUNT_ONE * (double)stratum / (double)begin_ns;
	of->ns += (double)s->delay * (double)stratum / (double)begin_ns;
}

static void run(const struct world *w)
{
	uint32_t slot = SLOT;
	struct gpb_sched conf = {
		.block_rate = 1,
		.mutex_fraction = 1,
		.reasons = 1 << MUTEX,
		.sema_reasons = 1 << MUTEX,
		.mutex_reasons = 1 << MUTEX,
		.kinds = 1 << GPB_WAIT_MUTEX,
		.charge_all = w->all,
		.g_waitreason = WAITREASON,
		.terms = { .own = { .ns = 1ull << 40 },
			   .own_share = GPB_SHARE_ONE,
			   .begin_ns = begin_ns,
			   .last_ns = last_ns },
		/* Go 1.27 */
		.sudog_next = 8,
		.sudog_prev = 16,
		.sudog_elem = 24,
		.sudog_waiters = 62,
		.sudog_waitlink = 72,
		.sudog_waittail = 80,
		.semaroot_treap = 8,
	};

	goroutines_init(SLOT);
	open_for[SLOT].bits = 0;
	host_map(S(0), sudogs, sizeof(sudogs));
	host_map(ROOT, root, sizeof(root));
	assert_int_equal(bpf_map_update_elem(&scheds, &slot, &conf, BPF_ANY), 0);
	world = *w;
	queued = waiters = 0;
	holder = -1;
	waited = 0;
	unlocks_at = closes = UINT64_MAX;
	opens = host_now_ns;
	memset(truth, 0, sizeof(truth));
	memset(told, 0, sizeof(told));
	for (int i = 0; i < GOROUTINES; i++)
		wakes[i] = i < w->n ? host_now_ns + about(MS) : UINT64_MAX;
	live();
	each_sample(add_told);
	assert_int_equal(lost_in_all(SLOT), 0);
}

static void near(const char *what, int kind, double is, double was, double by)
{
	if (fabs(is - was) > by * was)
		fail_msg("%s, kind %d: %.0f, told %.0f", what, kind, was, is);
}

static double seen_in_all(size_t at)
{
	uint32_t slot = SLOT;
	double n = 0;

	for (host_cpu = 0; host_cpu < 4; host_cpu++)
		n += (double)*(uint64_t *)((char *)bpf_map_lookup_elem(&seen, &slot) + at);
	return n;
}
#define SEEN(field) seen_in_all(offsetof(struct gpb_sched_seen, field))

/* However long it is, and whoever waited since before the window. */
static void each_contention_counts_with_the_same_chance(void **state)
{
	static const struct world worlds[] = {
		{ 4, { 2 * MS, 2 * MS, 2 * MS }, { US, US, US }, true },
		{ 3, { 100 * US, 4 * MS, 20 * MS }, { 3 * MS, 5 * MS, 20 * MS }, true },
		{ 6, { 50 * US, 8 * MS, 9 * MS }, { MS, MS, MS }, true },
		{ 40, { 300 * US, 500 * US, MS }, { MS, MS, MS }, true },
		{ 6, { 100 * US, 4 * MS, 8 * MS }, { 3 * MS, 5 * MS, 5 * MS }, false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(worlds); i++) {
		run(&worlds[i]);
		for (int k = 0; k < KINDS; k++)
			near("contentions", k, told[k].n, truth[k].n, 0.04);
	}
}

/* Those that are shorter than the second part of a window count with all of their delay. */
static void delays_are_the_runtimes(void **state)
{
	static const struct world worlds[] = {
		{ 4, { 2 * MS, 2 * MS, 2 * MS }, { US, US, US }, true },
		{ 12, { 50 * US, MS, 4 * MS }, { 6 * MS, 5 * MS, 4 * MS }, true },
		{ 4, { 40 * US, 400 * US, 4 * MS }, { 6 * MS, 5 * MS, 4 * MS }, false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(worlds); i++) {
		run(&worlds[i]);
		for (int k = 0; k < KINDS; k++)
			near("delay", k, told[k].ns, truth[k].ns, 0.04);
	}
}

/* Of longer ones a part is known, and they are told apart. */
static void a_part_is_said_to_be_one(void **state)
{
	static const struct world w = { 3, { 40 * MS, 40 * MS, 40 * MS }, { US, US, US }, true };

	(void)state;
	run(&w);
	near("cut", 0, SEEN(cut) * (double)stratum / (double)begin_ns,
	     truth[0].n + truth[1].n + truth[2].n, 0.04);
	assert_true(told[0].ns < truth[0].ns / 2);
}

/* With four goroutines that all want it, and with others that come while they wait. */
static void charges_are_compared_with_what_is_waited(void **state)
{
	static const struct {
		struct world w;
		double least, most;
	} cases[] = {
		{ { 4, { 2 * MS, 2 * MS, 2 * MS }, { US, US, US }, true }, 0.99, 1.01 },
		/* The runtime counts one waiter too many: it does not count down to none. */
		{ { 4, { 2 * MS, 2 * MS, 2 * MS }, { 3 * MS, US, US }, true }, 1.2, 1.37 },
		{ { 4, { 40 * MS, 40 * MS, 40 * MS }, { 60 * MS, US, US }, true }, 1.2, 1.37 },
		/* The last one that came stands for all. */
		{ { 9, { MS, MS, MS }, { MS, MS, MS }, true }, 0.7, 0.99 },
		{ { 40, { 300 * US, 500 * US, MS }, { MS, MS, MS }, true }, 0.5, 1.2 },
		{ { 20, { 300 * US, 500 * US, MS }, { 90 * MS, 2 * MS, MS }, true }, 0.5, 1.2 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		double charged = 0, ratio;

		run(&cases[i].w);
		for (int k = 0; k < KINDS; k++)
			charged += truth[k].ns;
		ratio = charged / waited;
		print_message("# charged %.3f of what is waited, in windows %.3f\n", ratio,
			      SEEN(charged_ns) / SEEN(waited_ns));
		assert_true(ratio > cases[i].least && ratio < cases[i].most);
		near("ratio", (int)i, SEEN(charged_ns) / SEEN(waited_ns), ratio, 0.03);
	}
}

/* A queue of goroutines that wait for something else, since before the window, is none of a mutex. */
static void other_semaphores_are_left_alone(void **state)
{
	static const struct world w = { 4, { 2 * MS, 2 * MS, 2 * MS }, { US, US, US }, true };

	(void)state;
	run(&w);
	open_for[SLOT] = (struct gpb_open){ .since = ++host_now_ns, .bits = GPB_OPEN };
	host_maps_reset();
	assert_true(queued > 1);
	for (int i = 0; i < GOROUTINES; i++)
		set_waitreason(i, MUTEX + 1);
	hit(GPB_AT_DEQUEUE, holder, g_of(holder), ROOT, ADDR, 0);
	assert_int_equal(*host_size(&waits), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_contention_counts_with_the_same_chance),
		cmocka_unit_test(delays_are_the_runtimes),
		cmocka_unit_test(a_part_is_said_to_be_one),
		cmocka_unit_test(charges_are_compared_with_what_is_waited),
		cmocka_unit_test(other_semaphores_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
