/*
 * What spans say of their objects: a fake heap whose spans are swept or not, cached, freed, used
 * again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "go/runtime/rtspan.h"

enum {
	SWEEPGEN = 0x1000,
	BLACKEN = 0x1800,
	SPAN = 0x2000,
	ALLOC = 0x3000,
	MARK = 0x4000,
	OLD = 0x5000, /* allocBits as they were one cycle ago */
	BASE = 0x10000,
	GEN = 40,
};

/* One mspan of Go 1.27, its bitmaps, the page that it describes, and mheap_.sweepgen. */
struct fake {
	struct mem mem; /* first: casts back */
	uint8_t span[160], alloc[128], mark[128], old[128], page[8192];
	uint32_t gen, blacken;
	unsigned ends_after; /* after so many readings of gen a cycle ends; 0: never */
};

static int fake_read(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	struct fake *f = (struct fake *)m;
	const struct {
		uint64_t at;
		const void *bytes;
		size_t n;
	} regions[] = {
		{ SWEEPGEN, &f->gen, sizeof(f->gen) },	      { SPAN, f->span, sizeof(f->span) },
		{ ALLOC, f->alloc, sizeof(f->alloc) },	      { MARK, f->mark, sizeof(f->mark) },
		{ BASE, f->page, sizeof(f->page) },	      { OLD, f->old, sizeof(f->old) },
		{ BLACKEN, &f->blacken, sizeof(f->blacken) },
	};

	for (size_t i = 0; i < ARRAY_LEN(regions); i++) {
		if (addr < regions[i].at || addr - regions[i].at > regions[i].n ||
		    n > regions[i].n - (addr - regions[i].at))
			continue;
		memcpy(buf, (const uint8_t *)regions[i].bytes + (addr - regions[i].at), n);
		if (addr == SWEEPGEN && f->ends_after && !--f->ends_after)
			f->gen += 2;
		return 0;
	}
	return err_set(e, -EFAULT, "no memory at 0x%llx", (unsigned long long)addr);
}

static struct golayout offsets(void)
{
	struct golayout l;

	for (size_t i = 0; i < LAYOUT_COUNT; i++)
		l.off[i] = -1;
	l.off[LAYOUT_mspan_startaddr] = 24;
	l.off[LAYOUT_mspan_freeindex] = 48;
	l.off[LAYOUT_mspan_nelems] = 50;
	l.off[LAYOUT_mspan_allocbits] = 64;
	l.off[LAYOUT_mspan_gcmarkbits] = 72;
	l.off[LAYOUT_mspan_sweepgen] = 88;
	l.off[LAYOUT_mspan_state] = 99;
	l.off[LAYOUT_mspan_elemsize] = 104;
	return l;
}

static struct rtspan_layout layout(int minor, const char *experiments)
{
	struct golayout l = offsets();
	struct rtspan_layout out;

	assert_int_equal(rtspan_layout(&l, minor, experiments, &out, NULL), 0);
	return out;
}

static void put(struct fake *f, int off, uint64_t v, size_t n)
{
	memcpy(f->span + off, &v, n);
}

/* A span of @n slots of @size bytes, swept in the last cycle. */
static struct fake heap(uint64_t n, uint64_t size)
{
	struct fake f = { .mem = { .read = fake_read }, .gen = GEN };

	put(&f, 24, BASE, 8);
	put(&f, 50, n, 2);
	put(&f, 64, ALLOC, 8);
	put(&f, 72, MARK, 8);
	put(&f, 88, GEN, 4);
	put(&f, 99, 1, 1);
	put(&f, 104, size, 8);
	return f;
}

static const struct rtspan_vars vars = { .sweepgen = SWEEPGEN, .blacken = BLACKEN };

static struct rtspan_object object(uint32_t index, uint64_t size)
{
	return (struct rtspan_object){
		.span = SPAN, .base = BASE, .size = size, .index = index, .gen = GEN - 2
	};
}

enum { LATER = 100 };

