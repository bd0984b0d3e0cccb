/* tests/unit/test_graft.c - profiles of many processes in one, each below its own root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

#include "profile/graft.h"

static struct prof *new_prof(void)
{
	struct prof *p = NULL;

	assert_int_equal(prof_new(&p, NULL), 0);
	assert_int_equal(prof_add_type(p, "samples", "count", NULL), 0);
	return p;
}

/* leaf (inlined into mid) <- main; and a pc of a file without functions */
static struct prof *one(int64_t n)
{
	struct prof_line leaf[] = { { .func = "leaf", .file = "a.go", .line = 3 },
				    { .func = "mid", .file = "a.go", .line = 9 } };
	struct prof_line main_line = { .func = "main", .file = "b.go", .line = 1 };
	struct prof_mapping m = {
		.start = 0x1000, .limit = 0x2000, .filename = "/libc.so", .build_id = ""
	};
	struct prof_label label = { .key = "k", .str = "v" };
	struct prof *p = new_prof();
	int map = prof_mapping(p, &m, NULL);
	uint32_t locs[2];

	locs[0] = (uint32_t)prof_location(p, map, 0x1234, NULL, 0, NULL);
	locs[1] = (uint32_t)prof_location(p, 0, 0x20, &main_line, 1, NULL);
	assert_int_equal(prof_sample(p, locs, 2, &n, NULL, 0, NULL), 0);
	locs[0] = (uint32_t)prof_location(p, 0, 0x10, leaf, 2, NULL);
	assert_int_equal(prof_sample(p, locs, 2, &n, &label, 1, NULL), 0);
	return p;
}

static const char *func_at(const struct prof *p, uint32_t loc, size_t line)
{
	struct prof_location_view l = prof_location_at(p, loc - 1);

	assert_true(line < l.nlines);
	return strtab_get(prof_strings(p), prof_function_at(p, l.func[line] - 1).name);
}

static struct prof *typed(const char *const types[], size_t n, const int64_t *values)
{
	struct prof_line line = { .func = "main", .file = "b.go", .line = 1 };
	struct prof *p = NULL;
	uint32_t loc;

	assert_int_equal(prof_new(&p, NULL), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(prof_add_type(p, types[i], "count", NULL), 0);
	loc = (uint32_t)prof_location(p, 0, 0x20, &line, 1, NULL);
	assert_int_equal(prof_sample(p, &loc, 1, values, NULL, 0, NULL), 0);
	return p;
}

/* Some programs are too old to tell what is in use: what they lack is said, and what the page lacks is left out. */
static void types_are_found_by_name(void **state)
{
	static const char *const all[] = { "made", "used" }, *const other[] = { "odd", "made" };
	const int64_t values[] = { 3, 4 }, few[] = { 8 };
	struct prof *to = typed(all, 2, values), *a = typed(other, 2, values),
		    *b = typed(all, 1, few);
	struct loss none = { 0 };

	(void)state;
	assert_int_equal(prof_graft(to, a, &none, "a [1]", NULL), 0);
	assert_int_equal(prof_graft(to, b, &none, "b [2]", NULL), 0);
	assert_int_equal(prof_nsamples(to), 3);
	assert_true(prof_sample_at(to, 1).values[0] == 4 && !prof_sample_at(to, 1).values[1]);
	assert_true(prof_sample_at(to, 2).values[0] == 8 && !prof_sample_at(to, 2).values[1]);
	assert_int_equal(prof_header(to).ncomments, 2);
	assert_string_equal(strtab_get(prof_strings(to), prof_header(to).comments[1]),
			    "b [2]: used is not told");
	prof_free(to);
	prof_free(a);
	prof_free(b);
}

static void each_process_is_below_its_root(void **state)
{
	struct prof *to = new_prof(), *a = one(5), *b = one(7);
	struct loss lost = { .n[LOSS_STACKS_CUT] = 2 };
	struct prof_sample_view s;
	struct prof_location_view l;

	(void)state;
	assert_int_equal(prof_graft(to, a, &lost, "a [1]", NULL), 0);
	assert_int_equal(prof_graft(to, b, &lost, "b [2]", NULL), 0);
	prof_free(a);
	prof_free(b);
	assert_int_equal(prof_nsamples(to), 4);
	assert_int_equal(prof_loss(to)->n[LOSS_STACKS_CUT], 4);
	for (size_t i = 0; i < 4; i++) {
		s = prof_sample_at(to, i);
		assert_int_equal(s.nlocs, 3);
		assert_int_equal(s.nlabels, 0);
		assert_int_equal(s.values[0], i < 2 ? 5 : 7);
		assert_string_equal(func_at(to, s.locs[2], 0), i < 2 ? "a [1]" : "b [2]");
		assert_string_equal(func_at(to, s.locs[1], 0), "main");
		if (!(i & 1))
			continue;
		assert_string_equal(func_at(to, s.locs[0], 0), "leaf");
		assert_string_equal(func_at(to, s.locs[0], 1), "mid");
	}
	l = prof_location_at(to, prof_sample_at(to, 0).locs[0] - 1);
	assert_true(l.address == 0x1234 && !l.nlines && l.mapping);
	assert_string_equal(strtab_get(prof_strings(to),
				       prof_mapping_at(to, l.mapping - 1).filename),
			    "/libc.so");
	prof_free(to);
}

/* The same process' name, twice: one root, and equal stacks add up. */
static void equal_roots_are_one(void **state)
{
	struct prof *to = new_prof(), *a = one(5);
	struct loss none = { 0 };

	(void)state;
	assert_int_equal(prof_graft(to, a, &none, "a", NULL), 0);
	assert_int_equal(prof_graft(to, a, &none, "a", NULL), 0);
	assert_int_equal(prof_nsamples(to), 2);
	assert_int_equal(prof_sample_at(to, 0).values[0], 10);
	prof_free(a);
	prof_free(to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_process_is_below_its_root),
		cmocka_unit_test(types_are_found_by_name),
		cmocka_unit_test(equal_roots_are_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
