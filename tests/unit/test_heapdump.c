/* tests/unit/test_heapdump.c - dumps of every version, written here by the format's tables. */
#include "ingest/heapdump/heapdump.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "mkdump.h"

static struct err e;

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

static void field(struct heapdump *d, enum heapdump_field_kind kind, uint64_t offset, uint64_t type,
		  uint64_t addr)
{
	struct heapdump_field f;

	assert_int_equal(heapdump_field(d, &f, &e), 1);
	assert_int_equal(f.kind, kind);
	assert_int_equal(f.offset, offset);
	assert_int_equal(f.type, type);
	assert_int_equal(f.addr, addr);
}

static void no_field(struct heapdump *d)
{
	struct heapdump_field f;

	assert_int_equal(heapdump_field(d, &f, &e), 0);
}

static void is(const struct heapdump_text *t, const char *want)
{
	assert_int_equal(t->len, strlen(want));
	assert_memory_equal(t->at, want, t->len);
}

/* ---- every record ---- */

static void every_record(void)
{
	DUMP_NUMBERS(8, 0x500100, 0x500200); /* itab */
	dump_number(3);			     /* type */
	DUMP_NUMBERS(0x500200, 24);
	dump_text("main.node");
	dump_number(1);
	DUMP_NUMBERS(1, 0xc000010000); /* object */
	DUMP_WORDS(0xc000020000, 7, 0xc000020008);
	DUMP_NUMBERS(1, 0, 1, 2 * dump.ptr, 0);
	DUMP_NUMBERS(4, 0xc000000180, 0xc00004a000, 18, 0x401234, 4, 1, 0, 12345);
	dump_text("chan receive");
	DUMP_NUMBERS(0, 0x5a0000, 0, 0);
	DUMP_NUMBERS(5, 0xc00004a000, 0, 0); /* frame */
	DUMP_WORDS(1, 0xc000010000);
	DUMP_NUMBERS(0x402000, 0x402010, 0x402014);
	dump_text("main.wait");
	DUMP_NUMBERS(1, dump.ptr, 0);
	DUMP_NUMBERS(14, 0xc00004b000, 0xc000000180, 0xc00004a100, 0x402020, 0xc000030000, 0x403000,
		     0);
	DUMP_NUMBERS(15, 0xc00004c000, 0xc000000180, 0x500300, 0xc000030010, 0, 0);
	DUMP_NUMBERS(9, 0x5a0000, 0, 4242); /* thread */
	DUMP_NUMBERS(12, 0x600000);	    /* data */
	DUMP_WORDS(0xc000010000, 3);
	DUMP_NUMBERS(1, 0, 0);
	DUMP_NUMBERS(13, 0x700000, 0, 0); /* bss, empty */
	DUMP_NUMBERS(7, 0xc000010000, 0xc000030000, 0x403000, 0x500400, 0x500500);
	DUMP_NUMBERS(11, 0xc000010000, 0xc000030000, 0x403000, 0x500400, 0x500500);
	dump_number(10); /* memstats */
	for (unsigned i = 0; i < 24 + 256 + 1; i++)
		dump_number(1000 + i);
	DUMP_NUMBERS(16, 0x7f0000, 48, 2); /* memory profile */
	dump_text("main.make");
	dump_text("/src/main.go");
	dump_number(17);
	dump_text("main.main");
	dump_text("/src/main.go");
	DUMP_NUMBERS(5, 100, 40);
	DUMP_NUMBERS(17, 0xc000010000, 0x7f0000);
	dump_number(0);
}

