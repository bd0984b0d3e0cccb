/* tests/unit/test_rtgor.c - goroutines of a made-up address space, which move while read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/limits.h"
#include "go/runtime/rtgor.h"

enum {
	BASE = 0x100000,
	SIZE = 1 << 20,
	LEN_AT = BASE,
	PTR_AT = BASE + 8,
	LIST_AT = BASE + 64,
	G_AT = BASE + 0x10000,
	G_SIZE = 512,
	STACK_AT = BASE + 0x80000,
	STACK = 2048,
	HUGE_AT = 0x40000000, /* memory without end: zeros, of which only the first are copied */
};

/* Offsets of a made-up g. */
enum {
	LO = 0,
	HI = 8,
	SP = 16,
	PC = 24,
	SYS_SP = 32,
	SYS_PC = 40,
	STATUS = 48,
	GOID = 56,
	SINCE = 64,
	REASON = 72,
	GOPC = 80,
	STARTPC = 88,
	LABELS = 96,
	PARENT = 104,
	LOCKED = 112,
	SEQ = 120,
};

struct fake {
	struct mem mem; /* first */
	uint8_t bytes[SIZE];
	unsigned stack_reads;
	/* Called after each read of a stack. */
	void (*on_stack)(struct fake *f, uint64_t addr);
	struct golayout layout;
	struct rtgor_vars vars;
	struct rtgors_seen seen;
	unsigned n;
	struct rtgor got[300];
	uint64_t first_word[300]; /* on each one's stack */
	int answer;		  /* what each() returns, unless it is the last time */
};

static void put64(struct fake *f, uint64_t addr, uint64_t v)
{
	assert_true(addr >= BASE && addr + 8 <= BASE + SIZE);
	memcpy(f->bytes + (addr - BASE), &v, 8);
}

static uint64_t get64(struct fake *f, uint64_t addr)
{
	uint64_t v;

	memcpy(&v, f->bytes + (addr - BASE), 8);
	return v;
}

static int fake_read(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	struct fake *f = (struct fake *)m;

	if (addr >= HUGE_AT) {
		memset(buf, 0, n < 64 ? n : 64);
		return 0;
	}
	if (addr < BASE || addr + n > BASE + SIZE)
		return err_set(e, -EFAULT, "no memory at 0x%llx", (unsigned long long)addr);
	memcpy(buf, f->bytes + (addr - BASE), n);
	if (addr >= STACK_AT && f->on_stack) {
		f->stack_reads++;
		f->on_stack(f, addr);
	}
	return 0;
}

static struct fake *fake_new(void)
{
	static const struct {
		enum layout_field f;
		int32_t off;
	} offs[] = {
		{ LAYOUT_g_stack_lo, LO },	   { LAYOUT_g_stack_hi, HI },
		{ LAYOUT_g_sched_sp, SP },	   { LAYOUT_g_sched_pc, PC },
		{ LAYOUT_g_syscallsp, SYS_SP },	   { LAYOUT_g_syscallpc, SYS_PC },
		{ LAYOUT_g_atomicstatus, STATUS }, { LAYOUT_g_goid, GOID },
		{ LAYOUT_g_waitsince, SINCE },	   { LAYOUT_g_waitreason, REASON },
		{ LAYOUT_g_gopc, GOPC },	   { LAYOUT_g_startpc, STARTPC },
		{ LAYOUT_g_labels, LABELS },	   { LAYOUT_g_parentgoid, PARENT },
		{ LAYOUT_g_lockedm, LOCKED },	   { LAYOUT_g_trackingseq, SEQ },
	};
	struct fake *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->mem.read = fake_read;
	for (size_t i = 0; i < LAYOUT_COUNT; i++)
		f->layout.off[i] = -1;
	for (size_t i = 0; i < ARRAY_LEN(offs); i++)
		f->layout.off[offs[i].f] = offs[i].off;
	f->vars = (struct rtgor_vars){ LEN_AT, PTR_AT, 27 };
	put64(f, PTR_AT, LIST_AT);
	return f;
}

static uint64_t g_at(unsigned i)
{
	return G_AT + (uint64_t)i * G_SIZE;
}

static uint64_t stack_of(unsigned i)
{
	return STACK_AT + (uint64_t)i * STACK;
}

