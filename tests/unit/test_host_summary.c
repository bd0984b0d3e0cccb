/* tests/unit/test_host_summary.c - where the host's CPU time went, in which order, and what is summed up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "cli/run/host/host_summary.h"

static struct summary s;
static char *text;
static size_t len;

static int teardown(void **state)
{
	(void)state;
	summary_fini(&s);
	s = (struct summary){ 0 };
	free(text);
	text = NULL;
	return 0;
}

static const char *print(uint64_t window_ns)
{
	FILE *f;

	free(text);
	f = open_memstream(&text, &len);
	summary_print(&s, window_ns, f);
	fclose(f);
	return text;
}

/* A profile whose function "fI" has I samples of a millisecond. */
static struct prof *profile_of(int functions)
{
	struct prof *p = NULL;

	assert_int_equal(prof_new(&p, NULL), 0);
	assert_int_equal(prof_add_type(p, "samples", "count", NULL), 0);
	assert_int_equal(prof_add_type(p, "cpu", "nanoseconds", NULL), 0);
	for (int i = 1; i <= functions; i++) {
		int64_t values[] = { i, i * 1000000ll };
		char name[16];
		struct prof_line line = { .func = name, .file = "" };
		uint32_t loc;

		snprintf(name, sizeof(name), "f%d", i);
		loc = (uint32_t)prof_location(p, 0, (uint64_t)i, &line, 1, NULL);
		assert_int_equal(prof_sample(p, &loc, 1, values, NULL, 0, NULL), 0);
	}
	return p;
}

/* Samples in use on a heap, or waits: their values are at @type, the first function is the runtime's. */
static struct prof *profile_with(size_t type, size_t ntypes, int64_t value)
{
	static const char *const funcs[] = { "runtime.gopark", "sync.(*Mutex).Lock", "main.serve",
					     "main.main" };
	struct prof *p = NULL;
	uint32_t locs[ARRAY_LEN(funcs)];
	int64_t values[PROF_TYPES_MAX] = { 0 };

	assert_int_equal(prof_new(&p, NULL), 0);
	for (size_t i = 0; i < ntypes; i++)
		assert_int_equal(prof_add_type(p, i == type ? "wanted" : "other", "count", NULL),
				 0);
	for (size_t i = 0; i < ARRAY_LEN(funcs); i++) {
		struct prof_line line = { .func = funcs[i], .file = "" };

		locs[i] = (uint32_t)prof_location(p, 0, 16 * (i + 1), &line, 1, NULL);
	}
	for (size_t i = 0; i < ntypes; i++)
		values[i] = 7;
	values[type] = value;
	assert_int_equal(prof_sample(p, locs, ARRAY_LEN(locs), values, NULL, 0, NULL), 0);
	return p;
}

static void add(pid_t pid, const char *name, uint64_t ms, const char *note, const struct prof *p)
{
	struct summary_row r = { .pid = pid, .value = ms * 1000000, .note = note };

	snprintf(r.name, sizeof(r.name), "%s", name);
	assert_true(summary_add(&s, &r, p));
}

static void most_first_with_five_functions(void **state)
{
	struct prof *p = profile_of(7);
	const char *f7, *f3;

	(void)state;
	add(1, "small", 100, NULL, NULL);
	add(2, "large", 300, "ended", p);
	prof_free(p);
	print(1000000000);
	assert_non_null(strstr(text, "0.40 s of CPU time in 1.00 s, by 2 of 2 Go processes"));
	assert_non_null(strstr(text, "0.30 s   75.0%    30.0%        2  large, ended\n"));
	assert_true(strstr(text, "large") < strstr(text, "small"));
	f7 = strstr(text, " 25.0%  f7\n");
	f3 = strstr(text, " 10.7%  f3\n");
	assert_true(f7 && f3 && f7 < f3);
	assert_null(strstr(text, "f2"));
}

static void waits_of(pid_t pid, int64_t s_of, double error)
{
	struct prof *p = profile_with(1, 2, s_of * 1000000000);

	prof_set_error(p, "wanted", error < 0 ? error : error * 1e9);
	add(pid, "waits", 0, NULL, p);
	prof_free(p);
}

