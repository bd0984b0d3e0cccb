/*
 * tests/unit/test_wait_prof.c - what a profile of probed waits shows: numbers as Go shows them, how certain they are, and
 * what is said of looks. Frames are this file's: a stack is one line of one function, by its first pc.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "collect/waits/engine/wait_prof.h"
#include "symbolize/subject_prof.h"

#define MS 1000000
static const int64_t one = GPB_COUNT_ONE;

static struct subject subject;
static int fails; /* what making a profile or adding a stack returns; 0: it works */
static int open_stacks;
static enum hide hidden;

/* ---- what stacks become ---- */

int subject_prof(struct subject *s, const char *source, struct prof **out, struct err *e)
{
	int ret;

	assert_ptr_equal(s, &subject);
	if (fails)
		return err_set(e, fails, "no profile");
	ret = prof_new(out, e);
	return ret ? ret : prof_comment(*out, e, "source: %s", source);
}

void stack_physical_init(struct stack_physical *ph, struct subject *s, struct prof *p,
			 enum hide hide)
{
	*ph = (struct stack_physical){ .s = s, .p = p, .hide = hide };
	hidden = hide;
	open_stacks++;
}

void stack_physical_fini(struct stack_physical *ph)
{
	open_stacks -= ph->p != NULL;
}

int stack_physical_add(struct stack_physical *ph, const struct gpb_stack *st, const int64_t *values,
		       const struct prof_label *labels, size_t nlabels, struct err *e)
{
	char name[32];
	const struct prof_line line = { name, "main.go", (int64_t)st->pc[0], 0 };
	uint32_t loc;

	if (fails)
		return err_set(e, fails, "no such stack");
	snprintf(name, sizeof(name), "main.f%llu", (unsigned long long)st->pc[0]);
	loc = (uint32_t)prof_location(ph->p, 0, st->pc[0], &line, 1, e);
	return prof_sample(ph->p, &loc, 1, values, labels, nlabels, e);
}

/* ---- a profile ---- */

static struct wait_prof w;