static void check_every_record(struct heapdump *d)
{
	struct heapdump_record r = next(d, HEAPDUMP_PARAMS);

	assert_int_equal(heapdump_params(d)->ptrsize, dump.ptr);
	assert_int_equal(heapdump_params(d)->end, 0xc000400000);
	assert_int_equal(heapdump_params(d)->ncpu, 2);
	assert_int_equal(heapdump_params(d)->arch_char, dump.version < 7 ? '6' : 0);
	is(&heapdump_params(d)->arch, "amd64");
	is(&heapdump_params(d)->toolchain, dump.version < 7 ? "" : "go1.27.4");
	r = next(d, HEAPDUMP_ITAB);
	assert_int_equal(r.itab.type, 0x500200);
	r = next(d, HEAPDUMP_TYPE);
	assert_int_equal(r.type.size, 24);
	is(&r.type.name, "main.node");
	r = next(d, HEAPDUMP_OBJECT);
	assert_int_equal(r.object.addr, 0xc000010000);
	assert_int_equal(r.object.contents.len, 3 * dump.ptr);
	field(d, HEAPDUMP_PTR, 0, 0, dump.ptr == 8 ? 0xc000020000 : 0x00020000);
	field(d, HEAPDUMP_PTR, 2 * dump.ptr, 0, dump.ptr == 8 ? 0xc000020008 : 0x00020008);
	no_field(d);
	no_field(d);
	r = next(d, HEAPDUMP_GOROUTINE);
	assert_int_equal(r.goroutine.goid, 18);
	assert_int_equal(r.goroutine.status, 4);
	assert_true(r.goroutine.system);
	assert_int_equal(r.goroutine.waitsince, 12345);
	is(&r.goroutine.reason, "chan receive");
	assert_int_equal(r.goroutine.m, 0x5a0000);
	r = next(d, HEAPDUMP_FRAME);
	assert_int_equal(r.frame.pc, 0x402010);
	is(&r.frame.name, "main.wait");
	field(d, HEAPDUMP_PTR, dump.ptr, 0, dump.ptr == 8 ? 0xc000010000 : 0x00010000);
	no_field(d);
	r = next(d, HEAPDUMP_DEFER);
	assert_int_equal(r.defer.fn, 0xc000030000);
	r = next(d, HEAPDUMP_PANIC);
	assert_int_equal(r.panic.data, 0xc000030010);
	r = next(d, HEAPDUMP_OSTHREAD);
	assert_int_equal(r.osthread.procid, 4242);
	r = next(d, HEAPDUMP_DATA); /* its fields are skipped */
	assert_int_equal(r.segment.addr, 0x600000);
	r = next(d, HEAPDUMP_BSS);
	assert_int_equal(r.segment.contents.len, 0);
	r = next(d, HEAPDUMP_FINALIZER);
	assert_int_equal(r.finalizer.ot, 0x500500);
	next(d, HEAPDUMP_QUEUED);
	r = next(d, HEAPDUMP_MEMSTATS);
	assert_int_equal(r.memstats.alloc, 1000);
	assert_int_equal(r.memstats.heap_objects, 1011);
	assert_int_equal(r.memstats.num_gc, 1280);
	r = next(d, HEAPDUMP_MEMPROF);
	assert_int_equal(r.memprof.size, 48);
	assert_int_equal(r.memprof.nlines, 2);
	is(&r.memprof.lines[0].func, "main.make");
	assert_int_equal(r.memprof.lines[1].line, 5);
	assert_int_equal(r.memprof.frees, 40);
	r = next(d, HEAPDUMP_SAMPLE);
	assert_int_equal(r.sample.bucket, 0x7f0000);
	next(d, HEAPDUMP_EOF);
	next(d, HEAPDUMP_EOF);
	assert_int_equal(heapdump_offset(d), dump.n);
}

static void test_every_record(void **state)
{
	(void)state;
	for (unsigned version = 5; version <= 7; version++)
		for (unsigned how = 0; how < 8; how++) {
			struct heapdump *d;

			dump_begin(version, how & 1, how & 2 ? 4 : 8);
			every_record();
			d = dump_open(how & 4);
			check_every_record(d);
			if (!(how & 4)) {
				assert_int_equal(heapdump_rewind(d, &e), 0);
				check_every_record(d);
			}
			dump_close(d);
		}
}

/* Numbers of each length, in the window's middle and where it ends. */
static void test_numbers(void **state)
{
	static const uint64_t near[] = { 0, 1, UINT64_MAX };
	struct heapdump *d;

	(void)state;
	dump_begin(7, false, 8);
	for (unsigned bit = 0; bit < 64; bit++)
		for (unsigned i = 0; i < 3; i++) {
			DUMP_NUMBERS(1, (1ull << bit) + near[i]);
			DUMP_WORDS(bit, i);
			DUMP_NUMBERS(1, 8, 0);
		}
	d = dump_open(false);
	next(d, HEAPDUMP_PARAMS);
	for (unsigned bit = 0; bit < 64; bit++)
		for (unsigned i = 0; i < 3; i++) {
			struct heapdump_record r = next(d, HEAPDUMP_OBJECT);

			assert_int_equal(r.object.addr, (1ull << bit) + near[i]);
			assert_int_equal(r.object.contents.len, 16);
			if (bit % 2)
				field(d, HEAPDUMP_PTR, 8, 0, i);
		}
	dump_close(d);
}

