/* tests/unit/looks_world.h - the goroutines that test_looks.c has looked at: their memory, the clock, and what looks say of them. */
#ifndef TESTS_UNIT_LOOKS_WORLD_H
#define TESTS_UNIT_LOOKS_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>

#include <math.h>

#include "collect/waits/looks/looks_priv.h"
#include "go/runtime/rtgor.h"
#include "mkgobin.h"

enum {
	ALLGS_AT = 0x8000,
	LIST_AT = 0x10000,
	G_AT = 0x100000,
	G_SIZE = 256,
	STACK_AT = 0x10000000,
	STACK = 4096,
	USED = 512, /* of each stack */
	MANY = 3000,
	REASON = 14,
};

/* Offsets of a made-up g. */
enum { LO = 0, HI = 8, SP = 16, PC = 24, BP = 32, STATUS = 40, GOID = 48, SINCE = 56, WHY = 64 };
enum { LABELS = 72, SEQ = 80 };

#define US    1000ull
#define MS    1000000ull
#define START (1000 * MS)
#define LONG  (8000 * MS)
/* Return addresses inside of the functions of tests/support/mkgobin.h. */
#define PC0 (MK_TEXT + 0x08)
#define PC1 (MK_TEXT + 0x48)
#define PC2 (MK_TEXT + 0xd8)
#define RUN (MK_TEXT + 0x58) /* in a stack while its goroutine runs */

/* What a goroutine does: from begins on, it waits for so long of each period; period 0: once. */
struct gor {
	uint64_t begins, lasts, period;
	uint32_t status;
	uint8_t reason;
	bool moves; /* its stack is at another place at each look */
	/* So long after a wait has begun it counts that (casgstatus in runtime/proc.go). */
	uint64_t lags;
	/* Up to then a GC holds it, and moves its stack: frames lead back to where that was. */
	uint64_t held;
};
enum { SCAN = 0x1000 };

/*
 * Goroutines 0 and 1 can wake each other in turns. In each part of their round one of them does
 * something and then writes to a g: who wakes it writes its status, who parks also its registers, which lie in
 * another cache line. Where a line was read since it was last written to, this takes STALL longer (the observer
 * effect). Who reads both lines comes to the second one LINE later. Goroutine 0 waits in the first part, 1 in
 * the third; the registers of one that runs are cleared.
 */
enum { PARTS = 4, STALL = 200, LINE = 60 };
enum { READ_REGS = 1, READ_STATUS = 2 };
static const struct {
	uint64_t ns;
	size_t writes;
	unsigned lines;
} part[PARTS] = { { 300, 0, READ_STATUS },
		  { 50, 1, READ_STATUS | READ_REGS },
		  { 300, 1, READ_STATUS },
		  { 50, 0, READ_STATUS | READ_REGS } };
static struct {
	bool on;
	unsigned read[2]; /* lines */
	size_t part;
	/* time left of the part; up to when that is true; rounds that are over */
	uint64_t left, at, rounds;
	double waited[2];
} turns;

static struct gor gor[MANY];
static size_t ngor;
static uint64_t now_ns, cpu_ns, cpu_per_look, moves, counted;
static uint64_t read_ns; /* how long each read takes */
static bool torn, gone;
static enum { UNMAPPED = 1, UNSET } begins; /* its list is not there yet */

static struct mem mem;
static struct mkgobin elf;
static struct target target;
static struct subject subject;
static struct tally tally;
static struct looks *k;

static uint64_t fake_now(void)
{
	return now_ns;
}

static uint64_t fake_cpu(void)
{
	return cpu_ns;
}

/* Advances the turns up to now. */
static void take_turns(void)
{
	while (turns.on && turns.at < now_ns) {
		size_t g = part[turns.part].writes;
		uint64_t ns = now_ns - turns.at < turns.left ? now_ns - turns.at : turns.left;

		if (turns.part % 2 == 0)
			turns.waited[g] += (double)ns;
		turns.at += ns;
		turns.left -= ns;
		if (!turns.left && turns.read[g] & part[turns.part].lines) {
			turns.read[g] &= ~part[turns.part].lines;
			turns.left = STALL;
		} else if (!turns.left) {
			turns.part = (turns.part + 1) % PARTS;
			turns.rounds += !turns.part;
			turns.left = part[turns.part].ns;
		}
	}
}

