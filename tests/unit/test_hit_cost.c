/*
 * tests/unit/test_hit_cost.c - a probe's price, on a clock that only calls move on; and the child that makes those
 * calls ends when its user is done, whoever else measures at the same time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "arch/landmark.h"
#include "probe/uprobes/hit_cost.h"
#include "probe/uprobes/uprobes.h"

/* A child that does not end is waited for without an end: then SIGALRM fails this program. */
enum { HANG_S = 20 };
/* The time that a child has to close what it inherited. */
enum { CLOSE_MS = 5000 };

/* ---- a machine of which it is known what calls cost ---- */

/* ns of a call; as the child has it from the moment it was forked. */
static struct machine {
	uint64_t bare, hit, stepped;
	bool disturbed; /* one round in three takes ten times as long */
	bool dies;	/* in the middle of a measurement */
} machine;

static uint64_t cpu_ns;

int clock_gettime(clockid_t id, struct timespec *ts);
int clock_gettime(clockid_t id, struct timespec *ts)
{
	if (id != CLOCK_THREAD_CPUTIME_ID)
		return (int)syscall(SYS_clock_gettime, id, ts);
	ts->tv_sec = (time_t)(cpu_ns / 1000000000);
	ts->tv_nsec = (long)(cpu_ns % 1000000000);
	return 0;
}

void landmark_call(enum landmark which, uint64_t n, uint64_t size)
{
	static unsigned round;
	uint64_t ns = which == LANDMARK_BARE   ? machine.bare :
		      which == LANDMARK_BRANCH ? machine.hit :
						 machine.stepped;

	(void)size;
	if (machine.dies)
		_exit(1);
	cpu_ns += n * ns * (machine.disturbed && round++ / 3 % 3 == 1 ? 10 : 1);
}

/* Somewhere in our executable. */
uint64_t landmark_site(enum landmark which)
{
	(void)which;
	return (uint64_t)(uintptr_t)landmark_call;
}

/* Of the newest child, beside 0, 1 and 2, after it had time to close others. */
static int descriptors;

static int count_fds(pid_t pid)
{
	char path[64];
	struct dirent *d;
	int n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	assert_non_null(dir);
	while ((d = readdir(dir)))
		n += d->d_name[0] != '.' && atoi(d->d_name) > 2;
	closedir(dir);
	return n;
}

static void look_at_descriptors(pid_t pid)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	for (int i = 0; i < CLOSE_MS && (descriptors = count_fds(pid)) > 1; i++)
		nanosleep(&pause, NULL);
}

int uprobes_put(struct uprobes *u, struct bpf_program *prog, bool multi, pid_t pid,
		const char *path, const struct uprobe_site *s, size_t n, struct err *e)
{
	(void)u;
	(void)prog;
	(void)multi;
	(void)path;
	(void)e;
	assert_int_equal(n, 2);
	assert_int_equal(s[0].cookie, 7);
	assert_int_equal(kill(pid, 0), 0);
	look_at_descriptors(pid);
	return 0;
}

void uprobes_leave(struct uprobes *u)
{
	(void)u;
}

void uprobes_free(struct uprobes *u)
{
	(void)u;
}

int uprobes_fd(struct uprobes *u)
{
	(void)u;
	return -1;
}

static int measure(struct hit_cost *hit_cost, struct cost_probes **rest, struct err *e)
{
	return hit_cost_measure(NULL, true, 7, NULL, hit_cost, rest, e);
}

static bool has_children(void)
{
	return waitpid(-1, NULL, WNOHANG) >= 0;
}

/* ---- tests ---- */

static void told_in_ns_of_a_hit(void **state)
{
	struct cost_probes *rest = NULL;
	struct hit_cost hit_cost;

	(void)state;
	for (int disturbed = 0; disturbed < 2; disturbed++) {
		machine = (struct machine){ .bare = 3, .hit = 403, .stepped = 2803 };
		machine.disturbed = disturbed;
		assert_int_equal(measure(&hit_cost, &rest, NULL), 0);
		assert_true(hit_cost.hit_ns == 400 && hit_cost.stepped_ns == 2400);
		cost_probes_free(rest);
		assert_false(has_children());
	}
}

static void no_price_is_an_error(void **state)
{
	struct cost_probes *rest = NULL;
	struct hit_cost hit_cost;
	struct err e = {};

	(void)state;
	machine = (struct machine){ .bare = 3, .hit = 3, .stepped = 3 };
	assert_int_equal(measure(&hit_cost, &rest, &e), -EAGAIN);
	machine = (struct machine){ .dies = true };
	assert_int_equal(measure(&hit_cost, &rest, &e), -ECHILD);
	assert_null(rest);
	assert_false(has_children());
}

/* Each later child inherits the sockets of the earlier ones. */
static void several_at_once_end_in_any_order(void **state)
{
	static const int orders[][3] = { { 0, 1, 2 }, { 2, 1, 0 }, { 1, 0, 2 } };

	(void)state;
	machine = (struct machine){ .bare = 3, .hit = 403, .stepped = 2803 };
	for (size_t o = 0; o < sizeof(orders) / sizeof(*orders); o++) {
		struct cost_probes *rest[3] = {};
		struct hit_cost hit_cost;

		for (int i = 0; i < 3; i++)
			assert_int_equal(measure(&hit_cost, &rest[i], NULL), 0);
		for (int i = 0; i < 3; i++)
			cost_probes_free(rest[orders[o][i]]);
		assert_false(has_children());
	}
}

/*
 * A copy of ours in the child would keep in an epoll instance what we close meanwhile, and an attacher's
 * socket open after our death.
 */
static void its_child_has_no_descriptor_of_ours(void **state)
{
	struct cost_probes *rest = NULL;
	struct hit_cost hit_cost;
	int low = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int high = fcntl(low, F_DUPFD_CLOEXEC, 200);

	(void)state;
	assert_true(low > 2 && high >= 200);
	machine = (struct machine){ .bare = 3, .hit = 403, .stepped = 2803 };
	descriptors = -1;
	assert_int_equal(measure(&hit_cost, &rest, NULL), 0);
	assert_int_equal(descriptors, 1);
	cost_probes_free(rest);
	close(low);
	close(high);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(told_in_ns_of_a_hit),
		cmocka_unit_test(no_price_is_an_error),
		cmocka_unit_test(several_at_once_end_in_any_order),
		cmocka_unit_test(its_child_has_no_descriptor_of_ours),
	};

	alarm(HANG_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
