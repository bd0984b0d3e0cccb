/* tests/unit/test_stack_logical.c - folding logical pcs into locations, over a made-up program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/limits.h"
#include "symbolize/stack_logical.h"

enum { BIAS = 0x400000 };

/* At pcs in [lo, hi) of the function at entry there are these calls. */
static const struct place {
	uint64_t lo, hi, entry;
	struct goframe f[3];
} places[] = {
	/* main.main, with main.b inlined and main.a inlined into that */
	{ 0x1000, 0x1040, 0x1000, { { .func = "main.main", .line = 1 } } },
	{ 0x1040,
	  0x1041,
	  0x1000,
	  { { .func = "main.a", .line = 30, .parent_pc = 0x1041 },
	    { .func = "main.b", .line = 20, .parent_pc = 0x1042 },
	    { .func = "main.main", .line = 10 } } },
	{ 0x1041,
	  0x1042,
	  0x1000,
	  { { .func = "main.b", .line = 20, .parent_pc = 0x1042 },
	    { .func = "main.main", .line = 10 } } },
	{ 0x1042, 0x1100, 0x1000, { { .func = "main.main", .line = 10 } } },
	/* runtime.main, then functions of the runtime that allocate */
	{ 0x2000, 0x2100, 0x2000, { { .func = "runtime.main", .line = 5 } } },
	{ 0x2100, 0x2200, 0x2100, { { .func = "runtime.makeslice", .line = 6 } } },
	{ 0x2200, 0x2300, 0x2200, { { .func = "internal/runtime/maps.New", .line = 7 } } },
	{ 0x3000, 0x3010, 0x3000, { { .func = "runtime.goexit", .line = 8 } } },
	/* a function with a generic one of another type inlined into itself */
	{ 0x4000,
	  0x4010,
	  0x4000,
	  { { .func = "main.G[int]", .line = 2, .parent_pc = 0x4010 },
	    { .func = "main.G[string]", .line = 3 } } },
	{ 0x4010, 0x4100, 0x4000, { { .func = "main.G[string]", .line = 3 } } },
	/* a wrapper inlined between two calls */
	{ 0x5000,
	  0x5010,
	  0x4f00,
	  { { .func = "main.T.M", .line = 1, .parent_pc = 0x5010 },
	    { .func = "main.(*T).M", .line = 1, .id = FUNC_WRAPPER, .parent_pc = 0x5020 },
	    { .func = "main.use", .line = 9 } } },
	{ 0x5010,
	  0x5020,
	  0x4f00,
	  { { .func = "main.(*T).M", .line = 1, .id = FUNC_WRAPPER, .parent_pc = 0x5020 },
	    { .func = "main.use", .line = 9 } } },
	{ 0x5020, 0x5030, 0x4f00, { { .func = "main.use", .line = 9 } } },
	/* inlined into one function of the same name: taken for recursion */
	{ 0x6000,
	  0x6010,
	  0x6000,
	  { { .func = "main.r", .line = 1, .parent_pc = 0x6010 },
	    { .func = "main.r", .line = 2 } } },
	{ 0x6010, 0x6020, 0x6000, { { .func = "main.r", .line = 2 } } },
};

static int fake_frames(void *arg, uint64_t addr, struct goframe *f, size_t cap, uint64_t *entry)
{
	(void)arg;
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		const struct place *p = &places[i];
		int n = 0;

		if (addr < p->lo + BIAS || addr >= p->hi + BIAS)
			continue;
		while ((size_t)n < ARRAY_LEN(p->f) && (size_t)n < cap && p->f[n].func) {
			f[n] = p->f[n];
			f[n].file = "f.go";
			if (f[n].parent_pc)
				f[n].parent_pc += BIAS;
			n++;
		}
		*entry = p->entry + BIAS;
		return n;
	}
	return -ENOENT;
}

