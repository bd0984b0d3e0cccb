/*
 * tests/unit/test_types.c - what a sample is said to be, from the type that the allocator was told and from who called it. Types
 * are descriptors made by hand; what reads the program's code is replaced by functions of these names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/limits.h"
#include "collect/heap/live/types.h"
#include "go/sites/rtbox.h"

enum {
	TYPES = 0x500000, /* in the file */
	TYPES_BYTES = 0x10000,
	NAMES = 0x1000, /* names lie from here on */
	BIAS = 0x10000,
	PLUGIN_BIAS = 0x7000000,
	STRUCT = 25,
	CODE = 0x400000, /* of main, and of a plugin */
	PLUGIN_CODE = 0x8000000,
	CALL = 16, /* bytes of a piece of code that ends with a call */
	FRAMES = 16,
};

/* ---- a program ---- */

static struct {
	uint8_t file[TYPES_BYTES];
	uint32_t at, name_at;
	const char *code[FRAMES]; /* what each piece belongs to: "innermost<...<outermost" */
	uint64_t code_at;
	unsigned looked; /* reads of the file */
	uint64_t boxed;	 /* what rtbox_type() finds, and what it was asked for: */
	uint64_t asked_ret, asked_bias;
	struct gobin *asked_of;
	enum made_box asked_box;
	unsigned asked;
} w;

static int read_file(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	(void)m;
	if (addr < TYPES || addr - TYPES > sizeof(w.file) || n > sizeof(w.file) - (addr - TYPES))
		return err_set(e, -EFAULT, "nothing at 0x%llx", (unsigned long long)addr);
	w.looked++;
	memcpy(buf, w.file + (addr - TYPES), n);
	return 0;
}

static struct mem file_mem = { .read = read_file }, live_mem = { .read = read_file };
static struct gobin *const program = (struct gobin *)0x100, *const plugin = (struct gobin *)0x200;
static struct gobin_info info = { .minor = 27, .version = "go1.27" };
static struct target target = { .mem = &live_mem };
static struct subject subject = { .target = &target };

const struct gobin_info *gobin_info(const struct gobin *b)
{
	assert_ptr_equal(b, program);
	return &info;
}

/* The plugin has types of its own, which are called alike in this file. */
const struct gomodule *gobin_module(const struct gobin *b)
{
	static const struct gomodule both = { .types = TYPES, .etypes = TYPES + TYPES_BYTES };

	assert_true(b == program || b == plugin);
	return &both;
}

struct mem *gobin_mem(struct gobin *b)
{
	(void)b;
	return &file_mem;
}

const struct image *images_at(const struct images *im, uint64_t pc)
{
	return &im->at[pc >= PLUGIN_CODE];
}

uint64_t rtbox_type(struct gobin *b, uint64_t bias, const struct rttypes *t, uint64_t ret,
		    enum made_box box)
{
	assert_int_equal(t->n, 2);
	w.asked++;
	w.asked_of = b;
	w.asked_bias = bias;
	w.asked_ret = ret;
	w.asked_box = box;
	return w.boxed;
}

/* A pc that a call returns to belongs to what comes behind the call: so it is the byte before it that is looked up. */
int subject_frames(struct subject *s, uint64_t pc, struct goframe *f, size_t cap, struct err *e)
{
	static char names[512];
	uint64_t i = (pc - w.code_at) / CALL;
	int n = 0;

	(void)s;
	(void)e;
	if (pc < w.code_at || i >= FRAMES || !w.code[i])
		return -ENOENT;
	assert_true((pc - w.code_at) % CALL == CALL - 1);
	snprintf(names, sizeof(names), "%s", w.code[i]);
	for (char *save, *at = strtok_r(names, "<", &save); at; at = strtok_r(NULL, "<", &save)) {
		assert_true((size_t)n < cap);
		f[n++] = (struct goframe){ .func = at };
	}
	return n;
}

