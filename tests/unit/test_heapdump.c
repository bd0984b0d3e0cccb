/* tests/unit/test_heapdump.c - dumps of every version, written here by the format's tables. */
#include "ingest/heapdump.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static struct err e;

/* ---- a writer ---- */

static struct {
	uint8_t at[1 << 20];
	size_t n;
	unsigned version;
	bool big;
	unsigned ptr;
} w;

static void number(uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		w.at[w.n++] = (uint8_t)(v | 0x80);
	w.at[w.n++] = (uint8_t)v;
}

static void numbers(const uint64_t *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		number(v[i]);
}

#define NUMBERS(...) \
	numbers((const uint64_t[]){ __VA_ARGS__ }, sizeof((uint64_t[]){ __VA_ARGS__ }) / 8)

static void text(const char *s)
{
	number(strlen(s));
	memcpy(w.at + w.n, s, strlen(s));
	w.n += strlen(s);
}

static void words(const uint64_t *v, size_t n)
{
	number(n * w.ptr);
	for (size_t i = 0; i < n; i++)
		for (unsigned b = 0; b < w.ptr; b++)
			w.at[w.n++] = (uint8_t)(v[i] >> 8 * (w.big ? w.ptr - 1 - b : b));
}

#define WORDS(...) words((const uint64_t[]){ __VA_ARGS__ }, sizeof((uint64_t[]){ __VA_ARGS__ }) / 8)

static void begin(unsigned version, bool big, unsigned ptr)
{
	w.n = 0;
	w.version = version;
	w.big = big;
	w.ptr = ptr;
	w.n = (size_t)snprintf((char *)w.at, 64, "go1.%u heap dump\n", version);
	NUMBERS(6, big, ptr);
	if (version == 3)
		number(96);
	NUMBERS(0xc000000000, 0xc000400000);
	if (version < 7)
		number('6');
	else
		text("amd64");
	text(version < 7 ? "" : "go1.27.4");
	number(2);
}

static struct heapdump *open_dump(bool pipe_it)
{
	int fds[2] = { -1, -1 };
	struct heapdump *d = NULL;
	ssize_t n = (ssize_t)w.n;

	if (pipe_it) {
		assert_int_equal(pipe(fds), 0);
		assert_true(w.n <= 65536);
		assert_int_equal(write(fds[1], w.at, w.n), n);
		close(fds[1]);
	} else {
		fds[0] = memfd_create("dump", 0);
		assert_int_equal(write(fds[0], w.at, w.n), n);
	}
	assert_int_equal(heapdump_open(fds[0], &d, &e), 0);
	return d;
}

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
	NUMBERS(8, 0x500100, 0x500200); /* itab */
	number(3);			/* type */
	NUMBERS(0x500200, 24);
	text("main.node");
	number(1);
	NUMBERS(1, 0xc000010000); /* object */
	WORDS(0xc000020000, 7, 0xc000020008);
	NUMBERS(1, 0, 1, 2 * w.ptr, 0);
	NUMBERS(4, 0xc000000180, 0xc00004a000, 18, 0x401234, 4, 1, 0, 12345);
	text("chan receive");
	NUMBERS(0, 0x5a0000, 0, 0);
	NUMBERS(5, 0xc00004a000, 0, 0); /* frame */
	WORDS(1, 0xc000010000);
	NUMBERS(0x402000, 0x402010, 0x402014);
	text("main.wait");
	NUMBERS(1, w.ptr, 0);
	NUMBERS(14, 0xc00004b000, 0xc000000180, 0xc00004a100, 0x402020, 0xc000030000, 0x403000, 0);
	NUMBERS(15, 0xc00004c000, 0xc000000180, 0x500300, 0xc000030010, 0, 0);
	NUMBERS(9, 0x5a0000, 0, 4242); /* thread */
	NUMBERS(12, 0x600000);	       /* data */
	WORDS(0xc000010000, 3);
	NUMBERS(1, 0, 0);
	NUMBERS(13, 0x700000, 0, 0); /* bss, empty */
	NUMBERS(7, 0xc000010000, 0xc000030000, 0x403000, 0x500400, 0x500500);
	NUMBERS(11, 0xc000010000, 0xc000030000, 0x403000, 0x500400, 0x500500);
	number(10); /* memstats */
	for (unsigned i = 0; i < 24 + 256 + 1; i++)
		number(1000 + i);
	NUMBERS(16, 0x7f0000, 48, 2); /* memory profile */
	text("main.make");
	text("/src/main.go");
	number(17);
	text("main.main");
	text("/src/main.go");
	NUMBERS(5, 100, 40);
	NUMBERS(17, 0xc000010000, 0x7f0000);
	number(0);
}

static void check_every_record(struct heapdump *d)
{
	struct heapdump_record r = next(d, HEAPDUMP_PARAMS);

	assert_int_equal(heapdump_params(d)->ptrsize, w.ptr);
	assert_int_equal(heapdump_params(d)->end, 0xc000400000);
	assert_int_equal(heapdump_params(d)->ncpu, 2);
	assert_int_equal(heapdump_params(d)->arch_char, w.version < 7 ? '6' : 0);
	is(&heapdump_params(d)->toolchain, w.version < 7 ? "" : "go1.27.4");
	r = next(d, HEAPDUMP_ITAB);
	assert_int_equal(r.itab.type, 0x500200);
	r = next(d, HEAPDUMP_TYPE);
	assert_int_equal(r.type.size, 24);
	is(&r.type.name, "main.node");
	r = next(d, HEAPDUMP_OBJECT);
	assert_int_equal(r.object.addr, 0xc000010000);
	assert_int_equal(r.object.contents.len, 3 * w.ptr);
	field(d, HEAPDUMP_PTR, 0, 0, w.ptr == 8 ? 0xc000020000 : 0x00020000);
	field(d, HEAPDUMP_PTR, 2 * w.ptr, 0, w.ptr == 8 ? 0xc000020008 : 0x00020008);
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
	field(d, HEAPDUMP_PTR, w.ptr, 0, w.ptr == 8 ? 0xc000010000 : 0x00010000);
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
	assert_int_equal(heapdump_offset(d), w.n);
}

