/*
 * tests/unit/test_goroutine_text.c - a goroutine's block of text: what Go itself prints for the same goroutine, in
 * each version's manner. Its stack and the function that created it are made up here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/goroutine/goroutine_text.h"

#define SECOND 1000000000ull
#define MINUTE (60 * SECOND)

/* Wait reasons of Go 1.21 to 1.23. */
enum { IO_WAIT = 2, CHAN_RECEIVE = 14, UNKNOWN_REASON = 200 };

static struct gstacks k;
static struct rtgor g;
static struct rtlabels labels; /* of all goroutines */

/* ---- the functions that create goroutines ---- */

enum { BIAS = 0x400000 };

static struct image image = { .bias = BIAS };

static const struct place {
	uint64_t lo, hi, entry;
	const char *func;
	unsigned line;
} places[] = {
	{ 0x1000, 0x1040, 0x1000, "main.main", 7 },
	{ 0x1040, 0x1100, 0x1000, "main.main", 8 },
	{ 0x2000, 0x2100, 0x2000, "runtime.gcenable", 1 },
	{ 0x3000, 0x3100, 0x3000, "main.start[go.shape.[]uint8]", 3 },
	{ 0x4000, 0x4100, 0x4000, NULL, 4 },
	{ 0x5000, 0x5100, 0x5000, "main.lineless", 0 },
	{ 0x6000, 0x6100, 0x6000, "runtime.(*Timer).Start", 6 },
};

static const struct place *place_of(uint64_t pc)
{
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (pc >= places[i].lo + BIAS && pc < places[i].hi + BIAS)
			return &places[i];
	return NULL;
}

int subject_func(struct subject *s, uint64_t pc, struct gofunc *f, const struct image **img)
{
	const struct place *p = place_of(pc);

	(void)s;
	*img = &image;
	if (!p)
		return -ENOENT;
	*f = (struct gofunc){ .entry = p->entry };
	return 0;
}

const char *gobin_func_name(struct gobin *b, const struct gofunc *f)
{
	(void)b;
	return place_of(f->entry + BIAS)->func;
}

int subject_frames(struct subject *s, uint64_t pc, struct goframe *f, size_t cap, struct err *e)
{
	const struct place *p = place_of(pc);

	(void)s;
	(void)e;
	assert_true(cap > 0);
	if (!p || !p->line)
		return -ENOENT;
	*f = (struct goframe){ .func = p->func, .file = "/src/main.go", .line = p->line };
	return 1;
}

/* ---- a goroutine ---- */

static void begin(int minor)
{
	k = (struct gstacks){ .minor = minor };
	g = (struct rtgor){
		.goid = 73, .status = GSTATUS_WAITING, .waitreason = CHAN_RECEIVE, .text = &labels
	};
	assert_int_equal(prof_new(&k.p, NULL), 0);
}

static void end(void)
{
	prof_free(k.p);
	vec_fini(&k.frames);
	vec_fini(&k.calls);
	vec_fini(&k.stack);
}

static struct gcall *add(const char *func, bool inlined)
{
	struct gcall *c = vec_add(&k.calls, SIZE_MAX);

	assert_non_null(c);
	*c = (struct gcall){
		.func = func, .file = "/src/a.go", .line = (uint32_t)k.calls.n, .inlined = inlined
	};
	return c;
}

/* The next frame further out, 28 bytes into its function. @leaf: what is inlined there; or NULL. */
static struct gcall *calls(const char *leaf, const char *func)
{
	struct gframe *f = vec_add(&k.frames, SIZE_MAX);
	uint32_t *slot = vec_add(&k.stack, SIZE_MAX);

	assert_true(f && slot);
	*slot = (uint32_t)k.frames.n - 1;
	*f = (struct gframe){ .pc = BIAS + 0x101c,
			      .entry = BIAS + 0x1000,
			      .first = (uint32_t)k.calls.n,
			      .n = leaf ? 2 : 1,
			      .known = true };
	if (leaf)
		add(leaf, true);
	return add(func, false);
}

static void tell(enum unwind_end how, uint64_t now_ns, uint64_t seen_ns)
{
	struct err e = {};

	if (goroutine_text(&k, &g, how, now_ns, seen_ns, &e))
		fail_msg("%s", e.msg);
}