static int set_up(void **state)
{
	(void)state;
	fails = 0;
	memset(&w, 0, sizeof(w));
	return wait_prof_begin(&w, &subject, "by hand", HIDE_WAITING, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	wait_prof_fini(&w);
	assert_int_equal(open_stacks, 0);
	return 0;
}

static void add_uncertain(uint64_t at, double waits, int64_t delay, double waits_error,
			  double delay_error)
{
	const struct gpb_stack st = { .nfirst = 1, .pc = { at } };
	const struct wait_estimate est = {
		.count = (int64_t)(waits * (double)one),
		.delay = delay,
		.count_error = waits_error < 0 ? -1 :
						 waits_error * waits_error * (double)(one * one),
		.delay_error = delay_error < 0 ? -1 : delay_error * delay_error,
	};

	assert_int_equal(wait_prof_add(&w, &st, &est, NULL, 0, NULL), 0);
}

static void add(uint64_t at, double waits, int64_t delay)
{
	add_uncertain(at, waits, delay, 0, 0);
}

static const char *comment(size_t i)
{
	struct prof_header_view h = prof_header(w.prof);

	return i < h.ncomments ? strtab_get(prof_strings(w.prof), h.comments[i]) : NULL;
}

static bool says(const char *what)
{
	for (size_t i = 0; comment(i); i++)
		if (strstr(comment(i), what))
			return true;
	return false;
}

/* Samples are in the order in which their stacks came first. */
static void sample_is(const struct prof *p, size_t i, int64_t waits, int64_t delay)
{
	struct prof_sample_view v = prof_sample_at(p, i);

	assert_int_equal(v.values[0], waits);
	assert_int_equal(v.values[1], delay);
}

/* ---- samples ---- */

static void it_has_the_types_that_go_has(void **state)
{
	struct prof_header_view h = prof_header(w.prof);
	const struct strtab *t = prof_strings(w.prof);

	(void)state;
	assert_int_equal(h.ntypes, 2);
	assert_string_equal(strtab_get(t, h.types[0].type), "contentions");
	assert_string_equal(strtab_get(t, h.types[0].unit), "count");
	assert_string_equal(strtab_get(t, h.types[1].type), "delay");
	assert_string_equal(strtab_get(t, h.types[1].unit), "nanoseconds");
	assert_string_equal(comment(0), "source: by hand");
	assert_int_equal(hidden, HIDE_WAITING);
	assert_ptr_equal(w.ph.p, w.prof);
}

static void fractions_add_up_before_they_are_cut(void **state)
{
	struct prof *p;

	(void)state;
	for (int i = 0; i < 3; i++)
		add(1, 0.75, 100); /* 2.25 */
	for (int i = 0; i < 4; i++)
		add(2, 0.75, 10); /* 3 */
	add(3, 6.984375, 5);
	p = wait_prof_take(&w);
	assert_null(w.prof);
	assert_int_equal(prof_nsamples(p), 3);
	sample_is(p, 0, 2, 300);
	sample_is(p, 1, 3, 40);
	sample_is(p, 2, 6, 5); /* as int64() of Go's cuts */
	prof_free(p);
}

/* Less than one wait was seen there; and looks saw somebody wait whom no window counted. */
static void what_was_seen_is_never_none(void **state)
{
	struct prof *p;

	(void)state;
	add(1, 0.25, 100);
	add(2, 0, 7 * MS);
	p = wait_prof_take(&w);
	sample_is(p, 0, 1, 100);
	sample_is(p, 1, 1, 7 * MS);
	prof_free(p);
}

static void labels_tell_samples_apart(void **state)
{
	const struct gpb_stack st = { .nfirst = 1, .pc = { 1 } };
	const struct wait_estimate est = { .count = 2 * one, .delay = 100 };
	const struct prof_label sleep = { .key = "reason", .str = "sleep" },
				call = { .key = "reason", .str = "syscall" };
	struct prof *p;

	(void)state;
	assert_int_equal(wait_prof_add(&w, &st, &est, &sleep, 1, NULL), 0);
	assert_int_equal(wait_prof_add(&w, &st, &est, &call, 1, NULL), 0);
	assert_int_equal(wait_prof_add(&w, &st, &est, &sleep, 1, NULL), 0);
	p = wait_prof_take(&w);
	assert_int_equal(prof_nsamples(p), 2);
	sample_is(p, 0, 4, 200);
	sample_is(p, 1, 2, 100);
	prof_free(p);
}

static void failures_are_passed_on(void **state)
{
	const struct gpb_stack st = { .nfirst = 1, .pc = { 1 } };
	const struct wait_estimate est = { .count = one };
	struct wait_prof none = {};
	struct err e = { "" };

	(void)state;
	fails = -EBADMSG;
	assert_int_equal(wait_prof_add(&w, &st, &est, NULL, 0, &e), -EBADMSG);
	assert_string_equal(e.msg, "no such stack");
	fails = -ENOMEM;
	assert_int_equal(wait_prof_begin(&none, &subject, "by hand", HIDE_NONE, &e), -ENOMEM);
	assert_string_equal(e.msg, "no profile");
	wait_prof_fini(&none);
	assert_int_equal(open_stacks, 1); /* that of set_up() */
}

/* ---- how certain they are ---- */

static void errors_are_those_of_waits_and_of_delays(void **state)
{
	const struct wait_error all = { .count = 30.0 * 30 * (double)(one * one),
					.delay = 9000.0 * 9000 };

	(void)state;
	add_uncertain(1, 100, 400000, 5, 2000);
	add_uncertain(2, 200, 50000, 20, 1000);
	assert_int_equal(wait_prof_errors(&w, &all, NULL), 0);
	/* The whole is known better or worse than its parts. */
	assert_string_equal(comment(1), "error: all sites contentions 300 +- 30 (10.0%)");
	assert_string_equal(comment(2), "error: main.f2 main.go:2 contentions 200 +- 20 (10.0%)");
	assert_string_equal(comment(3), "error: main.f1 main.go:1 contentions 100 +- 5 (5.0%)");
	assert_string_equal(comment(4), "error: all sites delay 450000 +- 9000 (2.0%)");
	assert_string_equal(comment(5), "error: main.f1 main.go:1 delay 400000 +- 2000 (0.5%)");
	assert_string_equal(comment(6), "error: main.f2 main.go:2 delay 50000 +- 1000 (2.0%)");
	assert_null(comment(7));
}

/* A site without an error of its own is not as certain as that; nor are all of them. */
static void what_is_not_known_is_said(void **state)
{
	const struct wait_error all = { .count = -1, .delay = 100 };

	(void)state;
	add_uncertain(1, 100, 4000, -1, 20);
	add_uncertain(2, 50, 2000, 1, -1);
	assert_int_equal(wait_prof_errors(&w, &all, NULL), 0);
	assert_true(says("all sites contentions 150 +- unknown"));
	assert_true(says("main.go:1 contentions 100 +- unknown"));
	assert_true(says("main.go:2 contentions 50 +- 1 (2.0%)"));
	assert_true(says("all sites delay 6000 +- 10 (0.2%)"));
	assert_true(says("main.go:1 delay 4000 +- 20 (0.5%)"));
	assert_true(says("main.go:2 delay 2000 +- unknown"));
}

/* ---- looks ---- */

static void looked(const struct looks_result *r, const char *calls, uint64_t cut)
{
	assert_int_equal(wait_prof_looks(&w, r, NULL, calls, cut, NULL), 0);
}

/* One line, and nothing of what did not happen. */
static void looks_are_said_to_have_been_made(void **state)
{
	const struct looks_result r = { .looks = 4711, .stratum_ns = 2.04 * MS };

	(void)state;
	looked(&r, NULL, 0);
	assert_non_null(strstr(comment(1), "by 4711 looks from outside, every 2.0 ms"));
	assert_null(comment(2));
}

static void what_looks_could_not_tell_is_said(void **state)
{
	const struct looks_result r = { .looks = 10,
					.stratum_ns = 2 * MS,
					.begun_before = 11,
					.waiting = 12,
					.lost_ns = 13.5 * MS };

	(void)state;
	looked(&r, "calls: by windows", 14);
	assert_true(says("early: 11 waits"));
	assert_true(says("waiting: 12 waits"));
	assert_true(says("lost: waits of 13.500 ms"));
	assert_true(says("calls: by windows"));
	assert_true(says("cut: 14 waits"));
	assert_false(says("so many goroutines"));
	assert_null(comment(7));
}

/*
 * A wait of 7 ms may outlast the window that it begins in, which has 10 ms. Three looks must see it then, and they
 * do not where they are 5 ms apart.
 */
static void looks_that_are_too_far_apart_miss_waits(void **state)
{
	struct looks_result r = { .looks = 10, .stratum_ns = 3.3 * MS };

	(void)state;
	looked(&r, NULL, 0);
	assert_false(says("so many goroutines"));
	r.stratum_ns = 5 * MS;
	looked(&r, NULL, 0);
	assert_true(says("so many goroutines take long to look at: of waits of 7 to 20 ms"));
}

/* Then nothing of looks is said, and why there were none is. */
static void without_looks_delays_are_those_of_probes(void **state)
{
	const struct looks_result r = { .looks = 10, .waiting = 12 };

	(void)state;
	assert_int_equal(wait_prof_looks(&w, &r, "offsets are missing", "calls", 14, NULL), 0);
	assert_true(says("delays are as the probes saw them"));
	assert_true(says("not counted: offsets are missing"));
	assert_null(comment(2));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_has_the_types_that_go_has),
		TEST(fractions_add_up_before_they_are_cut),
		TEST(what_was_seen_is_never_none),
		TEST(labels_tell_samples_apart),
		TEST(failures_are_passed_on),
		TEST(errors_are_those_of_waits_and_of_delays),
		TEST(what_is_not_known_is_said),
		TEST(looks_are_said_to_have_been_made),
		TEST(what_looks_could_not_tell_is_said),
		TEST(looks_that_are_too_far_apart_miss_waits),
		TEST(without_looks_delays_are_those_of_probes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
