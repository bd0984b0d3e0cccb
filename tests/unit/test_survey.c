/* tests/unit/test_survey.c - the files that a survey knows, when more come than it keeps; and the child that looks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/limits.h"
#include "inspect/survey_run_priv.h"

static struct survey_key key(uint64_t i)
{
	return (struct survey_key){ .dev = 7, .ino = i, .size = 1 << 20, .mtime_ns = 5 };
}

static struct survey_file *meet(struct survey *s, uint64_t i, int copy)
{
	struct survey_key k = key(i);
	struct survey_file *f =
		survey_remember(s, &k, i % 2 ? calloc(1, sizeof(struct survey_build)) : NULL, false,
				copy);

	assert_non_null(f);
	return f;
}

static bool knows(const struct survey *s, uint64_t i)
{
	struct survey_key k = key(i);
	const struct survey_file *f = survey_known(s, &k);

	return f && f->key.ino == i && !f->build == !(i % 2);
}

/* More than a survey can hold at once, one look after the other. */
static void files_without_end(void **state)
{
	const uint64_t all = (uint64_t)LIMIT_SURVEY + 5000;
	struct survey s = { 0 };
	struct err e = { "" };

	(void)state;
	for (uint64_t i = 1; i <= all; i++) {
		meet(&s, i, -1);
		if (i % 500 && i != all)
			continue;
		assert_int_equal(survey_begin(&s, NULL, 0, &e), 0);
		survey_stop(&s);
		assert_true(s.files.n <= LIMIT_SURVEY_KEPT);
		assert_true(knows(&s, i) && knows(&s, i - 499 + (i == all)));
	}
	assert_false(knows(&s, 1));
	survey_fini(&s);
}

/* Whatever was used last stays, however long ago it was met first. */
static void the_least_recently_used_goes_first(void **state)
{
	struct survey s = { 0 };

	(void)state;
	for (uint64_t i = 1; i <= 10; i++)
		meet(&s, i, -1);
	s.files.at[2].used = ++s.uses;
	survey_age_files(&s, 3);
	assert_int_equal(s.files.n, 3);
	assert_true(knows(&s, 3) && knows(&s, 9) && knows(&s, 10));
	assert_false(knows(&s, 8));
	survey_fini(&s);
}

/* Processes that were not forgotten have files. */
static void what_a_process_has_stays(void **state)
{
	struct survey s = { 0 };
	struct err e = { "" };

	(void)state;
	for (uint64_t i = 1; i <= LIMIT_SURVEY_KEPT + 10; i++)
		meet(&s, i, -1);
	assert_non_null(vec_add(&s.at, 1));
	s.at.at[0].build = s.files.at[0].build;
	assert_int_equal(survey_begin(&s, NULL, 0, &e), 0);
	assert_int_equal(s.files.n, LIMIT_SURVEY_KEPT + 10);
	survey_forget(&s);
	assert_int_equal(survey_begin(&s, NULL, 0, &e), 0);
	assert_int_equal(s.files.n, LIMIT_SURVEY_KEPT);
	survey_fini(&s);
}

static void copies_are_few(void **state)
{
	struct survey s = { 0 };
	int fds[40];

	(void)state;
	for (uint64_t i = 0; i < ARRAY_LEN(fds); i++) {
		fds[i] = memfd_create("copy", MFD_CLOEXEC);
		meet(&s, i, fds[i]);
	}
	survey_age_copies(&s, LIMIT_SURVEY_COPIES, LIMIT_SURVEY_COPY_BYTES);
	assert_int_equal(fcntl(fds[ARRAY_LEN(fds) - LIMIT_SURVEY_COPIES - 1], F_GETFD), -1);
	for (size_t i = ARRAY_LEN(fds) - LIMIT_SURVEY_COPIES; i < ARRAY_LEN(fds); i++)
		assert_int_not_equal(fcntl(fds[i], F_GETFD), -1);
	survey_age_copies(&s, LIMIT_SURVEY_COPIES, 3 << 20);
	assert_int_equal(fcntl(fds[ARRAY_LEN(fds) - 4], F_GETFD), -1);
	assert_int_not_equal(fcntl(fds[ARRAY_LEN(fds) - 3], F_GETFD), -1);
	assert_int_equal(s.files.n, ARRAY_LEN(fds));
	survey_fini(&s);
	assert_int_equal(fcntl(fds[ARRAY_LEN(fds) - 1], F_GETFD), -1);
}

