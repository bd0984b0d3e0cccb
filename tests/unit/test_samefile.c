/*
 * tests/unit/test_samefile.c - files that are one to the kernel, through overlay mounts of their own; and files that only look
 * the same, to the nanosecond and the byte. Mounts of its own, so it needs root for those.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "target/host/samefile.h"

static char dir[64] = "/tmp/samefile.XXXXXX";
static int opened[16];
static size_t nopened;

static const char *path(const char *name)
{
	static char buf[4][128];
	static int at;
	char *to = buf[at++ % 4];

	snprintf(to, sizeof(buf[0]), "%s/%s", dir, name);
	return to;
}

static int keep(int fd)
{
	assert_true(fd >= 0);
	return opened[nopened++] = fd;
}

static int open_file(const char *name)
{
	return keep(open(path(name), O_RDONLY | O_CLOEXEC));
}

static int make(const char *name, const char *text)
{
	int to = open(path(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(to >= 0);
	assert_int_equal(write(to, text, strlen(text)), strlen(text));
	close(to);
	return open_file(name);
}

static void folder(const char *name)
{
	assert_int_equal(mkdir(path(name), 0700), 0);
}

static bool overlay(const char *name)
{
	char up[32], work[32], o[512];

	snprintf(up, sizeof(up), "up.%s", name);
	snprintf(work, sizeof(work), "work.%s", name);
	folder(name);
	folder(up);
	folder(work);
	snprintf(o, sizeof(o), "lowerdir=%s,upperdir=%s,workdir=%s", path("low"), path(up),
		 path(work));
	return !mount("overlay", path(name), "overlay", 0, o);
}

static int set_up(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/samefile.XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[sizeof(dir) + 16];

	(void)state;
	while (nopened)
		close(opened[--nopened]);
	umount2(path("m"), MNT_DETACH);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static bool mounts(void)
{
	return !unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

static bool sees_pages(void)
{
	int fd = make("probe", "text");

	return same_page(fd, fd);
}

static void a_file_is_itself_whatever_it_is_called(void **state)
{
	int a = make("a", "text"), b;

	(void)state;
	if (!sees_pages())
		skip();
	assert_int_equal(link(path("a"), path("b")), 0);
	b = open_file("b");
	assert_true(same_file(a, b) && same_file(b, a) && same_file(a, a));
}

/* The kernel's clock of files stands still for some ms, until somebody asks for their times: so each try has new files. */
static bool twins(int *a, int *b)
{
	const struct timespec then[2] = { { 1000, 7 }, { 1000, 7 } };
	struct stat x, y;

	for (int i = 0; i < 1000; i++) {
		while (nopened)
			close(opened[--nopened]);
		unlink(path("a"));
		unlink(path("b"));
		*a = make("a", "text");
		*b = make("b", "text");
		futimens(*a, then);
		futimens(*b, then);
		if (!fstat(*a, &x) && !fstat(*b, &y) && x.st_ctim.tv_sec == y.st_ctim.tv_sec &&
		    x.st_ctim.tv_nsec == y.st_ctim.tv_nsec && x.st_size == y.st_size)
			return true;
	}
	return false;
}

static void files_that_look_the_same_are_not(void **state)
{
	int a, b;

	(void)state;
	if (!twins(&a, &b))
		skip();
	assert_false(same_file(a, b));
	assert_false(same_page(a, b));
}

static void nothing_is_not_the_same(void **state)
{
	int a = make("a", "text"), none = make("none", ""), other = make("other", "");
	int null = keep(open("/dev/null", O_RDONLY | O_CLOEXEC));

	(void)state;
	assert_false(same_file(a, -1) || same_file(-1, -1) || same_file(none, none));
	assert_false(same_page(none, other) || same_page(null, null) || same_file(null, null));
}

/* Two containers of an image, and one that has changed its copy. */
static void overlays_show_one_file(void **state)
{
	int low, one, two, old, changed;

	(void)state;
	if (!mounts() || !sees_pages())
		skip();
	/* /tmp may be an overlay itself, and none may lie above such a one */
	folder("m");
	if (mount("none", path("m"), "tmpfs", 0, NULL))
		skip();
	strcat(dir, "/m");
	folder("low");
	low = make("low/a", "text");
	make("low/b", "text");
	if (!overlay("one") || !overlay("two") || !overlay("three"))
		skip();
	one = open_file("one/a");
	two = open_file("two/a");
	old = open_file("three/a");
	assert_true(same_file(one, two) && same_file(low, one) && same_file(one, old));
	assert_false(same_file(one, open_file("two/b")));
	assert_int_equal(chmod(path("three/a"), 0711), 0);
	changed = open_file("three/a");
	assert_false(same_file(one, changed) || same_file(one, old));
	dir[strlen(dir) - 2] = '\0';
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_file_is_itself_whatever_it_is_called, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(files_that_look_the_same_are_not, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(nothing_is_not_the_same, set_up, tear_down),
		cmocka_unit_test_setup_teardown(overlays_show_one_file, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
