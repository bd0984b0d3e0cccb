/* tests/unit/test_dumpgraph.c - who holds what in small dumps: each kind of root, and damage. */
#include "ingest/heapdump/graph/graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "heapgraph/describe.h"
#include "ingest/heapdump/graph/classes.h"
#include "mkdump.h"

static struct err e;

/* ---- a dump ---- */

/* Objects of 32 bytes. */
#define AT(letter) (0xc000010000 + 32 * (uint64_t)((letter) - 'A'))

static void object(char letter, uint64_t first, uint64_t second)
{
	DUMP_NUMBERS(1, AT(letter));
	DUMP_WORDS(first, 7, second, 7);
	if (first || second)
		DUMP_NUMBERS(1, 0, 1, 16);
	dump_number(0);
}

static void goroutine(uint64_t id, const char *reason, uint64_t ctxt)
{
	DUMP_NUMBERS(4, 0xc000000180, 0xc00004a000, id, 0x401234, 4, 0, 0, 0);
	dump_text(reason);
	DUMP_NUMBERS(ctxt, 0, 0, 0);
}

static void frame(const char *name, uint64_t word)
{
	DUMP_NUMBERS(5, 0xc00004a000, 0, 0);
	DUMP_WORDS(1, word);
	DUMP_NUMBERS(0x402000, 0x402010, 0x402014);
	dump_text(name);
	DUMP_NUMBERS(1, 8, 0);
}

static void type(void)
{
	DUMP_NUMBERS(3, 0x500200, 24);
	dump_text("main.node");
	dump_number(1);
}

static void memstats(uint64_t objects, uint64_t bytes)
{
	dump_number(10);
	for (unsigned i = 0; i < 24 + 256 + 1; i++)
		dump_number(i == 0 ? bytes : i == 11 ? objects : 0);
}

/*
 * Who holds:	frame main.wait: A -> B -> L	defer: C	panic: D	context: E
 *		frame main.main: M		finalizer: F, of G	queued: H, and I itself
 *		a global: J -> L		another root: N		nobody: K -> K
 */
static void world(void)
{
	object('A', AT('B'), 0xdeadbeef); /* the second one is no object */
	object('B', AT('L') + 31, 0);
	for (char c = 'C'; c <= 'I'; c++)
		object(c, 1, 1);
	object('J', AT('L'), AT('L'));
	object('K', AT('K'), 0);
	object('L', 0, 0);
	object('M', 1, 1);
	object('N', 1, 1);
	goroutine(18, "chan receive", AT('E'));
	frame("main.wait", AT('A'));
	type(); /* up to Go 1.4 they come in between */
	frame("main.main", AT('M') + 8);
	DUMP_NUMBERS(14, AT('A') + 4096, 0xc000000180, 0xc00004a100, 0x402020, AT('C'), 0x403000,
		     0);
	DUMP_NUMBERS(15, 0xc00004c000, 0xc000000180, 0x500300, AT('D'), 0, 0);
	goroutine(19, "select (no cases)", 0);
	DUMP_NUMBERS(12, 0x600000); /* data */
	DUMP_WORDS(5, AT('J'), AT('K'), 1);
	DUMP_NUMBERS(1, 8, 1, 24, 0); /* the third word is no pointer */
	DUMP_NUMBERS(7, AT('G'), AT('F'), 0x403000, 0x500400, 0x500500);
	DUMP_NUMBERS(11, AT('I'), AT('H'), 0x403000, 0x500400, 0x500500);
	dump_number(2);
	dump_text("runtime type info");
	dump_number(AT('N'));
	memstats(14, 14 * 32);
	dump_number(0);
}

/* ---- looking at it ---- */

static struct dumpgraph g;

static struct heapdump *read_world(void)
{
	struct heapdump *d = dump_open(false);

	if (dumpgraph_read(&g, d, &e))
		fail_msg("%s", e.msg);
	return d;
}

static void end(struct heapdump *d)
{
	dumpgraph_fini(&g);
	dump_close(d);
}

static uint32_t thing(char letter)
{
	struct object o;

	assert_true(objects_find(&g.heap.objects, AT(letter), &o));
	return heapgraph_thing_of(&g.heap, &o);
}