/* Of each process, and of all together; where it is below one in a hundred nothing is said. */
static void estimates_have_errors(void **state)
{
	(void)state;
	s.of = SUMMARY_WAIT;
	waits_of(1, 60, 12);
	waits_of(2, 40, 9);
	waits_of(3, 100, 0.5);
	print(1000000000);
	assert_non_null(strstr(text, "200.00 s of waits in the window, +- 8 %, by 3 of 3"));
	assert_non_null(strstr(text, "        1  waits, +- 20 %\n"));
	assert_non_null(strstr(text, "        2  waits, +- 22 %\n"));
	assert_non_null(strstr(text, "        3  waits\n"));
	waits_of(4, 1, PROF_NOT_KNOWN);
	print(1000000000);
	assert_non_null(strstr(text, "in the window, +- not known, by 4 of 4"));
	assert_non_null(strstr(text, "        4  waits, +- not known\n"));
	teardown(NULL);
	s.of = SUMMARY_WAIT;
	waits_of(1, 1, 0.5);
	for (int i = 0; i < 2 * SUMMARY_KEPT; i++)
		waits_of(i + 2, 1, 0.5);
	/* also of those that have no row any more */
	assert_non_null(strstr(print(1000000000), "2049.00 s of waits in the window, +- 1 %, by"));
}

static void the_small_and_the_many_are_one_line(void **state)
{
	(void)state;
	for (int i = 0; i < SUMMARY_ROWS + 5; i++)
		add(i + 1, "x", 100, NULL, NULL);
	assert_non_null(strstr(print(1000000000), " 5 others\n"));
	assert_non_null(strstr(text, "0.50 s   20.0%"));
	teardown(NULL);
	add(1, "busy", 10000, NULL, NULL);
	add(2, "tiny", 1, NULL, NULL);
	add(3, "none", 0, NULL, NULL);
	assert_non_null(strstr(print(1000000000), "by 2 of 3 Go processes"));
	/* A single one has its name. */
	assert_non_null(strstr(text, "        2  tiny\n"));
	assert_null(strstr(text, "other"));
	teardown(NULL);
	add(1, "busy", 10000, NULL, NULL);
	add(2, "tiny", 1, NULL, NULL);
	add(3, "tiny", 1, NULL, NULL);
	assert_non_null(strstr(print(1000000000), " 2 others\n"));
	assert_null(strstr(text, "tiny"));
}

/* A host that starts programs all the time: the largest keep their rows, nothing is forgotten. */
static void thousands_are_summed_up(void **state)
{
	(void)state;
	add(1, "large", 5000, NULL, NULL);
	for (int i = 0; i < 5 * SUMMARY_KEPT; i++)
		add(i + 2, "short", i & 1, NULL, NULL);
	assert_true(s.rows.n <= SUMMARY_KEPT);
	print(1000000000);
	assert_non_null(
		strstr(text, "7.56 s of CPU time in 1.00 s, by 2561 of 5121 Go processes\n"));
	assert_non_null(strstr(text, "5.00 s   66.1%   500.0%        1  large\n"));
	assert_non_null(strstr(text, "2.56 s   33.9%   256.0%           2560 others\n"));
}

