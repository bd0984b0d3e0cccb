/*
 * tests/unit/test_heap_large.c - probes of large objects stay attached while we run, come back when the attacher has taken them
 * off or was killed, and go when they take more than a quarter of the budget. Clocks and the attacher are replaced by functions
 * of these names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "collect/heap/window/heap_large.h"

#define MS  1000000ull
#define SEC 1000000000ull

enum { PID = 77, CPU_CLOCK = 99 };

static struct {
	uint64_t now, cpu_ns;
	bool exited;
	/* the attacher */
	const struct uprobe_group *held;
	size_t n;
	struct attacher_process **all;
	uint64_t until, until_when_attached, let_go;
	unsigned attachings, frees;
	bool dead;
	int hold_fails, attach_fails;
} w;

/* ---- clocks ---- */

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	uint64_t ns = clock == CPU_CLOCK ? w.cpu_ns : w.now;

	*ts = (struct timespec){ (time_t)(ns / SEC), (long)(ns % SEC) };
	return clock == CPU_CLOCK && w.exited ? -1 : 0;
}

int clock_getcpuclockid(pid_t pid, clockid_t *clock)
{
	assert_int_equal(pid, PID);
	*clock = CPU_CLOCK;
	return w.exited ? ESRCH : 0;
}

/* ---- the attacher ---- */

int uprobes_hold(struct uprobes *u, const struct uprobe_group *g, size_t n, bool multi, pid_t pid,
		 const struct uprobe_open *open, struct err *e)
{
	assert_true(multi && pid == PID && !open);
	if (w.hold_fails)
		return err_set(e, w.hold_fails, "no memory");
	w.held = g;
	w.n = n;
	w.all = u->all;
	return 0;
}

int uprobes_attach_again(struct uprobes *u, struct err *e)
{
	(void)u;
	if (w.attach_fails)
		return err_set(e, w.attach_fails, "it takes long");
	w.until_when_attached = w.until;
	w.attachings++;
	w.dead = false;
	w.now += 10 * MS; /* it takes its time */
	return 0;
}

void uprobes_until(struct uprobes *u, uint64_t ns)
{
	(void)u;
	w.until = ns;
}

uint64_t uprobes_let_go(const struct uprobes *u)
{
	(void)u;
	return w.let_go;
}

uint64_t uprobes_dead(const struct uprobes *u)
{
	(void)u;
	return w.dead;
}

void uprobes_free(struct uprobes *u)
{
	(void)u;
	w.held = NULL;
	w.frees++;
}

/* ---- a target ---- */

static struct attacher_process *attachers;
static struct target target = { .pid = PID };
static struct subject subject = { .target = &target, .attachers = &attachers };
static const struct uprobe_group groups[2];
static struct heap_large l;

static int set_up(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.now = 100 * SEC;
	w.cpu_ns = 7 * SEC;
	l = (struct heap_large){ 0 };
	return 0;
}

static int attach(struct err *e)
{
	return heap_large_attach(&l, &subject, groups, 2, e);
}

static int set_up_attached(void **state)
{
	set_up(state);
	return attach(NULL);
}

/* ---- attaching ---- */

/* They need not be told to go: when we are stopped, the attacher takes them off. */
static void probes_come_with_a_time_limit(void **state)
{
	uint64_t began = 100 * SEC;

	(void)state;
	assert_int_equal(attach(NULL), 0);
	assert_true(l.apart && !l.always);
	assert_true(w.held == groups && w.n == 2 && w.all == &attachers);
	assert_int_equal(w.attachings, 1);
	/* Longer than the second after which we are to be heard again, and not much longer. */
	assert_in_range(w.until_when_attached, began + SEC + 1, began + 2 * SEC);
}

/* More images came: those that were held before are not held twice. */
static void other_probes_replace_those_that_were_held(void **state)
{
	(void)state;
	assert_int_equal(w.frees, 1); /* on a zeroed struct that is nothing */
	assert_int_equal(attach(NULL), 0);
	assert_int_equal(w.frees, 2);
	assert_ptr_equal(w.held, groups);
}