/* ---- what is other in old versions ---- */

static void type(uint64_t addr, uint64_t size, const char *name, uint64_t pointer)
{
	DUMP_NUMBERS(dump.at[16] == 10 ? 7 : 3, addr, size);
	dump_text(name);
	dump_number(pointer);
}

static void test_go_1_4(void **state)
{
	struct heapdump *d;

	(void)state;
	dump_begin(4, false, 8);
	DUMP_NUMBERS(1, 0xc208000000);
	DUMP_WORDS(0xc208010000, 0x500100, 0xc208010010, 0x500200, 0xc208010020);
	DUMP_NUMBERS(1, 0, 2, 8, 3, 24, 0, 0);
	d = dump_open(false);
	next(d, HEAPDUMP_PARAMS);
	next(d, HEAPDUMP_OBJECT);
	field(d, HEAPDUMP_PTR, 0, 0, 0xc208010000);
	field(d, HEAPDUMP_IFACE, 16, 0x500100, 0xc208010010);
	field(d, HEAPDUMP_EFACE, 32, 0x500200, 0xc208010020);
	no_field(d);
	next(d, HEAPDUMP_EOF);
	dump_close(d);
}

/* Whether the second word of an interface is a pointer is told by its first one, or not at all. */
static void test_go_1_4_values(void **state)
{
	struct heapdump *d;

	(void)state;
	dump_begin(4, false, 8);
	type(0x500200, 4, "int32", 0);
	type(0x500300, 8, "*main.node", 1);
	DUMP_NUMBERS(8, 0x500100, 0x500200, 8, 0x500110, 0x500300);
	DUMP_NUMBERS(1, 0xc208000000);
	DUMP_WORDS(0x500100, 1, 0x500110, 0xc208010000, 0x500200, 3, 0x500400, 0xc208010020);
	DUMP_NUMBERS(2, 0, 2, 16, 3, 32, 3, 48, 0);
	d = dump_open(false);
	for (int i = 0; i < 2; i++) {
		next(d, HEAPDUMP_PARAMS);
		next(d, HEAPDUMP_TYPE);
		no_field(d);
		next(d, HEAPDUMP_TYPE);
		next(d, HEAPDUMP_ITAB);
		next(d, HEAPDUMP_ITAB);
		next(d, HEAPDUMP_OBJECT);
		field(d, HEAPDUMP_IFACE, 8, 0x500100, 0);
		field(d, HEAPDUMP_IFACE, 24, 0x500110, 0xc208010000);
		field(d, HEAPDUMP_EFACE, 40, 0x500200, 0);
		field(d, HEAPDUMP_EFACE, 56, 0x500400, 0xc208010020);
		no_field(d);
		assert_int_equal(heapdump_rewind(d, &e), 0);
	}
	dump_close(d);
}

/* A node: string, slice, interface, empty interface, pointer. Told in no order of offsets. */
static void go_1_3_types(void)
{
	type(0x500200, 88, "main.node", 1);
	DUMP_NUMBERS(1, 72, 2, 0, 3, 16, 4, 40, 5, 56, 0);
	type(0x500300, 16, "main.pair", 1);
	DUMP_NUMBERS(1, 8, 0);
	type(0x500400, 8, "int", 0);
	dump_number(0);
	DUMP_NUMBERS(8, 0x500100, 1, 8, 0x500110, 0);
}

static void check_go_1_3_types(struct heapdump *d)
{
	struct heapdump_record r;

	next(d, HEAPDUMP_PARAMS);
	assert_int_equal(heapdump_params(d)->hchan_bytes, DUMP_HCHAN);
	r = next(d, HEAPDUMP_TYPE);
	is(&r.type.name, "main.node");
	field(d, HEAPDUMP_STRING, 0, 0, 0);
	field(d, HEAPDUMP_SLICE, 16, 0, 0);
	field(d, HEAPDUMP_IFACE, 48, 0, 0);
	next(d, HEAPDUMP_TYPE);
	next(d, HEAPDUMP_TYPE);
	no_field(d);
	r = next(d, HEAPDUMP_ITAB);
	assert_true(r.itab.indirect);
	next(d, HEAPDUMP_ITAB);
}

