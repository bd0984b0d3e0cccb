/* tests/unit/test_typing.c - which type each object of a made-up dump gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "mkdump.h"
#include "mktyped.h"

static struct err e;

/* Where objects are: those of one size share a page. */
enum { PAGE = 0x2000 };
#define HEAP		   0xc000010000ull
#define NODE(i)		   (HEAP + 80ull * (i))
#define STRING		   (HEAP + 1 * PAGE)
#define INTS		   (STRING + 32)
#define UNKNOWN		   (HEAP + 2 * PAGE)
#define MAP		   (UNKNOWN + 48)
#define TEXT		   (UNKNOWN + 96)
#define CLOSURE		   (HEAP + 3 * PAGE)
#define TINY		   (CLOSURE + 16)
#define SHARED		   (CLOSURE + 32)
#define BUCKETS		   (HEAP + 4 * PAGE)
#define CHAN		   (HEAP + 5 * PAGE)
#define BUFFER		   (HEAP + 6 * PAGE)
#define LARGE		   (HEAP + 7 * PAGE)
#define INSIDE		   (HEAP + 8 * PAGE)
#define STACK		   0xc000800000ull

#define DESCRIPTOR(offset) (MKTYPED_BIAS + MKTYPES_TYPES + (offset))
#define NODE_TYPE	   DESCRIPTOR(0x2000)
#define NODE_POINTER	   DESCRIPTOR(0x2100)
#define CODE		   (MKTYPED_BIAS + MKTYPES_CODE)

/* An object of @n words, with pointers at these offsets; -1 ends them. */
static void object(uint64_t addr, const uint64_t *words, size_t n, const int *at)
{
	DUMP_NUMBERS(HEAPDUMP_OBJECT, addr);
	dump_words(words, n);
	for (; *at >= 0; at++)
		DUMP_NUMBERS(HEAPDUMP_PTR, (uint64_t)*at);
	dump_number(0);
}
#define AT(...) ((const int[]){ __VA_ARGS__, -1 })
#define NOTHING ((const int[]){ -1 })
#define OBJECT(addr, at, ...) \
	object(addr, (const uint64_t[]){ __VA_ARGS__ }, sizeof((uint64_t[]){ __VA_ARGS__ }) / 8, at)

/* next, name, ints, any, f */
static void node(int i, uint64_t next, uint64_t str, uint64_t len, uint64_t ints, uint64_t cap,
		 uint64_t type, uint64_t data, uint64_t f)
{
	OBJECT(NODE(i), AT(0, 8, 24, 56, 64), next, str, len, ints, cap, cap, type, data, f, 0);
}

static void empty(int i)
{
	node(i, 0, 0, 0, 0, 0, 0, 0, 0);
}

/* Is node 9 a closure that node 2 calls, and looks like a node? */
static bool called;

static void nodes(void)
{
	/*
	 * A ring of two; an interface leads to the second, too, whose name is in the middle of
	 * another node.
	 */
	node(0, NODE(1), STRING, 20, INTS, 4, NODE_TYPE, NODE(1), CLOSURE);
	node(1, NODE(0), NODE(2) + 16, 8, 0, 0, NODE_TYPE, NODE(2), 0);
	node(2, 0, 0, 0, 0, 0, 0, 0, called ? NODE(9) : 0); /* in an interface */
	/* Held by the closure; a short string and an int share a block of the allocator. */
	node(3, 0, SHARED + 4, 10, SHARED, 1, 0, 0, 0);
	empty(4);					 /* by the map */
	empty(5);					 /* by a frame */
	empty(6);					 /* by its finalizer alone */
	empty(7);					 /* in the channel's buffer */
	empty(8);					 /* by nothing */
	node(9, called ? CODE : 0, 0, 0, 0, 0, 0, 0, 0); /* by a slot that is dead */
}

