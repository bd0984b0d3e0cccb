/*
 * tests/unit/test_clocks.c - one CPU clock for each thread: threads that are born while clocks are opened, those that end,
 * what the kernel refuses, and what each clock's step is. The kernel's side is made up here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "base/sys/caps.h"
#include "base/limits.h"
#include "base/sys/nofile.h"
#include "collect/cpu/clocks.h"
#include "goprof_abi.h"
#include "probe/bpf_old.h"

enum { PROG = 77, OWN_CLOCK = 78, STEP = 1000000, PERIOD = 10000000, CLOCKS = 256, FIRST_ID = 500 };

/* ---- the kernel ---- */

static struct {
	bool old, family;    /* before Linux 5.15, and before 5.13 */
	int refused, at;     /* opening a clock of thread @at fails with this errno */
	int put_on;	     /* putting the program on one fails with this */
	unsigned long no;    /* and this ioctl() */
	bool no_map, no_fds; /* the table is full; clocks have numbers that are no files */
	/* of each clock that was opened */
	struct perf_event_attr attr[CLOCKS];
	pid_t tid[CLOCKS];
	uint64_t period[CLOCKS];
	int fd[CLOCKS], link[CLOCKS];
	bool enabled[CLOCKS];
	size_t n;
	unsigned periods, tries, raised;
	struct gpb_own_clock own; /* the last that was written */
	char log[1024];
} w;

__attribute__((format(printf, 1, 2))) static void note(const char *fmt, ...)
{
	size_t n = strlen(w.log);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(w.log + n, sizeof(w.log) - n, fmt, ap);
	va_end(ap);
}

static int fails(int code)
{
	errno = code;
	return -1;
}

/* A clock of a thread has counted as many ns as there are in it. */
static long open_clock(const struct perf_event_attr *attr, pid_t tid, int cpu, int group,
		       unsigned long flags)
{
	size_t i = w.n;

	w.tries++;
	assert_true(cpu == -1 && group == -1 && flags == PERF_FLAG_FD_CLOEXEC);
	if (w.refused && tid == w.at)
		return fails(w.refused);
	if (w.family && attr->inherit_thread)
		return fails(EINVAL);
	note("open %d,", tid);
	w.n++;
	if (w.no_fds)
		return 1 << 20;
	assert_true(i < CLOCKS);
	w.attr[i] = *attr;
	w.tid[i] = tid;
	w.period[i] = attr->sample_period;
	w.fd[i] = eventfd((unsigned)tid, EFD_NONBLOCK | EFD_CLOEXEC);
	w.link[i] = -1;
	return w.fd[i];
}

long syscall(long number, ...)
{
	const struct perf_event_attr *attr;
	unsigned long flags;
	int tid, cpu, group;
	va_list ap;

	if (number != SYS_perf_event_open)
		return fails(ENOSYS);
	va_start(ap, number);
	attr = va_arg(ap, const struct perf_event_attr *);
	tid = va_arg(ap, int);
	cpu = va_arg(ap, int);
	group = va_arg(ap, int);
	flags = (unsigned long)va_arg(ap, int);
	va_end(ap);
	return open_clock(attr, tid, cpu, group, flags);
}

static size_t clock_of(int fd)
{
	for (size_t i = 0; i < w.n && i < CLOCKS; i++)
		if (w.fd[i] == fd)
			return i;
	return 0;
}

int ioctl(int fd, unsigned long request, ...)
{
	size_t i = clock_of(fd);
	uint64_t *arg;
	va_list ap;

	if (request == w.no)
		return fails(EIO);
	va_start(ap, request);
	arg = va_arg(ap, uint64_t *);
	va_end(ap);
	if (request == PERF_EVENT_IOC_ID)
		*arg = w.no_fds ? w.n : FIRST_ID + i;
	if (request == PERF_EVENT_IOC_PERIOD) {
		w.period[i] = *arg;
		w.periods++;
	}
	if (request == PERF_EVENT_IOC_ENABLE || request == PERF_EVENT_IOC_DISABLE)
		w.enabled[i] = request == PERF_EVENT_IOC_ENABLE;
	if (request == PERF_EVENT_IOC_ENABLE)
		note("run %d,", w.tid[i]);
	return 0;
}

