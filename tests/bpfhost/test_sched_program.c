/*
 * tests/bpfhost/test_sched_program.c - sched.bpf.c as a whole, over goroutines that park, ask for
 * semaphores and are woken: what block profiles are told is compared with what the goroutines did.
 * (test_sema.c and test_contention.c compare what mutex profiles are told.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "sched.bpf.c"

#include "program.h"
#include "goroutines.h"

enum { SLOT = 5, REASONS = 8, STEPS = 200000 };
enum { COUNTED = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 5, SEMA = 1 << 4 | 1 << 5 };

/* One goroutine: what it waits for, and how. */
static struct life {
	uint32_t reason; /* 0: it runs */
	int sema, block; /* it waits for a semaphore; with this flag */
	int again;	 /* it was woken for that once, and waits on */
	int known;	 /* it asked, or parked, in the present window, */
	int chance;	 /* where beginning waits counted, GPB_CHANCE_* */
	uint64_t since;	 /* it asked, parked, or was woken in vain */
	uint64_t own;	 /* the own time of the target then, with one CPU */
} lives[GOROUTINES];

/* Of the present window: when it opened, and how many hits there were. */
static uint64_t opened, hits;
static uint32_t cpus;

/* Waits by goroutine, reason and length: how many, how long, and the variance of both. */
struct sums {
	double n, ns, n_var, ns_var;
};
static struct sums truth[GOROUTINES][REASONS][2], told[GOROUTINES][REASONS][2];
static struct gpb_sched terms;
/* By which its hits and windows go: of one target its slot, of many a set; and what samples have. */
static uint32_t probed_as, told_slot;

static int reset(void **state)
{
	(void)state;
	goroutines_init(SLOT);
	memset(lives, 0, sizeof(lives));
	memset(truth, 0, sizeof(truth));
	memset(told, 0, sizeof(told));
	opened = hits = 0;
	cpus = 4;
	probed_as = told_slot = SLOT;
	terms = (struct gpb_sched){
		.block_rate = 1,
		.reasons = COUNTED,
		.sema_reasons = SEMA,
		.kinds = 1 << GPB_WAIT_BLOCK,
		.g_waitreason = WAITREASON,
	};
	return 0;
}

static void use_terms(void)
{
	uint32_t slot = SLOT;

	assert_int_equal(bpf_map_update_elem(&scheds, &slot, &terms, BPF_ANY), 0);
}

static int windows(void)
{
	return terms.terms.own.ns != 0;
}

/* ---- lives ----------------------------------------------------------------------------------- */

static void hit(uint64_t kind, uint64_t r14, uint64_t arg0, uint64_t arg1, uint64_t arg2)
{
	struct pt_regs regs = { .rax = arg0, .rbx = arg1, .rcx = arg2, .r14 = r14 };

	host_now_ns += terms.terms.own.hit_ns;
	hits++;
	host_cpu = below(cpus);
	host_cookie = kind | GPB_COOKIE_ENTRY | (uint64_t)probed_as << GPB_COOKIE_SLOT_SHIFT;
	sched_probe(&regs);
}

/* How long the target has run in this window, without what hits took. */
static uint64_t own_now(void)
{
	return host_now_ns - opened - hits * terms.terms.own.hit_ns;
}

static int is_watched(void)
{
	return !windows() || (open_for[probed_as].bits & GPB_OPEN_END);
}

/* A wait begins to count, or not. */
static void begin(struct life *l)
{
	l->since = host_now_ns;
	l->own = own_now();
	l->known = is_watched() && host_now_ns >= terms.from;
	l->chance = GPB_CHANCE_OWN | GPB_CHANCE_WALL;
	if (windows() && host_now_ns - opened >= terms.terms.begin_ns)
		l->chance = 0;
	else if (windows() && l->own >= terms.terms.own.ns)
		l->chance = GPB_CHANCE_WALL;
}

static void park(int i)
{
	struct life *l = &lives[i];

	l->reason = 1 + below(REASONS - 1);
	l->sema = SEMA >> l->reason & 1;
	l->again = 0;
	set_waitreason(i, l->reason);
	if (l->sema) {
		l->block = (int)below(2);
		hit(GPB_AT_SEMA, g_of(i), 0, below(2),
		    (l->block ? GPB_SEMA_BLOCK : 0) | (below(2) ? GPB_SEMA_MUTEX : 0));
		begin(l);
		host_now_ns += below(500);
	}
	hit(GPB_AT_PARK, G0, g_of(i), 0, 0);
	if (!l->sema)
		begin(l);
}