/* All of the text; valid until it is asked for again. */
static const char *text(void)
{
	static char all[1 << 17];
	size_t at = 0;

	all[0] = 0;
	for (size_t i = 0; i < prof_ntext(k.p); i++)
		at += (size_t)snprintf(all + at, sizeof(all) - at, "%s\n", prof_text_at(k.p, i));
	assert_true(at < sizeof(all));
	return all;
}

static bool has(const char *part)
{
	return strstr(text(), part) != NULL;
}

/* ---- whole blocks ---- */

static void a_block_is_what_go_prints(void **state)
{
	(void)state;
	begin(22);
	calls(NULL, "runtime.gopark");
	calls("main.(*queue).get", "main.work[go.shape.int]");
	calls(NULL, "runtime.goexit");
	g.gopc = BIAS + 0x1041;
	g.parent = 1;
	tell(UNWIND_WHOLE, 0, 0);
	assert_string_equal(text(), "goroutine 73 [chan receive]:\n"
				    "main.(*queue).get(...)\n"
				    "\t/src/a.go:2\n"
				    "main.work[...](...)\n"
				    "\t/src/a.go:3 +0x1c\n"
				    "created by main.main in goroutine 1\n"
				    "\t/src/main.go:8 +0x41\n");
	end();
}

/* From Go 1.27 on a generic type's method may be generic itself. Earlier versions leave out all from the first bracket on. */
static void type_arguments_are_left_out(void **state)
{
	static const struct {
		int minor;
		const char *name, *shown;
	} cases[] = {
		{ 22, "main.f[go.shape.[]int]", "main.f[...](...)" },
		{ 27, "main.f[go.shape.[]int].func1", "main.f[...].func1(...)" },
		{ 27, "main.(*T[go.shape.[4]int]).M[go.shape.string]",
		  "main.(*T[...]).M[...](...)" },
		{ -1, "main.(*T[a]).M[b].func2", "main.(*T[...]).M[...].func2(...)" },
		{ 26, "main.(*T[a]).M[b]", "main.(*T[...](...)" },
		/* no name that a compiler makes */
		{ 27, "main.f[a]]b[c]", "main.f[a]]b[c](...)" },
		{ 27, "main.]f[", "main.]f[(...)" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		begin(cases[i].minor);
		calls(NULL, cases[i].name);
		tell(UNWIND_WHOLE, 0, 0);
		if (!has(cases[i].shown))
			fail_msg("Go 1.%d: %s: %s", cases[i].minor, cases[i].name, text());
		end();
	}
}

/* An empty line is between two of them, and calls that both have are told by both. */
static void blocks_follow_each_other(void **state)
{
	(void)state;
	begin(22);
	calls(NULL, "main.wait");
	tell(UNWIND_WHOLE, 0, 0);
	g.goid = 74;
	g.waitreason = IO_WAIT;
	tell(UNWIND_WHOLE, 0, 0);
	assert_string_equal(text(), "goroutine 73 [chan receive]:\n"
				    "main.wait(...)\n"
				    "\t/src/a.go:1 +0x1c\n"
				    "\n"
				    "goroutine 74 [IO wait]:\n"
				    "main.wait(...)\n"
				    "\t/src/a.go:1 +0x1c\n");
	end();
}

static void there_may_be_no_stack(void **state)
{
	static const struct {
		enum rtgor_stack what;
		const char *line;
	} cases[] = {
		{ RTGOR_RUNNING, "\tgoroutine running on other thread; stack unavailable" },
		{ RTGOR_TORN, "\tgoroutine moved whenever it was read; stack unavailable" },
		{ RTGOR_BAD, "\tgoroutine's stack cannot be; stack unavailable" },
	};
	char want[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		begin(22);
		calls(NULL, "main.of_another_goroutine");
		g.what = cases[i].what;
		g.status = GSTATUS_RUNNING;
		g.gopc = BIAS + 0x1010;
		tell(UNWIND_BROKEN, 0, 0);
		snprintf(want, sizeof(want),
			 "goroutine 73 [running]:\n%s\n"
			 "created by main.main\n\t/src/main.go:7 +0x10\n",
			 cases[i].line);
		assert_string_equal(text(), want);
		end();
	}
}

/* ---- the first line ---- */

static void head_is(const char *want)
{
	assert_string_equal(prof_text_at(k.p, 0), want);
	end();
}

static void expect_state(int minor, enum gstatus status, uint8_t reason, const char *want)
{
	begin(minor);
	g.status = status;
	g.waitreason = reason;
	tell(UNWIND_WHOLE, 0, 0);
	head_is(want);
}

static void the_state_is_in_the_runtimes_words(void **state)
{
	(void)state;
	expect_state(22, GSTATUS_IDLE, 0, "goroutine 73 [idle]:");
	expect_state(22, GSTATUS_RUNNABLE, CHAN_RECEIVE, "goroutine 73 [runnable]:");
	expect_state(22, GSTATUS_RUNNING, 0, "goroutine 73 [running]:");
	expect_state(22, GSTATUS_SYSCALL, CHAN_RECEIVE, "goroutine 73 [syscall]:");
	expect_state(22, GSTATUS_COPYSTACK, 0, "goroutine 73 [copystack]:");
	expect_state(22, GSTATUS_PREEMPTED, 0, "goroutine 73 [preempted]:");
	expect_state(22, (enum gstatus)99, 0, "goroutine 73 [\?\?\?]:");
	expect_state(22, GSTATUS_WAITING, IO_WAIT, "goroutine 73 [IO wait]:");
	expect_state(22, GSTATUS_WAITING, 0, "goroutine 73 [waiting]:");
	expect_state(22, GSTATUS_WAITING, UNKNOWN_REASON, "goroutine 73 [waiting]:");
	/* Why it waits is what that version means by the number: 16 is one of 1.15's, too. */
	expect_state(15, GSTATUS_WAITING, 16, "goroutine 73 [finalizer wait]:");
	expect_state(27, GSTATUS_WAITING, 0, "goroutine 73 [waiting]:");
	/* From 1.26 on. */
	expect_state(27, GSTATUS_LEAKED, IO_WAIT, "goroutine 73 [IO wait (leaked)]:");
	expect_state(27, GSTATUS_LEAKED, 0, "goroutine 73 [leaked (leaked)]:");
}

static void marks_stand_behind_the_state(void **state)
{
	(void)state;
	begin(22);
	g.scan = true;
	tell(UNWIND_WHOLE, 0, 0);
	head_is("goroutine 73 [chan receive (scan)]:");
	begin(22);
	g.scan = g.locked = true;
	g.waitsince = MINUTE;
	tell(UNWIND_WHOLE, 6 * MINUTE, 0);
	head_is("goroutine 73 [chan receive (scan), 5 minutes, locked to thread]:");
}

static void waited(enum gstatus status, uint64_t since, uint64_t now, uint64_t seen,
		   const char *want)
{
	begin(22);
	g.status = status;
	g.waitsince = since;
	tell(UNWIND_WHOLE, now, seen);
	head_is(want);
}

/* Go tells whole minutes, and nothing before there is one. */
static void minutes_are_the_runtimes(void **state)
{
	(void)state;
	waited(GSTATUS_WAITING, 5, MINUTE + 4, 0, "goroutine 73 [chan receive]:");
	waited(GSTATUS_WAITING, 5, MINUTE + 5, 0, "goroutine 73 [chan receive, 1 minutes]:");
	waited(GSTATUS_WAITING, 5, 150 * MINUTE, 0, "goroutine 73 [chan receive, 149 minutes]:");
	waited(GSTATUS_SYSCALL, 5, 2 * MINUTE + 5, 0, "goroutine 73 [syscall, 2 minutes]:");
	waited(GSTATUS_RUNNABLE, 5, 2 * MINUTE + 5, 0, "goroutine 73 [runnable]:");
	/* It began to wait after the look began. */
	waited(GSTATUS_WAITING, 3 * MINUTE, MINUTE, 0, "goroutine 73 [chan receive]:");
}

/* What we saw is told only where the runtime tells nothing. */
static void seconds_are_what_we_saw(void **state)
{
	(void)state;
	waited(GSTATUS_WAITING, 0, MINUTE, SECOND - 1, "goroutine 73 [chan receive]:");
	waited(GSTATUS_WAITING, 0, MINUTE, SECOND,
	       "goroutine 73 [chan receive, at least 1 seconds]:");
	waited(GSTATUS_SYSCALL, 0, MINUTE, 90 * SECOND - 1,
	       "goroutine 73 [syscall, at least 89 seconds]:");
	waited(GSTATUS_RUNNABLE, 0, MINUTE, 90 * SECOND, "goroutine 73 [runnable]:");
	waited(GSTATUS_WAITING, 40 * SECOND, MINUTE, 10 * SECOND, "goroutine 73 [chan receive]:");
	waited(GSTATUS_WAITING, 40 * SECOND, 2 * MINUTE, 10 * SECOND,
	       "goroutine 73 [chan receive, 1 minutes]:");
}

/* ---- labels ---- */

static uint32_t put(const char *s)
{
	uint32_t at = (uint32_t)labels.text.n;

	for (const char *c = s; c == s || c[-1]; c++) {
		char *slot = vec_add(&labels.text, SIZE_MAX);

		assert_non_null(slot);
		*slot = *c;
	}
	return at;
}

static void label(const char *key, const char *value)
{
	struct rtlabel *l = vec_add(&labels.at, SIZE_MAX);

	assert_non_null(l);
	l->key = put(key);
	l->value = put(value);
	g.labels.n++;
}

/* The first label that there is belongs to another goroutine. */
static void begin_labels(void)
{
	begin(22);
	label("another", "one");
	g.labels = (struct rtlabel_set){ .first = 1 };
}

static void end_labels(void)
{
	vec_fini(&labels.at);
	vec_fini(&labels.text);
	end();
}

static void labels_are(const char *want)
{
	char line[512];

	tell(UNWIND_WHOLE, 0, 0);
	snprintf(line, sizeof(line), "goroutine 73 [chan receive]%s:", want);
	assert_string_equal(prof_text_at(k.p, 0), line);
	end_labels();
}

static void labels_stand_in_their_order(void **state)
{
	(void)state;
	begin_labels();
	label("path", "/a/b.html");
	label("b_2", "");
	label("b", "x");
	labels_are(" {b: x, b_2: , path: /a/b.html}");
	begin_labels();
	labels_are("");
}

/* Go quotes what has anything but ASCII letters, digits and three signs. */
static void labels_are_quoted_where_go_quotes(void **state)
{
	(void)state;
	begin_labels();
	label("a b", "x-1");
	label("b", "say \"\\\"");
	label("c", "1\n2\r3\t4");
	label("d", "\x01\x1f~\x7f");
	label("e", "\xc3\xa9t\xc3\xa9");
	label("f", "{, :}");
	labels_are(" {\"a b\": \"x-1\", b: \"say \\\"\\\\\\\"\", c: \"1\\n2\\r3\\t4\", "
		   "d: \"\\x01\\x1f~\\u007f\", e: \"\xc3\xa9t\xc3\xa9\", f: \"{, :}\"}");
}

static void too_many_labels_are_told(void **state)
{
	char key[16];

	(void)state;
	for (int n = 64; n <= 65; n++) {
		begin_labels();
		for (int i = 0; i < n; i++) {
			snprintf(key, sizeof(key), "k%02d", i);
			label(key, "v");
		}
		tell(UNWIND_WHOLE, 0, 0);
		assert_true(has("{k00: v, k01: v, "));
		assert_true(has(n == 64 ? ", k63: v}:\n" : ", k63: v, ...}:\n"));
		end_labels();
	}
}

/* The line ends somewhere; what it says up to there is so. */
static void labels_without_end_are_cut(void **state)
{
	static char value[1000];
	const char *line;

	(void)state;
	begin_labels();
	memset(value, 'v', sizeof(value) - 1);
	for (int i = 0; i < 40; i++)
		label("key", value);
	tell(UNWIND_WHOLE, 0, 0);
	line = prof_text_at(k.p, 0);
	assert_int_equal(strlen(line), 16383);
	assert_memory_equal(line, "goroutine 73 [chan receive] {key: vvv", 37);
	assert_true(line[16382] == 'v');
	end_labels();
}

/* ---- which calls are shown ---- */

/* Between two calls of the program, so that it is neither the first nor the only one. */
static bool shows(int minor, const char *func)
{
	char want[128];
	bool is;

	begin(minor);
	calls(NULL, "main.leaf");
	calls(NULL, func);
	calls(NULL, "main.main");
	tell(UNWIND_WHOLE, 0, 0);
	assert_true(has("\nmain.leaf(...)\n") && has("\nmain.main(...)\n"));
	snprintf(want, sizeof(want), "\n%s(...)\n", func);
	is = has(want);
	assert_int_equal(prof_ntext(k.p), is ? 7 : 5);
	end();
	return is;
}

static void the_runtimes_own_calls_are_not_shown(void **state)
{
	static const char *const old[] = { "runtime.gopark", "runtime.goexit", "runtime.main",
					   "runtime.(*mheap).alloc", "memeqbody" };
	static const char *const shown[] = { "runtime.GC", "runtime/pprof.profileWriter",
					     "internal/poll.runtime_pollWait", "main.init.0",
					     "runtimes.f" };

	(void)state;
	for (int minor = 20; minor <= 27; minor++) {
		for (size_t i = 0; i < ARRAY_LEN(old); i++)
			assert_false(shows(minor, old[i]));
		for (size_t i = 0; i < ARRAY_LEN(shown); i++)
			assert_true(shows(minor, shown[i]));
	}
}

/* From Go 1.23 on a method is exported when it and its type are. */
static void exported_methods_are_shown_where_go_shows_them(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		int minor = (const int[]){ 23, 27, -1 }[i];

		assert_true(shows(minor, "runtime.(*Func).Name"));
		assert_true(shows(minor, "runtime.Frames.Next"));
		assert_false(shows(minor, "runtime.(*Func).name"));
		assert_false(shows(minor, "runtime.Frames.next"));
		assert_false(shows(minor, "runtime.(*timer).Stop"));
		assert_false(shows(minor, "runtime.errorString.Error"));
	}
	assert_false(shows(22, "runtime.(*Func).Name"));
	assert_true(shows(22, "runtime.Frames.Next"));
	assert_true(shows(22, "runtime.Frames.next"));
	assert_false(shows(22, "runtime.errorString.Error"));
}

