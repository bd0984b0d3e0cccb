/* tests/unit/test_heapclasses.c - classes of objects, their names and sums; groups of goroutines. */
#include "heapgraph/classes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "heapgraph/describe.h"

static struct err e;
static struct strtab *names;
static struct classes c;

static void begin(uint32_t objects, uint64_t bytes)
{
	assert_int_equal(strtab_new(&names, &e), 0);
	assert_int_equal(classes_init(&c, names, objects, bytes, &e), 0);
}

static void end(void)
{
	classes_fini(&c);
	strtab_free(names);
}

#define OFFSETS(...) \
	(const uint32_t[]){ __VA_ARGS__ }, sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t)

static const char *layout(uint64_t size, const uint32_t *at, size_t n)
{
	return strtab_get(names, c.all.at[classes_layout(&c, size, at, n)].name);
}

static void test_layout_names(void **state)
{
	const char *nine, *ten;

	(void)state;
	begin(0, 0);
	assert_string_equal(layout(48, NULL, 0), "48 B without pointers");
	assert_string_equal(layout(48, OFFSETS(0, 8)), "48 B, pointers at 0 8");
	assert_string_equal(layout(8, OFFSETS(0)), "8 B, pointers at 0");
	/* Many are told by the first ones, a number and a checksum. */
	nine = layout(640, OFFSETS(0, 8, 24, 48, 80, 120, 168, 224, 288));
	ten = layout(640, OFFSETS(0, 8, 24, 48, 80, 120, 168, 224, 296));
	assert_non_null(
		strstr(nine, "640 B, pointers at 0 8 24 48 80 120 168 224 ... (9, layout "));
	assert_int_equal(strncmp(nine, ten, strlen(nine) - 10), 0);
	assert_string_not_equal(nine, ten);
	end();
}

/* What repeats to the end of the object, but for what the size class adds, is an array. */
static void test_periods(void **state)
{
	(void)state;
	begin(0, 0);
	assert_string_equal(layout(64, OFFSETS(0, 8, 16, 24, 32, 40, 48, 56)),
			    "64 B, every 8 B pointers at 0");
	assert_string_equal(layout(96, OFFSETS(8, 32, 56, 80)), "96 B, every 24 B pointers at 8");
	assert_string_equal(layout(96, OFFSETS(0, 8, 32, 40, 64, 72)),
			    "96 B, every 32 B pointers at 0 8");
	assert_string_equal(layout(128, OFFSETS(0, 24, 48, 72, 96)),
			    "128 B, every 24 B pointers at 0");
	/* It ends too early, does not begin at its beginning, or breaks off within. */
	assert_string_equal(layout(128, OFFSETS(0, 24)), "128 B, pointers at 0 24");
	assert_string_equal(layout(64, OFFSETS(32, 40, 48, 56)), "64 B, pointers at 32 40 48 56");
	assert_string_equal(layout(96, OFFSETS(0, 8, 32, 40, 64)),
			    "96 B, pointers at 0 8 32 40 64");
	assert_string_equal(layout(64, OFFSETS(0, 8, 16, 32, 40, 48)),
			    "64 B, every 32 B pointers at 0 8 16");
	end();
}

/* One class for one layout; the same offsets in another size are another one. */
static void test_same_layout(void **state)
{
	uint16_t first;

	(void)state;
	begin(0, 0);
	first = classes_layout(&c, 48, OFFSETS(0, 8));
	assert_int_equal(classes_layout(&c, 48, OFFSETS(0, 8)), first);
	assert_int_not_equal(classes_layout(&c, 64, OFFSETS(0, 8)), first);
	assert_int_not_equal(classes_layout(&c, 48, OFFSETS(0, 16)), first);
	assert_int_equal(c.all.at[first].nfields, 2);
	assert_int_equal(c.fields.at[c.all.at[first].first + 1].offset, 8);
	end();
}

/* With more layouts than there are classes nothing is lost: the rest is "other". */
static void test_too_many(void **state)
{
	enum { OBJECTS = CLASSES_MAX + 1000 };
	struct class_sum *sums;
	uint64_t objects = 0, bytes = 0, all = 0;
	size_t n;

	(void)state;
	for (uint32_t i = 0; i < OBJECTS; i++)
		all += 8 * (i + 1);
	begin(OBJECTS, all);
	for (uint32_t i = 0; i < OBJECTS; i++) {
		uint16_t class = classes_layout(&c, 8 * (i + 1), NULL, 0);

		assert_int_equal(class == 0, i + 1 >= CLASSES_MAX);
		classes_put(&c, i, class);
	}
	assert_int_equal(classes_sums(&c, &sums, &n, &e), 0);
	assert_string_equal(strtab_get(names, sums[0].name), "other");
	assert_int_equal(sums[0].objects, 1001);
	for (size_t i = 0; i < n; i++) {
		objects += sums[i].objects;
		bytes += sums[i].bytes;
	}
	assert_int_equal(objects, OBJECTS);
	assert_int_equal(bytes, all);
	free(sums);
	end();
}

static uint16_t typed(uint64_t key, uint64_t size, enum heap_certainty certainty, const char *name)
{
	bool made;
	uint16_t class = classes_typed(&c, key, size, certainty, &made);

	assert_true(made);
	c.all.at[class].name = strtab_puts(names, name);
	assert_int_equal(classes_typed(&c, key, size, certainty, &made), class);
	assert_false(made);
	return class;
}

