/* tests/unit/test_gotypes.c - types, roles and variables of a program whose DWARF is written here. */
#include "go/runtime/types/gotypes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "heapgraph/classes.h"
#include "ingest/typing/shape.h"
#include "mktypes.h"

static struct err e;
static uint8_t file[MKTYPES_MAX];

/* The first is in a register there, the second in the frame. */
static const uint64_t pcs[] = { MKTYPES_CODE + 4, MKTYPES_CODE + 16, MKTYPES_CODE_END };
static const struct gotypes_want want = { .word = 8,
					  .pcs = pcs,
					  .npcs = 3,
					  .data = MKTYPES_DATA,
					  .edata = MKTYPES_DATA_END,
					  .bss = MKTYPES_BSS,
					  .ebss = MKTYPES_BSS_END,
					  .types = MKTYPES_TYPES,
					  .etypes = MKTYPES_TYPES_END,
					  .functions = true };

static int file_of(size_t n)
{
	int fd = memfd_create("types", MFD_CLOEXEC);

	assert_int_equal(write(fd, file, n), n);
	return fd;
}

static struct gotypes *read_types(const struct mktypes *how)
{
	int fd CLEANUP(closep) = file_of(mktypes(how, file));
	struct gotypes *t = NULL;

	if (gotypes_read_here(fd, &want, &t, &e))
		fail_msg("%s", e.msg);
	return t;
}

static uint32_t named(const struct gotypes *t, const char *name)
{
	for (uint32_t i = 0; i < t->ntypes; i++)
		if (!strcmp(gotypes_text(t, t->types[i].name), name))
			return i;
	fail_msg("no type %s", name);
	return 0;
}

static const struct gotype *get(const struct gotypes *t, const char *name)
{
	return &t->types[named(t, name)];
}

/* ---- what is there ---- */

static void check_types(const struct gotypes *t)
{
	const struct gotype *node = get(t, "main.node");

	assert_int_equal(node->kind, GOTYPE_STRUCT);
	assert_int_equal(node->size, 72);
	assert_int_equal(node->nfields, 5);
	assert_int_equal(node->runtime, MKTYPES_TYPES + 0x2000);
	assert_int_equal(get(t, "uint8")->runtime, MKTYPES_TYPES + 0x1100);
	assert_int_equal(get(t, "uintptr")->runtime, 0);
	/* The pointer leads to the struct itself, not to its other name. */
	assert_int_equal(get(t, "*main.node")->elem, named(t, "main.node"));
	assert_int_equal(t->fields[node->first].type, named(t, "*main.node"));
	assert_int_equal(t->types[t->fields[node->first + 1].type].kind, GOTYPE_STRING);
	assert_int_equal(t->types[t->fields[node->first + 2].type].kind, GOTYPE_SLICE);
	assert_int_equal(t->types[t->fields[node->first + 3].type].kind, GOTYPE_EFACE);
	assert_int_equal(t->types[t->fields[node->first + 4].type].kind, GOTYPE_FUNC);
	assert_int_equal(get(t, "[]int")->elem, named(t, "int"));
	assert_int_equal(get(t, "[3]*main.node")->count, 3);
	assert_int_equal(get(t, "chan main.node")->elem, named(t, "hchan<main.node>"));
	assert_int_equal(get(t, "chan main.node")->of, named(t, "main.node"));
	assert_int_equal(get(t, "hchan<main.node>")->role, GOTYPE_CHAN_HEAD);
}

static void check_variables(const struct gotypes *t)
{
	const struct govar *v = gotypes_var(t, MKTYPES_DATA + 16);

	assert_non_null(v);
	assert_string_equal(gotypes_text(t, v->name), "main.list");
	assert_int_equal(v->type, named(t, "*main.node"));
	assert_int_equal(v->size, 8);
	assert_ptr_equal(gotypes_var(t, MKTYPES_DATA + 23), v);
	assert_null(gotypes_var(t, MKTYPES_DATA + 15));
	assert_null(gotypes_var(t, MKTYPES_DATA + 32));
	v = gotypes_var(t, MKTYPES_BSS + 70);
	assert_string_equal(gotypes_text(t, v->name), "main.raw");
	assert_int_equal(v->type, GOTYPE_NONE);
	assert_int_equal(t->nvars, 4); /* what is in no segment is none */
	assert_string_equal(gotypes_function(t, MKTYPES_CODE), "main.f");
	assert_null(gotypes_function(t, MKTYPES_CODE + 1));
	/* As Go 1.4's linker writes the symbols of closures. */
	assert_string_equal(gotypes_function(t, MKTYPES_CODE_END), "main.func·003");
	assert_string_equal(gotypes_function(t, MKTYPES_CODE_END + 16), "main.func.g");
}

static const struct goslot *first_slot(const struct gotypes *t, const char *name)
{
	for (size_t i = 0; i < t->nslots; i++)
		if (!strcmp(gotypes_text(t, t->slots[i].name), name))
			return &t->slots[i];
	fail_msg("no %s", name);
	return NULL;
}

