/*
 * tests/unit/test_host_clocks.c - one clock for each CPU: CPUs that are switched off and on, periods, and what the kernel refuses. The
 * kernel's side is made up here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/sys/caps.h"
#include "base/clock.h"
#include "collect/cpu/host_clocks.h"
#include "probe/bpf_old.h"

enum { PROG = 77, CPUS = 40, PERIOD = 10 * NS_PER_MS, FD = 1000, LINK = 5000 };

/* ---- the kernel ---- */

struct cpu {
	bool off;
	int fd, link; /* of its clock; 0: there is none */
	bool enabled, dead;
	uint64_t count, period, set;
};

static struct {
	uint64_t now;
	int cpus, refused,
		put_on;	  /* refused, put_on: what opening, and putting the program on, fail with */
	unsigned long no; /* this ioctl() fails */
	struct cpu cpu[CPUS];
	int opened, open; /* descriptors of both kinds, so far, and now */
	unsigned calls;	  /* that interrupt a CPU */
} w;

static int fails(int code)
{
	errno = code;
	return -1;
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	(void)clock;
	*ts = (struct timespec){ .tv_sec = (time_t)(w.now / NS_PER_S),
				 .tv_nsec = (long)(w.now % NS_PER_S) };
	return 0;
}

int libbpf_num_possible_cpus(void)
{
	return w.cpus;
}

long syscall(long number, ...)
{
	const struct perf_event_attr *attr;
	struct cpu *c;
	int pid, cpu;
	va_list ap;

	assert_int_equal(number, SYS_perf_event_open);
	va_start(ap, number);
	attr = va_arg(ap, const struct perf_event_attr *);
	pid = va_arg(ap, int);
	cpu = va_arg(ap, int);
	va_end(ap);
	assert_true(pid == -1 && attr->disabled && attr->exclude_idle && !attr->inherit &&
		    attr->config == PERF_COUNT_SW_CPU_CLOCK);
	c = &w.cpu[cpu];
	if (w.refused || c->off)
		return fails(w.refused ?: ENODEV);
	assert_int_equal(c->fd, 0);
	w.open++;
	*c = (struct cpu){ .fd = FD + w.opened++, .period = attr->sample_period };
	return c->fd;
}

static struct cpu *of(int fd)
{
	for (int i = 0; i < CPUS; i++)
		if (w.cpu[i].fd == fd || w.cpu[i].link == fd)
			return &w.cpu[i];
	fail_msg("no file %d", fd);
	return NULL;
}

int ioctl(int fd, unsigned long request, ...)
{
	struct cpu *c = of(fd);
	va_list ap;

	if (request == w.no)
		return fails(EIO);
	va_start(ap, request);
	if (request == PERF_EVENT_IOC_PERIOD) {
		c->period = *va_arg(ap, uint64_t *);
		c->set++;
		w.calls++;
	}
	va_end(ap);
	if (request == PERF_EVENT_IOC_ENABLE || request == PERF_EVENT_IOC_DISABLE)
		c->enabled = request == PERF_EVENT_IOC_ENABLE;
	return 0;
}

ssize_t read(int fd, void *buf, size_t len)
{
	assert_int_equal(len, sizeof(uint64_t));
	memcpy(buf, &of(fd)->count, sizeof(uint64_t));
	w.calls++;
	return sizeof(uint64_t);
}

int close(int fd)
{
	struct cpu *c = of(fd);

	w.open--;
	if (c->fd == fd) {
		assert_int_equal(c->link, 0); /* the program ends first */
		c->fd = 0;
	}
	if (c->link == fd)
		c->link = 0;
	return 0;
}

int bpf_put_on(int prog_fd, int event_fd, uint64_t cookie, int *link, struct err *e)
{
	struct cpu *c = of(event_fd);

	assert_true(prog_fd == PROG && !cookie && !c->enabled);
	*link = -1;
	if (w.put_on)
		return err_set(e, w.put_on, "no program");
	w.open++;
	*link = c->link = LINK + w.opened++;
	return 0;
}

int caps_refused(struct err *e, const char *what, const int *caps, size_t n)
{
	assert_true(n == 1 && caps[0] == CAP_PERFMON);
	return err_set(e, -EPERM, "%s", what);
}

static void switch_cpu(int cpu, bool on)
{
	w.cpu[cpu].off = !on;
	w.cpu[cpu].dead = true; /* until a new one is opened */
}

/* ---- clocks ---- */

static struct host_clocks c;
static struct err err;

static int set_up(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.now = 100 * NS_PER_S;
	w.cpus = 4;
	c = (struct host_clocks){};
	err = (struct err){};
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	host_clocks_close(&c);
	assert_int_equal(w.open, 0);
	return 0;
}

static void begin(void)
{
	assert_int_equal(host_clocks_open(&c, PROG, PERIOD, &err), 0);
	assert_int_equal(host_clocks_start(&c, &err), 0);
}

/* Turns of a tenth of a second. */
static void pass(unsigned turns)
{
	for (; turns; turns--) {
		w.now += NS_PER_S / 10;
		for (int i = 0; i < w.cpus; i++)
			if (w.cpu[i].fd && w.cpu[i].enabled && !w.cpu[i].dead)
				w.cpu[i].count += NS_PER_S / 10;
		host_clocks_turn(&c);
	}
}

static bool ticks(int cpu)
{
	return w.cpu[cpu].fd && w.cpu[cpu].link && w.cpu[cpu].enabled && !w.cpu[cpu].dead;
}