/* Adds a goroutine; 256 bytes of its stack are in use, and its first word is 0x5000 + i. */
static unsigned add_g(struct fake *f, enum gstatus status)
{
	unsigned i = (unsigned)get64(f, LEN_AT);
	uint64_t g = g_at(i), sp = stack_of(i) + STACK - 256;

	put64(f, LIST_AT + 8 * (uint64_t)i, g);
	put64(f, g + LO, stack_of(i));
	put64(f, g + HI, stack_of(i) + STACK);
	put64(f, g + SP, sp);
	put64(f, g + PC, 0x400000 + i);
	put64(f, g + STATUS, status);
	put64(f, g + GOID, 100 + i);
	put64(f, sp, 0x5000 + i);
	put64(f, LEN_AT, i + 1);
	return i;
}

static int keep(void *arg, const struct rtgor *g, struct err *e)
{
	struct fake *f = arg;

	(void)e;
	if (f->answer && !g->last)
		return f->answer;
	assert_true(f->n < ARRAY_LEN(f->got));
	if (g->what == RTGOR_SAVED)
		memcpy(&f->first_word[f->n], g->stack, 8);
	f->got[f->n++] = *g;
	return 0;
}

static void read_ok(struct fake *f)
{
	struct err e = { 0 };
	int ret = rtgors_read(&f->mem, &f->layout, &f->vars, keep, f, &f->seen, &e);

	if (ret)
		fail_msg("%d: %s", ret, e.msg);
}

static void read_bad(struct fake *f, int code, const char *want)
{
	struct err e = { 0 };
	int ret = rtgors_read(&f->mem, &f->layout, &f->vars, keep, f, &f->seen, &e);

	assert_int_equal(ret, code);
	if (!strstr(e.msg, want))
		fail_msg("\"%s\" not in \"%s\"", want, e.msg);
}

static void gives_those_that_live_in_their_order(void **state)
{
	struct fake *f = fake_new();

	(void)state;
	add_g(f, GSTATUS_WAITING);
	add_g(f, GSTATUS_DEAD);
	add_g(f, GSTATUS_RUNNABLE);
	add_g(f, GSTATUS_DEADEXTRA);
	add_g(f, GSTATUS_IDLE);
	add_g(f, (enum gstatus)(GSTATUS_LEAKED | 0x1000));
	put64(f, g_at(0) + REASON, 19);
	put64(f, g_at(0) + LOCKED, 77);
	put64(f, g_at(0) + PARENT, 1);
	read_ok(f);
	assert_int_equal(f->n, 3);
	assert_int_equal(f->seen.all, 6);
	assert_int_equal(f->seen.live, 3);
	assert_int_equal(f->got[0].goid, 100);
	assert_int_equal(f->got[0].waitreason, 19);
	assert_true(f->got[0].locked);
	assert_int_equal(f->got[0].parent, 1);
	assert_int_equal(f->got[1].goid, 102);
	assert_int_equal(f->got[2].status, GSTATUS_LEAKED);
	assert_true(f->got[2].scan);
	assert_int_equal(f->got[2].nstack, 256);
	assert_int_equal(f->first_word[2], 0x5005);
	free(f);
}

static void a_system_call_left_its_own_registers(void **state)
{
	struct fake *f = fake_new();
	unsigned i = add_g(f, GSTATUS_SYSCALL);

	(void)state;
	put64(f, g_at(i) + SYS_SP, stack_of(i) + STACK - 64);
	put64(f, g_at(i) + SYS_PC, 0x401234);
	read_ok(f);
	assert_true(f->got[0].syscall);
	assert_int_equal(f->got[0].pc, 0x401234);
	assert_int_equal(f->got[0].nstack, 64);
	free(f);
}

static void one_that_runs_has_no_stack(void **state)
{
	struct fake *f = fake_new();

	(void)state;
	add_g(f, GSTATUS_RUNNING);
	read_ok(f);
	assert_int_equal(f->got[0].what, RTGOR_RUNNING);
	assert_int_equal(f->got[0].nstack, 0);
	free(f);
}

/* It ran and parked again at the same place while its stack was copied: only seq shows that. */
static void moves_once(struct fake *f, uint64_t addr)
{
	if (f->stack_reads > 1)
		return;
	put64(f, g_at(0) + SEQ, 1);
	put64(f, addr, 0x7777);
}