static void check_slot(const struct goslot *s, int64_t cfa, uint64_t offset, uint64_t len)
{
	assert_int_equal(s->pc, 1);
	assert_int_equal(s->cfa, cfa);
	assert_int_equal(s->offset, offset);
	assert_int_equal(s->len, len);
}

/* Those of one variable follow each other; which variable comes first is open. */
static void check_slots(const struct gotypes *t)
{
	const struct goslot *here = first_slot(t, "here"), *text = first_slot(t, "text"),
			    *parts = first_slot(t, "parts");

	assert_int_equal(t->nslots, 7);
	assert_int_equal(here->type, named(t, "*main.node"));
	check_slot(here, -16, 0, 8);
	assert_int_equal(text->type, named(t, "string"));
	check_slot(&text[0], -32, 0, 8);
	check_slot(&text[1], -48, 8, 8);
	assert_int_equal(parts->type, named(t, "main.pair"));
	check_slot(first_slot(t, "whole"), -64, 0, 16);
	check_slot(&parts[0], -40, 0, 8);
	check_slot(&parts[1], -24, 8, 8);
	check_slot(first_slot(t, "half"), -8, 0, 8);
}

static void check_closure(const struct gotypes *t)
{
	const struct goclosure *c = gotypes_closure(t, MKTYPES_CODE);

	assert_non_null(c);
	assert_null(gotypes_closure(t, MKTYPES_CODE + 1));
	assert_string_equal(gotypes_text(t, t->types[c->type].name), "closure main.f");
	assert_int_equal(t->types[c->type].size, 16);
	assert_int_equal(t->types[c->type].nfields, 1);
	assert_int_equal(t->fields[t->types[c->type].first].offset, 8);
}

static void check_method_value(const struct gotypes *t, uint64_t entry, const char *name,
			       const char *receiver, uint64_t size)
{
	const struct goclosure *c = gotypes_closure(t, entry);
	const struct gofield *f;

	assert_non_null(c);
	f = &t->fields[t->types[c->type].first];
	assert_string_equal(gotypes_text(t, t->types[c->type].name), name);
	assert_int_equal(t->types[c->type].size, size);
	assert_int_equal(t->types[c->type].nfields, 1);
	assert_string_equal(gotypes_text(t, f->name), "R");
	assert_int_equal(f->offset, 8);
	assert_int_equal(f->type, receiver ? named(t, receiver) : GOTYPE_NONE);
}

static void check_method_values(const struct gotypes *t)
{
	check_method_value(t, MKTYPES_METHODS, "closure main.(*node).next-fm", "*main.node", 16);
	check_method_value(t, MKTYPES_METHODS + 16, "closure main.pair.sum-fm", "main.pair", 24);
	check_method_value(t, MKTYPES_METHODS + 32, "closure main.(*gone).f-fm", NULL, 8);
	check_method_value(t, MKTYPES_METHODS + 48, "closure main.(pair).(main.sum)-fm",
			   "main.pair", 24);
	assert_null(gotypes_closure(t, MKTYPES_METHODS + 64)); /* "-fm" */
	assert_null(gotypes_closure(t, MKTYPES_METHODS + 80)); /* ".(*)-fm" */
	check_method_value(t, MKTYPES_METHODS + 96, "closure ().x-fm", NULL, 8);
}

static void everything(void **state)
{
	for (int version = 4; version <= 5; version++) {
		struct gotypes *t = read_types(&(struct mktypes){ .version = version });
		const struct gotype *bucket = get(t, "bucket<int,*main.node>");

		assert_true(t->dwarf);
		check_types(t);
		check_variables(t);
		check_slots(t);
		check_closure(t);
		check_method_values(t);
		assert_int_equal(get(t, "map[int]*main.node")->elem,
				 named(t, "hash<int,*main.node>"));
		assert_int_equal(get(t, "hash<int,*main.node>")->role, GOTYPE_MAP_HEAD);
		assert_int_equal(bucket->role, GOTYPE_MAP_BUCKET);
		assert_int_equal(bucket->of, named(t, "map[int]*main.node"));
		gotypes_free(t);
	}
	(void)state;
}

static void swiss_maps(void **state)
{
	struct gotypes *t = read_types(&(struct mktypes){ .version = 5, .swiss = 1 });

	assert_int_equal(get(t, "map<int,*main.node>")->role, GOTYPE_MAP_HEAD);
	assert_int_equal(get(t, "table<int,*main.node>")->role, GOTYPE_MAP_TABLE);
	assert_int_equal(get(t, "noalg.map.group[int]*main.node")->role, GOTYPE_MAP_GROUP);
	gotypes_free(t);
	(void)state;
}

/* The same through a child. */
static void apart(void **state)
{
	int fd CLEANUP(closep) = file_of(mktypes(&(struct mktypes){ .version = 4 }, file));
	struct gotypes *t = NULL;

	assert_int_equal(gotypes_read(fd, &want, &t, &e), 0);
	check_types(t);
	gotypes_free(t);
	(void)state;
}