/* Of heaps what is in use, of waits how long, and where in the program's own code. */
static void kinds_have_their_values_and_places(void **state)
{
	static const struct {
		enum summary_of of;
		size_t type, ntypes;
		int64_t value;
		const char *head, *row, *top;
	} all[] = {
		{ SUMMARY_HEAP, 3, 4, 3 << 20, "3.00 MB in use on heaps, by 1 of 1 Go processes\n",
		  "   3.00 MB  100.0%        1  x\n", " 100.0%  runtime.gopark\n" },
		{ SUMMARY_BLOCK, 1, 2, 2500000000,
		  "2.50 s of blocking since they started, by 1 of 1 Go processes\n",
		  "    2.50 s  100.0%        1  x\n", " 100.0%  main.serve\n" },
		{ SUMMARY_MUTEX, 1, 2, 10000000,
		  "0.01 s of waits for mutexes since they started, by 1 of 1 Go processes\n",
		  "    0.01 s  100.0%        1  x\n", " 100.0%  main.serve\n" },
		{ SUMMARY_BLOCK_PROBED, 1, 2, 2500000000,
		  "2.50 s of blocking in the window, by 1 of 1 Go processes\n",
		  "    2.50 s  100.0%        1  x\n", " 100.0%  main.serve\n" },
		{ SUMMARY_MUTEX_PROBED, 1, 2, 10000000,
		  "0.01 s of waits for mutexes in the window, by 1 of 1 Go processes\n",
		  "    0.01 s  100.0%        1  x\n", " 100.0%  main.serve\n" },
		{ SUMMARY_WAIT, 1, 2, 2500000000,
		  "2.50 s of waits in the window, by 1 of 1 Go processes\n",
		  "    2.50 s  100.0%        1  x\n", " 100.0%  main.serve\n" },
		{ SUMMARY_GOROUTINE, 0, 1, 12, "12 goroutines, by 1 of 1 Go processes\n",
		  "        12  100.0%        1  x\n", " 100.0%  main.serve\n" },
	};

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		struct prof *p = profile_with(all[i].type, all[i].ntypes, all[i].value);

		s.of = all[i].of;
		add(1, "x", 99, NULL, p);
		prof_free(p);
		print(1000000000);
		assert_ptr_equal(strstr(text, all[i].head), text);
		assert_non_null(strstr(text, all[i].row));
		assert_non_null(strstr(text, all[i].top));
		teardown(state);
	}
}

/* What nothing is left of is not missed in silence. */
static void one_that_has_only_losses_is_named(void **state)
{
	struct summary_row r = { .pid = 7, .name = "unlucky", .lost = 3 };

	(void)state;
	add(1, "x", 99, NULL, NULL);
	assert_true(summary_add(&s, &r, NULL));
	assert_non_null(
		strstr(print(1000000000), "Of 1 more there are only losses: pid 7 (unlucky)\n"));
	r.pid = 8;
	assert_true(summary_add(&s, &r, NULL));
	assert_non_null(strstr(print(1000000000),
			       "Of 2 more there are only losses: pid 7 (unlucky) and others\n"));
	r.value = 1;
	teardown(state);
	assert_true(summary_add(&s, &r, NULL));
	assert_null(strstr(print(1000000000), "only losses"));
}

static void nothing_is_said_of_nothing(void **state)
{
	(void)state;
	assert_string_equal(print(0), "0.00 s of CPU time in 0.00 s, by 0 of 0 Go processes\n");
}

/* Names are other people's. */
static void a_name_cannot_move_the_cursor(void **state)
{
	(void)state;
	add(1, "a\033[2Jb", 100, NULL, NULL);
	assert_null(strchr(print(1), '\033'));
}

/* Records that are since the program's start: what they have more than at the begin of the window. */
static void what_was_there_before_is_taken_away(void **state)
{
	struct prof *p = profile_of(7), *first = profile_of(3);
	struct summary_row r = { .pid = 1, .name = "old" };

	(void)state;
	s.of = SUMMARY_ALLOC;
	assert_true(summary_add_since(&s, &r, p, first));
	assert_true(summary_add_since(&s, &r, first, first));
	print(1000000000);
	assert_non_null(strstr(text, "20.98 MB allocated in the window, by 1 of 2 Go processes"));
	assert_true(strstr(text, " 31.8%  f7\n") && strstr(text, " 18.2%  f4\n"));
	assert_null(strstr(text, "f3"));
	prof_free(p);
	prof_free(first);
}

static struct prof *with_aside(int64_t published, int64_t now)
{
	struct prof_line line = { .func = "main.f", .file = "" };
	struct prof *p = NULL;
	uint32_t loc;