/* Only to link: who makes what is asked by name. */
int gobin_funcs_named(struct gobin *b, const char *const *names, size_t n, struct gofunc *out,
		      struct err *e)
{
	(void)b;
	(void)names;
	(void)n;
	(void)out;
	return err_set(e, -ENOENT, "no functions");
}

int probesite_find(struct gobin *b, const struct gofunc *f, struct probesite *out, struct err *e)
{
	(void)b;
	(void)f;
	(void)out;
	return err_set(e, -ENOENT, "no site");
}

/* Makes a type; returns its live address. */
static uint64_t type(const char *name)
{
	uint32_t at = w.at;
	size_t n = strlen(name);
	uint64_t size = 16;
	uint8_t *to = w.file + w.name_at;

	memcpy(w.file + at, &size, 8);
	w.file[at + 23] = STRUCT;
	memcpy(w.file + at + 40, &w.name_at, 4);
	w.at += 64;
	*to++ = 1;
	for (; n >= 128; n >>= 7)
		*to++ = (uint8_t)(n | 128);
	*to++ = (uint8_t)n;
	memcpy(to, name, strlen(name));
	w.name_at = (uint32_t)(to + strlen(name) - w.file);
	return TYPES + BIAS + at;
}

/* ---- samples ---- */

static struct types t;
static struct gpb_stack st;

