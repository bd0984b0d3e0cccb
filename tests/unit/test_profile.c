/* tests/unit/test_profile.c - the profile model, its losses and its text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/limits.h"
#include "profile/profile.h"
#include "profile/utf8.h"

static struct err e;

static int setup(void **state)
{
	struct prof *p;

	if (prof_new(&p, &e) < 0)
		return -1;
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	prof_free(*state);
	return 0;
}

static const char *str(struct prof *p, uint32_t id)
{
	return strtab_get(prof_strings(p), id);
}

static uint32_t loc_at(struct prof *p, uint64_t address)
{
	struct prof_line l = { "f", "f.go", (int64_t)address, 1 };
	int id = prof_location(p, 0, address, &l, 1, &e);

	assert_true(id > 0);
	return (uint32_t)id;
}

static void two_types(struct prof *p)
{
	assert_int_equal(prof_add_type(p, "samples", "count", &e), 0);
	assert_int_equal(prof_add_type(p, "cpu", "nanoseconds", &e), 0);
}

static void header_is_kept(void **state)
{
	struct prof *p = *state;
	struct prof_header_view h;

	two_types(p);
	assert_int_equal(prof_set_period(p, "cpu", "nanoseconds", 10000000, &e), 0);
	assert_int_equal(prof_set_default_type(p, "cpu", &e), 0);
	prof_set_time(p, 123, 456);
	assert_int_equal(prof_comment(p, &e, "rate %d", 100), 0);
	assert_int_equal(prof_comment(p, &e, "rate %d", 100), 0);
	h = prof_header(p);
	assert_int_equal(h.ntypes, 2);
	assert_string_equal(str(p, h.types[1].type), "cpu");
	assert_string_equal(str(p, h.types[1].unit), "nanoseconds");
	assert_int_equal(h.period, 10000000);
	assert_string_equal(str(p, h.period_type.type), "cpu");
	assert_int_equal(h.time_ns, 123);
	assert_int_equal(h.duration_ns, 456);
	assert_string_equal(str(p, h.default_type), "cpu");
	assert_int_equal(h.ncomments, 2);
	assert_string_equal(str(p, h.comments[1]), "rate 100");
}

/* It is summed up like the others, and no type tells of it. */
static void a_value_aside_has_no_type(void **state)
{
	struct prof *p = *state;
	struct prof_sample_view s;
	int64_t values[] = { 1, 10, 100 };

	two_types(p);
	prof_add_aside(p);
	assert_int_equal(prof_header(p).ntypes, 2);
	for (int i = 0; i < 2; i++)
		assert_int_equal(prof_sample(p, NULL, 0, values, NULL, 0, &e), 0);
	s = prof_sample_at(p, 0);
	assert_int_equal(s.values[0], 2);
	assert_int_equal(s.values[1], 20);
	assert_int_equal(*s.aside, 200);
}

static void a_comment_is_one_line(void **state)
{
	struct prof *p = *state;

	assert_int_equal(prof_comment(p, &e, "%s", "of \x1b[2J\xfe\xe2\x80\xae\n\xc3\xa9"), 0);
	assert_string_equal(str(p, prof_header(p).comments[0]), "of ?[2J???\xc3\xa9");
}

static void mappings_are_stored_once_in_order(void **state)
{
	struct prof *p = *state;
	struct prof_mapping a = { 0x1000, 0x2000, 0, "/bin/a", "aa" };
	struct prof_mapping b = { 0x1000, 0x2000, 0, "/bin/a", "bb" };
	struct prof_mapping c = { 0x3000, 0x4000, 0x1000, NULL, NULL };
	struct prof_line l = { "f", "", 0, 0 };

	assert_int_equal(prof_mapping(p, &a, &e), 1);
	assert_int_equal(prof_mapping(p, &b, &e), 2);
	assert_int_equal(prof_mapping(p, &c, &e), 3);
	assert_int_equal(prof_mapping(p, &a, &e), 1);
	assert_int_equal(prof_nmappings(p), 3);
	assert_string_equal(str(p, prof_mapping_at(p, 1).build_id), "bb");
	assert_string_equal(str(p, prof_mapping_at(p, 2).filename), "");
	/* has_functions: every location in it has lines, and there is one. */
	assert_int_equal(prof_location(p, 1, 0x1001, &l, 1, &e), 1);
	assert_int_equal(prof_location(p, 2, 0x1001, &l, 1, &e), 2);
	assert_int_equal(prof_location(p, 2, 0x1002, NULL, 0, &e), 3);
	assert_true(prof_mapping_at(p, 0).has_functions);
	assert_false(prof_mapping_at(p, 1).has_functions);
	assert_false(prof_mapping_at(p, 2).has_functions);
}