/* Asks about an object that lived a cycle ago. */
static int ask(struct fake *f, const struct rtspan_layout *l, bool last, uint32_t index,
	       uint64_t size)
{
	struct rtspan_object o = object(index, size);
	uint32_t gen = 0;

	assert_int_equal(rtspan_ask(&f->mem, l, &vars, last, &o, 1, &gen, NULL), 0);
	assert_int_equal(gen, f->gen);
	assert_true(o.gen == gen || o.gen == gen - 2);
	return o.answer == RTSPAN_LIVES && o.gen != gen ? LATER : (int)o.answer;
}

static void a_swept_span_answers_by_allocbits(void **state)
{
	struct rtspan_layout l = layout(24, "");
	struct fake f = heap(64, 128);

	(void)state;
	f.alloc[1] = 1 << 3;
	f.mark[1] = 1 << 4;
	assert_int_equal(ask(&f, &l, false, 11, 128), RTSPAN_LIVES);
	assert_int_equal(ask(&f, &l, true, 12, 128), RTSPAN_DEAD);
	put(&f, 88, GEN + 3, 4); /* and cached by a P since */
	assert_int_equal(ask(&f, &l, false, 11, 128), RTSPAN_LIVES);
	assert_int_equal(ask(&f, &l, false, 12, 128), RTSPAN_DEAD);
}

static void an_unswept_one_later_or_by_marks(void **state)
{
	static const uint32_t gens[] = { GEN - 2, GEN + 1 };
	struct rtspan_layout l = layout(24, "");
	struct fake f = heap(64, 128);

	(void)state;
	f.alloc[1] = 1 << 3;
	f.mark[1] = 1 << 4;
	for (size_t i = 0; i < ARRAY_LEN(gens); i++) {
		put(&f, 88, gens[i], 4);
		assert_int_equal(ask(&f, &l, false, 12, 128), LATER);
		assert_int_equal(ask(&f, &l, true, 11, 128), RTSPAN_DEAD);
		assert_int_equal(ask(&f, &l, true, 12, 128), RTSPAN_LIVES);
	}
	put(&f, 88, GEN - 1, 4); /* it is being swept now: not even the marks hold still */
	assert_int_equal(ask(&f, &l, true, 12, 128), LATER);
}

static void green_tea_keeps_marks_in_the_page(void **state)
{
	struct rtspan_layout l = layout(26, ""), not = layout(26, "nogreenteagc"),
			     asked = layout(25, "x,greenteagc"), newer = layout(28, "");
	struct fake f = heap(64, 128);

	(void)state;
	put(&f, 88, GEN - 2, 4);
	f.page[8192 - 64 + 1] = 1 << 4;
	assert_int_equal(ask(&f, &l, true, 12, 128), RTSPAN_LIVES);
	assert_int_equal(ask(&f, &asked, true, 12, 128), RTSPAN_LIVES);
	assert_int_equal(ask(&f, &not, true, 12, 128), RTSPAN_DEAD);
	assert_int_equal(ask(&f, &newer, true, 12, 128), LATER);
	/* Larger objects have their marks where they were. */
	f = heap(8, 1024);
	put(&f, 88, GEN - 2, 4);
	f.mark[0] = 1 << 5;
	assert_int_equal(ask(&f, &l, true, 5, 1024), RTSPAN_LIVES);
	assert_int_equal(ask(&f, &newer, true, 5, 1024), RTSPAN_LIVES);
}

static void another_span_means_dead(void **state)
{
	struct rtspan_layout l = layout(24, "");
	struct fake f = heap(64, 128), g;

	(void)state;
	memset(f.alloc, 0xff, sizeof(f.alloc));
	assert_int_equal(ask(&f, &l, false, 63, 128), RTSPAN_LIVES);
	assert_int_equal(ask(&f, &l, false, 64, 128), RTSPAN_DEAD);
	assert_int_equal(ask(&f, &l, false, 3, 112), RTSPAN_DEAD);
	g = f;
	put(&g, 24, BASE + 8192, 8);
	assert_int_equal(ask(&g, &l, false, 3, 128), RTSPAN_DEAD);
	g = f;
	put(&g, 99, 2, 1); /* a stack */
	assert_int_equal(ask(&g, &l, false, 3, 128), RTSPAN_DEAD);
}