static void object_1_3(uint64_t addr, uint64_t type, uint64_t kind)
{
	DUMP_NUMBERS(1, addr, type, kind);
}

/* One value, with an interface that holds a number, and then one that holds a pointer. */
static void test_go_1_3(void **state)
{
	struct heapdump_record r;
	struct heapdump *d;

	(void)state;
	dump_begin(3, false, 8);
	go_1_3_types();
	object_1_3(0xc208000000, 0x500200, 0);
	DUMP_WORDS(0xc208010000, 3, 0xc208010010, 1, 1, 0x500100, 0xc208010020, 0x500400, 7,
		   0xc208010030, 0, 0xc208019999);
	object_1_3(0xc208000060, 0x500200, 0);
	DUMP_WORDS(0, 0, 0, 0, 0, 0x500110, 9, 0x500200, 0xc208010040, 0, 0);
	DUMP_NUMBERS(2);
	dump_text("runtime type info");
	DUMP_NUMBERS(0xc208010000, 0);
	d = dump_open(false);
	check_go_1_3_types(d);
	r = next(d, HEAPDUMP_OBJECT);
	assert_int_equal(r.object.type, 0x500200);
	field(d, HEAPDUMP_STRING, 0, 0, 0xc208010000);
	field(d, HEAPDUMP_SLICE, 16, 0, 0xc208010010);
	field(d, HEAPDUMP_IFACE, 48, 0x500100, 0xc208010020);
	field(d, HEAPDUMP_EFACE, 64, 0x500400, 0);
	field(d, HEAPDUMP_PTR, 72, 0, 0xc208010030);
	no_field(d);
	next(d, HEAPDUMP_OBJECT);
	field(d, HEAPDUMP_STRING, 0, 0, 0);
	field(d, HEAPDUMP_SLICE, 16, 0, 0);
	field(d, HEAPDUMP_IFACE, 48, 0x500110, 0);
	field(d, HEAPDUMP_EFACE, 64, 0x500200, 0xc208010040);
	r = next(d, HEAPDUMP_OTHERROOT);
	is(&r.root.text, "runtime type info");
	next(d, HEAPDUMP_EOF);
	dump_close(d);
}

/* Arrays, channels, objects without pointers, and those that nothing is known of. */
static void test_go_1_3_kinds(void **state)
{
	static const uint64_t chan[DUMP_HCHAN / 8 + 4] = { [0] = 0xc208010000,
							   [DUMP_HCHAN / 8 + 1] = 21,
							   [DUMP_HCHAN / 8 + 3] = 22 };
	struct heapdump *d;

	(void)state;
	dump_begin(3, false, 8);
	go_1_3_types();
	object_1_3(0xc208000000, 0x500300, 1);
	DUMP_WORDS(1, 11, 2, 12, 3, 13, 4); /* three, and a word that is left over */
	object_1_3(0xc208000040, 0x500300, 2);
	dump_words(chan, 4 + DUMP_HCHAN / 8);
	object_1_3(0xc208000100, 0, 127);
	DUMP_WORDS(31, 32);
	object_1_3(0xc208000110, 0, 0);
	DUMP_WORDS(41, 42);
	object_1_3(0xc208000120, 0x599999, 0); /* a type that was never told */
	DUMP_WORDS(51);
	object_1_3(0xc208000128, 0x500300, 1); /* shorter than its type */
	DUMP_WORDS(61);
	dump_number(0);
	d = dump_open(false);
	check_go_1_3_types(d);
	next(d, HEAPDUMP_OBJECT);
	for (uint64_t i = 0; i < 3; i++)
		field(d, HEAPDUMP_PTR, 16 * i + 8, 0, 11 + i);
	no_field(d);
	next(d, HEAPDUMP_OBJECT);
	field(d, HEAPDUMP_PTR, DUMP_HCHAN + 8, 0, 21);
	field(d, HEAPDUMP_PTR, DUMP_HCHAN + 24, 0, 22);
	no_field(d);
	next(d, HEAPDUMP_OBJECT);
	field(d, HEAPDUMP_PTR, 0, 0, 31);
	field(d, HEAPDUMP_PTR, 8, 0, 32);
	no_field(d);
	next(d, HEAPDUMP_OBJECT);
	no_field(d);
	next(d, HEAPDUMP_OBJECT);
	field(d, HEAPDUMP_PTR, 0, 0, 51);
	no_field(d);
	next(d, HEAPDUMP_OBJECT);
	no_field(d);
	next(d, HEAPDUMP_EOF);
	dump_close(d);
}

