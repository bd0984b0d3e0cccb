/*
 * tests/unit/test_goroutine_stack.c - the calls on a goroutine's stack: at which instruction each one is looked up, which
 * are no calls of a profile, and how many of them Go has. The program is made up, and so are the bytes of its stack.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/goroutine/goroutine_stack.h"
#include "symbolize/subject_logical.h"

/* ---- a program ---- */

enum {
	BIAS = 0x400000,
	FUNC_BYTES = 0x100,
	LINE_BYTES = 16, /* the code of each line */
	FIRST = 0x1000,
	/* In each function that inlines another one this is the call's code, and where its caller is looked up. */
	INLINED = 0x40,
	INLINED_AT = 0x65,
	NO_DELTA = -1,
};

enum {
	LEAF,
	MID,
	MAIN,
	GOEXIT,
	PANIC,
	SIGPANIC,
	WRAP,
	WRAP_INLINED,
	UNKNOWN,
	CALL32,
	CALLBACK,
	TOP
};

static const struct func {
	const char *name, *inlined;
	enum func_id id;
	int32_t delta;
	uint8_t flags;
} funcs[] = {
	[LEAF] = { "main.leaf", NULL, FUNC_NORMAL, 16, 0 },
	[MID] = { "main.mid", "main.inl", FUNC_NORMAL, 24, 0 },
	[MAIN] = { "main.main", NULL, FUNC_NORMAL, 8, 0 },
	[GOEXIT] = { "runtime.goexit", NULL, FUNC_GOEXIT, NO_DELTA, 1 },
	[PANIC] = { "runtime.gopanic", NULL, FUNC_GOPANIC, 32, 0 },
	[SIGPANIC] = { "runtime.sigpanic", NULL, FUNC_SIGPANIC, 8, 0 },
	[WRAP] = { "main.(*T).M", NULL, FUNC_WRAPPER, 0, 0 },
	[WRAP_INLINED] = { "main.(*U).M", "main.U.M", FUNC_WRAPPER, 0, 0 },
	[UNKNOWN] = { "main.tableless", NULL, FUNC_NORMAL, NO_DELTA, 0 },
	[CALL32] = { "runtime.call32", "runtime.inl", FUNC_NORMAL, 8, 0 },
	[CALLBACK] = { "runtime.callbackWrap", NULL, FUNC_NORMAL, 8, 0 },
	[TOP] = { "main.top", NULL, FUNC_NORMAL, 8, 1 }, /* it says that it has no caller */
};

static struct image image = { .bias = BIAS };
static struct subject subject;
static int minor;
static unsigned asked; /* how often a function was looked up */

/* The live address @off bytes into @f. */
static uint64_t in(size_t f, uint64_t off)
{
	return BIAS + FIRST + f * FUNC_BYTES + off;
}

static const struct func *func_at(uint64_t pc)
{
	uint64_t at = pc - FIRST;

	return pc >= FIRST && at / FUNC_BYTES < ARRAY_LEN(funcs) ? &funcs[at / FUNC_BYTES] : NULL;
}

int subject_func(struct subject *s, uint64_t pc, struct gofunc *f, const struct image **img)
{
	const struct func *is = func_at(pc - BIAS);

	(void)s;
	asked++;
	*img = &image;
	if (!is)
		return -ENOENT;
	*f = (struct gofunc){ .entry = (pc - BIAS) / FUNC_BYTES * FUNC_BYTES,
			      .id = is->id,
			      .flags = is->flags };
	return 0;
}

int subject_frames(struct subject *s, uint64_t pc, struct goframe *f, size_t cap, struct err *e)
{
	const struct func *is = func_at(pc - BIAS);
	uint64_t off = pc % FUNC_BYTES;
	int n = 0;

	(void)s;
	(void)e;
	assert_true(cap >= 2);
	if (!is)
		return -ENOENT;
	if (is->inlined && off / LINE_BYTES == INLINED / LINE_BYTES) {
		f[n++] = (struct goframe){ .func = is->inlined,
					   .file = "inl.go",
					   .line = 100,
					   .parent_pc = pc - off + INLINED_AT };
		off = INLINED_AT;
	}
	f[n++] = (struct goframe){ .func = is->name,
				   .file = "main.go",
				   .line = (uint32_t)(off / LINE_BYTES),
				   .id = is->id };
	return n;
}

