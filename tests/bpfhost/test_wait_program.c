/*
 * tests/bpfhost/test_wait_program.c - wait.bpf.c as a whole, over the lives of goroutines that are made
 * up: what it counts is compared with what they did.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "wait.bpf.c"

#include "program.h"
#include "goroutines.h"

enum { SLOT = 3, REASONS = 8, CHANGES = 200000 };
#define CLOCKED 5 /* a wait reason that a clock paces */

/* One goroutine: its status since when, and for what it waits. */
static struct life {
	uint32_t status, reason;
	uint64_t since;
	int seen;   /* its last change was while a window was open, namely the present one */
	int chance; /* a wait that began then counts */
	int paced;  /* a clock paced what made it runnable */
} lives[GOROUTINES];

/* Waits by goroutine, status, reason and length: how many, how long, and the variance of both. */
struct sums {
	double n, ns, n_var, ns_var;
};
static struct sums truth[GOROUTINES][GPB_G_WAITING + 1][REASONS][3];
static struct sums told[GOROUTINES][GPB_G_WAITING + 1][REASONS][3];
static struct gpb_waiting terms;
/* By which its hits and windows go: of one target its slot, of many a set; and what samples have. */
static uint32_t probed_as, told_slot;

static int reset(void **state)
{
	(void)state;
	goroutines_init(SLOT);
	memset(lives, 0, sizeof(lives));
	memset(truth, 0, sizeof(truth));
	memset(told, 0, sizeof(told));
	for (int i = 0; i < GOROUTINES; i++)
		lives[i].status = GPB_G_DEAD;
	terms = (struct gpb_waiting){ .rate = 1, .g_waitreason = WAITREASON };
	probed_as = told_slot = SLOT;
	return 0;
}

static void use_terms(void)
{
	uint32_t slot = SLOT;

	assert_int_equal(bpf_map_update_elem(&waitings, &slot, &terms, BPF_ANY), 0);
}

/* ---- lives ----------------------------------------------------------------------------------- */

/* What a goroutine of this status may do next. Source: proc.go, Go 1.27. */
static uint32_t next_status(uint32_t status)
{
	static const uint32_t from_running[] = { GPB_G_WAITING, GPB_G_WAITING,	GPB_G_SYSCALL,
						 GPB_G_SYSCALL, GPB_G_RUNNABLE, GPB_G_DEAD };

	switch (status) {
	case GPB_G_RUNNING:
		return from_running[below(6)];
	case GPB_G_SYSCALL:
		return below(4) ? GPB_G_RUNNING : GPB_G_RUNNABLE;
	case GPB_G_RUNNABLE:
		return GPB_G_RUNNING;
	}
	return GPB_G_RUNNABLE;
}

static void hit(int i, uint32_t old, uint32_t new, uint64_t kind)
{
	uint64_t g = g_of(i);
	int on_g = old == GPB_G_SYSCALL || new == GPB_G_SYSCALL;
	struct pt_regs regs = {
		.rip = PC(i) - 1,
		.rsp = g_words[i][3],
		.rbp = g_words[i][5],
		.rax = g,
		.rbx = old,
		.rcx = new,
		.r14 = on_g ? g : G0,
	};

	m_words[1] = g;
	host_cpu = below(4);
	host_cookie = kind | GPB_COOKIE_ENTRY | (uint64_t)probed_as << GPB_COOKIE_SLOT_SHIFT |
		      (uint64_t)old << GPB_COOKIE_OLD_SHIFT |
		      (uint64_t) new << GPB_COOKIE_NEW_SHIFT;
	wait_status(&regs);
}

static int waits(uint32_t status)
{
	return status == GPB_G_RUNNABLE || status == GPB_G_SYSCALL || status == GPB_G_WAITING;
}

/* Books a wait of @l that ends now: length of it, or -1 when it does not count. */
static int type_of(const struct life *l, uint64_t opened)
{
	uint64_t ns = host_now_ns - l->since;
	int windows = terms.terms.own.ns != 0, call = l->status == GPB_G_SYSCALL;

	if (!windows)
		return GPB_WAIT_SHORT;
	if (!l->seen)
		return call && host_now_ns - opened >= GPB_LONG_NS ? GPB_WAIT_CALL : -1;
	if (call && ns >= GPB_LONG_NS)
		return GPB_WAIT_CALL;
	if (!l->chance)
		return -1;
	return ns >= GPB_LONG_NS || l->paced ||
			       (l->status == GPB_G_WAITING && l->reason == CLOCKED) ?
		       GPB_WAIT_LONG :
		       GPB_WAIT_SHORT;
}

