/*
 * tests/bpfhost/test_slot.c - compares the slot that is predicted with the one that the runtime's
 * own arithmetic takes, over spans with all kinds of bits; and what is reported afterwards.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define GPB_HOST
#include "goprof_abi.h"
#include "host.h"

#define SPAN  0x700000ull
#define OTHER 0x710000ull
#define BITS  0x720000ull
#define G     0x730000ull
#define FLAG  0x740000ull
#define USER  0x750000ull
#define SIZE  48

/* offsets in our g */
enum { M = 48, CREDIT = 56 };

#include "go/heap_slot.bpf.h"

/* Offsets of Go 1.27, and of Go 1.19. */
static const struct gpb_live go127 = { .span_start = 24,
				       .span_freeindex = 48,
				       .span_nelems = 50,
				       .span_cache = 56,
				       .span_bits = 64,
				       .span_count = 96,
				       .span_before = 102,
				       .span_elemsize = 104,
				       .g_credit = -1,
				       .index_bytes = 2 };
static const struct gpb_live go119 = { .span_start = 24,
				       .span_freeindex = 48,
				       .span_nelems = 56,
				       .span_cache = 64,
				       .span_bits = 72,
				       .span_count = 96,
				       .span_before = 102,
				       .span_elemsize = 104,
				       .g_credit = -1,
				       .index_bytes = 8 };

static uint8_t span[160], other[160], bits[8 * (SLOT_WORDS + 1)], g[64], user[64], flag[4];

static void put(uint8_t *s, int off, uint64_t v, size_t n)
{
	memcpy(s + off, &v, n);
}

static uint64_t get(const uint8_t *s, int off, size_t n)
{
	uint64_t v = 0;

	memcpy(&v, s + off, n);
	return v;
}

static uint64_t index_of(const struct gpb_live *l, const uint8_t *s, int off)
{
	return get(s, off, l->index_bytes);
}

static uint64_t word_of_bits(uint64_t slot)
{
	return ~get(bits, (int)(slot / 8), 8);
}

/* ---- the runtime's arithmetic ---- */

/* nextFreeIndex in runtime/mbitmap.go; -1: the span is full. */
static int next_free_index(const struct gpb_live *l, uint8_t *s)
{
	uint64_t at = index_of(l, s, l->span_freeindex), n = index_of(l, s, l->span_nelems);
	uint64_t cache = get(s, l->span_cache, 8), result;

	if (at == n)
		return -1;
	while (!cache) {
		at = (at + 64) & ~63ull;
		if (at >= n) {
			put(s, l->span_freeindex, n, l->index_bytes);
			return -1;
		}
		cache = word_of_bits(at);
		put(s, l->span_cache, cache, 8);
	}
	result = at + (uint64_t)__builtin_ctzll(cache);
	if (result >= n) {
		put(s, l->span_freeindex, n, l->index_bytes);
		return -1;
	}
	/* A shift by 64 is 0 in Go. */
	cache = result - at == 63 ? 0 : cache >> (result - at + 1);
	put(s, l->span_cache, cache, 8);
	at = result + 1;
	if (at % 64 == 0 && at != n)
		put(s, l->span_cache, word_of_bits(at), 8);
	put(s, l->span_freeindex, at, l->index_bytes);
	return (int)result;
}

/* nextFreeFast in runtime/malloc.go, nextFree where that gives up. */
static int allocate(const struct gpb_live *l, uint8_t *s)
{
	uint64_t at = index_of(l, s, l->span_freeindex), n = index_of(l, s, l->span_nelems);
	uint64_t cache = get(s, l->span_cache, 8), result, next;
	int got;

	if (cache) {
		result = at + (uint64_t)__builtin_ctzll(cache);
		next = result + 1;
		if (result < n && !(next % 64 == 0 && next != n)) {
			cache = result - at == 63 ? 0 : cache >> (result - at + 1);
			put(s, l->span_cache, cache, 8);
			put(s, l->span_freeindex, next, l->index_bytes);
			put(s, l->span_count, get(s, l->span_count, 2) + 1, 2);
			return (int)result;
		}
	}
	got = next_free_index(l, s);
	if (got >= 0)
		put(s, l->span_count, get(s, l->span_count, 2) + 1, 2);
	return got;
}

static void fill(const struct gpb_live *l, uint8_t *s, uint64_t nelems, unsigned density)
{
	memset(s, 0xa5, sizeof(span));
	for (size_t i = 0; i < sizeof(bits); i++) {
		bits[i] = 0;
		for (int b = 0; b < 8; b++)
			bits[i] |= (uint8_t)((unsigned)rand() % 100 < density) << b;
	}
	put(s, l->span_start, 0xc000000000, 8);
	put(s, l->span_nelems, nelems, l->index_bytes);
	put(s, l->span_freeindex, 0, l->index_bytes);
	put(s, l->span_bits, BITS, 8);
	put(s, l->span_cache, word_of_bits(0), 8);
	put(s, l->span_elemsize, SIZE, 8);
	put(s, l->span_count, 7, 2);
	put(s, l->span_before, 7, 2);
}

static void map(void)
{
	host_reset();
	host_map(SPAN, span, sizeof(span));
	host_map(OTHER, other, sizeof(other));
	host_map(BITS, bits, sizeof(bits));
	host_map(G, g, sizeof(g));
	host_map(FLAG, flag, sizeof(flag));
	host_map(USER, user, sizeof(user));
}

