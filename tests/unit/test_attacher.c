/*
 * tests/unit/test_attacher.c - a process that holds something: its job begins and ends once each,
 * whatever happens to it and to us; it has nothing of ours but what it was given.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/loop/cancel.h"
#include "base/sys/oom.h"
#include "probe/uprobes/attacher.h"
#include "oomscore.h"

/* What happened there; in shared memory. */
struct log {
	volatile int begun, ended, idled;
	volatile int idle_until; /* after so many times */
	int refuse;		 /* begin fails with this error */
	int files, open;	 /* descriptors: that came along, and all */
	int wrong;		 /* the line of the first thing that was not as it should be */
};

/* The attacher is this program once more: it finds the log, and its job, by the environment. */
#define LOG_FILE "TEST_ATTACHER_LOG"
#define JOB	 "TEST_ATTACHER_JOB"

static struct log *map_log(int fd)
{
	return mmap(NULL, sizeof(struct log), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

static struct log *new_log(void)
{
	char name[] = "/tmp/attacher-XXXXXX";
	int fd = mkostemp(name, O_CLOEXEC);
	struct log *l;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, sizeof(*l)), 0);
	l = map_log(fd);
	close(fd);
	assert_ptr_not_equal(l, MAP_FAILED);
	setenv(LOG_FILE, name, 1);
	return l;
}

static void free_log(struct log *l)
{
	unlink(getenv(LOG_FILE));
	munmap(l, sizeof(*l));
}

/* One that does @job. */
static int start(struct attacher *k, const char *job, int most_ms, struct err *e)
{
	setenv(JOB, job, 1);
	return attacher_start(k, NULL, most_ms, e);
}

static int begin(void **arg, struct err *e)
{
	struct log *l = *arg;

	l->begun++;
	return l->refuse ? err_set(e, l->refuse, "it is refused") : 0;
}

static void end(void *arg)
{
	struct log *l = arg;

	l->ended++;
}

/* The same, backwards. */
static size_t serve(void *arg, const void *ask, size_t n, const int *fds, size_t nfds, void *answer)
{
	(void)arg;
	(void)fds;
	(void)nfds;
	for (size_t i = 0; i < n; i++)
		((char *)answer)[i] = ((const char *)ask)[n - 1 - i];
	return n;
}

/* A question that takes long, as the kernel may. */
static size_t serve_slowly(void *arg, const void *ask, size_t n, const int *fds, size_t nfds,
			   void *answer)
{
	const struct timespec time = { .tv_sec = 4 };

	nanosleep(&time, NULL);
	return serve(arg, ask, n, fds, nfds, answer);
}

static uint64_t asked_ms; /* to stop */

static uint64_t when_asked(void)
{
	return asked_ms;
}

static int idle(void *arg)
{
	struct log *l = arg;

	return ++l->idled < l->idle_until ? 1 : -1;
}

/* Waits until *@what is @n, for about 10 s at most. */
static void comes_to(const volatile int *what, int n)
{
	for (int i = 0; *what != n && i < 10000; i++)
		poll(NULL, 0, 1);
	assert_int_equal(*what, n);
}

static void begins_serves_and_ends(void **state)
{
	struct log *l = new_log();
	struct attacher k = {};
	char got[4] = "";

	(void)state;
	assert_int_equal(start(&k, "serve", 0, NULL), 0);
	assert_int_equal(l->begun, 1);
	assert_int_not_equal(getsid(k.pid), getsid(0));
	assert_int_equal(attacher_ask(&k, "abc", 3, 0, NULL), 0);
	assert_int_equal(attacher_answer(&k, got, 3, NULL), 0);
	assert_string_equal(got, "cba");
	assert_int_equal(l->ended, 0);
	attacher_stop(&k);
	assert_int_equal(l->ended, 1);
	assert_int_equal(k.pid, 0);
	attacher_stop(&k);
	assert_int_equal(l->ended, 1);
	free_log(l);
}

