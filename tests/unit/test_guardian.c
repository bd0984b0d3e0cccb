/*
 * tests/unit/test_guardian.c - a word of a child of this test is switched on and off, by
 * guardians, collectors and targets that end in every way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/sys/oom.h"
#include "collect/ratewrite/guardian.h"
#include "oomscore.h"

static volatile uint64_t word __attribute__((aligned(8)));

enum { VALUE = 524288, OTHER = 4096 };

/* ---- a kernel that fails for a while: what all processes of a test share ---- */

static struct faults {
	int fcntls, writes; /* how many more of them fail */
	int64_t ahead_s;    /* of the clock */
	pid_t test;
	unsigned readings; /* of the clock, by other processes than the test's */
} * faults;

static bool fails(int *left)
{
	return faults && __atomic_load_n(left, __ATOMIC_SEQ_CST) > 0 &&
	       __atomic_fetch_sub(left, 1, __ATOMIC_SEQ_CST) > 0;
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	int ret = (int)syscall(SYS_clock_gettime, clock, ts);

	if (!faults)
		return ret;
	ts->tv_sec += __atomic_load_n(&faults->ahead_s, __ATOMIC_SEQ_CST);
	if (getpid() != faults->test)
		__atomic_fetch_add(&faults->readings, 1, __ATOMIC_SEQ_CST);
	return ret;
}

int fcntl(int fd, int cmd, ...);
int fcntl(int fd, int cmd, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	if ((cmd == F_OFD_SETLK || cmd == F_OFD_GETLK) && fails(&faults->fcntls)) {
		errno = ENOLCK;
		return -1;
	}
	return (int)syscall(SYS_fcntl, fd, cmd, arg);
}

ssize_t pwrite(int fd, const void *buf, size_t n, off_t at);
ssize_t pwrite(int fd, const void *buf, size_t n, off_t at)
{
	if (fails(&faults->writes)) {
		errno = ENOMEM;
		return -1;
	}
	return syscall(SYS_pwrite64, fd, buf, n, at);
}

struct world {
	pid_t pid;
	struct target *t;
	struct poke *p; /* the test's own access to the word */
	struct guardian_job job;
};

