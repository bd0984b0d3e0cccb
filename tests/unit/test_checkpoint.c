/*
 * tests/unit/test_checkpoint.c - readings of a target that may go: when they are made, which of them remains, and how old that is
 * said to be. Clock, timer and target are replaced by functions of these names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>

#include "base/clock.h"
#include "collect/ratewrite/checkpoint.h"

#define MS NS_PER_MS

static struct {
	uint64_t now;
	uint64_t takes;	   /* ns: one reading */
	int fails;	   /* what a reading returns; 0: it works */
	bool gone;	   /* or it is another program now */
	int no_timer;	   /* errno of making one; 0: it works */
	int no_time;	   /* errno of setting it */
	unsigned readings; /* were tried */
	uint64_t pause;	   /* ns: until the timer rings */
} w;

static struct target target;
static struct subject subject = { .target = &target };

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	(void)clock;
	*ts = (struct timespec){ (time_t)(w.now / NS_PER_S), (long)(w.now % NS_PER_S) };
	return 0;
}

int timerfd_create(clockid_t clock, int flags)
{
	/* Whoever polls it late must not wait in read(), and no child inherits it. */
	assert_int_equal(clock, CLOCK_MONOTONIC);
	assert_int_equal(flags, TFD_CLOEXEC | TFD_NONBLOCK);
	errno = w.no_timer;
	return w.no_timer ? -1 : (int)syscall(SYS_timerfd_create, clock, flags);
}

int timerfd_settime(int fd, int flags, const struct itimerspec *t, struct itimerspec *old)
{
	assert_true(fd >= 0 && !flags && !old);
	assert_int_equal(t->it_interval.tv_sec + t->it_interval.tv_nsec, 0);
	w.pause = (uint64_t)t->it_value.tv_sec * NS_PER_S + (uint64_t)t->it_value.tv_nsec;
	errno = w.no_time;
	return w.no_time ? -1 : 0;
}

int target_alive(struct target *t, struct err *e)
{
	assert_ptr_equal(t, &target);
	return w.gone ? err_set(e, -ESRCH, "it became another program") : 0;
}

/* A profile that says which reading it is. */
static int reading(void *arg, struct prof **out, struct err *e)
{
	struct prof *p;

	assert_ptr_equal(arg, &w);
	w.readings++;
	w.now += w.takes;
	if (w.fails)
		return err_set(e, w.fails, "it cannot be read now");
	assert_int_equal(prof_new(&p, NULL), 0);
	assert_int_equal(prof_comment(p, NULL, "reading %u", w.readings), 0);
	*out = p;
	return 0;
}

static const char *comment(const struct prof *p, size_t i)
{
	struct prof_header_view v = prof_header(p);

	assert_true(i < v.ncomments);
	return strtab_get(prof_strings(p), v.comments[i]);
}

/* ---- the windows of the tests ---- */

static struct checkpoint a;

static int set_up(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.now = 1000 * NS_PER_S;
	checkpoint_init(&a, &subject, reading, &w);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	checkpoint_fini(&a);
	return 0;
}

/* The timer rings @ms after the window began. */
static void rings_at(uint64_t ms)
{
	w.now = a.start_ns + ms * MS;
	assert_int_equal(checkpoint_again(&a, NULL), 0);
}

/* What remains says this of its age. */
static void remains(const char *reading_no, const char *age)
{
	struct prof *p = NULL;

	assert_int_equal(checkpoint_hand_over(&a, &p, NULL), 0);
	assert_string_equal(comment(p, 0), reading_no);
	assert_string_equal(comment(p, 1), age);
	prof_free(p); /* it is ours: tear_down() must not free it once more */
}

static void of_a_process_the_start_remains(void **state)
{
	(void)state;
	assert_int_equal(checkpoint_start(&a, false, NULL), 0);
	assert_int_equal(w.readings, 1);
	assert_int_equal(a.timer, -1);
	w.now += 5 * NS_PER_S;
	remains("reading 1", "state: as of the start of the window; the target went");
}

static void of_a_command_the_last_reading_remains(void **state)
{
	(void)state;
	assert_int_equal(checkpoint_start(&a, true, NULL), 0);
	rings_at(10);
	rings_at(1500);
	assert_int_equal(w.readings, 3);
	w.now = a.start_ns + 1750 * MS;
	remains("reading 3",
		"state: as of 1.500 s after its start, its last 0.250 s are not in here");
}

/* What happens while buckets are read may be in the reading or not: it is as old as its beginning. */
static void a_reading_is_of_the_moment_it_began(void **state)
{
	(void)state;
	assert_int_equal(checkpoint_start(&a, true, NULL), 0);
	w.takes = 400 * MS;
	rings_at(2000);
	assert_true(w.now == a.start_ns + 2400 * MS);
	w.now += 100 * MS;
	remains("reading 2",
		"state: as of 2.000 s after its start, its last 0.500 s are not in here");
}