static void locations_differ_by_all_they_hold(void **state)
{
	struct prof *p = *state;
	struct prof_mapping m = { 0x1000, 0x2000, 0, "/bin/a", "" };
	struct prof_line in[] = { { "leaf", "a.go", 3, 1 }, { "caller", "b.go", 9, 7 } };
	struct prof_line other_line[] = { { "leaf", "a.go", 4, 1 }, { "caller", "b.go", 9, 7 } };
	struct prof_line other_func[] = { { "leaf", "a.go", 3, 1 }, { "caller", "c.go", 9, 7 } };
	struct prof_location_view v;

	assert_int_equal(prof_mapping(p, &m, &e), 1);
	assert_int_equal(prof_location(p, 1, 0x1500, in, 2, &e), 1);
	assert_int_equal(prof_location(p, 1, 0x1500, in, 1, &e), 2);
	assert_int_equal(prof_location(p, 1, 0x1500, other_line, 2, &e), 3);
	assert_int_equal(prof_location(p, 1, 0x1500, other_func, 2, &e), 4);
	assert_int_equal(prof_location(p, 1, 0x1501, in, 2, &e), 5);
	assert_int_equal(prof_location(p, 0, 0x1500, in, 2, &e), 6);
	assert_int_equal(prof_location(p, 1, 0x1500, in, 2, &e), 1);
	assert_int_equal(prof_nlocations(p), 6);
	assert_int_equal(prof_nfunctions(p), 3); /* leaf, caller of b.go, caller of c.go */
	v = prof_location_at(p, 0);
	assert_int_equal(v.nlines, 2);
	assert_int_equal(v.line[0], 3);
	assert_string_equal(str(p, prof_function_at(p, v.func[0] - 1).name), "leaf");
	assert_string_equal(str(p, prof_function_at(p, v.func[1] - 1).file), "b.go");
	assert_int_equal(prof_function_at(p, v.func[1] - 1).start_line, 7);
}

static void equal_samples_are_added_up(void **state)
{
	struct prof *p = *state;
	struct prof_label xy[] = { { .key = "x", .str = "1" }, { .key = "y", .num = 2 } };
	struct prof_label yx[] = { { .key = "y", .num = 2 }, { .key = "x", .str = "1" } };
	struct prof_label str2[] = { { .key = "x", .str = "1" }, { .key = "y", .str = "2" } };
	int64_t one[] = { 1, 10 };
	uint32_t locs[2];

	two_types(p);
	locs[0] = loc_at(p, 1);
	locs[1] = loc_at(p, 2);
	assert_int_equal(prof_sample(p, locs, 2, one, xy, 2, &e), 0);
	assert_int_equal(prof_sample(p, locs, 2, one, yx, 2, &e), 0);
	assert_int_equal(prof_nsamples(p), 1);
	assert_int_equal(prof_sample_at(p, 0).values[1], 20);
	assert_int_equal(prof_sample(p, locs, 2, one, str2, 2, &e), 0);
	assert_int_equal(prof_sample(p, locs, 2, one, xy, 1, &e), 0);
	assert_int_equal(prof_sample(p, locs, 2, one, NULL, 0, &e), 0);
	assert_int_equal(prof_sample(p, locs, 1, one, NULL, 0, &e), 0);
	assert_int_equal(prof_sample(p, locs + 1, 1, one, NULL, 0, &e), 0);
	assert_int_equal(prof_sample(p, NULL, 0, one, NULL, 0, &e), 0);
	assert_int_equal(prof_nsamples(p), 7);
	assert_int_equal(prof_sample_at(p, 4).nlocs, 1);
	assert_int_equal(prof_sample_at(p, 5).locs[0], locs[1]);
	assert_int_equal(prof_sample_at(p, 1).nlabels, 2);
	/* Samples that differ only in labels share one stack in memory. */
	assert_ptr_equal(prof_sample_at(p, 0).locs, prof_sample_at(p, 3).locs);
}