static void of_a_target_that_has_exited_nothing_is_held(void **state)
{
	struct err e = {};

	(void)state;
	w.exited = true;
	assert_int_equal(attach(&e), -ESRCH);
	assert_string_equal(e.msg, "the target exited");
	assert_true(!l.apart && !w.held && !w.attachings);
}

static void what_cannot_be_attached_is_not_apart(void **state)
{
	struct err e = {};

	(void)state;
	w.hold_fails = -ENOMEM;
	assert_int_equal(attach(&e), -ENOMEM);
	assert_true(!l.apart && !w.attachings);
	w.hold_fails = 0;
	w.attach_fails = -EUSERS;
	assert_int_equal(attach(&e), -EUSERS);
	assert_string_equal(e.msg, "it takes long");
	assert_false(l.apart);
}

/* ---- going on ---- */

static void hearing_of_us_puts_the_limit_off(void **state)
{
	(void)state;
	w.now = 103 * SEC;
	assert_int_equal(heap_large_hear(&l, NULL), 0);
	assert_int_equal(w.attachings, 1);
	assert_in_range(w.until, 104 * SEC + 1, 105 * SEC);
}

/* They are held with the others, or not at all: nobody is to be told. */
static void without_probes_of_their_own_nothing_is_done(void **state)
{
	(void)state;
	w.dead = true;
	assert_int_equal(heap_large_hear(&l, NULL), 0);
	assert_int_equal(w.attachings, 0);
	assert_int_equal(w.until, 0);
}

static void what_the_attacher_took_off_comes_back_once(void **state)
{
	(void)state;
	w.now = 105 * SEC;
	w.let_go = 102 * SEC; /* we were stopped */
	assert_int_equal(heap_large_hear(&l, NULL), 0);
	assert_int_equal(w.attachings, 2);
	assert_in_range(w.until_when_attached, 106 * SEC + 1, 107 * SEC);
	w.now = 106 * SEC;
	assert_int_equal(heap_large_hear(&l, NULL), 0);
	assert_int_equal(w.attachings, 2);
	assert_in_range(w.until, 107 * SEC + 1, 108 * SEC);
}

static void after_the_attachers_death_they_come_back(void **state)
{
	struct err e = {};

	(void)state;
	w.dead = true;
	assert_int_equal(heap_large_hear(&l, NULL), 0);
	assert_int_equal(w.attachings, 2);
	w.dead = true;
	w.attach_fails = -ECHILD;
	assert_int_equal(heap_large_hear(&l, &e), -ECHILD);
}

/* ---- what they cost ---- */

/*
 * The budget is 5 %, and a quarter of that is for these probes: 12.5 ms in a second of one CPU. A hit of 1 us costs about two, as some
 * are samples, whose stacks are walked. So 6250 hits are allowed in each second.
 */
enum { PPM = 50000, ALLOWED = 6250, IDLE_ALLOWED = ALLOWED / 10 };

static uint64_t hits;

/* Some time passes, in which the target uses @cpus and has so many hits; are they dear then? */
static bool dear_after(uint64_t ms, double cpus, uint64_t more)
{
	w.now += ms * MS;
	w.cpu_ns += (uint64_t)(cpus * (double)ms) * MS;
	hits += more;
	return heap_large_dear(&l, hits, 1000, PPM);
}

static int set_up_always(void **state)
{
	int ret = set_up_attached(state);

	hits = 1000000;
	l.always = true;
	return ret ? ret : dear_after(0, 0, 0);
}

static void a_quarter_of_the_budget_is_allowed(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		assert_false(dear_after(1000, 1, ALLOWED - 50));
	assert_false(dear_after(2000, 1, 2 * ALLOWED - 50));
	assert_false(dear_after(1000, 2, 2 * ALLOWED - 50));
	assert_false(l.dear);
	assert_true(dear_after(1000, 1, ALLOWED + 50));
	assert_true(l.dear);
}

/* One that does next to nothing is not harmed by what a tenth of a CPU allows. */
static void an_idle_target_counts_as_a_tenth_of_a_cpu(void **state)
{
	(void)state;
	assert_false(dear_after(1000, 0, IDLE_ALLOWED - 5));
	assert_false(dear_after(1000, 0.05, IDLE_ALLOWED - 5));
	assert_true(dear_after(1000, 0, IDLE_ALLOWED + 5));
}