int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	assert_true(fd == OWN_CLOCK && flags == BPF_ANY);
	memcpy(&w.own, value, sizeof(w.own));
	if (w.no_map)
		return fails(E2BIG);
	note("own %u,", *(const uint32_t *)key);
	return 0;
}

int bpf_map_delete_elem(int fd, const void *key)
{
	assert_int_equal(fd, OWN_CLOCK);
	note("no own %u,", *(const uint32_t *)key);
	return 0;
}

bool bpf_is_old(void)
{
	return w.old;
}

int bpf_put_on(int prog_fd, int event_fd, uint64_t cookie, int *link, struct err *e)
{
	size_t i = clock_of(event_fd);

	assert_int_equal(prog_fd, PROG);
	*link = -1;
	if (w.put_on)
		return err_set(e, w.put_on, "no program");
	assert_int_equal(cookie, w.no_fds ? cookie : (uint64_t)w.tid[i]);
	note("put on %d,", (int)cookie);
	if (!w.old && !w.no_fds)
		*link = w.link[i] = eventfd(0, EFD_CLOEXEC);
	return 0;
}

/* ---- the rest of the machine ---- */

int caps_paranoia(void)
{
	return 4;
}

int caps_refused_clock(struct err *e, const char *what, int paranoia)
{
	return err_set(e, -EPERM, "%s, at %d", what, paranoia);
}

void nofile_raise(void)
{
	w.raised++;
}

/* The threads that there are at each look; the last one stays. */
static const pid_t (*rounds)[8];
static size_t nrounds, looked;
static bool endless; /* one more each time */
static size_t crowd; /* so many in all, if it is not 0 */

int target_threads(struct target *t, pid_t **tids, size_t *n, struct err *e)
{
	const pid_t *now;

	(void)t;
	(void)e;
	*tids = calloc(crowd + 256, sizeof(**tids));
	assert_non_null(*tids);
	for (*n = 0; *n < crowd || (endless && *n <= looked); ++*n)
		(*tids)[*n] = (pid_t)*n + 10;
	looked++;
	if (!nrounds)
		return 0;
	now = rounds[looked <= nrounds ? looked - 1 : nrounds - 1];
	for (*n = 0; now[*n]; ++*n)
		(*tids)[*n] = now[*n];
	return now[0] < 0 ? err_set(e, now[0], "no threads") : 0;
}

/* ---- clocks ---- */

static struct clocks c;
static struct err err;

