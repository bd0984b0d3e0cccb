/* tests/unit/test_site_errors.c - what a profile says about how certain its sites are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "collect/site_errors.h"

static struct err e;

static int setup(void **state)
{
	struct prof *p;

	if (prof_new(&p, &e) || prof_add_type(p, "alloc_space", "bytes", &e))
		return -1;
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	prof_free(*state);
	return 0;
}

/* Adds a sample of site @n, under a frame that is no site. */
static void add(struct prof *p, struct site_errors *s, int n, double value, double variance)
{
	char name[32];
	const struct prof_line make = { "runtime.makeslice", "slice.go", 5, 0 };
	const struct prof_line site = { name, "main.go", n, 0 };
	const int64_t values[] = { (int64_t)value };
	uint32_t locs[2];

	snprintf(name, sizeof(name), "main.f%d", n);
	locs[0] = (uint32_t)prof_location(p, 0, 0x400000, &make, 1, &e);
	locs[1] = (uint32_t)prof_location(p, 0, 0x500000 + (uint64_t)n, &site, 1, &e);
	assert_int_equal(prof_sample(p, locs, 2, values, NULL, 0, &e), 0);
	assert_int_equal(site_errors_add(s, p, value, variance, &e), 0);
}

static const char *comment(const struct prof *p, size_t i)
{
	struct prof_header_view h = prof_header(p);

	return i < h.ncomments ? strtab_get(prof_strings(p), h.comments[i]) : NULL;
}

static void the_sum_then_the_largest(void **state)
{
	struct prof *p = *state;
	struct site_errors s = {};
	double error;

	add(p, &s, 1, 100, 9);
	add(p, &s, 2, 1000, 1600);
	add(p, &s, 1, 100, 16);
	assert_false(prof_error(p, 0, &error));
	assert_int_equal(site_errors_comment(&s, p, "alloc_space", &e), 0);
	assert_true(prof_error(p, 0, &error) && fabs(error - sqrt(1625)) < 1e-9);
	assert_false(prof_error(p, 1, &error));
	assert_string_equal(comment(p, 0), "error: all sites alloc_space 1200 +- 40 (3.4%)");
	assert_string_equal(comment(p, 1),
			    "error: main.f2 main.go:2 alloc_space 1000 +- 40 (4.0%)");
	assert_string_equal(comment(p, 2), "error: main.f1 main.go:1 alloc_space 200 +- 5 (2.5%)");
	assert_null(comment(p, 3));
	site_errors_fini(&s);
}

/* The compiler put one line at two addresses, and one function was inlined there: one place. */
static void one_line_for_a_place(void **state)
{
	const struct prof_line site[] = { { "main.fill", "main.go", 36, 0 },
					  { "main.work", "main.go", 90, 0 } };
	struct prof *p = *state;
	struct site_errors s = {};

	for (uint64_t k = 0; k < 3; k++) {
		const int64_t values[] = { 100 };
		uint32_t loc = (uint32_t)prof_location(p, 0, 0x500000 + k, site, 2 - k % 2, &e);

		assert_int_equal(prof_sample(p, &loc, 1, values, NULL, 0, &e), 0);
		assert_int_equal(site_errors_add(&s, p, 100, k == 2 ? 4 : 9, &e), 0);
	}
	add(p, &s, 7, 250, 16);
	assert_int_equal(site_errors_comment(&s, p, "alloc_space", &e), 0);
	/* Standard errors of 3, 3 and 2 are added up. */
	assert_string_equal(comment(p, 1),
			    "error: main.fill main.go:36 alloc_space 300 +- 8 (2.7%)");
	assert_string_equal(comment(p, 2), "error: main.f7 main.go:7 alloc_space 250 +- 4 (1.6%)");
	assert_null(comment(p, 3));
	site_errors_fini(&s);
}

/* They head every report: sixteen lines, and one for the others. */
static void not_too_many(void **state)
{
	struct prof *p = *state;
	struct site_errors s = {};

	for (int n = 1; n <= 100; n++)
		add(p, &s, n, n <= 84 ? 10 : 1000 + n, 1);
	assert_int_equal(site_errors_comment(&s, p, "alloc_space", &e), 0);
	assert_non_null(strstr(comment(p, 0), "all sites"));
	assert_non_null(strstr(comment(p, 1), "main.f100 main.go:100 alloc_space 1100 +- 1 "));
	assert_non_null(strstr(comment(p, 16), "main.f85 main.go:85 alloc_space 1085 +- 1 "));
	assert_string_equal(comment(p, 17), "error: 84 other sites alloc_space 840 +- 84 (10.0%)");
	assert_null(comment(p, 18));
	site_errors_fini(&s);
}

