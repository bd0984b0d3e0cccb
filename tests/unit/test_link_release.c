/*
 * tests/unit/test_link_release.c - real multi links on a function of this program: when they are said to be out, no
 * breakpoint is in it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe/uprobes/link_release.h"
#include "probe/uprobes/uprobe_link.h"
#include "probe/uprobes/uprobes.h"

static bool no_stacks; /* nobody may read kernel stacks */

/* In place of libc's. */
int open(const char *path, int flags, ...)
{
	if (no_stacks && strstr(path, "/stack")) {
		errno = EPERM;
		return -1;
	}
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0);
}

enum { SITES = 300 };

/* So many instructions that do nothing, all of one size. */
void probed(void);
extern const char probed_end[];
__asm__(".text\n.balign 16\n.globl probed, probed_end\nprobed:\n.rept 300\nnop\n.endr\nret\nprobed_end:\n");

/* Where its code is in the file. */
static uint64_t offset_of_probed(void)
{
	unsigned long begin, end, off, at = (unsigned long)(uintptr_t)probed;
	char line[512];
	FILE *f = fopen("/proc/self/maps", "r");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %*s %lx", &begin, &end, &off) == 3 && at >= begin &&
		    at < end) {
			fclose(f);
			return at - begin + off;
		}
	fail_msg("no mapping of our own code");
	return 0;
}

static char before[4 * SITES + 4];
static size_t size;
static int prog = -1;

static bool is_out(void)
{
	__asm__ volatile("" ::: "memory");
	return !memcmp((void *)(uintptr_t)probed, before, size);
}

static int put_in(void)
{
	uint64_t off[SITES];
	int fd;

	for (size_t i = 0; i < SITES; i++)
		off[i] = offset_of_probed() + i * (size / SITES);
	fd = uprobe_link_create(prog, getpid(), "/proc/self/exe", off, NULL, SITES);
	assert_true(fd >= 0);
	assert_false(is_out());
	return fd;
}

static int setup(void **state)
{
	(void)state;
	size = (size_t)(probed_end - (const char *)(uintptr_t)probed);
	assert_true(size > SITES && size <= sizeof(before));
	memcpy(before, (void *)(uintptr_t)probed, size);
	if (uprobes_have_multi())
		prog = uprobe_empty_program();
	else
		print_message("no multi links: not root, or a kernel before 6.10\n");
	return 0;
}

static void out_when_told(void **state)
{
	struct link_releases r = {};

	(void)state;
	if (prog < 0)
		skip();
	for (int i = 0; i < 20; i++) {
		link_release(&r, put_in());
		assert_true(link_releases_out(&r) > 0);
		assert_true(is_out());
		probed();
	}
	link_releases_over(&r);
	assert_int_equal(r.n, 0);
}

static void more_than_there_is_room_for(void **state)
{
	struct link_releases r = {};
	int fd[LINK_RELEASES_MAX + 5];

	(void)state;
	if (prog < 0)
		skip();
	for (size_t i = 0; i < sizeof(fd) / sizeof(fd[0]); i++)
		fd[i] = put_in();
	for (size_t i = 0; i < sizeof(fd) / sizeof(fd[0]); i++)
		link_release(&r, fd[i]);
	assert_true(link_releases_out(&r) > 0);
	assert_true(is_out());
	assert_int_equal(link_releases_out(&r), 0); /* it was told */
	link_releases_over(&r);
	assert_int_equal(r.n, 0);
}

/* Then it is waited for until all is over. */
static void stacks_that_nobody_may_read(void **state)
{
	struct link_releases r = {};

	(void)state;
	if (prog < 0)
		skip();
	no_stacks = true;
	link_release(&r, put_in());
	assert_true(link_releases_out(&r) > 0);
	no_stacks = false;
	assert_true(is_out());
	assert_int_equal(r.n, 0);
}

static void what_closes_at_once(void **state)
{
	struct link_releases r = {};
	int fd[2];

	(void)state;
	assert_int_equal(link_releases_out(&r), 0);
	assert_int_equal(pipe(fd), 0);
	link_release(&r, -1);
	assert_int_equal(r.n, 0);
	link_release(&r, fd[0]);
	link_release(&r, fd[1]);
	assert_true(link_releases_out(&r) > 0);
	assert_int_equal(r.n, 0);
	assert_int_equal(fcntl(fd[0], F_GETFD), -1);
	assert_int_equal(fcntl(fd[1], F_GETFD), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(out_when_told),
		cmocka_unit_test(more_than_there_is_room_for),
		cmocka_unit_test(stacks_that_nobody_may_read),
		cmocka_unit_test(what_closes_at_once),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