static int fake_mapping(void *arg, struct prof *p, uint64_t addr, struct err *e)
{
	struct prof_mapping m = {
		.start = BIAS, .limit = BIAS + 0x7000, .filename = "exe", .build_id = ""
	};

	if (arg)
		return err_set(e, -EBADMSG, "no mappings today");
	return addr >= m.start && addr < m.limit ? prof_mapping(p, &m, e) : 0;
}

struct fix {
	struct prof *p;
	struct logical *l;
	struct err e;
};

static struct fix start(int minor)
{
	struct fix x = { 0 };
	struct logical_source src = { .frames = fake_frames,
				      .mapping = fake_mapping,
				      .minor = minor };

	assert_int_equal(prof_new(&x.p, &x.e), 0);
	src.prof = x.p;
	assert_int_equal(logical_new(&src, &x.l, &x.e), 0);
	return x;
}

static void finish(struct fix *x)
{
	logical_free(x->l);
	prof_free(x->p);
}

/* The locations of a stack as text: "ADDRESS:func:line+func:line ..." */
static void expect(struct fix *x, const uint64_t *pcs, size_t n, const char *want)
{
	uint64_t live[8];
	const uint32_t *locs;
	size_t nlocs, at = 0;
	char got[1024] = "";

	for (size_t i = 0; i < n; i++)
		live[i] = pcs[i] + BIAS;
	if (logical_locations(x->l, live, n, &locs, &nlocs, &x->e))
		fail_msg("%s", x->e.msg);
	for (size_t i = 0; i < nlocs; i++) {
		struct prof_location_view v = prof_location_at(x->p, locs[i] - 1);

		at += (size_t)snprintf(got + at, sizeof(got) - at, "%s%llx", i ? " " : "",
				       (unsigned long long)v.address - BIAS);
		for (size_t k = 0; k < v.nlines; k++) {
			struct prof_function_view f = prof_function_at(x->p, v.func[k] - 1);

			at += (size_t)snprintf(got + at, sizeof(got) - at, "%c%s:%lld",
					       k ? '+' : ':',
					       strtab_get(prof_strings(x->p), f.name),
					       (long long)v.line[k]);
		}
	}
	assert_string_equal(got, want);
}

#define EXPECT(x, want, ...)                           \
	expect((x), (const uint64_t[]){ __VA_ARGS__ }, \
	       sizeof((const uint64_t[]){ __VA_ARGS__ }) / 8, want)

#define MAIN_LOC "1040:main.a:30+main.b:20+main.main:10"

static void folds_inlined_calls(void **state)
{
	struct fix x = start(22);

	(void)state;
	EXPECT(&x, MAIN_LOC " 2050:runtime.main:5", 0x1041, 0x1042, 0x1043, 0x2051, 0x3001);
	assert_int_equal(prof_location_at(x.p, 0).mapping, 1);
	/* the same again, from memory */
	EXPECT(&x, MAIN_LOC " 2050:runtime.main:5", 0x1041, 0x1042, 0x1043, 0x2051, 0x3001);
	assert_int_equal(prof_nlocations(x.p), 2);
	finish(&x);
}

/* A stack that was cut inside of an inlined call gets its callers back. */
static void expands_the_last(void **state)
{
	struct fix x = start(22);

	(void)state;
	EXPECT(&x, MAIN_LOC, 0x1041);
	EXPECT(&x, MAIN_LOC, 0x1041, 0x1042);
	finish(&x);
}

/* But a wrapper that the runtime would have left out is left out here as well. */
static void expands_without_wrappers(void **state)
{
	struct fix x = start(22);

	(void)state;
	EXPECT(&x, "5008:main.T.M:1+main.use:9", 0x5009);
	finish(&x);
}

