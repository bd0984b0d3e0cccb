/*
 * tests/bpfhost/stacks.h - a made-up target for the stack walks: text, a goroutine's stack and
 * a system stack, g, g0 and m. Include it behind the walker.
 */
#ifndef BPFHOST_STACKS_H
#define BPFHOST_STACKS_H

/* Text and two stacks of a made-up target. */
#define TEXT	   0x400000ull
#define TEXT_END   0x500000ull
#define PLUGIN	   0x7e0000000000ull
#define PLUGIN_END 0x7e0000100000ull
#define STACK	   0xc000010000ull
#define STACK0	   0x7f0000000000ull
#define OLD_STACK  0xc000090000ull
#define WORDS	   4096
#define G	   0x10000ull
#define G0	   0x20000ull
#define M	   0x30000ull

static uint64_t stack_words[WORDS], stack0_words[WORDS], old_words[WORDS];
static uint64_t g_words[64], g0_words[64], m_words[64];
static struct gpb_stack st;
__attribute__((unused)) static struct walk walk;

/* Offsets are ours to choose: word i of each struct. */
static const struct gpb_target target = {
	.nimages = 2,
	.image = { { .text_lo = TEXT,
		     .text_hi = TEXT_END,
		     .mcall_lo = TEXT + 0x900,
		     .mcall_hi = TEXT + 0x980,
		     .switch_lo = TEXT + 0x810,
		     .switch_hi = TEXT + 0x820,
		     .stub_lo = TEXT + 0xa00,
		     .stub_hi = TEXT + 0xa80 },
		   { .text_lo = PLUGIN,
		     .text_hi = PLUGIN_END,
		     .mcall_lo = PLUGIN + 0x900,
		     .mcall_hi = PLUGIN + 0x980 } },
	.seam = 8,
	.g_stack_lo = 0,
	.g_stack_hi = 8,
	.g_m = 16,
	.g_sched_sp = 24,
	.g_sched_pc = 32,
	.g_sched_bp = 40,
	.g_syscallsp = 48,
	.g_syscallpc = 56,
	.g_syscallbp = 64,
	.m_g0 = 0,
	.m_curg = 8,
	.m_ncgo = 16,
	.m_vdsosp = 24,
	.m_vdsopc = 32,
	.m_preemptoff = 40,
	.g_goid = -1,
	.g_labels = -1,
	.g_atomicstatus = 72,
	.m_p = -1,
};

/* Everything is empty, g is the current goroutine, nothing is saved. */
static void stacks_reset(void)
{
	host_reset();
	memset(stack_words, 0, sizeof(stack_words));
	memset(stack0_words, 0, sizeof(stack0_words));
	memset(old_words, 0, sizeof(old_words));
	memset(g_words, 0, sizeof(g_words));
	memset(g0_words, 0, sizeof(g0_words));
	memset(m_words, 0, sizeof(m_words));
	memset(&st, 0, sizeof(st));
	g_words[0] = STACK;
	g_words[1] = STACK + sizeof(stack_words);
	g_words[2] = g0_words[2] = M;
	g0_words[0] = STACK0;
	g0_words[1] = STACK0 + sizeof(stack0_words);
	m_words[0] = G0;
	m_words[1] = G;
	host_map(STACK, stack_words, sizeof(stack_words));
	host_map(STACK0, stack0_words, sizeof(stack0_words));
	host_map(OLD_STACK, old_words, sizeof(old_words));
	host_map(G, g_words, sizeof(g_words));
	host_map(G0, g0_words, sizeof(g0_words));
	host_map(M, m_words, sizeof(m_words));
}

#endif