/* As elideWrapperCalling() in runtime/traceback.go. */
bool frame_elided(enum func_id id, enum func_id callee)
{
	static const bool panics[FUNC_OTHER + 1] = {
		[FUNC_GOPANIC] = true, [FUNC_SIGPANIC] = true, [FUNC_PANICWRAP] = true
	};

	return id == FUNC_WRAPPER && !panics[callee];
}

int gobin_spdelta(struct gobin *b, uint64_t pc, int32_t *delta, struct err *e)
{
	(void)b;
	*delta = func_at(pc)->delta;
	return *delta == NO_DELTA ? err_set(e, -EBADMSG, "no table") : 0;
}

const struct gobin_info *gobin_info(const struct gobin *b)
{
	static struct gobin_info info;

	(void)b;
	info.minor = minor;
	return &info;
}

static const char *name_of_all; /* of all functions, or NULL: their own */
static bool nameless;

const char *gobin_func_name(struct gobin *b, const struct gofunc *f)
{
	(void)b;
	if (nameless)
		return NULL;
	return name_of_all ? name_of_all : func_at(f->entry)->name;
}

/* ---- locations ---- */

static int logical_fails;

static int frames(void *arg, uint64_t addr, struct goframe *f, size_t cap, uint64_t *entry)
{
	(void)arg;
	*entry = addr / FUNC_BYTES * FUNC_BYTES;
	return subject_frames(&subject, addr, f, cap, NULL);
}

static int mapping(void *arg, struct prof *p, uint64_t addr, struct err *e)
{
	(void)arg;
	(void)p;
	(void)addr;
	(void)e;
	return 0;
}

int subject_logical(struct subject *s, struct prof *p, struct logical **out, struct err *e)
{
	const struct logical_source src = {
		.frames = frames, .mapping = mapping, .prof = p, .minor = minor
	};

	assert_ptr_equal(s, &subject);
	return logical_fails ? err_set(e, logical_fails, "no") : logical_new(&src, out, e);
}

/* ---- a goroutine's stack ---- */

enum { SP = 0xc000010000, WORDS = 2048 };

static struct gstacks k;
static struct prof *prof;
static uint64_t words[WORDS];

static void begin(int of)
{
	minor = of;
	asked = 0;
	assert_int_equal(prof_new(&prof, NULL), 0);
	assert_int_equal(gstacks_init(&k, &subject, prof, NULL), 0);
}

static void end(void)
{
	gstacks_fini(&k);
	prof_free(prof);
}

/* Unwinds a stack of these pcs, leaf first: the return address of each one lies above its function's bytes. */
static enum unwind_end unwind(const uint64_t *pcs, size_t n)
{
	struct unwind u = { .arch = ARCH_AMD64,
			    .minor = minor,
			    .pc = pcs[0],
			    .sp = SP,
			    .stack = (const uint8_t *)words };
	size_t sp = 0;
	enum unwind_end how;

	memset(words, 0, sizeof(words));
	for (size_t i = 0; i + 1 < n; i++) {
		sp += (size_t)(func_at(pcs[i] - BIAS)->delta / 8 + 1);
		assert_true(sp < WORDS);
		words[sp - 1] = pcs[i + 1];
	}
	u.n = (sp + 1) * 8;
	assert_int_equal(gstacks_unwind(&k, &u, &how, NULL), 0);
	return how;
}

#define UNWIND(...) \
	unwind((const uint64_t[]){ __VA_ARGS__ }, sizeof((uint64_t[]){ __VA_ARGS__ }) / 8)