static int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct err e = { "" };

	if (!faults)
		faults = mmap(NULL, sizeof(*faults), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	*faults = (struct faults){ .test = getpid() };

	w->pid = fork();
	if (!w->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	if (w->pid < 0 || target_open(w->pid, &w->t, &e) ||
	    poke_open(w->t, (uint64_t)(uintptr_t)&word, &w->p, &e))
		return -1;
	w->job = (struct guardian_job){ .target = w->t,
					.name = "word",
					.addr = (uint64_t)(uintptr_t)&word,
					.value = VALUE,
					.what = CLAIM_HEAP_RATE,
					.window_ns = 60000000000ull };
	*state = w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	kill(w->pid, SIGKILL);
	waitpid(w->pid, NULL, 0);
	poke_free(w->p);
	target_free(w->t);
	free(w);
	return 0;
}

static uint64_t now(struct world *w)
{
	uint64_t v = 12345;

	assert_int_equal(poke_get(w->p, &v, NULL), 0);
	return v;
}

/* Waits until the word has the value, for ten seconds at most. */
static void becomes(struct world *w, uint64_t v)
{
	for (int i = 0; i < 1000 && now(w) != v; i++)
		usleep(10000);
	assert_int_equal(now(w), v);
}

static struct guardian *start(struct world *w, int how, uint64_t value)
{
	struct guardian_said said = { .how = -1 };
	struct guardian *g = NULL;
	struct err e = { "" };

	if (guardian_start(&w->job, &g, &said, &e))
		fail_msg("%s", e.msg);
	assert_int_equal(said.how, how);
	assert_int_equal(said.value, value);
	return g;
}

static void ends(struct guardian *g, int how, uint64_t value)
{
	struct guardian_said said = { .how = -1 };
	struct err e = { "" };

	if (guardian_end(g, &said, &e))
		fail_msg("%s", e.msg);
	assert_int_equal(said.how, how);
	assert_int_equal(said.value, value);
	guardian_free(g);
}

static void writes_and_restores(void **state)
{
	struct world *w = *state;
	struct guardian *g;

	for (int exe = 0; exe < 2; exe++) {
		w->job.force_exe = exe;
		g = start(w, GUARDIAN_WROTE, VALUE);
		assert_int_equal(now(w), VALUE);
		assert_int_equal(guardian_check(g), 0);
		ends(g, GUARDIAN_RESTORED, 0);
		assert_int_equal(now(w), 0);
	}
	assert_int_equal(waitpid(-1, NULL, WNOHANG), 0); /* only the target is left */
}

static void free_restores_too(void **state)
{
	struct world *w = *state;

	guardian_free(start(w, GUARDIAN_WROTE, VALUE));
	assert_int_equal(now(w), 0);
}

static void what_the_program_has_on_is_left(void **state)
{
	struct world *w = *state;

	assert_int_equal(poke_put(w->p, 0, VALUE, NULL), 0);
	assert_null(start(w, GUARDIAN_FOUND, VALUE));
	assert_int_equal(now(w), VALUE);
}

static void shared_and_restored_by_the_last(void **state)
{
	struct world *w = *state;
	struct guardian *first = start(w, GUARDIAN_WROTE, VALUE), *second, *third;

	w->job.value = OTHER;
	second = start(w, GUARDIAN_SHARES, VALUE);
	third = start(w, GUARDIAN_SHARES, VALUE);
	ends(second, GUARDIAN_LEFT, VALUE);
	ends(first, GUARDIAN_LEFT, VALUE);
	assert_int_equal(now(w), VALUE);
	ends(third, GUARDIAN_RESTORED, 0);
	assert_int_equal(now(w), 0);
}

/* A lock that nobody with a guardian holds postpones the restoring, and does no more. */
static void a_lock_is_no_collector(void **state)
{
	struct world *w = *state;
	struct guardian *g = start(w, GUARDIAN_WROTE, VALUE);
	struct claims *lock = NULL;

	assert_int_equal(claims_open(w->t, CLAIM_HEAP_RATE, false, &lock, NULL), 0);
	assert_int_equal(claims_take(lock, VALUE, NULL), 0);
	ends(g, GUARDIAN_LEFT, VALUE);
	assert_int_equal(now(w), VALUE);
	claims_free(lock);
	becomes(w, 0);
}

#define GATE	    (1ull << 62)
#define PLACE(slot) (GATE | (uint64_t)(slot) << 31)

/*
 * A lock on the target's pidfd that is no claim: anybody can have it. The guardian may hold the gate
 * for a moment after it has told what it did. Its own claim has a place drawn at random: where that is
 * the one to be locked for writing, the next one is.
 */
static int foreign_lock(struct world *w, short type, uint64_t from, uint64_t len)
{
	struct flock l = { .l_type = type, .l_start = (off_t)from, .l_len = (off_t)len };
	int fd = (int)syscall(SYS_pidfd_open, w->pid, 0);

	assert_true(fd >= 0);
	for (int i = 0; i < 1000 && fcntl(fd, F_OFD_SETLK, &l); i++) {
		if (type == F_WRLCK && from != GATE)
			l.l_start ^= 1ll << 31;
		usleep(10000);
	}
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &l), 0);
	return fd;
}

static void locks_of_strangers_mean_nothing(void **state)
{
	static const struct {
		short type;
		uint64_t from, len;
	} locks[] = {
		{ F_RDLCK, PLACE(1), 0 },	   /* all places of claims */
		{ F_RDLCK, GATE, 0 },		   /* and the gate */
		{ F_RDLCK, 0, 0 },		   /* everything */
		{ F_RDLCK, GATE - 1, 1ull << 38 }, /* much */
		{ F_WRLCK, PLACE(5), 1 },	   /* one place, for writing */
	};
	struct world *w = *state;

	for (size_t i = 0; i < ARRAY_LEN(locks); i++) {
		struct guardian *g = start(w, GUARDIAN_WROTE, VALUE);
		int fd = foreign_lock(w, locks[i].type, locks[i].from, locks[i].len);

		ends(g, GUARDIAN_RESTORED, 0);
		assert_int_equal(now(w), 0);
		/* It also does not keep the next one from its work. */
		ends(start(w, GUARDIAN_WROTE, VALUE), GUARDIAN_RESTORED, 0);
		close(fd);
	}
}