/* gccgo writes no fields with its types: any word of a typed object may be a pointer. */
static void test_gccgo(void **state)
{
	struct heapdump *d;

	(void)state;
	dump_begin_gccgo();
	type(0x500200, 16, "main.node", 1);
	type(0x500400, 8, "int", 0);
	object_1_3(0xc208000000, 0x500200, 0);
	DUMP_WORDS(1, 2);
	object_1_3(0xc208000010, 0x500400, 1);
	DUMP_WORDS(3, 4);
	dump_number(0);
	d = dump_open(false);
	next(d, HEAPDUMP_PARAMS);
	next(d, HEAPDUMP_TYPE);
	no_field(d);
	next(d, HEAPDUMP_TYPE);
	next(d, HEAPDUMP_OBJECT);
	field(d, HEAPDUMP_PTR, 0, 0, 1);
	field(d, HEAPDUMP_PTR, 8, 0, 2);
	no_field(d);
	next(d, HEAPDUMP_OBJECT);
	no_field(d);
	next(d, HEAPDUMP_EOF);
	assert_int_equal(heapdump_offset(d), dump.n);
	dump_close(d);
}

/* More places than a type has words are no places of it. */
static void test_go_1_3_places(void **state)
{
	struct heapdump *d;

	(void)state;
	dump_begin(3, false, 8);
	type(0x500200, 8, "main.node", 1);
	DUMP_NUMBERS(1, 0, 1, 0, 0);
	object_1_3(0xc208000000, 0x500200, 0);
	DUMP_WORDS(1, 2);
	type(0x500300, 8, "main.wide", 1);
	DUMP_NUMBERS(1, 8, 0);
	d = dump_open(false);
	next(d, HEAPDUMP_PARAMS);
	next(d, HEAPDUMP_TYPE);
	next(d, HEAPDUMP_OBJECT);
	field(d, HEAPDUMP_PTR, 0, 0, 1);
	field(d, HEAPDUMP_PTR, 8, 0, 2);
	no_field(d);
	assert_int_equal(heapdump_next(d, &(struct heapdump_record){}, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "a field of kind 1 at 8 of 8 bytes, in the type"));
	dump_close(d);
}

static void every_draft_record(void)
{
	type(0x500200, 40, "main.node", 1);
	DUMP_NUMBERS(3, 0, 0, 1, 8, 4, 24);
	DUMP_NUMBERS(12, 0x500100, 1);
	object_1_3(0xc208000000, 0x500200, 0);
	DUMP_WORDS(0xc208010000, 0xc208010010, 2, 0x500200, 0xc208010020);
	DUMP_NUMBERS(8, 0xc2080001e0, 0xc208004000, 7, 0x401234, 4, 0, 1, 99);
	dump_text("chan receive");
	DUMP_NUMBERS(9, 0xc208004000, 0xc208004100, 0x402000, 0x402010);
	dump_text("main.wait");
	DUMP_NUMBERS(4, 0xc208004010, 0xc208000000, 0xc208004000);
	DUMP_NUMBERS(5, 0x600000, 0xc208000000);
	dump_number(6);
	dump_text("runtime type info");
	dump_number(0xc208010000);
	DUMP_NUMBERS(11, 0xc208000000, 0xc208030000, 0x403000, 0x500400, 0x500500);
	dump_number(3);
}

