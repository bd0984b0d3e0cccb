/*
 * tests/unit/test_pclntab12.c - functions and lines by a table as Go 1.2 to 1.15 wrote it, made here byte by byte, and
 * the names that a trace of Go 1.5 has by it. With WIDE=1 the e2e test trace_out has real programs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs those four first. */
#include <cmocka.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "go/image/tables/pclntab12.h"
#include "ingest/exectrace/exectrace.h"
#include "ingest/exectrace/v1/wire1.h"
#include "mktrace.h"

static struct err e;

enum { MAGIC = 0xfffffffb, TEXT = 0x1000 };

struct made {
	uint8_t at[256];
	bool big;
	unsigned word;
};

static void put(struct made *m, size_t off, unsigned size, uint64_t v)
{
	for (unsigned i = 0; i < size; i++)
		m->at[off + i] = (uint8_t)(v >> 8 * (m->big ? size - 1 - i : i));
}

/* From where on each part is. */
enum { NAMES = 0x80, STEPS = 0xa0, FILES = 0xb0, RECORD_A = 0xc0, RECORD_B = 0xe0 };

static void record(struct made *m, size_t at, uint64_t entry, size_t name, size_t file, size_t line)
{
	put(m, at, m->word, entry);
	put(m, at + m->word, 4, name);
	put(m, at + m->word + 16, 4, file);
	put(m, at + m->word + 20, 4, line);
}

/* main.a: 0x1000 to 0x1100, line 7 up to 0x1010 and 12 from there on; main.b: up to 0x1200, without a line. */
static struct made table(unsigned word, bool big)
{
	static const uint8_t lines[] = { 16, 0x10, 10, 0xf0, 1, 0 }, file[] = { 4, 0x80, 2, 0 };
	struct made m = { .word = word, .big = big };
	const uint64_t rows[] = { 2, TEXT, RECORD_A, TEXT + 0x100, RECORD_B, TEXT + 0x200, FILES };

	put(&m, 0, 4, MAGIC);
	m.at[6] = 1;
	m.at[7] = (uint8_t)word;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		put(&m, 8 + i * word, i + 1 < ARRAY_LEN(rows) ? word : 4, rows[i]);
	memcpy(m.at + NAMES, "main.a\0main.b\0a.go", 19);
	memcpy(m.at + STEPS, lines, sizeof(lines));
	memcpy(m.at + STEPS + 8, file, sizeof(file));
	put(&m, FILES, 4, 2);
	put(&m, FILES + 4, 4, 0);
	put(&m, FILES + 4, 4, NAMES + 14);
	record(&m, RECORD_A, TEXT, NAMES, STEPS + 8, STEPS);
	record(&m, RECORD_B, TEXT + 0x100, NAMES + 7, 0, 0);
	return m;
}

static void at(const struct pclntab12 *t, uint64_t pc, const char *func, const char *file,
	       uint32_t line)
{
	struct pcline l;

	assert_true(pclntab12_find(t, pc, &l));
	assert_string_equal(l.func, func);
	assert_int_equal(l.line, line);
	if (file)
		assert_string_equal(l.file, file);
	else
		assert_null(l.file);
}

static void functions_and_lines(unsigned word, bool big)
{
	CLEANUP(pclntab12_freep) struct pclntab12 *t = NULL;
	struct made m = table(word, big);
	struct pcline l;

	assert_int_equal(pclntab12_of(m.at, sizeof(m.at), big, &t, &e), 0);
	at(t, TEXT, "main.a", "a.go", 7);
	at(t, TEXT + 0xf, "main.a", "a.go", 7);
	at(t, TEXT + 0x10, "main.a", "a.go", 12);
	at(t, TEXT + 0xff, "main.a", "a.go", 12);
	at(t, TEXT + 0x100, "main.b", NULL, 0);
	assert_false(pclntab12_find(t, TEXT - 1, &l));
	assert_false(pclntab12_find(t, TEXT + 0x200, &l));
}

static void all_classes_and_orders_are_read(void **state)
{
	(void)state;
	functions_and_lines(8, false);
	functions_and_lines(8, true);
	functions_and_lines(4, false);
	functions_and_lines(4, true);
}

