/* tests/unit/test_pclntab.c - which function holds an address, in tables whose functions are alike in size and in others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "go/image/tables/pclntab.h"

enum { FUNCS = 5000, TEXT = 0x401000, RECORD_AT = (2 * FUNCS + 1) * 8, BYTES = RECORD_AT + 64 };

static uint8_t bytes[BYTES];
static uint64_t starts[FUNCS + 1];
static unsigned reads;

static int read_bytes(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	(void)m;
	reads++;
	if (addr > BYTES || n > BYTES - addr)
		return err_set(e, -EFAULT, "0x%llx", (unsigned long long)addr);
	memcpy(buf, bytes + addr, n);
	return 0;
}

static struct mem memory = { .read = read_bytes };

/* All functions have one record, which is zeroed. */
static struct pclntab table(enum pcln_shape shape)
{
	size_t word = shape == PCLN_116 ? 8 : 4;
	uint64_t base = shape == PCLN_116 ? 0 : TEXT, record = RECORD_AT;

	memset(bytes, 0, sizeof(bytes));
	for (size_t i = 0; i <= FUNCS; i++) {
		uint64_t entry = starts[i] - base;

		memcpy(bytes + 2 * i * word, &entry, word);
		if (i < FUNCS)
			memcpy(bytes + (2 * i + 1) * word, &record, word);
	}
	return (struct pclntab){
		.m = &memory, .end = BYTES, .nfunc = FUNCS, .text = TEXT, .shape = shape
	};
}

static void lay_out(uint64_t (*size)(uint64_t *random, size_t i))
{
	uint64_t random = 1;

	starts[0] = TEXT;
	for (size_t i = 0; i < FUNCS; i++)
		starts[i + 1] = starts[i] + size(&random, i);
}

static uint64_t alike(uint64_t *random, size_t i)
{
	(void)i;
	return 1 + random_below(random, 1000);
}

/* One is larger than all others together. */
static uint64_t one_is_huge(uint64_t *random, size_t i)
{
	return i == FUNCS / 3 ? 1 << 28 : alike(random, i);
}

static uint64_t ever_larger(uint64_t *random, size_t i)
{
	(void)random;
	return 1 + i * i / 100;
}

/* Assembly has such, and each is found by its first address. */
static uint64_t some_are_empty(uint64_t *random, size_t i)
{
	return i % 7 == 3 ? 0 : alike(random, i);
}

static void is_in(const struct pclntab *t, uint64_t pc, size_t i)
{
	struct pclnfunc f;

	assert_int_equal(pclntab_find(t, pc, &f, NULL), 0);
	if (f.entry != starts[i] || f.end != starts[i + 1])
		fail_msg("0x%llx: 0x%llx", (unsigned long long)pc, (unsigned long long)f.entry);
}

static void each_address_is_in_its_function(void **state)
{
	uint64_t (*const sizes[])(uint64_t *, size_t) = { alike, one_is_huge, ever_larger,
							  some_are_empty };

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(sizes) * 2; k++) {
		struct pclntab t;

		lay_out(sizes[k / 2]);
		t = table(k % 2 ? PCLN_116 : PCLN_120);
		for (size_t i = 0; i < FUNCS; i++) {
			if (starts[i] == starts[i + 1])
				continue;
			is_in(&t, starts[i], i);
			is_in(&t, starts[i + 1] - 1, i);
			is_in(&t, starts[i] + (starts[i + 1] - starts[i]) / 2, i);
		}
	}
}

static void other_addresses_are_in_none(void **state)
{
	struct pclnfunc f;
	struct pclntab t;

	(void)state;
	lay_out(alike);
	t = table(PCLN_120);
	assert_int_equal(pclntab_find(&t, TEXT - 1, &f, NULL), -ENOENT);
	assert_int_equal(pclntab_find(&t, 0, &f, NULL), -ENOENT);
	assert_int_equal(pclntab_find(&t, starts[FUNCS], &f, NULL), -ENOENT);
	assert_int_equal(pclntab_find(&t, UINT64_MAX, &f, NULL), -ENOENT);
	t.nfunc = 0;
	assert_int_equal(pclntab_find(&t, TEXT, &f, NULL), -ENOENT);
}

/* What is read of a table costs a call of the kernel where it is a process' memory. */
static void few_readings_find_it(void **state)
{
	uint64_t random = 7;
	struct pclntab t;

	(void)state;
	lay_out(one_is_huge);
	t = table(PCLN_120);
	for (int i = 0; i < 1000; i++) {
		struct pclnfunc f;
		uint64_t pc = TEXT + random_below(&random, starts[FUNCS] - TEXT);

		reads = 0;
		assert_int_equal(pclntab_find(&t, pc, &f, NULL), 0);
		/* the end of the table, and of the function its entry, its end, the offset of its record, and that */
		assert_in_range(reads, 6, 5 + 13);
	}
}

/* It is foreign: whatever it says, a search ends. */
static void a_table_that_is_not_sorted_ends(void **state)
{
	uint64_t random = 3;
	struct pclntab t;

	(void)state;
	for (int k = 0; k < 200; k++) {
		lay_out(alike);
		for (int i = 0; i < 200; i++)
			starts[random_below(&random, FUNCS)] = TEXT +
							       random_below(&random, 1ull << 31);
		t = table(PCLN_120);
		for (int i = 0; i < 20; i++) {
			struct pclnfunc f;
			uint64_t pc = TEXT + random_below(&random, 1ull << 22);
			int ret;

			reads = 0;
			ret = pclntab_find(&t, pc, &f, NULL);
			assert_true(ret || (pc >= f.entry && pc < f.end));
			assert_in_range(reads, 1, 40);
		}
	}
}

static void what_cannot_be_read_is_an_error(void **state)
{
	struct pclnfunc f;
	struct pclntab t;

	(void)state;
	lay_out(alike);
	t = table(PCLN_120);
	t.pcln = BYTES - 100;
	assert_int_equal(pclntab_find(&t, TEXT + 5, &f, NULL), -EFAULT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_address_is_in_its_function),
		cmocka_unit_test(other_addresses_are_in_none),
		cmocka_unit_test(few_readings_find_it),
		cmocka_unit_test(a_table_that_is_not_sorted_ends),
		cmocka_unit_test(what_cannot_be_read_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
