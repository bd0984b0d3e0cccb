/* tests/unit/test_layout_live.c - offsets that are not sure, against a made-up process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "go/layout/layout_check.h"

enum {
	BASE = 0x100000,
	SIZE = 1 << 18,
	HEAD_AT = BASE,
	ALLGS_AT = BASE + 64,
	ALLP_AT = BASE + 128,
	TEXT = 0x400000,
	ETEXT = 0x500000,
	GS = 6,
};

struct fake {
	struct mem mem; /* first */
	uint8_t bytes[SIZE];
	uint64_t next;
	struct golayout l;
};

static int fake_read(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	struct fake *f = (struct fake *)m;

	if (addr < BASE || addr + n > BASE + SIZE)
		return err_set(e, -EFAULT, "no memory at 0x%llx", (unsigned long long)addr);
	memcpy(buf, f->bytes + (addr - BASE), n);
	return 0;
}

static void put64(struct fake *f, uint64_t addr, uint64_t v)
{
	assert_true(addr >= BASE && addr + 8 <= BASE + SIZE);
	memcpy(f->bytes + (addr - BASE), &v, 8);
}

static uint64_t get64(struct fake *f, uint64_t addr)
{
	uint64_t v;

	memcpy(&v, f->bytes + (addr - BASE), 8);
	return v;
}

static const struct {
	enum layout_field f;
	int32_t off;
} offsets[] = {
	{ LAYOUT_bucket_allnext, 8 },	  { LAYOUT_bucket_typ, 16 },  { LAYOUT_bucket_hash, 24 },
	{ LAYOUT_bucket_size, 32 },	  { LAYOUT_bucket_nstk, 40 }, { LAYOUT_bucket_sizeof, 48 },
	{ LAYOUT_g_stack_lo, 0 },	  { LAYOUT_g_stack_hi, 8 },   { LAYOUT_g_m, 48 },
	{ LAYOUT_g_sched_sp, 56 },	  { LAYOUT_g_sched_pc, 64 },  { LAYOUT_g_sched_bp, 96 },
	{ LAYOUT_g_atomicstatus, 144 },	  { LAYOUT_g_goid, 152 },     { LAYOUT_m_g0, 0 },
	{ LAYOUT_m_curg, 184 },		  { LAYOUT_p_mcache, 56 },    { LAYOUT_mcache_tiny, 24 },
	{ LAYOUT_mcache_tinyoffset, 32 }, { LAYOUT_g_gopc, 280 },     { LAYOUT_g_startpc, 296 },
};

static struct fake *fake_new(void)
{
	struct fake *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->mem.read = fake_read;
	f->next = BASE + 4096;
	for (size_t i = 0; i < LAYOUT_COUNT; i++)
		f->l.off[i] = -1;
	for (size_t i = 0; i < ARRAY_LEN(offsets); i++)
		f->l.off[offsets[i].f] = offsets[i].off;
	snprintf(f->l.from, sizeof(f->l.from), "guessed from the test");
	return f;
}

/* ---- buckets --------------------------------------------------------------------------------- */

/* What runtime/mprof.go computes, written a second time. */
static uint64_t go_hash(const uint64_t *stk, uint64_t n, uint64_t size)
{
	uint64_t h = 0;

	for (uint64_t i = 0; i < n; i++) {
		h += stk[i];
		h += h << 10;
		h ^= h >> 6;
	}
	h += size;
	h += h << 10;
	h ^= h >> 6;
	h += h << 3;
	h ^= h >> 11;
	return h;
}

/*
 * Adds a bucket at the head of the list; @words in each of the record's four parts, 3 allocs and
 * 1 free.
 */
static uint64_t add_bucket(struct fake *f, uint64_t size, uint64_t nstk, unsigned int words)
{
	uint64_t b = f->next, stk[16], rec = b + 48 + 8 * nstk;

	for (uint64_t i = 0; i < nstk; i++) {
		stk[i] = TEXT + 16 * i + size;
		put64(f, b + 48 + 8 * i, stk[i]);
	}
	put64(f, b + 8, get64(f, HEAD_AT));
	put64(f, b + 16, 1);
	put64(f, b + 24, go_hash(stk, nstk, size));
	put64(f, b + 32, size);
	put64(f, b + 40, nstk);
	for (unsigned int part = 0; part < 4; part++) {
		put64(f, rec + 8 * words * part, 3);
		put64(f, rec + 8 * words * part + 8, 1);
		if (words >= 4) {
			put64(f, rec + 8 * words * part + 16, 3 * size);
			put64(f, rec + 8 * words * part + 24, size);
		}
	}
	put64(f, HEAD_AT, b);
	f->next = rec + 8 * words * 4;
	return b;
}

static int buckets(struct fake *f, struct err *e)
{
	return layout_check_buckets(&f->mem, &f->l, HEAD_AT, e);
}

