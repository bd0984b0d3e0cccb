/* tests/unit/test_rtcounters_sweeper.c - the background sweeper, told from others while it is parked, and asked later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "go/runtime/counters/rtcounters.h"
#include "go/runtime/rtgor.h"
#include "go/runtime/waitreason.h"

enum {
	BASE = 0x10000,
	SIZE = 1 << 16,
	MHEAP = BASE + 0x100,
	ALLGS = BASE + 0x200,
	LIST = BASE + 0x300,
	GS = BASE + 0x1000, /* 64 bytes each */
	SWEEPGEN = 24,
	STATUS = 8,
	REASON = 40,
	SWEEPER = 2, /* the third one */
	SCAN = 0x1000,
	MINOR = 22,
};

struct fake {
	struct mem mem; /* first */
	uint8_t bytes[SIZE];
	struct rtcounters *c;
};

static int fake_read(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	struct fake *f = (struct fake *)m;

	if (addr < BASE || addr + n > BASE + SIZE)
		return err_set(e, -EFAULT, "0x%llx", (unsigned long long)addr);
	memcpy(buf, f->bytes + (addr - BASE), n);
	return 0;
}

static void put(struct fake *f, uint64_t addr, uint64_t v, size_t n)
{
	memcpy(f->bytes + (addr - BASE), &v, n);
}

static void is(struct fake *f, int g, uint32_t status, const char *reason)
{
	put(f, GS + 64 * (uint64_t)g + STATUS, status, 4);
	put(f, GS + 64 * (uint64_t)g + REASON, (uint64_t)waitreason_value(MINOR, reason), 1);
}

static struct fake *fake_new(enum layout_field without, uint64_t ngs)
{
	struct fake *f = calloc(1, sizeof(*f));
	struct golayout l;
	struct sizeclasses none = { 0 };
	struct rtcounters_vars v = { .mheap = MHEAP, .allgs = ALLGS, .minor = MINOR };

	assert_non_null(f);
	f->mem.read = fake_read;
	memset(l.off, 0xff, sizeof(l.off));
	l.off[LAYOUT_mheap_sweepgen] = SWEEPGEN;
	l.off[LAYOUT_g_atomicstatus] = STATUS;
	l.off[LAYOUT_g_waitreason] = REASON;
	if (without != LAYOUT_COUNT)
		l.off[without] = -1;
	put(f, ALLGS, LIST, 8);
	put(f, ALLGS + 8, ngs, 8);
	put(f, MHEAP + SWEEPGEN, 100, 4);
	for (int i = 0; i < 16; i++) {
		put(f, LIST + 8 * (uint64_t)i, GS + 64 * (uint64_t)i, 8);
		is(f, i, GSTATUS_WAITING, "chan receive");
	}
	is(f, SWEEPER, GSTATUS_WAITING, "GC sweep wait");
	assert_int_equal(rtcounters_new(&v, &l, &none, &f->mem, &f->c, NULL), 0);
	return f;
}

static void fake_free(struct fake *f)
{
	rtcounters_free(f->c);
	free(f);
}

static void it_is_parked_or_not(void **state)
{
	struct fake *f = fake_new(LAYOUT_COUNT, 1000);
	struct rtsweeper s;

	(void)state;
	assert_int_equal(rtcounters_sweeper(f->c, &s, NULL), 0);
	assert_true(s.parked && s.sweepgen == 100);
	is(f, SWEEPER, GSTATUS_WAITING | SCAN, "GC sweep wait");
	assert_true(!rtcounters_sweeper(f->c, &s, NULL) && s.parked);
	/* At work: the reason stays what it was last. */
	is(f, SWEEPER, GSTATUS_RUNNABLE, "GC sweep wait");
	put(f, MHEAP + SWEEPGEN, 102, 4);
	assert_true(!rtcounters_sweeper(f->c, &s, NULL) && !s.parked && s.sweepgen == 102);
	is(f, SWEEPER, GSTATUS_WAITING, "chan receive"); /* it waits for a lock, say */
	assert_true(!rtcounters_sweeper(f->c, &s, NULL) && !s.parked);
	fake_free(f);
}

static void it_is_not_known_before_it_was_parked(void **state)
{
	struct fake *f = fake_new(LAYOUT_COUNT, 3);
	struct rtsweeper s;

	(void)state;
	is(f, SWEEPER, GSTATUS_RUNNING, "GC sweep wait");
	assert_int_equal(rtcounters_sweeper(f->c, &s, NULL), -EAGAIN);
	is(f, SWEEPER, GSTATUS_WAITING, "GC sweep wait");
	assert_true(!rtcounters_sweeper(f->c, &s, NULL) && s.parked);
	fake_free(f);
	f = fake_new(LAYOUT_COUNT, 2); /* it has not begun */
	assert_int_equal(rtcounters_sweeper(f->c, &s, NULL), -EAGAIN);
	fake_free(f);
}

/* The list, and what it has, may be anything. */
static void what_cannot_be_read_is_an_error(void **state)
{
	static const enum layout_field lost[] = { LAYOUT_mheap_sweepgen, LAYOUT_g_atomicstatus,
						  LAYOUT_g_waitreason };
	struct rtsweeper s;
	struct fake *f;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		f = fake_new(lost[i], 16);
		assert_int_equal(rtcounters_sweeper(f->c, &s, NULL), -ENOTSUP);
		fake_free(f);
	}
	f = fake_new(LAYOUT_COUNT, UINT64_MAX);
	put(f, LIST, UINT64_MAX - 3, 8);
	assert_true(!rtcounters_sweeper(f->c, &s, NULL) && s.parked);
	fake_free(f);
	f = fake_new(LAYOUT_COUNT, 16);
	put(f, ALLGS, 8, 8);
	assert_int_equal(rtcounters_sweeper(f->c, &s, NULL), -EFAULT);
	fake_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_parked_or_not),
		cmocka_unit_test(it_is_not_known_before_it_was_parked),
		cmocka_unit_test(what_cannot_be_read_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
