/* tests/unit/test_rtbucket.c - the bucket walk over a made-up address space. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/limits.h"
#include "go/runtime/rtbucket.h"

enum { BASE = 0x10000, SIZE = 1 << 20, RATE_AT = BASE, HEAD_AT = BASE + 8, CYCLE_AT = BASE + 16 };
enum { ACTIVE, FUTURE0, FUTURE1, FUTURE2 };

struct fake {
	struct mem mem; /* first */
	uint8_t bytes[SIZE];
	uint64_t end;					/* first unreadable address */
	uint64_t next;					/* where the next bucket goes */
	unsigned passes;				/* reads of the cycle word so far */
	void (*on_pass)(struct fake *f, unsigned pass); /* what the runtime does meanwhile */
	struct rtbucket_vars vars;
	struct golayout layout;
};

static int fake_read(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	struct fake *f = (struct fake *)m;

	if (addr == CYCLE_AT && f->on_pass)
		f->on_pass(f, f->passes);
	if (addr == CYCLE_AT)
		f->passes++;
	if (addr < BASE || addr + n > f->end)
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

/* cycle and the flushed bit in the shape of that Go version. */
static void put_cycle(struct fake *f, uint32_t cycle, unsigned flushed)
{
	put64(f, CYCLE_AT,
	      f->vars.minor < 19 ? (uint64_t)flushed << 32 | cycle : cycle << 1 | flushed);
}

static struct fake *fake_new(int minor)
{
	struct fake *f = calloc(1, sizeof(*f));
	int32_t words = minor >= 27 ? 2 : 4;

	assert_non_null(f);
	f->mem.read = fake_read;
	f->end = BASE + SIZE;
	f->next = BASE + 4096;
	f->vars = (struct rtbucket_vars){ HEAD_AT, RATE_AT, CYCLE_AT, minor };
	for (size_t i = 0; i < LAYOUT_COUNT; i++)
		f->layout.off[i] = -1;
	f->layout.off[LAYOUT_bucket_allnext] = 8;
	f->layout.off[LAYOUT_bucket_typ] = 16;
	f->layout.off[LAYOUT_bucket_size] = 32;
	f->layout.off[LAYOUT_bucket_nstk] = 40;
	f->layout.off[LAYOUT_bucket_sizeof] = 48;
	f->layout.off[LAYOUT_memcycle_sizeof] = words * 8;
	f->layout.off[LAYOUT_memrecord_sizeof] = words * 32;
	put64(f, RATE_AT, 524288);
	put_cycle(f, 7, 1);
	return f;
}

/* A bucket at the head of the list, its pcs 0x1000 + i; returns its address. */
static uint64_t add_bucket(struct fake *f, uint64_t size, uint64_t nstk)
{
	uint64_t b = f->next;

	put64(f, b + 8, get64(f, HEAD_AT));
	put64(f, b + 16, 1);
	put64(f, b + 32, size);
	put64(f, b + 40, nstk);
	for (uint64_t i = 0; i < nstk; i++)
		put64(f, b + 48 + 8 * i, 0x1000 + i);
	f->next = b + 48 + 8 * nstk + (uint64_t)f->layout.off[LAYOUT_memrecord_sizeof];
	put64(f, HEAD_AT, b);
	return b;
}

static void put_counts(struct fake *f, uint64_t b, unsigned part, uint64_t allocs, uint64_t frees)
{
	uint64_t cycle = (uint64_t)f->layout.off[LAYOUT_memcycle_sizeof];
	uint64_t at = b + 48 + 8 * get64(f, b + 40) + part * cycle, size = get64(f, b + 32);

	put64(f, at, allocs);
	put64(f, at + 8, frees);
	if (cycle == 32) {
		put64(f, at + 16, allocs * size);
		put64(f, at + 24, frees * size);
	}
}

static struct rtbuckets read_ok(struct fake *f)
{
	struct rtbuckets out;
	struct err e = { 0 };
	int ret = rtbuckets_read(&f->mem, &f->layout, &f->vars, &out, &e);

	if (ret)
		fail_msg("%d: %s", ret, e.msg);
	return out;
}

static int read_bad(struct fake *f, const char *want)
{
	struct rtbuckets out = { .n = 77 };
	struct err e = { 0 };
	int ret = rtbuckets_read(&f->mem, &f->layout, &f->vars, &out, &e);

	assert_true(ret < 0);
	assert_int_equal(out.n, 77);
	if (!strstr(e.msg, want))
		fail_msg("\"%s\" not in \"%s\"", want, e.msg);
	return ret;
}

static void expect_counts(const struct rtbucket *b, uint64_t allocs, uint64_t frees)
{
	assert_int_equal(b->allocs, allocs);
	assert_int_equal(b->frees, frees);
	assert_int_equal(b->alloc_bytes, allocs * b->size);
	assert_int_equal(b->free_bytes, frees * b->size);
}

static void done(struct fake *f, struct rtbuckets *b)
{
	rtbuckets_fini(b);
	free(f);
}

static void empty_list(void **state)
{
	struct fake *f = fake_new(22);
	struct rtbuckets b = read_ok(f);

	(void)state;
	assert_int_equal(b.n, 0);
	assert_int_equal(b.rate, 524288);
	assert_int_equal(b.cycle, 7);
	assert_int_equal(b.skipped + b.torn + b.retries, 0);
	assert_false(b.before_first_gc);
	done(f, &b);
}

/* Three buckets, newest first, with their stacks: in each shape of the record and the cycle. */
static void whole_list(void **state)
{
	static const int minors[] = { 16, 18, 19, 22, 26, 27 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(minors); i++) {
		struct fake *f = fake_new(minors[i]);
		struct rtbuckets b;

		for (uint64_t k = 1; k <= 3; k++) {
			uint64_t at = add_bucket(f, 16 * k, k);

			put_counts(f, at, ACTIVE, 10 * k, k);
			put_counts(f, at, FUTURE0 + (7 + 2) % 3, 1000, 0); /* not yet due */
			put_counts(f, at, FUTURE0 + (7 + 1) % 3, 0, 1000);
		}
		b = read_ok(f);
		assert_int_equal(b.n, 3);
		assert_int_equal(b.npcs, 6);
		assert_int_equal(b.cycle, 7);
		assert_false(b.before_first_gc);
		assert_int_equal(b.skipped + b.torn + b.retries, 0);
		for (uint64_t k = 1; k <= 3; k++) {
			const struct rtbucket *r = &b.at[3 - k];

			assert_int_equal(r->size, 16 * k);
			expect_counts(r, 10 * k, k);
			assert_int_equal(r->nstk, k);
			assert_int_equal(b.pcs[r->stk], 0x1000);
			assert_int_equal(b.pcs[r->stk + k - 1], 0x1000 + k - 1);
		}
		done(f, &b);
	}
}

/* MemProfile flushes the cycle that is due, whether or not the bit says that it was flushed. */
static void due_cycle(void **state)
{
	(void)state;
	for (unsigned minor = 18; minor <= 19; minor++)
		for (unsigned flushed = 0; flushed < 2; flushed++) {
			struct fake *f = fake_new((int)minor);
			uint64_t at = add_bucket(f, 64, 2);
			struct rtbuckets b;

			put_cycle(f, 8, flushed);
			put_counts(f, at, ACTIVE, 5, 1);
			put_counts(f, at, FUTURE0 + 8 % 3, 3, 2);
			put_counts(f, at, FUTURE0 + 9 % 3, 100, 0);
			b = read_ok(f);
			assert_int_equal(b.cycle, 8);
			expect_counts(&b.at[0], 8, 3);
			done(f, &b);
		}
}

static void before_first_gc(void **state)
{
	struct fake *f = fake_new(22);
	uint64_t one = add_bucket(f, 32, 1), two = add_bucket(f, 48, 1);
	struct rtbuckets b;

	(void)state;
	put_cycle(f, 0, 0);
	put_counts(f, one, FUTURE2, 4, 0);
	put_counts(f, two, FUTURE2, 6, 0);
	put_counts(f, two, FUTURE1, 0, 1);
	b = read_ok(f);
	assert_true(b.before_first_gc);
	assert_int_equal(b.torn + b.retries, 0);
	expect_counts(&b.at[1], 4, 0);
	expect_counts(&b.at[0], 6, 1);
	done(f, &b);
}

/* One published bucket is enough: the others then have nothing to show yet. */
static void one_published(void **state)
{
	struct fake *f = fake_new(27);
	uint64_t one = add_bucket(f, 32, 1), two = add_bucket(f, 48, 1);
	struct rtbuckets b;

	(void)state;
	put_counts(f, one, ACTIVE, 1, 1);
	put_counts(f, two, FUTURE0, 9, 0);
	put_cycle(f, 7, 1);
	b = read_ok(f);
	assert_false(b.before_first_gc);
	expect_counts(&b.at[1], 1, 1);
	expect_counts(&b.at[0], 0, 0);
	done(f, &b);
}

/* Allocations go on while everything is added up; these must not be called torn. */
static void grow_future(struct fake *f, unsigned pass)
{
	put_counts(f, get64(f, HEAD_AT), FUTURE2, 10 + pass, 0);
}

static void busy_before_first_gc(void **state)
{
	struct fake *f = fake_new(22);
	struct rtbuckets b;

	(void)state;
	put_cycle(f, 0, 0);
	add_bucket(f, 32, 1);
	f->on_pass = grow_future;
	b = read_ok(f);
	assert_true(b.before_first_gc);
	assert_int_equal(b.torn, 0);
	assert_true(b.at[0].allocs >= 11);
	done(f, &b);
}

/* A GC cycle ends between the first and the second pass, then all is quiet. */
static void one_gc(struct fake *f, unsigned pass)
{
	if (pass != 1)
		return;
	put_cycle(f, 8, 1);
	put_counts(f, get64(f, HEAD_AT), ACTIVE, 50, 20);
}

static void moved_once(void **state)
{
	struct fake *f = fake_new(22);
	uint64_t at = add_bucket(f, 32, 1);
	struct rtbuckets b;

	(void)state;
	put_counts(f, at, ACTIVE, 5, 2);
	f->on_pass = one_gc;
	b = read_ok(f);
	expect_counts(&b.at[0], 50, 20);
	assert_int_equal(b.cycle, 8);
	assert_int_equal(b.retries, 1);
	assert_int_equal(b.torn, 0);
	done(f, &b);
}

/* The first GC cycle ends while everything is being added up. */
static void first_gc(struct fake *f, unsigned pass)
{
	if (pass != 2)
		return;
	put_cycle(f, 2, 1);
	put_counts(f, get64(f, HEAD_AT), ACTIVE, 3, 0);
}

static void mode_changes(void **state)
{
	struct fake *f = fake_new(22);
	uint64_t at = add_bucket(f, 32, 1);
	struct rtbuckets b;

	(void)state;
	put_cycle(f, 0, 0);
	put_counts(f, at, FUTURE1, 4, 0);
	f->on_pass = first_gc;
	b = read_ok(f);
	assert_false(b.before_first_gc);
	assert_int_equal(b.torn, 0);
	expect_counts(&b.at[0], 3, 0);
	done(f, &b);
}

/* One of two buckets never stays the same: it is counted, and the other is not. */
static void always(struct fake *f, unsigned pass)
{
	put_counts(f, get64(f, HEAD_AT), ACTIVE, 10 + pass, 0);
}

static void never_settles(void **state)
{
	struct fake *f = fake_new(22);
	uint64_t at = add_bucket(f, 32, 1);
	struct rtbuckets b;

	(void)state;
	put_counts(f, at, ACTIVE, 5, 2);
	add_bucket(f, 48, 1);
	f->on_pass = always;
	b = read_ok(f);
	assert_int_equal(b.n, 2);
	assert_int_equal(b.torn, 1);
	assert_true(b.retries > 2);
	expect_counts(&b.at[1], 5, 2);
	done(f, &b);
}

/* New buckets at the head after the walk began are not part of this profile. */
static void new_head(struct fake *f, unsigned pass)
{
	if (pass == 1)
		put_counts(f, add_bucket(f, 80, 1), FUTURE0, 1, 0);
}

static void head_moves(void **state)
{
	struct fake *f = fake_new(22);
	uint64_t at = add_bucket(f, 32, 1);
	struct rtbuckets b;

	(void)state;
	put_counts(f, at, ACTIVE, 5, 2);
	f->on_pass = new_head;
	b = read_ok(f);
	assert_int_equal(b.n, 1);
	assert_int_equal(b.torn + b.retries + b.skipped, 0);
	done(f, &b);
}

/* The memory goes away after the first pass: what was read is kept, unconfirmed. */
static void vanish(struct fake *f, unsigned pass)
{
	if (pass == 1)
		f->end = BASE + 4096;
}

static void gone_after_first_pass(void **state)
{
	struct fake *f = fake_new(22);
	uint64_t at = add_bucket(f, 32, 3);
	struct rtbuckets b;

	(void)state;
	put_counts(f, at, ACTIVE, 5, 2);
	f->on_pass = vanish;
	b = read_ok(f);
	assert_int_equal(b.n, 1);
	assert_int_equal(b.torn, 1);
	expect_counts(&b.at[0], 5, 2);
	done(f, &b);
}

static void cycle_in_list(void **state)
{
	struct fake *f = fake_new(22);
	uint64_t last = add_bucket(f, 32, 1);
	struct rtbuckets b;

	(void)state;
	add_bucket(f, 32, 1);
	put64(f, last + 8, get64(f, HEAD_AT));
	b = read_ok(f);
	assert_int_equal(b.n, 2);
	assert_int_equal(b.skipped, 1);
	done(f, &b);
}

/* A wrong link ends the walk with what came before it. */
static void wrong_link(void **state)
{
	static const uint64_t links[] = { 7, 0xdeadbeef000, BASE + 4097, UINT64_MAX - 7,
					  BASE + SIZE - 8 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(links); i++) {
		struct fake *f = fake_new(22);
		struct rtbuckets b;

		put64(f, add_bucket(f, 32, 1) + 8, links[i]);
		b = read_ok(f);
		assert_int_equal(b.n, 1);
		assert_int_equal(b.skipped, 1);
		done(f, &b);
	}
}

static void garbage_header(void **state)
{
	static const struct {
		uint64_t off, val;
		const char *want;
	} bad[] = {
		{ 16, 2, "type 2" },
		{ 16, 1ULL << 32, "type" },
		{ 40, LIMIT_BUCKET_STACK + 1, "pcs" },
		{ 40, UINT64_MAX, "pcs" },
		{ 32, 0, "objects of 0 bytes" },
		{ 32, 1ULL << 50, "objects of" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct fake *f = fake_new(22);
		uint64_t at = add_bucket(f, 32, 1);
		struct rtbuckets b;

		put64(f, at + bad[i].off, bad[i].val);
		assert_int_equal(read_bad(f, bad[i].want), -EBADMSG);
		add_bucket(f, 32, 1); /* one good bucket before it */
		b = read_ok(f);
		assert_int_equal(b.n, 1);
		assert_int_equal(b.skipped, 1);
		done(f, &b);
	}
}

static void deepest_stack(void **state)
{
	struct fake *f = fake_new(27);
	uint64_t at = add_bucket(f, 32, LIMIT_BUCKET_STACK);
	struct rtbuckets b;

	(void)state;
	put_counts(f, at, ACTIVE, 5, 2);
	b = read_ok(f);
	assert_int_equal(b.n, 1);
	assert_int_equal(b.npcs, LIMIT_BUCKET_STACK);
	expect_counts(&b.at[0], 5, 2);
	done(f, &b);
}

/* The header is there, its record is not: skipped, and its link is followed. */
static void unreadable_tail(void **state)
{
	struct fake *f = fake_new(22);
	uint64_t good = add_bucket(f, 32, 1), cut;
	struct rtbuckets b;

	(void)state;
	put_counts(f, good, ACTIVE, 5, 2);
	cut = add_bucket(f, 48, 4);
	f->end = cut + 48 + 4 * 8 + 100;
	b = read_ok(f);
	assert_int_equal(b.n, 1);
	assert_int_equal(b.skipped, 1);
	assert_int_equal(b.torn, 0);
	expect_counts(&b.at[0], 5, 2);
	done(f, &b);
}

static void nothing_readable(void **state)
{
	struct fake *f = fake_new(22);

	(void)state;
	put64(f, HEAD_AT, 0xc000000000);
	assert_int_equal(read_bad(f, "no memory at 0xc000000000"), -EFAULT);
	f->end = add_bucket(f, 48, 4) + 48;
	put64(f, f->end - 48 + 8, 0);
	assert_int_equal(read_bad(f, "list from"), -EFAULT);
	f->vars.mprofcycle = 8;
	assert_int_equal(read_bad(f, "cycle"), -EFAULT);
	f->vars.memprofilerate = 8;
	assert_int_equal(read_bad(f, "MemProfileRate"), -EFAULT);
	free(f);
}

static void wrong_cycle(void **state)
{
	struct fake *f = fake_new(22);

	(void)state;
	add_bucket(f, 32, 1);
	put64(f, CYCLE_AT, UINT32_MAX);
	assert_int_equal(read_bad(f, "more than it can be"), -EBADMSG);
	f->vars.minor = 18;
	put64(f, CYCLE_AT, 5ULL << 32 | 3);
	assert_int_equal(read_bad(f, "more than it can be"), -EBADMSG);
	free(f);
}

static void wrong_layout(void **state)
{
	static const struct {
		enum layout_field f;
		int32_t v;
	} bad[] = {
		{ LAYOUT_bucket_sizeof, -1 },	{ LAYOUT_bucket_sizeof, 4096 },
		{ LAYOUT_bucket_allnext, -1 },	{ LAYOUT_bucket_nstk, 41 },
		{ LAYOUT_memcycle_sizeof, 24 }, { LAYOUT_memrecord_sizeof, 64 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct fake *f = fake_new(22);

		f->layout.off[bad[i].f] = bad[i].v;
		assert_int_equal(read_bad(f, "layout"), -ENOTSUP);
		free(f);
	}
}

/* The sum until now: all four parts, whatever the cycle; each part with its own share. */
static void until_now(void **state)
{
	static const int minors[] = { 18, 22, 27 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(minors); i++)
		for (uint32_t cycle = 7; cycle < 10; cycle++) {
			struct fake *f = fake_new(minors[i]);
			uint64_t at = add_bucket(f, 48, 2);
			struct rtbuckets b;

			put_cycle(f, cycle, 1);
			put_counts(f, at, ACTIVE, 1000, 900);
			put_counts(f, at, FUTURE0, 100, 90);
			put_counts(f, at, FUTURE1, 10, 9);
			put_counts(f, at, FUTURE2, 1, 0);
			b = read_ok(f);
			assert_int_equal(b.n, 1);
			assert_int_equal(b.at[0].addr, at);
			assert_int_equal(b.at[0].all_allocs, 1111);
			assert_int_equal(b.at[0].all_frees, 999);
			assert_int_equal(b.torn, 0);
			done(f, &b);
		}
}

static uint64_t moving; /* the bucket that is moved */

/* Another one is sampled at each pass: no two sums agree, and that is fine. */
static void sampled_meanwhile(struct fake *f, unsigned pass)
{
	put_counts(f, moving, FUTURE0 + (7 + 2) % 3, 5 + pass, 0);
}

static void until_now_in_motion(void **state)
{
	struct fake *f = fake_new(22);
	struct rtbuckets b;

	(void)state;
	moving = add_bucket(f, 16, 1);
	put_counts(f, moving, ACTIVE, 20, 0);
	f->on_pass = sampled_meanwhile;
	b = read_ok(f);
	assert_int_equal(b.torn, 0);
	assert_int_equal(b.at[0].allocs, 20);
	assert_true(b.at[0].all_allocs >= 25 && b.at[0].all_allocs < 30);
	done(f, &b);
}

/*
 * runtime.GC() publishes a part without changing the cycle word. It is caught in the middle: the
 * part is in active already, and not yet taken out of future.
 */
static void published_twice_for_a_moment(struct fake *f, unsigned pass)
{
	put_counts(f, moving, ACTIVE, 20 + 8, 0);
	put_counts(f, moving, FUTURE0 + (7 + 1) % 3, pass < 1 ? 8 : 0, 0);
}

static void until_now_while_published(void **state)
{
	struct fake *f = fake_new(22);
	struct rtbuckets b;

	(void)state;
	moving = add_bucket(f, 16, 1);
	f->on_pass = published_twice_for_a_moment;
	b = read_ok(f);
	assert_int_equal(b.torn, 0);
	assert_int_equal(b.at[0].all_allocs, 28);
	done(f, &b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_list),
		cmocka_unit_test(whole_list),
		cmocka_unit_test(until_now),
		cmocka_unit_test(until_now_in_motion),
		cmocka_unit_test(until_now_while_published),
		cmocka_unit_test(due_cycle),
		cmocka_unit_test(before_first_gc),
		cmocka_unit_test(one_published),
		cmocka_unit_test(busy_before_first_gc),
		cmocka_unit_test(moved_once),
		cmocka_unit_test(mode_changes),
		cmocka_unit_test(never_settles),
		cmocka_unit_test(head_moves),
		cmocka_unit_test(gone_after_first_pass),
		cmocka_unit_test(cycle_in_list),
		cmocka_unit_test(wrong_link),
		cmocka_unit_test(garbage_header),
		cmocka_unit_test(deepest_stack),
		cmocka_unit_test(unreadable_tail),
		cmocka_unit_test(nothing_readable),
		cmocka_unit_test(wrong_cycle),
		cmocka_unit_test(wrong_layout),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