/* It is neither waited for nor killed: it ends when it is back, and undoes what it did. */
static void one_that_is_busy_is_left_when_we_are_to_stop(void **state)
{
	struct log *l = new_log();
	struct attacher k = {};
	struct timespec a, b;
	char got[3];

	(void)state;
	assert_int_equal(start(&k, "slow", 0, NULL), 0);
	assert_int_equal(attacher_ask(&k, "abc", 3, 0, NULL), 0);
	clock_gettime(CLOCK_MONOTONIC, &a);
	asked_ms = (uint64_t)a.tv_sec * 1000 + (uint64_t)a.tv_nsec / 1000000;
	cancel_when(when_asked);
	assert_int_equal(attacher_answer(&k, got, 3, NULL), -ECANCELED);
	assert_false(attacher_stop(&k));
	cancel_when(NULL);
	clock_gettime(CLOCK_MONOTONIC, &b);
	assert_in_range(b.tv_sec - a.tv_sec, 1, 3);
	assert_int_equal(l->ended, 0);
	assert_int_equal(k.pid, 0);
	comes_to(&l->ended, 1);
	free_log(l);
}

static void what_cannot_begin_is_undone(void **state)
{
	struct log *l = new_log();
	struct attacher k = {};
	struct err e = {};

	(void)state;
	l->refuse = -EPERM;
	assert_int_equal(start(&k, "begin", 0, &e), -EPERM);
	assert_string_equal(e.msg, "it is refused");
	assert_int_equal(l->ended, 1);
	assert_int_equal(k.pid, 0);
	free_log(l);
}

/*
 * Without being asked it looks by itself, as often as it wants to, and still answers afterwards.
 */
static void looks_by_itself(void **state)
{
	struct log *l = new_log();
	struct attacher k = {};
	char got[3] = "";

	(void)state;
	l->idle_until = 20;
	assert_int_equal(start(&k, "idle", 0, NULL), 0);
	comes_to(&l->idled, 20);
	poll(NULL, 0, 30);
	assert_int_equal(l->idled, 20);
	assert_int_equal(attacher_ask(&k, "ab", 2, 0, NULL), 0);
	assert_int_equal(attacher_answer(&k, got, 2, NULL), 0);
	assert_string_equal(got, "ba");
	comes_to(&l->idled, 21);
	attacher_stop(&k);
	free_log(l);
}

/* A request wakes an attacher that had been stopped. */
static void one_that_was_stopped_answers(void **state)
{
	struct log *l = new_log();
	struct attacher k = {};
	char got[3] = "";

	(void)state;
	assert_int_equal(start(&k, "serve", 0, NULL), 0);
	kill(k.pid, SIGSTOP);
	assert_int_equal(attacher_ask(&k, "ab", 2, 0, NULL), 0);
	assert_int_equal(attacher_answer(&k, got, 2, NULL), 0);
	assert_string_equal(got, "ba");
	kill(k.pid, SIGSTOP);
	attacher_stop(&k);
	assert_int_equal(l->ended, 1);
	free_log(l);
}