/* From Go 1.25 on they tell what the goroutine is for. */
static void finalizers_and_cleanups_are_shown(void **state)
{
	(void)state;
	assert_false(shows(24, "runtime.runFinalizers"));
	assert_true(shows(25, "runtime.runFinalizers"));
	assert_true(shows(-1, "runtime.runFinalizers"));
	assert_false(shows(24, "runtime.runCleanups"));
	assert_true(shows(25, "runtime.runCleanups"));
	assert_true(shows(-1, "runtime.runCleanups"));
	assert_false(shows(27, "runtime.runfinq"));
}

/* A panic is shown where it interrupts the program's calls, by its name in the language. */
static void a_panic_is_shown_within_a_stack(void **state)
{
	(void)state;
	begin(22);
	calls(NULL, "runtime.preprintpanics");
	calls(NULL, "runtime.gopanic");
	calls(NULL, "main.deferred");
	calls(NULL, "runtime.gopanic");
	calls(NULL, "main.main");
	tell(UNWIND_WHOLE, 0, 0);
	assert_string_equal(text(), "goroutine 73 [chan receive]:\n"
				    "main.deferred(...)\n"
				    "\t/src/a.go:3 +0x1c\n"
				    "panic(...)\n"
				    "\t/src/a.go:4 +0x1c\n"
				    "main.main(...)\n"
				    "\t/src/a.go:5 +0x1c\n");
	end();
}

