/* tests/unit/test_rtcontention.c - block and mutex buckets over a made-up address space. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/limits.h"
#include "go/layout/layout_check.h"
#include "go/runtime/rtcontention.h"

enum { BASE = 0x10000, SIZE = 1 << 20, HEAD_AT = BASE, RATE_AT = BASE + 8, MEM_AT = BASE + 16 };
enum { NEXT = 8, TYP = 16, HASH = 24, OBJ = 32, NSTK = 40, HEADER = 48, RECORD = 16 };

struct fake {
	struct mem mem; /* first */
	uint8_t bytes[SIZE];
	uint64_t end;			 /* first unreadable address */
	uint64_t next;			 /* where the next bucket goes */
	unsigned reads;			 /* of anything */
	void (*on_read)(struct fake *f); /* what the runtime does meanwhile */
	struct rtcontention_vars vars;
	struct golayout layout;
};

static int fake_read(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	struct fake *f = (struct fake *)m;

	if (addr < BASE || addr + n > f->end)
		return err_set(e, -EFAULT, "no memory at 0x%llx", (unsigned long long)addr);
	memcpy(buf, f->bytes + (addr - BASE), n);
	f->reads++;
	if (f->on_read)
		f->on_read(f);
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

static struct fake *fake_new(enum bucket_kind kind, int minor)
{
	struct fake *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->mem.read = fake_read;
	f->end = BASE + SIZE;
	f->next = BASE + 4096;
	f->vars = (struct rtcontention_vars){
		.kind = kind, .buckets = HEAD_AT, .rate = RATE_AT, .minor = minor
	};
	for (size_t i = 0; i < LAYOUT_COUNT; i++)
		f->layout.off[i] = -1;
	f->layout.off[LAYOUT_bucket_allnext] = NEXT;
	f->layout.off[LAYOUT_bucket_typ] = TYP;
	f->layout.off[LAYOUT_bucket_hash] = HASH;
	f->layout.off[LAYOUT_bucket_size] = OBJ;
	f->layout.off[LAYOUT_bucket_nstk] = NSTK;
	f->layout.off[LAYOUT_bucket_sizeof] = HEADER;
	put64(f, RATE_AT, 1);
	return f;
}

/* As runtime.stkbucket computes it, with size 0. */
static uint64_t hash_of(uint64_t nstk)
{
	uint64_t h = 0;

	for (uint64_t i = 0; i <= nstk; i++) {
		h += i < nstk ? 0x1000 + i : 0;
		h += h << 10;
		h ^= h >> 6;
	}
	h += h << 3;
	return h ^ h >> 11;
}

/* A bucket at the head of the list, its pcs 0x1000 + i; returns its address. */
static uint64_t add_bucket(struct fake *f, uint64_t nstk)
{
	uint64_t b = f->next;

	put64(f, b + NEXT, get64(f, HEAD_AT));
	put64(f, b + TYP, f->vars.kind);
	put64(f, b + HASH, hash_of(nstk));
	put64(f, b + OBJ, 0);
	put64(f, b + NSTK, nstk);
	for (uint64_t i = 0; i < nstk; i++)
		put64(f, b + HEADER + 8 * i, 0x1000 + i);
	f->next = b + HEADER + 8 * nstk + RECORD;
	put64(f, HEAD_AT, b);
	return b;
}

static uint64_t record_of(struct fake *f, uint64_t b)
{
	return b + HEADER + 8 * get64(f, b + NSTK);
}

static void put_counts(struct fake *f, uint64_t b, double count, uint64_t cycles)
{
	uint64_t word = (uint64_t)count;

	if (f->vars.minor < 0 || f->vars.minor >= 17)
		memcpy(&word, &count, 8);
	put64(f, record_of(f, b), word);
	put64(f, record_of(f, b) + 8, cycles);
}

static struct rtcontentions read_ok(struct fake *f)
{
	struct rtcontentions out;
	struct err e = { 0 };
	int ret = rtcontentions_read(&f->mem, &f->layout, &f->vars, &out, &e);

	if (ret)
		fail_msg("%d: %s", ret, e.msg);
	return out;
}

static int read_bad(struct fake *f, const char *want)
{
	struct rtcontentions out = { .n = 77 };
	struct err e = { 0 };
	int ret = rtcontentions_read(&f->mem, &f->layout, &f->vars, &out, &e);

	assert_true(ret < 0);
	assert_int_equal(out.n, 77);
	if (!strstr(e.msg, want))
		fail_msg("\"%s\" not in \"%s\"", want, e.msg);
	return ret;
}

static void done(struct fake *f, struct rtcontentions *b)
{
	rtcontentions_fini(b);
	free(f);
}

static void empty_list(void **state)
{
	struct fake *f = fake_new(BUCKET_BLOCK, 27);
	struct rtcontentions b;

	(void)state;
	put64(f, RATE_AT, 25000);
	b = read_ok(f);
	assert_int_equal(b.n, 0);
	assert_int_equal(b.rate, 25000);
	assert_int_equal(b.torn + b.skipped, 0);
	done(f, &b);
}

/* The count is an integer up to go1.16, and a float after it; an unknown version counts as new. */
static void whole_list(void **state)
{
	static const int minors[] = { 16, 17, 22, 27, -1 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(minors); i++) {
		struct fake *f = fake_new(i % 2 ? BUCKET_MUTEX : BUCKET_BLOCK, minors[i]);
		struct rtcontentions b;

		for (uint64_t k = 1; k <= 3; k++)
			put_counts(f, add_bucket(f, k),
				   minors[i] == 16 ? 2.0 * (double)k : 1.5 * (double)k, 1000 * k);
		b = read_ok(f);
		assert_int_equal(b.n, 3);
		assert_int_equal(b.npcs, 6);
		assert_int_equal(b.torn + b.skipped, 0);
		for (uint64_t k = 1; k <= 3; k++) {
			const struct rtcontention *r = &b.at[3 - k];

			assert_true(r->count == (minors[i] == 16 ? 2.0 : 1.5) * (double)k);
			assert_int_equal(r->cycles, 1000 * k);
			assert_int_equal(r->nstk, k);
			assert_int_equal(b.pcs[r->stk + k - 1], 0x1000 + k - 1);
		}
		done(f, &b);
	}
}

/* One list must not be mistaken for the other, nor for the heap's. */
static void other_kind(void **state)
{
	struct fake *f = fake_new(BUCKET_BLOCK, 27);

	(void)state;
	add_bucket(f, 2);
	f->vars.kind = BUCKET_MUTEX;
	assert_int_equal(read_bad(f, "type 2, not mutex"), -EBADMSG);
	put64(f, get64(f, HEAD_AT) + TYP, BUCKET_MUTEX);
	put64(f, get64(f, HEAD_AT) + OBJ, 48);
	assert_int_equal(read_bad(f, "objects of 48 bytes"), -EBADMSG);
	free(f);
}

/* Numbers that no runtime writes: such a bucket is left out, and counted. */
static void nonsense(void **state)
{
	static const uint64_t bad[][2] = {
		{ 0x7ff8000000000000, 5 }, /* not a number */
		{ 0x7ff0000000000000, 5 }, /* infinite */
		{ 0xbff0000000000000, 5 }, /* -1 */
		{ 0x43e0000000000000, 5 }, /* 2^63 */
		{ 0x3ff0000000000000, 1ull << 63 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct fake *f = fake_new(BUCKET_BLOCK, 27);
		uint64_t at, good = add_bucket(f, 2);
		struct rtcontentions b;

		put_counts(f, good, 3, 30);
		at = add_bucket(f, 3);
		put64(f, record_of(f, at), bad[i][0]);
		put64(f, record_of(f, at) + 8, bad[i][1]);
		b = read_ok(f);
		assert_int_equal(b.n, 1);
		assert_int_equal(b.npcs, 2);
		assert_int_equal(b.skipped, 1);
		assert_int_equal(b.at[0].cycles, 30);
		done(f, &b);
	}
}

static uint64_t hot;
static double events;

/*
 * An event happens between any two reads; every third one is caught between its count and its
 * delay.
 */
static void go_on(struct fake *f)
{
	events++;
	put_counts(f, hot, events, (uint64_t)(events - (f->reads % 3 == 0)) * 10);
}

static void never_stands_still(void **state)
{
	struct fake *f = fake_new(BUCKET_MUTEX, 27);
	struct rtcontentions b;

	(void)state;
	put_counts(f, add_bucket(f, 1), 5, 50);
	hot = add_bucket(f, 1);
	events = 0;
	f->on_read = go_on;
	b = read_ok(f);
	assert_int_equal(b.n, 2);
	assert_int_equal(b.torn, 1);
	assert_true(b.at[1].count == 5 && b.at[1].cycles == 50);
	assert_true(b.at[0].count >= 1);
	done(f, &b);
}

/* The record changes until the second pass has seen it move, and then stays: its value is used. */
static void go_on_a_while(struct fake *f)
{
	if (f->reads < 10)
		go_on(f);
	else
		put_counts(f, hot, 100, 1000);
}

static void settles(void **state)
{
	struct fake *f = fake_new(BUCKET_MUTEX, 27);
	struct rtcontentions b;

	(void)state;
	hot = add_bucket(f, 1);
	events = 0;
	f->on_read = go_on_a_while;
	b = read_ok(f);
	assert_int_equal(b.torn, 0);
	assert_true(b.at[0].count == 100 && b.at[0].cycles == 1000);
	done(f, &b);
}

/* The memory goes away after the first pass: what was read is kept, unconfirmed. */
static void vanish(struct fake *f)
{
	if (f->reads == 4)
		f->end = BASE + 16;
}

static void gone_meanwhile(void **state)
{
	struct fake *f = fake_new(BUCKET_BLOCK, 22);
	struct rtcontentions b;

	(void)state;
	put_counts(f, add_bucket(f, 1), 5, 50);
	b = read_ok(f);
	f->reads = 0;
	f->on_read = vanish;
	rtcontentions_fini(&b);
	b = read_ok(f);
	assert_int_equal(b.n, 1);
	assert_true(b.at[0].count == 5 && b.at[0].cycles == 50);
	done(f, &b);
}

static void hostile_links(void **state)
{
	static const uint64_t links[] = { 7, 0xdeadbeef000, BASE + 4097, UINT64_MAX - 7,
					  BASE + SIZE - 8 };
	struct fake *f = fake_new(BUCKET_BLOCK, 27);
	uint64_t last = add_bucket(f, 1);
	struct rtcontentions b;

	(void)state;
	add_bucket(f, 1);
	put64(f, last + NEXT, get64(f, HEAD_AT)); /* a cycle */
	b = read_ok(f);
	assert_int_equal(b.n, 2);
	assert_int_equal(b.skipped, 1);
	for (size_t i = 0; i < ARRAY_LEN(links); i++) {
		rtcontentions_fini(&b);
		put64(f, last + NEXT, links[i]);
		b = read_ok(f);
		assert_int_equal(b.n, 2);
		assert_int_equal(b.skipped, 1);
	}
	put64(f, last + NSTK, LIMIT_BUCKET_STACK + 1);
	put64(f, HEAD_AT, last);
	assert_int_equal(read_bad(f, "pcs"), -EBADMSG);
	put64(f, HEAD_AT, 0xc000000000);
	assert_int_equal(read_bad(f, "the block profile's list from 0xc000000000"), -EFAULT);
	f->vars.rate = 8;
	assert_int_equal(read_bad(f, "the rate of the block profile"), -EFAULT);
	done(f, &b);
}

static void wrong_layout(void **state)
{
	struct fake *f = fake_new(BUCKET_BLOCK, 27);

	(void)state;
	add_bucket(f, 1);
	f->layout.off[LAYOUT_bucket_nstk] = 41;
	assert_int_equal(read_bad(f, "layout"), -ENOTSUP);
	f->layout.off[LAYOUT_bucket_sizeof] = 4096;
	assert_int_equal(read_bad(f, "layout"), -ENOTSUP);
	free(f);
}

/* ---- offsets that are not sure ---- */

static void check_bad(struct fake *f, int code, const char *want)
{
	uint64_t heads[BUCKET_KINDS] = { [BUCKET_MEM] = MEM_AT };
	struct err e = { "" };
	int ret;

	heads[f->vars.kind] = HEAD_AT;
	ret = layout_check_contention(&f->mem, &f->layout, f->vars.kind, heads, &e);

	assert_int_equal(ret, code);
	if (!strstr(e.msg, want))
		fail_msg("\"%s\" not in \"%s\"", want, e.msg);
}

static void check_ok(struct fake *f)
{
	uint64_t heads[BUCKET_KINDS] = { [BUCKET_MEM] = MEM_AT };
	struct err e = { "" };

	heads[f->vars.kind] = HEAD_AT;
	if (layout_check_contention(&f->mem, &f->layout, f->vars.kind, heads, &e))
		fail_msg("%s", e.msg);
}

static void unsure(void **state)
{
	struct fake *f = fake_new(BUCKET_MUTEX, -1);
	uint64_t at;

	(void)state;
	check_ok(f); /* nothing there */
	put_counts(f, add_bucket(f, 3), 2, 200);
	check_bad(f, -ENOTSUP, "how long a mutex record is cannot be told from 1 buckets");
	put_counts(f, add_bucket(f, 4), 2.5, 200);
	put_counts(f, add_bucket(f, 5), 0, 0); /* just being made */
	check_ok(f);
	at = get64(f, HEAD_AT);
	put64(f, at + HASH, 1);
	check_bad(f, -EBADMSG, "the hash in the bucket");
	put64(f, at + HASH, hash_of(5));
	put64(f, record_of(f, at), 7); /* a count that is an integer after all */
	check_bad(f, -EBADMSG, "does not hold contentions and a delay");
	put_counts(f, at, 1, 1ull << 62);
	check_bad(f, -EBADMSG, "does not hold contentions and a delay");
	put_counts(f, at, 1, 10);
	check_ok(f);
	put64(f, at + TYP, BUCKET_BLOCK);
	check_bad(f, -EBADMSG, "is no mutex bucket");
	free(f);
}

/* Between two of them lie buckets of the heap profile: these show where a record ends, too. */
static void unsure_among_others(void **state)
{
	struct fake *f = fake_new(BUCKET_BLOCK, -1);
	uint64_t head = 0;

	(void)state;
	for (int i = 0; i < 3; i++) {
		uint64_t at = f->next + HEADER + 8 + RECORD;

		put_counts(f, add_bucket(f, 1), 2, 200);
		put64(f, at + NEXT, head);
		put64(f, at + TYP, BUCKET_MEM);
		put64(f, at + HASH, hash_of(0));
		put64(f, at + NSTK, 0);
		head = at;
		f->next = at + HEADER + 128;
	}
	check_bad(f, -ENOTSUP, "block record has 192 bytes");
	put64(f, MEM_AT, head);
	check_ok(f);
	put64(f, head + HASH, 5);
	check_bad(f, -EBADMSG, "the hash in the bucket");
	free(f);
}

/* The records have grown by a word. */
static void unsure_of_records(void **state)
{
	struct fake *f = fake_new(BUCKET_BLOCK, -1);

	(void)state;
	for (int i = 0; i < 4; i++) {
		put_counts(f, add_bucket(f, 3), 2, 200);
		f->next += 8;
	}
	check_bad(f, -ENOTSUP, "a block record has 24 bytes; those known have 16");
	free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_list),	       cmocka_unit_test(whole_list),
		cmocka_unit_test(other_kind),	       cmocka_unit_test(nonsense),
		cmocka_unit_test(never_stands_still),  cmocka_unit_test(settles),
		cmocka_unit_test(gone_meanwhile),      cmocka_unit_test(hostile_links),
		cmocka_unit_test(wrong_layout),	       cmocka_unit_test(unsure),
		cmocka_unit_test(unsure_among_others), cmocka_unit_test(unsure_of_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