static void each_cpu_has_a_clock(void **state)
{
	(void)state;
	assert_int_equal(host_clocks_open(&c, PROG, PERIOD, &err), 0);
	for (int i = 0; i < 4; i++)
		assert_true(w.cpu[i].link && !w.cpu[i].enabled && w.cpu[i].period == PERIOD);
	assert_int_equal(host_clocks_start(&c, &err), 0);
	pass(100);
	assert_int_equal(w.opened, 8); /* none was opened anew */
	for (int i = 0; i < 4; i++) {
		assert_true(ticks(i) && w.cpu[i].period != PERIOD);
		assert_in_range(w.cpu[i].set, 20, 80); /* of 100 turns: each 250 ms, more or less */
	}
	assert_int_not_equal(w.cpu[0].period, w.cpu[1].period);
	host_clocks_stop(&c);
	assert_false(w.cpu[0].enabled);
}

static void of_a_cpu_that_is_switched_on_again_ticks_come_within_seconds(void **state)
{
	(void)state;
	begin();
	pass(20);
	switch_cpu(2, false);
	pass(20);
	assert_false(w.cpu[2].fd);
	w.cpu[2].off = false;
	pass(11);
	assert_true(ticks(2) && ticks(0) && ticks(3));
	assert_int_equal(w.opened, 10);
}

/* Nobody has seen it off: its clock is dead all the same. */
static void off_and_on_between_two_looks(void **state)
{
	(void)state;
	begin();
	pass(20);
	switch_cpu(1, true);
	pass(11);
	assert_true(ticks(1));
	assert_int_equal(w.opened, 10);
}

static void a_cpu_that_was_off_at_first(void **state)
{
	(void)state;
	w.cpu[3].off = true;
	begin();
	assert_false(w.cpu[3].fd);
	pass(30);
	w.cpu[3].off = false;
	pass(11);
	assert_true(ticks(3));
}

/* A clock that is opened anew ticks at the rate that there is then, and waits for the next window where there is none. */
static void new_clocks_are_as_the_others(void **state)
{
	(void)state;
	begin();
	host_clocks_weigh(&c, 8);
	assert_in_range(w.cpu[0].period, 5 * PERIOD, 14 * PERIOD);
	switch_cpu(0, true);
	pass(20);
	assert_true(ticks(0));
	assert_in_range(w.cpu[0].period, 5 * PERIOD, 14 * PERIOD);
	host_clocks_stop(&c);
	switch_cpu(1, true);
	pass(50);
	assert_int_equal(w.opened, 10); /* counts stand still, and nobody minds */
	assert_int_equal(host_clocks_start(&c, &err), 0);
	pass(11);
	assert_true(ticks(0) && ticks(1));
	assert_int_equal(w.opened, 12);
}

/* In one turn few of many CPUs are interrupted, but each has its turn. */
static void many_cpus_take_turns(void **state)
{
	(void)state;
	w.cpus = CPUS;
	begin();
	for (int i = 0; i < 100; i++) {
		w.calls = 0;
		pass(1);
		assert_in_range(w.calls, 0, 17);
	}
	for (int i = 0; i < CPUS; i++)
		assert_in_range(w.cpu[i].set, 10, 80);
	assert_int_equal(w.opened, 2 * CPUS);
}

/* What fails in the window is tried again. */
static void what_is_refused_meanwhile_is_tried_again(void **state)
{
	(void)state;
	begin();
	switch_cpu(0, true);
	w.put_on = -EMFILE;
	pass(20);
	assert_int_equal(w.open, 6);
	w.put_on = 0;
	w.no = PERF_EVENT_IOC_ENABLE;
	pass(20);
	assert_int_equal(w.open, 6);
	w.no = 0;
	pass(11);
	assert_true(ticks(0));
}

static void refusals_are_told(void **state)
{
	(void)state;
	w.refused = EACCES;
	assert_int_equal(host_clocks_open(&c, PROG, PERIOD, &err), -EPERM);
	host_clocks_close(&c);
	w.refused = EMFILE;
	assert_int_equal(host_clocks_open(&c, PROG, PERIOD, &err), -EMFILE);
	assert_non_null(strstr(err.msg, "CPU 0: perf_event_open"));
	host_clocks_close(&c);
	w.refused = ENODEV;
	assert_int_equal(host_clocks_open(&c, PROG, PERIOD, &err), -ENODEV);
	assert_string_equal(err.msg, "no CPU has a clock");
	host_clocks_close(&c);
	w.refused = 0;
	w.put_on = -EINVAL;
	assert_int_equal(host_clocks_open(&c, PROG, PERIOD, &err), -EINVAL);
	assert_string_equal(err.msg, "CPU 0: no program");
	host_clocks_close(&c);
	w.put_on = 0;
	w.no = PERF_EVENT_IOC_ENABLE;
	assert_int_equal(host_clocks_open(&c, PROG, PERIOD, &err), 0);
	assert_int_equal(host_clocks_start(&c, &err), -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_cpu_has_a_clock, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			of_a_cpu_that_is_switched_on_again_ticks_come_within_seconds, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(off_and_on_between_two_looks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_cpu_that_was_off_at_first, set_up, tear_down),
		cmocka_unit_test_setup_teardown(new_clocks_are_as_the_others, set_up, tear_down),
		cmocka_unit_test_setup_teardown(many_cpus_take_turns, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_refused_meanwhile_is_tried_again, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(refusals_are_told, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