static void wrappers_are_not_shown(void **state)
{
	(void)state;
	begin(22);
	calls(NULL, "main.T.M");
	calls(NULL, "main.(*T).M")->elided = true;
	calls(NULL, "main.main");
	tell(UNWIND_WHOLE, 0, 0);
	assert_true(has("main.T.M") && has("main.main"));
	assert_false(has("main.(*T).M"));
	end();
}

/* A stack of the runtime alone is shown as it is, and so are its wrappers. */
static void a_stack_that_would_be_empty_is_shown(void **state)
{
	(void)state;
	begin(22);
	calls(NULL, "runtime.gopark");
	calls("runtime.inlined", "runtime.bgsweep")->elided = true;
	tell(UNWIND_WHOLE, 0, 0);
	assert_string_equal(text(), "goroutine 73 [chan receive]:\n"
				    "runtime.gopark(...)\n"
				    "\t/src/a.go:1 +0x1c\n"
				    "runtime.inlined(...)\n"
				    "\t/src/a.go:2\n"
				    "runtime.bgsweep(...)\n"
				    "\t/src/a.go:3 +0x1c\n");
	end();
}

/* A goroutine that has not begun stands at its function's entry. */
static void at_its_entry_a_call_has_no_distance(void **state)
{
	(void)state;
	begin(22);
	calls(NULL, "main.work");
	k.frames.at[0].pc = k.frames.at[0].entry;
	tell(UNWIND_WHOLE, 0, 0);
	assert_string_equal(text(),
			    "goroutine 73 [chan receive]:\nmain.work(...)\n\t/src/a.go:1\n");
	end();
}

