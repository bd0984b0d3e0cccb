/*
 * tests/unit/test_wait_left.c - who still waits at the end: the list of goroutines, and goroutines, are this file's
 * memory, and it knows the names of functions. Offsets and statuses are those of Go 1.27.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "collect/waits/engine/wait_left.h"

/* Source: runtime/runtime2.go. */
enum {
	IDLE,
	RUNNABLE,
	RUNNING,
	SYSCALL,
	WAITING,
	DEAD = 6,
	COPYSTACK = 8,
	LEAKED = 10,
	SCAN = 0x1000
};
enum { STATUS_OFF = 144, REASON_OFF = 176, START_OFF = 296, G_BYTES = START_OFF + 8 };
enum { GOROUTINES = 2500, FUNC_BYTES = 16 };

#define BIAS  0x555555000000ull
#define ALLGS 0x5a3000ull
#define LIST  0xc000100000ull
#define GS    0xc000800000ull
#define TEXT  0x555555401000ull

/* ---- a process ---- */

static struct {
	struct mem mem;		   /* first */
	uint64_t slice[3];	   /* runtime.allgs: where, how many, room for how many */
	uint64_t list[GOROUTINES]; /* of which so many can be read: */
	size_t listed;
	uint8_t gs[GOROUTINES][G_BYTES]; /* without a gap: what lies behind one is the next */
	size_t n;
	int no_allgs; /* why runtime.allgs is not found; 0: it is */
} p;

static int copy(uint64_t addr, void *buf, size_t n, uint64_t start, const void *from, size_t have)
{
	if (addr < start || addr - start > have || n > have - (addr - start))
		return -EFAULT;
	memcpy(buf, (const uint8_t *)from + (addr - start), n);
	return 0;
}

static int read_process(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	assert_ptr_equal(m, &p.mem);
	if (!copy(addr, buf, n, ALLGS + BIAS, p.slice, sizeof(p.slice)) ||
	    !copy(addr, buf, n, LIST, p.list, p.listed * 8) ||
	    !copy(addr, buf, n, GS, p.gs, p.n * G_BYTES))
		return 0;
	return err_set(e, -EFAULT, "nothing at 0x%llx", (unsigned long long)addr);
}

int rtvar_find(struct gobin *b, enum rtvar v, uint64_t *addr, struct err *e)
{
	(void)b;
	assert_int_equal(v, RTVAR_ALLGS);
	if (p.no_allgs)
		return err_set(e, p.no_allgs, "runtime.allgs is nowhere");
	*addr = ALLGS;
	return 0;
}

/* A function of the program's own, and those that goroutines of Go 1.27's runtime begin in. */
static const char *const funcs[] = {
	"main.worker",
	"main.main",
	"runtime.main",
	"runtime.corostart",
	"runtime.bgsweep",
	"runtime.runFinalizers",
	"runtime.gcBgMarkWorker",
	"runtime.handleAsyncEvent",
	"runtimex.Loop",
	"runtime/trace.Start.func1",
	"runtime.mainly",
};

/* One byte before a function is the one before it. */
const char *subject_func_name(struct subject *s, uint64_t pc)
{
	size_t i = (pc - TEXT) / FUNC_BYTES;

	(void)s;
	return pc >= TEXT && i < ARRAY_LEN(funcs) ? funcs[i] : NULL;
}

static uint64_t start_of(const char *func)
{
	for (size_t i = 0; i < ARRAY_LEN(funcs); i++)
		if (!strcmp(funcs[i], func))
			return TEXT + i * FUNC_BYTES;
	fail_msg("no function %s", func);
	return 0;
}

static struct target target = { .mem = &p.mem };
static struct subject subject = { .target = &target, .bias = BIAS };

static int set_up(void **state)
{
	(void)state;
	memset(&p, 0, sizeof(p));
	p.mem.read = read_process;
	p.slice[0] = LIST;
	for (size_t i = 0; i < LAYOUT_COUNT; i++)
		subject.layout.off[i] = -1;
	subject.layout.off[LAYOUT_g_atomicstatus] = STATUS_OFF;
	subject.layout.off[LAYOUT_g_waitreason] = REASON_OFF;
	subject.layout.off[LAYOUT_g_startpc] = START_OFF;
	snprintf(subject.layout.from, sizeof(subject.layout.from), "test");
	return 0;
}

/* What surrounds the fields is not 0. */
static void add(uint32_t status, uint8_t reason, uint64_t start)
{
	uint8_t *g = p.gs[p.n];

	memset(g, 0xee, G_BYTES);
	memcpy(g + STATUS_OFF, &status, sizeof(status));
	g[REASON_OFF] = reason;
	memcpy(g + START_OFF, &start, sizeof(start));
	p.list[p.n] = GS + p.n * G_BYTES;
	p.n = p.listed = p.n + 1;
	p.slice[1] = p.slice[2] = p.n;
}