static void what_cannot_be_read_is_said(void **state)
{
	struct rtspan_layout l = layout(24, "");
	struct fake f = heap(64, 128);
	struct rtspan_object o[2] = { object(1, 128), object(1, 128) };
	const struct rtspan_vars nowhere = { .sweepgen = 0x5550 };
	uint32_t gen = 7;

	(void)state;
	o[0].span = 0x999000;
	f.alloc[0] = 2;
	assert_int_equal(rtspan_ask(&f.mem, &l, &vars, false, o, 2, &gen, NULL), 0);
	assert_int_equal(o[0].answer, RTSPAN_UNREADABLE);
	assert_int_equal(o[1].answer, RTSPAN_LIVES);
	put(&f, 64, 0x777000, 8);
	assert_int_equal(ask(&f, &l, false, 1, 128), RTSPAN_UNREADABLE);
	gen = 7;
	assert_int_equal(rtspan_ask(&f.mem, &l, &nowhere, false, o, 2, &gen, NULL), -EFAULT);
	assert_int_equal(gen, 7);
}

/* One cycle was missed; what it found was in the bits that are now being freed. */
static void one_missed_cycle_is_told_of_yet(void **state)
{
	struct rtspan_layout l = layout(24, "");
	struct fake f = heap(64, 128);
	struct rtspan_object o = object(11, 128), again;
	uint32_t gen;

	(void)state;
	f.alloc[1] = 1 << 3;
	f.old[1] = 1 << 3;
	o.gen = GEN - 4;
	o.marks = OLD;
	again = o;
	assert_int_equal(rtspan_ask(&f.mem, &l, &vars, false, &o, 1, &gen, NULL), 0);
	assert_int_equal(o.answer, RTSPAN_LIVES);
	assert_int_equal(o.gen, GEN);
	assert_int_equal(o.marks, MARK);
	/* The object died then, and a younger one lies there. */
	f.old[1] = 0;
	o = again;
	assert_int_equal(rtspan_ask(&f.mem, &l, &vars, false, &o, 1, &gen, NULL), 0);
	assert_int_equal(o.answer, RTSPAN_DEAD);
	assert_int_equal(o.missed, 0);
	/* While the GC marks those bits may be used for something else. */
	f.blacken = 1;
	o = again;
	assert_int_equal(rtspan_ask(&f.mem, &l, &vars, false, &o, 1, &gen, NULL), 0);
	assert_int_equal(o.answer, RTSPAN_MISSED);
	f.blacken = 0;
	o = again;
	o.marks = 0;
	assert_int_equal(rtspan_ask(&f.mem, &l, &vars, false, &o, 1, &gen, NULL), 0);
	assert_int_equal(o.answer, RTSPAN_MISSED);
	/*
	 * Two missed cycles are too many, but an object whose slot is free now has died in any
	 * case.
	 */
	o = again;
	o.gen = GEN - 6;
	f.old[1] = 1 << 3;
	assert_int_equal(rtspan_ask(&f.mem, &l, &vars, false, &o, 1, &gen, NULL), 0);
	assert_int_equal(o.answer, RTSPAN_MISSED);
	assert_int_equal(o.missed, 3);
	f.alloc[1] = 0;
	o = again;
	o.gen = GEN - 6;
	assert_int_equal(rtspan_ask(&f.mem, &l, &vars, false, &o, 1, &gen, NULL), 0);
	assert_int_equal(o.answer, RTSPAN_DEAD);
	assert_int_equal(o.missed, 3);
}