static void what_moved_is_read_again(void **state)
{
	struct fake *f = fake_new();

	(void)state;
	add_g(f, GSTATUS_WAITING);
	f->on_stack = moves_once;
	read_ok(f);
	assert_int_equal(f->n, 1);
	assert_int_equal(f->got[0].what, RTGOR_SAVED);
	assert_int_equal(f->got[0].seq, 1);
	assert_int_equal(f->first_word[0], 0x7777);
	assert_int_equal(f->seen.again, 1);
	assert_int_equal(f->seen.torn, 0);
	free(f);
}

static void always_moves(struct fake *f, uint64_t addr)
{
	(void)addr;
	put64(f, g_at(0) + SEQ, f->stack_reads);
}

static void what_always_moves_is_counted(void **state)
{
	struct fake *f = fake_new();

	(void)state;
	add_g(f, GSTATUS_WAITING);
	add_g(f, GSTATUS_WAITING);
	f->on_stack = always_moves;
	read_ok(f);
	assert_int_equal(f->n, 2);
	assert_int_equal(f->got[0].what, RTGOR_TORN);
	assert_int_equal(f->got[0].goid, 100);
	assert_int_equal(f->got[1].what, RTGOR_SAVED);
	assert_int_equal(f->seen.torn, 1);
	free(f);
}

/* It ends, and its g is used for the next one. */
static void becomes_another(struct fake *f, uint64_t addr)
{
	(void)addr;
	if (f->stack_reads == 1)
		put64(f, g_at(0) + GOID, 555);
}

static void another_one_in_the_same_place_is_itself(void **state)
{
	struct fake *f = fake_new();

	(void)state;
	add_g(f, GSTATUS_WAITING);
	f->on_stack = becomes_another;
	read_ok(f);
	assert_int_equal(f->n, 1);
	assert_int_equal(f->got[0].goid, 555);
	free(f);
}

static void ends(struct fake *f, uint64_t addr)
{
	(void)addr;
	put64(f, g_at(0) + STATUS, GSTATUS_DEAD);
}

static void one_that_ended_is_not_there(void **state)
{
	struct fake *f = fake_new();

	(void)state;
	add_g(f, GSTATUS_WAITING);
	f->on_stack = ends;
	read_ok(f);
	assert_int_equal(f->n, 0);
	assert_int_equal(f->seen.bad, 0);
	free(f);
}

static void a_deep_stack_is_read_whole(void **state)
{
	struct fake *f = fake_new();
	unsigned i = add_g(f, GSTATUS_WAITING);

	(void)state;
	put64(f, g_at(i) + HI, stack_of(i) + 0x20000);
	put64(f, g_at(i) + SP, stack_of(i) + 8);
	put64(f, stack_of(i) + 8, 42);
	read_ok(f);
	assert_int_equal(f->got[0].nstack, 0x20000 - 8);
	assert_int_equal(f->first_word[0], 42);
	assert_int_equal(f->seen.again, 0);
	free(f);
}

/* 257 times the same 64 MiB: more than a program can have. */
static void a_list_of_huge_stacks_comes_to_an_end(void **state)
{
	enum { WHOLE = 256 }; /* LIMIT_STACK_PAGES */
	struct fake *f = fake_new();
	unsigned i = add_g(f, GSTATUS_WAITING);

	(void)state;
	put64(f, g_at(i) + LO, HUGE_AT);
	put64(f, g_at(i) + SP, HUGE_AT + 64);
	put64(f, g_at(i) + HI, HUGE_AT + 64 + LIMIT_STACK_BYTES);
	for (unsigned k = 1; k <= WHOLE; k++)
		put64(f, LIST_AT + 8 * (uint64_t)k, g_at(i));
	put64(f, LEN_AT, WHOLE + 1);
	read_ok(f);
	assert_int_equal(f->n, WHOLE + 1);
	assert_int_equal(f->got[WHOLE - 1].nstack, LIMIT_STACK_BYTES);
	assert_false(f->got[WHOLE - 1].cut);
	assert_int_equal(f->got[WHOLE].nstack, 4096);
	assert_true(f->got[WHOLE].cut);
	free(f);
}

static void registers_outside_of_the_stack_are_bad(void **state)
{
	static const uint64_t sps[] = { 0,	   8, STACK_AT - 8, STACK_AT + STACK, STACK_AT + 4,
					UINT64_MAX };

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(sps); k++) {
		struct fake *f = fake_new();

		add_g(f, GSTATUS_WAITING);
		put64(f, g_at(0) + SP, sps[k]);
		read_ok(f);
		assert_int_equal(f->n, 1);
		assert_int_equal(f->got[0].what, RTGOR_BAD);
		assert_int_equal(f->seen.bad, 1);
		free(f);
	}
}