/* The holder that dominates what an object is dominated by, directly or not, as text. */
static const char *held_by(struct classes *c, char letter)
{
	static char text[DESCRIBE_BYTES];
	uint32_t t = thing(letter);

	while (t != GRAPH_NONE && !heapgraph_holder_of(&g.heap, t) && t != g.heap.program)
		t = heapgraph_dominator(&g.heap, t);
	if (t == GRAPH_NONE)
		return "nobody";
	describe_thing(&g.heap, c, t, text);
	return text;
}

static void test_roots(void **state)
{
	static const struct {
		char letter;
		const char *held_by;
		uint64_t retained;
	} want[] = {
		{ 'A', "main.wait of goroutine 18", 64 },
		{ 'B', "main.wait of goroutine 18", 32 },
		{ 'C', "goroutine 18 (chan receive)", 32 },
		{ 'D', "goroutine 18 (chan receive)", 32 },
		{ 'E', "goroutine 18 (chan receive)", 32 },
		{ 'F', "finalizer of 0xc0000100c0", 32 },
		{ 'G', "nobody", 0 },
		{ 'H', "finalizer that is to run, of 0xc000010100", 32 },
		{ 'I', "finalizer that is to run, of 0xc000010100", 32 },
		{ 'J', "global 0x600008", 32 },
		{ 'K', "nobody", 0 },
		{ 'L', "the program", 32 }, /* by a frame and by a global */
		{ 'M', "main.main of goroutine 18", 32 },
		{ 'N', "root runtime type info at 0xc0000101a0", 32 },
	};
	struct classes c;
	struct heapdump *d;

	(void)state;
	dump_begin(4, false, 8);
	world();
	d = read_world();
	assert_true(g.whole);
	assert_int_equal(g.heap.objects.n, 14);
	assert_int_equal(g.memstats.heap_objects, 14);
	assert_int_equal(dumpclasses_read(&c, &g, d, &e), 0);
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		assert_string_equal(held_by(&c, want[i].letter), want[i].held_by);
		assert_int_equal(heapgraph_retained(&g.heap, thing(want[i].letter)),
				 want[i].retained);
	}
	assert_int_equal(heapgraph_retained(&g.heap, g.heap.program), 12 * 32);
	classes_fini(&c);
	end(d);
}

/* ---- global variables ---- */

/* A variable of three words, which are the ends of a list, and a word that is in none. */
enum { VARIABLE = 0x600010, POINTERS = 256 };

static bool find_variable(void *arg, uint64_t addr, struct heap_variable *out)
{
	*out = (struct heap_variable){ VARIABLE, 24, arg };
	return addr - VARIABLE < 24;
}

static void variable_part(void *arg, uint64_t addr, char *to, size_t cap)
{
	(void)arg;
	snprintf(to, cap, "%s", addr == VARIABLE + 8 ? ".ends[1]" : "");
}

static int note_pointer(void *arg, uint32_t thing_, uint64_t offset, uint64_t addr, struct err *why)
{
	char *to = arg, part[64];
	const struct holder *r = heapgraph_holder_of(&g.heap, thing_);

	(void)why;
	if (!r)
		return 0;
	describe_part(&g.heap, r, offset, part, sizeof(part));
	snprintf(to + strlen(to), POINTERS - strlen(to), "%s@%llu=%c ", part,
		 (unsigned long long)offset, (char)('A' + (addr - AT('A')) / 32));
	return 0;
}

/*
 * What a list holds that is reached from both of its ends, through one variable, that variable
 * retains; without a name for it nobody does.
 */
static void test_variables(void **state)
{
	const struct heap_variables known = { (char *)"main.ends", find_variable, variable_part };
	char pointers[POINTERS] = "";
	struct heapdump *d;
	struct classes c;

	(void)state;
	dump_begin(7, false, 8);
	object('A', AT('B'), 0);
	object('B', AT('C'), AT('A'));
	object('C', AT('B'), 0);
	object('D', AT('D'), 0);
	DUMP_NUMBERS(12, 0x600000);
	DUMP_WORDS(0, AT('D'), AT('A'), AT('C'), 0, 0);
	DUMP_NUMBERS(1, 8, 1, 16, 1, 24, 1, 32, 0);
	dump_number(0);
	for (int named = 0; named < 2; named++) {
		d = dump_open(false);
		assert_int_equal(dumpgraph_begin(&g, d, true, NULL, &e), 0);
		g.heap.variables = named ? &known : NULL;
		assert_int_equal(dumpgraph_finish(&g, d, &e), 0);
		assert_int_equal(dumpclasses_read(&c, &g, d, &e), 0);
		assert_int_equal(g.heap.holders.n, named ? 2 : 3);
		assert_string_equal(held_by(&c, 'B'), named ? "global main.ends" : "the program");
		assert_string_equal(held_by(&c, 'D'), "global 0x600008");
		assert_int_equal(heapgraph_retained(&g.heap, heapgraph_thing_of_holder(&g.heap, 1)),
				 named ? 3 * 32 : 0);
		assert_int_equal(dumpgraph_pointers(&g, d, note_pointer, pointers, &e), 0);
		classes_fini(&c);
		end(d);
	}
	assert_string_equal(pointers, "@0=D @0=A @0=C @0=D @0=A main.ends.ends[1]@8=C ");
}