/* Its clock reads 0 then: it has not used less than nothing. */
static void one_that_has_exited_counts_as_idle(void **state)
{
	(void)state;
	w.exited = true;
	assert_true(dear_after(1000, 0, IDLE_ALLOWED + 5));
	assert_false(dear_after(1000, 0, IDLE_ALLOWED - 5));
}

/* It waits for nobody's second: a flood that has taken all of it is stopped at once. */
static void a_flood_is_seen_before_a_second_is_over(void **state)
{
	(void)state;
	assert_false(dear_after(100, 1, ALLOWED - 50));
	assert_true(dear_after(100, 1, 100));
}

/* What is much for 100 ms may be little for a second, and the hits of both are judged together then. */
static void a_short_burst_is_judged_with_what_follows(void **state)
{
	(void)state;
	assert_false(dear_after(100, 1, ALLOWED - 50));
	assert_false(dear_after(900, 1, 0));
	assert_false(dear_after(100, 1, ALLOWED - 50));
	assert_true(dear_after(900, 1, 100));
}

/* Nothing is known of how long the hits of the first time took to come. */
static void the_first_look_only_remembers(void **state)
{
	(void)state;
	l = (struct heap_large){ .always = true, .clock = CPU_CLOCK };
	assert_false(dear_after(10, 1, 1000 * ALLOWED));
	assert_false(dear_after(1000, 1, ALLOWED - 50));
}

/* Whatever the reason is: they must not look like a flood. */
static void counts_that_shrink_are_no_hits(void **state)
{
	(void)state;
	hits = 5;
	assert_false(dear_after(1000, 1, 0));
	assert_true(dear_after(1000, 1, ALLOWED + 50));
}

static void what_counts_in_windows_only_is_never_dear(void **state)
{
	(void)state;
	l.always = false;
	assert_false(dear_after(1000, 1, 1000 * ALLOWED));
	assert_false(l.dear);
}

/* That they were dear is remembered, so that they are not held here again. */
static void detached_probes_count_no_more(void **state)
{
	unsigned before = w.frees;

	(void)state;
	assert_true(dear_after(1000, 1, ALLOWED + 50));
	heap_large_detach(&l);
	assert_true(!l.apart && !l.always && l.dear);
	assert_int_equal(w.frees, before + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(probes_come_with_a_time_limit, set_up),
		cmocka_unit_test_setup(other_probes_replace_those_that_were_held, set_up_attached),
		cmocka_unit_test_setup(of_a_target_that_has_exited_nothing_is_held, set_up),
		cmocka_unit_test_setup(what_cannot_be_attached_is_not_apart, set_up),
		cmocka_unit_test_setup(hearing_of_us_puts_the_limit_off, set_up_attached),
		cmocka_unit_test_setup(without_probes_of_their_own_nothing_is_done, set_up),
		cmocka_unit_test_setup(what_the_attacher_took_off_comes_back_once, set_up_attached),
		cmocka_unit_test_setup(after_the_attachers_death_they_come_back, set_up_attached),
		cmocka_unit_test_setup(a_quarter_of_the_budget_is_allowed, set_up_always),
		cmocka_unit_test_setup(an_idle_target_counts_as_a_tenth_of_a_cpu, set_up_always),
		cmocka_unit_test_setup(one_that_has_exited_counts_as_idle, set_up_always),
		cmocka_unit_test_setup(a_flood_is_seen_before_a_second_is_over, set_up_always),
		cmocka_unit_test_setup(a_short_burst_is_judged_with_what_follows, set_up_always),
		cmocka_unit_test_setup(the_first_look_only_remembers, set_up),
		cmocka_unit_test_setup(counts_that_shrink_are_no_hits, set_up_always),
		cmocka_unit_test_setup(what_counts_in_windows_only_is_never_dear, set_up_always),
		cmocka_unit_test_setup(detached_probes_count_no_more, set_up_always),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
