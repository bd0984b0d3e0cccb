/* tests/unit/test_typing_parts.c - each value of a part is looked through once. */
#include "ingest/typing/parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SIZE = 24, VALUES = 400, TYPES = 2, PHASES = 2, BASE = 1 << 20 };

/* By type, phase and value: how often it was asked for, and told. */
static unsigned asked[TYPES][PHASES][VALUES], told[TYPES][PHASES][VALUES];

static bool add(struct typing_parts *p, uint32_t type, unsigned phase, unsigned from, unsigned n)
{
	struct typing_part part = { BASE + 8 * phase + SIZE * (uint64_t)from, n, type, 7 };

	for (unsigned i = from; i < from + n; i++)
		asked[type][phase][i]++;
	return typing_parts_add(p, &part, SIZE);
}

static void take_all(struct typing_parts *p)
{
	struct typing_part part;

	while (typing_parts_take(p, &part)) {
		uint64_t at = part.addr - BASE, phase = at % SIZE / 8;

		assert_int_equal(part.object, 7);
		for (uint64_t i = 0; i < part.count; i++)
			told[part.type][phase][at / SIZE + i]++;
	}
}

static unsigned next(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(*seed >> 33);
}

/* Ranges at random, some of them taken in between. */
static void test_once_each(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (int round = 0; round < 300; round++) {
		struct typing_parts p = {};

		memset(asked, 0, sizeof(asked));
		memset(told, 0, sizeof(told));
		for (unsigned k = next(&seed) % 200; k; k--) {
			unsigned from = next(&seed) % VALUES,
				 n = 1 + next(&seed) % (round % 40 + 1);

			n = n < VALUES - from ? n : VALUES - from;
			assert_true(add(&p, next(&seed) % TYPES, next(&seed) % PHASES, from, n));
			if (next(&seed) % 8 == 0)
				take_all(&p);
		}
		take_all(&p);
		for (unsigned t = 0; t < TYPES; t++)
			for (unsigned f = 0; f < PHASES; f++)
				for (unsigned i = 0; i < VALUES; i++)
					assert_int_equal(told[t][f][i], asked[t][f][i] != 0);
		typing_parts_fini(&p);
	}
}

/* Slices from each element to the end, from both sides: they are one part at a time, or two. */
static void test_windows(void **state)
{
	enum { MANY = 300000 };

	(void)state;
	for (int down = 0; down < 2; down++) {
		struct typing_parts p = {};
		struct typing_part part;
		uint64_t n = 0, parts = 0;

		for (uint64_t k = 0; k < MANY; k++) {
			uint64_t i = down ? MANY - 1 - k : k;

			part = (struct typing_part){ BASE + 8 * i, MANY - i, 1, 0 };
			assert_true(typing_parts_add(&p, &part, 8));
		}
		for (; typing_parts_take(&p, &part); parts++)
			n += part.count;
		assert_int_equal(n, MANY);
		assert_int_equal(parts, 1);
		typing_parts_fini(&p);
	}
}

/* Objects side by side are no one part, and one that runs out of the address space is none. */
static void test_objects(void **state)
{
	struct typing_parts p = {};
	struct typing_part part = { BASE + 64, 8, 1, 1 };

	(void)state;
	assert_true(typing_parts_add(&p, &part, 8));
	part = (struct typing_part){ BASE, 8, 1, 0 };
	assert_true(typing_parts_add(&p, &part, 8));
	assert_true(typing_parts_take(&p, &part));
	assert_int_equal(part.object, 0);
	assert_int_equal(part.count, 8);
	assert_true(typing_parts_take(&p, &part));
	assert_int_equal(part.object, 1);
	assert_int_equal(part.count, 8);
	assert_false(typing_parts_take(&p, &part));
	part = (struct typing_part){ UINT64_MAX - 7, 2, 1, 0 };
	assert_false(typing_parts_add(&p, &part, 8));
	part = (struct typing_part){ BASE, UINT64_MAX / 2, 1, 0 };
	assert_false(typing_parts_add(&p, &part, 8));
	typing_parts_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_once_each),
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_objects),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