static const struct gframe *frame(size_t i)
{
	assert_true(i < k.stack.n);
	return &k.frames.at[k.stack.at[i]];
}

/* The calls of k.stack as text: "func:line ...", with "(...)" around one that profiles leave out. */
static void calls_are(const char *want)
{
	char got[1024] = "";
	size_t at = 0;

	for (size_t i = 0; i < k.stack.n; i++) {
		const struct gframe *f = frame(i);

		for (uint32_t c = f->first; c < f->first + f->n; c++) {
			const struct gcall *call = &k.calls.at[c];

			at += (size_t)snprintf(got + at, sizeof(got) - at,
					       call->elided ? "%s(%s:%u)" : "%s%s:%u",
					       at ? " " : "", call->func, call->line);
		}
	}
	assert_string_equal(got, want);
}

static void a_stack_ends_where_all_do(void **state)
{
	const struct gframe *f;

	(void)state;
	begin(27);
	assert_int_equal(UNWIND(in(LEAF, 0x31), in(MID, 0x21), in(MAIN, 0x51), in(GOEXIT, 1)),
			 UNWIND_WHOLE);
	calls_are("main.leaf:3 main.mid:2 main.main:5 runtime.goexit:0");
	f = frame(1);
	assert_true(f->pc == in(MID, 0x21) && f->entry == in(MID, 0) && f->delta == 24);
	/* Its successor replaces it. */
	assert_int_equal(UNWIND(in(MAIN, 0x51), in(GOEXIT, 1)), UNWIND_WHOLE);
	calls_are("main.main:5 runtime.goexit:0");
	assert_int_equal(UNWIND(in(LEAF, 0x31), in(TOP, 0x21), in(MAIN, 0x51)), UNWIND_WHOLE);
	calls_are("main.leaf:3 main.top:2");
	end();
}

/* A return address belongs to the instruction before it, which may be of another line. */
static void a_call_is_before_its_return_address(void **state)
{
	(void)state;
	begin(27);
	UNWIND(in(LEAF, 0x30), in(MAIN, 0x51), in(GOEXIT, 1));
	calls_are("main.leaf:2 main.main:5 runtime.goexit:0");
	UNWIND(in(LEAF, 0x31), in(MAIN, 0x50), in(GOEXIT, 1));
	calls_are("main.leaf:3 main.main:4 runtime.goexit:0");
	/* One that has not begun stands at its entry, and the function before is another one. */
	UNWIND(in(MAIN, 0), in(GOEXIT, 1));
	calls_are("main.main:0 runtime.goexit:0");
	assert_true(frame(0)->pc == in(MAIN, 0));
	assert_true(k.calls.at[frame(0)->first].pc == in(MAIN, 1));
	end();
}

/* What a signal interrupts made no call. The same address is a return address in another stack. */
static void an_interrupted_instruction_is_looked_up_itself(void **state)
{
	(void)state;
	begin(27);
	UNWIND(in(PANIC, 0x11), in(SIGPANIC, 0x11), in(LEAF, 0x30), in(GOEXIT, 1));
	calls_are("runtime.gopanic:1 runtime.sigpanic:1 main.leaf:3 runtime.goexit:0");
	assert_true(k.calls.at[frame(2)->first].pc == in(LEAF, 0x31));
	UNWIND(in(PANIC, 0x11), in(LEAF, 0x30), in(GOEXIT, 1));
	calls_are("runtime.gopanic:1 main.leaf:2 runtime.goexit:0");
	assert_true(k.calls.at[frame(1)->first].pc == in(LEAF, 0x30));
	end();
}

