/* tests/unit/test_binary.c - executables that processes share, and which of them are forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "mkgobin.h"
#include "go/image/elf/elfimg.h"
#include "subject/binary.h"

static struct mkgobin g;
static struct binaries c;

static int make_file(void)
{
	struct mkopt o = { .minor = 27 };
	int fd;

	mkgobin(&g, &o);
	fd = mkgobin_fd(g.b, g.n);
	assert_int_equal(ftruncate(fd, 2 * ELFIMG_BLOCK), 0); /* only whole blocks are cached */
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
	struct binary *used;

	(void)state;
	for (size_t i = 0; i < BINARIES_IDLE_MAX + 3; i++) {
		struct binary *b;

		fd[i] = make_file();
		b = get(fd[i]);
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
	size_t one;

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct binary *b;

		fd[i] = make_file();
		b = get(fd[i]);
		ask(b);
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

/* What is filed under the numbers of files, as a kernel's table of unwinding rules has it. */
static struct file_id filed[UINT16_MAX + 1];
static unsigned stays; /* so many files have something that cannot be taken out */

static bool forget(void *arg, uint16_t number)
{
	assert_ptr_equal(arg, filed);
	if (stays) {
		stays--;
		return false;
	}
	filed[number] = (struct file_id){ 0 };
	return true;
}

static void file_rules(const struct binary *b)
{
	static const struct file_id none;

	assert_true(b->id);
	assert_memory_equal(&filed[b->id], &none, sizeof(none)); /* nobody else's are there */
	filed[b->id] = b->key;
}

/* A version of a file: as a deployment brings it. */
static struct binary *get_version(int fd, unsigned version)
{
	struct target t = running(fd);
	struct binary *b = NULL;
	struct err e = { "" };

	t.exe_id.mtime_ns = version;
	if (binary_get(&c, &t, &b, &e))
		fail_msg("version %u: %s", version, e.msg);
	return b;
}

/* A host that is watched for months: more files come and go than there are numbers, and some are there all the time. */
static void numbers_never_end(void **state)
{
	enum { FILES = 3 * UINT16_MAX / 2, STUCK = 5 };
	struct binary *always[3];
	int fd = make_file();

	(void)state;
	memset(filed, 0, sizeof(filed));
	c.forget = forget;
	c.arg = filed;
	for (unsigned i = 0; i < FILES; i++) {
		struct binary *b = get_version(fd, i);

		file_rules(b);
		if (i < ARRAY_LEN(always))
			always[i] = b;
		else
			binary_put(b);
		stays = i == 1000 ? STUCK : stays;
		binaries_trim(&c);
	}
	assert_int_equal(stays, 0);
	for (unsigned i = 0; i < ARRAY_LEN(always); i++)
		assert_memory_equal(&filed[always[i]->id], &always[i]->key, sizeof(*filed));
	close(fd);
}

static void a_number_comes_again_after_all_others(void **state)
{
	uint16_t first;

	(void)state;
	first = binaries_number(&c);
	binaries_give_back(&c, first);
	for (unsigned i = 1; i < UINT16_MAX; i++)
		assert_int_not_equal(binaries_number(&c), first);
	assert_int_equal(binaries_number(&c), first);
	assert_int_equal(binaries_number(&c), 0);
}

/* So many at once are refused. */
static void numbers_end(void **state)
{
	int fd = make_file();
	struct target t = running(fd);
	struct binary *b = NULL;

	(void)state;
	while (binaries_number(&c))
		;
	assert_int_equal(binary_get(&c, &t, &b, NULL), -E2BIG);
	assert_null(b);
	binaries_give_back(&c, 7);
	assert_int_equal(get(fd)->id, 7);
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
		cmocka_unit_test_teardown(numbers_never_end, teardown),
		cmocka_unit_test_teardown(a_number_comes_again_after_all_others, teardown),
		cmocka_unit_test_teardown(numbers_end, teardown),
		cmocka_unit_test_teardown(what_is_no_go_file_is_told, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