static void add_in(uint32_t status, uint8_t reason, const char *func)
{
	add(status, reason, start_of(func));
}

static struct wait_left left(void)
{
	struct wait_left out;
	struct err e = { "" };

	if (wait_left(&subject, &out, &e))
		fail_msg("%s", e.msg);
	return out;
}

static void refused(int rc, const char *says)
{
	struct wait_left out = { .sum = 77, .syscall = 78 };
	struct err e = { "" };

	assert_int_equal(wait_left(&subject, &out, &e), rc);
	if (!strstr(e.msg, says))
		fail_msg("\"%s\" not in \"%s\"", says, e.msg);
	assert_true(out.sum == 77 && out.syscall == 78);
}

/* ---- tests ---- */

static void each_is_counted_by_what_it_waits_for(void **state)
{
	struct wait_left out;

	(void)state;
	add_in(WAITING, 19, "main.worker");
	add_in(WAITING, 2, "main.worker");
	add_in(WAITING, 19, "main.worker");
	add_in(WAITING, 255, "main.worker");
	add_in(LEAKED, 19, "main.worker");  /* 1.26+: a GC found that nobody wakes it */
	add_in(SYSCALL, 19, "main.worker"); /* the reason is that of its last wait */
	add_in(RUNNABLE, 2, "main.worker");
	add_in(RUNNABLE, 0, "main.worker");
	out = left();
	assert_int_equal(out.waiting[19], 3);
	assert_int_equal(out.waiting[2], 1);
	assert_int_equal(out.waiting[255], 1);
	assert_int_equal(out.waiting[0], 0);
	assert_int_equal(out.syscall, 1);
	assert_int_equal(out.runnable, 2);
	assert_int_equal(out.sum, 8);
}

static void who_runs_or_has_ended_does_not_wait(void **state)
{
	static const uint32_t others[] = { IDLE, RUNNING, DEAD, COPYSTACK };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		add_in(others[i], 19, "main.worker");
	assert_int_equal(left().sum, 0);
}

/* A GC that looks at a goroutine's stack sets a bit of its status, and it waits all the same. */
static void a_gc_changes_nothing(void **state)
{
	struct wait_left out;

	(void)state;
	add_in(WAITING | SCAN, 19, "main.worker");
	add_in(SYSCALL | SCAN, 0, "main.worker");
	add_in(RUNNABLE | SCAN, 0, "main.worker");
	add_in(RUNNING | SCAN, 0, "main.worker");
	out = left();
	assert_true(out.waiting[19] == 1 && out.syscall == 1 && out.runnable == 1);
	assert_int_equal(out.sum, 3);
}

