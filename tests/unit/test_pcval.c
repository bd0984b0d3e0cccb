/* tests/unit/test_pcval.c - the pc-value run decoder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/limits.h"
#include "go/image/tables/pcval.h"
#include "mkgobin.h"

/* 7 for 4 bytes, then 5 for 8: zigzag(+8), 4, zigzag(-2), 8, end. */
static const uint8_t two_runs[] = { 16, 4, 3, 8, 0 };

static struct pcval table(const uint8_t *buf, size_t len)
{
	return (struct pcval){
		.c = cur_of("pcln", buf, len), .pc = 0x100, .end = 0x10c, .quantum = 1, .val = -1
	};
}

static void runs_and_end(void **state)
{
	struct pcval t = table(two_runs, sizeof(two_runs));
	uint64_t start;

	(void)state;
	assert_int_equal(pcval_step(&t, &start, NULL), 1);
	assert_int_equal(t.val, 7);
	assert_int_equal(start, 0x100);
	assert_int_equal(t.pc, 0x104);
	assert_int_equal(pcval_step(&t, &start, NULL), 1);
	assert_int_equal(t.val, 5);
	assert_int_equal(t.pc, 0x10c);
	assert_int_equal(pcval_step(&t, &start, NULL), 0);
}

static void every_truncation_is_refused(void **state)
{
	(void)state;
	for (size_t n = 0; n < sizeof(two_runs); n++) {
		struct pcval t = table(two_runs, n);
		struct err e = { 0 };
		uint64_t start;
		int r;

		while ((r = pcval_step(&t, &start, &e)) == 1)
			;
		assert_int_equal(r, -EBADMSG);
		assert_non_null(strstr(e.msg, "pcln"));
	}
}

static void leaving_the_function_is_refused(void **state)
{
	static const uint8_t far[] = { 16, 13, 0 };
	struct pcval t = table(far, sizeof(far));
	struct err e = { 0 };
	uint64_t start;

	(void)state;
	assert_int_equal(pcval_step(&t, &start, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "leaves the function"));
	t = table(far, sizeof(far));
	t.quantum = 4;
	assert_int_equal(pcval_step(&t, &start, NULL), -EBADMSG);
}

static int at(const void *buf, size_t n, uint64_t pc, int32_t *val)
{
	struct bytemem m = bytemem_of(0x5000, buf, n);

	return pcval_at(&m.mem, 0x5000, 0x5000 + n, 0x100, 0x100 + (1 << 24), 1, pc, val, NULL);
}

static void value_at_a_pc(void **state)
{
	int32_t val = 99;

	(void)state;
	assert_int_equal(at(two_runs, sizeof(two_runs), 0x103, &val), 1);
	assert_int_equal(val, 7);
	assert_int_equal(at(two_runs, sizeof(two_runs), 0x104, &val), 1);
	assert_int_equal(val, 5);
	assert_int_equal(at(two_runs, sizeof(two_runs), 0x10c, &val), 0);
	assert_int_equal(val, 5); /* untouched */
}

/*
 * The window over the table moves along: pairs that its border cuts are complete in the next one.
 */
static void long_tables_are_read_in_pieces(void **state)
{
	enum { PAIRS = 500 };
	uint8_t buf[3 * PAIRS + 1];
	int32_t val;
	size_t n = 0;

	(void)state;
	for (int i = 0; i < PAIRS; i++) {
		buf[n++] = 2; /* + 1 */
		buf[n++] = 0x80;
		buf[n++] = 1; /* 128 bytes */
	}
	buf[n++] = 0;
	for (uint64_t i = 0; i < PAIRS; i++) {
		assert_int_equal(at(buf, n, 0x100 + 128 * i + 127, &val), 1);
		assert_int_equal(val, (int)i);
	}
	assert_int_equal(at(buf, n, 0x100 + 128 * PAIRS, &val), 0);
	assert_int_equal(at(buf, n - 1, 0x100 + 128 * PAIRS, &val), -EBADMSG);
}

/* Runs of no bytes never reach a pc, so their number is bounded. */
static void a_table_that_never_ends(void **state)
{
	size_t n = 2 * ((size_t)LIMIT_PCVALUE_STEPS + 8);
	CLEANUP(freep) uint8_t *buf = calloc(1, n);
	int32_t val;

	(void)state;
	assert_non_null(buf);
	for (size_t i = 0; i < n; i += 2)
		buf[i] = 2;
	assert_int_equal(at(buf, n, 0x100, &val), -E2BIG);
}

static void beyond_the_end_of_all_tables(void **state)
{
	struct bytemem m = bytemem_of(0x5000, two_runs, sizeof(two_runs));
	struct err e = { 0 };
	int32_t val;

	(void)state;
	assert_int_equal(pcval_at(&m.mem, 0x6000, 0x5005, 0x100, 0x200, 1, 0x100, &val, &e),
			 -EBADMSG);
	assert_non_null(strstr(e.msg, "0x6000"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_and_end),
		cmocka_unit_test(every_truncation_is_refused),
		cmocka_unit_test(leaving_the_function_is_refused),
		cmocka_unit_test(value_at_a_pc),
		cmocka_unit_test(long_tables_are_read_in_pieces),
		cmocka_unit_test(a_table_that_never_ends),
		cmocka_unit_test(beyond_the_end_of_all_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