static void values_saturate(void **state)
{
	struct prof *p = *state;
	uint32_t loc = loc_at(p, 1);

	two_types(p);
	prof_sample(p, &loc, 1, (int64_t[]){ INT64_MAX - 1, INT64_MIN + 1 }, NULL, 0, &e);
	prof_sample(p, &loc, 1, (int64_t[]){ 5, -5 }, NULL, 0, &e);
	assert_int_equal(prof_sample_at(p, 0).values[0], INT64_MAX);
	assert_int_equal(prof_sample_at(p, 0).values[1], INT64_MIN);
}

/* There are enough of each kind to make every table and index grow several times. */
static void many(void **state)
{
	enum { N = 20000 };
	struct prof *p = *state;

	two_types(p);
	for (int round = 0; round < 2; round++)
		for (uint32_t i = 0; i < N; i++) {
			uint32_t locs[] = { loc_at(p, i), loc_at(p, i / 2) };

			assert_int_equal(locs[0], i + 1);
			assert_int_equal(prof_sample(p, locs, 2, (int64_t[]){ 1, i }, NULL, 0, &e),
					 0);
		}
	assert_int_equal(prof_nlocations(p), N);
	assert_int_equal(prof_nsamples(p), N);
	assert_int_equal(prof_sample_at(p, N - 1).values[1], 2 * (N - 1));
	assert_int_equal(prof_sample_at(p, N - 1).locs[1], N / 2);
}

/* One that is closed takes what it has already, whether its tables are about to grow or not. */
static void a_closed_one_takes_nothing_new(void **state)
{
	struct prof_label label = { .key = "k", .str = "v" };
	struct prof *p = *state;

	two_types(p);
	for (uint32_t i = 1; i <= 200; i++) {
		uint32_t known = loc_at(p, i), other = loc_at(p, 1000 + i);
		int64_t one[] = { 1, 2 };

		assert_int_equal(prof_sample(p, &known, 1, one, NULL, 0, &e), 0);
		prof_close(p, true);
		assert_int_equal(prof_sample(p, &other, 1, one, NULL, 0, &e), -E2BIG);
		assert_int_equal(prof_sample(p, &known, 1, one, &label, 1, &e), -E2BIG);
		assert_int_equal(prof_sample(p, &known, 1, one, NULL, 0, &e), 0);
		prof_close(p, false);
		assert_int_equal(prof_nsamples(p), i);
		assert_int_equal(prof_sample_at(p, i - 1).values[1], 4);
	}
}

static void strings_become_utf8(void **state)
{
	struct prof *p = *state;
	struct prof_line l = { "a\xff"
			       "b",
			       "\xc3\xa9", 1, 0 };
	int id = prof_location(p, 0, 1, &l, 1, &e);
	struct prof_function_view f = prof_function_at(p, 0);

	assert_int_equal(id, 1);
	assert_string_equal(str(p, f.name), "a\xef\xbf\xbd"
					    "b");
	assert_string_equal(str(p, f.file), "\xc3\xa9");
}