static void the_runtimes_own_are_left_out(void **state)
{
	static const char *const own[] = { "runtime.bgsweep", "runtime.runFinalizers",
					   "runtime.gcBgMarkWorker", "runtime.mainly" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		for (uint32_t status = RUNNABLE; status <= WAITING; status++)
			add_in(status, 1, own[i]);
	assert_int_equal(left().sum, 0);
}

/* Some of the program's begin in the runtime, and names that begin alike are not the runtime's. */
static void the_programs_own_are_not_left_out(void **state)
{
	static const char *const own[] = { "main.main",		"runtime.main",
					   "runtime.corostart", "runtime.handleAsyncEvent",
					   "runtimex.Loop",	"runtime/trace.Start.func1" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		add_in(WAITING, (uint8_t)i, own[i]);
	add(WAITING, 40, 0x1234); /* of code that has no name */
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		if (left().waiting[i] != 1)
			fail_msg("%s is left out", own[i]);
	assert_int_equal(left().waiting[40], 1);
}

/* More than are read at a time, and the last part is not a whole one. */
static void the_whole_list_is_read(void **state)
{
	struct wait_left out;

	(void)state;
	for (size_t i = 0; i < GOROUTINES; i++)
		add_in(WAITING, (uint8_t)(i / 1000), "main.worker");
	p.slice[2] = GOROUTINES + 1000;
	out = left();
	assert_true(out.waiting[0] == 1000 && out.waiting[1] == 1000 && out.waiting[2] == 500);
	assert_int_equal(out.sum, GOROUTINES);
}

/* Behind the list's end are goroutines that nobody has published yet. */
static void the_list_ends_at_its_length(void **state)
{
	(void)state;
	for (size_t i = 0; i < 5; i++)
		add_in(WAITING, 19, "main.worker");
	p.slice[1] = 3;
	assert_int_equal(left().sum, 3);
	p.slice[1] = 0;
	assert_int_equal(left().sum, 0);
}

static void one_that_cannot_be_read_does_not_stop_the_others(void **state)
{
	(void)state;
	for (size_t i = 0; i < 5; i++)
		add_in(WAITING, 19, "main.worker");
	p.list[1] = 0;
	p.list[3] = 0xdead0000;
	assert_int_equal(left().sum, 3);
}

/* Nothing behind the last field that is needed is read: the last one may lie at the end of what there is. */
static void only_what_is_needed_is_read(void **state)
{
	(void)state;
	add_in(WAITING, 19, "main.worker");
	assert_int_equal(left().sum, 1);
	p.n = 0; /* it has gone */
	assert_int_equal(left().sum, 0);
}

static void a_list_that_cannot_be_is_refused(void **state)
{
	(void)state;
	add_in(WAITING, 19, "main.worker");
	p.slice[2] = 0;
	refused(-EBADMSG, "runtime.allgs has 1 goroutines at 0xc000100000");
	p.slice[1] = p.slice[2] = (1 << 20) + 1;
	refused(-EBADMSG, "runtime.allgs has 1048577 goroutines");
	p.slice[1] = p.slice[2] = 1;
	p.slice[0] = 0;
	refused(-EBADMSG, "at 0x0");
}

/* The first part of the list was read. */
static void a_list_that_breaks_off_is_an_error(void **state)
{
	(void)state;
	for (size_t i = 0; i < GOROUTINES; i++)
		add_in(WAITING, 19, "main.worker");
	p.listed = GOROUTINES - 1;
	refused(-EFAULT, "nothing at 0xc000104000"); /* where the third part begins */
}

static void a_program_without_a_list_is_an_error(void **state)
{
	(void)state;
	p.no_allgs = -ENOENT;
	refused(-ENOENT, "runtime.allgs is nowhere");
	p.no_allgs = 0;
	subject.bias = 0; /* it is not there */
	refused(-EFAULT, "nothing at 0x5a3000");
	subject.bias = BIAS;
}

/* Offsets from a binary may be anything. */
static void offsets_outside_of_a_goroutine_are_refused(void **state)
{
	static const struct {
		enum layout_field f;
		const char *name;
	} fields[] = { { LAYOUT_g_atomicstatus, "atomicstatus" },
		       { LAYOUT_g_waitreason, "waitreason" },
		       { LAYOUT_g_startpc, "startpc" } };
	static const int32_t bad[] = { -1, 505, 1 << 30, INT32_MIN };

	(void)state;
	add_in(WAITING, 19, "main.worker");
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		int32_t was = subject.layout.off[fields[i].f];

		for (size_t k = 0; k < ARRAY_LEN(bad); k++) {
			subject.layout.off[fields[i].f] = bad[k];
			refused(-ENOTSUP, fields[i].name);
		}
		subject.layout.off[fields[i].f] = was;
	}
	assert_int_equal(left().sum, 1);
}

static void reasons_have_gos_names(void **state)
{
	char buf[32];

	(void)state;
	assert_string_equal(wait_reason_text(19, 19, buf), "sleep");
	assert_string_equal(wait_reason_text(27, 19, buf), "chan receive");
	assert_string_equal(wait_reason_text(27, 0, buf), "waiting"); /* Go gives it no name */
	assert_string_equal(wait_reason_text(27, 255, buf), "reason 255");
	assert_string_equal(wait_reason_text(19, 40, buf), "reason 40");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_is_counted_by_what_it_waits_for, set_up),
		cmocka_unit_test_setup(who_runs_or_has_ended_does_not_wait, set_up),
		cmocka_unit_test_setup(a_gc_changes_nothing, set_up),
		cmocka_unit_test_setup(the_runtimes_own_are_left_out, set_up),
		cmocka_unit_test_setup(the_programs_own_are_not_left_out, set_up),
		cmocka_unit_test_setup(the_whole_list_is_read, set_up),
		cmocka_unit_test_setup(the_list_ends_at_its_length, set_up),
		cmocka_unit_test_setup(one_that_cannot_be_read_does_not_stop_the_others, set_up),
		cmocka_unit_test_setup(only_what_is_needed_is_read, set_up),
		cmocka_unit_test_setup(a_list_that_cannot_be_is_refused, set_up),
		cmocka_unit_test_setup(a_list_that_breaks_off_is_an_error, set_up),
		cmocka_unit_test_setup(a_program_without_a_list_is_an_error, set_up),
		cmocka_unit_test_setup(offsets_outside_of_a_goroutine_are_refused, set_up),
		cmocka_unit_test(reasons_have_gos_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