/* Whatever is cut off, or lies, is not read. */
static void bytes_that_lie_are_refused(void **state)
{
	struct made m = table(8, false);
	struct pcline l;

	(void)state;
	for (size_t n = 0; n < sizeof(m.at); n++) {
		CLEANUP(pclntab12_freep) struct pclntab12 *t = NULL;
		CLEANUP(freep) uint8_t *cut = malloc(n + 1);

		memcpy(cut, m.at, n);
		if (!pclntab12_of(cut, n, false, &t, &e))
			for (uint64_t pc = TEXT; pc < TEXT + 0x200; pc += 8)
				(void)pclntab12_find(t, pc, &l);
	}
	put(&m, 8, 8, UINT64_MAX);
	assert_int_equal(pclntab12_of(m.at, sizeof(m.at), false, &(struct pclntab12 *){ NULL }, &e),
			 -EBADMSG);
	put(&m, 0, 4, 0xfffffffa);
	assert_int_equal(pclntab12_of(m.at, sizeof(m.at), false, &(struct pclntab12 *){ NULL }, &e),
			 -ENOENT);
}

/* Of Go 1.5: each has its length, and a sequence number before its time. */
static void event5(struct mktrace *m, uint8_t type, const uint64_t *v, size_t n)
{
	struct mktrace args = { .size_at = 0 };
	uint64_t len;

	mktrace_numbers(&args, v, n);
	len = args.bytes.n;
	mktrace_byte(m, (uint8_t)(type | 3 << 6));
	mktrace_numbers(m, &len, 1);
	mktrace_numbers(m, v, n);
	mktrace_done(&args);
}

#define EVENT5(m, type, ...) event5(m, type, NUMBERS(__VA_ARGS__))

/* A goroutine is created by main.a at line 12, and begins in main.b. */
static struct mktrace addresses(uint64_t text)
{
	struct mktrace m = mktrace("go 1.5 trace");

	EVENT5(&m, EV1_BATCH, 0, 1, 0);
	EVENT5(&m, EV1_GO_CREATE, 1, 1, 1, text + 0x100, 5);
	EVENT5(&m, EV1_GOMAXPROCS, 1, 1, 1, 0);
	EVENT5(&m, EV1_STACK, 5, 1, text + 0x11);
	EVENT5(&m, EV1_FREQUENCY, 1000000000, 0);
	return m;
}

static void is(struct trace_text t, const char *want)
{
	assert_int_equal(t.len, strlen(want));
	assert_memory_equal(t.at, want, t.len);
}

static void addresses_of_a_trace_get_names(void **state)
{
	struct made m = table(8, false);
	struct mktrace trace = addresses(TEXT), other = addresses(TEXT + 0x10000);
	CLEANUP(pclntab12_freep) struct pclntab12 *exe = NULL;
	CLEANUP(exectrace_freep) struct exectrace *t = NULL, *stranger = NULL;
	int fd CLEANUP(closep) = mktrace_fd(&trace), fd2 CLEANUP(closep) = mktrace_fd(&other);
	struct trace_event ev = { .kind = TRACE_SYNC };

	(void)state;
	assert_int_equal(pclntab12_of(m.at, sizeof(m.at), false, &exe, &e), 0);
	assert_int_equal(exectrace_open(fd, &t, &e), 0);
	assert_int_equal(exectrace_use_exe(t, exe, &e), 0);
	while (ev.kind != TRACE_GOROUTINE)
		assert_int_equal(exectrace_next(t, &ev, &e), 1);
	is(exectrace_frame(t, ev.stack, 0).func, "main.a");
	is(exectrace_frame(t, ev.stack, 0).file, "a.go");
	assert_int_equal(exectrace_frame(t, ev.stack, 0).line, 12);
	is(exectrace_frame(t, ev.transition.stack, 0).func, "main.b");
	assert_int_equal(exectrace_open(fd2, &stranger, &e), 0);
	assert_int_equal(exectrace_use_exe(stranger, exe, &e), -ENOENT);
	mktrace_done(&trace);
	mktrace_done(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_classes_and_orders_are_read),
		cmocka_unit_test(bytes_that_lie_are_refused),
		cmocka_unit_test(addresses_of_a_trace_get_names),
	};

	return cmocka_run_group_tests_name("pclntab12", tests, NULL, NULL);
}