static void book(int i, uint64_t opened)
{
	const struct life *l = &lives[i];
	int type = type_of(l, opened);
	double ns = (double)(host_now_ns - l->since), rate = (double)terms.rate;
	struct sums *s;

	if (type < 0)
		return;
	s = &truth[i][l->status][l->status == GPB_G_WAITING ? l->reason : 0][type];
	s->n++;
	s->ns += l->seen ? ns : 0;
	if (ns < rate) {
		s->n_var += rate / ns - 1;
		s->ns_var += rate * ns - ns * ns;
	}
}

/* The next change of goroutine @i, whose window opened at @opened. */
static void live(int i, uint64_t opened)
{
	struct life *l = &lives[i], was = *l;
	uint32_t new = next_status(l->status);
	int open = open_for[probed_as].bits & GPB_OPEN_END, windows = terms.terms.own.ns != 0;
	uint64_t after = host_now_ns - opened;
	int known = l->since >= terms.from && (!windows || l->seen);

	if (new == GPB_G_WAITING) {
		l->reason = 1 + below(REASONS - 1);
		set_waitreason(i, l->reason);
	}
	if (open && waits(was.status) && (known || windows))
		book(i, opened);
	hit(i, was.status, new, GPB_STATUS_ARGS);
	/* A system call may be reported twice: where it is entered, and by casgstatus. */
	if ((new == GPB_G_SYSCALL || was.status == GPB_G_SYSCALL) && below(2))
		hit(i, was.status, new, GPB_STATUS_CURRENT);
	l->paced = new == GPB_G_RUNNABLE &&waits(was.status) &&
		   (known ? host_now_ns - was.since >= GPB_LONG_NS ||
				    (was.status == GPB_G_WAITING && was.reason == CLOCKED) :
			    after >= GPB_LONG_NS);
	l->status = new;
	l->since = host_now_ns;
	l->seen = open != 0;
	l->chance = open && (!windows || (after >= GPB_LONG_NS && after < terms.terms.begin_ns));
}

static void add_told(const struct gpb_stack *s)
{
	uint64_t i = goroutine_of(s), status = s->wait.kind, reason = s->wait.reason;

	assert_int_equal(s->slot, told_slot);
	assert_true(waits((uint32_t)status) && reason < REASONS && s->wait.length < 3);
	told[i][status][reason][s->wait.length].n += (double)s->count / GPB_COUNT_ONE;
	told[i][status][reason][s->wait.length].ns += (double)s->delay;
}

#define EACH(i, st, r, type)                                \
	for (int i = 0; i < GOROUTINES; i++)                \
		for (int st = 0; st <= GPB_G_WAITING; st++) \
			for (int r = 0; r < REASONS; r++)   \
				for (int type = 0; type < 3; type++)

static void expect_equal(void)
{
	double n = 0;

	each_sample(add_told);
	EACH(i, st, r, type)
	{
		const struct sums *is = &told[i][st][r][type], *was = &truth[i][st][r][type];

		if (is->n != was->n || is->ns != was->ns)
			fail_msg(
				"goroutine %d, status %d, reason %d, type %d: %.0f in %.0f ns, told %.0f in %.0f",
				i, st, r, type, was->n, was->ns, is->n, is->ns);
		n += is->n;
	}
	assert_true(n > CHANGES / 100);
	assert_int_equal(lost_in_all(SLOT), 0);
}

static void each_wait_is_told_once(void **state)
{
	(void)state;
	use_terms();
	for (int n = 0; n < CHANGES; n++) {
		host_now_ns += 1 + below(20000);
		live((int)below(GOROUTINES), 0);
	}
	expect_equal();
}

/* Waits shorter than the rate are samples in proportion, and stand for as many as they should. */
static void samples_stand_for_all(void **state)
{
	struct sums all[2] = { { 0 } };
	double z;

	(void)state;
	terms.rate = 1000000;
	use_terms();
	for (int n = 0; n < CHANGES; n++) {
		host_now_ns += 1 + below(20000);
		live((int)below(GOROUTINES), 0);
	}
	each_sample(add_told);
	EACH(i, st, r, type)
	{
		const struct sums *is = &told[i][st][r][type], *was = &truth[i][st][r][type];

		all[0].n += was->n, all[0].ns += was->ns;
		all[0].n_var += was->n_var, all[0].ns_var += was->ns_var;
		all[1].n += is->n, all[1].ns += is->ns;
	}
	z = (all[1].n - all[0].n) / sqrt(all[0].n_var);
	assert_true(fabs(z) < 4);
	z = (all[1].ns - all[0].ns) / sqrt(all[0].ns_var);
	assert_true(fabs(z) < 4);
	assert_true(all[0].ns_var > 0 && all[1].n > 0);
}

