/* tests/unit/test_heapdump_layouts.c - lists of fields that were seen before, and others. */
#include "ingest/heapdump/heapdump.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mkdump.h"

static struct err e;

static struct heapdump_record next(struct heapdump *d, enum heapdump_kind kind)
{
	struct heapdump_record r;
	int ret = heapdump_next(d, &r, &e);

	if (ret)
		fail_msg("%s", e.msg);
	assert_int_equal(r.kind, kind);
	return r;
}

static void field(struct heapdump *d, uint64_t offset, uint64_t addr)
{
	struct heapdump_field f;

	assert_int_equal(heapdump_field(d, &f, &e), 1);
	assert_int_equal(f.kind, HEAPDUMP_PTR);
	assert_int_equal(f.offset, offset);
	assert_int_equal(f.addr, addr);
}

static void no_field(struct heapdump *d)
{
	struct heapdump_field f;

	assert_int_equal(heapdump_field(d, &f, &e), 0);
}

enum { LAYOUT_WORDS = 40 };

/* Pointers at so many words from the first one on, each some words behind the one before. */
static void object_with(uint64_t addr, unsigned first, unsigned pointers, unsigned step)
{
	uint64_t words[LAYOUT_WORDS];

	for (unsigned i = 0; i < LAYOUT_WORDS; i++)
		words[i] = addr + i;
	DUMP_NUMBERS(1, addr);
	dump_words(words, LAYOUT_WORDS);
	for (unsigned i = 0; i < pointers; i++)
		DUMP_NUMBERS(1, dump.ptr * (first + i * step));
	dump_number(0);
}

/* By the layout and field by field: the same. */
static void has(struct heapdump *d, const struct heapdump_object *o, unsigned first,
		unsigned pointers, unsigned step)
{
	uint64_t addrs[HEAPDUMP_LAYOUT_MAX];

	if (o->layout) {
		assert_int_equal(o->layout->n, pointers);
		heapdump_pointers(d, o, addrs);
	}
	for (unsigned i = 0; i < pointers; i++) {
		unsigned at = first + i * step;

		if (o->layout) {
			assert_int_equal(o->layout->offset[i], dump.ptr * at);
			assert_int_equal(addrs[i], o->addr + at);
		}
		field(d, dump.ptr * at, o->addr + at);
	}
	no_field(d);
}

/*
 * Lists that differ in their first bytes, in their last ones and in their length, more of one size than
 * are kept, again and again; what is kept of one comes back as long as the list is.
 */
static void check_layouts(void)
{
	static const struct {
		unsigned first, pointers, step;
	} lists[] = { { 0, 0, 1 }, { 0, 1, 1 },	  { 1, 1, 1 },	 { 0, 8, 1 },  { 0, 8, 2 },
		      { 0, 9, 2 }, { 17, 20, 1 }, { 17, 21, 1 }, { 4, 32, 1 }, { 4, 33, 1 } };
	struct heapdump *d;
	unsigned kept = 0;

	for (unsigned i = 0; i < 600; i++) {
		unsigned k = i < 500 ? i % 7 * i % ARRAY_LEN(lists) : 5;

		object_with(0x10000 + 1024 * i, lists[k].first, lists[k].pointers, lists[k].step);
	}
	dump_number(0);
	d = dump_open(false);
	for (unsigned pass = 0; pass < 2; pass++) {
		next(d, HEAPDUMP_PARAMS);
		for (unsigned i = 0; i < 600; i++) {
			unsigned k = i < 500 ? i % 7 * i % ARRAY_LEN(lists) : 5;
			struct heapdump_record r = next(d, HEAPDUMP_OBJECT);

			if (r.object.layout && r.object.layout->tag)
				assert_int_equal(r.object.layout->tag, k + 1);
			kept += r.object.layout && r.object.layout->tag && i >= 500;
			if (i % 3)
				has(d, &r.object, lists[k].first, lists[k].pointers, lists[k].step);
			if (r.object.layout)
				r.object.layout->tag = k + 1;
			assert_true(lists[k].pointers <= HEAPDUMP_LAYOUT_MAX || !r.object.layout);
		}
		next(d, HEAPDUMP_EOF);
		assert_int_equal(heapdump_rewind(d, &e), 0);
	}
	assert_true(kept > 180);
	dump_close(d);
}