static bool waits_now(const struct gor *it)
{
	uint64_t since = now_ns - it->begins;

	if (turns.on && it < &gor[2])
		return turns.part == 2 * (size_t)(it - gor);
	if (now_ns < it->begins)
		return false;
	return (it->period ? since % it->period : since) < it->lasts;
}

static uint64_t which_wait(const struct gor *it)
{
	if (turns.on && it < &gor[2])
		return turns.rounds;
	return it->period && now_ns >= it->begins ?
		       (now_ns - it->begins + it->period - it->lags) / it->period :
		       0;
}

static uint64_t stack_of(size_t i)
{
	return STACK_AT + (2 * i + (gor[i].moves ? moves % 2 : 0)) * STACK;
}

static void put(uint8_t *g, size_t off, uint64_t v)
{
	memcpy(g + off, &v, sizeof(v));
}

static void make_g(size_t i, uint8_t g[G_SIZE])
{
	const struct gor *it = &gor[i];

	memset(g, 0, G_SIZE);
	put(g, LO, stack_of(i));
	put(g, HI, stack_of(i) + STACK);
	put(g, SP, turns.on && !waits_now(it) ? 0 : stack_of(i) + STACK - USED);
	put(g, PC, PC0);
	put(g, BP, stack_of(i) + STACK - USED + 16);
	put(g, STATUS,
	    (waits_now(it) ? it->status : GSTATUS_RUNNING) | (now_ns < it->held ? SCAN : 0));
	put(g, GOID, i + 1);
	g[WHY] = it->reason;
	g[SEQ] = (uint8_t)(which_wait(it) + (torn ? moves : 0));
}

static void make_stack(size_t i, uint8_t s[STACK])
{
	memset(s, 0, STACK);
	put(s, STACK - USED + 16, now_ns < gor[i].held ? 0xc000 : stack_of(i) + STACK - 32);
	put(s, STACK - USED + 24, waits_now(&gor[i]) ? PC1 : RUN);
	put(s, STACK - 24, PC2);
}

/* One line of a g after the other: what lies before its status, and the rest. */
static void read_g(size_t i, size_t off, uint8_t *buf, size_t n)
{
	size_t first = off < STATUS ? (n < STATUS - off ? n : STATUS - off) : 0;
	uint8_t g[G_SIZE];

	now_ns += read_ns;
	take_turns();
	make_g(i, g);
	memcpy(buf, g + off, first);
	if (i < 2 && first)
		turns.read[i] |= READ_REGS;
	if (first == n)
		return;
	now_ns += turns.on && first ? LINE : 0;
	take_turns();
	make_g(i, g);
	memcpy(buf + first, g + off + first, n - first);
	if (i < 2)
		turns.read[i] |= READ_STATUS;
}

static int fake_read(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	uint64_t slice[3] = { LIST_AT, ngor, ngor > MANY ? ngor : MANY };
	uint8_t bytes[STACK];
	size_t i;

	(void)m;
	if (gone)
		return err_set(e, -ESRCH, "no process");
	if (addr == ALLGS_AT && begins)
		slice[0] = slice[1] = slice[2] = 0;
	if (addr == ALLGS_AT && begins == UNMAPPED)
		return err_set(e, -EFAULT, "no memory");
	if (addr == ALLGS_AT && n == sizeof(slice)) {
		memcpy(buf, slice, n);
		return 0;
	}
	if (addr >= STACK_AT) {
		i = (addr - STACK_AT) / STACK / 2;
		if (i >= MANY || addr < stack_of(i) || addr + n > stack_of(i) + STACK)
			return err_set(e, -EFAULT, "no stack");
		now_ns += turns.on ? 0 : read_ns;
		make_stack(i, bytes);
		memcpy(buf, bytes + (addr - stack_of(i)), n);
		moves++;
		return 0;
	}
	if (addr >= LIST_AT && addr < G_AT) {
		for (i = 0; i < n / 8; i++)
			((uint64_t *)buf)[i] = G_AT + ((addr - LIST_AT) / 8 + i) * G_SIZE;
		return 0;
	}
	i = (addr - G_AT) / G_SIZE;
	if (addr < G_AT || i >= MANY || (addr - G_AT) % G_SIZE + n > G_SIZE)
		return err_set(e, -EFAULT, "no goroutine");
	cpu_ns += cpu_per_look;
	read_g(i, (addr - G_AT) % G_SIZE, buf, n);
	return 0;
}