static const struct holder *holder(enum holder_kind kind, unsigned which)
{
	for (uint32_t i = 0; i < g.heap.holders.n; i++)
		if (g.heap.holders.at[i].kind == kind && !which--)
			return &g.heap.holders.at[i];
	return NULL;
}

/* What a goroutine retains is what its frames do, its deferred calls and its panic. */
static void test_goroutines(void **state)
{
	struct heapdump *d;
	uint32_t of;

	(void)state;
	dump_begin(4, false, 8);
	world();
	d = read_world();
	of = (uint32_t)(holder(HOLDER_GOROUTINE, 0) - g.heap.holders.at);
	assert_int_equal(holder(HOLDER_GOROUTINE, 0)->addr, 18);
	assert_int_equal(holder(HOLDER_FRAME, 0)->up, of);
	assert_int_equal(holder(HOLDER_FRAME, 1)->up, of);
	assert_string_equal(strtab_get(g.heap.names, holder(HOLDER_FRAME, 1)->name), "main.main");
	assert_null(holder(HOLDER_FRAME, 2));
	assert_int_equal(heapgraph_retained(&g.heap, heapgraph_thing_of_holder(&g.heap, of)),
			 6 * 32);
	of = (uint32_t)(holder(HOLDER_GOROUTINE, 1) - g.heap.holders.at);
	assert_int_equal(heapgraph_retained(&g.heap, heapgraph_thing_of_holder(&g.heap, of)), 0);
	end(d);
}

static int count_pointer(void *arg, uint32_t thing, uint64_t offset, uint64_t addr, struct err *why)
{
	(void)thing;
	(void)offset;
	(void)why;
	*(unsigned *)arg += addr == AT('B');
	return 0;
}

/*
 * A deferred call of Go 1.5 to 1.17 has arguments behind it that no field tells of; in later
 * versions there are none, and what lies there means nothing.
 */
static void test_deferred_arguments(void **state)
{
	(void)state;
	for (unsigned version = 5; version <= 7; version += 2) {
		struct heapdump *d;
		unsigned told = 0;

		dump_begin(version, false, 8);
		DUMP_NUMBERS(1, AT('A'));
		DUMP_WORDS(0, 0, AT('B'), 0);
		DUMP_NUMBERS(1, 0, 0);
		object('B', 1, 1);
		goroutine(18, "chan receive", 0);
		for (int i = 0; i < 2; i++)
			DUMP_NUMBERS(14, AT('A'), 0xc000000180, 0, 0x402020, 0x4d0000, 0x403000, 0);
		memstats(2, 64);
		dump_number(0);
		d = read_world();
		assert_int_equal(heapgraph_reached(&g.heap, thing('B')), version == 5);
		/* The record comes twice; what is behind the call is read once. */
		assert_int_equal(dumpgraph_pointers(&g, d, count_pointer, &told, &e), 0);
		assert_int_equal(told, version == 5);
		if (version == 5)
			assert_int_equal(heapgraph_dominator(&g.heap, thing('B')),
					 heapgraph_thing_of_holder(&g.heap, 0));
		end(d);
	}
}

/* ---- Go 1.3 tells types ---- */

static void object_1_3(char letter, uint64_t of, uint64_t kind)
{
	DUMP_NUMBERS(1, AT(letter), of, kind);
	DUMP_WORDS(AT('A'), 0, AT('A'), 0);
}