/* This holds for a lock that must be waited for as well: the wait ends. */
static void nobody_holds_the_gate_for_ever(void **state)
{
	static const short types[] = { F_RDLCK, F_WRLCK };
	struct world *w = *state;

	w->job.enter_ms = 200;
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		struct guardian *g = start(w, GUARDIAN_WROTE, VALUE);
		int fd = foreign_lock(w, types[i], GATE, 1);

		ends(g, GUARDIAN_RESTORED, 0);
		assert_int_equal(now(w), 0);
		close(fd);
	}
}

/*
 * Errors of the kernel postpone the restoring, at the collector's end and when the collector was
 * killed.
 */
static void errors_are_tried_again(void **state)
{
	struct world *w = *state;
	struct guardian *g;

	w->job.enter_ms = 50;
	g = start(w, GUARDIAN_WROTE, VALUE);
	faults->fcntls = 12;
	faults->writes = 3;
	ends(g, GUARDIAN_RESTORED, 0);
	assert_int_equal(now(w), 0);
	assert_true(faults->writes <= 0);

	faults->writes = 0;
	g = start(w, GUARDIAN_WROTE, VALUE);
	faults->fcntls = 1000000; /* no lock can be taken at all */
	ends(g, GUARDIAN_RESTORED, 0);
	assert_int_equal(now(w), 0);
}

/* The guardian is dead, and the collector's own attempt fails: another process goes on. */
static void an_heir_goes_on(void **state)
{
	struct world *w = *state;
	struct guardian *g = start(w, GUARDIAN_WROTE, VALUE);
	struct guardian_said said = { .how = -1 };
	struct err e = { "" };

	kill(guardian_pid(g), SIGKILL);
	faults->writes = 3;
	assert_int_not_equal(guardian_end(g, &said, &e), 0);
	assert_int_equal(said.how, -1); /* nobody may say that it was restored */
	assert_non_null(strstr(e.msg, "goes on trying"));
	guardian_free(g);
	becomes(w, 0);
}

/* Stopped (SIGSTOP, Ctrl-Z) in a window that has no end. */
static void a_collector_that_stalls(void **state)
{
	struct world *w = *state;
	struct guardian_said said = { .how = -1 };
	struct guardian *g;

	w->job.window_ns = 0;
	w->job.stall_ms = 400;
	g = start(w, GUARDIAN_WROTE, VALUE);
	for (int i = 0; i < 20; i++) {
		usleep(50000);
		assert_int_equal(guardian_check(g), 0);
	}
	assert_int_equal(now(w), VALUE); /* a collector that runs is left alone */
	becomes(w, 0);
	assert_int_equal(guardian_end(g, &said, NULL), 0);
	assert_int_equal(said.how, GUARDIAN_RESTORED);
	assert_true(said.late);
	guardian_free(g);
}

static void clock_jumps_s(int64_t s)
{
	__atomic_fetch_add(&faults->ahead_s, s, __ATOMIC_SEQ_CST);
}

/* Waits until the guardian has begun to wait, and has looked at the clock twice at least since this began. */
static void guardian_looks(void)
{
	unsigned before = __atomic_load_n(&faults->readings, __ATOMIC_SEQ_CST), n = before;

	for (int i = 0; i < 1000 && n < before + 6; i++) {
		usleep(10000);
		n = __atomic_load_n(&faults->readings, __ATOMIC_SEQ_CST);
	}
	assert_true(n >= before + 6);
}

/* As docs/heap.md has it, by a clock that jumps: after 30 s without a sign of life. */
static void a_collector_stalls_after_30_s(void **state)
{
	struct world *w = *state;
	struct guardian_said said = { .how = -1 };
	struct guardian *g;

	w->job.window_ns = 0;
	g = start(w, GUARDIAN_WROTE, VALUE);
	guardian_looks();
	clock_jumps_s(15);
	guardian_looks();
	assert_int_equal(now(w), VALUE);
	clock_jumps_s(16);
	becomes(w, 0);
	assert_int_equal(guardian_end(g, &said, NULL), 0);
	assert_true(said.how == GUARDIAN_RESTORED && said.late);
	guardian_free(g);
}