/* It exits, or execs, between two readings, or in the middle of one. */
static void what_was_read_stays_when_nothing_can_be_read(void **state)
{
	(void)state;
	assert_int_equal(checkpoint_start(&a, true, NULL), 0);
	rings_at(1000);
	w.fails = -ESRCH;
	rings_at(1100);
	assert_int_equal(w.readings, 3);
	w.fails = -EFAULT;
	rings_at(1200);
	assert_int_equal(w.readings, 4);
	w.now = a.start_ns + 2000 * MS;
	remains("reading 2",
		"state: as of 1.000 s after its start, its last 1.000 s are not in here");
}

static void another_program_is_not_read(void **state)
{
	(void)state;
	assert_int_equal(checkpoint_start(&a, true, NULL), 0);
	rings_at(1000);
	w.gone = true;
	rings_at(1100);
	rings_at(1200);
	assert_int_equal(w.readings, 2);
	remains("reading 2",
		"state: as of 1.000 s after its start, its last 0.200 s are not in here");
}

/* A reading that failed is no reason to give up: the next one may work. */
static void it_is_read_again_after_a_failure(void **state)
{
	(void)state;
	assert_int_equal(checkpoint_start(&a, true, NULL), 0);
	w.fails = -EFAULT;
	w.pause = 0;
	rings_at(10);
	assert_true(w.pause == 10 * MS);
	w.fails = 0;
	rings_at(20);
	remains("reading 3",
		"state: as of 0.020 s after its start, its last 0.000 s are not in here");
}

/* ---- when ---- */

static void a_pause_is_a_tenth_of_the_windows_life(void **state)
{
	static const struct {
		uint64_t life_ms, pause_ms;
	} cases[] = { { 10, 10 },    { 99, 10 },      { 150, 15 },     { 1000, 100 },
		      { 9000, 900 }, { 10000, 1000 }, { 11000, 1000 }, { 3600000, 1000 } };

	(void)state;
	assert_int_equal(checkpoint_start(&a, true, NULL), 0);
	assert_true(w.pause == 10 * MS);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		rings_at(cases[i].life_ms);
		assert_true(w.pause == cases[i].pause_ms * MS);
	}
}

/* A heap of many buckets takes long to read: that decides, above the second too, and when the reading fails. */
static void slow_readings_are_a_tenth_of_our_time(void **state)
{
	(void)state;
	assert_int_equal(checkpoint_start(&a, true, NULL), 0);
	w.takes = 30 * MS;
	rings_at(100);
	assert_true(w.pause == 300 * MS);
	rings_at(2000); /* a tenth of its life is shorter than ten readings */
	assert_true(w.pause == 300 * MS);
	w.takes = 300 * MS;
	rings_at(60000);
	assert_true(w.pause == 3000 * MS);
	w.fails = -EFAULT;
	w.takes = 500 * MS;
	rings_at(70000);
	assert_true(w.pause == 5000 * MS);
}

/* ---- what does not work ---- */

static void nothing_is_left_of_a_start_that_failed(void **state)
{
	struct err e = { "" };

	(void)state;
	w.fails = -EBADMSG;
	assert_int_equal(checkpoint_start(&a, true, &e), -EBADMSG);
	assert_string_equal(e.msg, "it cannot be read now");
	assert_null(a.prof);
	assert_int_equal(a.timer, -1);
}

/* The first reading is there all the same, and tear_down() frees it. */
static void a_timer_that_cannot_be_had_is_said(void **state)
{
	struct err e = { "" };

	(void)state;
	w.no_timer = EMFILE;
	assert_int_equal(checkpoint_start(&a, true, &e), -EMFILE);
	assert_non_null(strstr(e.msg, "timer"));
	assert_int_equal(a.timer, -1);
	checkpoint_fini(&a);

	assert_int_equal(set_up(NULL), 0);
	w.no_time = EINVAL;
	assert_int_equal(checkpoint_start(&a, true, &e), -EINVAL);
	checkpoint_fini(&a);

	assert_int_equal(set_up(NULL), 0);
	assert_int_equal(checkpoint_start(&a, true, &e), 0);
	w.no_time = EINVAL;
	assert_int_equal(checkpoint_again(&a, &e), -EINVAL);
}

static void its_timer_is_closed(void **state)
{
	int timer;

	(void)state;
	assert_int_equal(checkpoint_start(&a, true, NULL), 0);
	timer = a.timer;
	assert_true(fcntl(timer, F_GETFD) >= 0);
	checkpoint_fini(&a);
	assert_int_equal(fcntl(timer, F_GETFD), -1);
	checkpoint_init(&a, &subject, reading, &w);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(of_a_process_the_start_remains),
		TEST(of_a_command_the_last_reading_remains),
		TEST(a_reading_is_of_the_moment_it_began),
		TEST(what_was_read_stays_when_nothing_can_be_read),
		TEST(another_program_is_not_read),
		TEST(it_is_read_again_after_a_failure),
		TEST(a_pause_is_a_tenth_of_the_windows_life),
		TEST(slow_readings_are_a_tenth_of_our_time),
		TEST(nothing_is_left_of_a_start_that_failed),
		TEST(a_timer_that_cannot_be_had_is_said),
		TEST(its_timer_is_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