/* An inlined call has a frame of its own in Go's lists, whose pc is made up: that of its caller's mark, and one. */
static void inlined_calls_are_calls(void **state)
{
	const struct gcall *c;

	(void)state;
	begin(27);
	UNWIND(in(LEAF, 0x31), in(MID, 0x44), in(MAIN, 0x51), in(GOEXIT, 1));
	calls_are("main.leaf:3 main.inl:100 main.mid:6 main.main:5 runtime.goexit:0");
	assert_int_equal(frame(1)->n, 2);
	c = &k.calls.at[frame(1)->first];
	assert_true(c[0].pc == in(MID, 0x44) && c[0].inlined);
	assert_string_equal(c[0].file, "inl.go");
	assert_true(c[1].pc == in(MID, INLINED_AT + 1) && !c[1].inlined);
	assert_false(k.calls.at[frame(0)->first].inlined);
	end();
}

/* A wrapper is left out, unless it called what panics: its own nil pointer. */
static void a_wrapper_is_left_out_unless_it_panics(void **state)
{
	(void)state;
	begin(27);
	UNWIND(in(LEAF, 0x31), in(WRAP, 0x21), in(MAIN, 0x51), in(GOEXIT, 1));
	calls_are("main.leaf:3 (main.(*T).M:2) main.main:5 runtime.goexit:0");
	UNWIND(in(PANIC, 0x11), in(WRAP, 0x21), in(MAIN, 0x51), in(GOEXIT, 1));
	calls_are("runtime.gopanic:1 main.(*T).M:2 main.main:5 runtime.goexit:0");
	/* That was the same instruction: each is as it was, however often it is met. */
	UNWIND(in(LEAF, 0x31), in(WRAP, 0x21), in(MAIN, 0x51), in(GOEXIT, 1));
	calls_are("main.leaf:3 (main.(*T).M:2) main.main:5 runtime.goexit:0");
	/* What it wraps may be inlined into it, and that is what panics, not the wrapper. */
	UNWIND(in(PANIC, 0x11), in(WRAP_INLINED, 0x44), in(MAIN, 0x51), in(GOEXIT, 1));
	calls_are("runtime.gopanic:1 main.U.M:100 (main.(*U).M:6) main.main:5 runtime.goexit:0");
	end();
}

static void each_pc_is_looked_up_once(void **state)
{
	(void)state;
	begin(27);
	for (int i = 0; i < 3; i++)
		UNWIND(in(LEAF, 0x31), in(MID, 0x21), in(MAIN, 0x51), in(GOEXIT, 1));
	assert_int_equal(asked, 4);
	assert_int_equal(k.frames.n, 4);
	/* One that is no function, too. */
	for (int i = 0; i < 3; i++)
		assert_int_equal(UNWIND(in(LEAF, 0x31), 0x99), UNWIND_BROKEN);
	assert_int_equal(asked, 5);
	end();
}

static void what_is_no_function_ends_a_stack(void **state)
{
	(void)state;
	begin(27);
	assert_int_equal(UNWIND(in(LEAF, 0x31), in(MID, 0x21), 0x99), UNWIND_BROKEN);
	calls_are("main.leaf:3 main.mid:2");
	assert_int_equal(k.stack.n, 2);
	/* No table tells where its caller is. */
	assert_int_equal(UNWIND(in(LEAF, 0x31), in(UNKNOWN, 0x21), in(GOEXIT, 1)), UNWIND_BROKEN);
	calls_are("main.leaf:3");
	/* Of two addresses that differ in their highest bits alone one is a function. */
	assert_int_equal(UNWIND(in(LEAF, 0x31), in(MAIN, 0x51), in(GOEXIT, 1)), UNWIND_WHOLE);
	for (int bit = 62; bit < 64; bit++)
		assert_int_equal(UNWIND(in(LEAF, 0x31), in(MAIN, 0x51) | 1ull << bit),
				 UNWIND_BROKEN);
	end();
}

/* ---- locations ---- */

/* Unwinds one of so many calls of the program, which may end in the root. */
static void deep(size_t n, bool root)
{
	uint64_t pcs[256];

	assert_true(n < ARRAY_LEN(pcs));
	for (size_t i = 0; i < n; i++)
		pcs[i] = in(LEAF, 0x31);
	pcs[n] = in(GOEXIT, 1);
	unwind(pcs, n + root);
}

