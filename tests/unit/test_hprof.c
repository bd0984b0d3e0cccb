/* tests/unit/test_hprof.c - records of HPROF, byte by byte. */
#include "output/hprof/hprof.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct err e;
static char *bytes;
static size_t nbytes, at;
static FILE *file;

static struct hprof *begin(void)
{
	struct hprof *h = NULL;

	free(bytes);
	file = open_memstream(&bytes, &nbytes);
	assert_int_equal(hprof_new(file, 0x123456789ab, &h, &e), 0);
	return h;
}

static void end(struct hprof *h)
{
	assert_int_equal(hprof_end(h, &e), 0);
	hprof_free(h);
	fclose(file);
	at = 0;
}

static uint64_t take(unsigned n)
{
	uint64_t v = 0;

	assert_true(at + n <= nbytes);
	while (n--)
		v = v << 8 | (uint8_t)bytes[at++];
	return v;
}

static void is(unsigned n, uint64_t want)
{
	assert_int_equal(take(n), want);
}

static void text(const char *want)
{
	assert_true(at + strlen(want) <= nbytes);
	assert_memory_equal(bytes + at, want, strlen(want));
	at += strlen(want);
}

static void record(uint8_t tag, uint32_t len)
{
	is(1, tag);
	is(4, 0);
	is(4, len);
}

static void header(void)
{
	text("JAVA PROFILE 1.0.2");
	is(1, 0);
	is(4, 8);
	is(8, 0x123456789ab);
}

static void test_before_the_heap(void **state)
{
	struct hprof *h = begin();
	uint64_t frames[] = { 0x101, 0x102 };

	(void)state;
	hprof_string(h, 0x11, "main.node", 9);
	hprof_load_class(h, 7, 0x21, 0x11);
	hprof_frame(h, &(struct hprof_frame){ .id = 0x101,
					      .method = 0x12,
					      .signature = 0x13,
					      .file = 0x14,
					      .class_serial = 7,
					      .line = -2 });
	hprof_trace(h, 3, 4, frames, 2);
	end(h);
	header();
	record(0x01, 8 + 9);
	is(8, 0x11);
	text("main.node");
	record(0x02, 24);
	is(4, 7);
	is(8, 0x21);
	is(4, 0);
	is(8, 0x11);
	record(0x04, 40);
	for (int i = 0; i < 4; i++)
		is(8, (uint64_t[]){ 0x101, 0x12, 0x13, 0x14 }[i]);
	is(4, 7);
	is(4, (uint32_t)-2);
	record(0x05, 28);
	is(4, 3);
	is(4, 4);
	is(4, 2);
	is(8, 0x101);
	is(8, 0x102);
	record(0x2c, 0);
	assert_int_equal(at, nbytes);
}

static void roots(void)
{
	is(1, 0x05);
	is(8, 0x21);
	is(1, 0xff);
	is(8, 0x31);
	is(1, 0x08);
	is(8, 0x32);
	is(4, 1);
	is(4, 2);
	is(1, 0x03);
	is(8, 0x33);
	is(4, 1);
	is(4, 0xffffffff);
}

static void test_roots_and_classes(void **state)
{
	struct hprof *h = begin();
	struct hprof_static statics[] = { { 0x41, 0x31 } };
	struct hprof_field fields[] = { { 0x42, HPROF_OBJECT }, { 0x43, HPROF_LONG } };

	(void)state;
	hprof_heap(h);
	hprof_root_sticky(h, 0x21);
	hprof_root_unknown(h, 0x31);
	hprof_root_thread(h, 0x32, 1, 2);
	hprof_root_frame(h, 0x33, 1, UINT32_MAX);
	hprof_class(h, &(struct hprof_class){ .id = 0x21,
					      .super = 0x22,
					      .size = 48,
					      .statics = statics,
					      .nstatics = 1,
					      .fields = fields,
					      .nfields = 2 });
	end(h);
	header();
	record(0x1c, 9 + 9 + 17 + 17 + 1 + 7 * 8 + 14 + 17 + 18);
	roots();
	is(1, 0x20);
	is(8, 0x21);
	is(4, 0);
	is(8, 0x22);
	for (int i = 0; i < 5; i++)
		is(8, 0);
	is(4, 48);
	is(2, 0);
	is(2, 1);
	is(8, 0x41);
	is(1, 2);
	is(8, 0x31);
	is(2, 2);
	is(8, 0x42);
	is(1, 2);
	is(8, 0x43);
	is(1, 11);
	record(0x2c, 0);
	assert_int_equal(at, nbytes);
}

