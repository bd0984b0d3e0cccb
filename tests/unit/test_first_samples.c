/*
 * tests/unit/test_first_samples.c - first samples are told from others, by the Ps of a made-up runtime.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "collect/heap/first_samples.h"

enum { A = 0x1000, B = 0x2000, C = 0x3000 };

struct reading {
	struct rtbucket at[3];
	struct rtbuckets all;
};

static const struct rtbuckets *reading(struct reading *r, uint64_t a, uint64_t b, uint64_t c)
{
	*r = (struct reading){ .at = { { .addr = A, .all_allocs = a },
				       { .addr = B, .all_allocs = b },
				       { .addr = C, .all_allocs = c } } };
	r->all.at = r->at;
	r->all.n = 3;
	return &r->all;
}

static void learn(struct first_samples *f, uint64_t a, uint64_t b, uint64_t c, unsigned armed)
{
	struct reading r;

	assert_int_equal(first_samples_learn(f, reading(&r, a, b, c), armed, NULL), 0);
}

static void begin(struct first_samples *f, uint64_t a, uint64_t b, uint64_t c, unsigned armed)
{
	struct reading r;

	assert_int_equal(first_samples_begin(f, reading(&r, a, b, c), armed, NULL), 0);
}

static void expect(const struct first_samples *f, uint64_t a, uint64_t b, uint64_t c,
		   uint64_t mixed)
{
	assert_int_equal(first_samples_of(f, A), a);
	assert_int_equal(first_samples_of(f, B), b);
	assert_int_equal(first_samples_of(f, C), c);
	assert_int_equal(f->nknown, a + b + c);
	assert_int_equal(f->mixed, mixed);
}

static void known_when_alone(void **state)
{
	struct first_samples f = { 0 };

	(void)state;
	begin(&f, 10, 0, 0, 1);
	learn(&f, 10, 0, 0, 1); /* nothing */
	expect(&f, 0, 0, 0, 0);
	learn(&f, 10, 1, 1, 3); /* two Ps, two samples */
	expect(&f, 0, 1, 1, 0);
	learn(&f, 15, 4, 9, 3); /* no P had its first sample: these are ordinary ones */
	expect(&f, 0, 1, 1, 0);
	learn(&f, 15, 5, 9, 4);
	expect(&f, 0, 2, 1, 0);
	first_samples_fini(&f);
}

static void mixed_among_others(void **state)
{
	struct first_samples f = { 0 };

	(void)state;
	begin(&f, 0, 0, 0, 0);
	learn(&f, 3, 2, 0, 2);
	expect(&f, 0, 0, 0, 2);
	learn(&f, 3, 2, 1, 3);
	expect(&f, 0, 0, 1, 2);
	first_samples_fini(&f);
}

/* The P is marked, and its sample is not in a bucket yet. */
static void in_flight(void **state)
{
	struct first_samples f = { 0 };

	(void)state;
	begin(&f, 0, 0, 0, 0);
	learn(&f, 1, 0, 0, 2);
	expect(&f, 0, 0, 0, 0);
	learn(&f, 1, 1, 0, 2);
	expect(&f, 1, 1, 0, 0);
	first_samples_fini(&f);
}

/* GOMAXPROCS was lowered: Ps and their marks are gone. */
static void fewer_ps(void **state)
{
	struct first_samples f = { 0 };

	(void)state;
	begin(&f, 5, 0, 0, 4);
	learn(&f, 6, 0, 0, 2);
	expect(&f, 0, 0, 0, 0);
	learn(&f, 6, 1, 0, 3);
	expect(&f, 0, 1, 0, 0);
	first_samples_fini(&f);
}

static void begun_anew(void **state)
{
	struct first_samples f = { 0 };

	(void)state;
	begin(&f, 0, 0, 0, 0);
	learn(&f, 1, 0, 0, 1);
	begin(&f, 1, 0, 0, 1);
	expect(&f, 0, 0, 0, 0);
	learn(&f, 1, 0, 1, 2);
	expect(&f, 0, 0, 1, 0);
	first_samples_fini(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_when_alone), cmocka_unit_test(mixed_among_others),
		cmocka_unit_test(in_flight),	    cmocka_unit_test(fewer_ps),
		cmocka_unit_test(begun_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