/* The wait of @i has ended. */
static void book(int i)
{
	const struct life *l = &lives[i];
	double ns = (double)(host_now_ns - l->since), rate = (double)terms.block_rate;
	int is_long = windows() && ns >= GPB_LONG_NS;
	struct sums *s = &truth[i][l->reason][is_long];

	if (!(COUNTED >> l->reason & 1) || !l->known || (l->sema && !l->block) ||
	    !(l->chance & (is_long ? GPB_CHANCE_WALL : GPB_CHANCE_OWN)))
		return;
	s->n += !l->again;
	s->ns += windows() && !is_long && cpus == 1 ? (double)(own_now() - l->own) : ns;
	if (ns < rate) {
		s->n_var += l->again ? 0 : rate / ns - 1;
		s->ns_var += rate * ns - ns * ns;
	}
}

static void wake(int i)
{
	struct life *l = &lives[i];

	hit(GPB_AT_READY, G0, g_of(i), 0, 0);
	if (is_watched())
		book(i);
	else
		l->known = 0;
	l->since = host_now_ns;
	l->own = own_now();
	if (l->sema && !below(3)) {
		l->again = 1;
		host_now_ns += below(500);
		l->known &= is_watched();
		hit(GPB_AT_PARK, G0, g_of(i), 0, 0);
	} else {
		l->reason = 0;
	}
}

/* Some goroutines do something often, and others rarely. */
static void live(void)
{
	int i = (int)below(1 + below(GOROUTINES));

	if (lives[i].reason)
		wake(i);
	else
		park(i);
}

static void add_told(const struct gpb_stack *s)
{
	uint64_t i = goroutine_of(s), reason = s->wait.reason;

	assert_int_equal(s->slot, told_slot);
	assert_int_equal(s->wait.kind, GPB_WAIT_BLOCK);
	assert_true(reason < REASONS && s->wait.length < 2);
	told[i][reason][s->wait.length].n += (double)s->count / GPB_COUNT_ONE;
	told[i][reason][s->wait.length].ns += (double)s->delay;
}

#define EACH(i, r, type)                          \
	for (int i = 0; i < GOROUTINES; i++)      \
		for (int r = 0; r < REASONS; r++) \
			for (int type = 0; type < 2; type++)

/* @slack: what the clock of the target's own time may round away of each wait. */
static void expect_equal(double slack)
{
	double n = 0;

	each_sample(add_told);
	EACH(i, r, type)
	{
		const struct sums *is = &told[i][r][type], *was = &truth[i][r][type];

		if (is->n != was->n || fabs(is->ns - was->ns) > slack * was->n)
			fail_msg(
				"goroutine %d, reason %d, type %d: %.0f in %.0f ns, told %.0f in %.0f",
				i, r, type, was->n, was->ns, is->n, is->ns);
		n += is->n;
	}
	assert_true(n > STEPS / 100);
	assert_int_equal(lost_in_all(SLOT), 0);
}

static void live_for(int steps)
{
	use_terms();
	for (int n = 0; n < steps; n++) {
		host_now_ns += 1 + below(20000);
		live();
	}
}

static void each_wait_is_told_once(void **state)
{
	(void)state;
	live_for(STEPS);
	expect_equal(0);
}

/* Waits shorter than the rate are samples in proportion, and stand for as many as they should. */
static void samples_stand_for_all(void **state)
{
	struct sums all[2] = { { 0 } };

	(void)state;
	terms.block_rate = 3000000;
	live_for(STEPS);
	each_sample(add_told);
	EACH(i, r, type)
	{
		const struct sums *is = &told[i][r][type], *was = &truth[i][r][type];

		all[0].n += was->n, all[0].ns += was->ns;
		all[0].n_var += was->n_var, all[0].ns_var += was->ns_var;
		all[1].n += is->n, all[1].ns += is->ns;
	}
	assert_true(all[0].n_var > 0 && all[1].n > 0);
	assert_true(fabs(all[1].n - all[0].n) < 4 * sqrt(all[0].n_var));
	assert_true(fabs(all[1].ns - all[0].ns) < 4 * sqrt(all[0].ns_var));
}