/* ---- deep stacks ---- */

/* Frames of the program, and in versions that walk all of a stack one of the runtime's before each. */
static void deep(int minor, int frames, bool inlined)
{
	begin(minor);
	for (int i = 0; i < frames; i++) {
		if (minor < 0 || minor >= 21)
			calls(NULL, "runtime.hidden");
		calls(inlined ? "main.inlined" : NULL, "main.recurse");
	}
	tell(UNWIND_WHOLE, 0, 0);
}

static bool line_is(size_t i, const char *want)
{
	return i < prof_ntext(k.p) && !strcmp(prof_text_at(k.p, i), want);
}

/* Go 1.21 and newer have 50 innermost and 50 outermost calls. */
static void the_middle_of_a_deep_stack_is_left_out(void **state)
{
	(void)state;
	for (int n = 50; n <= 100; n += n == 51 ? 49 : 1) {
		deep(21, n, false);
		assert_int_equal(prof_ntext(k.p), 1 + 2 * n);
		assert_false(has("elided"));
		end();
	}
	for (int i = 0; i < 2; i++) {
		deep(i ? 27 : -1, 103, false);
		assert_int_equal(prof_ntext(k.p), 1 + 2 * 100 + 1);
		assert_true(line_is(100, "\t/src/a.go:100 +0x1c")); /* the 50th call */
		assert_true(line_is(101, "...3 frames elided..."));
		assert_true(line_is(103, "\t/src/a.go:108 +0x1c")); /* the 54th */
		assert_true(line_is(201, "\t/src/a.go:206 +0x1c")); /* the last */
		end();
	}
}