static void test_types(void **state)
{
	static const char *const want[] = { "main.node", "[]main.node", "32 B without pointers",
					    "32 B, every 8 B pointers at 0" };
	struct classes c;
	struct heapdump *d;

	(void)state;
	dump_begin(3, false, 8);
	DUMP_NUMBERS(3, 0x500200, 16);
	dump_text("main.node");
	DUMP_NUMBERS(1, 1, 0, 0);
	object_1_3('A', 0x500200, 0);
	object_1_3('B', 0x500200, 1);
	object_1_3('C', 0, 0);
	object_1_3('D', 0, 127);
	dump_number(0);
	d = read_world();
	assert_int_equal(dumpclasses_read(&c, &g, d, &e), 0);
	for (uint32_t i = 0; i < ARRAY_LEN(want); i++) {
		const struct heap_class *class = &c.all.at[c.of[i]];

		assert_string_equal(strtab_get(g.heap.names, class->name), want[i]);
		assert_int_equal(class->certainty, i < 2 ? HEAP_EXACT : HEAP_LAYOUT);
		assert_int_equal(class->count, 1);
	}
	assert_int_equal(c.all.at[c.of[0]].nfields, 1);
	assert_int_equal(c.all.at[c.of[1]].nfields, 2);
	classes_fini(&c);
	end(d);
}

/* ---- phantoms ---- */

static void page(uint64_t at, uint64_t size, bool pointers, unsigned slots)
{
	static uint64_t words[64];

	for (unsigned i = 0; i < slots; i++) {
		DUMP_NUMBERS(1, at + i * size);
		dump_words(words, size / 8);
		if (pointers && !i)
			DUMP_NUMBERS(1, 0);
		dump_number(0);
	}
}

/*
 * Two pages of 48 bytes, one with pointers: at the ends of both are mark bits, of the one a bitmap as
 * well, which begins within a slot. Without Green Tea it is the bitmap alone. Which it is the counts of
 * the memstats tell, whatever the toolchain says; without them it goes by that.
 */
static void phantoms_of(const char *toolchain, bool told, bool marks)
{
	unsigned objects = marks ? 165 + 168 : 168 + 170;
	struct heapdump *d;

	dump_toolchain = toolchain;
	dump_begin(7, false, 8);
	dump_toolchain = "go1.27.4";
	page(0xc000020000, 48, true, 170);
	page(0xc000022000, 48, false, 170);
	if (told)
		memstats(objects, objects * 48);
	dump_number(0);
	d = read_world();
	assert_int_equal(g.heap.objects.n, objects);
	assert_int_equal(g.heap.objects.bytes, objects * 48);
	assert_int_equal(g.phantoms, 340 - objects);
	assert_int_equal(g.inline_marks, marks);
	end(d);
}

