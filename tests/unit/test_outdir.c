/*
 * tests/unit/test_outdir.c - the directory that sudo's caller is given: the one that was just made,
 * not what somebody puts in its place. This file's mkdir() does that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "cli/run/outdir.h"

enum { CALLER = 42421, STRANGER = 42422 };

static enum { NOTHING, A_LINK, ANOTHER_OWNER } replaced;
static int given; /* calls of fchown */
static char base[] = "/tmp/test_outdir.XXXXXX";

int mkdir(const char *path, mode_t mode)
{
	int ret = (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);

	if (!ret && replaced == A_LINK) {
		rmdir(path);
		assert_int_equal(symlink(base, path), 0);
	}
	return ret;
}

int fstat(int fd, struct stat *st)
{
	int ret = fstatat(fd, "", st, AT_EMPTY_PATH);

	if (replaced == ANOTHER_OWNER)
		st->st_uid = STRANGER;
	return ret;
}

int fchown(int fd, uid_t uid, gid_t gid)
{
	(void)fd;
	assert_true(uid == CALLER && gid == CALLER);
	given++;
	return 0;
}

/* How often a new directory is given away. */
static int given_when(int how)
{
	const struct output_access access = { .mode = 0600, .uid = CALLER, .gid = CALLER };
	char dir[64];
	bool made = false;

	snprintf(dir, sizeof(dir), "%s/out", base);
	replaced = how;
	given = 0;
	assert_int_equal(outdir_prepare(dir, &access, &made, NULL), 0);
	assert_true(made);
	assert_int_equal(how == A_LINK ? unlink(dir) : rmdir(dir), 0);
	return given;
}

static void only_what_was_made_is_given_away(void **state)
{
	(void)state;
	assert_int_equal(given_when(NOTHING), 1);
	assert_int_equal(given_when(A_LINK), 0);
	assert_int_equal(given_when(ANOTHER_OWNER), 0);
}

static void what_was_there_is_not(void **state)
{
	const struct output_access access = { .mode = 0600, .uid = CALLER, .gid = CALLER };
	bool made = true;

	(void)state;
	replaced = NOTHING;
	given = 0;
	assert_int_equal(outdir_prepare(base, &access, &made, NULL), 0);
	assert_false(made);
	assert_int_equal(given, 0);
}

static int make_base(void **state)
{
	(void)state;
	return mkdtemp(base) ? 0 : -1;
}

static int drop_base(void **state)
{
	(void)state;
	return rmdir(base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_was_made_is_given_away),
		cmocka_unit_test(what_was_there_is_not),
	};

	return cmocka_run_group_tests(tests, make_base, drop_base);
}
