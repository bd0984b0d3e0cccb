/* tests/unit/test_bytypes.c - whether a dump's types are a program's, and where that was loaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

#include "base/cleanup.h"
#include "ingest/typing/bytypes.h"

enum { TYPES = 10 };
#define AT(i) (0x500000 + 0x40ull * (i))

/* What the DWARF calls them, and the dump. */
static const char *const dwarf[TYPES] = { "main.a",
					  "*main.b",
					  "*net/http.Request",
					  "net/http.connReader",
					  "*gopkg.in/yaml%2ev3.Node",
					  "main.local·1",
					  "main.list[int]",
					  "syscall.Errno",
					  "*internal/poll.FD",
					  "main.h" };
static const char *const dump[TYPES] = {
	"main.a",     "main.",		"net/http.",	 "net/http.connReader", "gopkg.in/yaml.v3.",
	"main.local", "main.list[int]", "syscall.Errno", "internal/poll.",	"main.h"
};

struct world {
	struct gotype types[TYPES];
	char text[512];
	struct gotypes t;
	struct typing_program program;
	struct typing_index ix;
	struct strtab *names;
};

static void make(struct world *w, uint64_t bias, bool moves)
{
	size_t n = 1;

	memset(w, 0, sizeof(*w));
	assert_int_equal(strtab_new(&w->names, NULL), 0);
	for (size_t i = 0; i < TYPES; i++) {
		struct typing_desc *d = vec_add(&w->ix.types, TYPES);

		w->types[i] = (struct gotype){ .name = (uint32_t)n,
					       .size = 8 + 8 * (i / 4),
					       .runtime = AT(i) };
		n += (size_t)snprintf(w->text + n, sizeof(w->text) - n, "%s", dwarf[i]) + 1;
		assert_non_null(d);
		*d = (struct typing_desc){ AT(i) + bias, 8 + 8 * (i / 4),
					   strtab_puts(w->names, dump[i]) };
	}
	w->t = (struct gotypes){ .types = w->types, .ntypes = TYPES, .text = w->text, .ntext = n };
	w->program = (struct typing_program){ .t = &w->t, .moves = moves };
}

static void unmake(struct world *w)
{
	vec_fini(&w->ix.types);
	strtab_free(w->names);
}

static int check(struct world *w, uint64_t *bias, struct err *e)
{
	*bias = 1;
	return bytypes_check(&w->ix, w->names, &w->program, bias, e);
}

static void agree(void **state)
{
	static const uint64_t places[] = { 0, 0x1000, 0x555555554000 };
	struct err e = { 0 };
	struct world w;
	uint64_t bias;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		make(&w, places[i], true);
		assert_int_equal(check(&w, &bias, &e), TYPES);
		assert_int_equal(bias, places[i]);
		unmake(&w);
	}
	make(&w, 0, false);
	assert_int_equal(check(&w, &bias, &e), TYPES);
	assert_int_equal(bias, 0);
	unmake(&w);
}

/* The DWARF may not know all types; what it does not know says nothing. */
static void unknown(void **state)
{
	struct err e = { 0 };
	struct world w;
	uint64_t bias;

	(void)state;
	make(&w, 0x3000, true);
	w.types[0].runtime = w.types[7].runtime = 0;
	assert_int_equal(check(&w, &bias, &e), TYPES - 2);
	assert_int_equal(bias, 0x3000);
	unmake(&w);
	make(&w, 0, false);
	w.t.ntypes = 0;
	assert_int_equal(check(&w, &bias, &e), 0);
	unmake(&w);
}

static void another_program(void **state)
{
	struct world w;
	uint64_t bias;

	(void)state;
	for (int k = 0; k < 4; k++) {
		struct err e = { 0 };

		make(&w, 0, false);
		if (k == 0)
			w.ix.types.at[9].name = strtab_puts(w.names, "main.other");
		else if (k == 1)
			w.ix.types.at[9].size++;
		else if (k == 2)
			w.ix.types.at[9].name = strtab_puts(w.names, "main.");
		else
			w.ix.types.at[1].name = strtab_puts(w.names, "other.");
		assert_int_equal(check(&w, &bias, &e), -EINVAL);
		assert_non_null(strstr(e.msg, k < 3 ? "the program has main.h of 24 bytes" :
						      "the program has *main.b of 8 bytes"));
		unmake(&w);
		/* Where it may have been loaded anywhere, there is no place for it. */
		make(&w, 0x2000, true);
		w.ix.types.at[9].size++;
		assert_int_equal(check(&w, &bias, &e), 0);
		unmake(&w);
		make(&w, 0x2010, true);
		assert_int_equal(check(&w, &bias, &e), 0);
		unmake(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agree),
		cmocka_unit_test(unknown),
		cmocka_unit_test(another_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