static void to_the_last_slot(const struct gpb_live *l)
{
	static const uint64_t sizes[] = { 1, 2, 31, 63, 64, 65, 127, 128, 170, 1008, 1023, 1024 };
	static const unsigned densities[] = { 0, 1, 50, 97, 100 };

	map();
	for (size_t i = 0; i < 5 * 12 * 40; i++) {
		int told, got;

		fill(l, span, sizes[i % 12], densities[i / 12 % 5]);
		do {
			told = slot_next(l, SPAN, SIZE);
			got = allocate(l, span);
			assert_int_equal(told, got);
			assert_int_equal(slot_taken(l, SPAN, told, SPAN, SIZE),
					 got < 0 ? SLOT_BAD : got);
		} while (got >= 0);
		assert_int_equal(told, SLOT_FULL);
	}
}

static void tells_every_slot_of_1_27(void **state)
{
	(void)state;
	to_the_last_slot(&go127);
}

static void tells_every_slot_of_1_19(void **state)
{
	(void)state;
	to_the_last_slot(&go119);
}

/* There were two allocations, none, or one from another span: the prediction must be refused. */
static void disproves_what_did_not_happen(void **state)
{
	int told;

	(void)state;
	map();
	fill(&go127, span, 170, 30);
	told = slot_next(&go127, SPAN, SIZE);
	assert_int_equal(slot_taken(&go127, SPAN, told, SPAN, SIZE), SLOT_BAD);
	allocate(&go127, span);
	assert_int_equal(slot_taken(&go127, SPAN, told, OTHER, SIZE), SLOT_BAD);
	assert_int_equal(slot_taken(&go127, SPAN, told, SPAN, SIZE), told);
	allocate(&go127, span);
	assert_int_equal(slot_taken(&go127, SPAN, told, SPAN, SIZE), SLOT_BAD);
}

/* The span was full: the slot is the only one that was taken from the next span. */
static void sees_the_first_slot_of_a_new_span(void **state)
{
	int got;

	(void)state;
	map();
	fill(&go127, other, 170, 60);
	assert_int_equal(slot_taken(&go127, SPAN, SLOT_FULL, OTHER, SIZE), SLOT_BAD);
	got = allocate(&go127, other);
	assert_int_equal(slot_taken(&go127, SPAN, SLOT_FULL, OTHER, SIZE), got);
	assert_int_equal(slot_taken(&go127, OTHER, SLOT_FULL, OTHER, SIZE), SLOT_BAD);
	assert_int_equal(slot_taken(&go127, SPAN, SLOT_FULL, OTHER, SIZE + 16), SLOT_BAD);
	allocate(&go127, other);
	assert_int_equal(slot_taken(&go127, SPAN, SLOT_FULL, OTHER, SIZE), SLOT_BAD);
}

static void takes_no_nonsense_for_a_span(void **state)
{
	(void)state;
	map();
	fill(&go127, span, 170, 30);
	assert_int_equal(slot_next(&go127, SPAN, SIZE + 8), SLOT_BAD);
	assert_int_equal(slot_next(&go127, 0, SIZE), SLOT_BAD);
	/* as emptymspan, which has 0 slots */
	assert_int_equal(slot_next(&go127, 0x123, SIZE), SLOT_FULL);
	put(span, go127.span_nelems, 1025, 2);
	assert_int_equal(slot_next(&go127, SPAN, SIZE), SLOT_BAD);
	fill(&go127, span, 170, 100);
	put(span, go127.span_cache, 0, 8);
	put(span, go127.span_bits, 0x999, 8);
	assert_int_equal(slot_next(&go127, SPAN, SIZE), SLOT_BAD);
}

/* A prediction is made only while nothing can come between. */
static void asks_what_can_come_between(void **state)
{
	struct gpb_live l = go127;
	struct gpb_target t = { .g_stack_lo = 0, .g_m = M, .m_curg = 0 };

	(void)state;
	map();
	put(flag, 0, 0, 4);
	put(g, STACKGUARD0, 0xc000123000, 8);
	assert_int_equal(slot_is_next(&l, &t, G, 48), 0); /* the address of the flag is not known */
	l.blacken = FLAG;
	assert_int_equal(slot_is_next(&l, &t, G, 48), 1);
	put(g, STACKGUARD0, 0xfffffffffffffade, 8); /* stackPreempt */
	assert_int_equal(slot_is_next(&l, &t, G, 48), 0);
	put(g, STACKGUARD0, 0xc000123000, 8);
	put(flag, 0, 1, 4);
	/* the offset of the credit is not known */
	assert_int_equal(slot_is_next(&l, &t, G, 48), 0);
	l.g_credit = CREDIT;
	put(g, CREDIT, 48, 8);
	assert_int_equal(slot_is_next(&l, &t, G, 48), 1);
	put(g, CREDIT, 47, 8);
	assert_int_equal(slot_is_next(&l, &t, G, 48), 0);
	put(g, CREDIT, (uint64_t)-9, 8);
	assert_int_equal(slot_is_next(&l, &t, G, 48), 0);
	/* On a system stack, the credit of the goroutine that the thread runs counts. */
	put(g, M, G, 8);
	t.m_curg = 8;
	put(g, 8, USER, 8);
	put(user, CREDIT, 48, 8);
	assert_int_equal(slot_is_next(&l, &t, G, 48), 1);
	l.blacken = 0x999;
	assert_int_equal(slot_is_next(&l, &t, G, 48), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_every_slot_of_1_27),
		cmocka_unit_test(tells_every_slot_of_1_19),
		cmocka_unit_test(disproves_what_did_not_happen),
		cmocka_unit_test(sees_the_first_slot_of_a_new_span),
		cmocka_unit_test(takes_no_nonsense_for_a_span),
		cmocka_unit_test(asks_what_can_come_between),
	};

	srand(1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