/* And 10 s after the window, however lively it is. */
static void a_collector_is_late_after_10_s(void **state)
{
	struct world *w = *state;
	struct guardian_said said = { .how = -1 };
	struct guardian *g;

	w->job.window_ns = 5000000000ull;
	g = start(w, GUARDIAN_WROTE, VALUE);
	guardian_looks();
	clock_jumps_s(9);
	guardian_looks();
	assert_int_equal(guardian_check(g), 0);
	assert_int_equal(now(w), VALUE);
	clock_jumps_s(7);
	becomes(w, 0);
	assert_int_equal(guardian_end(g, &said, NULL), 0);
	assert_true(said.how == GUARDIAN_RESTORED && said.late);
	guardian_free(g);
}

static void the_program_wins(void **state)
{
	struct world *w = *state;
	struct guardian *first = start(w, GUARDIAN_WROTE, VALUE);
	struct guardian *second = start(w, GUARDIAN_SHARES, VALUE);

	assert_int_equal(poke_put(w->p, VALUE, OTHER, NULL), 0);
	/* One that comes now does not take it for ours. */
	assert_null(start(w, GUARDIAN_FOUND, OTHER));
	ends(first, GUARDIAN_LEFT, VALUE);
	ends(second, GUARDIAN_CHANGED, OTHER);
	assert_int_equal(now(w), OTHER);
}

/*
 * The program switches it off while somebody measures: switching it on again would be against its
 * will.
 */
static void off_by_the_program(void **state)
{
	struct world *w = *state;
	struct guardian *first = start(w, GUARDIAN_WROTE, VALUE), *second = NULL;
	struct guardian_said said;
	struct err e = { "" };

	assert_int_equal(poke_put(w->p, VALUE, 0, NULL), 0);
	assert_int_equal(guardian_start(&w->job, &second, &said, &e), -EBUSY);
	assert_null(second);
	assert_non_null(strstr(e.msg, "word is 0, but a lock on the target"));
	assert_int_equal(now(w), 0);
	ends(first, GUARDIAN_CHANGED, 0);
}

static void guardian_killed(void **state)
{
	struct world *w = *state;
	struct guardian *g = start(w, GUARDIAN_WROTE, VALUE), *second;

	kill(guardian_pid(g), SIGKILL);
	usleep(50000);
	assert_int_equal(guardian_check(g), 0);
	assert_int_equal(now(w), VALUE);
	/* The collector has claimed it again, otherwise this one would restore. */
	second = start(w, GUARDIAN_SHARES, VALUE);
	ends(second, GUARDIAN_LEFT, VALUE);
	ends(g, GUARDIAN_RESTORED, 0);
	assert_int_equal(now(w), 0);

	/* It is noticed only at the end. */
	g = start(w, GUARDIAN_WROTE, VALUE);
	kill(guardian_pid(g), SIGKILL);
	ends(g, GUARDIAN_RESTORED, 0);
	assert_int_equal(now(w), 0);
}

static void signals_do_not_end_it(void **state)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1 };
	struct world *w = *state;
	struct guardian *g = start(w, GUARDIAN_WROTE, VALUE);

	assert_int_not_equal(getsid(guardian_pid(g)), getsid(0));
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		kill(guardian_pid(g), signals[i]);
	usleep(50000);
	assert_int_equal(kill(guardian_pid(g), 0), 0);
	assert_int_equal(now(w), VALUE);
	ends(g, GUARDIAN_RESTORED, 0);
}

/* A collector in a process of its own, which is killed after a time. */
static void kill_collector_after(struct world *w, useconds_t us)
{
	pid_t collector = fork();

	assert_true(collector >= 0);
	if (!collector) {
		struct guardian_said said;
		struct guardian *g;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (guardian_start(&w->job, &g, &said, NULL))
			_exit(1);
		for (;;)
			pause();
	}
	usleep(us);
	kill(collector, SIGKILL);
	waitpid(collector, NULL, 0);
}