/* The cut may be between a call and what it was inlined into. */
static void inlined_calls_count_as_calls(void **state)
{
	(void)state;
	begin(24);
	calls(NULL, "main.leaf");
	for (int i = 0; i < 60; i++)
		calls("main.inlined", "main.recurse");
	tell(UNWIND_WHOLE, 0, 0);
	assert_int_equal(prof_ntext(k.p), 1 + 2 * 100 + 1);
	assert_true(line_is(99, "main.inlined(...)"));
	assert_true(line_is(101, "...21 frames elided..."));
	assert_true(line_is(102, "main.inlined(...)"));
	assert_true(line_is(104, "main.recurse(...)"));
	end();
}

/* Older ones walk 100 frames. When they have printed 100 calls they say that there may be more. */
static void old_versions_stop_after_a_hundred_frames(void **state)
{
	(void)state;
	deep(20, 99, false);
	assert_int_equal(prof_ntext(k.p), 1 + 2 * 99);
	end();
	for (int n = 100; n <= 130; n += 30) {
		deep(20, n, false);
		assert_int_equal(prof_ntext(k.p), 1 + 2 * 100 + 1);
		assert_true(line_is(200, "\t/src/a.go:100 +0x1c"));
		assert_true(line_is(201, "...additional frames elided..."));
		end();
	}
	/* They do not say it of other numbers of calls. */
	deep(20, 130, true);
	assert_int_equal(prof_ntext(k.p), 1 + 2 * 200);
	end();
}