static void one_that_cannot_be_read_stops_no_other(void **state)
{
	struct fake *f = fake_new();

	(void)state;
	add_g(f, GSTATUS_WAITING);
	add_g(f, GSTATUS_WAITING);
	add_g(f, (enum gstatus)7);
	add_g(f, (enum gstatus)12);
	put64(f, LIST_AT, BASE + SIZE - 8);
	put64(f, g_at(2) + STATUS, 12);
	read_ok(f);
	assert_int_equal(f->n, 1);
	assert_int_equal(f->got[0].goid, 101);
	assert_int_equal(f->seen.bad, 3);
	free(f);
}

static void a_stack_that_makes_no_sense_is_read_again(void **state)
{
	struct fake *f = fake_new();

	(void)state;
	add_g(f, GSTATUS_WAITING);
	f->answer = -EAGAIN;
	read_ok(f);
	assert_int_equal(f->n, 1);
	assert_true(f->got[0].last);
	assert_true(f->seen.again >= 2);
	free(f);
}

static void lists_that_lie_are_refused(void **state)
{
	struct fake *f = fake_new();

	(void)state;
	add_g(f, GSTATUS_WAITING);
	put64(f, LIST_AT, 0);
	read_bad(f, -EBADMSG, "element 0 of runtime.allgs, 0x0");
	put64(f, LIST_AT, g_at(0) + 4);
	read_bad(f, -EBADMSG, "is no goroutine");
	put64(f, LEN_AT, LIMIT_GOROUTINES + 1ull);
	read_bad(f, -E2BIG, "the limit is");
	put64(f, LEN_AT, 1);
	put64(f, PTR_AT, BASE + SIZE);
	read_bad(f, -EBADMSG, "moved each time");
	f->layout.off[LAYOUT_g_gopc] = -1;
	read_bad(f, -ENOTSUP, "g_gopc at -1");
	f->layout.off[LAYOUT_g_gopc] = LIMIT_G_BYTES;
	read_bad(f, -ENOTSUP, "g_gopc at 1024");
	free(f);
}

/* ---- labels ---- */

enum { LAB_AT = BASE + 0x40000, TEXT_AT = BASE + 0x50000 };

static void put_string(struct fake *f, uint64_t at, const char *s, uint64_t *where)
{
	size_t n = strlen(s);

	memcpy(f->bytes + (*where - BASE), s, n);
	put64(f, at, *where);
	put64(f, at + 8, n);
	*where += n;
}

static const char *text(const struct rtgor *g, uint32_t i, bool value)
{
	const struct rtlabel *l = &g->text->at.at[g->labels.first + i];

	return g->text->text.at + (value ? l->value : l->key);
}

static int check_labels(void *arg, const struct rtgor *g, struct err *e)
{
	struct fake *f = arg;

	(void)e;
	assert_int_equal(g->labels.n, 2);
	assert_false(g->labels.cut);
	assert_string_equal(text(g, 0, false), "key");
	assert_string_equal(text(g, 0, true), "value");
	assert_string_equal(text(g, 1, false), "empty");
	assert_string_equal(text(g, 1, true), "");
	f->n++;
	return 0;
}

static void label_slices_are_read(void **state)
{
	struct fake *f = fake_new();
	uint64_t t = TEXT_AT;
	struct err e;

	(void)state;
	add_g(f, GSTATUS_WAITING);
	add_g(f, GSTATUS_RUNNING);
	put64(f, g_at(0) + LABELS, LAB_AT);
	put64(f, g_at(1) + LABELS, LAB_AT);
	put64(f, LAB_AT, LAB_AT + 64);
	put64(f, LAB_AT + 8, 2);
	put_string(f, LAB_AT + 64, "key", &t);
	put_string(f, LAB_AT + 80, "value", &t);
	put_string(f, LAB_AT + 96, "empty", &t);
	put_string(f, LAB_AT + 112, "", &t);
	assert_int_equal(rtgors_read(&f->mem, &f->layout, &f->vars, check_labels, f, &f->seen, &e),
			 0);
	assert_int_equal(f->n, 2);
	free(f);
}