static void test_phantoms(void **state)
{
	static const struct {
		const char *toolchain;
		bool marks; /* expected of it */
	} t[] = {
		{ "go1.25.14", false },
		{ "go1.25.14 X:greenteagc", true },
		{ "go1.26.11 X:nogreenteagc", false },
		{ "go1.27.4", true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		phantoms_of(t[i].toolchain, false, t[i].marks);
		phantoms_of(t[i].toolchain, true, false);
		phantoms_of(t[i].toolchain, true, true);
	}
}

/* The smallest ones have their mark bits elsewhere, so that only the bitmap is in their page. */
static void test_small_slots(void **state)
{
	struct heapdump *d;

	(void)state;
	dump_begin(7, false, 8);
	page(0xc000020000, 8, true, 1024);
	page(0xc000022000, 8, false, 1024);
	dump_number(0);
	d = read_world();
	assert_true(g.inline_marks);
	assert_int_equal(g.heap.objects.n, 1024 - 16 + 1024);
	assert_int_equal(g.phantoms, 16);
	end(d);
}

/* More that wait for the end of their page than a page of Go's has: none is lost. */
static void test_many_that_wait(void **state)
{
	enum { N = 8 * 60 };
	struct heapdump *d;

	(void)state;
	dump_begin(7, false, 8);
	page(0xc000022000 - 128 - 16, 16, false, 1);
	for (unsigned i = 0; i < 8; i++)
		page(0xc000020000 + 16 * 60 * i, 16, false, 60);
	dump_number(0);
	d = read_world();
	assert_true(g.whole);
	assert_int_equal(g.heap.objects.n, 1 + N);
	assert_int_equal(g.heap.objects.bytes, 16 * (1 + N));
	end(d);
}

/* ---- layouts that are too long to be kept ---- */

static void test_many_pointers(void **state)
{
	enum { N = 40 };
	static uint64_t words[N];
	struct heapdump *d;
	struct classes c;

	(void)state;
	dump_begin(7, false, 8);
	DUMP_NUMBERS(1, AT('A'));
	dump_words(words, N);
	for (unsigned i = 0; i < N; i++)
		DUMP_NUMBERS(1, 8 * i);
	dump_number(0);
	dump_number(0);
	d = read_world();
	assert_int_equal(dumpclasses_read(&c, &g, d, &e), 0);
	assert_int_equal(c.all.at[c.of[0]].nfields, N);
	for (unsigned i = 0; i < N; i++)
		assert_int_equal(c.fields.at[c.all.at[c.of[0]].first + i].offset, 8 * i);
	classes_fini(&c);
	end(d);
}

/* ---- damage ---- */

/* An object of which one pointer was read before the dump breaks off is one; with none it may be a phantom. */
static void test_cut_in_an_object(void **state)
{
	(void)state;
	for (unsigned pointers = 0; pointers < 2; pointers++) {
		struct heapdump *d;

		dump_begin(7, false, 8);
		object('A', 1, 1);
		DUMP_NUMBERS(1, AT('B'));
		DUMP_WORDS(1, 2, 3, 4);
		if (pointers)
			DUMP_NUMBERS(1, 0);
		d = read_world();
		assert_false(g.whole);
		assert_int_equal(g.heap.objects.n, 1 + pointers);
		end(d);
	}
}

/* Wherever the dump breaks off, what came before is there, and it is said that it breaks off. */
static void test_cut(void **state)
{
	uint32_t objects = 0;
	size_t holders = 0, whole, begin;

	(void)state;
	dump_begin(7, false, 8);
	begin = dump.n;
	world();
	whole = dump.n;
	for (dump.n = begin; dump.n < whole; dump.n++) {
		struct heapdump *d = read_world();

		assert_false(g.whole);
		assert_non_null(strstr(g.damage.msg, "offset "));
		assert_true(g.heap.objects.n >= objects);
		objects = g.heap.objects.n;
		holders = g.heap.holders.n > holders ? g.heap.holders.n : holders;
		end(d);
	}
	assert_int_equal(objects, 14);
	assert_int_equal(holders, 8);
}

/* A file that becomes shorter when it is read for the @pass-th time. */
struct shorter {
	int fd;
	unsigned pass;
	uint64_t last;
	bool done;
};

static void shorten(void *arg, uint64_t offset)
{
	struct shorter *s = arg;

	if (offset < s->last && s->pass && !--s->pass) {
		assert_int_equal(ftruncate(s->fd, 300000), 0);
		s->done = true;
	}
	s->last = offset;
}

static void test_shorter(void **state)
{
	static uint64_t words[10000];

	(void)state;
	dump_begin(6, false, 8);
	for (unsigned i = 0; i < 8; i++) {
		DUMP_NUMBERS(1, 0xc000100000 + i * 80000);
		dump_words(words, ARRAY_LEN(words));
		dump_number(0);
	}
	world();
	for (unsigned pass = 1; pass <= 3; pass++) {
		struct shorter s = { .fd = dump_fd(), .pass = pass };
		struct heapdump *d = NULL;
		int ret;

		assert_int_equal(heapdump_open(s.fd, &d, &e), 0);
		heapdump_watch(d, shorten, &s);
		ret = dumpgraph_read(&g, d, &e);
		assert_int_equal(ret, s.done ? -EIO : 0);
		assert_int_equal(s.done, pass < 3);
		dumpgraph_fini(&g);
		heapdump_free(d);
		close(s.fd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_roots),	      cmocka_unit_test(test_variables),
		cmocka_unit_test(test_goroutines),    cmocka_unit_test(test_types),
		cmocka_unit_test(test_phantoms),      cmocka_unit_test(test_deferred_arguments),
		cmocka_unit_test(test_cut),	      cmocka_unit_test(test_shorter),
		cmocka_unit_test(test_small_slots),   cmocka_unit_test(test_many_that_wait),
		cmocka_unit_test(test_many_pointers), cmocka_unit_test(test_cut_in_an_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