static void test_objects(void **state)
{
	struct hprof *h = begin();

	(void)state;
	hprof_heap(h);
	hprof_instance(h, 0x51, 9, 0x21, 16);
	hprof_value_object(h, 0x52);
	hprof_value_object(h, 0);
	hprof_array(h, 0x53, 9, HPROF_CHAR, 2);
	hprof_value_bytes(h, "\0a\0b", 4);
	end(h);
	header();
	record(0x1c, 25 + 16 + 18 + 4);
	is(1, 0x21);
	is(8, 0x51);
	is(4, 9);
	is(8, 0x21);
	is(4, 16);
	is(8, 0x52);
	is(8, 0);
	is(1, 0x23);
	is(8, 0x53);
	is(4, 9);
	is(4, 2);
	is(1, 5);
	is(4, 0x00610062);
	record(0x2c, 0);
	assert_int_equal(at, nbytes);
}

/* How many instances are in the segment that begins here, whose length is checked. */
static unsigned segment(uint32_t each)
{
	uint64_t len;

	is(1, 0x1c);
	is(4, 0);
	len = take(4);
	assert_true(len && len % each == 0);
	for (size_t i = 0; i < len / each; i++)
		assert_int_equal(bytes[at + i * each], 0x21);
	at += (size_t)len;
	return (unsigned)(len / each);
}

/* No record is in two segments, and one that is larger than a segment has its own. */
static void test_segments(void **state)
{
	enum { MANY = 100000, LARGE = 5 << 20 };
	struct hprof *h = begin();
	unsigned seen = 0, segments = 0;

	(void)state;
	hprof_heap(h);
	for (unsigned i = 0; i < MANY; i++) {
		hprof_instance(h, i + 1, 0, 0x21, 8);
		hprof_value_object(h, i);
	}
	hprof_instance(h, 1 << 20, 0, 0x21, LARGE);
	for (unsigned i = 0; i < LARGE / 8; i++)
		hprof_value_object(h, i);
	hprof_instance(h, 1 << 21, 0, 0x21, 8);
	hprof_value_object(h, 3);
	end(h);
	header();
	for (; seen < MANY; segments++)
		seen += segment(33);
	assert_int_equal(seen, MANY);
	assert_true(segments > 1);
	assert_int_equal(segment(25 + LARGE), 1);
	assert_int_equal(segment(33), 1);
	record(0x2c, 0);
	assert_int_equal(at, nbytes);
}

/* Written as a whole or side by side, instances are the same, and so are the segments they are in. */
static void test_whole_instances(void **state)
{
	enum { N = 50000, FIELDS = 3 };
	static uint64_t ids[N];
	char *want = NULL;
	size_t nwant = 0;

	(void)state;
	for (unsigned i = 0; i < N; i++)
		ids[i] = 0xc000000000 + 48 * i;
	for (unsigned whole = 0; whole < 2; whole++) {
		struct hprof *h = begin();

		hprof_heap(h);
		for (unsigned i = 0; i < N; i += 500) {
			if (whole)
				hprof_instances(h, &ids[i], 500, 0x21);
			for (unsigned k = 0; !whole && k < 500; k++)
				hprof_instance(h, ids[i + k], 0, 0x21, 0);
			if (whole) {
				hprof_instance_of(h, i + 1, i, 0x22, &ids[i], FIELDS);
				continue;
			}
			hprof_instance(h, i + 1, i, 0x22, 8 * FIELDS);
			for (unsigned k = 0; k < FIELDS; k++)
				hprof_value_object(h, ids[i + k]);
		}
		end(h);
		if (whole)
			break;
		want = bytes;
		nwant = nbytes;
		bytes = NULL;
	}
	assert_true(nwant > 1 << 20);
	assert_int_equal(nbytes, nwant);
	assert_memory_equal(bytes, want, nwant);
	free(want);
}

static void test_full_disk(void **state)
{
	FILE *full = fopen("/dev/full", "w");
	struct hprof *h = NULL;

	(void)state;
	assert_int_equal(hprof_new(full, 0, &h, &e), 0);
	hprof_heap(h);
	for (unsigned i = 0; i < 100000 && !hprof_check(h, &e); i++) {
		hprof_instance(h, i + 1, 0, 0x21, 8);
		hprof_value_object(h, i);
	}
	assert_int_equal(hprof_check(h, &e), -ENOSPC);
	assert_string_equal(e.msg, "write: No space left on device");
	assert_int_equal(hprof_end(h, &e), -ENOSPC);
	hprof_free(h);
	fclose(full);
}

/* ---- several writers ---- */

enum { SECTIONS = 40, EACH = 3000, WIDE_SECTION = 7, WIDE_BYTES = 3 << 20 };

/* One of two who take turns. */
struct teller {
	struct hprof *h;
	unsigned first;
	pthread_t thread;
};

