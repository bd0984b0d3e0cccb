/* tests/unit/test_heap_hprof.c - heap graphs as HPROF, read back by a reader of its own. */
#include "output/hprof/heap_hprof.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "readhprof.h"

enum { FIELDS = 32767, ROOT_FRAME = 3, ROOT_STICKY = 5, ROOT_UNKNOWN = 0xff };
#define HEAP 0xc000000000ull

static struct err e;

/* ---- a heap, whose objects are added in the order of their addresses ---- */

struct pointer {
	uint32_t object;
	uint64_t offset, to;
};

static struct {
	struct heapgraph h;
	struct classes c;
	VEC(struct pointer) pointers; /* by object */
	struct {
		uint32_t holder;
		uint64_t offset, to;
	} held[100000];
	size_t nheld;
	uint64_t sites[64]; /* by object */
} heap;

static void begin_heap(void)
{
	assert_int_equal(heapgraph_init(&heap.h, &e), 0);
	heap.nheld = 0;
	memset(heap.sites, 0, sizeof(heap.sites));
}

static void add_object(uint64_t addr, uint64_t size, bool pointers)
{
	assert_int_equal(heapgraph_object(&heap.h, addr, size, pointers, &e), 0);
}

static void end_objects(void)
{
	struct objects *o = &heap.h.objects;

	assert_int_equal(heapgraph_objects_end(&heap.h, &e), 0);
	assert_int_equal(classes_init(&heap.c, heap.h.names, o->n, o->bytes, &e), 0);
}

static void points(uint32_t object, uint64_t offset, uint64_t to)
{
	struct pointer *p = vec_add(&heap.pointers, 1 << 20);

	*p = (struct pointer){ object, offset, to };
}

static uint32_t add_holder(enum holder_kind kind, uint64_t addr, const char *name)
{
	struct holder holder = { .kind = kind,
				 .state = 4,
				 .addr = addr,
				 .up = GRAPH_NONE,
				 .name = strtab_puts(heap.h.names, name) };

	assert_int_equal(heapgraph_holder(&heap.h, &holder, &e), 0);
	return (uint32_t)heap.h.holders.n - 1;
}

static void hold_at(uint32_t holder, uint64_t offset, uint64_t to)
{
	heap.held[heap.nheld].holder = holder;
	heap.held[heap.nheld].offset = offset;
	heap.held[heap.nheld++].to = to;
}

static void hold(uint32_t holder, uint64_t to)
{
	hold_at(holder, 0, to);
}

static uint16_t typed(uint64_t key, const char *name, uint64_t size)
{
	bool made;
	uint16_t class = classes_typed(&heap.c, key, size, HEAP_EXACT, &made);

	assert_true(class && made);
	heap.c.all.at[class].name = strtab_puts(heap.h.names, name);
	return class;
}

static void end_heap(void)
{
	classes_fini(&heap.c);
	heapgraph_fini(&heap.h);
	vec_fini(&heap.pointers);
}

/* ---- telling it ---- */

static struct heap_hprof_losses losses;
static struct readhprof r;
static char *bytes;

static void look(struct heap_hprof *x, const struct object *o)
{
	if (!heap_hprof_must_look(x, o))
		return;
	heap_hprof_look(x, o);
	for (size_t i = 0; i < heap.pointers.n; i++)
		if (heap.pointers.at[i].object == o->index)
			heap_hprof_look_pointer(x, heap.pointers.at[i].offset);
	assert_int_equal(heap_hprof_looked(x, &e), 0);
}

static void tell_object(struct heap_hprof *x, const struct object *o)
{
	uint32_t n;

	look(x, o);
	assert_int_equal(heap_hprof_object(x, o, o->index < 64 ? heap.sites[o->index] : 0, &e), 0);
	for (size_t i = 0; i < heap.pointers.n; i++)
		if (heap.pointers.at[i].object == o->index)
			heap_hprof_pointer(x, heap.pointers.at[i].offset, heap.pointers.at[i].to);
	n = heap_hprof_object_end(x);
	for (uint32_t i = 0; i < n; i++)
		heap_hprof_bytes(x, &(uint8_t){ (uint8_t)i }, 1);
}