/* Windows of 4 ms, 6 ms apart, in whose first 2 ms waits begin to count. */
static void live_in_windows(void)
{
	const uint64_t window = 4000000, pause = 6000000;
	uint64_t opened = host_now_ns;

	terms.clocked = 1 << CLOCKED;
	terms.terms = (struct gpb_wait_terms){ .own = { .ns = 1ull << 40 },
					       .own_share = GPB_SHARE_ONE,
					       .begin_ns = 2000000 };
	use_terms();
	open_for[probed_as].bits = 0;
	for (int n = 0; n < 3 * CHANGES; n++) {
		host_now_ns += 1 + below(8000);
		if (host_now_ns >= opened + window)
			open_for[probed_as].bits = 0;
		if (host_now_ns >= opened + window + pause) {
			opened = host_now_ns;
			open_for[probed_as] = (struct gpb_open){ .since = opened,
								 .bits = GPB_OPEN };
			for (int i = 0; i < GOROUTINES; i++)
				lives[i].seen = lives[i].chance = 0;
		}
		live((int)below(GOROUTINES), opened);
	}
	expect_equal();
}

static void windows_count_what_begins_in_them(void **state)
{
	(void)state;
	live_in_windows();
}

/* ---- many targets ----------------------------------------------------------------------------- */

enum { PID = 77, OTHER = 78, SET = 5, NEXT = 9 };

/* One target in a slot of a second generation, whose probes are of a set. */
static void become_many(void)
{
	uint32_t pid = PID, slot = 1u << GPB_SLOT_GENERATION | SLOT;

	*(uint32_t *)(uintptr_t)&many_targets = 1;
	standings_quota = ring_quota = stacks_quota = (struct gpb_quota){ .part = 1 << 30,
									  .free = 1 << 30 };
	memset(standings_of, 0, sizeof(standings_of));
	standings_all = 0;
	set_of[SLOT] = SET;
	open_for[SLOT] = (struct gpb_open){ 0 };
	open_for[SET] = (struct gpb_open){ .bits = GPB_OPEN };
	probed_as = SET;
	told_slot = slot;
	host_task.tgid = host_task.pid = PID;
	assert_int_equal(bpf_map_update_elem(&slot_of_tgid, &pid, &slot, BPF_ANY), 0);
	use_terms();
}

static int become_one(void **state)
{
	(void)state;
	*(uint32_t *)(uintptr_t)&many_targets = 0;
	return 0;
}

static void live_for(int changes)
{
	for (int n = 0; n < changes; n++) {
		host_now_ns += 1 + below(20000);
		live((int)below(GOROUTINES), 0);
	}
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
	assert_int_equal(*host_size(&standings), 0);
	assert_int_equal(host_ring_used, 0);
}

static void of_many_the_process_decides(void **state)
{
	(void)state;
	become_many();
	live_for(CHANGES);
	expect_equal();
	assert_true(sets_hits(SET) >= CHANGES && !bystanders_hits(SET));
	assert_int_equal(*host_size(&standings), standings_of[SLOT]);
	assert_int_equal(standings_of[SLOT], standings_all);
}

static void windows_are_the_sets(void **state)
{
	(void)state;
	become_many();
	live_in_windows();
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
}

/* Addresses of goroutines are alike in all programs: what is left of one that had the slot is no beginning of a wait. */
static void the_slots_last_target_began_nothing(void **state)
{
	(void)state;
	become_many();
	live_for(1000);
	terms.from = ++host_now_ns;
	use_terms();
	live_for(CHANGES);
	expect_equal();
}

/* One that floods the table is refused, and is said to have lost; what ends makes room. */
static void goroutines_have_a_quota(void **state)
{
	(void)state;
	become_many();
	standings_quota = (struct gpb_quota){ .part = 10 };
	for (int i = 0; i < GOROUTINES; i++)
		hit(i, GPB_G_DEAD, GPB_G_RUNNABLE, GPB_STATUS_ARGS);
	assert_int_equal(*host_size(&standings), 10);
	assert_int_equal(standings_of[SLOT], 10);
	assert_int_equal(tallies[SLOT].lost[GPB_LOSS_WAITS], GOROUTINES - 10);
	for (int i = 0; i < GOROUTINES; i++)
		hit(i, GPB_G_RUNNING, GPB_G_DEAD, GPB_STATUS_ARGS);
	assert_int_equal(*host_size(&standings), 0);
	assert_true(!standings_of[SLOT] && !standings_all);
	/* While all together have little, it may have more. */
	standings_quota.free = 20;
	for (int i = 0; i < GOROUTINES; i++)
		hit(i, GPB_G_DEAD, GPB_G_RUNNABLE, GPB_STATUS_ARGS);
	assert_int_equal(standings_of[SLOT], 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_wait_is_told_once, reset),
		cmocka_unit_test_setup(samples_stand_for_all, reset),
		cmocka_unit_test_setup(windows_count_what_begins_in_them, reset),
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
