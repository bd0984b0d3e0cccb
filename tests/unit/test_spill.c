/* tests/unit/test_spill.c - arrays beyond a bound lie in files, and what was in them stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys/spill.h"
#include "base/sys/unnamed.h"

enum { MB = 1 << 20, N = 4 * MB, MANY = 16 };

struct numbers {
	uint32_t *at;
	size_t n, cap;
};

static int tear_down(void **state)
{
	(void)state;
	unsetenv("TMPDIR");
	spill_bound(0);
	return 0;
}

/* Bytes of files that are mapped, and of those in memory. */
static uint64_t mapped(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	unsigned long long kb = 0;
	char line[256];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, "RssFile:", 8))
			kb = strtoull(line + 8, NULL, 10);
	fclose(f);
	return kb * 1024;
}

/* Until there are @n. */
static void fill(struct numbers *v, uint32_t n)
{
	for (uint32_t i = (uint32_t)v->n; i < n; i++) {
		uint32_t *to = spill_add(v, UINT32_MAX);

		assert_non_null(to);
		assert_int_equal(*to, 0);
		*to = i ^ 0x5a5a5a5a;
	}
}

static void check(const struct numbers *v, uint32_t n)
{
	assert_int_equal(v->n, n);
	for (uint32_t i = 0; i < n; i++)
		if (v->at[i] != (i ^ 0x5a5a5a5a))
			fail_msg("%u: %u", i, v->at[i]);
}

static void without_a_bound_all_lies_in_memory(void **state)
{
	struct numbers v = {};

	(void)state;
	fill(&v, N);
	assert_int_equal(spill_in_files(), 0);
	check(&v, N);
	spill_fini(&v);
	assert_null(v.at);
}

static void what_grows_beyond_it_moves(void **state)
{
	struct numbers v = {};
	uint32_t *zeros;
	struct err e;

	(void)state;
	spill_bound(8 * MB);
	fill(&v, MB / 2);
	assert_int_equal(spill_in_files(), 0);
	fill(&v, N);
	assert_in_range(spill_in_files(), N * 4ull, N * 8ull + 4096);
	zeros = spill_alloc(N, sizeof(*zeros));
	assert_non_null(zeros);
	assert_in_range(spill_in_files(), N * 8ull, N * 12ull + 8192);
	for (uint32_t i = 0; i < N; i++)
		if (zeros[i])
			fail_msg("%u: %u", i, zeros[i]);
	check(&v, N);
	v.at = spill_realloc(v.at, N / 2, sizeof(*v.at));
	v.n = v.cap = N / 2;
	check(&v, N / 2);
	spill_free(zeros);
	spill_fini(&v);
	assert_int_equal(spill_in_files(), 0);
	assert_false(spill_refused(&e));
}

/* What was mapped is given back, and is there again. */
static void memory_is_given_back(void **state)
{
	uint32_t *all[MANY];
	uint64_t before, after;

	(void)state;
	spill_bound(2 * MB);
	for (int i = 0; i < MANY; i++) {
		all[i] = spill_alloc(MB, sizeof(*all[i]));
		assert_non_null(all[i]);
		for (uint32_t k = 0; k < MB; k++)
			all[i][k] = k ^ (uint32_t)i;
	}
	before = mapped();
	spill_rest();
	after = mapped();
	assert_in_range(before, (MANY - 1) * 4ull * MB, UINT64_MAX);
	assert_in_range(after, 0, before - (MANY - 1) * 4ull * MB + 2 * MB);
	for (int i = 0; i < MANY; i++) {
		for (uint32_t k = 0; k < MB; k++)
			if (all[i][k] != (k ^ (uint32_t)i))
				fail_msg("%d: %u: %u", i, k, all[i][k]);
		spill_free(all[i]);
	}
	assert_int_equal(spill_in_files(), 0);
}

static void small_ones_stay(void **state)
{
	uint64_t *all[4096];

	(void)state;
	spill_bound(MB);
	for (size_t i = 0; i < 4096; i++) {
		all[i] = spill_alloc(100, 8);
		assert_non_null(all[i]);
		all[i][99] = i;
	}
	assert_int_equal(spill_in_files(), 0);
	for (size_t i = 0; i < 4096; i++) {
		assert_int_equal(all[i][99], i);
		spill_free(all[i]);
	}
	spill_free(NULL);
}

static void without_a_file_all_stays_in_memory(void **state)
{
	static const char *const dirs[] = { "/nowhere", "/dev/shm" };
	struct numbers v = {};
	struct err e = { "" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(setenv("TMPDIR", dirs[i], 1), 0);
		spill_bound(MB);
		assert_false(spill_refused(&e));
		fill(&v, N);
		assert_true(spill_refused(&e));
		assert_non_null(strstr(e.msg, dirs[i]));
		assert_int_equal(spill_in_files(), 0);
		check(&v, N);
		spill_fini(&v);
	}
}

/* ---- a file that fails ---- */

enum { LOST = 7, ENDED_ALL_THE_SAME = 8 };

static void lost(void)
{
	_exit(LOST);
}

/* Takes all bytes from the files without a name that this process has. */
static int cut_files(void)
{
	char path[64], to[512];
	int n = 0;

	for (int fd = 3; fd < 100; fd++) {
		ssize_t len;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		len = readlink(path, to, sizeof(to) - 1);
		to[len > 0 ? len : 0] = 0;
		if (strstr(to, "(deleted)") && !ftruncate(fd, 0))
			n++;
	}
	return n;
}

/* How a process ends for which a file of an array, or another one that is mapped, has no bytes any more. */
static int end_of(bool others, void (*fn)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		struct numbers v = {};
		struct err e;
		int fd = unnamed_open(&e);
		volatile uint32_t *other;

		prctl(PR_SET_DUMPABLE, 0);
		signal(SIGBUS, SIG_DFL); /* a sanitizer has one of its own */
		spill_bound(8 * MB);
		spill_on_loss(fn);
		if (ftruncate(fd, MB))
			_exit(ENDED_ALL_THE_SAME);
		other = mmap(NULL, MB, PROT_READ, MAP_SHARED, fd, 0);
		fill(&v, N);
		if (cut_files() < 2)
			_exit(ENDED_ALL_THE_SAME);
		v.at[others ? *other : MB] = 1;
		_exit(ENDED_ALL_THE_SAME);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void a_file_that_fails_is_told(void **state)
{
	int status;

	(void)state;
	status = end_of(false, lost);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), LOST);
	status = end_of(true, lost);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGBUS);
	status = end_of(false, NULL);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGBUS);
}

static void sizes_do_not_overflow(void **state)
{
	(void)state;
	assert_null(spill_alloc(SIZE_MAX / 4, 8));
	assert_null(spill_alloc(SIZE_MAX, 1));
	assert_null(spill_realloc(NULL, SIZE_MAX - 10, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(without_a_bound_all_lies_in_memory, tear_down),
		cmocka_unit_test_teardown(what_grows_beyond_it_moves, tear_down),
		cmocka_unit_test_teardown(memory_is_given_back, tear_down),
		cmocka_unit_test_teardown(small_ones_stay, tear_down),
		cmocka_unit_test_teardown(without_a_file_all_stays_in_memory, tear_down),
		cmocka_unit_test_teardown(a_file_that_fails_is_told, tear_down),
		cmocka_unit_test_teardown(sizes_do_not_overflow, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