static void tell_held(struct heap_hprof *x)
{
	for (size_t i = 0; i < heap.nheld; i++)
		assert_int_equal(heap_hprof_held(x, heap.held[i].holder, heap.held[i].offset,
						 heap.held[i].to, &e),
				 0);
}

static void tell_site(struct heap_hprof *x)
{
	struct heap_hprof_line lines[] = {
		{ "net/http.(*conn).serve", "/src/server.go", 22, 14, 12 },
		{ "main.main", "/src/main.go", 9, 12, 3 },
	};

	assert_int_equal(heap_hprof_site(x, 0x77, lines, 2, &e), 0);
}

static void each_object(struct heap_hprof *x,
			void (*fn)(struct heap_hprof *x, const struct object *o))
{
	struct objects_walk walk = {};
	struct object o;

	while (objects_next(&heap.h.objects, &walk, &o))
		fn(x, &o);
}

/* Two writers take turns: every second object is told by another one. */
static void tell_in_sections(struct heap_hprof *x)
{
	struct heap_hprof *beside;
	struct objects_walk walk = {};
	struct object o;

	heap_hprof_sections(x);
	assert_int_equal(heap_hprof_beside(x, &beside, &e), 0);
	for (uint64_t n = 0; objects_next(&heap.h.objects, &walk, &o); n++) {
		struct heap_hprof *one = n % 2 ? beside : x;

		heap_hprof_section(one, n);
		tell_object(one, &o);
		heap_hprof_section_end(one);
	}
	heap_hprof_join(x, beside);
	heap_hprof_free(beside);
}

/* Writes the heap, and reads it into r. */
static void convert(bool contents)
{
	struct heap_hprof_opts opts = { .time_ms = 1, .contents = contents };
	size_t n = 0;
	FILE *f = open_memstream(&bytes, &n);
	struct heap_hprof *x = NULL;

	heap.h.program = heapgraph_thing_of_holder(&heap.h, (uint32_t)heap.h.holders.n);
	assert_int_equal(heap_hprof_new(f, &heap.h, &heap.c, &opts, &x, &e), 0);
	if (heap_hprof_wants_looks(x))
		each_object(x, look);
	tell_site(x);
	tell_held(x);
	assert_int_equal(heap_hprof_roots(x, &e), 0);
	tell_held(x);
	assert_int_equal(heap_hprof_classes(x, &e), 0);
	tell_held(x);
	assert_int_equal(heap_hprof_objects(x, &e), 0);
	tell_in_sections(x);
	assert_int_equal(heap_hprof_end(x, &losses, &e), 0);
	heap_hprof_free(x);
	fclose(f);
	if (!readhprof(&r, (uint8_t *)bytes, n))
		fail_msg("%s", r.why);
}

static void end_all(void)
{
	readhprof_fini(&r);
	free(bytes);
	end_heap();
}

/* ---- asking ---- */

static const struct rh_object *instance(uint64_t id, const char *class, uint32_t size)
{
	const struct rh_object *o = rh_object(&r, id);

	assert_non_null(o);
	assert_true(rh_is_go(&r, o));
	assert_string_equal(rh_class(&r, o->class)->name, class);
	assert_int_equal(rh_class(&r, o->class)->size, size);
	return o;
}

static void has_field(const struct rh_object *o, uint32_t i, const char *name, uint64_t to)
{
	assert_true(8 * i < o->n);
	assert_string_equal(rh_field_name(&r, o, i), name);
	assert_int_equal(rh_value(o, i), to);
}

static size_t roots_of(uint8_t tag, uint64_t id)
{
	size_t n = 0;

	for (size_t i = 0; i < r.roots.n; i++)
		n += r.roots.at[i].tag == tag && r.roots.at[i].id == id;
	return n;
}