static size_t locations(bool *cut)
{
	const uint32_t *locs;
	struct err e = {};
	size_t n;

	if (gstacks_locations(&k, &locs, &n, cut, &e))
		fail_msg("%s", e.msg);
	return n;
}

/* Up to 1.22 Go keeps 32 calls, and from 1.23 on 128. */
static void go_keeps_so_many_calls(void **state)
{
	static const struct {
		int minor;
		size_t depth;
	} versions[] = { { 16, 32 }, { 22, 32 }, { 23, 128 }, { 27, 128 }, { -1, 128 } };
	bool cut;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		size_t depth = versions[i].depth;

		begin(versions[i].minor);
		assert_int_equal(gstacks_depth(&k), depth);
		deep(depth - 1, true);
		assert_int_equal(locations(&cut), depth - 1);
		assert_false(cut);
		/* The root has no room, and is not missed. */
		deep(depth, true);
		assert_int_equal(locations(&cut), depth);
		assert_false(cut);
		deep(depth + 1, true);
		assert_int_equal(locations(&cut), depth);
		assert_true(cut);
		deep(depth + 1, false);
		assert_int_equal(locations(&cut), depth);
		assert_true(cut);
		end();
	}
}

/* Wrappers take no room. */
static void what_is_left_out_takes_no_room(void **state)
{
	uint64_t pcs[80];
	bool cut;

	(void)state;
	begin(22);
	for (size_t i = 0; i < 66; i++)
		pcs[i] = i % 2 ? in(WRAP, 0x21) : in(LEAF, 0x31);
	pcs[64] = in(GOEXIT, 1);
	unwind(pcs, 65);
	assert_int_equal(locations(&cut), 32);
	assert_false(cut);
	pcs[64] = in(LEAF, 0x31);
	unwind(pcs, 66);
	assert_int_equal(locations(&cut), 32);
	assert_true(cut);
	end();
}

/* The lines of a location as text: "func:line ...". */
static void location_is(uint32_t id, const char *want)
{
	struct prof_location_view v = prof_location_at(prof, id - 1);
	char got[256] = "";
	size_t at = 0;

	for (size_t i = 0; i < v.nlines; i++)
		at += (size_t)snprintf(got + at, sizeof(got) - at, "%s%s:%d", i ? " " : "",
				       strtab_get(prof_strings(prof),
						  prof_function_at(prof, v.func[i] - 1).name),
				       (int)v.line[i]);
	assert_string_equal(got, want);
}

static void locations_are_those_of_a_profile(void **state)
{
	const uint32_t *locs;
	bool cut;
	size_t n;

	(void)state;
	begin(27);
	UNWIND(in(LEAF, 0x30), in(WRAP, 0x21), in(MID, 0x44), in(MAIN, 0), in(GOEXIT, 1));
	assert_int_equal(gstacks_locations(&k, &locs, &n, &cut, NULL), 0);
	assert_int_equal(n, 3);
	location_is(locs[0], "main.leaf:2");
	location_is(locs[1], "main.inl:100 main.mid:6");
	location_is(locs[2], "main.main:0");
	end();
}

static void where_it_began_is_a_location(void **state)
{
	const uint32_t *locs;
	size_t n;

	(void)state;
	begin(27);
	assert_int_equal(gstacks_entry(&k, in(MID, 0), &locs, &n, NULL), 0);
	assert_int_equal(n, 1);
	location_is(locs[0], "main.mid:0");
	assert_true(prof_location_at(prof, locs[0] - 1).address == in(MID, 0));
	assert_int_equal(gstacks_entry(&k, 0, &locs, &n, NULL), 0);
	assert_int_equal(n, 0);
	end();
}

static void without_locations_there_are_no_stacks(void **state)
{
	(void)state;
	logical_fails = -ENOMEM;
	assert_int_equal(gstacks_init(&k, &subject, NULL, NULL), -ENOMEM);
	gstacks_fini(&k);
	logical_fails = 0;
}