static void fake_rest(uint64_t ns)
{
	now_ns += ns;
}

static void fill_layout(struct golayout *l)
{
	static const struct {
		enum layout_field f;
		int32_t off;
	} offs[] = {
		{ LAYOUT_g_stack_lo, LO },     { LAYOUT_g_stack_hi, HI },
		{ LAYOUT_g_sched_sp, SP },     { LAYOUT_g_sched_pc, PC },
		{ LAYOUT_g_sched_bp, BP },     { LAYOUT_g_atomicstatus, STATUS },
		{ LAYOUT_g_goid, GOID },       { LAYOUT_g_waitsince, SINCE },
		{ LAYOUT_g_waitreason, WHY },  { LAYOUT_g_labels, LABELS },
		{ LAYOUT_g_trackingseq, SEQ },
	};

	*l = (struct golayout){ .how = LAYOUT_DWARF };
	for (size_t i = 0; i < LAYOUT_COUNT; i++)
		l->off[i] = -1;
	for (size_t i = 0; i < ARRAY_LEN(offs); i++)
		l->off[offs[i].f] = offs[i].off;
}

static void open_subject(void)
{
	struct mkopt o = { .minor = 27 };
	struct err e = {};

	mem = (struct mem){ .read = fake_read };
	mkgobin(&elf, &o);
	target = (struct target){ .exe_fd = mkgobin_fd(elf.b, elf.n), .mem = &mem };
	subject = (struct subject){ .target = &target };
	assert_int_equal(gobin_open(target.exe_fd, "hand.elf", NULL, 0, &subject.bin, &e), 0);
	subject.images.at[0] = (struct image){ .bin = subject.bin, .lo = MK_TEXT, .hi = MK_ETEXT };
	subject.images.n = 1;
	fill_layout(&subject.layout);
}

static double may_take = LOOKS_SHARE_MOST;
static const struct looks_conf conf = {
	.tally = &tally, .reasons = 1ull << REASON, .counted = &counted, .share = &may_take
};

static int set_up_as(const struct looks_conf *c)
{
	/* so that each goroutine has an entry of its own */
	struct collect_opts o = { .goid = true };
	struct err e = {};

	memset(gor, 0, sizeof(gor));
	for (size_t i = 0; i < MANY; i++)
		gor[i] = (struct gor){ .begins = UINT64_MAX,
				       .status = GSTATUS_WAITING,
				       .reason = REASON };
	ngor = 10;
	now_ns = START;
	cpu_ns = cpu_per_look = moves = counted = read_ns = 0;
	torn = gone = false;
	begins = 0;
	memset(&turns, 0, sizeof(turns));
	open_subject();
	tally_init(&tally);
	assert_int_equal(looks_new(&subject, &o, c, &k, &e), 0);
	looks_set_clock(k, fake_now, fake_cpu, fake_rest);
	looks_set_seed(k, 42);
	looks_set_allgs(k, ALLGS_AT);
	assert_int_equal(looks_begin(k, 0, &e), 0);
	return 0;
}

static int set_up(void **state)
{
	(void)state;
	return set_up_as(&conf);
}

static int tear_down(void **state)
{
	(void)state;
	looks_free(k);
	tally_fini(&tally);
	gobin_free(subject.bin);
	close(target.exe_fd);
	return 0;
}

static void run_for(uint64_t ns)
{
	uint64_t due, end = now_ns + ns;

	while ((due = looks_due(k)) && due <= end) {
		now_ns = due > now_ns ? due : now_ns;
		assert_int_equal(looks_poll(k, NULL), 0);
	}
	now_ns = end;
}

static struct looks_result result(void)
{
	struct looks_result r;

	looks_end(k, &r);
	return r;
}

/* The estimate for goroutine @i. */
static struct looks_estimate of(size_t i)
{
	for (size_t n = 0; n < tally.entries.n; n++)
		if (tally.entries.at[n].st->goid == i + 1)
			return looks_of(k, n);
	return (struct looks_estimate){};
}

static void within(double value, double truth, double variance, double z)
{
	if (fabs(value - truth) > z * sqrt(variance))
		fail_msg("%.0f +- %.0f instead of %.0f", value, sqrt(variance), truth);
}

#endif