static void has_static(const char *class, const char *name, uint64_t to)
{
	const struct rh_class *c = rh_class_named(&r, class);

	assert_non_null(c);
	assert_int_equal(roots_of(ROOT_STICKY, c->id), 1);
	for (uint32_t i = 0; i < c->nstatics; i++)
		if (!strcmp(rh_static_name(&r, c, i), name) && rh_static(c, i) == to)
			return;
	fail_msg("%s has no %s", class, name);
}

/* ---- tests ---- */

static void test_layouts(void **state)
{
	uint32_t offsets[] = { 0, 8, 24 };
	uint16_t class;

	(void)state;
	begin_heap();
	add_object(HEAP, 48, true);
	add_object(HEAP + 48, 48, true);
	add_object(HEAP + 96, 48, false);
	end_objects();
	class = classes_layout(&heap.c, 48, offsets, 3);
	classes_put(&heap.c, 0, class);
	classes_put(&heap.c, 1, class);
	classes_put(&heap.c, 2, classes_layout(&heap.c, 48, NULL, 0));
	points(0, 0, HEAP + 48);
	points(0, 8, HEAP + 96 + 47); /* its last byte */
	points(0, 24, HEAP + 144);    /* behind the heap */
	points(1, 24, HEAP);
	heap.sites[1] = 0x77;
	convert(false);
	has_field(instance(HEAP, "48 B, pointers at 0 8 24", 48), 0, "0x00", HEAP + 48);
	has_field(rh_object(&r, HEAP), 1, "0x08", HEAP + 96);
	has_field(rh_object(&r, HEAP), 2, "0x18", 0);
	has_field(instance(HEAP + 48, "48 B, pointers at 0 8 24", 48), 0, "0x00", 0);
	has_field(rh_object(&r, HEAP + 48), 2, "0x18", HEAP);
	assert_int_equal(instance(HEAP + 96, "48 B without pointers", 48)->n, 0);
	assert_int_equal(rh_object(&r, HEAP)->trace, 0);
	assert_int_equal(rh_trace(&r, rh_object(&r, HEAP + 48)->trace)->n, 2);
	assert_int_equal(losses.pointers, 0);
	end_all();
}

static void test_site(void **state)
{
	const struct rh_frame *f;

	(void)state;
	begin_heap();
	add_object(HEAP, 16, false);
	end_objects();
	classes_put(&heap.c, 0, classes_layout(&heap.c, 16, NULL, 0));
	heap.sites[0] = 0x77;
	convert(false);
	f = rh_frame(&r, rh_trace(&r, rh_object(&r, HEAP)->trace), 0);
	assert_string_equal(f->class, "net/http");
	assert_string_equal(f->method, "(*conn).serve");
	assert_string_equal(f->file, "/src/server.go");
	assert_int_equal(f->line, 12);
	end_all();
}

static void test_types(void **state)
{
	uint16_t node, array, small;

	(void)state;
	begin_heap();
	add_object(HEAP, 32, true);
	add_object(HEAP + 32, 32, true);
	add_object(HEAP + 0x2000, 64, true);
	add_object(HEAP + 0x4000, 16, false);
	end_objects();
	node = typed(1, "main.node", 32);
	assert_true(classes_field(&heap.c, node, 8, strtab_puts(heap.h.names, "next")));
	assert_true(classes_field(&heap.c, node, 16, strtab_puts(heap.h.names, "data")));
	array = typed(2, "[]main.node", 64);
	small = typed(3, "main.node", 16);
	typed(4, "[]main.node", 64); /* of which there is none */
	classes_put(&heap.c, 0, node);
	classes_put(&heap.c, 1, node);
	classes_put(&heap.c, 2, array);
	classes_put(&heap.c, 3, small);
	points(0, 8, HEAP + 32);
	points(1, 8, HEAP); /* and one that its type does not have */
	points(1, 24, HEAP + 0x4000);
	points(2, 0, HEAP);
	points(2, 32, HEAP + 32);
	points(2, 56, HEAP);
	convert(false);
	has_field(instance(HEAP, "main.node (32 B)", 32), 0, "next", HEAP + 32);
	has_field(rh_object(&r, HEAP), 1, "data", 0);
	assert_int_equal(instance(HEAP + 0x4000, "main.node (16 B)", 16)->n, 0);
	instance(HEAP + 32, "main.node (32 B, up to 2 pointers)", 32);
	has_field(rh_object(&r, HEAP + 32), 0, "pointer 0", HEAP);
	has_field(rh_object(&r, HEAP + 32), 1, "pointer 1", HEAP + 0x4000);
	/* What begins with a bracket is an array of Java's. */
	instance(HEAP + 0x2000, "array []main.node (64 B, up to 4 pointers)", 64);
	has_field(rh_object(&r, HEAP + 0x2000), 2, "pointer 2", HEAP);
	has_field(rh_object(&r, HEAP + 0x2000), 3, "pointer 3", 0);
	assert_int_equal(losses.pointers, 0);
	end_all();
}

