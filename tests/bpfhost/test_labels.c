/* tests/bpfhost/test_labels.c - goroutine labels in both of Go's shapes, and broken ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define GPB_HOST
#include "go/labels.bpf.h"

#define HEAP 0xc000000000ull

static uint8_t heap[64 * 1024];
static size_t used;
static struct gpb_rec_labels rec;

static int reset(void **state)
{
	(void)state;
	host_reset();
	memset(heap, 0, sizeof(heap));
	memset(&rec, 0xee, sizeof(rec));
	rec.n = 0;
	used = 64;
	host_map(HEAP, heap, sizeof(heap));
	return 0;
}

/* Takes room in the fake heap; returns its address. */
static uint64_t alloc(size_t n)
{
	uint64_t addr = HEAP + used;

	used += (n + 15) & ~15ull;
	return addr;
}

static void put_u64(uint64_t addr, uint64_t v)
{
	memcpy(heap + (addr - HEAP), &v, sizeof(v));
}

static void put_string(uint64_t at, const char *s)
{
	uint64_t text = alloc(strlen(s) + 1);

	memcpy(heap + (text - HEAP), s, strlen(s));
	put_u64(at, text);
	put_u64(at + 8, strlen(s));
}

static void expect_label(size_t i, const char *key, const char *value)
{
	assert_int_equal(rec.label[i].key_len, strlen(key));
	assert_memory_equal(rec.label[i].key, key, strlen(key));
	assert_int_equal(rec.label[i].value_len, strlen(value));
	assert_memory_equal(rec.label[i].value, value, strlen(value));
}

static uint64_t make_slice(const char *const *kv, size_t pairs)
{
	uint64_t head = alloc(24), at = alloc(32 * pairs);

	put_u64(head, at);
	put_u64(head + 8, pairs);
	put_u64(head + 16, pairs);
	for (size_t i = 0; i < 2 * pairs; i++)
		put_string(at + 16 * i, kv[i]);
	return head;
}

static void slice(void **state)
{
	(void)state;
	assert_int_equal(labels_slice(&rec, make_slice((const char *const[]){ "request", "a",
									      "user", "" },
						       2)),
			 0);
	assert_int_equal(rec.n, 2);
	expect_label(0, "request", "a");
	expect_label(1, "user", "");
}

static void equal_sets_have_equal_ids(void **state)
{
	uint64_t first;

	(void)state;
	labels_slice(&rec, make_slice((const char *const[]){ "k", "v" }, 1));
	labels_hash(&rec);
	first = rec.id;
	memset(&rec, 0x55, sizeof(rec)); /* stale bytes must not count */
	rec.n = 0;
	labels_slice(&rec, make_slice((const char *const[]){ "k", "v" }, 1));
	labels_hash(&rec);
	assert_int_equal(rec.id, first);
	rec.n = 0;
	labels_slice(&rec, make_slice((const char *const[]){ "k", "w" }, 1));
	labels_hash(&rec);
	assert_int_not_equal(rec.id, first);
}

static void slice_that_lies(void **state)
{
	uint64_t head = alloc(24);

	(void)state;
	put_u64(head, 0xdead0000);
	put_u64(head + 8, 3);
	assert_int_equal(labels_slice(&rec, head), 1);
	assert_int_equal(rec.n, 0);
	assert_int_equal(labels_slice(&rec, 0x10), 1);
	put_u64(head, HEAP);
	put_u64(head + 8, ~0ull); /* far more than there can be */
	assert_int_equal(labels_slice(&rec, head) != 0, 1);
	assert_true(rec.n <= GPB_MAX_LABELS);
}

static void long_text_is_cut_and_said(void **state)
{
	char text[1024];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	assert_int_equal(labels_slice(&rec, make_slice((const char *const[]){ "k", text }, 1)), 1);
	assert_int_equal(rec.n, 1);
	assert_int_equal(rec.label[0].value_len, GPB_LABEL_VALUE);
}

/* A Go map of @b bits with bucket array at @buckets; returns what g.labels holds. */
static uint64_t make_map(uint64_t count, uint8_t b, uint64_t buckets, uint64_t old)
{
	uint64_t label_map = alloc(8), hmap = alloc(48);

	put_u64(label_map, hmap);
	put_u64(hmap, count);
	heap[hmap - HEAP + 9] = b;
	put_u64(hmap + 16, buckets);
	put_u64(hmap + 24, old);
	return label_map;
}

static void put_slot(uint64_t bucket, int i, uint8_t top, const char *key, const char *value)
{
	heap[bucket - HEAP + (size_t)i] = top;
	put_string(bucket + MAP_KEYS + 16 * (uint64_t)i, key);
	put_string(bucket + MAP_VALUES + 16 * (uint64_t)i, value);
}

static void map_of_one_bucket(void **state)
{
	uint64_t bucket = alloc(MAP_BUCKET);

	(void)state;
	put_slot(bucket, 0, 77, "a", "1");
	put_slot(bucket, 3, 5, "b", "2");
	put_slot(bucket, 4, 1, "gone", "x"); /* an empty slot's leftovers */
	assert_int_equal(labels_map(&rec, make_map(2, 0, bucket, 0)), 0);
	assert_int_equal(rec.n, 2);
	expect_label(0, "a", "1");
	expect_label(1, "b", "2");
}

static void growing_map_with_overflow(void **state)
{
	uint64_t buckets = alloc(2 * MAP_BUCKET), old = alloc(MAP_BUCKET), over = alloc(MAP_BUCKET);

	(void)state;
	put_slot(buckets, 0, 9, "a", "1");
	put_slot(buckets + MAP_BUCKET, 7, 9, "b", "2");
	put_u64(buckets + MAP_BUCKET + MAP_OVERFLOW, over);
	put_slot(over, 1, 200, "c", "3");
	put_slot(old, 0, 2, "a", "1"); /* evacuated */
	put_slot(old, 1, 50, "d", "4");
	assert_int_equal(labels_map(&rec, make_map(4, 1, buckets, old)), 0);
	assert_int_equal(rec.n, 4);
	expect_label(0, "a", "1");
	expect_label(1, "b", "2");
	expect_label(2, "c", "3");
	expect_label(3, "d", "4");
}

static void map_that_lies(void **state)
{
	uint64_t bucket = alloc(MAP_BUCKET);

	(void)state;
	assert_int_equal(labels_map(&rec, make_map(1, 200, bucket, 0)), 1);
	put_u64(bucket + MAP_OVERFLOW, bucket); /* a cycle */
	assert_int_equal(labels_map(&rec, make_map(1, 0, bucket, 0)), 1);
	assert_int_equal(labels_map(&rec, make_map(1, 0, 0xdead0000, 0)), 1);
	assert_int_equal(labels_map(&rec, make_map(0, 0, 0, 0)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(slice, reset),
		cmocka_unit_test_setup(equal_sets_have_equal_ids, reset),
		cmocka_unit_test_setup(slice_that_lies, reset),
		cmocka_unit_test_setup(long_text_is_cut_and_said, reset),
		cmocka_unit_test_setup(map_of_one_bucket, reset),
		cmocka_unit_test_setup(growing_map_with_overflow, reset),
		cmocka_unit_test_setup(map_that_lies, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