static void check_draft_record(struct heapdump *d)
{
	struct heapdump_record r;

	next(d, HEAPDUMP_PARAMS);
	assert_true(heapdump_draft(d));
	assert_int_equal(heapdump_params(d)->hchan_bytes, DUMP_HCHAN);
	next(d, HEAPDUMP_TYPE);
	r = next(d, HEAPDUMP_ITAB);
	assert_true(r.itab.indirect);
	next(d, HEAPDUMP_OBJECT);
	field(d, HEAPDUMP_PTR, 0, 0, 0xc208010000);
	field(d, HEAPDUMP_STRING, 8, 0, 0xc208010010);
	field(d, HEAPDUMP_EFACE, 32, 0x500200, 0xc208010020);
	no_field(d);
	r = next(d, HEAPDUMP_GOROUTINE);
	assert_int_equal(r.goroutine.sp, 0xc208004000);
	assert_int_equal(r.goroutine.goid, 7);
	assert_true(r.goroutine.background);
	is(&r.goroutine.reason, "chan receive");
	r = next(d, HEAPDUMP_FRAME);
	assert_int_equal(r.frame.parent_sp, 0xc208004100);
	assert_int_equal(r.frame.pc, 0x402010);
	is(&r.frame.name, "main.wait");
	no_field(d);
	r = next(d, HEAPDUMP_STACKROOT);
	assert_int_equal(r.pointer.addr, 0xc208000000);
	assert_int_equal(r.pointer.sp, 0xc208004000);
	r = next(d, HEAPDUMP_DATAROOT);
	assert_int_equal(r.pointer.at, 0x600000);
	r = next(d, HEAPDUMP_OTHERROOT);
	is(&r.root.text, "runtime type info");
	r = next(d, HEAPDUMP_FINALIZER);
	assert_int_equal(r.finalizer.ot, 0x500500);
	next(d, HEAPDUMP_EOF);
	assert_int_equal(heapdump_offset(d), dump.n);
}

static void test_draft(void **state)
{
	struct heapdump *d;

	(void)state;
	dump_begin_draft();
	every_draft_record();
	d = dump_open(false);
	check_draft_record(d);
	assert_int_equal(heapdump_rewind(d, &e), 0);
	check_draft_record(d);
	dump_close(d);
	/* The numbers of one format are none of the other. */
	dump_begin_draft();
	dump_number(13);
	d = dump_open(false);
	next(d, HEAPDUMP_PARAMS);
	assert_int_equal(heapdump_next(d, &(struct heapdump_record){}, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "unknown kind 13"));
	dump_close(d);
	dump_begin(3, false, 8);
	dump_number(HEAPDUMP_STACKROOT);
	d = dump_open(false);
	next(d, HEAPDUMP_PARAMS);
	assert_int_equal(heapdump_next(d, &(struct heapdump_record){}, &e), -EBADMSG);
	dump_close(d);
}

/* ---- damage ---- */

static int read_all(struct heapdump *d)
{
	struct heapdump_record r;
	struct heapdump_field f;
	int ret;

	do {
		ret = heapdump_next(d, &r, &e);
		while (!ret && (ret = heapdump_field(d, &f, &e)) > 0)
			ret = 0;
	} while (!ret && r.kind);
	return ret;
}

/* The records, and where they break off, are the same when objects are passed over. */
static void same_but_objects(struct heapdump *d)
{
	struct heapdump_record r;
	uint64_t kinds[2] = { 0 }, sum[2] = { 0 };
	char said[2][sizeof(e.msg)];

	for (int pass = 0; pass < 2; pass++) {
		int ret = 0;

		memset(&e, 0, sizeof(e));
		if (pass)
			assert_int_equal(heapdump_rewind(d, &e), 0);
		while (!ret) {
			ret = pass ? heapdump_next_other(d, &r, &e) : heapdump_next(d, &r, &e);
			if (ret || !r.kind)
				break;
			kinds[pass] += r.kind != HEAPDUMP_OBJECT;
			sum[pass] += r.kind != HEAPDUMP_OBJECT ? r.off * r.kind : 0;
		}
		memcpy(said[pass], e.msg, sizeof(e.msg));
	}
	assert_int_equal(kinds[0], kinds[1]);
	assert_int_equal(sum[0], sum[1]);
	assert_string_equal(said[0], said[1]);
}

/* Wherever it is cut, that is said, with a place; and nothing is read that is not there. */
static void cut_everywhere(void)
{
	size_t whole = dump.n;

	for (dump.n = 17; dump.n < whole; dump.n++)
		for (int piped = 0; piped < 2; piped++) {
			struct heapdump *d = dump_open(piped);

			assert_int_equal(read_all(d), -EBADMSG);
			assert_non_null(strstr(e.msg, "offset "));
			dump_close(d);
		}
}

static void test_every_cut(void **state)
{
	(void)state;
	dump_begin(7, false, 8);
	every_record();
	cut_everywhere();
	dump_begin_draft();
	every_draft_record();
	cut_everywhere();
}

static void flip_everywhere(void)
{
	for (size_t i = 16; i < dump.n; i++)
		for (unsigned bit = 0; bit < 8; bit++) {
			struct heapdump *d;

			dump.at[i] ^= (uint8_t)(1u << bit);
			d = dump_open(false);
			read_all(d);
			assert_int_equal(heapdump_rewind(d, &e), 0);
			same_but_objects(d);
			dump_close(d);
			dump.at[i] ^= (uint8_t)(1u << bit);
		}
}