/* Classes with the same name are told apart, by sizes if these differ. */
static void test_names_twice(void **state)
{
	static const struct {
		const char *name;
		uint64_t size;
		const char *want;
	} all[] = {
		{ "a", 16, "a (16 B)" }, { "a", 32, "a (32 B)" }, { "a", 32, "a (32 B) #2" },
		{ "b", 16, "b" },	 { "b", 16, "b #2" },	  { "b", 16, "b #3" },
		{ "c", 16, "c" },
	};

	(void)state;
	begin_heap();
	for (uint32_t i = 0; i < 7; i++)
		add_object(HEAP + 0x4000 * i, all[i].size, false);
	end_objects();
	for (uint32_t i = 0; i < 7; i++)
		classes_put(&heap.c, i, typed(i + 1, all[i].name, all[i].size));
	convert(false);
	for (uint32_t i = 0; i < 7; i++)
		instance(HEAP + 0x4000 * i, all[i].want, (uint32_t)all[i].size);
	end_all();
}

/* Objects that came when there were too many classes have several sizes. */
static void test_other(void **state)
{
	(void)state;
	begin_heap();
	add_object(HEAP, 32, true);
	add_object(HEAP + 0x2000, 48, true);
	add_object(HEAP + 0x4000, 48, false);
	end_objects();
	points(0, 16, HEAP + 0x2000);
	points(1, 40, HEAP);
	convert(true);
	has_field(instance(HEAP, "other (32 B, up to 1 pointers)", 32), 0, "pointer 0",
		  HEAP + 0x2000);
	instance(HEAP + 0x2000, "other (48 B, up to 1 pointers)", 48);
	assert_int_equal(instance(HEAP + 0x4000, "other (48 B, without pointers)", 48)->n, 8);
	end_all();
}

/* A class has no more than 32,767 fields; the rest is in superclasses. */
static void test_many_fields(void **state)
{
	enum { MANY = 2 * FIELDS + 1 };
	static uint32_t offsets[MANY];
	const struct rh_class *c;
	const struct rh_object *o;

	(void)state;
	begin_heap();
	add_object(HEAP, 8ull * MANY, true);
	end_objects();
	for (uint32_t i = 0; i < MANY; i++) {
		offsets[i] = 8 * i;
		points(0, 8 * i, HEAP + i);
	}
	points(0, 8 * MANY, HEAP); /* there is no such field */
	classes_put(&heap.c, 0, classes_layout(&heap.c, 8ull * MANY, offsets, MANY));
	convert(false);
	o = rh_object(&r, HEAP);
	assert_int_equal(o->n, 8 * MANY);
	has_field(o, FIELDS - 1, "0x3fff0", HEAP);
	has_field(o, FIELDS, "0x00", HEAP);
	has_field(o, MANY - 1, "0x00", HEAP);
	c = rh_class(&r, o->class);
	assert_int_equal(c->size, 8 * MANY);
	assert_int_equal(c->nfields, FIELDS);
	c = rh_class(&r, rh_class(&r, c->super)->super);
	assert_int_equal(c->nfields, 1);
	assert_string_equal(rh_class(&r, c->super)->name, "java/lang/Object");
	assert_int_equal(losses.pointers, 1);
	end_all();
}