/* Windows of 4 ms, 6 ms apart, in whose first 2 ms waits begin to count. */
static void run_windows(void)
{
	const uint64_t window = 4000000, pause = 6000000;

	use_terms();
	open_for[probed_as].bits = 0;
	opened = host_now_ns;
	for (int n = 0; n < 2 * STEPS; n++) {
		host_now_ns += 1 + below(8000);
		if (host_now_ns >= opened + window)
			open_for[probed_as].bits = 0;
		if (host_now_ns >= opened + window + pause) {
			opened = host_now_ns;
			hits = 0;
			open_for[probed_as] = (struct gpb_open){ .since = opened,
								 .bits = GPB_OPEN };
			for (int i = 0; i < GOROUTINES; i++)
				lives[i].known = lives[i].chance = 0;
		}
		live();
	}
}

/* Probes take no time here, so the target's own time is all of it. */
static void windows_count_what_begins_in_them(void **state)
{
	(void)state;
	terms.terms = (struct gpb_wait_terms){ .own = { .ns = 1ull << 40 },
					       .own_share = GPB_SHARE_ONE,
					       .begin_ns = 2000000 };
	run_windows();
	expect_equal(2);
}

/* Hits take 700 ns here: short waits have no such time in them, and begin while own time is left. */
static void what_hits_take_is_no_wait(void **state)
{
	(void)state;
	cpus = 1;
	terms.terms = (struct gpb_wait_terms){ .own = { .ns = 1000000, .hit_ns = 700 },
					       .own_share = GPB_SHARE_ONE,
					       .begin_ns = 2000000 };
	run_windows();
	expect_equal(0);
}

/* Between two hits that were seen it was woken, and parked for another reason. */
static void another_wait_is_not_this_one(void **state)
{
	(void)state;
	use_terms();
	for (uint32_t reason = 1; reason <= 2; reason++) {
		set_waitreason(0, reason);
		if (reason == 1)
			hit(GPB_AT_PARK, G0, g_of(0), 0, 0);
	}
	host_now_ns += 1000;
	hit(GPB_AT_READY, G0, g_of(0), 0, 0);
	each_sample(add_told);
	assert_true(told[0][1][0].n == 0 && told[0][2][0].n == 0);
}

/* What parked before it was watched is met at its wake-up, and told as such. */
static void waits_from_before_are_counted_as_early(void **state)
{
	uint32_t slot = SLOT;
	struct gpb_sched_seen *n;
	uint64_t early = 0;

	(void)state;
	use_terms();
	for (int i = 0; i < GOROUTINES; i++) {
		set_waitreason(i, 1 + (uint32_t)i % (REASONS - 1));
		hit(GPB_AT_READY, G0, g_of(i), 0, 0);
		early += COUNTED >> (1 + i % (REASONS - 1)) & 1;
	}
	each_sample(add_told);
	EACH(i, r, type)
	assert_true(told[i][r][type].n == 0);
	for (host_cpu = 0; host_cpu < 4; host_cpu++) {
		n = bpf_map_lookup_elem(&seen, &slot);
		early -= n->begun_before;
	}
	assert_int_equal(early, 0);
}

/* ---- many targets ----------------------------------------------------------------------------- */

enum { PID = 77, OTHER = 78, SET = 7, NEXT = 9 };

/* One target in a slot of a second generation, whose probes are of a set. */
static void become_many(void)
{
	uint32_t pid = PID, slot = 1u << GPB_SLOT_GENERATION | SLOT;

	*(uint32_t *)(uintptr_t)&many_targets = 1;
	waits_quota = ring_quota = stacks_quota = (struct gpb_quota){ .part = 1 << 30,
								      .free = 1 << 30 };
	memset(waits_of, 0, sizeof(waits_of));
	waits_all = 0;
	set_of[SLOT] = SET;
	open_for[SLOT] = (struct gpb_open){ 0 };
	open_for[SET] = (struct gpb_open){ .bits = GPB_OPEN };
	probed_as = SET;
	told_slot = slot;
	host_task.tgid = host_task.pid = PID;
	assert_int_equal(bpf_map_update_elem(&slot_of_tgid, &pid, &slot, BPF_ANY), 0);
}

static int become_one(void **state)
{
	(void)state;
	*(uint32_t *)(uintptr_t)&many_targets = 0;
	return 0;
}

static uint64_t bystanders_hits(uint32_t set)
{
	uint64_t n = 0;

	for (host_cpu = 0; host_cpu < 4; host_cpu++)
		n += ((const struct gpb_spent *)bpf_map_lookup_elem(&bystanders, &set))->hits;
	return n;
}

static uint64_t sets_hits(uint32_t set)
{
	uint64_t n = 0;

	for (host_cpu = 0; host_cpu < 4; host_cpu++)
		n += ((const struct gpb_spent *)bpf_map_lookup_elem(&sets, &set))->hits;
	return n;
}