static void is(const struct class_sum *s, const char *name, uint64_t objects, uint64_t bytes,
	       enum heap_certainty certainty)
{
	assert_string_equal(strtab_get(names, s->name), name);
	assert_int_equal(s->objects, objects);
	assert_int_equal(s->bytes, bytes);
	assert_int_equal(s->certainty, certainty);
}

/* A name's classes count together, known as well as the least known of them; objects change class. */
static void test_sums(void **state)
{
	uint16_t small, large, plain;
	struct class_sum *sums;
	size_t n;

	(void)state;
	begin(6, 48 + 48 + 64 + 128 + 128 + 8);
	plain = classes_layout(&c, 48, NULL, 0);
	small = typed(1, 48, HEAP_EXACT, "[]main.node");
	large = typed(2, 128, HEAP_INFERRED, "[]main.node");
	for (uint32_t i = 0; i < 2; i++)
		classes_put(&c, i, plain);
	classes_put(&c, 1, small);
	classes_put(&c, 2, classes_layout(&c, 64, NULL, 0));
	classes_put(&c, 3, large);
	classes_put(&c, 4, large);
	assert_int_equal(classes_sums(&c, &sums, &n, &e), 0);
	assert_int_equal(n, 4);
	is(&sums[0], "[]main.node", 3, 48 + 2 * 128, HEAP_INFERRED);
	is(&sums[1], "64 B without pointers", 1, 64, HEAP_LAYOUT);
	is(&sums[2], "48 B without pointers", 1, 48, HEAP_LAYOUT);
	is(&sums[3], "other", 1, 8, HEAP_LAYOUT);
	free(sums);
	end();
}

/* ---- goroutines ---- */

static struct heapgraph h;

static void holder(enum holder_kind kind, uint8_t state, const char *name, uint64_t addr)
{
	struct holder told = { .kind = kind,
			       .state = state,
			       .name = strtab_puts(h.names, name),
			       .up = GRAPH_NONE,
			       .addr = addr };

	assert_int_equal(heapgraph_holder(&h, &told, &e), 0);
}

/* @innermost holds an object. */
static void goroutine(uint64_t id, uint8_t state, const char *reason, const char *innermost)
{
	uint32_t frames = (uint32_t)h.holders.n;

	holder(HOLDER_FRAME, 0, innermost, 0x401000 + id);
	assert_int_equal(heapgraph_points(&h, 0xc000000000 + 32 * id, &e), 0);
	holder(HOLDER_FRAME, 0, "main.main", 0x402000);
	holder(HOLDER_GOROUTINE, state, reason, id);
	for (uint32_t i = frames; i < frames + 2; i++) {
		h.holders.at[i].up = frames + 2;
		assert_int_equal(heapgraph_has_frame(&h, i, &e), 0);
	}
}

static void group(const struct goroutine_group *g, uint64_t first, uint32_t count)
{
	assert_int_equal(h.holders.at[g->first].addr, first);
	assert_int_equal(g->count, count);
	assert_int_equal(g->frames, 2);
	assert_int_equal(g->retained, 32ull * count);
}

/* Why one waits counts only while it waits: of others the runtime leaves the last reason there. */
static void test_goroutines(void **state)
{
	struct goroutine_group *groups;
	char text[DESCRIBE_BYTES];
	size_t n;

	(void)state;
	assert_int_equal(heapgraph_init(&h, &e), 0);
	for (uint64_t i = 0; i < 8; i++)
		assert_int_equal(heapgraph_object(&h, 0xc000000000 + 32 * i, 32, true, &e), 0);
	assert_int_equal(heapgraph_objects_end(&h, &e), 0);
	for (uint64_t i = 0; i < 8; i++)
		assert_int_equal(heapgraph_node(&h, &e), 0);
	goroutine(1, 4, "chan receive", "main.wait");
	goroutine(2, 1, "chan receive", "main.wait");
	goroutine(3, 4, "select", "main.wait");
	goroutine(4, 4, "chan receive", "main.wait");
	goroutine(5, 1, "select", "main.wait");
	goroutine(6, 4, "chan receive", "main.work");
	goroutine(7, 4, "chan receive", "main.wait");
	assert_int_equal(heapgraph_edges_end(&h, &e), 0);
	assert_int_equal(heapgraph_end(&h, &e), 0);
	assert_int_equal(goroutine_groups(&h, &groups, &n, &e), 0);
	assert_int_equal(n, 4);
	group(&groups[0], 1, 3);
	group(&groups[1], 2, 2);
	group(&groups[2], 3, 1);
	group(&groups[3], 6, 1);
	free(groups);
	describe_thing(&h, NULL, heapgraph_thing_of_holder(&h, 2), text);
	assert_string_equal(text, "goroutine 1 (chan receive)");
	describe_thing(&h, NULL, heapgraph_thing_of_holder(&h, 5), text);
	assert_string_equal(text, "goroutine 2 (runnable)");
	describe_thing(&h, NULL, heapgraph_thing_of_holder(&h, 15), text);
	assert_string_equal(text, "main.work of goroutine 6");
	describe_thing(&h, NULL, h.program, text);
	assert_string_equal(text, "the program");
	heapgraph_fini(&h);
}

static void test_states(void **state)
{
	(void)state;
	assert_string_equal(describe_state(1), "runnable");
	assert_string_equal(describe_state(3), "in a system call");
	assert_string_equal(describe_state(4), "waiting");
	assert_string_equal(describe_state(200), "in an unknown state");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout_names), cmocka_unit_test(test_periods),
		cmocka_unit_test(test_same_layout),  cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_sums),	     cmocka_unit_test(test_goroutines),
		cmocka_unit_test(test_states),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