	assert_int_equal(prof_new(&p, NULL), 0);
	assert_int_equal(prof_add_type(p, "alloc_objects", "count", NULL), 0);
	assert_int_equal(prof_add_type(p, "alloc_space", "bytes", NULL), 0);
	prof_add_aside(p);
	loc = (uint32_t)prof_location(p, 0, 16, &line, 1, NULL);
	assert_int_equal(prof_sample(p, &loc, 1, (int64_t[]){ 1, published, now }, NULL, 0, NULL),
			 0);
	return p;
}

/* Go has not published yet what was allocated since the last garbage collection: both readings know it. */
static void what_is_not_published_counts(void **state)
{
	struct prof *p = with_aside(1000, 9 << 20), *first = with_aside(1000, 4 << 20);
	struct summary_row r = { .pid = 1, .name = "old" };

	(void)state;
	s.of = SUMMARY_ALLOC;
	assert_true(summary_add_since(&s, &r, p, first));
	print(1000000000);
	assert_non_null(strstr(text, "5.00 MB allocated in the window, by 1 of 1 Go processes"));
	prof_free(p);
	prof_free(first);
}

static const char *cost(struct engine_cost c, uint64_t unseen)
{
	const struct collect_opts o = { .host = { .own_ppm = 20000, .taken_ppm = 50000 } };
	FILE *kept = stderr;

	free(text);
	stderr = open_memstream(&text, &len);
	summary_cost(c, unseen, false, &o);
	fclose(stderr);
	stderr = kept;
	return text;
}

/* Probes in a file cost all that run it, and of some nobody knows the CPU time: that may be why the bound was passed. */
static void what_share_it_is_of(void **state)
{
	struct engine_cost c = { .lasted_ns = 2000000000, .own_ns = 20000000 };

	(void)state;
	c.taken_ns = 20000000;
	assert_non_null(
		strstr(cost(c, 0), "took 0.02 s of the processes' 0.00 s (? %, at most 5 %)\n"));
	c.cpu_ns = 1000000000;
	assert_non_null(
		strstr(cost(c, 0), "took 0.02 s of the processes' 1.00 s (2.0 %, at most 5 %)\n"));
	assert_non_null(strstr(cost(c, 3), "(2.0 %, at most 5 %)\n"));
	c.taken_ns = 70000000;
	assert_non_null(strstr(cost(c, 0), "(7.0 %, at most 5 %)\n"));
	assert_non_null(strstr(
		cost(c, 3),
		"(7.0 %, at most 5 %; the time of 3 programs that were not looked at is not in that)\n"));
	assert_non_null(strstr(cost(c, 1),
			       "; the time of 1 program that was not looked at is not in that)\n"));
}

static void a_moment_has_no_share(void **state)
{
	struct engine_cost c = { .lasted_ns = 1300000, .own_ns = 4000000 };

	(void)state;
	assert_non_null(strstr(cost(c, 0), "time in the window (of 1.3 ms; reads"));
	c.lasted_ns = 200000000;
	assert_non_null(strstr(cost(c, 0), "time in the window (2.0 % of one CPU; reads"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(most_first_with_five_functions, teardown),
		cmocka_unit_test_teardown(the_small_and_the_many_are_one_line, teardown),
		cmocka_unit_test_teardown(thousands_are_summed_up, teardown),
		cmocka_unit_test_teardown(what_was_there_before_is_taken_away, teardown),
		cmocka_unit_test_teardown(what_is_not_published_counts, teardown),
		cmocka_unit_test_teardown(what_share_it_is_of, teardown),
		cmocka_unit_test_teardown(a_moment_has_no_share, teardown),
		cmocka_unit_test_teardown(estimates_have_errors, teardown),
		cmocka_unit_test_teardown(kinds_have_their_values_and_places, teardown),
		cmocka_unit_test_teardown(one_that_has_only_losses_is_named, teardown),
		cmocka_unit_test_teardown(nothing_is_said_of_nothing, teardown),
		cmocka_unit_test_teardown(a_name_cannot_move_the_cursor, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
