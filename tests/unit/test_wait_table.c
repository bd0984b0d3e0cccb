/* tests/unit/test_wait_table.c - what is taken out of the table of goroutines, and what stays. The table is this file's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "collect/waits/engine/wait_table.h"

enum { ROOM = 20000, FD = 7 };

static struct {
	uint64_t key;
	struct gpb_standing at;
	bool there;
} table[ROOM];
static size_t used;
static __u64 of[GPB_CPU_TARGETS], all;
static int broken; /* what a batch says from then on */

static void put(uint32_t slot, uint64_t g, uint64_t since)
{
	table[used].key = (uint64_t)slot << 48 | g;
	table[used].at = (struct gpb_standing){ .since = since };
	table[used++].there = true;
	of[slot]++;
	all++;
}

/* From an index on, as the kernel's from a bucket on. */
int bpf_map_lookup_batch(int fd, void *in, void *out, void *keys, void *values, __u32 *count,
			 const struct bpf_map_batch_opts *opts)
{
	uint64_t *key = keys, i = in ? *(uint64_t *)in : 0;
	struct gpb_standing *at = values;
	__u32 n = 0;

	(void)opts;
	assert_int_equal(fd, FD);
	if (broken) {
		errno = broken;
		return -broken;
	}
	for (; i < used && n < *count; i++)
		if (table[i].there) {
			key[n] = table[i].key;
			at[n++] = table[i].at;
		}
	*count = n;
	*(uint64_t *)out = i;
	if (i < used)
		return 0;
	errno = ENOENT;
	return -ENOENT;
}

int bpf_map_delete_elem(int fd, const void *key)
{
	assert_int_equal(fd, FD);
	for (size_t i = 0; i < used; i++)
		if (table[i].there && table[i].key == *(const uint64_t *)key) {
			table[i].there = false;
			return 0;
		}
	errno = ENOENT;
	return -ENOENT;
}

/* Targets in slots 1 and 2, the second since 500; 3 is free. */
static bool gone(void *arg, uint32_t slot, uint64_t since)
{
	assert_ptr_equal(arg, table);
	return slot == 3 || (slot == 2 && since < 500);
}

static const struct wait_table t = { .fd = FD,
				     .bytes = sizeof(struct gpb_standing),
				     .last = wait_table_standing,
				     .of = of,
				     .all = &all };

static int reset(void **state)
{
	(void)state;
	used = 0;
	memset(of, 0, sizeof(of));
	all = 0;
	broken = 0;
	return 0;
}

static void what_has_gone_is_taken_out(void **state)
{
	(void)state;
	for (uint64_t g = 0; g < 3000; g++) {
		put(1, g, 1);
		put(2, g, g);
		put(3, g, 900);
	}
	wait_table_sweep(&t, gone, table);
	assert_true(of[1] == 3000 && of[2] == 2500 && of[3] == 0);
	assert_int_equal(all, 5500);
	for (size_t i = 0; i < used; i++)
		assert_int_equal(table[i].there,
				 !gone(table, (uint32_t)(table[i].key >> 48), table[i].at.since));
}

static void what_cannot_be_read_stays(void **state)
{
	(void)state;
	put(3, 1, 1);
	broken = ENOSPC;
	wait_table_sweep(&t, gone, table);
	assert_true(of[3] == 1 && all == 1);
	broken = 0;
	wait_table_sweep(&t, gone, table);
	assert_true(of[3] == 0 && all == 0);
}

static bool even(void *arg, uint32_t slot, const void *goroutine)
{
	assert_ptr_equal(arg, &table);
	assert_true(slot && slot < 4);
	return !(((const struct gpb_standing *)goroutine)->since & 1);
}

static void each_slot_is_counted_in_one_pass(void **state)
{
	uint64_t n[GPB_CPU_TARGETS];

	(void)state;
	for (uint64_t g = 0; g < 5000; g++) {
		put(1, g, g);
		put(3, g, 2 * g + 1);
	}
	put(2, 7, 8);
	assert_true(wait_table_count(&t, even, &table, n));
	assert_true(n[1] == 2500 && n[2] == 1 && n[3] == 0 && n[0] == 0);
	broken = ENOSPC;
	assert_false(wait_table_count(&t, even, &table, n));
}

/* A goroutine that does not wait was last seen when it was woken, or asked. */
static void a_wait_was_last_seen_at_its_latest_time(void **state)
{
	struct gpb_wait w = { .since = 1 };

	(void)state;
	assert_int_equal(wait_table_wait(&w), 1);
	w.asked = 2;
	assert_int_equal(wait_table_wait(&w), 2);
	w.woken = 4;
	w.queued = 3;
	assert_int_equal(wait_table_wait(&w), 4);
	w.queued = 5;
	assert_int_equal(wait_table_wait(&w), 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_has_gone_is_taken_out, reset),
		cmocka_unit_test_setup(what_cannot_be_read_stays, reset),
		cmocka_unit_test_setup(each_slot_is_counted_in_one_pass, reset),
		cmocka_unit_test_setup(a_wait_was_last_seen_at_its_latest_time, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
