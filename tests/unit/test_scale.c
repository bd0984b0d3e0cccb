/*
 * tests/unit/test_scale.c - against numbers that Go 1.26.8 on amd64 printed, by
 *
 *	scale := 1 / (1 - math.Exp(-avgSize/float64(rate)))
 *	fmt.Println(int64(float64(count)*scale), int64(float64(bytes)*scale))
 *
 * with avgSize := float64(size), bytes := count*size where the size is given, and
 * avgSize := float64(bytes)/float64(count) where it is 0; the same with GODEBUG=cpu.fma=off.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "profile/scale.h"

struct row {
	int64_t count, bytes, size, rate, objects_want, bytes_want;
};

static const struct row by_size[] = {
	{ 1, 0, 16, 524288, 32768, 524296 },
	{ 1, 0, 8, 524288, 65536, 524292 },
	{ 1000000, 0, 16, 524288, 32768500002, 524296000040 },
	{ 3, 0, 48, 524288, 32769, 1572936 },
	{ 123456789, 0, 32, 524288, 2022777759999, 64728888319988 },
	{ 1, 0, 524288, 524288, 1, 829411 },
	{ 7, 0, 32768, 524288, 115, 3785898 },
	{ 2, 0, 10485760, 524288, 2, 20971520 },
	{ 1, 0, 1073741824, 524288, 1, 1073741824 },
	{ 1, 0, 1099511627776, 524288, 1, 1099511627776 },
	{ 5, 0, 1, 2, 12, 12 },
	{ 9, 0, 24, 512, 196, 4716 },
	{ 17, 0, 4096, 1048576, 4360, 17860630 },
	{ 1099511627776, 0, 16, 524288, 36029346777530320, 576469548440485120 },
	{ 1, 0, 1, 1099511627776, 1099511627776, 1099511627776 },
	{ 1099511627776, 0, 4194304, 2, 1099511627776, 4611686018427387904 },
};

static const struct row by_average[] = {
	{ 1, 16, 0, 524288, 32768, 524296 },
	{ 3, 100, 0, 524288, 47187, 1572914 },
	{ 1000000, 16000001, 0, 524288, 32768497954, 524296000041 },
	{ 7, 50, 0, 4096, 4017, 28697 },
	{ 2, 4611686018427387904, 0, 524288, 2, 4611686018427387904 },
	{ 12345, 99999999, 0, 524288, 805198, 6522464112 },
	{ 1, 4611686018427387904, 0, 3, 1, 4611686018427387904 },
};

static const struct row unscaled[] = {
	{ 1000, 0, 100, 1, 1000, 100000 },  { 1000, 0, 100, 0, 1000, 100000 },
	{ 1000, 0, 100, -7, 1000, 100000 }, { 10, 1000, 0, 1, 10, 1000 },
	{ 10, 1000, 0, 0, 10, 1000 },
};

static const struct row nothing[] = {
	{ 0, 0, 100, 524288, 0, 0 }, { 100, 0, 0, 524288, 0, 0 }, { 0, 1000, 0, 524288, 0, 0 },
	{ 10, 0, 0, 524288, 0, 0 },  { 0, 0, 0, 0, 0, 0 },	  { 0, 5, 5, 1, 0, 0 },
};

/* glibc's exp() gives other numbers for these. */
static const struct row last_bit[] = {
	{ 100593213, 0, 1013367, 4194303, 468672986, 474937738269945 },
	{ 1035951165, 251244056291626, 0, 524288, 2797276410, 678409461436232 },
	{ 104201862, 1082136336871, 0, 524288, 5312916727, 55174640210758 },
	{ 1031825019, 0, 11032, 262145, 25038001753, 276219235342876 },
};

static void check(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct row *r = &rows[i];
		struct scaled got = scale_heap(r->count, r->bytes, r->size, r->rate);

		if (got.objects != r->objects_want || got.bytes != r->bytes_want)
			fail_msg("row %zu (count %lld, rate %lld): %lld objects, %lld bytes", i,
				 (long long)r->count, (long long)r->rate, (long long)got.objects,
				 (long long)got.bytes);
	}
}

static void go_numbers(void **state)
{
	(void)state;
	check(by_size, ARRAY_LEN(by_size));
	check(by_average, ARRAY_LEN(by_average));
	check(unscaled, ARRAY_LEN(unscaled));
	check(nothing, ARRAY_LEN(nothing));
}

static void go_numbers_to_the_last_bit(void **state)
{
	(void)state;
#ifndef __x86_64__
	skip();
#endif
	check(last_bit, ARRAY_LEN(last_bit));
}

static void bytes_are_ignored_when_size_is_known(void **state)
{
	struct scaled a = scale_heap(9, 1, 24, 512), b = scale_heap(9, 216, 24, 512);

	(void)state;
	assert_int_equal(a.objects, b.objects);
	assert_int_equal(a.bytes, b.bytes);
}

/* Torn buckets may hold anything: the result is never undefined and never wraps. */
static void saturates(void **state)
{
	struct scaled s;

	(void)state;
	s = scale_heap(INT64_MAX, 0, INT64_MAX, 524288);
	assert_int_equal(s.objects, INT64_MAX);
	assert_int_equal(s.bytes, INT64_MAX);
	s = scale_heap(INT64_MAX, 0, 2, 1);
	assert_int_equal(s.bytes, INT64_MAX);
	s = scale_heap(INT64_MAX, 1, 0, 524288); /* 1 - exp() is 0: infinite */
	assert_int_equal(s.objects, INT64_MAX);
	assert_int_equal(s.bytes, INT64_MAX);
	s = scale_heap(1, 0, 1, INT64_MAX);
	assert_int_equal(s.objects, INT64_MAX);
	s = scale_heap(INT64_MIN, 0, INT64_MIN, 524288);
	s = scale_heap(INT64_MIN, 0, INT64_MAX, 524288);
	assert_true(s.bytes < 0);
	s = scale_heap(-5, 100, 0, 524288);
	assert_int_equal(s.objects, -5);
	assert_int_equal(s.bytes, 100);
}

static void rounds_what_no_integer_holds(void **state)
{
	(void)state;
	assert_int_equal(scale_round(2.5), 3);
	assert_int_equal(scale_round(-2.4), -2);
	assert_int_equal(scale_round(0x1p63), INT64_MAX);
	assert_int_equal(scale_round(-0x1p80), INT64_MIN);
	assert_int_equal(scale_round(0.0 / 0.0), INT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(go_numbers),
		cmocka_unit_test(go_numbers_to_the_last_bit),
		cmocka_unit_test(bytes_are_ignored_when_size_is_known),
		cmocka_unit_test(saturates),
		cmocka_unit_test(rounds_what_no_integer_holds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
