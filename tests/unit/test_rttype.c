/* tests/unit/test_rttype.c - names of types, from descriptors made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/limits.h"
#include "go/sites/rtmaker.h"
#include "go/runtime/types/rttype.h"
#include "mkgobin.h"

enum {
	TYPES = 0x500000, /* in the file */
	TYPES_BYTES = 0x8000,
	HEAP = 0x40000000,
	HEAP_BYTES = 0x2000,
	BIAS = 0x10000,
	NAMES = 0x4000, /* names lie from here on */
};

enum { ARRAY = 17, CHAN = 18, MAP = 21, POINTER = 22, SLICE = 23, STRUCT = 25 };

struct fake {
	uint8_t file[TYPES_BYTES], heap[HEAP_BYTES];
	struct bytemem file_mem, heap_mem;
	struct rttype_module module;
	struct golayout layout;
	struct rttypes types;
	uint32_t at, name_at, heap_at;
};

static int setup(void **state)
{
	struct fake *f = calloc(1, sizeof(*f));

	f->file_mem = bytemem_of(TYPES, f->file, sizeof(f->file));
	f->heap_mem = bytemem_of(HEAP, f->heap, sizeof(f->heap));
	f->module = (struct rttype_module){
		.mem = &f->file_mem.mem, .types = TYPES, .etypes = TYPES + TYPES_BYTES, .bias = BIAS
	};
	f->layout.off[LAYOUT_type_ptrdata] = 8;
	f->layout.off[LAYOUT_type_tflag] = 20;
	f->layout.off[LAYOUT_type_kind] = 23;
	f->layout.off[LAYOUT_type_str] = 40;
	f->layout.off[LAYOUT_type_sizeof] = 48;
	f->types = (struct rttypes){
		.layout = &f->layout, .module = &f->module, .n = 1, .live = &f->heap_mem.mem
	};
	f->at = 64;
	f->name_at = NAMES;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static void descriptor(uint8_t *to, uint8_t kind, uint8_t tflag, int32_t str)
{
	uint64_t size = 16, ptrdata = 8;

	memcpy(to, &size, 8);
	memcpy(to + 8, &ptrdata, 8);
	to[20] = tflag;
	to[23] = kind | 0x20; /* a flag, as up to Go 1.25 */
	memcpy(to + 40, &str, 4);
}

/* Makes a type in the file; returns its live address. */
static uint64_t in_file(struct fake *f, const char *name, uint8_t tflag)
{
	size_t n = strlen(name);
	uint32_t at = f->at;
	uint8_t *to = f->file + f->name_at;

	descriptor(f->file + at, STRUCT, tflag, (int32_t)f->name_at);
	f->at += 96;
	*to++ = 1;
	for (; n >= 128; n >>= 7)
		*to++ = (uint8_t)(n | 128);
	*to++ = (uint8_t)n;
	memcpy(to, name, strlen(name));
	f->name_at = (uint32_t)(to + strlen(name) - f->file);
	return TYPES + BIAS + at;
}

/* Makes a type as reflect does, with three words behind its head. */
static uint64_t made(struct fake *f, uint8_t kind, uint64_t a, uint64_t b, uint64_t c)
{
	uint32_t at = f->heap_at;

	descriptor(f->heap + at, kind, 0, -7);
	memcpy(f->heap + at + 48, &a, 8);
	memcpy(f->heap + at + 56, &b, 8);
	memcpy(f->heap + at + 64, &c, 8);
	f->heap_at += 80;
	return HEAP + at;
}

static void expect_name(struct fake *f, uint64_t addr, const char *want)
{
	char name[LIMIT_NAME];
	struct err e;
	int ret = rttype_name(&f->types, addr, name, sizeof(name), &e);

	if (ret)
		fail_msg("%s", e.msg);
	assert_string_equal(name, want);
}

static void expect_error(struct fake *f, uint64_t addr, int want)
{
	char name[LIMIT_NAME];
	struct err e;

	assert_int_equal(rttype_name(&f->types, addr, name, sizeof(name), &e), want);
	assert_true(strlen(e.msg) > 0);
}

static void from_the_file(void **state)
{
	struct fake *f = *state;
	char name[301];

	memset(name, 'n', 300);
	name[300] = 0;
	expect_name(f, in_file(f, "main.node", 0), "main.node");
	expect_name(f, in_file(f, "*main.node", 2), "main.node");
	expect_name(f, in_file(f, "*main.node", 0), "*main.node");
	expect_name(f, in_file(f, name, 0), name);
}

static void shapes_of_values(void **state)
{
	struct fake *f = *state;
	struct rttype_shape s;
	uint64_t at = in_file(f, "main.node", 0), heap = made(f, SLICE, at, 0, 0);

	assert_true(rttype_linked(&f->types, at));
	assert_false(rttype_linked(&f->types, heap));
	assert_int_equal(rttype_shape(&f->types, at, &s, NULL), 0);
	assert_int_equal(s.kind, STRUCT);
	assert_int_equal(s.size, 16);
	assert_int_equal(s.ptrdata, 8);
	assert_int_equal(rttype_shape(&f->types, heap, &s, NULL), 0);
	assert_int_equal(s.kind, RTTYPE_SLICE);
	assert_int_equal(rttype_shape(&f->types, at + 4, &s, NULL), -EBADMSG);
}

static void made_by_reflect(void **state)
{
	struct fake *f = *state;
	uint64_t node = in_file(f, "main.node", 0), p = made(f, POINTER, node, 0, 0);
	uint64_t recv = made(f, CHAN, node, 1, 0);

	expect_name(f, p, "*main.node");
	expect_name(f, made(f, SLICE, p, 0, 0), "[]*main.node");
	expect_name(f, made(f, ARRAY, node, p, 12), "[12]main.node");
	expect_name(f, made(f, MAP, p, node, 0), "map[*main.node]main.node");
	expect_name(f, recv, "<-chan main.node");
	expect_name(f, made(f, CHAN, node, 2, 0), "chan<- main.node");
	expect_name(f, made(f, CHAN, recv, 3, 0), "chan (<-chan main.node)");
	expect_error(f, made(f, CHAN, node, 4, 0), -EBADMSG);
	expect_error(f, made(f, STRUCT, node, 0, 0), -ENOENT);
	expect_error(f, made(f, SLICE, made(f, STRUCT, 0, 0, 0), 0, 0), -ENOENT);
}

static void lies(void **state)
{
	struct fake *f = *state;
	uint64_t t = in_file(f, "main.node", 0);
	uint8_t *at = f->file + (t - BIAS - TYPES);
	int32_t beyond = TYPES_BYTES, below = -3, last = TYPES_BYTES - 2;

	expect_error(f, t + 4, -EBADMSG);
	expect_error(f, t + 96, -EBADMSG); /* all zero */
	expect_error(f, 0x1000, -EFAULT);
	memcpy(at + 40, &beyond, 4);
	expect_error(f, t, -EBADMSG);
	memcpy(at + 40, &below, 4);
	expect_error(f, t, -EBADMSG);
	f->file[TYPES_BYTES - 2] = 1;
	f->file[TYPES_BYTES - 1] = 90; /* bytes that the file does not have */
	memcpy(at + 40, &last, 4);
	expect_error(f, t, -EBADMSG);
	expect_error(f, in_file(f, "two\nlines", 0), -EBADMSG);
	expect_error(f, in_file(f, "*", 2), -EBADMSG);
}

static void too_much(void **state)
{
	struct fake *f = *state;
	uint64_t t = in_file(f, "main.node", 0), circle, map;
	char name[12];
	struct err e;

	expect_error(f, circle = made(f, POINTER, HEAP, 0, 0), -E2BIG);
	assert_int_equal(circle, HEAP);
	/*
	 * A type that contains itself twice: as many names as there is room for, not two to the
	 * power of the depth.
	 */
	map = HEAP + f->heap_at;
	expect_error(f, made(f, MAP, map, map, 0), -E2BIG);
	assert_int_equal(rttype_name(&f->types, t, name, 10, &e), 0);
	assert_int_equal(rttype_name(&f->types, t, name, 9, &e), -E2BIG);
	t = made(f, SLICE, t, 0, 0);
	assert_int_equal(rttype_name(&f->types, t, name, 12, &e), 0);
	assert_int_equal(rttype_name(&f->types, t, name, 11, &e), -E2BIG);
	assert_int_equal(rttype_name(&f->types, t, name, 2, &e), -E2BIG);
	f->layout.off[LAYOUT_type_str] = -1;
	expect_error(f, t, -ENOTSUP);
}

static void shapes(void **state)
{
	static const char *const cases[][2] = {
		{ "main.list[go.shape.*uint8]", "main.list[...]" },
		{ "main.pair[string,int]", "main.pair[string,int]" },
		{ "[]main.pair[string,go.shape.struct { main.a []int; main.b int }]",
		  "[]main.pair[...]" },
		{ "map[go.shape.string]main.list[go.shape.int_0]", "map[?]main.list[...]" },
		{ "map[main.pair[go.shape.int,int]]bool", "map[main.pair[...]]bool" },
		{ "main.smap[go.shape.int]", "main.smap[...]" },
		{ "struct { F uintptr; X0 *go.shape.struct { a map[int]string }; X1 int }",
		  "struct { F uintptr; X0 *?; X1 int }" },
		{ "[4]go.shape.func(int, string) (bool, error)", "[4]?" },
		{ "[4]go.shape.func(int) chan bool", "[4]?" },
		{ "go.shape.[]uint8", "?" },
		{ "[]go.shape.struct { a int }_12", "[]?" },
		{ "go.shape.interface { Get() (int, error) }", "?" },
		{ "chan go.shape.<-chan main.x[int]", "chan ?" },
		{ "go.shape.map[string][4]main.a.b/c", "?" },
		{ "main.cut[go.shape.int", "main.cut[...]" },
		{ "go.shape.struct { ", "?" },
		{ "]})", "]})" },
	};
	char name[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		snprintf(name, sizeof(name), "%s", cases[i][0]);
		rttype_hide_shapes(name);
		assert_string_equal(name, cases[i][1]);
	}
}

/* A name that is designed to be slow is not slow: a hostile program may have many such types. */
static void shapes_behind_many_brackets(void **state)
{
	static char name[LIMIT_NAME];
	size_t pairs = (LIMIT_NAME - 32) / 3;

	(void)state;
	for (int round = 0; round < 300; round++) {
		for (size_t i = 0; i < pairs; i++)
			memcpy(name + 2 * i, "a[", 2);
		memset(name + 2 * pairs, ']', pairs);
		snprintf(name + 3 * pairs, LIMIT_NAME - 3 * pairs, "b[go.shape.int]");
		rttype_hide_shapes(name);
		assert_string_equal(name + 3 * pairs, "b[...]");
	}
}

static void makers(void **state)
{
	(void)state;
	assert_int_equal(rtmaker_of("runtime.mallocgcSmallScanNoHeaderSC4").kind, MADE_ALLOCATOR);
	assert_int_equal(rtmaker_of("runtime.growslice").kind, MADE_SLICE);
	assert_int_equal(rtmaker_of("runtime.makechan").kind, MADE_CHAN);
	assert_string_equal(rtmaker_of("runtime.rawstring").name, "string");
	assert_int_equal(rtmaker_of("main.growslice").kind, MADE_OTHER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(from_the_file, setup, teardown),
		cmocka_unit_test_setup_teardown(shapes_of_values, setup, teardown),
		cmocka_unit_test_setup_teardown(made_by_reflect, setup, teardown),
		cmocka_unit_test_setup_teardown(lies, setup, teardown),
		cmocka_unit_test_setup_teardown(too_much, setup, teardown),
		cmocka_unit_test(shapes),
		cmocka_unit_test(shapes_behind_many_brackets),
		cmocka_unit_test(makers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