static int set_up(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	rounds = NULL;
	nrounds = looked = crowd = 0;
	endless = false;
	c = (struct clocks){};
	err = (struct err){};
	return 0;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* Nothing of a clock stays. */
static int tear_down(void **state)
{
	(void)state;
	clocks_close(&c);
	for (size_t i = 0; i < w.n && i < CLOCKS && !w.no_fds; i++) {
		assert_false(is_open(w.fd[i]));
		assert_true(w.link[i] < 0 || !is_open(w.link[i]));
	}
	return 0;
}

static int open_all(const pid_t (*of)[8], size_t n)
{
	rounds = of;
	nrounds = n;
	return clocks_open(&c, NULL, PROG, OWN_CLOCK, STEP, &err);
}

#define OPEN(...) \
	open_all((const pid_t[][8]){ __VA_ARGS__ }, ARRAY_LEN(((const pid_t[][8]){ __VA_ARGS__ })))

/* The program is there before the clock runs, so that no hit of it is missed. */
static void each_thread_has_a_clock(void **state)
{
	const struct perf_event_attr *a = &w.attr[1];

	(void)state;
	assert_int_equal(OPEN({ 11, 12 }), 0);
	assert_string_equal(w.log, "open 11,put on 11,run 11,open 12,put on 12,run 12,");
	assert_int_equal(c.at.n, 2);
	assert_int_equal(looked, 2); /* nobody was born meanwhile */
	assert_true(a->type == PERF_TYPE_SOFTWARE && a->config == PERF_COUNT_SW_TASK_CLOCK);
	assert_true(a->disabled && a->inherit && a->inherit_thread && !a->freq);
	assert_int_equal(a->sample_period, STEP);
	assert_true(!c.children && !c.overlapped && !c.missed);
	assert_int_equal(w.raised, 1); /* each clock is two files */
}

/*
 * A thread that is first seen when clocks were running may have inherited one: that is known before it gets its own, so
 * that none of its time counts twice.
 */
static void threads_are_born_meanwhile(void **state)
{
	const struct gpb_own_clock none = {};

	(void)state;
	assert_int_equal(OPEN({ 11 }, { 11, 12 }, { 11, 12, 13 }), 0);
	assert_string_equal(w.log, "open 11,put on 11,run 11,"
				   "own 12,open 12,put on 12,run 12,"
				   "own 13,open 13,put on 13,run 13,");
	assert_memory_equal(&w.own, &none, sizeof(none));
	assert_int_equal(looked, 4);
	assert_true(c.overlapped && !c.missed);
	assert_int_equal(w.period[2], STEP);
}

/* Where clocks have no cookies, each look's clocks have steps of their own, which tell them from those that are inherited. */
static void old_kernels_tell_clocks_by_their_steps(void **state)
{
	(void)state;
	w.old = true;
	assert_int_equal(OPEN({ 11 }, { 11, 12 }, { 11, 12, 13 }), 0);
	assert_int_equal(w.period[0], STEP);
	assert_int_equal(w.period[1], STEP + 1);
	assert_int_equal(w.period[2], STEP + 2);
	assert_int_equal(w.own.mark, 2);
	assert_int_equal(w.link[0], -1);
}

static void a_thread_that_ended_needs_no_clock(void **state)
{
	(void)state;
	w.refused = ESRCH;
	w.at = 12;
	assert_int_equal(OPEN({ 11, 12, 13 }), 0);
	assert_string_equal(w.log, "open 11,put on 11,run 11,open 13,put on 13,run 13,");
	assert_int_equal(c.at.n, 2);
	assert_int_equal(w.tries, 3); /* it is not tried again */
}

/* Its number may be another thread's soon, which has one clock. */
static void of_a_late_thread_that_ended_nothing_is_left(void **state)
{
	(void)state;
	w.refused = ESRCH;
	w.at = 12;
	assert_int_equal(OPEN({ 11 }, { 11, 12 }), 0);
	assert_string_equal(w.log, "open 11,put on 11,run 11,own 12,no own 12,");
	assert_int_equal(c.at.n, 1);
}

/* Before Linux 5.13 child processes inherit clocks as well. That is found out once. */
static void old_kernels_have_clocks_of_families(void **state)
{
	(void)state;
	w.family = true;
	assert_int_equal(OPEN({ 11, 12 }), 0);
	assert_true(c.children);
	assert_int_equal(w.tries, 3);
	assert_true(w.attr[0].inherit && !w.attr[0].inherit_thread && !w.attr[1].inherit_thread);
	assert_int_equal(c.at.n, 2);
}

/* A program that makes threads faster than they can be listed: those of the last look are not all known. */
static void threads_without_end_are_told(void **state)
{
	(void)state;
	endless = true;
	assert_int_equal(clocks_open(&c, NULL, PROG, OWN_CLOCK, STEP, &err), 0);
	assert_int_equal(looked, 100);
	assert_int_equal(c.at.n, 100);
	assert_int_equal(c.missed, 1);
	assert_true(c.overlapped);
}

static void so_many_threads_have_no_clocks(void **state)
{
	(void)state;
	w.no_fds = true;
	crowd = LIMIT_THREADS + 1;
	assert_int_equal(clocks_open(&c, NULL, PROG, OWN_CLOCK, STEP, &err), -E2BIG);
	assert_string_equal(err.msg, "more than 65536 threads");
	assert_int_equal(c.at.n, LIMIT_THREADS);
	c.at.n = 0; /* these are no files */
}

/* ---- what the kernel refuses ---- */

static void refuses(int code, int ret, const char *why)
{
	set_up(NULL);
	w.refused = code;
	w.at = 12;
	assert_int_equal(OPEN({ 11, 12, 13 }), ret);
	assert_string_equal(err.msg, why);
	assert_int_equal(c.at.n, 1);
	tear_down(NULL);
}

static void what_is_refused_is_told(void **state)
{
	(void)state;
	refuses(EACCES, -EPERM, "thread 12: the kernel refused a CPU clock, at 4");
	refuses(EPERM, -EPERM, "thread 12: the kernel refused a CPU clock, at 4");
	refuses(EMFILE, -EMFILE, "thread 12: too many open files: raise the limit (ulimit -n)");
	refuses(EINVAL, -EINVAL, "thread 12: perf_event_open: Invalid argument");
	refuses(ENOMEM, -ENOMEM, "thread 12: perf_event_open: Cannot allocate memory");
}

static void a_clock_that_does_not_run_is_an_error(void **state)
{
	(void)state;
	w.put_on = -EBUSY;
	assert_int_equal(OPEN({ 11 }), -EBUSY);
	assert_string_equal(err.msg, "thread 11: no program");
	tear_down(NULL);
	set_up(NULL);
	w.no = PERF_EVENT_IOC_ENABLE;
	assert_int_equal(OPEN({ 11 }), -EIO);
	assert_string_equal(err.msg, "thread 11: starting its clock: Input/output error");
	tear_down(NULL);
	set_up(NULL);
	w.no = PERF_EVENT_IOC_ID;
	assert_int_equal(OPEN({ 11 }), -EIO);
	assert_string_equal(err.msg, "thread 11: the number of its clock: Input/output error");
}

/* What may count twice is not opened. */
static void a_late_thread_that_nobody_can_note_is_an_error(void **state)
{
	(void)state;
	w.no_map = true;
	assert_int_equal(OPEN({ 11 }, { 11, 12 }), -E2BIG);
	assert_non_null(strstr(err.msg, "thread 12: own_clock"));
	assert_int_equal(w.n, 1);
}

static void a_program_that_is_gone_has_no_threads(void **state)
{
	(void)state;
	assert_int_equal(OPEN({ 11 }, { -ESRCH }), -ESRCH);
	assert_string_equal(err.msg, "no threads");
}

/* ---- steps ---- */

static void periods_are(uint64_t a, uint64_t b, uint64_t d)
{
	assert_int_equal(w.period[0], a);
	assert_int_equal(w.period[1], b);
	assert_int_equal(w.period[2], d);
}

static void one_clock_takes_long_steps(void **state)
{
	(void)state;
	assert_int_equal(OPEN({ 11, 12, 13 }), 0);
	clocks_set(&c, FIRST_ID + 1, PERIOD);
	periods_are(STEP, PERIOD, STEP);
	clocks_set(&c, FIRST_ID + 2, PERIOD);
	clocks_set(&c, FIRST_ID + 1, 0);
	periods_are(STEP, STEP, PERIOD);
	/* One that nobody opened, such as another program's. */
	clocks_set(&c, FIRST_ID + 3, PERIOD);
	periods_are(STEP, STEP, PERIOD);
	assert_int_equal(w.periods, 3);
}

/* A step that is set begins anew, so what is so already is not set. */
static void a_step_is_set_once(void **state)
{
	(void)state;
	assert_int_equal(OPEN({ 11, 12, 13 }), 0);
	clocks_refine(&c);
	assert_int_equal(w.periods, 0);
	clocks_set(&c, FIRST_ID, PERIOD);
	clocks_set(&c, FIRST_ID, PERIOD);
	assert_int_equal(w.periods, 1);
	clocks_set(&c, FIRST_ID, 0);
	clocks_set(&c, FIRST_ID, 0);
	assert_int_equal(w.periods, 2);
}

/* Each gets back the step that it was opened with. */
static void all_clocks_take_short_steps_again(void **state)
{
	(void)state;
	w.old = true;
	assert_int_equal(OPEN({ 11, 12 }, { 11, 12, 13 }), 0);
	clocks_set(&c, FIRST_ID, PERIOD);
	clocks_set(&c, FIRST_ID + 2, PERIOD);
	periods_are(PERIOD, STEP, PERIOD);
	clocks_refine(&c);
	periods_are(STEP, STEP, STEP + 1);
	assert_int_equal(w.periods, 4);
}

/* What the kernel refuses is tried again the next time. */
static void a_step_that_could_not_be_set_is_not_set(void **state)
{
	(void)state;
	assert_int_equal(OPEN({ 11, 12, 13 }), 0);
	w.no = PERF_EVENT_IOC_PERIOD;
	clocks_set(&c, FIRST_ID, PERIOD);
	w.no = 0;
	clocks_refine(&c);
	assert_int_equal(w.periods, 0);
	clocks_set(&c, FIRST_ID, PERIOD);
	periods_are(PERIOD, STEP, STEP);
	w.no = PERF_EVENT_IOC_PERIOD;
	clocks_refine(&c);
	w.no = 0;
	clocks_refine(&c);
	periods_are(STEP, STEP, STEP);
}

/* ---- the end ---- */

/* A clock's fake has counted as many ns as its thread's number. */
static void what_clocks_counted_is_added_up(void **state)
{
	uint64_t v;

	(void)state;
	assert_int_equal(OPEN({ 11, 20, 300 }), 0);
	clocks_stop(&c);
	assert_false(w.enabled[0] || w.enabled[1] || w.enabled[2]);
	assert_int_equal(clocks_total_ns(&c), 331);
	tear_down(NULL);
	set_up(NULL);
	/* One that cannot be read is left out. */
	assert_int_equal(OPEN({ 11, 20 }), 0);
	assert_int_equal(read(w.fd[0], &v, sizeof(v)), sizeof(v));
	assert_int_equal(clocks_total_ns(&c), 20);
}

/* Some thread's time is in two clocks, and nobody knows whose. */
static void what_counted_twice_is_not_known(void **state)
{
	(void)state;
	assert_int_equal(OPEN({ 11 }, { 11, 12 }), 0);
	assert_int_equal(clocks_total_ns(&c), 0);
}

static void nothing_to_close_is_fine(void **state)
{
	(void)state;
	clocks_close(&c);
	assert_int_equal(OPEN({ 11, 12 }), 0);
	assert_true(is_open(w.fd[0]) && is_open(w.link[1]));
	clocks_close(&c);
	assert_false(is_open(w.fd[0]) || is_open(w.link[1]));
	assert_int_equal(c.at.n, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_thread_has_a_clock),
		TEST(threads_are_born_meanwhile),
		TEST(old_kernels_tell_clocks_by_their_steps),
		TEST(a_thread_that_ended_needs_no_clock),
		TEST(of_a_late_thread_that_ended_nothing_is_left),
		TEST(old_kernels_have_clocks_of_families),
		TEST(threads_without_end_are_told),
		TEST(so_many_threads_have_no_clocks),
		TEST(what_is_refused_is_told),
		TEST(a_clock_that_does_not_run_is_an_error),
		TEST(a_late_thread_that_nobody_can_note_is_an_error),
		TEST(a_program_that_is_gone_has_no_threads),
		TEST(one_clock_takes_long_steps),
		TEST(a_step_is_set_once),
		TEST(all_clocks_take_short_steps_again),
		TEST(a_step_that_could_not_be_set_is_not_set),
		TEST(what_clocks_counted_is_added_up),
		TEST(what_counted_twice_is_not_known),
		TEST(nothing_to_close_is_fine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
