/* tests/unit/test_behind.c - all bytes arrive, in their order, and a write that fails is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/behind.h"

enum { SIZE = 4096, MANY = 1000 };

static uint8_t byte_at(uint64_t i)
{
	return (uint8_t)(i * 2654435761u >> 24);
}

/* Buffers of all lengths up to SIZE. Returns how many bytes these are. */
static uint64_t put_all(struct behind *b)
{
	uint64_t at = 0;

	for (size_t k = 0; k < MANY; k++) {
		size_t n = 1 + k * 37 % SIZE;
		uint8_t *p = behind_buffer(b);

		for (size_t i = 0; i < n; i++)
			p[i] = byte_at(at++);
		behind_put(b, n);
	}
	return at;
}

static void check_all(const uint8_t *p, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		if (p[i] != byte_at(i))
			fail_msg("at %llu", (unsigned long long)i);
}

static void a_file(void **state)
{
	FILE *f = tmpfile();
	struct behind *b;
	struct err e;
	uint64_t n;
	uint8_t *all;

	(void)state;
	assert_non_null(f);
	assert_int_equal(behind_new(f, SIZE, &b, &e), 0);
	n = put_all(b);
	assert_int_equal(behind_wait(b), 0);
	assert_int_equal(behind_failed(b), 0);
	assert_int_equal(ftell(f), (long)n);
	/* Once more behind what its owner wrote itself. */
	assert_int_equal(fwrite("x", 1, 1, f), 1);
	memset(behind_buffer(b), 'y', 5);
	behind_put(b, 5);
	behind_free(b);
	all = malloc(n + 6);
	assert_non_null(all);
	rewind(f);
	assert_int_equal(fread(all, 1, n + 6, f), n + 6);
	check_all(all, n);
	assert_memory_equal(all + n, "xyyyyy", 6);
	free(all);
	fclose(f);
}

/* What may stand still is written at once. */
static void no_file(void **state)
{
	char *all = NULL;
	size_t len;
	FILE *f = open_memstream(&all, &len);
	struct behind *b;
	struct err e;
	uint64_t n;

	(void)state;
	assert_non_null(f);
	assert_int_equal(behind_new(f, SIZE, &b, &e), 0);
	n = put_all(b);
	assert_int_equal(fflush(f), 0);
	assert_int_equal(len, n);
	check_all((const uint8_t *)all, n);
	behind_free(b);
	fclose(f);
	free(all);
}

static void a_failure(void **state)
{
	FILE *f = fopen("/proc/self/comm", "re"); /* not to be written to */
	struct behind *b;
	struct err e;

	(void)state;
	assert_non_null(f);
	assert_int_equal(behind_new(f, SIZE, &b, &e), 0);
	put_all(b);
	assert_int_equal(behind_wait(b), EBADF);
	assert_int_equal(behind_failed(b), EBADF);
	behind_free(b);
	fclose(f);
}

static void nothing(void **state)
{
	FILE *f = tmpfile();
	struct behind *b;
	struct err e;

	(void)state;
	assert_non_null(f);
	assert_int_equal(behind_new(f, SIZE, &b, &e), 0);
	assert_int_equal(behind_wait(b), 0);
	behind_free(b);
	assert_int_equal(ftell(f), 0);
	fclose(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file),
		cmocka_unit_test(no_file),
		cmocka_unit_test(a_failure),
		cmocka_unit_test(nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