/* A made-up pc that was a leaf once joins its stack from Go 1.19 on, and did not before. */
static void known_inlined_pc(void **state)
{
	struct fix x = start(19);

	(void)state;
	EXPECT(&x, "1041:main.b:20+main.main:10", 0x1042, 0x1043);
	EXPECT(&x, MAIN_LOC, 0x1041, 0x1042, 0x1043);
	finish(&x);
	x = start(18);
	EXPECT(&x, "1041:main.b:20+main.main:10", 0x1042, 0x1043);
	EXPECT(&x, "1040:main.a:30 1041:main.b:20+main.main:10", 0x1041, 0x1042, 0x1043);
	finish(&x);
}

static void same_name_is_recursion(void **state)
{
	struct fix x = start(22);

	(void)state;
	EXPECT(&x, "6005:main.r:1 6010:main.r:2", 0x6006, 0x6011);
	EXPECT(&x, "4008:main.G[int]:2+main.G[string]:3", 0x4009, 0x4011);
	finish(&x);
	/* Go 1.21 compared names without type arguments, but wrote them with. */
	x = start(21);
	EXPECT(&x, "4008:main.G[int]:2 4010:main.G[string]:3", 0x4009, 0x4011);
	finish(&x);
}

static void only_goexit(void **state)
{
	struct fix x = start(22);

	(void)state;
	EXPECT(&x, "", 0x3001);
	expect(&x, NULL, 0, "");
	finish(&x);
}

/* A return pc at a function's entry is looked up there, and not one byte before. */
static void at_entry(void **state)
{
	struct fix x = start(22);

	(void)state;
	EXPECT(&x, "2100:runtime.makeslice:6 2000:runtime.main:5", 0x2100, 0x2001);
	finish(&x);
}

static void outside(void **state)
{
	struct fix x = start(22);

	(void)state;
	EXPECT(&x, "8fff 1041:main.b:20+main.main:10 8fff", 0x9000, 0x1042, 0x1043, 0x9000);
	assert_int_equal(prof_loss(x.p)->n[LOSS_PCS_UNRESOLVED], 1);
	assert_int_equal(prof_location_at(x.p, 0).mapping, 0);
	finish(&x);
}

static size_t hidden(struct fix *x, uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t pcs[] = { a + BIAS, b + BIAS, c + BIAS };

	return logical_hidden(x->l, pcs, 3);
}

static void hides_the_runtime(void **state)
{
	struct fix x = start(24);

	(void)state;
	assert_int_equal(hidden(&x, 0x1041, 0x2051, 0x3001), 0);
	assert_int_equal(hidden(&x, 0x2151, 0x1041, 0x2051), 1);
	assert_int_equal(hidden(&x, 0x2151, 0x2251, 0x1041), 2);
	assert_int_equal(hidden(&x, 0x2151, 0x9000, 0x1041), 1);
	assert_int_equal(hidden(&x, 0x2151, 0x2151, 0x3001), 0); /* all of them: none */
	/* the return pc itself decides: here it is the next function's entry */
	assert_int_equal(hidden(&x, 0x2000, 0x1041, 0x1042), 1);
	finish(&x);
	x = start(23);
	assert_int_equal(hidden(&x, 0x2151, 0x2251, 0x1041), 1);
	finish(&x);
	x = start(-1);
	assert_int_equal(hidden(&x, 0x2151, 0x2251, 0x1041), 2);
	finish(&x);
}

/* What runtime/pprof makes of physical pcs, at most @max of them. */
static void callers(struct fix *x, size_t max, const uint64_t *pcs, size_t n, const uint64_t *want,
		    size_t nwant)
{
	uint64_t live[8];
	const uint64_t *got;
	size_t ngot;

	for (size_t i = 0; i < n; i++)
		live[i] = pcs[i] == UINT64_MAX ? pcs[i] : pcs[i] + BIAS;
	if (logical_callers(x->l, live, n, max, &got, &ngot, &x->e))
		fail_msg("%s", x->e.msg);
	assert_int_equal(ngot, nwant);
	for (size_t i = 0; i < ngot; i++)
		assert_int_equal(got[i], want[i] + (want[i] == 1 ? 0 : BIAS));
}