/* C has no Go types: only symbols are left. */
static void other_languages(void **state)
{
	struct gotypes *t = read_types(&(struct mktypes){ .version = 4, .other = 1 });

	assert_false(t->dwarf);
	assert_int_equal(t->ntypes, 0);
	assert_int_equal(t->nvars, 2);
	gotypes_free(t);
	(void)state;
}

/* ---- shapes ---- */

#define AT(offset)        \
	{                 \
		offset, 0 \
	}

static void shape_of_node(void **state)
{
	struct gotypes *t = read_types(&(struct mktypes){ .version = 4 });
	uint32_t node = named(t, "main.node"), array = named(t, "[3]*main.node");
	static const struct heap_field right[] = { AT(0),  AT(8),  AT(24), AT(56),  AT(64),
						   AT(72), AT(80), AT(96), AT(128), AT(136) };
	static const struct heap_field wrong[] = { AT(0), AT(16), AT(24), AT(56), AT(64) };
	const struct shape *shape;
	struct shapes s;
	char path[64];

	assert_int_equal(shapes_init(&s, t, &e), 0);
	shape = shapes_get(&s, node);
	assert_int_equal(shape->n, 5);
	assert_int_equal(shape->required, 5);
	assert_int_equal(shape->leaves[3].pointer, 56); /* of an interface: its second word */
	assert_true(shapes_fit(&s, node, 0, 1, right, 5));
	assert_true(shapes_fit(&s, node, 0, 2, right, 10));
	assert_false(shapes_fit(&s, node, 0, 1, right, 10));	       /* there are more */
	assert_false(shapes_fit(&s, node, 0, 2, right, 9));	       /* the last is not whole, */
	assert_true(shapes_fit(&s, node, 0, SHAPES_REPEAT, right, 9)); /* which may be */
	assert_false(shapes_fit(&s, node, 0, 1, right, 4));
	assert_false(shapes_fit(&s, node, 0, 1, wrong, 5));
	assert_false(shapes_fit(&s, node, 8, 1, right, 5));
	assert_false(shapes_fit(&s, node, 0, 1, NULL, 0));
	assert_true(shapes_fit(&s, named(t, "int"), 0, 4, NULL, 0));
	assert_true(shapes_within(&s, named(t, "*main.node"), right, 5));
	assert_false(shapes_within(&s, named(t, "*main.node"), right + 1, 4));
	shapes_path(&s, node, 8, path, sizeof(path));
	assert_string_equal(path, ".name");
	shapes_path(&s, array, 16, path, sizeof(path));
	assert_string_equal(path, "[2]");
	shapes_path(&s, named(t, "bucket<int,*main.node>"), 88, path, sizeof(path));
	assert_string_equal(path, ".values[2]");
	shapes_fini(&s);
	gotypes_free(t);
	(void)state;
}

/* ---- hostile ---- */

static void all_shapes(const struct gotypes *t)
{
	struct shapes s;
	char path[64];

	assert_int_equal(shapes_init(&s, t, &e), 0);
	for (uint32_t i = 0; i < t->ntypes; i++) {
		assert_non_null(shapes_get(&s, i));
		shapes_path(&s, i, 40, path, sizeof(path));
		shapes_fit(&s, i, 0, 1, NULL, 0);
	}
	shapes_fini(&s);
}

static void cycles(void **state)
{
	struct gotypes *t = read_types(&(struct mktypes){ .version = 4, .cycle = 1 });
	const struct gotype *node = get(t, "main.node");

	/* A typedef of itself is no type. */
	assert_int_equal(t->fields[node->first + 1].type, GOTYPE_NONE);
	all_shapes(t);
	gotypes_free(t);
	(void)state;
}

/* Any byte may lie: it is an error, or the tables are right all the same. */
static void any_byte(void **state)
{
	static const uint8_t flips[] = { 0xff, 0x80, 0x01, 0x7f };

	for (int version = 4; version <= 5; version++) {
		size_t n = mktypes(&(struct mktypes){ .version = version, .swiss = version == 5 },
				   file);
		size_t read = 0;

		for (size_t i = 0; i < n; i++) {
			struct gotypes *t = NULL;
			uint8_t was = file[i];
			int fd;

			file[i] ^= flips[i % sizeof(flips)];
			fd = file_of(n);
			file[i] = was;
			if (!gotypes_read_here(fd, &want, &t, &e)) {
				all_shapes(t);
				read++;
			}
			gotypes_free(t);
			close(fd);
		}
		assert_true(read > n / 4);
	}
	(void)state;
}

static void cut(void **state)
{
	size_t n = mktypes(&(struct mktypes){ .version = 4 }, file);

	for (size_t i = 0; i < n; i += 7) {
		int fd = file_of(i);
		struct gotypes *t = NULL;

		if (gotypes_read_here(fd, &want, &t, &e))
			assert_true(e.msg[0]);
		gotypes_free(t);
		close(fd);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything),	 cmocka_unit_test(swiss_maps),
		cmocka_unit_test(apart),	 cmocka_unit_test(other_languages),
		cmocka_unit_test(shape_of_node), cmocka_unit_test(cycles),
		cmocka_unit_test(any_byte),	 cmocka_unit_test(cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