static int set_up(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.at = 64;
	w.name_at = NAMES;
	w.code_at = CODE;
	info.minor = 27;
	for (size_t i = 0; i < LAYOUT_COUNT; i++)
		subject.layout.off[i] = -1;
	subject.layout.off[LAYOUT_type_size] = 0;
	subject.layout.off[LAYOUT_type_ptrdata] = 8;
	subject.layout.off[LAYOUT_type_tflag] = 20;
	subject.layout.off[LAYOUT_type_kind] = 23;
	subject.layout.off[LAYOUT_type_str] = 40;
	subject.layout.off[LAYOUT_type_sizeof] = 48;
	subject.bin = program;
	subject.images.n = 2;
	subject.images.at[0] = (struct image){ .bin = program, .bias = BIAS };
	subject.images.at[1] = (struct image){ .bin = plugin, .bias = PLUGIN_BIAS };
	return types_init(&t, &subject, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	types_fini(&t);
	return 0;
}

/* A stack through these frames, innermost first, up to a NULL. */
static void stack(uint64_t type_addr, const char *const *frames)
{
	size_t n = 0;

	memset(w.code, 0, sizeof(w.code));
	for (; frames[n]; n++) {
		w.code[n] = frames[n];
		st.pc[n] = w.code_at + CALL * (n + 1);
	}
	st.count = 1;
	st.nkernel = 0;
	st.nfirst = (uint16_t)n;
	st.object.type = type_addr;
}

static const char *label(void)
{
	struct prof_label l[1];

	assert_int_equal(types_add(&t, &st, l, 0), 1);
	assert_string_equal(l[0].key, "type");
	return l[0].str;
}

#define FROM(...) ((const char *const[]){ "runtime.mallocgc", __VA_ARGS__, NULL })

static const char *made(uint64_t type_addr, const char *const *frames)
{
	stack(type_addr, frames);
	return label();
}

/* ---- one object, or many ---- */

static void one_object_has_its_types_name(void **state)
{
	uint64_t node = type("main.node");

	(void)state;
	assert_string_equal(made(node, FROM("runtime.newobject", "main.f")), "main.node");
	/* As the compiler mostly has it: newobject is inlined into its caller. */
	assert_string_equal(made(node, FROM("runtime.newobject<main.f", "main.main")), "main.node");
	/* Parts of the allocator have names of their own, from Go 1.24 on. */
	assert_string_equal(made(node, FROM("runtime.mallocgcSmallScanNoHeader", "main.f")),
			    "main.node");
}

/* The allocator is told the type of the elements, and for growslice, in some cases, nothing: then its caller tells. */
static void slices_are_known_by_who_makes_them(void **state)
{
	uint64_t node = type("main.node");

	(void)state;
	assert_string_equal(made(node, FROM("runtime.makeslice", "main.f")), "[]main.node");
	assert_string_equal(made(node | GPB_TYPE_MAKER, FROM("runtime.growslice", "main.f")),
			    "[]main.node");
	assert_string_equal(made(node, FROM("runtime.makeslice<main.g<main.f")), "[]main.node");
}

/* What is said of one made in the middle of a chain is said by the first who knows: callers have types of their own. */
static void the_innermost_maker_decides(void **state)
{
	uint64_t node = type("main.node");

	(void)state;
	assert_string_equal(made(node, FROM("runtime.newobject", "main.f", "runtime.makeslice")),
			    "main.node");
	assert_string_equal(made(node, FROM("runtime.newobject", "runtime.makeslice")),
			    "main.node");
	assert_string_equal(made(node, FROM("main.f", "runtime.rawstring")), "main.node");
	assert_string_equal(made(0, FROM("runtime.rawstring", "runtime.rawstringtmp",
					 "runtime.concatstrings")),
			    "string");
}

/* Makers that always make the same are told no type, or one that says less. */
static void strings_and_bytes_need_no_type(void **state)
{
	uint64_t byte = type("uint8");

	(void)state;
	assert_string_equal(made(0, FROM("runtime.slicebytetostring", "main.f")), "string");
	assert_string_equal(made(byte, FROM("runtime.rawbyteslice", "main.f")), "[]uint8");
	assert_int_equal(t.unknown + t.partly, 0);
}

/*
 * makechan allocates a channel's head as one object, or head and buffer together without a type, or the buffer as many elements.
 * Only its own argument is the channel's type.
 */
static void channels_have_the_type_that_makechan_was_told(void **state)
{
	uint64_t chan = type("chan main.node"), hchan = type("runtime.hchan");

	(void)state;
	assert_string_equal(made(chan | GPB_TYPE_MAKER, FROM("runtime.makechan", "main.f")),
			    "chan main.node");
	assert_string_equal(made(chan | GPB_TYPE_MAKER,
				 FROM("runtime.newobject<runtime.makechan", "main.f")),
			    "chan main.node");
	assert_string_equal(made(hchan, FROM("runtime.newobject", "runtime.makechan", "main.f")),
			    "chan ?");
	assert_string_equal(made(GPB_TYPE_MAKER, FROM("runtime.makechan", "main.f")), "chan ?");
	assert_int_equal(t.partly, 2);
	assert_int_equal(t.unknown, 0);
}

/* The type in which a map keeps its elements: up to Go 1.23, and since. */
static void a_maps_storage_has_the_maps_name(void **state)
{
	uint64_t bucket = type("map.bucket[string]int"),
		 group = type("map.group[string]main.m[int]"),
		 alike = type("*map.bucket[string]int");

	(void)state;
	assert_string_equal(made(bucket, FROM("runtime.newobject", "runtime.(*hmap).newoverflow")),
			    "map[string]int");
	assert_string_equal(made(bucket, FROM("runtime.newarray", "runtime.makeBucketArray")),
			    "map[string]int");
	assert_string_equal(made(group, FROM("runtime.newarray", "runtime.maps_newarray")),
			    "map[string]main.m[int]");
	/* An array of pointers to overflow buckets is what its name says. */
	assert_string_equal(made(alike,
				 FROM("runtime.newobject", "runtime.(*hmap).createOverflow")),
			    "*map.bucket[string]int");
}

/* ---- what is unknown ---- */

static void what_is_unknown_is_a_question_mark(void **state)
{
	uint64_t node = type("main.node");

	(void)state;
	assert_string_equal(made(0, FROM("runtime.newobject", "main.f")), "?");
	assert_string_equal(made(0, FROM("runtime.makeslice", "main.f")), "[]?");
	assert_string_equal(made(node + 8, FROM("runtime.makeslice", "main.f")), "[]?");
	/* Who has made it is not known, and so it may be many. */
	stack(node, (const char *const[]){ "runtime.mallocgc", NULL });
	assert_string_equal(label(), "?");
	st.nfirst = 0;
	assert_string_equal(label(), "?");
	assert_int_equal(t.unknown, 3);
	assert_int_equal(t.partly, 2);
	assert_int_equal(t.samples, 5);
}

/* A frame of which nothing is known may have been the maker: nobody behind it is one. */
static void behind_an_unknown_frame_nobody_is_asked(void **state)
{
	uint64_t node = type("main.node");

	(void)state;
	stack(node, FROM("runtime.mallocgc", "runtime.newobject", "main.f"));
	w.code[1] = NULL;
	assert_string_equal(label(), "?");
}

/* newobject at the end of what is known: it may have been called by makechan. */
static void one_object_of_an_unknown_caller_is_unknown(void **state)
{
	(void)state;
	assert_string_equal(made(type("main.node"), FROM("runtime.newobject")), "?");
}

static void makers_stand_behind_the_kernels_frames(void **state)
{
	uint64_t node = type("main.node");

	(void)state;
	stack(node, FROM("runtime.makeslice", "main.f"));
	memmove(st.pc + 2, st.pc, 3 * sizeof(*st.pc));
	st.pc[0] = st.pc[1] = UINT64_MAX;
	st.nkernel = 2;
	assert_string_equal(label(), "[]main.node");
}

/* Code of a generic function names types by what all of its instances have in common. */
static void shapes_are_known_in_part(void **state)
{
	uint64_t list = type("main.list[go.shape.*uint8]");

	(void)state;
	assert_string_equal(made(list, FROM("runtime.newobject", "main.f")), "main.list[...]");
	assert_string_equal(made(list, FROM("runtime.makeslice", "main.f")), "[]main.list[...]");
	assert_int_equal(t.partly, 2);
	assert_int_equal(t.unknown, 0);
}

/* In a struct's tags these characters are text. */
static void tags_are_no_question(void **state)
{
	static const char *const known[] = { "struct { A int \"json:\\\"a?\\\"\" }",
					     "struct { A int \"[...]\" }" };
	static const char *const vague[] = { "struct { A main.l[go.shape.int]; B int \"tag\" }",
					     "struct { A go.shape.int; B int \"tag\" }" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		(void)made(type(known[i]), FROM("runtime.newobject", "main.f"));
	assert_int_equal(t.partly, 0);
	for (size_t i = 0; i < ARRAY_LEN(vague); i++)
		(void)made(type(vague[i]), FROM("runtime.newobject", "main.f"));
	assert_int_equal(t.partly, 2);
}

/* ---- values in interfaces ---- */

/* The allocator is told uint64 whatever it is. What the caller does with the result tells the type. */
static void a_boxed_value_has_the_type_that_its_caller_names(void **state)
{
	uint64_t u64 = type("uint64");

	(void)state;
	w.boxed = type("main.id");
	assert_string_equal(made(u64, FROM("runtime.convT64", "main.f")), "interface main.id");
	assert_true(w.asked_of == program && w.asked_bias == BIAS);
	assert_int_equal(w.asked_ret, st.pc[2]); /* where main.f goes on */
	assert_int_equal(w.asked_box, BOX_8);
	assert_int_equal(t.unknown + t.partly, 0);
}

static void a_call_that_names_no_type_is_vague(void **state)
{
	uint64_t u64 = type("uint64");

	(void)state;
	assert_string_equal(made(u64, FROM("runtime.convT64", "main.f")), "interface ?");
	w.code_at += 0x1000; /* elsewhere */
	assert_string_equal(made(u64, FROM("runtime.convTstring", "main.f")), "interface string?");
	assert_int_equal(w.asked_box, BOX_STRING);
	assert_int_equal(t.partly, 2);
}

/* Code is read once for each call, whether it tells something or not. */
static void each_call_is_looked_at_once(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		assert_string_equal(made(0, FROM("runtime.convT64", "main.f")), "interface ?");
	assert_int_equal(w.asked, 1);
	w.code_at += 0x1000;
	w.boxed = type("main.id");
	for (int i = 0; i < 3; i++)
		assert_string_equal(made(0, FROM("runtime.convT64", "main.f")),
				    "interface main.id");
	assert_int_equal(w.asked, 2);
}

/* Inlined calls return nowhere, and of the last frame nobody knows where it returns to. */
static void without_a_return_address_nothing_is_looked_at(void **state)
{
	(void)state;
	w.boxed = type("main.id");
	assert_string_equal(made(0, FROM("runtime.convT64<main.f", "main.main")), "interface ?");
	assert_string_equal(made(0, FROM("runtime.convT64")), "interface ?");
	assert_int_equal(w.asked, 0);
}

/* ---- plugins ---- */

static void plugins_have_code_and_types_of_their_own(void **state)
{
	uint64_t node = type("main.node") - BIAS + PLUGIN_BIAS;

	(void)state;
	w.code_at = PLUGIN_CODE;
	assert_string_equal(made(node, FROM("runtime.newobject", "main.f")), "main.node");
	w.boxed = node;
	assert_string_equal(made(0, FROM("runtime.convT32", "main.f")), "interface main.node");
	assert_true(w.asked_of == plugin && w.asked_bias == PLUGIN_BIAS);
}

/* ---- many samples ---- */

static void a_name_is_read_once(void **state)
{
	uint64_t node = type("main.node"), none = node + 0x800;
	unsigned looked;

	(void)state;
	(void)made(node, FROM("runtime.newobject", "main.f"));
	(void)made(none, FROM("runtime.newobject", "main.f"));
	looked = w.looked;
	assert_true(looked >= 2);
	assert_string_equal(made(node, FROM("runtime.newobject", "main.f")), "main.node");
	assert_string_equal(made(none, FROM("runtime.newobject", "main.f")), "?");
	assert_int_equal(w.looked, looked);
}

/* Samples keep the text of their labels, however many labels come later, and however long they are. */
static void labels_stay_and_are_whole(void **state)
{
	static char longest[LIMIT_NAME];
	const char *first, *last;

	(void)state;
	first = made(type("main.first"), FROM("runtime.makeslice", "main.f"));
	memset(longest, 'n', sizeof(longest) - 1);
	w.boxed = type(longest);
	last = made(0, FROM("runtime.convT64", "main.f"));
	assert_memory_equal(last, "interface nnn", 13);
	assert_int_equal(strlen(last), 10 + LIMIT_NAME - 1);
	for (char name[] = "main.aa"; name[5] <= 'z'; name[5]++)
		(void)made(type(name), FROM("runtime.makeslice", "main.f"));
	assert_string_equal(first, "[]main.first");
}

/* A stack stands for all samples that have it. */
static void samples_are_counted_and_not_stacks(void **state)
{
	struct prof_label l[1];

	(void)state;
	stack(0, FROM("runtime.makeslice", "main.f"));
	st.count = 5;
	assert_int_equal(types_add(&t, &st, l, 0), 1);
	stack(0, FROM("runtime.newobject", "main.f"));
	st.count = 7;
	assert_int_equal(types_add(&t, &st, l, 0), 1);
	assert_true(t.samples == 12 && t.partly == 5 && t.unknown == 7);
}

/* What the program itself calls "type" is kept beside ours. */
static void the_programs_own_label_is_kept(void **state)
{
	struct prof_label l[4] = { { .key = "tenant", .str = "a" },
				   { .key = "type", .str = "b" },
				   { .key = "types", .str = "c" } };

	(void)state;
	stack(type("main.node"), FROM("runtime.newobject", "main.f"));
	assert_int_equal(types_add(&t, &st, l, 3), 4);
	assert_string_equal(l[0].key, "tenant");
	assert_string_equal(l[1].key, "type (label)");
	assert_string_equal(l[1].str, "b");
	assert_string_equal(l[2].key, "types");
	assert_string_equal(l[3].key, "type");
	assert_string_equal(l[3].str, "main.node");
}

/* ---- versions, and what is said ---- */

/* The comment of a profile with these types; "" when there is none. */
static void comment(const struct types *of, char *buf, size_t cap)
{
	struct prof_header_view v;
	struct prof *p;

	assert_int_equal(prof_new(&p, NULL), 0);
	assert_int_equal(types_comment(of, p, NULL), 0);
	v = prof_header(p);
	assert_true(v.ncomments <= 1);
	snprintf(buf, cap, "%s", v.ncomments ? strtab_get(prof_strings(p), v.comments[0]) : "");
	prof_free(p);
}

static void an_old_go_has_no_types_and_says_so(void **state)
{
	struct types old;
	struct err e = {};
	char text[256];

	(void)state;
	info = (struct gobin_info){ .minor = 17, .version = "go1.17.13" };
	assert_int_equal(types_init(&old, &subject, &e), -ENOTSUP);
	assert_non_null(strstr(e.msg, "go1.18 on, and this is go1.17.13"));
	comment(&old, text, sizeof(text));
	assert_string_equal(text, "types: none: they are told from go1.18 on");
	types_fini(&old);
	types_fini(&old);		   /* zeroed */
	comment(&old, text, sizeof(text)); /* nobody has asked for types */
	assert_string_equal(text, "");
}

/* One that does not say its version is treated as a new one. */
static void newer_gos_have_types(void **state)
{
	static const int minors[] = { 18, 27, -1 };
	struct types some;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(minors); i++) {
		info.minor = minors[i];
		assert_int_equal(types_init(&some, &subject, NULL), 0);
		types_fini(&some);
	}
}

static void the_comment_tells_how_much_is_known(void **state)
{
	char text[256];

	(void)state;
	(void)made(type("main.node"), FROM("runtime.newobject", "main.f"));
	(void)made(0, FROM("runtime.newobject", "main.f"));
	for (int i = 0; i < 3; i++)
		(void)made(0, FROM("runtime.makeslice", "main.f"));
	comment(&t, text, sizeof(text));
	assert_string_equal(text, "types: of 5 samples 3 with a type that is known in part "
				  "(\"[]?\"), 1 with none (\"?\")");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_object_has_its_types_name),
		TEST(slices_are_known_by_who_makes_them),
		TEST(the_innermost_maker_decides),
		TEST(strings_and_bytes_need_no_type),
		TEST(channels_have_the_type_that_makechan_was_told),
		TEST(a_maps_storage_has_the_maps_name),
		TEST(what_is_unknown_is_a_question_mark),
		TEST(behind_an_unknown_frame_nobody_is_asked),
		TEST(one_object_of_an_unknown_caller_is_unknown),
		TEST(makers_stand_behind_the_kernels_frames),
		TEST(shapes_are_known_in_part),
		TEST(tags_are_no_question),
		TEST(a_boxed_value_has_the_type_that_its_caller_names),
		TEST(a_call_that_names_no_type_is_vague),
		TEST(each_call_is_looked_at_once),
		TEST(without_a_return_address_nothing_is_looked_at),
		TEST(plugins_have_code_and_types_of_their_own),
		TEST(a_name_is_read_once),
		TEST(labels_stay_and_are_whole),
		TEST(samples_are_counted_and_not_stacks),
		TEST(the_programs_own_label_is_kept),
		TEST(an_old_go_has_no_types_and_says_so),
		TEST(newer_gos_have_types),
		TEST(the_comment_tells_how_much_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