#define PCS(...) (const uint64_t[]){ __VA_ARGS__ }, sizeof((const uint64_t[]){ __VA_ARGS__ }) / 8

static void physical_stacks(void **state)
{
	struct fix x = start(27);

	(void)state;
	/* inlined calls are put in; the last pc is left to logical_locations */
	callers(&x, 128, PCS(0x1041, 0x2051), PCS(0x1041, 0x1042, 0x1043, 0x2051));
	callers(&x, 128, PCS(0x2051, 0x1041), PCS(0x2051, 0x1041));
	/* those that are there are not put in twice: from the innermost on, or from further out */
	callers(&x, 128, PCS(0x1041, 0x1042, 0x1043, 0x2051), PCS(0x1041, 0x1042, 0x1043, 0x2051));
	callers(&x, 128, PCS(0x1042, 0x1043, 0x2051), PCS(0x1042, 0x1043, 0x2051));
	callers(&x, 128, PCS(0x1041, 0x1042, 0x2051), PCS(0x1041, 0x1042, 0x1043, 0x2051));
	/* a wrapper is not */
	callers(&x, 128, PCS(0x5009, 0x2051), PCS(0x5009, 0x5021, 0x2051));
	/* the mark of a logical stack, and what is no Go code, are left out */
	callers(&x, 128, PCS(UINT64_MAX, 0x2151, 0x2051), PCS(0x2151, 0x2051));
	callers(&x, 128, PCS(0x2151, 0x9000, 0x2051), PCS(0x2151, 0x2051));
	/* a function's entry stands for itself */
	callers(&x, 128, PCS(0x2100, 0x2051), PCS(0x2101, 0x2051));
	finish(&x);
}

static void physical_bounds(void **state)
{
	uint64_t pcs[LIMIT_BUCKET_STACK + 1] = { 0 };
	struct fix x = start(27);
	const uint64_t *got;
	size_t n;

	(void)state;
	callers(&x, 2, PCS(0x1041, 0x2051), PCS(0x1041, 0x1042));
	callers(&x, 0, PCS(0x1041, 0x2051), NULL, 0);
	/* no Go code at all: Go takes the zero frame for one */
	callers(&x, 128, PCS(UINT64_MAX, 0x9000), PCS(1));
	callers(&x, 128, NULL, 0, PCS(1));
	assert_int_equal(logical_callers(x.l, pcs, ARRAY_LEN(pcs), 128, &got, &n, &x.e), -E2BIG);
	finish(&x);
}

static void passes_errors_on(void **state)
{
	struct logical_source src = {
		.frames = fake_frames, .mapping = fake_mapping, .arg = &src, .minor = 22
	};
	uint64_t pcs[LIMIT_BUCKET_STACK + 1] = { 0x2051 + BIAS };
	struct fix x = { 0 };
	const uint32_t *locs;
	size_t n;

	(void)state;
	assert_int_equal(prof_new(&x.p, &x.e), 0);
	src.prof = x.p;
	assert_int_equal(logical_new(&src, &x.l, &x.e), 0);
	assert_int_equal(logical_locations(x.l, pcs, 1, &locs, &n, &x.e), -EBADMSG);
	assert_int_equal(logical_locations(x.l, pcs, LIMIT_BUCKET_STACK + 1, &locs, &n, &x.e),
			 -E2BIG);
	finish(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(folds_inlined_calls),
		cmocka_unit_test(expands_the_last),
		cmocka_unit_test(expands_without_wrappers),
		cmocka_unit_test(known_inlined_pc),
		cmocka_unit_test(same_name_is_recursion),
		cmocka_unit_test(only_goexit),
		cmocka_unit_test(at_entry),
		cmocka_unit_test(outside),
		cmocka_unit_test(hides_the_runtime),
		cmocka_unit_test(physical_stacks),
		cmocka_unit_test(physical_bounds),
		cmocka_unit_test(passes_errors_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
