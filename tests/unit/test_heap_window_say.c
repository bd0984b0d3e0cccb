/*
 * tests/unit/test_heap_window_say.c - a profile says by what its numbers were scaled and what is in none of them, and whoever
 * reads only the exit status is told, too. What the counts say is replaced by functions of these names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/heap/window/heap_window.h"

static struct heap_unseen unseen;
static bool counted;

struct heap_unseen heap_window_unseen(const struct heap_window *w)
{
	(void)w;
	return unseen;
}

bool heap_window_counted(const struct heap_window *w)
{
	(void)w;
	return counted;
}

/* ---- what is said ---- */

static struct prof *p;
static struct loss loss;
static char heard[512];

static void hear(void *arg, const char *line)
{
	(void)arg;
	snprintf(heard, sizeof(heard), "%s", line);
}

static int set_up(void **state)
{
	(void)state;
	unseen = (struct heap_unseen){ 0 };
	counted = true;
	loss = (struct loss){ 0 };
	heard[0] = 0;
	return prof_new(&p, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	prof_free(p);
	return 0;
}

static void comment(const struct heap_window *w)
{
	const struct collect_opts o = { .say = hear };

	assert_int_equal(heap_window_comment(w, &o, p, &loss, NULL), 0);
}

static size_t ncomments(void)
{
	return prof_header(p).ncomments;
}

static bool says(const char *what)
{
	struct prof_header_view v = prof_header(p);

	for (size_t i = 0; i < v.ncomments; i++)
		if (strstr(strtab_get(prof_strings(p), v.comments[i]), what))
			return true;
	return false;
}

/* ---- tests ---- */

/* All was observed in full: there is nothing that must be known of windows. */
static void without_windows_nothing_is_said(void **state)
{
	const struct heap_window w = { .rate = 524288 };

	(void)state;
	counted = false;
	comment(&w);
	assert_int_equal(ncomments(), 0);
	assert_int_equal(loss_total(&loss), 0);
	assert_string_equal(heard, "");
}

static void counts_scale_the_numbers(void **state)
{
	const struct heap_window w = { .rate = 524288, .rate_in_windows = 8192, .windows_ns = 1e9 };

	(void)state;
	comment(&w);
	assert_int_equal(ncomments(), 1);
	assert_true(says("one sample in 8192 bytes, scaled by the runtime's own counts"));
	assert_int_equal(loss_total(&loss), 0);
	assert_string_equal(heard, "");
}

/* Without counts numbers are worse, and whoever waits is told of that as well as whoever reads the profile. */
static void without_counts_time_scales_the_numbers(void **state)
{
	const struct heap_window w = { .rate_in_windows = 8192,
				       .windows_ns = 1e9,
				       .uncounted_ns = 1e9,
				       .why.msg = "mheap_ has moved" };

	(void)state;
	counted = false;
	comment(&w);
	assert_int_equal(ncomments(), 2);
	assert_true(says("one sample in 8192 bytes, scaled by the share of time"));
	assert_true(says("totals: not known") && says("counts: mheap_ has moved"));
	assert_non_null(strstr(heard, "totals are not known"));
	assert_non_null(strstr(heard, "mheap_ has moved"));
	/* What no window saw is in no number, and nobody knows how much it is. */
	assert_int_equal(loss.n[LOSS_UNCOUNTED], 1001);
}

/* A target that has exited before it could be asked leaves no reason behind. */
static void a_reason_is_given_where_none_is_known(void **state)
{
	const struct heap_window w = { .rate_in_windows = 8192 };

	(void)state;
	counted = false;
	comment(&w);
	assert_true(says("counts: they could not be read"));
	assert_non_null(strstr(heard, "they could not be read"));
}

static uint64_t uncounted_ms(double windows_ms, double uncounted_ms)
{
	const struct heap_window w = { .rate_in_windows = 8192,
				       .windows_ns = windows_ms * 1e6,
				       .uncounted_ns = uncounted_ms * 1e6 };

	loss = (struct loss){ 0 };
	comment(&w);
	return loss.n[LOSS_UNCOUNTED];
}

/* It is told from 25 ms and 2 % of the time in windows on: what takes both. A part of a millisecond counts as one. */
static void time_without_counts_is_told_when_it_is_long(void **state)
{
	(void)state;
	assert_int_equal(uncounted_ms(200, 24.5), 0); /* 12 %, but a program exits in that time */
	assert_int_equal(uncounted_ms(200, 25.5), 26);
	assert_int_equal(uncounted_ms(10000, 199.5), 0);
	assert_int_equal(uncounted_ms(10000, 200.5), 201);
}

static uint64_t unknown_end(double counted_mb, double uncounted_mb)
{
	const struct heap_window w = { .rate_in_windows = 8192,
				       .windows_ns = 600e6,
				       .uncounted_ns = 9.5e6,
				       .counted_bytes = counted_mb * 1e6,
				       .uncounted_bytes = uncounted_mb * 1e6 };

	loss = (struct loss){ 0 };
	comment(&w);
	return loss.n[LOSS_UNCOUNTED];
}

/* Who sleeps for half a second, and then allocates all that it does, ends in the middle of it for those who read its counts. */
static void a_short_time_without_counts_is_told_when_much_was_allocated(void **state)
{
	(void)state;
	assert_int_equal(unknown_end(23, 20), 10);
	assert_int_equal(unknown_end(100, 2.1), 10);
	assert_int_equal(unknown_end(100, 1.9), 0);
	assert_int_equal(unknown_end(0, 0), 0);
}

/* Several pieces of a profile are lost in the same way, each a part of what the user is told. */
static void losses_add_to_what_was_lost_before(void **state)
{
	const struct heap_window w = {
		.rate_in_windows = 8192, .windows_ns = 1e9, .uncounted_ns = 99.5e6, .missed = 7
	};

	(void)state;
	unseen = (struct heap_unseen){ .allocs = 20,
				       .bytes = 2000,
				       .fast = 30,
				       .fast_bytes = 3000,
				       .many = true,
				       .lost = true };
	for (size_t i = 0; i < LOSS_COUNT; i++)
		loss.n[i] = 1000;
	comment(&w);
	assert_int_equal(loss.n[LOSS_UNCOUNTED], 1100);
	assert_int_equal(loss.n[LOSS_ALLOCS_UNSEEN], 1020);
	assert_int_equal(loss.n[LOSS_ALLOCS_UNMET], 1030);
	assert_int_equal(loss.n[LOSS_ALLOCS_MISSED], 1007);
	assert_int_equal(loss_total(&loss), 1000 * LOSS_COUNT + 100 + 20 + 30 + 7);
}

/* Little that no window met is worth a line, but no exit status. */
static void what_is_little_is_said_and_no_loss(void **state)
{
	const struct heap_window w = { .rate_in_windows = 8192, .windows_ns = 1e9 };

	(void)state;
	unseen = (struct heap_unseen){
		.allocs = 20, .bytes = 2000, .fast = 30, .fast_bytes = 3000, .many = true
	};
	comment(&w);
	assert_int_equal(ncomments(), 3);
	assert_true(says("unseen: 20 allocations of at least 2000 bytes"));
	assert_true(says("unseen: about 30 allocations of 3000 bytes"));
	assert_int_equal(loss_total(&loss), 0);
}

/* Sizes that no window saw are one thing, and paces that none met another: each line stands alone. */
static void each_kind_of_unseen_has_its_line(void **state)
{
	const struct heap_window w = { .rate_in_windows = 8192, .windows_ns = 1e9 };

	(void)state;
	unseen = (struct heap_unseen){ .allocs = 20, .bytes = 2000, .many = true, .lost = true };
	comment(&w);
	assert_int_equal(ncomments(), 2);
	assert_true(says("of sizes that no window saw") && !says("pace"));
	assert_int_equal(loss.n[LOSS_ALLOCS_UNSEEN], 20);
	assert_int_equal(loss.n[LOSS_ALLOCS_UNMET], 0);

	prof_free(p);
	assert_int_equal(set_up(NULL), 0);
	unseen = (struct heap_unseen){ .fast = 30, .fast_bytes = 3000, .many = true, .lost = true };
	comment(&w);
	assert_int_equal(ncomments(), 2);
	assert_true(says("at a pace that no window met") && !says("sizes that no window saw"));
	assert_int_equal(loss.n[LOSS_ALLOCS_UNSEEN], 0);
	assert_int_equal(loss.n[LOSS_ALLOCS_UNMET], 30);
}

/* They are known from full observation, so there need not be windows. */
static void allocations_that_passed_no_probe_are_told(void **state)
{
	const struct heap_window w = { .missed = 7 };

	(void)state;
	comment(&w);
	assert_int_equal(ncomments(), 1);
	assert_true(says("missed: 7 allocations"));
	assert_int_equal(loss.n[LOSS_ALLOCS_MISSED], 7);
	assert_int_equal(loss_total(&loss), 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(without_windows_nothing_is_said, set_up, tear_down),
		cmocka_unit_test_setup_teardown(counts_scale_the_numbers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(without_counts_time_scales_the_numbers, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_reason_is_given_where_none_is_known, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(time_without_counts_is_told_when_it_is_long, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			a_short_time_without_counts_is_told_when_much_was_allocated, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(losses_add_to_what_was_lost_before, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_is_little_is_said_and_no_loss, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(each_kind_of_unseen_has_its_line, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(allocations_that_passed_no_probe_are_told, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