/* A map with one label in a bucket and one in the bucket behind it; an empty and a moved slot. */
static void label_maps_are_read(void **state)
{
	struct fake *f = fake_new();
	uint64_t t = TEXT_AT, hmap = LAB_AT + 64, b = LAB_AT + 256, more = b + 272;
	struct err e;

	(void)state;
	f->vars.minor = 23;
	add_g(f, GSTATUS_WAITING);
	put64(f, g_at(0) + LABELS, LAB_AT);
	put64(f, LAB_AT, hmap);
	put64(f, hmap, 2);
	put64(f, hmap + 16, b);
	put64(f, b, 0x0000030200000700); /* slots 1; 4 and 5 were moved */
	put_string(f, b + 8 + 16, "key", &t);
	put_string(f, b + 136 + 16, "value", &t);
	put64(f, b + 264, more);
	put64(f, more, 0x99);
	put_string(f, more + 8, "empty", &t);
	put_string(f, more + 136, "", &t);
	assert_int_equal(rtgors_read(&f->mem, &f->layout, &f->vars, check_labels, f, &f->seen, &e),
			 0);
	assert_int_equal(f->n, 1);
	free(f);
}

static int labels_cut(void *arg, const struct rtgor *g, struct err *e)
{
	struct fake *f = arg;

	(void)e;
	assert_true(g->labels.cut);
	assert_true(g->labels.n <= LIMIT_LABELS);
	f->n++;
	return 0;
}

static void labels_that_lie_are_cut(void **state)
{
	static const struct {
		int minor;
		uint64_t at, head[4];
	} lies[] = {
		{ 27, 8, { 0 } },
		{ 27, LAB_AT, { LAB_AT, UINT64_MAX } },
		{ 27, LAB_AT, { LAB_AT + 64, LIMIT_LABELS + 1 } },
		{ 27, LAB_AT, { 0, 1 } },
		{ 27, LAB_AT, { LAB_AT + 16, 1, BASE, UINT64_MAX } },
		{ 20, LAB_AT, { 16 } },
		{ 20, LAB_AT, { LAB_AT + 8, 0, 200ull << 8 } },
		{ 20, BASE + SIZE - 4, { 0 } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
		struct fake *f = fake_new();
		struct err e;

		f->vars.minor = lies[i].minor;
		add_g(f, GSTATUS_WAITING);
		put64(f, g_at(0) + LABELS, lies[i].at);
		for (size_t k = 0; k < 4; k++)
			put64(f, LAB_AT + 8 * k, lies[i].head[k]);
		assert_int_equal(rtgors_read(&f->mem, &f->layout, &f->vars, labels_cut, f, &f->seen,
					     &e),
				 0);
		assert_int_equal(f->n, 1);
		free(f);
	}
}

/* A bucket that is its own overflow bucket. */
static void a_circle_of_buckets_ends(void **state)
{
	struct fake *f = fake_new();
	struct err e;

	(void)state;
	f->vars.minor = 20;
	add_g(f, GSTATUS_WAITING);
	put64(f, g_at(0) + LABELS, LAB_AT);
	put64(f, LAB_AT, LAB_AT + 64);
	put64(f, LAB_AT + 64 + 16, LAB_AT + 256);
	put64(f, LAB_AT + 256, 0x0909090909090909);
	put64(f, LAB_AT + 256 + 264, LAB_AT + 256);
	assert_int_equal(rtgors_read(&f->mem, &f->layout, &f->vars, labels_cut, f, &f->seen, &e),
			 0);
	assert_int_equal(f->n, 1);
	free(f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_those_that_live_in_their_order),
		cmocka_unit_test(a_system_call_left_its_own_registers),
		cmocka_unit_test(one_that_runs_has_no_stack),
		cmocka_unit_test(what_moved_is_read_again),
		cmocka_unit_test(what_always_moves_is_counted),
		cmocka_unit_test(another_one_in_the_same_place_is_itself),
		cmocka_unit_test(one_that_ended_is_not_there),
		cmocka_unit_test(a_deep_stack_is_read_whole),
		cmocka_unit_test(a_list_of_huge_stacks_comes_to_an_end),
		cmocka_unit_test(registers_outside_of_the_stack_are_bad),
		cmocka_unit_test(one_that_cannot_be_read_stops_no_other),
		cmocka_unit_test(a_stack_that_makes_no_sense_is_read_again),
		cmocka_unit_test(lists_that_lie_are_refused),
		cmocka_unit_test(label_slices_are_read),
		cmocka_unit_test(label_maps_are_read),
		cmocka_unit_test(labels_that_lie_are_cut),
		cmocka_unit_test(a_circle_of_buckets_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