static void test_every_record(void **state)
{
	(void)state;
	for (unsigned version = 5; version <= 7; version++)
		for (unsigned how = 0; how < 8; how++) {
			struct heapdump *d;

			begin(version, how & 1, how & 2 ? 4 : 8);
			every_record();
			d = open_dump(how & 4);
			check_every_record(d);
			if (!(how & 4)) {
				assert_int_equal(heapdump_rewind(d, &e), 0);
				check_every_record(d);
			}
			heapdump_free(d);
		}
}

/* ---- what is other in old versions ---- */

static void test_go_1_4(void **state)
{
	struct heapdump *d;

	(void)state;
	begin(4, false, 8);
	NUMBERS(1, 0xc208000000);
	WORDS(0xc208010000, 0x500100, 0xc208010010, 0x500200, 0xc208010020);
	NUMBERS(1, 0, 2, 8, 3, 24, 0, 0);
	d = open_dump(false);
	next(d, HEAPDUMP_PARAMS);
	next(d, HEAPDUMP_OBJECT);
	field(d, HEAPDUMP_PTR, 0, 0, 0xc208010000);
	field(d, HEAPDUMP_IFACE, 8, 0x500100, 0xc208010010);
	field(d, HEAPDUMP_EFACE, 24, 0x500200, 0xc208010020);
	no_field(d);
	next(d, HEAPDUMP_EOF);
	heapdump_free(d);
}

static void test_go_1_3(void **state)
{
	struct heapdump_record r;
	struct heapdump *d;

	(void)state;
	begin(3, false, 8);
	NUMBERS(3, 0x500200, 40);
	text("main.node");
	NUMBERS(1, 2, 0, 3, 16, 0);
	NUMBERS(8, 0x500100, 1);
	NUMBERS(1, 0xc208000000, 0x500200, 1);
	WORDS(0xc208010000, 3, 0xc208010010, 1, 1);
	NUMBERS(2);
	text("runtime type info");
	NUMBERS(0xc208010000, 0);
	d = open_dump(false);
	next(d, HEAPDUMP_PARAMS);
	assert_int_equal(heapdump_params(d)->hchan_bytes, 96);
	next(d, HEAPDUMP_TYPE);
	field(d, HEAPDUMP_STRING, 0, 0, 0);
	field(d, HEAPDUMP_SLICE, 16, 0, 0);
	no_field(d);
	r = next(d, HEAPDUMP_ITAB);
	assert_true(r.itab.indirect);
	r = next(d, HEAPDUMP_OBJECT);
	assert_int_equal(r.object.type, 0x500200);
	assert_int_equal(r.object.kind, 1);
	no_field(d);
	r = next(d, HEAPDUMP_OTHERROOT);
	is(&r.root.text, "runtime type info");
	next(d, HEAPDUMP_EOF);
	heapdump_free(d);
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

/* Wherever it is cut, that is said, with a place; and nothing is read that is not there. */
static void test_every_cut(void **state)
{
	size_t whole;

	(void)state;
	begin(7, false, 8);
	every_record();
	whole = w.n;
	for (w.n = 17; w.n < whole; w.n++)
		for (int piped = 0; piped < 2; piped++) {
			struct heapdump *d = open_dump(piped);

			assert_int_equal(read_all(d), -EBADMSG);
			assert_non_null(strstr(e.msg, "offset "));
			heapdump_free(d);
		}
}

static void test_every_flip(void **state)
{
	(void)state;
	begin(7, false, 8);
	every_record();
	for (size_t i = 16; i < w.n; i++)
		for (unsigned bit = 0; bit < 8; bit++) {
			struct heapdump *d;

			w.at[i] ^= (uint8_t)(1u << bit);
			d = open_dump(false);
			read_all(d);
			heapdump_free(d);
			w.at[i] ^= (uint8_t)(1u << bit);
		}
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

/* An object that is longer than the window: its pointers are read where they lie. */
static void test_large_object(void **state)
{
	enum { N = 60000 };
	static uint64_t v[N];
	struct heapdump *d;

	(void)state;
	for (size_t i = 0; i < N; i++)
		v[i] = 0xc000000000 + i;
	begin(7, false, 8);
	NUMBERS(1, 0xc000010000);
	words(v, N);
	for (size_t i = 0; i < N; i += 100)
		NUMBERS(1, 8 * i);
	NUMBERS(0, 0);
	d = open_dump(false);
	next(d, HEAPDUMP_PARAMS);
	next(d, HEAPDUMP_OBJECT);
	for (size_t i = 0; i < N; i += 100)
		field(d, HEAPDUMP_PTR, 8 * i, 0, v[i]);
	no_field(d);
	next(d, HEAPDUMP_EOF);
	heapdump_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_record), cmocka_unit_test(test_go_1_4),
		cmocka_unit_test(test_go_1_3),	     cmocka_unit_test(test_every_cut),
		cmocka_unit_test(test_every_flip),   cmocka_unit_test(test_no_dump),
		cmocka_unit_test(test_large_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