/* ---- who owns a goroutine ---- */

static enum gorigin origin(const char *name)
{
	enum gorigin is;

	begin(27);
	name_of_all = name;
	nameless = !name;
	is = gstacks_origin(&k, in(LEAF, 0));
	name_of_all = NULL;
	nameless = false;
	/* It is known from then on. */
	assert_int_equal(gstacks_origin(&k, in(LEAF, 0)), is);
	assert_int_equal(asked, 1);
	end();
	return is;
}

static void the_function_it_began_in_tells_whose_it_is(void **state)
{
	(void)state;
	assert_int_equal(origin("main.work"), GORIGIN_USER);
	assert_int_equal(origin("runtime.main"), GORIGIN_USER);
	assert_int_equal(origin("runtime.corostart"), GORIGIN_USER);
	assert_int_equal(origin("runtime.handleAsyncEvent"), GORIGIN_USER);
	assert_int_equal(origin("runtime/pprof.profileWriter"), GORIGIN_USER);
	assert_int_equal(origin("runtime.bgsweep"), GORIGIN_SYSTEM);
	assert_int_equal(origin("runtime.main.func1"), GORIGIN_SYSTEM);
	assert_int_equal(origin("runtime.runfinq"), GORIGIN_FINALIZERS); /* up to 1.24 */
	assert_int_equal(origin("runtime.runFinalizers"), GORIGIN_FINALIZERS);
	assert_int_equal(origin("runtime.runCleanups"), GORIGIN_CLEANUPS);
	assert_int_equal(origin(NULL), GORIGIN_USER);
}

static void where_no_function_is_it_is_the_programs(void **state)
{
	(void)state;
	begin(27);
	assert_int_equal(gstacks_origin(&k, 0x99), GORIGIN_USER);
	assert_int_equal(gstacks_origin(&k, in(GOEXIT, 0)), GORIGIN_SYSTEM);
	assert_int_equal(gstacks_origin(&k, 0x99), GORIGIN_USER);
	end();
}

/* The runtime calls finalizers by reflection: by a function for each size of arguments. */
static void a_finalizer_is_called_by_reflection(void **state)
{
	(void)state;
	begin(27);
	UNWIND(in(LEAF, 0x31), in(CALL32, 0x21), in(MAIN, 0x51), in(GOEXIT, 1));
	assert_true(gstacks_in_finalizer(&k));
	UNWIND(in(LEAF, 0x31), in(CALL32, 0x44), in(MAIN, 0x51), in(GOEXIT, 1));
	assert_true(gstacks_in_finalizer(&k));
	UNWIND(in(LEAF, 0x31), in(CALLBACK, 0x21), in(MAIN, 0x51), in(GOEXIT, 1));
	assert_false(gstacks_in_finalizer(&k));
	UNWIND(in(LEAF, 0x31), in(MAIN, 0x51), in(GOEXIT, 1));
	assert_false(gstacks_in_finalizer(&k));
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stack_ends_where_all_do),
		cmocka_unit_test(a_call_is_before_its_return_address),
		cmocka_unit_test(an_interrupted_instruction_is_looked_up_itself),
		cmocka_unit_test(inlined_calls_are_calls),
		cmocka_unit_test(a_wrapper_is_left_out_unless_it_panics),
		cmocka_unit_test(each_pc_is_looked_up_once),
		cmocka_unit_test(what_is_no_function_ends_a_stack),
		cmocka_unit_test(go_keeps_so_many_calls),
		cmocka_unit_test(what_is_left_out_takes_no_room),
		cmocka_unit_test(locations_are_those_of_a_profile),
		cmocka_unit_test(where_it_began_is_a_location),
		cmocka_unit_test(without_locations_there_are_no_stacks),
		cmocka_unit_test(the_function_it_began_in_tells_whose_it_is),
		cmocka_unit_test(where_no_function_is_it_is_the_programs),
		cmocka_unit_test(a_finalizer_is_called_by_reflection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
