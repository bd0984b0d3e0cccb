/* tests/unit/test_binary.c - executables that processes share, and which of them are forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "mkgobin.h"
#include "subject/binary.h"

static struct mkgobin g;
static struct binaries c;

static int make_file(void)
{
	struct mkopt o = { .minor = 27 };
	int fd;

	mkgobin(&g, &o);
	fd = mkgobin_fd(g.b, g.n);
	assert_int_equal(ftruncate(fd, 2 * MEMCACHE_BLOCK), 0); /* only whole blocks are cached */
	return fd;
}

static struct target running(int fd)
{
	struct target t = { .exe_fd = fd, .exe = "/x" };
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	t.exe_id = file_id_of(&st);
	return t;
}

static struct binary *get(int fd)
{
	struct target t = running(fd);
	struct binary *b = NULL;

	assert_int_equal(binary_get(&c, &t, &b, NULL), 0);
	assert_non_null(b->bin);
	return b;
}

static bool held(int fd)
{
	struct target t = running(fd);
	const struct binary *b = c.first;

	while (b && memcmp(&b->key, &t.exe_id, sizeof(b->key)))
		b = b->next;
	return b != NULL;
}

static int teardown(void **state)
{
	(void)state;
	binaries_fini(&c);
	c = (struct binaries){ 0 };
	return 0;
}

static void processes_of_a_file_share_it(void **state)
{
	int fd = make_file(), other = make_file();
	struct binary *a = get(fd), *b = get(fd), *x = get(other);

	(void)state;
	assert_ptr_equal(a, b);
	assert_ptr_not_equal(a, x);
	assert_int_not_equal(a->id, x->id);
	assert_true(a->id && x->id);
	binary_put(a);
	binaries_trim(&c);
	assert_ptr_equal(get(fd), b); /* another one still used it */
	close(fd);
	close(other);
}

/* A file that was written to since is another one. */
static void a_file_that_changed_is_another_one(void **state)
{
	int fd = make_file();
	struct binary *a = get(fd);

	(void)state;
	assert_int_equal(pwrite(fd, "x", 1, MK_BYTES), 1);
	assert_ptr_not_equal(get(fd), a);
	close(fd);
}

static void those_that_nobody_uses_go_the_oldest_first(void **state)
{
	int fd[BINARIES_IDLE_MAX + 3];
	uint16_t id[BINARIES_IDLE_MAX + 3];
	struct binary *used;

	(void)state;
	for (size_t i = 0; i < BINARIES_IDLE_MAX + 3; i++) {
		struct binary *b;

		fd[i] = make_file();
		b = get(fd[i]);
		id[i] = b->id;
		if (i)
			binary_put(b);
		else
			used = b;
	}
	binary_put(get(fd[1])); /* it is the newest now */
	binaries_trim(&c);
	assert_ptr_equal(get(fd[0]), used);
	assert_true(held(fd[1]) && held(fd[4]));
	assert_false(held(fd[2]) || held(fd[3]));
	/* whatever was forgotten has the number that it had, and nobody else has it */
	for (size_t i = 0; i < BINARIES_IDLE_MAX + 3; i++)
		assert_int_equal(get(fd[i])->id, id[i]);
	for (size_t i = 0; i < BINARIES_IDLE_MAX + 3; i++)
		close(fd[i]);
}

/* Its cache of the file, which grows as it is asked. */
static void ask(struct binary *b)
{
	uint8_t byte;

	assert_int_equal(mem_u8(gobin_mem(b->bin), gobin_info(b->bin)->text, &byte, NULL), 0);
}

static void all_together_are_bounded_in_bytes(void **state)
{
	int fd[4];
	uint16_t id[4];
	size_t one;

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct binary *b;

		fd[i] = make_file();
		b = get(fd[i]);
		ask(b);
		id[i] = b->id;
		binary_put(b);
	}
	one = binaries_bytes(&c) / 4;
	binary_put(get(fd[0])); /* it is the newest now */
	c.most = 2 * one + one / 2;
	binaries_trim(&c);
	assert_true(binaries_bytes(&c) <= c.most);
	assert_true(held(fd[0]) && held(fd[3]));
	assert_false(held(fd[1]) || held(fd[2]));
	for (int i = 0; i < 4; i++)
		assert_int_equal(get(fd[i])->id, id[i]);
	for (int i = 0; i < 4; i++)
		close(fd[i]);
}

/* What processes run cannot be forgotten; its cache can, and it answers as before. */
static void those_in_use_give_back_their_caches_the_oldest_first(void **state)
{
	int fd[2] = { make_file(), make_file() };
	struct binary *old = get(fd[0]), *young = get(fd[1]);
	size_t all, of_old, of_young;

	(void)state;
	ask(old);
	ask(young);
	all = binaries_bytes(&c);
	of_old = gobin_bytes(old->bin);
	of_young = gobin_bytes(young->bin);
	c.most = all - 1;
	binaries_trim(&c);
	assert_true(binaries_bytes(&c) <= c.most);
	assert_true(gobin_bytes(old->bin) < of_old);
	assert_int_equal(gobin_bytes(young->bin), of_young);
	ask(old);
	c.most = 1; /* no more than that can be done */
	binaries_trim(&c);
	assert_true(gobin_bytes(young->bin) < of_young);
	assert_ptr_equal(get(fd[0]), old);
	ask(old);
	close(fd[0]);
	close(fd[1]);
}

/* A host where more files come and go than are kept, for days. */
static void files_that_come_again_take_no_more_numbers(void **state)
{
	int fd[BINARIES_IDLE_MAX + 8];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(fd); i++)
		fd[i] = make_file();
	for (size_t n = 0; n < 20 * ARRAY_LEN(fd); n++) {
		binary_put(get(fd[n % ARRAY_LEN(fd)]));
		binaries_trim(&c);
	}
	assert_int_equal(c.numbers, ARRAY_LEN(fd));
	assert_int_equal(c.given_to.n, ARRAY_LEN(fd));
	/* Nor is there an end for them when all numbers were given. */
	c.numbers = UINT16_MAX;
	assert_false(held(fd[0]));
	assert_int_equal(get(fd[0])->id, 1);
	assert_int_equal(binaries_number(&c), 0);
	for (size_t i = 0; i < ARRAY_LEN(fd); i++)
		close(fd[i]);
}

static void numbers_end(void **state)
{
	int fd = make_file();
	struct target t = running(fd);
	struct binary *b = NULL;

	(void)state;
	c.numbers = UINT16_MAX;
	assert_int_equal(binary_get(&c, &t, &b, NULL), -E2BIG);
	assert_null(b);
	assert_int_equal(binaries_number(&c), 0);
	close(fd);
}

static void what_is_no_go_file_is_told(void **state)
{
	int fd = mkgobin_fd("no", 2);
	struct target t = running(fd);
	struct binary *b = NULL;

	(void)state;
	assert_true(binary_get(&c, &t, &b, NULL) < 0);
	assert_null(c.first);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(processes_of_a_file_share_it, teardown),
		cmocka_unit_test_teardown(a_file_that_changed_is_another_one, teardown),
		cmocka_unit_test_teardown(those_that_nobody_uses_go_the_oldest_first, teardown),
		cmocka_unit_test_teardown(all_together_are_bounded_in_bytes, teardown),
		cmocka_unit_test_teardown(those_in_use_give_back_their_caches_the_oldest_first,
					  teardown),
		cmocka_unit_test_teardown(files_that_come_again_take_no_more_numbers, teardown),
		cmocka_unit_test_teardown(numbers_end, teardown),
		cmocka_unit_test_teardown(what_is_no_go_file_is_told, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
