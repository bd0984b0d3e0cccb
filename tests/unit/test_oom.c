/* tests/unit/test_oom.c - what is written to oom_score_adj, which is an ordinary file here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/wait.h>

#include "base/err.h"
#include "base/sys/oom.h"

static char file[] = "/tmp/test_oom.XXXXXX";

static int set_up(void **state)
{
	int fd = mkstemp(file);

	(void)state;
	return fd < 0 || close(fd);
}

static int tear_down(void **state)
{
	(void)state;
	return unlink(file);
}

static void put(const char *text)
{
	FILE *f = fopen(file, "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static const char *get(void)
{
	static char text[32];
	FILE *f = fopen(file, "re");

	assert_non_null(f);
	memset(text, 0, sizeof(text));
	(void)!fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	return text;
}

static void a_helper_asks_to_be_spared(void **state)
{
	(void)state;
	put("");
	assert_int_equal(oom_spare(file, 0), 0);
	assert_string_equal(get(), "-1000");
	assert_int_equal(oom_spare("/nowhere/oom_score_adj", 0), -ENOENT);
}

/* What is raised once stays so: each case is in a process of its own. */
static void above(const char *before, const char *after, int ret)
{
	int status = -1;
	pid_t pid;

	put(before);
	pid = fork();
	if (!pid)
		_exit(oom_above(file) != ret || oom_above(file) != ret);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_memory_equal(get(), after, strlen(after));
}

static void its_maker_goes_above_it_once(void **state)
{
	(void)state;
	above("0\n", "100", 0);
	above("-17\n", "83", 0);
	above("950\n", "1000", 0);
	above("1000\n", "1000", 0);
	assert_int_equal(oom_above("/nowhere/oom_score_adj"), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_helper_asks_to_be_spared),
		cmocka_unit_test(its_maker_goes_above_it_once),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