/* ---- the child that looks ---- */

static pid_t someone(void)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* where a test fails nobody else ends it */
		for (;;)
			pause();
	}
	assert_true(pid > 0);
	return pid;
}

/* One whole look at @pid; how many were seen. */
static size_t look_at(struct survey *s, pid_t pid)
{
	struct err e = { "" };
	size_t seen = s->seen;
	int ret;

	assert_int_equal(survey_begin(s, &pid, 1, &e), 0);
	assert_true(survey_fd(s) >= 0);
	while (!(ret = survey_step(s, &e)))
		usleep(1000);
	assert_int_equal(ret, 1);
	assert_int_equal(s->unanswered.n, 0);
	survey_stop(s);
	assert_int_equal(survey_fd(s), -1);
	return s->seen - seen;
}

/* A fork costs more than a look. */
static void one_child_for_many_looks(void **state)
{
	pid_t pid = someone(), first;
	struct survey s = { 0 };
	size_t files;

	(void)state;
	assert_int_equal(survey_child_ns(&s), 0);
	assert_int_equal(look_at(&s, pid), 1);
	files = s.files.n; /* its program, and its libraries */
	assert_true(files > 0);
	first = s.run->child;
	assert_true(first > 0 && survey_child_ns(&s) > 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(look_at(&s, i % 10 ? pid : -7),
				 i % 10 != 0); /* or there is no such process */
	assert_int_equal(s.run->child, first);
	assert_int_equal(s.files.n, files);
	survey_rest(&s);
	assert_null(s.run);
	assert_true(waitpid(first, NULL, 0) == first ||
		    errno == ECHILD);	       /* it was killed, and waited for or not */
	assert_int_equal(look_at(&s, pid), 1); /* by another one */
	assert_int_equal(s.files.n, files);
	survey_fini(&s);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* The next look is another one's, which answers as well. */
static void a_child_that_died_is_replaced(void **state)
{
	pid_t pid = someone(), first, many[5000];
	struct survey s = { 0 };
	struct err e = { "" };

	(void)state;
	assert_int_equal(look_at(&s, pid), 1);
	first = s.run->child;
	assert_true(first > 0); /* 0 would be all of us */
	kill(first, SIGKILL);
	usleep(100000);
	assert_int_equal(look_at(&s, pid), 1);
	assert_int_equal(s.unanswered.n, 0);
	assert_int_not_equal(s.run->child, first);
	/* Files that it knows are forgotten here. */
	first = s.run->child;
	for (uint64_t i = 1; i <= LIMIT_SURVEY_KEPT; i++)
		meet(&s, i, -1);
	assert_int_equal(look_at(&s, pid), 1);
	assert_int_not_equal(s.run->child, first);
	/* Nobody waits for the answer; and a list that does not fit into a socket. */
	for (size_t i = 0; i < 5000; i++)
		many[i] = pid;
	assert_int_equal(survey_begin(&s, many, 5000, &e), 0);
	survey_stop(&s);
	assert_null(s.run);
	assert_int_equal(look_at(&s, pid), 1);
	survey_fini(&s);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_without_end),
		cmocka_unit_test(the_least_recently_used_goes_first),
		cmocka_unit_test(what_a_process_has_stays),
		cmocka_unit_test(copies_are_few),
		cmocka_unit_test(one_child_for_many_looks),
		cmocka_unit_test(a_child_that_died_is_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