static void test_contents(void **state)
{
	const struct rh_object *o, *a;

	(void)state;
	begin_heap();
	add_object(HEAP, 24, false);
	add_object(HEAP + 24, 24, true);
	end_objects();
	classes_put(&heap.c, 0, classes_layout(&heap.c, 24, NULL, 0));
	classes_put(&heap.c, 1, classes_layout(&heap.c, 24, (uint32_t[]){ 0 }, 1));
	points(1, 0, HEAP + 5);
	convert(true);
	o = instance(HEAP, "24 B without pointers", 24);
	has_field(o, 0, "contents", HEAP + 1);
	a = rh_object(&r, HEAP + 1);
	assert_true(!a->class && a->type == 8 && a->n == 24);
	for (uint8_t i = 0; i < 24; i++)
		assert_int_equal(a->at[i], i);
	has_field(instance(HEAP + 24, "24 B, pointers at 0", 24), 0, "0x00", HEAP);
	end_all();
}

/* The array's identifier would be that of another object, as none of Go is. */
static void test_contents_overlap(void **state)
{
	(void)state;
	begin_heap();
	add_object(HEAP, 16, false);
	add_object(HEAP + 1, 24, false);
	add_object(HEAP + 64, 1, false);
	end_objects();
	classes_put(&heap.c, 0, classes_layout(&heap.c, 16, NULL, 0));
	classes_put(&heap.c, 1, classes_layout(&heap.c, 24, NULL, 0));
	classes_put(&heap.c, 2, classes_layout(&heap.c, 1, NULL, 0));
	convert(true);
	has_field(rh_object(&r, HEAP), 0, "contents", 0);
	has_field(rh_object(&r, HEAP + 1), 0, "contents", HEAP + 2);
	assert_int_equal(losses.contents, 16 + 1);
	end_all();
}

static void test_roots(void **state)
{
	uint32_t frames[2], goroutine, holder;

	(void)state;
	begin_heap();
	for (uint64_t i = 0; i < 8; i++)
		add_object(HEAP + 16 * i, 16, false);
	end_objects();
	for (uint32_t i = 0; i < 8; i++)
		classes_put(&heap.c, i, classes_layout(&heap.c, 16, NULL, 0));
	for (uint64_t g = 0; g < 2; g++) {
		frames[0] = add_holder(HOLDER_FRAME, 0x401000, "runtime.gopark");
		frames[1] = add_holder(HOLDER_FRAME, 0x402000, "main.(*T[example.com/x.Y]).run");
		goroutine = add_holder(HOLDER_GOROUTINE, 17 + g, "chan receive");
		heap.h.holders.at[frames[0]].up = heap.h.holders.at[frames[1]].up = goroutine;
		hold(frames[1], HEAP + 16 * g);
		hold(goroutine, HEAP + 16 * (g + 2) + 5);
	}
	hold(add_holder(HOLDER_FRAME, 0x403000, "astray"), HEAP + 16 * 7);
	hold(add_holder(HOLDER_GLOBAL, 0x5a0000, ""), HEAP + 16 * 4);
	hold(add_holder(HOLDER_GLOBAL, 0x5a0008, "main.list"), HEAP + 16 * 5);
	hold(add_holder(HOLDER_FINALIZER, HEAP, ""), HEAP + 16 * 5);
	holder = add_holder(HOLDER_QUEUED, HEAP + 16 * 6, "");
	hold(holder, HEAP + 16 * 6);
	hold(holder, 0x123); /* a function that is no object */
	hold(add_holder(HOLDER_OTHER, HEAP + 16 * 6, "types"), HEAP + 16 * 6);
	convert(false);
	assert_int_equal(roots_of(ROOT_FRAME, HEAP), 1);
	for (size_t i = 0; i < r.roots.n; i++) {
		const struct rh_root *at = &r.roots.at[i];

		if (at->tag != ROOT_FRAME)
			continue;
		assert_int_equal(at->b, at->id < HEAP + 32 ? 1 : UINT32_MAX);
		assert_int_equal(at->a, 1 + (at->id - HEAP) / 16 % 2);
	}
	assert_int_equal(roots_of(ROOT_UNKNOWN, HEAP + 16 * 7), 1);
	assert_string_equal(rh_frame(&r, rh_trace(&r, 2), 1)->class, "main");
	assert_string_equal(rh_frame(&r, rh_trace(&r, 2), 1)->method, "(*T[example.com/x.Y]).run");
	has_static("(globals)", "0x5a0000", HEAP + 16 * 4);
	has_static("(globals)", "main.list", HEAP + 16 * 5);
	has_static("(finalizers)", "0xc000000000", HEAP + 16 * 5);
	has_static("(finalizers to run)", "0xc000000060", HEAP + 16 * 6);
	has_static("(other roots)", "types", HEAP + 16 * 6);
	assert_int_equal(rh_class_named(&r, "(finalizers to run)")->nstatics, 1);
	end_all();
}