/* An array that has a segment of its own, and more than one segment of instances. */
static void tell_wide(struct hprof *h)
{
	hprof_array(h, 0x77, 0, HPROF_BYTE, WIDE_BYTES);
	for (unsigned i = 0; i < WIDE_BYTES; i++)
		hprof_value_bytes(h, "x", 1);
	for (unsigned i = 0; i < 20; i++)
		hprof_instances(h, (uint64_t[EACH]){}, EACH, 0x21);
}

static void *tell_turns(void *arg)
{
	struct teller *t = arg;

	for (unsigned k = t->first; k < SECTIONS; k += 2) {
		hprof_section(t->h, k);
		if (k == WIDE_SECTION)
			tell_wide(t->h);
		for (unsigned i = 0; i < EACH; i++) {
			hprof_instance(t->h, 1 + k * EACH + i, 0, 0x21, 8);
			hprof_value_object(t->h, i);
		}
		hprof_section_end(t->h);
	}
	return NULL;
}

static void tell_by_two(struct hprof *h)
{
	struct teller all[2] = { { .h = h, .first = 1 }, { .first = 0 } };

	hprof_heap(h);
	hprof_root_unknown(h, 0x31);
	hprof_sections(h);
	assert_int_equal(hprof_beside(h, &all[1].h, &e), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&all[i].thread, NULL, tell_turns, &all[i]), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(all[i].thread, NULL);
	hprof_free(all[1].h);
}

/* Passes what tell_wide() told. */
static void skip_wide(void)
{
	uint64_t instances = 0;

	record(0x1c, 18 + WIDE_BYTES);
	is(1, 0x23);
	is(8, 0x77);
	at += 4 + 4 + 1 + WIDE_BYTES;
	while (instances < 20 * EACH) {
		uint32_t n;

		is(1, 0x1c);
		is(4, 0);
		n = (uint32_t)take(4);
		assert_true(n && n <= HPROF_SEGMENT_BYTES);
		for (; n && instances < 20 * EACH; n -= 25, instances++)
			at += 25;
		if (n) /* the section's own ones begin in the same segment */
			assert_int_equal(n % 33, 0);
		if (n)
			return;
	}
}

/* What two threads tell is in the order of the sections. */
static void test_sections(void **state)
{
	struct hprof *h = begin();
	uint64_t id = 1;

	(void)state;
	tell_by_two(h);
	end(h);
	header();
	record(0x1c, 9);
	is(1, 0xff);
	is(8, 0x31);
	for (unsigned k = 0; k < SECTIONS; k++) {
		if (k == WIDE_SECTION)
			skip_wide();
		else
			record(0x1c, 33 * EACH);
		for (unsigned i = 0; i < EACH; i++, id++) {
			is(1, 0x21);
			is(8, id);
			at += 4 + 8;
			is(4, 8);
			is(8, i);
		}
	}
	record(0x2c, 0);
	assert_int_equal(at, nbytes);
}

/* One who gives up within a record holds nobody up. */
static void test_a_section_that_fails(void **state)
{
	struct hprof *h = begin(), *beside = NULL;

	(void)state;
	hprof_heap(h);
	hprof_sections(h);
	assert_int_equal(hprof_beside(h, &beside, &e), 0);
	hprof_section(h, 0);
	hprof_array(h, 0x77, 0, HPROF_BYTE, WIDE_BYTES);
	hprof_value_bytes(h, "x", 1);
	hprof_section_end(h);
	hprof_section(beside, 1);
	hprof_instance(beside, 1, 0, 0x21, 0);
	hprof_section_end(beside);
	hprof_free(beside);
	end(h);
	header();
	record(0x1c, 18 + WIDE_BYTES);
	at += 18 + 1;
	record(0x1c, 25);
	at += 25;
	record(0x2c, 0);
	assert_int_equal(at, nbytes);
}

static void test_sections_on_a_full_disk(void **state)
{
	FILE *full = fopen("/dev/full", "w");
	struct hprof *h = NULL;

	(void)state;
	assert_int_equal(hprof_new(full, 0, &h, &e), 0);
	tell_by_two(h);
	assert_int_equal(hprof_end(h, &e), -ENOSPC);
	assert_string_equal(e.msg, "write: No space left on device");
	hprof_free(h);
	fclose(full);
}

static int free_bytes(void **state)
{
	(void)state;
	free(bytes);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_before_the_heap),
		cmocka_unit_test(test_roots_and_classes),
		cmocka_unit_test(test_objects),
		cmocka_unit_test(test_segments),
		cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_whole_instances),
		cmocka_unit_test(test_sections),
		cmocka_unit_test(test_sections_on_a_full_disk),
		cmocka_unit_test(test_a_section_that_fails),
	};

	return cmocka_run_group_tests(tests, NULL, free_bytes);
}