/* The same, but whoever does it is stopped meanwhile. */
static size_t serve_stopped(void *arg, const void *ask, size_t n, const int *fds, size_t nfds,
			    void *answer)
{
	raise(SIGSTOP);
	return serve(arg, ask, n, fds, nfds, answer);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

/* It is stopped after it has heard the question: when the answer is overdue, it is woken up. */
static void one_that_is_stopped_at_its_work_goes_on(void **state)
{
	struct log *l = new_log();
	struct attacher k = {};
	struct pollfd p;
	char got[3] = "";

	(void)state;
	assert_int_equal(start(&k, "stopped", 0, NULL), 0);
	assert_int_equal(attacher_ask(&k, "ab", 2, now_ns() + 50000000, NULL), 0);
	p = (struct pollfd){ .fd = attacher_fd(&k), .events = POLLIN };
	assert_int_equal(poll(&p, 1, 10000), 1);
	assert_int_equal(attacher_answer(&k, got, 2, NULL), 0);
	assert_string_equal(got, "ba");
	assert_int_equal(poll(&p, 1, 0), 0); /* nothing is overdue any more */
	assert_false(attacher_stop(&k));
	assert_int_equal(l->ended, 1);
	free_log(l);
}

static size_t serve_never(void *arg, const void *ask, size_t n, const int *fds, size_t nfds,
			  void *answer)
{
	for (;;)
		pause();
	return serve(arg, ask, n, fds, nfds, answer);
}

/* It may be frozen, or traced, where nobody can wake it up. */
static void one_that_never_answers_is_given_up(void **state)
{
	struct log *l = new_log();
	struct attacher k = {};
	char got[3] = "";

	(void)state;
	assert_int_equal(start(&k, "never", 1000, NULL), 0);
	assert_int_equal(attacher_ask(&k, "ab", 2, 0, NULL), 0);
	assert_int_equal(attacher_answer(&k, got, 2, NULL), -ECHILD);
	assert_true(attacher_stop(&k));
	assert_int_equal(l->ended, 0);
	free_log(l);
}

static void end_stopped(void *arg)
{
	raise(SIGSTOP);
	end(arg);
}

static void one_that_is_stopped_at_its_end_goes_on(void **state)
{
	struct log *l = new_log();
	struct attacher k = {};

	(void)state;
	assert_int_equal(start(&k, "stopped at its end", 0, NULL), 0);
	assert_int_equal(attacher_ask(&k, "ab", 2, 0, NULL), 0);
	assert_false(attacher_stop(&k)); /* its answer is never read */
	assert_int_equal(l->ended, 1);
	free_log(l);
}

static void its_death_is_told(void **state)
{
	struct log *l = new_log();
	struct attacher k = {};
	struct pollfd p;
	char got[3];

	(void)state;
	assert_int_equal(start(&k, "serve", 0, NULL), 0);
	kill(k.pid, SIGTERM); /* this does not end it */
	assert_int_equal(attacher_ask(&k, "ab", 2, 0, NULL), 0);
	assert_int_equal(attacher_answer(&k, got, 2, NULL), 0);
	kill(k.pid, SIGKILL);
	p = (struct pollfd){ .fd = k.sock, .events = POLLIN };
	assert_int_equal(poll(&p, 1, 10000), 1);
	assert_int_equal(attacher_answer(&k, got, 2, NULL), -ECHILD);
	assert_int_equal(attacher_ask(&k, "ab", 2, 0, NULL), -ECHILD);
	attacher_stop(&k);
	free_log(l);
}

/* The process that started it is killed: it undoes what it did. */
static void our_death_is_its_end(void **state)
{
	struct log *l = new_log();
	pid_t pid = fork();

	(void)state;
	if (!pid) {
		struct attacher k = {};

		if (start(&k, "idle", 0, NULL))
			_exit(1);
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	comes_to(&l->ended, 1);
	assert_int_equal(l->begun, 1);
	free_log(l);
}

/* ---- several in one process ---- */

/* One that takes long, as the kernel may, holds up no other; the process is there until the last one ends. */
static void several_share_a_process(void **state)
{
	struct attacher_process *all = NULL;
	struct attacher one = {}, two = {};
	struct log *l = new_log();
	char got[3] = "";
	uint64_t begin;
	pid_t pid;

	(void)state;
	setenv(JOB, "slow", 1);
	assert_int_equal(attacher_start(&one, &all, 0, NULL), 0);
	pid = one.pid;
	assert_int_equal(attacher_ask(&one, "ab", 2, 0, NULL), 0);
	begin = now_ns();
	assert_int_equal(attacher_start(&two, &all, 0, NULL), 0);
	assert_int_equal(two.pid, pid);
	assert_true(attacher_process_cpu_ns(all) > 0 && !attacher_process_cpu_ns(NULL));
	assert_false(attacher_stop(&two));
	assert_in_range(now_ns() - begin, 0, 3000000000);
	assert_int_equal(l->begun, 2);
	assert_int_equal(l->ended, 1);
	assert_int_equal(attacher_answer(&one, got, 2, NULL), 0);
	assert_string_equal(got, "ba");
	assert_int_equal(kill(pid, 0), 0);
	assert_false(attacher_stop(&one));
	assert_int_equal(l->ended, 2);
	assert_null(all);
	assert_int_equal(kill(pid, 0), -1);
	free_log(l);
}

/* All of them are told of its death, each when it asks, and those that follow share another process. */
static void those_of_a_killed_process_were_killed(void **state)
{
	struct attacher_process *all = NULL;
	struct attacher k[3] = {}, next[2] = {};
	struct log *l = new_log();
	uint64_t died;
	pid_t pid;

	(void)state;
	setenv(JOB, "serve", 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(attacher_start(&k[i], &all, 0, NULL), 0);
	pid = k[0].pid;
	assert_int_equal(attacher_dead(&k[0]), 0);
	kill(pid, SIGKILL);
	while (!attacher_dead(&k[0]))
		usleep(1000);
	died = attacher_dead(&k[0]);
	assert_in_range(died, now_ns() - 10000000000ull, now_ns());
	assert_true(attacher_stop(&k[0]));
	assert_int_equal(attacher_start(&next[0], &all, 0, NULL), 0);
	/* Whoever asks later is told when that was. */
	assert_int_equal(attacher_dead(&k[1]), died);
	assert_int_equal(attacher_dead(&next[0]), 0);
	assert_int_not_equal(next[0].pid, pid);
	assert_int_equal(attacher_ask(&k[1], "ab", 2, 0, NULL), -ECHILD);
	assert_true(attacher_stop(&k[1]));
	assert_int_equal(attacher_start(&next[1], &all, 0, NULL), 0);
	assert_int_equal(next[1].pid, next[0].pid);
	assert_int_equal(kill(pid, 0), 0); /* its number is nobody else's as long as we have it */
	assert_true(attacher_stop(&k[2]));
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(l->ended, 0);
	for (int i = 0; i < 2; i++)
		assert_false(attacher_stop(&next[i]));
	assert_int_equal(l->ended, 2);
	assert_null(all);
	free_log(l);
}

/* ---- the OOM killer ---- */

/* In a process without CAP_SYS_RESOURCE: two attachers. The second is made by a raised maker. */
static int two_attachers_without_the_capability(void)
{
	struct attacher one = {}, two = {};
	int before = oomscore_of(getpid()), line = 0;

	if (!oomscore_drop_capability() || before > 1000 - OOM_ABOVE)
		return __LINE__;
	if (start(&one, "begin", 0, NULL))
		return __LINE__;
	if (!one.exposed)
		line = __LINE__;
	else if (oomscore_of(one.pid) != before || oomscore_of(getpid()) != before + OOM_ABOVE)
		line = __LINE__;
	else if (start(&two, "begin", 0, NULL))
		line = __LINE__;
	else if (oomscore_of(two.pid) != before || oomscore_of(getpid()) != before + OOM_ABOVE)
		line = __LINE__;
	attacher_stop(&two);
	attacher_stop(&one);
	return line;
}

static void its_maker_dies_first_when_memory_runs_out(void **state)
{
	struct log *l = new_log();
	int status = -1;
	pid_t pid = fork();

	(void)state;
	if (!pid)
		_exit((l->wrong = two_attachers_without_the_capability()) != 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(l->wrong, 0);
	assert_int_equal(status, 0);
	assert_int_equal(l->ended, 2);
	free_log(l);
}

/* Where the kernel allows it. Only the attacher's own score changes then. */
static void it_is_spared_where_it_may_be(void **state)
{
	struct log *l = new_log();
	struct attacher k = {};
	int before = oomscore_of(getpid());

	(void)state;
	assert_int_equal(start(&k, "begin", 0, NULL), 0);
	assert_int_equal(k.exposed, !oomscore_may_be_spared());
	if (!k.exposed) {
		assert_int_equal(oomscore_of(k.pid), -1000);
		assert_int_equal(oomscore_of(getpid()), before);
	}
	attacher_stop(&k);
	free_log(l);
}

/* What comes along with a question is open there, and nothing else of ours is. */
static size_t serve_files(void *arg, const void *ask, size_t n, const int *fds, size_t nfds,
			  void *answer)
{
	struct log *l = arg;
	struct stat st;

	(void)n;
	l->files = (int)nfds;
	for (size_t i = 0; i < nfds; i++)
		if (fstat(fds[i], &st) || !(fcntl(fds[i], F_GETFD) & FD_CLOEXEC))
			l->wrong = __LINE__;
	if (nfds == 2 && write(fds[1], ask, 2) != 2)
		l->wrong = __LINE__;
	l->open = 0;
	for (int fd = 0; fd < 100; fd++)
		l->open += fcntl(fd, F_GETFD) >= 0;
	memcpy(answer, "ok", 2);
	return 2;
}

static void descriptors_come_along(void **state)
{
	struct log *l = new_log();
	struct attacher k = {};
	int left = open("/dev/null", O_RDONLY), fds[2]; /* not closed by exec */
	char got[3] = "";

	(void)state;
	assert_true(left > 2);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(start(&k, "files", 0, NULL), 0);
	assert_int_equal(attacher_give(&k, "ab", 2, fds, 2, NULL), 0);
	assert_int_equal(attacher_answer(&k, got, 2, NULL), 0);
	assert_string_equal(got, "ok");
	assert_int_equal(l->files, 2);
	assert_int_equal(l->wrong, 0);
	/* 0, 1, 2, the socket of all, and these; its own is far above, so that it is the first that is closed when it is killed */
	assert_int_equal(l->open, 3 + 1 + 2);
	assert_int_equal(read(fds[0], got, 2), 2);
	assert_string_equal(got, "ab");
	assert_int_equal(attacher_ask(&k, "ab", 2, 0, NULL), 0);
	assert_int_equal(attacher_answer(&k, got, 2, NULL), 0);
	assert_int_equal(l->files, 0);
	attacher_stop(&k);
	close(left);
	close(fds[0]);
	close(fds[1]);
	free_log(l);
}

/* It has nothing of our memory, and another name than ours. */
static void it_is_small_and_has_another_name(void **state)
{
	const size_t size = 64 << 20;
	char *ours = malloc(size), path[64], text[64] = "";
	struct log *l = new_log();
	unsigned long pages = 0, ignored;
	struct attacher k = {};
	FILE *f;

	(void)state;
	assert_non_null(ours);
	memset(ours, 1, size);
	assert_int_equal(start(&k, "serve", 0, NULL), 0);
	snprintf(path, sizeof(path), "/proc/%d/statm", k.pid);
	f = fopen(path, "re");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu %lu", &ignored, &pages), 2);
	fclose(f);
	assert_true(pages * (unsigned long)sysconf(_SC_PAGESIZE) < size / 4);
	snprintf(path, sizeof(path), "/proc/%d/cmdline", k.pid);
	f = fopen(path, "re");
	assert_non_null(f);
	assert_non_null(fgets(text, sizeof(text), f));
	fclose(f);
	assert_string_equal(text, "uprobe-attacher");
	snprintf(path, sizeof(path), "/proc/%d/comm", k.pid);
	f = fopen(path, "re");
	assert_non_null(f);
	assert_non_null(fgets(text, sizeof(text), f));
	fclose(f);
	assert_string_equal(text, "uprobe-attacher\n");
	attacher_stop(&k);
	free(ours);
	free_log(l);
}

static const struct {
	const char *name;
	struct attacher_job job;
} jobs[] = {
	{ "begin", { .begin = begin, .end = end } },
	{ "serve", { .begin = begin, .end = end, .serve = serve } },
	{ "slow", { .begin = begin, .end = end, .serve = serve_slowly } },
	{ "idle", { .begin = begin, .end = end, .serve = serve, .idle = idle } },
	{ "stopped", { .begin = begin, .end = end, .serve = serve_stopped } },
	{ "never", { .begin = begin, .end = end, .serve = serve_never } },
	{ "stopped at its end", { .begin = begin, .end = end_stopped, .serve = serve } },
	{ "files", { .begin = begin, .end = end, .serve = serve_files } },
};

/* Where this process is an attacher, it does the job and exits. */
static void keep(int argc, char **argv)
{
	const char *file = getenv(LOG_FILE), *name = getenv(JOB);
	struct attacher_job job = jobs[0].job;
	int fd = file ? open(file, O_RDWR | O_CLOEXEC) : -1;

	for (size_t i = 0; name && i < sizeof(jobs) / sizeof(*jobs); i++)
		if (!strcmp(jobs[i].name, name))
			job = jobs[i].job;
	job.arg = fd >= 0 ? map_log(fd) : NULL;
	attacher_main(argc, argv, &job);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		/* First: after any other this process may be raised already. */
		cmocka_unit_test(its_maker_dies_first_when_memory_runs_out),
		cmocka_unit_test(begins_serves_and_ends),
		cmocka_unit_test(one_that_is_busy_is_left_when_we_are_to_stop),
		cmocka_unit_test(what_cannot_begin_is_undone),
		cmocka_unit_test(looks_by_itself),
		cmocka_unit_test(one_that_was_stopped_answers),
		cmocka_unit_test(one_that_is_stopped_at_its_work_goes_on),
		cmocka_unit_test(one_that_is_stopped_at_its_end_goes_on),
		cmocka_unit_test(one_that_never_answers_is_given_up),
		cmocka_unit_test(its_death_is_told),
		cmocka_unit_test(our_death_is_its_end),
		cmocka_unit_test(several_share_a_process),
		cmocka_unit_test(those_of_a_killed_process_were_killed),
		cmocka_unit_test(it_is_spared_where_it_may_be),
		cmocka_unit_test(descriptors_come_along),
		cmocka_unit_test(it_is_small_and_has_another_name),
	};

	keep(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