/* Values without pointers among them. */
static void others(void)
{
	static const uint64_t slices[7 * 9 + 9] = { [0] = NODE_TYPE };
	int large[64] = { 0 }, n = 0;

	OBJECT(STRING, NOTHING, 1, 2, 3, 0);
	OBJECT(INTS, NOTHING, 1, 2, 3, 4);
	OBJECT(UNKNOWN, AT(8), 0, 0, 0, 0, 0, 0);
	OBJECT(MAP, AT(16), 1, 0, BUCKETS, 0, 0, 0);
	OBJECT(TEXT, NOTHING, 1, 2, 3, 4, 5, 6);
	OBJECT(CLOSURE, AT(8), CODE, NODE(3));
	OBJECT(TINY, NOTHING, 7, 0);
	OBJECT(SHARED, NOTHING, 7, 0);
	OBJECT(BUCKETS, AT(72, 80, 88, 216, 224, 232), 0, 0, 0, 0, 0, 0, 0, 0, 0, NODE(4), 0, 0, 0,
	       0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	OBJECT(CHAN, AT(16), 1, 2, BUFFER, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	OBJECT(BUFFER, AT(0, 8, 24, 56, 64, 72, 80, 96, 128, 136), NODE(7), 0, 0, 0, 0, 0, 0, 0, 0,
	       0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	/* It begins with its type, of which there are as many as fit; the last one is cut. */
	for (int k = 0; k < 8; k++)
		for (int i = 0; i < 5; i++)
			if (8 + 72 * k + (const int[]){ 0, 8, 24, 56, 64 }[i] < 576)
				large[n++] = 8 + 72 * k + (const int[]){ 0, 8, 24, 56, 64 }[i];
	large[n] = -1;
	object(LARGE, slices, 72, large);
}

/* Words of the frame in which variables that nothing says to be alive may be. */
enum { WHOLE, PARTS = 3, HALF = 7 };
static uint64_t dead[8];

static void stack(uint64_t here)
{
	DUMP_NUMBERS(HEAPDUMP_GOROUTINE, 0xc000002000, STACK, 1, 0, 4, 0, 0, 0);
	dump_text("select");
	DUMP_NUMBERS(0, 0, 0, 0);
	DUMP_NUMBERS(HEAPDUMP_FRAME, STACK, 0, 0);
	/* The CFA is at 64: here at 48, the string's pointer at 32 and its length at 16. */
	DUMP_WORDS(dead[WHOLE], 0, 40, dead[PARTS], TEXT, 0, here, dead[HALF]);
	DUMP_NUMBERS(CODE, CODE + 17, CODE + 17);
	dump_text("main.f");
	DUMP_NUMBERS(HEAPDUMP_PTR, 32);
	if (here == NODE(5))
		DUMP_NUMBERS(HEAPDUMP_PTR, 48);
	dump_number(0);
}

static void segments(void)
{
	DUMP_NUMBERS(HEAPDUMP_DATA, MKTYPED_BIAS + MKTYPES_DATA);
	DUMP_WORDS(0, 0, NODE(0), MAP);
	DUMP_NUMBERS(HEAPDUMP_PTR, 16, HEAPDUMP_PTR, 24, 0);
	DUMP_NUMBERS(HEAPDUMP_BSS, MKTYPED_BIAS + MKTYPES_BSS);
	DUMP_WORDS(0, CHAN, 0, UNKNOWN);
	DUMP_NUMBERS(HEAPDUMP_PTR, 8, HEAPDUMP_PTR, 24, 0);
}

static void write_dump(uint64_t here)
{
	dump_begin(7, false, 8);
	nodes();
	others();
	stack(here);
	segments();
	DUMP_NUMBERS(HEAPDUMP_FINALIZER, NODE(6), CLOSURE, CODE, 0, NODE_POINTER);
	dump_number(HEAPDUMP_EOF);
}

static void read_dump(struct mktyped *m, const struct mktypes *how)
{
	int fd CLEANUP(closep) = dump_fd();

	if (mktyped_read(m, fd, how, &e))
		fail_msg("%s", e.msg);
	assert_int_equal(m->x.lost, 0);
	assert_int_equal(m->x.unknown, 0);
}

static void is(const struct mktyped *m, uint64_t addr, enum heap_certainty certainty,
	       const char *name)
{
	assert_string_equal(mktyped_name(m, addr), name);
	assert_int_equal(mktyped_certainty(m, addr), certainty);
}

static void every_type(void **state)
{
	struct mktyped m;

	for (int version = 4; version <= 5; version++) {
		write_dump(NODE(5));
		read_dump(&m, &(struct mktypes){ .version = version });
		is(&m, NODE(0), HEAP_INFERRED, "main.node");
		is(&m, NODE(1), HEAP_EXACT, "main.node");
		is(&m, NODE(2), HEAP_EXACT, "main.node");
		is(&m, NODE(3), HEAP_INFERRED, "main.node");
		is(&m, NODE(4), HEAP_INFERRED, "main.node");
		is(&m, NODE(5), HEAP_INFERRED, "main.node");
		is(&m, NODE(6), HEAP_EXACT, "main.node");
		is(&m, NODE(7), HEAP_INFERRED, "main.node");
		is(&m, NODE(8), HEAP_LAYOUT, "80 B, pointers at 0 8 24 56 64");
		is(&m, STRING, HEAP_INFERRED, "string");
		is(&m, INTS, HEAP_INFERRED, "[]int");
		is(&m, TEXT, HEAP_INFERRED, "string");
		is(&m, CLOSURE, HEAP_INFERRED, "closure main.f");
		is(&m, MAP, HEAP_INFERRED, "map[int]*main.node");
		is(&m, BUCKETS, HEAP_INFERRED, "map bucket of map[int]*main.node");
		is(&m, CHAN, HEAP_INFERRED, "chan main.node");
		is(&m, BUFFER, HEAP_INFERRED, "chan main.node buffer");
		is(&m, LARGE, HEAP_EXACT, "[]main.node");
		is(&m, UNKNOWN, HEAP_LAYOUT, "48 B, pointers at 8");
		is(&m, TINY, HEAP_LAYOUT, "16 B without pointers");
		is(&m, SHARED, HEAP_INFERRED, "tiny block");
		mktyped_fini(&m);
	}
	(void)state;
}

/* Each class's pointers have names, by offset. */
static void field_names(void **state)
{
	struct mktyped m;
	struct object o;
	const struct heap_class *c;

	write_dump(NODE(5));
	read_dump(&m, &(struct mktypes){ .version = 4 });
	assert_true(objects_find(&m.g.heap.objects, BUFFER, &o));
	c = &m.c.all.at[m.c.of[o.index]];
	assert_int_equal(c->nfields, 10);
	assert_int_equal(c->stride, 72);
	assert_int_equal(c->base, 0);
	assert_int_equal(m.c.fields.at[c->first + 7].offset, 96);
	assert_string_equal(strtab_get(m.c.names, m.c.fields.at[c->first + 7].name), "[1].ints");
	assert_true(objects_find(&m.g.heap.objects, NODE(2), &o));
	c = &m.c.all.at[m.c.of[o.index]];
	assert_string_equal(strtab_get(m.c.names, m.c.fields.at[c->first].name), "next");
	assert_int_equal(c->stride, 0);
	/* An array that begins with its type. */
	assert_true(objects_find(&m.g.heap.objects, LARGE, &o));
	c = &m.c.all.at[m.c.of[o.index]];
	assert_int_equal(c->stride, 72);
	assert_int_equal(c->base, 8);
	mktyped_fini(&m);
	(void)state;
}

/* A word that is not live may be anything. */
static void dead_slots(void **state)
{
	struct mktyped m;

	write_dump(NODE(9));
	read_dump(&m, &(struct mktypes){ .version = 4 });
	is(&m, NODE(9), HEAP_LAYOUT, "80 B, pointers at 0 8 24 56 64");
	is(&m, NODE(5), HEAP_LAYOUT, "80 B, pointers at 0 8 24 56 64");
	is(&m, TEXT, HEAP_INFERRED, "string");
	mktyped_fini(&m);
	(void)state;
}

/*
 * What has its address taken is never told to be alive, and lies in one place: words of other variables
 * are of the past.
 */
static void stack_objects(void **state)
{
	static const int at[] = { WHOLE, PARTS, HALF };
	struct mktyped m;

	for (size_t i = 0; i < ARRAY_LEN(at); i++) {
		dead[at[i]] = NODE(9);
		write_dump(NODE(5));
		dead[at[i]] = 0;
		read_dump(&m, &(struct mktypes){ .version = 4 });
		if (at[i] == WHOLE)
			is(&m, NODE(9), HEAP_INFERRED, "main.node");
		else
			is(&m, NODE(9), HEAP_LAYOUT, "80 B, pointers at 0 8 24 56 64");
		mktyped_fini(&m);
	}
	(void)state;
}

/* What is known of an object otherwise is not given up for it. */
static void stack_objects_are_weak(void **state)
{
	struct mktyped m;

	dead[WHOLE] = NODE(9);
	called = true;
	write_dump(NODE(5));
	dead[WHOLE] = 0;
	called = false;
	read_dump(&m, &(struct mktypes){ .version = 4 });
	is(&m, NODE(9), HEAP_INFERRED, "closure main.f");
	mktyped_fini(&m);
	(void)state;
}

/* Without types everything is what the dump alone tells. */
static void no_types(void **state)
{
	struct mktyped m;

	write_dump(NODE(5));
	{
		int fd CLEANUP(closep) = dump_fd();

		assert_int_equal(mktyped_read(&m, fd, &(struct mktypes){ .version = 4, .other = 1 },
					      &e),
				 0);
	}
	is(&m, NODE(0), HEAP_LAYOUT, "80 B, pointers at 0 8 24 56 64");
	is(&m, LARGE, HEAP_LAYOUT, mktyped_name(&m, LARGE));
	mktyped_fini(&m);
	(void)state;
}

/* Globals: the first node, and a channel. */
static void write_two(uint64_t list, uint64_t chan)
{
	DUMP_NUMBERS(HEAPDUMP_DATA, MKTYPED_BIAS + MKTYPES_DATA);
	DUMP_WORDS(0, 0, list, 0);
	DUMP_NUMBERS(HEAPDUMP_PTR, 16, 0);
	DUMP_NUMBERS(HEAPDUMP_BSS, MKTYPED_BIAS + MKTYPES_BSS);
	DUMP_WORDS(0, chan);
	DUMP_NUMBERS(HEAPDUMP_PTR, 8, 0);
	dump_number(HEAPDUMP_EOF);
}

/* What is longer than its capacity is no slice, and what a channel cannot hold no buffer. */
static void no_lengths(void **state)
{
	struct mktyped m;

	for (uint64_t wrong = 0; wrong < 2; wrong++) {
		dump_begin(7, false, 8);
		OBJECT(NODE(0), AT(0, 8, 24, 56, 64), 0, 0, 0, INTS, 4 + wrong, 4, 0, 0, 0, 0);
		OBJECT(INTS, NOTHING, 1, 2, 3, 4);
		OBJECT(CHAN, AT(16), 1, wrong ? 100 : 2, BUFFER, 0, 0, 0, 0, 0, 0, 0, 0, 0);
		OBJECT(BUFFER, AT(0, 8, 24, 56, 64, 72, 80, 96, 128, 136), 0, 0, 0, 0, 0, 0, 0, 0,
		       0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
		write_two(NODE(0), CHAN);
		read_dump(&m, &(struct mktypes){ .version = 4 });
		is(&m, NODE(0), HEAP_INFERRED, "main.node");
		is(&m, CHAN, HEAP_INFERRED, "chan main.node");
		if (wrong) {
			is(&m, INTS, HEAP_LAYOUT, "32 B without pointers");
			assert_int_equal(mktyped_certainty(&m, BUFFER), HEAP_LAYOUT);
		} else {
			is(&m, INTS, HEAP_INFERRED, "[]int");
			is(&m, BUFFER, HEAP_INFERRED, "chan main.node buffer");
		}
		mktyped_fini(&m);
	}
	(void)state;
}

/* Nodes in the middle of an object without a type: there is room for one of them. */
static void lost_parts(void **state)
{
	struct mktyped m;

	for (mktyped_parts_max = 2; mktyped_parts_max; mktyped_parts_max--) {
		int fd CLEANUP(closep) = -1;

		dump_begin(7, false, 8);
		OBJECT(NODE(0), AT(0, 8, 24, 56, 64), UNKNOWN + 8, 0, 0, 0, 0, 0, NODE_TYPE,
		       UNKNOWN + 16, 0, 0);
		OBJECT(UNKNOWN, AT(8), 0, 0, 0, 0, 0, 0);
		write_two(NODE(0), 0);
		fd = dump_fd();
		assert_int_equal(mktyped_read(&m, fd, &(struct mktypes){ .version = 4 }, &e), 0);
		assert_int_equal(m.x.lost, 2 - mktyped_parts_max);
		mktyped_fini(&m);
	}
	(void)state;
}

/* A channel's buffer with nodes that lead to so many lists of nodes. */
enum { LISTS = 100, LENGTH = 60 };

static uint64_t nth(int i)
{
	return HEAP + 64 * PAGE + (uint64_t)i / 90 * PAGE + (uint64_t)i % 90 * 80;
}

static void write_many(void)
{
	static uint64_t words[1024];
	static int at[LISTS * 5 + 1];
	int n = 0;

	words[0] = NODE_TYPE;
	for (int i = 0; i < LISTS; i++) {
		words[1 + 9 * i] = nth(i * LENGTH);
		for (int k = 0; k < 5; k++)
			at[n++] = 8 + 72 * i + (const int[]){ 0, 8, 24, 56, 64 }[k];
	}
	at[n] = -1;
	dump_begin(7, false, 8);
	OBJECT(CHAN, AT(16), 1, LISTS, BUFFER + 8, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	object(BUFFER, words, ARRAY_LEN(words), at);
	for (int i = 0; i < LISTS * LENGTH; i++)
		OBJECT(nth(i), AT(0, 8, 24, 56, 64), (i + 1) % LENGTH ? nth(i + 1) : 0, 0, 0, 0, 0,
		       0, 0, 0, 0, 0);
	DUMP_NUMBERS(HEAPDUMP_DATA, MKTYPED_BIAS + MKTYPES_DATA);
	DUMP_WORDS(0, 0);
	dump_number(0);
	DUMP_NUMBERS(HEAPDUMP_BSS, MKTYPED_BIAS + MKTYPES_BSS);
	DUMP_WORDS(0, CHAN);
	DUMP_NUMBERS(HEAPDUMP_PTR, 8, 0);
	dump_number(HEAPDUMP_EOF);
}

/* More than the stack has room for: what does not fit is found by its bit. */
static void many(void **state)
{
	struct mktyped m;

	write_many();
	for (mktyped_stack_max = 4; mktyped_stack_max; mktyped_stack_max -= 4) {
		read_dump(&m, &(struct mktypes){ .version = 4 });
		is(&m, BUFFER, HEAP_EXACT, "[]main.node");
		for (int i = 0; i < LISTS * LENGTH; i++)
			is(&m, nth(i), HEAP_INFERRED, "main.node");
		mktyped_fini(&m);
	}
	(void)state;
}

/* Any byte of the dump may lie. */
static void any_byte(void **state)
{
	static const uint8_t flips[] = { 0xff, 0x80, 0x01, 0x7f };

	write_dump(NODE(5));
	for (size_t i = 0; i < dump.n; i++) {
		uint8_t was = dump.at[i];
		struct mktyped m;
		int fd;

		dump.at[i] ^= flips[i % sizeof(flips)];
		fd = dump_fd();
		dump.at[i] = was;
		mktyped_read(&m, fd, &(struct mktypes){ .version = 5, .swiss = i & 1 }, &e);
		mktyped_fini(&m);
		close(fd);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type),
		cmocka_unit_test(field_names),
		cmocka_unit_test(dead_slots),
		cmocka_unit_test(stack_objects),
		cmocka_unit_test(stack_objects_are_weak),
		cmocka_unit_test(no_lengths),
		cmocka_unit_test(lost_parts),
		cmocka_unit_test(no_types),
		cmocka_unit_test(many),
		cmocka_unit_test(any_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