static bool no_variable(void *arg, uint64_t addr, struct heap_variable *out)
{
	(void)arg, (void)addr, (void)out;
	return false;
}

static void variable_part(void *arg, uint64_t addr, char *to, size_t cap)
{
	(void)arg;
	snprintf(to, cap, "%s", addr == 0x5a0010 ? ".tail" : "");
}

/* Each pointer of a variable is a field, by its name or offset. */
static void test_variable(void **state)
{
	const struct heap_variables known = { NULL, no_variable, variable_part };
	uint32_t holder;

	(void)state;
	begin_heap();
	for (uint32_t i = 0; i < 3; i++)
		add_object(HEAP + 16 * i, 16, false);
	end_objects();
	heap.h.variables = &known;
	for (uint32_t i = 0; i < 3; i++)
		classes_put(&heap.c, i, classes_layout(&heap.c, 16, NULL, 0));
	holder = add_holder(HOLDER_GLOBAL, 0x5a0000, "main.ends");
	for (uint32_t i = 0; i < 3; i++)
		hold_at(holder, 8 * i, HEAP + 16 * i);
	hold_at(holder, 24, 0x123); /* to no object */
	convert(false);
	has_static("(globals)", "main.ends", HEAP);
	has_static("(globals)", "main.ends+8", HEAP + 16);
	has_static("(globals)", "main.ends.tail", HEAP + 32);
	assert_int_equal(rh_class_named(&r, "(globals)")->nstatics, 3);
	end_all();
}

static void test_many_globals(void **state)
{
	char name[32];

	(void)state;
	begin_heap();
	add_object(HEAP, 16, false);
	end_objects();
	classes_put(&heap.c, 0, classes_layout(&heap.c, 16, NULL, 0));
	for (uint32_t i = 0; i < FIELDS + 2; i++)
		hold(add_holder(HOLDER_GLOBAL, 0x500000 + 8 * i, ""), HEAP);
	convert(false);
	assert_int_equal(rh_class_named(&r, "(globals)")->nstatics, FIELDS);
	assert_int_equal(rh_class_named(&r, "(globals) 2")->nstatics, 2);
	snprintf(name, sizeof(name), "0x%x", 0x500000 + 8 * (FIELDS + 1));
	has_static("(globals) 2", name, HEAP);
	end_all();
}

/* Identifiers that are no addresses lie where no objects are. */
static void test_low_heap(void **state)
{
	(void)state;
	begin_heap();
	for (uint64_t i = 0; i < 4; i++)
		add_object(0x100000000 + 0x4000 * i, 16, false);
	add_object(0x100000000ull * 9, 16, false);
	end_objects();
	for (uint32_t i = 0; i < 5; i++)
		classes_put(&heap.c, i, classes_layout(&heap.c, 16, NULL, 0));
	convert(true);
	for (size_t i = 0; i < r.strings.n; i++)
		assert_true(r.strings.at[i].id > 0x100000000ull * 9 + 16);
	end_all();
}

