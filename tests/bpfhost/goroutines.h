/*
 * tests/bpfhost/goroutines.h - the goroutines of a made-up target: each stands at a place of its own
 * with one caller, which the walk by frame pointers finds, and the walk by rules, too. Include it
 * behind program.h.
 */
#ifndef BPFHOST_GOROUTINES_H
#define BPFHOST_GOROUTINES_H

enum { GOROUTINES = 48, STACK_WORDS = 64, G_WORDS = 16 };
#define TEXT   0x400000ull
#define GS     0x10000ull
#define G0     0x20000ull
#define M      0x30000ull
#define STACK  0xc000010000ull
#define PC(i)  (TEXT + 0x100 + 16 * (uint64_t)(i)) /* where goroutine i stands, always */
#define CALLER (TEXT + 0x8000)

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

static uint64_t g_of(int i)
{
	return GS + sizeof(g_words[0]) * (uint64_t)i;
}

__attribute__((unused)) static void set_waitreason(int i, uint32_t reason)
{
	g_words[i][WAITREASON / 8] = reason;
}

/* The unwinding rule of a return address or saved pc. */
static void know(uint64_t pc, struct gpb_unwind_rule rule)
{
	uint64_t key = pc - 1;

	assert_int_equal(bpf_map_update_elem(&unwind_rules, &key, &rule, BPF_ANY), 0);
}

/* Maps them, and makes this target that of @slot; a window is open. */
static void goroutines_init(uint32_t slot)
{
	program_reset();
	memset(g_words, 0, sizeof(g_words));
	memset(stack_words, 0, sizeof(stack_words));
	for (int i = 0; i < GOROUTINES; i++) {
		uint64_t stack = STACK + sizeof(stack_words[0]) * (uint64_t)i;

		g_words[i][0] = stack;
		g_words[i][1] = stack + sizeof(stack_words[0]);
		g_words[i][2] = M;
		g_words[i][3] = stack + 8 * 11;
		g_words[i][4] = PC(i);
		g_words[i][5] = stack + 8 * 10;
		stack_words[i][11] = CALLER;
		know(PC(i), (struct gpb_unwind_rule){ .delta = 0 });
	}
	know(CALLER, (struct gpb_unwind_rule){ .flags = GPB_UNWIND_RULE_END });
	g0_words[2] = M;
	m_words[0] = G0;
	host_map(GS, g_words, sizeof(g_words));
	host_map(G0, g0_words, sizeof(g0_words));
	host_map(M, m_words, sizeof(m_words));
	host_map(STACK, stack_words, sizeof(stack_words));
	host_now_ns = 1000000;
	open_for[slot] = (struct gpb_open){ .bits = GPB_OPEN };
	assert_int_equal(bpf_map_update_elem(&targets, &slot, &target, BPF_ANY), 0);
}

/* Whose stack it is: each walk finds the same two frames. */
static uint64_t goroutine_of(const struct gpb_stack *s)
{
	uint64_t i = (s->pc[0] - PC(0)) / 16;

	assert_true(i < GOROUTINES && s->pc[0] - PC(i) < 2);
	assert_int_equal(s->nfirst, 2);
	assert_int_equal(s->pc[1], CALLER);
	return i;
}

#endif