/* An object may be in use with a probability near 0. */
static void nearly_nothing_has_no_share(void **state)
{
	struct prof *p = *state;
	struct site_errors s = {};

	add(p, &s, 1, 1e-20, 1e-4);
	add(p, &s, 2, 0.4, 9);
	assert_int_equal(site_errors_comment(&s, p, "inuse_objects", &e), 0);
	assert_string_equal(comment(p, 1), "error: main.f2 main.go:2 inuse_objects 0 +- 3");
	assert_string_equal(comment(p, 2), "error: main.f1 main.go:1 inuse_objects 0 +- 1");
	site_errors_fini(&s);
}

static void what_has_no_bound_is_not_known(void **state)
{
	struct prof *p = *state;
	struct site_errors s = {};
	double error;

	add(p, &s, 1, 100, 9);
	add(p, &s, 2, 90, (double)INFINITY);
	site_errors_all(&s, (double)INFINITY);
	assert_int_equal(site_errors_comment(&s, p, "alloc_space", &e), 0);
	assert_string_equal(comment(p, 0), "error: all sites alloc_space 190 +- unknown");
	assert_true(prof_error(p, 0, &error) && error == PROF_NOT_KNOWN);
	assert_string_equal(comment(p, 1), "error: main.f1 main.go:1 alloc_space 100 +- 3 (3.0%)");
	assert_string_equal(comment(p, 2), "error: main.f2 main.go:2 alloc_space 90 +- unknown");
	site_errors_fini(&s);
}

static void what_is_not_known_is_said(void **state)
{
	struct prof *p = *state;
	struct site_errors s = {};
	double error;

	add(p, &s, 1, 100, 9);
	for (int n = 2; n <= 20; n++)
		add(p, &s, n, 10, n == 3 ? -1 : 1);
	assert_int_equal(site_errors_comment(&s, p, "alloc_space", &e), 0);
	assert_string_equal(comment(p, 0), "error: all sites alloc_space 290 +- unknown");
	assert_true(prof_error(p, 0, &error) && error == PROF_NOT_KNOWN);
	assert_string_equal(comment(p, 1), "error: main.f1 main.go:1 alloc_space 100 +- 3 (3.0%)");
	site_errors_fini(&s);
}

/*
 * In-use numbers of objects that a collection has found dead: an estimate of 0 has an error, but
 * no share.
 */
static void an_error_of_nothing(void **state)
{
	struct prof *p = *state;
	struct site_errors s = {};

	add(p, &s, 1, 0, 25);
	assert_int_equal(site_errors_comment(&s, p, "inuse_space", &e), 0);
	assert_string_equal(comment(p, 0), "error: all sites inuse_space 0 +- 5");
	site_errors_fini(&s);
}

/* Windows counted none of the waits that looks from outside saw, so the number is not 0. */
static void a_zero_without_error_is_not_known(void **state)
{
	struct prof *p = *state;
	struct site_errors s = {};

	add(p, &s, 1, 100, 9);
	add(p, &s, 2, 0, 0);
	assert_int_equal(site_errors_comment(&s, p, "contentions", &e), 0);
	assert_string_equal(comment(p, 0), "error: all sites contentions 100 +- 3 (3.0%)");
	assert_string_equal(comment(p, 2), "error: main.f2 main.go:2 contentions 0 +- unknown");
	site_errors_fini(&s);
}

static void nothing_is_nothing(void **state)
{
	struct site_errors s = {};

	assert_int_equal(site_errors_comment(&s, *state, "alloc_space", &e), 0);
	assert_null(comment(*state, 0));
	site_errors_fini(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_sum_then_the_largest, setup, teardown),
		cmocka_unit_test_setup_teardown(one_line_for_a_place, setup, teardown),
		cmocka_unit_test_setup_teardown(not_too_many, setup, teardown),
		cmocka_unit_test_setup_teardown(nearly_nothing_has_no_share, setup, teardown),
		cmocka_unit_test_setup_teardown(what_has_no_bound_is_not_known, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_not_known_is_said, setup, teardown),
		cmocka_unit_test_setup_teardown(an_error_of_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(a_zero_without_error_is_not_known, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_is_nothing, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