/* A span that is not swept for this cycle still tells of the one before. */
static void an_unswept_span_tells_of_its_last_cycle(void **state)
{
	struct rtspan_layout l = layout(24, "");
	struct fake f = heap(64, 128);
	struct rtspan_object o = object(11, 128);
	uint32_t gen;

	(void)state;
	f.alloc[1] = 1 << 3;
	put(&f, 88, GEN - 2, 4);
	o.gen = GEN - 4;
	assert_int_equal(rtspan_ask(&f.mem, &l, &vars, false, &o, 1, &gen, NULL), 0);
	assert_int_equal(o.answer, RTSPAN_LIVES);
	assert_int_equal(o.gen, GEN - 2);
	/* An object that was allocated in this cycle is not asked about. */
	o.gen = GEN;
	f.alloc[1] = 0;
	assert_int_equal(rtspan_ask(&f.mem, &l, &vars, true, &o, 1, &gen, NULL), 0);
	assert_int_equal(o.answer, RTSPAN_LIVES);
	assert_int_equal(o.gen, GEN);
}

static void no_answer_when_a_cycle_ends(void **state)
{
	struct rtspan_layout l = layout(24, "");
	struct fake f = heap(64, 128);
	struct rtspan_object o = object(1, 128);
	uint32_t gen = 7;

	(void)state;
	f.ends_after = 1;
	assert_int_equal(rtspan_ask(&f.mem, &l, &vars, false, &o, 1, &gen, NULL), -EAGAIN);
	assert_int_equal(gen, 7);
}

static void many_at_once(void **state)
{
	struct rtspan_layout l = layout(24, "");
	struct fake f = heap(1000, 8);
	struct rtspan_object o[1000];
	uint32_t gen;

	(void)state;
	for (size_t i = 0; i < 1000; i++) {
		f.alloc[i / 8] |= (uint8_t)((i % 3 == 0) << (i % 8));
		o[i] = object((uint32_t)i, 8);
		if (i % 7 == 0)
			o[i].span = 0x999000;
	}
	assert_int_equal(rtspan_ask(&f.mem, &l, &vars, false, o, 1000, &gen, NULL), 0);
	for (size_t i = 0; i < 1000; i++)
		assert_int_equal(o[i].answer, i % 7 == 0 ? RTSPAN_UNREADABLE :
					      i % 3 == 0 ? RTSPAN_LIVES :
							   RTSPAN_DEAD);
}

static void offsets_must_be_known(void **state)
{
	struct golayout l = offsets();
	struct rtspan_layout out;
	struct err e = {};

	(void)state;
	assert_int_equal(rtspan_layout(&l, 18, "", &out, &e), -ENOTSUP);
	assert_int_equal(rtspan_layout(&l, 26, "runtimefreegc", &out, &e), -ENOTSUP);
	assert_int_equal(rtspan_layout(&l, 26, "noruntimefreegc", &out, &e), 0);
	l.off[LAYOUT_mspan_state] = -1;
	assert_int_equal(rtspan_layout(&l, 26, "", &out, &e), -ENOTSUP);
	assert_non_null(strstr(e.msg, "mspan_state"));
	l = offsets();
	l.off[LAYOUT_mspan_nelems] = 52;
	assert_int_equal(rtspan_layout(&l, 26, "", &out, &e), -ENOTSUP);
	l = offsets();
	l.off[LAYOUT_mspan_elemsize] = 30000;
	assert_int_equal(rtspan_layout(&l, 26, "", &out, &e), -ENOTSUP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_swept_span_answers_by_allocbits),
		cmocka_unit_test(an_unswept_one_later_or_by_marks),
		cmocka_unit_test(green_tea_keeps_marks_in_the_page),
		cmocka_unit_test(another_span_means_dead),
		cmocka_unit_test(what_cannot_be_read_is_said),
		cmocka_unit_test(one_missed_cycle_is_told_of_yet),
		cmocka_unit_test(an_unswept_span_tells_of_its_last_cycle),
		cmocka_unit_test(no_answer_when_a_cycle_ends),
		cmocka_unit_test(many_at_once),
		cmocka_unit_test(offsets_must_be_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
