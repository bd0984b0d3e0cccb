/*
 * tests/unit/test_bystanders.c - counting who runs a file, over a made-up /proc and a made-up
 * clock.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "target/host/bystanders.h"
#include "target/host/exes.h"

#define SEC 1000000000ull

static char dir[] = "/tmp/bystanders.XXXXXX";
static uint64_t now, each; /* each: what one look at the clock takes */

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	(void)clock;
	now += each;
	*ts = (struct timespec){ (time_t)(now / SEC), (long)(now % SEC) };
	return 0;
}

static const char *path(const char *name)
{
	static char buf[128];

	snprintf(buf, sizeof(buf), "%s/%s", dir, name);
	return buf;
}

static int file(const char *name, const char *text)
{
	int fd = open(path(name), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	return fd;
}

/* exe: NULL none, as kernel threads have none */
static void process(const char *pid, const char *exe)
{
	char link[128], to[128];

	snprintf(link, sizeof(link), "%s", path(pid));
	assert_int_equal(mkdir(link, 0700), 0);
	snprintf(link, sizeof(link), "%s/%s/exe", dir, pid);
	snprintf(to, sizeof(to), "../%s", exe ? exe : "");
	if (exe)
		assert_int_equal(symlink(to, link), 0);
}

/* A new world with this binary; its descriptor. */
static int begin(void)
{
	now = 100 * SEC;
	each = 0;
	memcpy(dir, "/tmp/bystanders.XXXXXX", sizeof(dir));
	assert_non_null(mkdtemp(dir));
	close(file("other", "another program"));
	return file("program", "a program");
}

static void end(struct bystanders *b, int fd)
{
	char command[128];

	bystanders_fini(b);
	close(fd);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

static void those_of_the_file_are_counted(void **state)
{
	int fd = begin();
	struct bystanders b = {};

	(void)state;
	process("1", "other");
	process("7", "program"); /* the target */
	process("8", "program");
	process("80", "program");
	process("9", NULL);
	process("10", "gone");
	process("self", "program");
	process("08", "program");
	process("8x", "program");
	process("99999999999999999999", "program");
	bystanders_look(&b, dir, fd, 7, SEC);
	assert_true(b.known);
	assert_int_equal(b.n, 2);
	assert_int_equal(b.hidden, 0);
	end(&b, fd);
}

/* A copy is another file, even of the same length. */
static void copies_are_others(void **state)
{
	int fd = begin();
	struct bystanders b = {};

	(void)state;
	close(file("copy", "a program"));
	process("8", "copy");
	bystanders_look(&b, dir, fd, 7, SEC);
	assert_true(b.known);
	assert_int_equal(b.n, 0);
	end(&b, fd);
}

/* Each look is short, and goes on where the last one was. Until the end is reached, nothing is known. */
static void a_long_list_is_read_in_parts(void **state)
{
	int fd = begin(), looks = 0;
	struct bystanders b = {};
	char pid[16];

	(void)state;
	for (int i = 1; i <= 500; i++) {
		snprintf(pid, sizeof(pid), "%d", i);
		process(pid, "program");
	}
	each = 1000000;
	do {
		size_t before = bystanders_least(&b);

		assert_false(b.known);
		bystanders_look(&b, dir, fd, 7, 100);
		assert_true(bystanders_least(&b) - before <= 32);
		looks++;
	} while (!b.known && looks < 100);
	assert_true(b.known && looks > 10);
	assert_int_equal(b.n, 499);
	end(&b, fd);
}

/* Not each time that it is asked for. */
static void it_counts_again_later(void **state)
{
	int fd = begin();
	struct bystanders b = {};

	(void)state;
	process("8", "program");
	bystanders_look(&b, dir, fd, 7, SEC);
	process("9", "program");
	now += 5 * SEC;
	bystanders_look(&b, dir, fd, 7, SEC);
	assert_int_equal(b.n, 1);
	now += 60 * SEC;
	bystanders_look(&b, dir, fd, 7, SEC);
	assert_int_equal(b.n, 2);
	end(&b, fd);
}

static void without_proc_nothing_is_known(void **state)
{
	int fd = begin();
	struct bystanders b = {};

	(void)state;
	bystanders_look(&b, "/nowhere", fd, 7, SEC);
	assert_false(b.known);
	end(&b, fd);
}

/* A directory that we may not enter stands for a process that we may not look at. */
static void those_that_are_hidden_are_counted(void **state)
{
	int fd = begin();
	struct bystanders b = {};

	(void)state;
	process("8", "program");
	assert_int_equal(chmod(path("8"), 0), 0);
	assert_int_equal(chmod(dir, 0755), 0);
	if (!getuid())
		assert_int_equal(seteuid(65534), 0);
	bystanders_look(&b, dir, fd, 7, SEC);
	if (!getuid())
		assert_int_equal(seteuid(0), 0);
	assert_int_equal(chmod(path("8"), 0700), 0);
	assert_true(b.known);
	assert_int_equal(b.n, 0);
	assert_int_equal(b.hidden, 1);
	end(&b, fd);
}

/* One look is enough for several files, and it is as good as one for each. */
static void several_files_are_counted_by_one_look(void **state)
{
	int fd = begin(), other = open(path("other"), O_RDONLY);
	struct bystanders b = {}, c = {};
	struct exes x = {};

	(void)state;
	process("7", "program");
	process("8", "program");
	process("9", "other");
	process("10", "gone");
	exes_look(&x, dir, SEC);
	exes_count(&x, fd, &b);
	exes_count(&x, other, &c);
	assert_true(b.known && c.known);
	assert_int_equal(b.n, 2);
	assert_int_equal(c.n, 1);
	process("11", "other");
	exes_look(&x, dir, SEC); /* the last one is recent */
	exes_count(&x, other, &c);
	assert_int_equal(c.n, 1);
	now += 31 * SEC;
	exes_look(&x, dir, SEC);
	exes_count(&x, other, &c);
	assert_int_equal(c.n, 2);
	exes_fini(&x);
	close(other);
	end(&b, fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(those_of_the_file_are_counted),
		cmocka_unit_test(copies_are_others),
		cmocka_unit_test(a_long_list_is_read_in_parts),
		cmocka_unit_test(it_counts_again_later),
		cmocka_unit_test(without_proc_nothing_is_known),
		cmocka_unit_test(those_that_are_hidden_are_counted),
		cmocka_unit_test(several_files_are_counted_by_one_look),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