static void too_long_a_string_is_refused_and_leaves_nothing(void **state)
{
	struct prof *p = *state;
	char *s = malloc(LIMIT_STRING + 2);
	struct prof_line l[] = { { "ok", "", 1, 0 }, { s, "", 1, 0 } };
	struct prof_label label = { .key = "k", .str = s };
	uint32_t loc = loc_at(p, 7);

	two_types(p);
	memset(s, 'a', LIMIT_STRING + 1);
	s[LIMIT_STRING + 1] = 0;
	assert_int_equal(prof_location(p, 0, 1, l, 2, &e), -E2BIG);
	assert_non_null(strstr(e.msg, "1048576"));
	assert_int_equal(prof_sample(p, &loc, 1, (int64_t[]){ 1, 1 }, &label, 1, &e), -E2BIG);
	assert_int_equal(prof_nlocations(p), 1);
	assert_int_equal(prof_nsamples(p), 0);
	/* What follows is not disturbed by the half that was there. */
	l[1].func = "fine";
	assert_int_equal(prof_location(p, 0, 1, l, 2, &e), 2);
	assert_int_equal(prof_location_at(p, 1).nlines, 2);
	memset(s, 0xff, LIMIT_STRING); /* three times as long once it is text */
	s[LIMIT_STRING] = 0;
	assert_int_equal(prof_location(p, 0, 2, l + 1, 1, &e), 3);
	memset(s, 'a', LIMIT_STRING + 1);
	assert_int_equal(prof_comment(p, &e, "%s%s", s, s), -E2BIG);
	free(s);
}

static void utf8(void **state)
{
	static const struct {
		const char *in, *want;
	} rows[] = {
		{ "", "" },
		{ "plain", "plain" },
		{ "\x7f\xc2\x80\xdf\xbf", "\x7f\xc2\x80\xdf\xbf" },
		{ "\xe0\xa0\x80\xed\x9f\xbf\xef\xbf\xbf", "\xe0\xa0\x80\xed\x9f\xbf\xef\xbf\xbf" },
		{ "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf" },
		{ "\x80", "\xef\xbf\xbd" },
		{ "\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xc1z", "\xef\xbf\xbdz" },
		{ "\xe0\x9f\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xf0\x8f\xbf\xbf", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xe2\x82z\xc3", "\xef\xbf\xbd\xef\xbf\xbdz\xef\xbf\xbd" },
	};
	char out[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t n = strlen(rows[i].in);

		assert_int_equal(utf8_valid(rows[i].in, n), !strcmp(rows[i].in, rows[i].want));
		assert_int_equal(utf8_fix(rows[i].in, n, out), strlen(rows[i].want));
		assert_string_equal(out, rows[i].want);
	}
}

static void losses(void **state)
{
	struct loss a = { .n = { [LOSS_STACKS_CUT] = 3 } };
	struct loss b = { .n = { [LOSS_STACKS_CUT] = UINT64_MAX, [LOSS_TARGET_GONE] = 1 } };

	(void)state;
	assert_int_equal(loss_total(&(struct loss){}), 0);
	assert_int_equal(loss_total(&a), 3);
	assert_string_equal(loss_key(LOSS_STACKS_CUT), "stacks_cut");
	for (int k = 0; k < LOSS_COUNT; k++)
		assert_true(*loss_key(k) && *loss_text(k));
	loss_merge(&a, &b);
	assert_true(a.n[LOSS_STACKS_CUT] == UINT64_MAX);
	assert_int_equal(a.n[LOSS_TARGET_GONE], 1);
	assert_true(loss_total(&a) == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(header_is_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(a_value_aside_has_no_type, setup, teardown),
		cmocka_unit_test_setup_teardown(a_comment_is_one_line, setup, teardown),
		cmocka_unit_test_setup_teardown(mappings_are_stored_once_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(locations_differ_by_all_they_hold, setup, teardown),
		cmocka_unit_test_setup_teardown(equal_samples_are_added_up, setup, teardown),
		cmocka_unit_test_setup_teardown(values_saturate, setup, teardown),
		cmocka_unit_test_setup_teardown(many, setup, teardown),
		cmocka_unit_test_setup_teardown(a_closed_one_takes_nothing_new, setup, teardown),
		cmocka_unit_test_setup_teardown(strings_become_utf8, setup, teardown),
		cmocka_unit_test_setup_teardown(too_long_a_string_is_refused_and_leaves_nothing,
						setup, teardown),
		cmocka_unit_test(utf8),
		cmocka_unit_test(losses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