static void collector_killed(void **state)
{
	struct world *w = *state;

	kill_collector_after(w, 100000);
	becomes(w, 0);
	for (useconds_t us = 0; us < 6000; us += 100)
		kill_collector_after(w, us);
	becomes(w, 0);
	usleep(100000);
	assert_int_equal(now(w), 0);
	/* And the next one finds it free. */
	ends(start(w, GUARDIAN_WROTE, VALUE), GUARDIAN_RESTORED, 0);
}

static void target_gone(void **state)
{
	struct world *w = *state;
	struct guardian *g = start(w, GUARDIAN_WROTE, VALUE);

	kill(w->pid, SIGKILL);
	waitpid(w->pid, NULL, 0);
	for (int i = 0; i < 500 && !guardian_check(g); i++)
		usleep(10000);
	assert_int_equal(guardian_check(g), 1);
	ends(g, GUARDIAN_GONE, 0);
}

/* What the collector has open, above all probes, must not live on in the guardian. */
static void holds_nothing_of_the_collectors(void **state)
{
	struct world *w = *state;
	int extra[20], n = 0;
	struct guardian *g;
	struct dirent *de;
	char path[64];
	DIR *d;

	for (size_t i = 0; i < ARRAY_LEN(extra); i++)
		extra[i] = open("/dev/null", O_RDONLY);
	g = start(w, GUARDIAN_WROTE, VALUE);
	snprintf(path, sizeof(path), "/proc/%d/fd", guardian_pid(g));
	d = opendir(path);
	assert_non_null(d);
	while ((de = readdir(d)))
		n += de->d_name[0] != '.';
	closedir(d);
	assert_int_equal(n, 5); /* socket, memory, pidfd, /proc/PID, claims */
	for (size_t i = 0; i < ARRAY_LEN(extra); i++)
		close(extra[i]);
	ends(g, GUARDIAN_RESTORED, 0);
}

/* The collector without CAP_SYS_RESOURCE: 0, or the line of what was not as it should be. */
static int exposed_guardian(struct world *w)
{
	struct guardian_said said = { .how = -1 };
	int before = oomscore_of(getpid()), line = 0;
	struct guardian *g = NULL;

	if (!oomscore_drop_capability() || guardian_start(&w->job, &g, &said, NULL))
		return __LINE__;
	if (!said.exposed || oomscore_of(guardian_pid(g)) != before)
		line = __LINE__;
	else if (oomscore_of(getpid()) != before + OOM_ABOVE)
		line = __LINE__;
	guardian_free(g);
	return line;
}

static void the_collector_dies_first_when_memory_runs_out(void **state)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(exposed_guardian(*state) & 0xff);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#define WITH_A_CHILD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* First: after any other this process may be raised already. */
		WITH_A_CHILD(the_collector_dies_first_when_memory_runs_out),
		WITH_A_CHILD(writes_and_restores),
		WITH_A_CHILD(free_restores_too),
		WITH_A_CHILD(what_the_program_has_on_is_left),
		WITH_A_CHILD(shared_and_restored_by_the_last),
		WITH_A_CHILD(a_lock_is_no_collector),
		WITH_A_CHILD(locks_of_strangers_mean_nothing),
		WITH_A_CHILD(nobody_holds_the_gate_for_ever),
		WITH_A_CHILD(errors_are_tried_again),
		WITH_A_CHILD(an_heir_goes_on),
		WITH_A_CHILD(a_collector_that_stalls),
		WITH_A_CHILD(a_collector_stalls_after_30_s),
		WITH_A_CHILD(a_collector_is_late_after_10_s),
		WITH_A_CHILD(the_program_wins),
		WITH_A_CHILD(off_by_the_program),
		WITH_A_CHILD(guardian_killed),
		WITH_A_CHILD(signals_do_not_end_it),
		WITH_A_CHILD(collector_killed),
		WITH_A_CHILD(target_gone),
		WITH_A_CHILD(holds_nothing_of_the_collectors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
