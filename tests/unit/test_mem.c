/*
 * tests/unit/test_mem.c - many pieces of memory at once: each is complete or reported as missing.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "target/target_priv.h"

enum { PIECES = 2600, SIZE = 24, PAGE = 4096 };

struct set {
	struct mem_piece v[PIECES];
	uint8_t to[PIECES][SIZE];
};

static bool is_bad(size_t i)
{
	/* The bad pieces: the first, the last, two neighbours, both sides of a call's limit. */
	return i == 0 || i == 7 || i == 8 || i == 1023 || i == 1024 || i == PIECES - 1;
}

/*
 * Pieces of @page (3 pages, of which the second is missing); the bad ones reach into the hole, or
 * are nowhere.
 */
static struct set *set_new(const uint8_t *page)
{
	struct set *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	for (size_t i = 0; i < PIECES; i++) {
		uint64_t good = (uintptr_t)page + (i % 2 ? 2 * PAGE : 0) + i % 64;
		uint64_t bad = i == 8 ? UINT64_MAX - 100 : (uintptr_t)page + PAGE - 8;

		s->v[i] = (struct mem_piece){ .addr = is_bad(i) ? bad : good,
					      .buf = s->to[i],
					      .n = i == 9 ? 0 : SIZE };
	}
	return s;
}

static void check(struct mem *m, const uint8_t *page)
{
	struct set *s = set_new(page);
	struct err e;

	assert_int_equal(mem_readv(m, s->v, PIECES, &e), 0);
	for (size_t i = 0; i < PIECES; i++) {
		assert_int_equal(s->v[i].ok, !is_bad(i));
		if (!is_bad(i) && i != 9)
			assert_memory_equal(s->to[i], page + (i % 2 ? 2 * PAGE : 0) + i % 64, SIZE);
	}
	assert_int_equal(mem_readv(m, s->v, 0, &e), 0);
	free(s);
}

static uint8_t *pages_new(void)
{
	uint8_t *p = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			  0);

	assert_true(p != MAP_FAILED);
	for (size_t i = 0; i < 3 * PAGE; i++)
		p[i] = (uint8_t)(i * 31 + i / PAGE);
	munmap(p + PAGE, PAGE);
	return p;
}

static struct mem *one_by_one; /* its read() is that of the process */

static int plain_read(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	(void)m;
	return mem_read(one_by_one, addr, buf, n, e);
}

static void pieces_do_not_stop_each_other(void **state)
{
	uint8_t *page = pages_new();
	struct mem plain = { .read = plain_read };
	struct err e;

	(void)state;
	assert_int_equal(memproc_new(getpid(), -1, &one_by_one, &e), 0);
	check(one_by_one, page);
	check(&plain, page);
	memproc_free(one_by_one);
	munmap(page, 3 * PAGE);
}

/* Nothing is read of a process that has gone, and the error says so. */
static void nobody_is_there(void **state)
{
	uint8_t *page = pages_new();
	pid_t pid = fork();
	struct set *s = set_new(page);
	struct mem *m;
	struct err e;

	(void)state;
	if (!pid) {
		pause();
		_exit(0);
	}
	assert_int_equal(memproc_new(pid, -1, &m, &e), 0);
	check(m, page);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(mem_readv(m, s->v, PIECES, &e), -ESRCH);
	memproc_free(m);
	free(s);
	munmap(page, 3 * PAGE);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_do_not_stop_each_other),
		cmocka_unit_test(nobody_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