static void how_a_stack_ends_is_told(void **state)
{
	(void)state;
	for (int minor = 20; minor <= 21; minor++) {
		begin(minor);
		calls(NULL, "main.recurse");
		tell(UNWIND_CUT, 0, 0);
		assert_int_equal(prof_ntext(k.p), 4);
		assert_true(line_is(3, "...additional frames elided..."));
		end();
		begin(minor);
		calls(NULL, "main.recurse");
		tell(UNWIND_BROKEN, 0, 0);
		assert_int_equal(prof_ntext(k.p), 4);
		assert_true(line_is(3, "\tthe stack could not be followed further"));
		end();
	}
}

/* ---- the creator ---- */

static void created(uint64_t goid, uint64_t gopc, uint64_t parent, const char *want)
{
	char block[256];

	begin(23);
	calls(NULL, "main.work");
	g.goid = goid;
	g.gopc = gopc;
	g.parent = parent;
	tell(UNWIND_WHOLE, 0, 0);
	snprintf(block, sizeof(block),
		 "goroutine %d [chan receive]:\nmain.work(...)\n\t/src/a.go:1 +0x1c\n%s", (int)goid,
		 want);
	assert_string_equal(text(), block);
	end();
}

static void its_creator_is_told(void **state)
{
	(void)state;
	created(2, BIAS + 0x1041, 19,
		"created by main.main in goroutine 19\n"
		"\t/src/main.go:8 +0x41\n");
	/* Where the go statement's call ends, the next line may begin. */
	created(2, BIAS + 0x1040, 19,
		"created by main.main in goroutine 19\n"
		"\t/src/main.go:7 +0x40\n");
	/* Before Go 1.21 nobody knows in which goroutine. */
	created(2, BIAS + 0x1041, 0, "created by main.main\n\t/src/main.go:8 +0x41\n");
	created(2, BIAS + 0x3010, 0, "created by main.start[...]\n\t/src/main.go:3 +0x10\n");
	created(2, BIAS + 0x1000, 0, "created by main.main\n\t/src/main.go:7\n");
	created(2, BIAS + 0x6010, 0, "created by runtime.(*Timer).Start\n\t/src/main.go:6 +0x10\n");
}

static void a_creator_that_go_does_not_tell_is_not_told(void **state)
{
	(void)state;
	created(1, BIAS + 0x1041, 19, ""); /* the first goroutine */
	created(2, 0, 19, "");
	created(2, BIAS + 0x2010, 19, ""); /* the runtime */
	created(2, BIAS + 0x9000, 19, ""); /* no function is there */
	created(2, BIAS + 0x4010, 19, ""); /* it has no name */
	created(2, BIAS + 0x5010, 19, ""); /* it has no lines */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_block_is_what_go_prints),
		cmocka_unit_test(type_arguments_are_left_out),
		cmocka_unit_test(blocks_follow_each_other),
		cmocka_unit_test(there_may_be_no_stack),
		cmocka_unit_test(the_state_is_in_the_runtimes_words),
		cmocka_unit_test(marks_stand_behind_the_state),
		cmocka_unit_test(minutes_are_the_runtimes),
		cmocka_unit_test(seconds_are_what_we_saw),
		cmocka_unit_test(labels_stand_in_their_order),
		cmocka_unit_test(labels_are_quoted_where_go_quotes),
		cmocka_unit_test(too_many_labels_are_told),
		cmocka_unit_test(labels_without_end_are_cut),
		cmocka_unit_test(the_runtimes_own_calls_are_not_shown),
		cmocka_unit_test(exported_methods_are_shown_where_go_shows_them),
		cmocka_unit_test(finalizers_and_cleanups_are_shown),
		cmocka_unit_test(a_panic_is_shown_within_a_stack),
		cmocka_unit_test(wrappers_are_not_shown),
		cmocka_unit_test(a_stack_that_would_be_empty_is_shown),
		cmocka_unit_test(at_its_entry_a_call_has_no_distance),
		cmocka_unit_test(the_middle_of_a_deep_stack_is_left_out),
		cmocka_unit_test(inlined_calls_count_as_calls),
		cmocka_unit_test(old_versions_stop_after_a_hundred_frames),
		cmocka_unit_test(how_a_stack_ends_is_told),
		cmocka_unit_test(its_creator_is_told),
		cmocka_unit_test(a_creator_that_go_does_not_tell_is_not_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
