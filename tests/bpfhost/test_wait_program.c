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

enum { SLOT = 3, GOROUTINES = 48, REASONS = 8, CHANGES = 200000, STACK_WORDS = 64, G_WORDS = 16 };
#define TEXT	0x400000ull
#define GS	0x10000ull
#define G0	0x20000ull
#define M	0x30000ull
#define STACK	0xc000010000ull
#define PC(i)	(TEXT + 0x100 + 16 * (uint64_t)(i)) /* where goroutine i stands, always */
#define CALLER	(TEXT + 0x8000)
#define CLOCKED 5 /* a wait reason that a clock paces */

/* Offsets are ours to choose: word i of each struct. */
static const struct gpb_target target = {
	.nimages = 1,
	.image = { { .text_lo = TEXT, .text_hi = TEXT + 0x10000 } },
	.flags = GPB_TARGET_REGABI,
	.g_stack_lo = 0,
	.g_stack_hi = 8,
	.g_m = 16,
	.g_sched_sp = 24,
	.g_sched_pc = 32,
	.g_sched_bp = 40,
	.g_syscallsp = 48,
	.g_syscallpc = 56,
	.g_syscallbp = 64,
	.g_atomicstatus = 72,
	.g_goid = -1,
	.g_labels = -1,
	.m_g0 = 0,
	.m_curg = 8,
	.m_ncgo = 16,
	.m_vdsosp = 24,
	.m_vdsopc = 32,
	.m_preemptoff = 40,
	.m_p = -1,
};
enum { WAITREASON = 80 };

static uint64_t g_words[GOROUTINES][G_WORDS], g0_words[G_WORDS], m_words[G_WORDS];
static uint64_t stack_words[GOROUTINES][STACK_WORDS];

/* One goroutine: its status since when, and for what it waits. */
static struct life {
	uint32_t status, reason;
	uint64_t since;
	int seen;   /* its last change was while a window was open, namely the present one */
	int chance; /* a wait that began then counts */
	int paced;  /* a clock paced what made it runnable */
} lives[GOROUTINES];

/* Waits by goroutine, status, reason and gpb_stack.type: how many, how long, and the variance of both. */
struct sums {
	double n, ns, n_var, ns_var;
};
static struct sums truth[GOROUTINES][GPB_G_WAITING + 1][REASONS][3];
static struct sums told[GOROUTINES][GPB_G_WAITING + 1][REASONS][3];
static struct gpb_waiting terms;

/* The unwinding rule of a return address or saved pc. */
static void know(uint64_t pc, struct gpb_rule rule)
{
	uint64_t key = pc - 1;

	assert_int_equal(bpf_map_update_elem(&rules, &key, &rule, BPF_ANY), 0);
}

static int reset(void **state)
{
	uint32_t slot = SLOT;

	(void)state;
	program_reset();
	memset(lives, 0, sizeof(lives));
	memset(truth, 0, sizeof(truth));
	memset(told, 0, sizeof(told));
	memset(g_words, 0, sizeof(g_words));
	memset(stack_words, 0, sizeof(stack_words));
	host_now_ns = 1000000;
	for (int i = 0; i < GOROUTINES; i++) {
		uint64_t stack = STACK + sizeof(stack_words[0]) * (uint64_t)i;

		lives[i].status = GPB_G_DEAD;
		g_words[i][0] = stack;
		g_words[i][1] = stack + sizeof(stack_words[0]);
		g_words[i][2] = M;
		g_words[i][3] = stack + 8 * 11;
		g_words[i][4] = PC(i);
		g_words[i][5] = stack + 8 * 10;
		stack_words[i][11] = CALLER;
		know(PC(i), (struct gpb_rule){ .delta = 0 });
	}
	know(CALLER, (struct gpb_rule){ .flags = GPB_RULE_END });
	g0_words[2] = M;
	m_words[0] = G0;
	host_map(GS, g_words, sizeof(g_words));
	host_map(G0, g0_words, sizeof(g0_words));
	host_map(M, m_words, sizeof(m_words));
	host_map(STACK, stack_words, sizeof(stack_words));
	terms = (struct gpb_waiting){ .rate = 1, .g_waitreason = WAITREASON };
	open_for[SLOT] = (struct gpb_open){ .bits = GPB_OPEN };
	return (int)bpf_map_update_elem(&targets, &slot, &target, BPF_ANY);
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
	uint64_t g = GS + sizeof(g_words[0]) * (uint64_t)i;
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
	host_cookie = kind | GPB_COOKIE_ENTRY | (uint64_t)SLOT << GPB_COOKIE_SLOT_SHIFT |
		      (uint64_t)old << GPB_COOKIE_OLD_SHIFT |
		      (uint64_t) new << GPB_COOKIE_NEW_SHIFT;
	wait_status(&regs);
}

static int waits(uint32_t status)
{
	return status == GPB_G_RUNNABLE || status == GPB_G_SYSCALL || status == GPB_G_WAITING;
}

/* Books a wait of @l that ends now: gpb_stack.type of it, or -1 when it does not count. */
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
	int open = open_for[SLOT].bits & GPB_OPEN_END, windows = terms.terms.own.ns != 0;
	uint64_t after = host_now_ns - opened;
	int known = !windows || l->seen;

	if (new == GPB_G_WAITING) {
		l->reason = 1 + below(REASONS - 1);
		g_words[i][WAITREASON / 8] = l->reason;
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
	uint64_t i = (s->pc[0] - PC(0)) / 16;
	uint64_t status = s->size >> 8, reason = s->size & 0xff;

	assert_int_equal(s->slot, SLOT);
	assert_true(i < GOROUTINES && s->pc[0] - PC(i) < 2);
	assert_int_equal(s->nfirst, 2);
	assert_int_equal(s->pc[1], CALLER);
	assert_true(waits((uint32_t)status) && reason < REASONS && s->type < 3);
	told[i][status][reason][s->type].n += (double)s->count / GPB_COUNT_ONE;
	told[i][status][reason][s->type].ns += (double)s->delay;
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
static void windows_count_what_begins_in_them(void **state)
{
	const uint64_t window = 4000000, pause = 6000000;
	uint64_t opened = host_now_ns;

	(void)state;
	terms.clocked = 1 << CLOCKED;
	terms.terms = (struct gpb_wait_terms){ .own = { .ns = 1ull << 40 },
					       .own_share = GPB_SHARE_ONE,
					       .begin_ns = 2000000 };
	use_terms();
	open_for[SLOT].bits = 0;
	for (int n = 0; n < 3 * CHANGES; n++) {
		host_now_ns += 1 + below(8000);
		if (host_now_ns >= opened + window)
			open_for[SLOT].bits = 0;
		if (host_now_ns >= opened + window + pause) {
			opened = host_now_ns;
			open_for[SLOT] = (struct gpb_open){ .since = opened, .bits = GPB_OPEN };
			for (int i = 0; i < GOROUTINES; i++)
				lives[i].seen = lives[i].chance = 0;
		}
		live((int)below(GOROUTINES), opened);
	}
	expect_equal();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_wait_is_told_once, reset),
		cmocka_unit_test_setup(samples_stand_for_all, reset),
		cmocka_unit_test_setup(windows_count_what_begins_in_them, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