static void test_no_identifiers(void **state)
{
	struct heap_hprof *x = NULL;
	FILE *f = fopen("/dev/null", "w");

	(void)state;
	begin_heap();
	add_object(16, 16, false);
	add_object(UINT64_MAX - 32, 16, false);
	end_objects();
	assert_int_equal(heap_hprof_new(f, &heap.h, &heap.c, &(struct heap_hprof_opts){ 0 }, &x,
					&e),
			 -E2BIG);
	assert_non_null(strstr(e.msg, "leave no identifiers"));
	fclose(f);
	end_heap();
}

/* The format cannot say it: it is told what was lost. */
static void test_losses(void **state)
{
	(void)state;
	begin_heap();
	add_object(0, 16, true);
	add_object(HEAP, 3ull << 30, true);
	end_objects();
	classes_put(&heap.c, 0, classes_layout(&heap.c, 16, (uint32_t[]){ 0 }, 1));
	classes_put(&heap.c, 1, classes_layout(&heap.c, 3ull << 30, (uint32_t[]){ 8 }, 1));
	points(0, 0, HEAP);
	points(1, 8, 5);
	convert(false);
	assert_int_equal(losses.unnamed, 1);
	assert_int_equal(losses.sizes, 1);
	has_field(rh_object(&r, HEAP), 0, "0x08", 0);
	assert_int_equal(rh_class(&r, rh_object(&r, HEAP)->class)->size, INT32_MAX);
	end_all();
}

/* Names are those of a foreign program. */
static void test_names(void **state)
{
	(void)state;
	begin_heap();
	add_object(HEAP, 16, false);
	end_objects();
	classes_put(&heap.c, 0, typed(1, "main.\xff\x1b[2J\xc3\xa9", 16));
	convert(false);
	instance(HEAP, "main.\xef\xbf\xbd_[2J\xc3\xa9", 16);
	end_all();
}

/* What objects take at most: 25 bytes each, 8 for each word that may be a pointer, an array's 18 and its bytes. */
static void test_room(void **state)
{
	struct heap_hprof_opts opts = {};
	struct heap_hprof *x = NULL;
	char *to = NULL;
	size_t n;
	FILE *f = open_memstream(&to, &n);

	(void)state;
	begin_heap();
	end_objects();
	for (int contents = 0; contents < 2; contents++) {
		opts.contents = contents;
		assert_int_equal(heap_hprof_new(f, &heap.h, &heap.c, &opts, &x, &e), 0);
		assert_int_equal(heap_hprof_room(x, 3, 1, 48, 8),
				 3 * 25 + 8 * 6 + contents * 2 * (8 + 18 + 48));
		assert_int_equal(heap_hprof_room(x, 3, 3, 48, 4), 3 * 25 + 3 * 8 * 12);
		assert_int_equal(heap_hprof_room(x, 512, 512, 1ull << 56, 8), UINT64_MAX);
		heap_hprof_free(x);
	}
	fclose(f);
	free(to);
	end_heap();
}

static void test_empty(void **state)
{
	(void)state;
	begin_heap();
	end_objects();
	convert(true);
	assert_int_equal(r.objects.n, 0);
	end_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layouts),	       cmocka_unit_test(test_site),
		cmocka_unit_test(test_types),	       cmocka_unit_test(test_other),
		cmocka_unit_test(test_names_twice),    cmocka_unit_test(test_many_fields),
		cmocka_unit_test(test_contents),       cmocka_unit_test(test_contents_overlap),
		cmocka_unit_test(test_variable),       cmocka_unit_test(test_roots),
		cmocka_unit_test(test_many_globals),   cmocka_unit_test(test_low_heap),
		cmocka_unit_test(test_no_identifiers), cmocka_unit_test(test_losses),
		cmocka_unit_test(test_names),	       cmocka_unit_test(test_room),
		cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