static void refused(struct fake *f, const char *want)
{
	struct err e = { "" };

	assert_true(buckets(f, &e) < 0);
	if (!strstr(e.msg, want))
		fail_msg("\"%s\" not in \"%s\"", want, e.msg);
	assert_int_equal(f->l.off[LAYOUT_memrecord_sizeof], -1);
	free(f);
}

static void record_size_is_derived(void **state)
{
	(void)state;
	for (unsigned int words = 2; words <= 4; words += 2) {
		struct fake *f = fake_new();
		struct err e = { "" };

		for (uint64_t i = 1; i <= 8; i++) {
			add_bucket(f, 16 * i, i, words);
			f->next += i % 3 ? 0 : 160; /* something else was allocated in between */
		}
		if (buckets(f, &e))
			fail_msg("%s", e.msg);
		assert_int_equal(f->l.off[LAYOUT_memrecord_sizeof], 32 * words);
		assert_int_equal(f->l.off[LAYOUT_memcycle_sizeof], 8 * words);
		free(f);
	}
}

static void no_buckets_are_fine(void **state)
{
	struct fake *f = fake_new();

	(void)state;
	assert_int_equal(buckets(f, NULL), 0);
	free(f);
}

static struct fake *some(unsigned int words)
{
	struct fake *f = fake_new();

	for (uint64_t i = 1; i <= 8; i++)
		add_bucket(f, 16 * i, i, words);
	return f;
}

static void buckets_that_changed(void **state)
{
	struct fake *f;

	(void)state;
	f = fake_new();
	add_bucket(f, 16, 2, 4);
	refused(f, "cannot be told from 1 buckets");
	/* A record of another size. */
	refused(some(3), "96 bytes");
	/* Two fields are exchanged. */
	f = some(2);
	f->l.off[LAYOUT_bucket_size] = 40;
	f->l.off[LAYOUT_bucket_nstk] = 32;
	refused(f, "hash");
	/* The header grew: what follows it is mistaken for the stack. */
	f = some(2);
	f->l.off[LAYOUT_bucket_sizeof] = 56;
	refused(f, "hash");
	f = some(2);
	put64(f, get64(f, HEAD_AT) + 16, 2);
	refused(f, "no memory bucket");
	/* It is as long as before, but something else is counted. */
	f = some(4);
	put64(f, get64(f, HEAD_AT) + 48 + 8 * 8 + 16, 12345);
	refused(f, "does not hold counts");
	f = some(2);
	put64(f, get64(f, HEAD_AT) + 48 + 8 * 8 + 8, 100);
	refused(f, "does not hold counts");
}

/* ---- goroutines ------------------------------------------------------------------------------ */

static uint64_t g_at(uint64_t i)
{
	return BASE + 0x2000 + i * 512;
}

enum { M_AT = BASE + 0x8000, G0_AT = BASE + 0x9000, STACKS = 0x7000000 };

/* Goroutine 0 runs, the others wait. */
static struct fake *process(void)
{
	struct fake *f = fake_new();

	put64(f, ALLGS_AT, BASE + 0x1000);
	put64(f, ALLGS_AT + 8, GS);
	put64(f, ALLGS_AT + 16, GS + 2);
	for (uint64_t i = 0; i < GS; i++) {
		uint64_t g = g_at(i), lo = STACKS + i * 8192;

		put64(f, BASE + 0x1000 + 8 * i, g);
		put64(f, g, lo);
		put64(f, g + 8, lo + 8192);
		put64(f, g + 56, lo + 8000);
		put64(f, g + 64, TEXT + 0x100);
		put64(f, g + 96, lo + 8064);
		put64(f, g + 144, i ? 4 : 2);
		put64(f, g + 152, i + 1);
		put64(f, g + (uint64_t)f->l.off[LAYOUT_g_gopc], TEXT + 0x180);
		put64(f, g + (uint64_t)f->l.off[LAYOUT_g_startpc], TEXT + 0x200);
	}
	put64(f, g_at(0) + 48, M_AT);
	put64(f, M_AT, G0_AT);
	put64(f, M_AT + 184, g_at(0));
	put64(f, G0_AT + 48, M_AT);
	return f;
}

static int goroutines(struct fake *f, struct err *e)
{
	return layout_check_goroutines(&f->mem, &f->l, ALLGS_AT, TEXT, ETEXT, true, e);
}

static void a_process_as_it_should_be(void **state)
{
	struct fake *f = process();
	struct err e = { "" };

	(void)state;
	if (goroutines(f, &e))
		fail_msg("%s", e.msg);
	free(f);
}