static void expect_nothing(void)
{
	assert_int_equal(*host_size(&stacks), 0);
	assert_int_equal(*host_size(&waits), 0);
	assert_int_equal(host_ring_used, 0);
}

static void of_many_the_process_decides(void **state)
{
	(void)state;
	become_many();
	live_for(STEPS);
	expect_equal(0);
	assert_true(sets_hits(SET) >= STEPS && !bystanders_hits(SET));
	assert_true(*host_size(&waits) == waits_of[SLOT] && waits_of[SLOT] == waits_all);
}

static void windows_are_the_sets(void **state)
{
	(void)state;
	become_many();
	windows_count_what_begins_in_them(state);
}

static void a_bystander_leaves_at_once(void **state)
{
	(void)state;
	become_many();
	host_task.tgid = OTHER;
	live_for(1000);
	expect_nothing();
	assert_true(bystanders_hits(SET) >= 1000);
}

/* Containers of one image: each has a set, and the kernel puts the probes of both into the one file below them. */
static void another_sets_probe_does_not_count(void **state)
{
	(void)state;
	become_many();
	open_for[NEXT] = (struct gpb_open){ .bits = GPB_OPEN };
	probed_as = NEXT;
	live_for(1000);
	expect_nothing();
	assert_true(sets_hits(NEXT) >= 1000 && !bystanders_hits(NEXT));
}

/* It has called exec, and user space does not know yet. */
static void another_program_is_not_counted(void **state)
{
	struct gpb_target t = target;
	struct mm_struct mm = { .start_stack = 2 };
	uint32_t at = SLOT;

	(void)state;
	become_many();
	t.start_stack = 1;
	host_task.mm = &mm;
	assert_int_equal(bpf_map_update_elem(&targets, &at, &t, BPF_ANY), 0);
	live_for(1000);
	expect_nothing();
	host_task.mm = NULL;
}

/* Addresses of goroutines are alike in all programs: what is left of one that had the slot is no beginning of a wait. */
static void the_slots_last_target_began_nothing(void **state)
{
	(void)state;
	become_many();
	live_for(1000);
	for (int i = 0; i < GOROUTINES; i++)
		lives[i].known = 0;
	terms.from = ++host_now_ns;
	live_for(STEPS);
	expect_equal(0);
}

/* One that floods the table is refused, and is said to have lost. */
static void goroutines_have_a_quota(void **state)
{
	(void)state;
	become_many();
	use_terms();
	waits_quota = (struct gpb_quota){ .part = 10 };
	for (int i = 0; i < GOROUTINES; i++) {
		set_waitreason(i, 1);
		hit(GPB_AT_PARK, G0, g_of(i), 0, 0);
	}
	assert_true(*host_size(&waits) == 10 && waits_of[SLOT] == 10 && waits_all == 10);
	assert_int_equal(tallies[SLOT].lost[GPB_LOSS_WAITS], GOROUTINES - 10);
	/* While all together have little, it may have more; those that are in it stay. */
	waits_quota.free = 20;
	for (int i = 0; i < GOROUTINES; i++)
		hit(GPB_AT_PARK, G0, g_of(i), 0, 0);
	assert_true(*host_size(&waits) == 20 && waits_of[SLOT] == 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_wait_is_told_once, reset),
		cmocka_unit_test_setup(samples_stand_for_all, reset),
		cmocka_unit_test_setup(windows_count_what_begins_in_them, reset),
		cmocka_unit_test_setup(what_hits_take_is_no_wait, reset),
		cmocka_unit_test_setup(another_wait_is_not_this_one, reset),
		cmocka_unit_test_setup(waits_from_before_are_counted_as_early, reset),
		cmocka_unit_test_setup_teardown(of_many_the_process_decides, reset, become_one),
		cmocka_unit_test_setup_teardown(windows_are_the_sets, reset, become_one),
		cmocka_unit_test_setup_teardown(a_bystander_leaves_at_once, reset, become_one),
		cmocka_unit_test_setup_teardown(another_sets_probe_does_not_count, reset,
						become_one),
		cmocka_unit_test_setup_teardown(another_program_is_not_counted, reset, become_one),
		cmocka_unit_test_setup_teardown(the_slots_last_target_began_nothing, reset,
						become_one),
		cmocka_unit_test_setup_teardown(goroutines_have_a_quota, reset, become_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
