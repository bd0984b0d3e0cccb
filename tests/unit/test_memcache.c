/* tests/unit/test_memcache.c - the block cache over a memory that counts what it is asked, and ends in the middle of a block. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/mem.h"

enum { BLOCK = 4096, END = 10 * BLOCK + 100 };

struct under {
	struct mem mem; /* first */
	unsigned reads;
};

static uint8_t byte_at(uint64_t addr)
{
	return (uint8_t)(addr * 7 + addr / BLOCK);
}

static int read_under(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	struct under *u = (struct under *)m;

	if (addr > END || n > END - addr)
		return err_set(e, -EFAULT, "nothing at 0x%llx", (unsigned long long)addr);
	u->reads++;
	for (size_t i = 0; i < n; i++)
		((uint8_t *)buf)[i] = byte_at(addr + i);
	return 0;
}

static struct under under;
static struct memcache *c;

static int set_up(void **state)
{
	(void)state;
	under = (struct under){ .mem.read = read_under };
	return memcache_new(&under.mem, BLOCK, 4, &c, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	memcache_free(c);
	return 0;
}

/* Reads @n bytes there; how many reads of the memory that took. */
static unsigned costs(uint64_t addr, size_t n)
{
	uint8_t buf[3 * BLOCK];
	unsigned before = under.reads;

	assert_int_equal(mem_read(memcache_mem(c), addr, buf, n, NULL), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf[i], byte_at(addr + i));
	return under.reads - before;
}

static void a_block_is_read_once(void **state)
{
	(void)state;
	assert_int_equal(costs(BLOCK + 5, 8), 1);
	assert_int_equal(costs(BLOCK + 500, 8), 0);
	assert_int_equal(memcache_bytes(c), BLOCK);
	assert_int_equal(costs(2 * BLOCK - 4, 8), 1); /* into the next one */
	assert_int_equal(costs(BLOCK, 3 * BLOCK), 1);
	assert_int_equal(memcache_bytes(c), 3 * BLOCK);
}

static void blocks_share_their_places(void **state)
{
	(void)state;
	assert_int_equal(costs(0, 1), 1);
	assert_int_equal(costs(4 * BLOCK, 1), 1); /* takes the place of the first */
	assert_int_equal(costs(0, 1), 1);
	assert_int_equal(memcache_bytes(c), BLOCK);
}

static void what_was_shrunk_is_read_again(void **state)
{
	(void)state;
	memcache_shrink(c);
	assert_int_equal(costs(0, 2 * BLOCK), 2);
	memcache_shrink(c);
	memcache_shrink(c);
	assert_int_equal(memcache_bytes(c), 0);
	assert_int_equal(costs(0, 1), 1);
	memcache_drop(c);
	assert_int_equal(costs(0, 1), 1);
}

static void the_end_is_no_whole_block(void **state)
{
	struct err e = { "" };
	uint8_t b[2];

	(void)state;
	assert_int_equal(costs(END - 2, 2), 1);
	assert_int_equal(costs(END - 2, 2), 1); /* it is not kept */
	assert_int_equal(mem_read(memcache_mem(c), END - 1, b, 2, &e), -EFAULT);
	assert_non_null(strstr(e.msg, "nothing at"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_block_is_read_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(blocks_share_their_places, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_was_shrunk_is_read_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_end_is_no_whole_block, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