static void test_layouts(void **state)
{
	(void)state;
	for (unsigned big = 0; big < 2; big++)
		for (unsigned ptr = 4; ptr <= 8; ptr += 4) {
			dump_begin(7, big, ptr);
			check_layouts();
		}
}

/* A pointer that lies half behind its object is damage, whatever was seen before. */
static void test_layout_outside(void **state)
{
	static uint64_t words[65]; /* kept beside those of 8 bytes */
	struct heapdump_field f;
	struct heapdump *d;

	(void)state;
	dump_begin(7, false, 8);
	DUMP_NUMBERS(1, 0xc000010000);
	dump_words(words, ARRAY_LEN(words));
	DUMP_NUMBERS(1, 8, 0);
	DUMP_NUMBERS(1, 0xc000011000);
	DUMP_WORDS(1);
	DUMP_NUMBERS(1, 8, 0);
	for (unsigned i = 0; i < 20; i++)
		object_with(0xc000020000, 0, 0, 1);
	d = dump_open(false);
	next(d, HEAPDUMP_PARAMS);
	assert_non_null(next(d, HEAPDUMP_OBJECT).object.layout);
	assert_null(next(d, HEAPDUMP_OBJECT).object.layout);
	assert_int_equal(heapdump_field(d, &f, &e), -EBADMSG);
	dump_close(d);
}

/* The longest list that is kept has 64 bytes with its end; one of 65 is read each time. */
static void test_longest(void **state)
{
	struct heapdump *d;

	(void)state;
	dump_begin(7, false, 8);
	for (unsigned i = 0; i < 4; i++)
		object_with(0x10000 + 1024 * i, 13 + i % 2, 22, 1);
	d = dump_open(false);
	next(d, HEAPDUMP_PARAMS);
	for (unsigned i = 0; i < 4; i++) {
		struct heapdump_record r = next(d, HEAPDUMP_OBJECT);

		assert_int_equal(r.object.layout == NULL, i % 2);
		has(d, &r.object, 13 + i % 2, 22, 1);
	}
	dump_close(d);
}

/* What is not read ahead can be read nevertheless. */
static void test_seek_until(void **state)
{
	enum { N = 2500 }; /* more than the reader's window has room for */
	uint64_t offs[N];
	struct heapdump *d;

	(void)state;
	dump_begin(7, false, 8);
	for (unsigned i = 0; i < N; i++)
		object_with(0x10000 + 1024 * i, 0, i % 3, 1);
	dump_number(0);
	d = dump_open(false);
	next(d, HEAPDUMP_PARAMS);
	for (unsigned i = 0; i < N; i++)
		offs[i] = next(d, HEAPDUMP_OBJECT).off;
	for (unsigned from = 0; from < N; from += 397)
		for (unsigned until = 0; until <= N; until += 500) {
			assert_int_equal(heapdump_rewind(d, &e), 0);
			next(d, HEAPDUMP_PARAMS);
			assert_int_equal(heapdump_seek_until(d, offs[from],
							     until < N ? offs[until] : 0, &e),
					 0);
			for (unsigned i = from; i < N; i++) {
				struct heapdump_record r = next(d, HEAPDUMP_OBJECT);

				assert_int_equal(r.off, offs[i]);
				has(d, &r.object, 0, i % 3, 1);
			}
			next(d, HEAPDUMP_EOF);
		}
	dump_close(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layouts),
		cmocka_unit_test(test_layout_outside),
		cmocka_unit_test(test_longest),
		cmocka_unit_test(test_seek_until),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