/* Every offset that is checked is moved by a word in either direction. */
static void every_offset_that_is_off(void **state)
{
	static const enum layout_field fields[] = {
		LAYOUT_g_stack_hi, LAYOUT_g_m,	      LAYOUT_g_sched_sp,
		LAYOUT_g_sched_pc, LAYOUT_g_sched_bp, LAYOUT_g_goid,
		LAYOUT_g_gopc,	   LAYOUT_g_startpc,  LAYOUT_m_curg,
	};

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_LEN(fields); i++) {
		struct fake *f = process();

		f->l.off[fields[i / 2]] += i % 2 ? 8 : -8;
		if (!goroutines(f, NULL))
			fail_msg("%s off by %d is not noticed", layout_field_name(fields[i / 2]),
				 i % 2 ? 8 : -8);
		free(f);
	}
}

/* A caller that does not ask where goroutines come from is not refused for it. */
static void creators_of_no_interest(void **state)
{
	struct fake *f = process();

	(void)state;
	f->l.off[LAYOUT_g_gopc] += 8;
	assert_int_equal(layout_check_goroutines(&f->mem, &f->l, ALLGS_AT, TEXT, ETEXT, false,
						 NULL),
			 0);
	free(f);
}

static void too_little_to_tell(void **state)
{
	struct fake *f = process();
	struct err e = { "" };

	(void)state;
	put64(f, ALLGS_AT + 8, 2);
	assert_int_equal(goroutines(f, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "too few"));
	put64(f, ALLGS_AT + 8, 99);
	assert_int_equal(goroutines(f, &e), -EBADMSG);
	put64(f, ALLGS_AT, 0);
	assert_int_equal(goroutines(f, &e), -EBADMSG);
	free(f);
}

/* ---- the tiny block -------------------------------------------------------------------------- */

static void tiny_block(void **state)
{
	struct fake *f = fake_new();
	uint64_t p = BASE + 0x2000, cache = BASE + 0x3000;
	struct err e = { "" };

	(void)state;
	put64(f, ALLP_AT, BASE + 0x1000);
	put64(f, ALLP_AT + 8, 1);
	put64(f, ALLP_AT + 16, 1);
	put64(f, BASE + 0x1000, p);
	put64(f, p + 56, cache);
	assert_int_equal(layout_check_tiny(&f->mem, &f->l, ALLP_AT, 1, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "no P of 1"));
	put64(f, cache + 24, 0xc000012340);
	put64(f, cache + 32, 12);
	if (layout_check_tiny(&f->mem, &f->l, ALLP_AT, 1, &e))
		fail_msg("%s", e.msg);
	for (int by = -8; by <= 8; by += 16) {
		f->l.off[LAYOUT_mcache_tiny] += by;
		f->l.off[LAYOUT_mcache_tinyoffset] += by;
		assert_int_equal(layout_check_tiny(&f->mem, &f->l, ALLP_AT, 1, NULL), -EBADMSG);
		f->l.off[LAYOUT_mcache_tiny] -= by;
		f->l.off[LAYOUT_mcache_tinyoffset] -= by;
	}
	free(f);
}

enum { LATER_P = BASE + 0x2000, LATER_CACHE = BASE + 0x3000 };
static unsigned int reads_of_ps;

/* A collection has closed the block; at the third look at the list of Ps one is open again. */
static int opens_later(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	struct fake *f = (struct fake *)m;

	if (addr == ALLP_AT && ++reads_of_ps == 3) {
		put64(f, LATER_CACHE + 24, 0xc000012340);
		put64(f, LATER_CACHE + 32, 12);
	}
	return fake_read(m, addr, buf, n, e);
}

static void tiny_block_after_a_collection(void **state)
{
	struct fake *f = fake_new();
	struct err e = { "" };

	(void)state;
	f->mem.read = opens_later;
	put64(f, ALLP_AT, BASE + 0x1000);
	put64(f, ALLP_AT + 8, 1);
	put64(f, ALLP_AT + 16, 1);
	put64(f, BASE + 0x1000, LATER_P);
	put64(f, LATER_P + 56, LATER_CACHE);
	assert_int_equal(layout_check_tiny(&f->mem, &f->l, ALLP_AT, 2, &e), -EBADMSG);
	reads_of_ps = 0;
	if (layout_check_tiny(&f->mem, &f->l, ALLP_AT, 5, &e))
		fail_msg("%s", e.msg);
	assert_int_equal(reads_of_ps, 3);
	free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(record_size_is_derived),
		cmocka_unit_test(no_buckets_are_fine),
		cmocka_unit_test(buckets_that_changed),
		cmocka_unit_test(a_process_as_it_should_be),
		cmocka_unit_test(every_offset_that_is_off),
		cmocka_unit_test(creators_of_no_interest),
		cmocka_unit_test(too_little_to_tell),
		cmocka_unit_test(tiny_block),
		cmocka_unit_test(tiny_block_after_a_collection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