static void test_every_flip(void **state)
{
	(void)state;
	dump_begin(7, false, 8);
	every_record();
	flip_everywhere();
	dump_begin_draft();
	every_draft_record();
	flip_everywhere();
}

static void refused(const char *bytes, int code, const char *why)
{
	struct heapdump *d = NULL;
	int fd = memfd_create("dump", 0);

	assert_int_equal(write(fd, bytes, strlen(bytes)), (ssize_t)strlen(bytes));
	assert_int_equal(heapdump_open(fd, &d, &e), code);
	if (!strstr(e.msg, why))
		fail_msg("%s", e.msg);
	close(fd);
}

static void test_no_dump(void **state)
{
	(void)state;
	refused("", -EBADMSG, "only 0 bytes");
	refused("go1.7 heap", -EBADMSG, "only 10 bytes");
	refused("\x7f"
		"ELF and much more",
		-EBADMSG, "does not begin with");
	refused("go1.8 heap dump\n", -ENOTSUP, "go1.8");
	refused("go1.2 heap dump\n", -ENOTSUP, "go1.2");
}

static void refuses(const char *why)
{
	struct heapdump *d = dump_open(false);

	assert_int_equal(read_all(d), -EBADMSG);
	assert_non_null(strstr(e.msg, why));
	dump_close(d);
}

/* Arguments that lie behind a frame are left out and counted; far behind, or of an object, they are damage. */
static void test_behind(void **state)
{
	static const uint64_t far[] = { 16, 1 << 20 };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct heapdump *d;

		dump_begin(7, true, 8);
		DUMP_NUMBERS(5, 0xc00004a000, 0, 0);
		DUMP_WORDS(0xc000010000);
		DUMP_NUMBERS(0x402000, 0x402010, 0x402014);
		dump_text("runtime.goexit");
		DUMP_NUMBERS(1, 8, 1, 0, 1, far[i], 0, 0);
		d = dump_open(false);
		next(d, HEAPDUMP_PARAMS);
		next(d, HEAPDUMP_FRAME);
		field(d, HEAPDUMP_PTR, 0, 0, 0xc000010000);
		if (!i) {
			no_field(d);
			assert_int_equal(heapdump_behind(d), 2);
			next(d, HEAPDUMP_EOF);
		} else {
			assert_int_equal(heapdump_field(d, &(struct heapdump_field){}, &e),
					 -EBADMSG);
		}
		dump_close(d);
	}
	dump_begin(7, false, 8);
	DUMP_NUMBERS(1, 0xc000010000);
	DUMP_WORDS(1);
	DUMP_NUMBERS(1, 8, 0);
	refuses("a field of kind 1 at 8 of 8 bytes, in the object");
}

/* An object that is longer than the window: its pointers are read where they lie. */
static void test_large_object(void **state)
{
	enum { N = 60000 };
	static uint64_t v[N];
	struct heapdump *d;

	(void)state;
	for (size_t i = 0; i < N; i++)
		v[i] = 0xc000000000 + i;
	dump_begin(7, false, 8);
	DUMP_NUMBERS(1, 0xc000010000);
	dump_words(v, N);
	for (size_t i = 0; i < N; i += 100)
		DUMP_NUMBERS(1, 8 * i);
	DUMP_NUMBERS(0, 0);
	d = dump_open(false);
	next(d, HEAPDUMP_PARAMS);
	next(d, HEAPDUMP_OBJECT);
	for (size_t i = 0; i < N; i += 100)
		field(d, HEAPDUMP_PTR, 8 * i, 0, v[i]);
	no_field(d);
	next(d, HEAPDUMP_EOF);
	dump_close(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_record),  cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_go_1_4),	      cmocka_unit_test(test_go_1_4_values),
		cmocka_unit_test(test_go_1_3),	      cmocka_unit_test(test_go_1_3_kinds),
		cmocka_unit_test(test_go_1_3_places), cmocka_unit_test(test_gccgo),
		cmocka_unit_test(test_draft),	      cmocka_unit_test(test_every_cut),
		cmocka_unit_test(test_every_flip),    cmocka_unit_test(test_no_dump),
		cmocka_unit_test(test_behind),	      cmocka_unit_test(test_large_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
