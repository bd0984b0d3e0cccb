/* tests/unit/test_dumpsites.c - buckets and live samples of a dump as a heap profile. */
#include "ingest/heapdump/graph/sites.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "profile/scale.h"

static struct err e;
static struct dumpsites *sites;

enum { RATE = 512 << 10 };

static struct heapdump_line frame(const char *func, uint64_t line)
{
	return (struct heapdump_line){ { func, strlen(func) }, { "/m.go", 5 }, line };
}

static void bucket(uint64_t id, uint64_t size, const struct heapdump_line *lines, size_t n,
		   uint64_t allocs, uint64_t frees)
{
	struct heapdump_record r = { .kind = HEAPDUMP_MEMPROF,
				     .memprof = { .bucket = id,
						  .size = size,
						  .lines = lines,
						  .nlines = n,
						  .allocs = allocs,
						  .frees = frees } };

	assert_int_equal(dumpsites_record(sites, NULL, &r, &e), 0);
}

static void live(uint64_t id, unsigned n)
{
	struct heapdump_record r = { .kind = HEAPDUMP_SAMPLE, .sample = { .bucket = id } };

	while (n--)
		assert_int_equal(dumpsites_record(sites, NULL, &r, &e), 0);
}

static int begin(void **state)
{
	(void)state;
	return dumpsites_new(&sites, &e);
}

static int end(void **state)
{
	(void)state;
	dumpsites_freep(&sites);
	sites = NULL;
	return 0;
}

static void has(struct prof *p, size_t i, const char *leaf, size_t depth, int64_t allocs,
		int64_t in_use, int64_t size)
{
	struct prof_sample_view s = prof_sample_at(p, i);
	struct prof_location_view l = prof_location_at(p, s.locs[0] - 1);
	struct scaled a = scale_heap(allocs, 0, size, RATE), u = scale_heap(in_use, 0, size, RATE);

	assert_string_equal(strtab_get(prof_strings(p), prof_function_at(p, l.func[0] - 1).name),
			    leaf);
	assert_int_equal(s.nlocs, depth);
	assert_int_equal(s.values[0], a.objects);
	assert_int_equal(s.values[1], a.bytes);
	assert_int_equal(s.values[2], u.objects);
	assert_int_equal(s.values[3], u.bytes);
	assert_int_equal(s.labels[0].num, size);
}

static void test_values(void **state)
{
	const struct heapdump_line stack[] = { frame("runtime.mallocgc", 1),
					       frame("runtime.newobject", 2), frame("main.f", 3),
					       frame("main.main", 4), frame("runtime.goexit", 5) };
	const struct heapdump_line runtime[] = { frame("runtime.mallocgc", 1),
						 frame("runtime.malg", 2) };
	CLEANUP(prof_freep) struct prof *p = NULL;

	(void)state;
	bucket(0x10, 48, stack, 5, 10, 7);
	bucket(0x20, 48, stack + 2, 2, 2, 0); /* the same without what is hidden */
	bucket(0x30, 64, stack, 5, 5, 1);
	bucket(0x40, 416, runtime, 2, 9, 9);
	live(0x10, 2);
	live(0x30, 6); /* two of them since the collection: 5 is what was published */
	assert_int_equal(dumpsites_count(sites), 4);
	assert_int_equal(dumpsites_live(sites), 8);
	assert_int_equal(dumpsites_profile(sites, RATE, true, &p, &e), 0);
	assert_int_equal(prof_nsamples(p), 3);
	has(p, 1, "main.f", 2, 7, 6, 64);
	has(p, 2, "runtime.mallocgc", 2, 9, 0, 416);
	assert_int_equal(prof_sample_at(p, 0).values[0],
			 scale_heap(10, 0, 48, RATE).objects + scale_heap(2, 0, 48, RATE).objects);
	assert_int_equal(prof_sample_at(p, 0).values[2], scale_heap(2, 0, 48, RATE).objects);
	assert_int_equal(loss_total(prof_loss(p)), 0);
}

/* Every allocation was recorded: nothing is scaled. */
static void test_rate_one(void **state)
{
	const struct heapdump_line stack[] = { frame("main.f", 3) };
	CLEANUP(prof_freep) struct prof *p = NULL;

	(void)state;
	bucket(1, 24, stack, 1, 3, 1);
	live(1, 2);
	assert_int_equal(dumpsites_profile(sites, 1, true, &p, &e), 0);
	assert_int_equal(prof_sample_at(p, 0).values[1], 72);
	assert_int_equal(prof_sample_at(p, 0).values[3], 48);
}

static void heap(uint64_t bytes)
{
	struct heapdump_record r = { .kind = HEAPDUMP_MEMSTATS, .memstats = { .alloc = bytes } };

	assert_int_equal(dumpsites_record(sites, NULL, &r, &e), 0);
}

/*
 * 100 samples of 48 bytes stand for 50 MiB by the usual rate, give or take 5 MiB: a heap of 30 MiB
 * may be chance (four times that), one of 29 is not. Of a heap of 160 MiB they may be the half, give or
 * take at most 8.9: from 44 MiB on. Of one of 180 that begins at 52. Without the runtime's count nothing is said.
 */
static void test_rate_wrong(void **state)
{
	static const struct {
		uint64_t heap;
		int64_t rate;
		bool cut, stray, wrong;
	} t[] = { { 29 << 20, RATE, .wrong = true },  { 31 << 20, RATE, .wrong = false },
		  { 0, RATE, .wrong = false },	      { 4800, 1, .wrong = false },
		  { 4799, 1, .wrong = true },	      { 160 << 20, RATE, .wrong = false },
		  { 180 << 20, RATE, .wrong = true }, { 180 << 20, RATE, .cut = true },
		  { 180 << 20, RATE, .stray = true } };
	const struct heapdump_line stack[] = { frame("main.f", 3) };

	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		CLEANUP(prof_freep) struct prof *p = NULL;
		struct prof_header_view h;
		bool said = false;

		heap(t[i].heap);
		bucket(1, 48, stack, 1, 100, 0);
		live(1, 100);
		live(2, t[i].stray); /* of a site that there was no room for */
		assert_int_equal(dumpsites_profile(sites, t[i].rate, !t[i].cut, &p, &e), 0);
		assert_int_equal(dumpsites_check(sites).wrong, t[i].wrong);
		assert_false(dumpsites_check(sites).none);
		h = prof_header(p);
		for (size_t k = 0; k < h.ncomments; k++)
			said |= strstr(strtab_get(prof_strings(p), h.comments[k]),
				       "it was another one") != NULL;
		assert_int_equal(said, t[i].wrong);
		end(state);
		begin(state);
	}
}

/*
 * A program that links nothing of runtime/pprof has sites of the runtime's start at most: of ten times the
 * rate that it allocates itself some would be sampled.
 */
static void test_no_profile(void **state)
{
	const struct heapdump_line start[] = { frame("runtime.mallocgc", 1),
					       frame("runtime.schedinit", 2),
					       frame("runtime.rt0_go", 3) };
	const struct heapdump_line own[] = { frame("main.f", 1), frame("runtime.main", 2) };
	static const struct {
		uint64_t heap;
		bool start, own, cut, none;
	} t[] = { { 6 << 20, true, false, false, true },  { 4 << 20, true, false, false, false },
		  { 6 << 20, true, false, true, false },  { 6 << 20, true, true, false, false },
		  { 6 << 20, false, true, false, false }, { 1, false, false, false, true } };

	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		CLEANUP(prof_freep) struct prof *p = NULL;

		heap(t[i].heap);
		if (t[i].start)
			bucket(1, 1024, start, 3, 1, 0);
		if (t[i].own)
			bucket(2, 48, own, 2, 1, 0);
		assert_int_equal(dumpsites_profile(sites, RATE, !t[i].cut, &p, &e), 0);
		assert_int_equal(dumpsites_check(sites).none, t[i].none);
		assert_false(dumpsites_check(sites).wrong);
		end(state);
		begin(state);
	}
}

/* Lost is told; numbers of a file overflow nothing. */
static void test_hostile(void **state)
{
	const struct heapdump_line stack[] = { frame("main.f", 3) };
	CLEANUP(prof_freep) struct prof *p = NULL;

	(void)state;
	live(7, 3);
	bucket(1, UINT64_MAX, stack, 1, UINT64_MAX, UINT64_MAX);
	bucket(2, UINT64_MAX, stack, 1, UINT64_MAX, UINT64_MAX);
	bucket(3, 0, stack, 0, 1, 0);
	live(1, 1);
	assert_int_equal(dumpsites_profile(sites, RATE, false, &p, &e), 0);
	assert_int_equal(prof_sample_at(p, 0).values[1], INT64_MAX);
	assert_int_equal(prof_loss(p)->n[LOSS_BUCKETS_SKIPPED], 3);
}

static void test_too_many(void **state)
{
	CLEANUP(prof_freep) struct prof *p = NULL;
	char name[32];

	(void)state;
	for (unsigned i = 0; i < LIMIT_DUMP_SITES + 5; i++) {
		struct heapdump_line l;

		snprintf(name, sizeof(name), "main.f%u", i % 100);
		l = frame(name, i / 100);
		bucket(i + 1, 16, &l, 1, 1, 0);
	}
	live(LIMIT_DUMP_SITES + 5, 1);
	assert_int_equal(dumpsites_count(sites), LIMIT_DUMP_SITES);
	assert_int_equal(dumpsites_profile(sites, RATE, true, &p, &e), 0);
	assert_int_equal(prof_loss(p)->n[LOSS_STACKS_MANY], 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_values, begin, end),
		cmocka_unit_test_setup_teardown(test_rate_one, begin, end),
		cmocka_unit_test_setup_teardown(test_rate_wrong, begin, end),
		cmocka_unit_test_setup_teardown(test_no_profile, begin, end),
		cmocka_unit_test_setup_teardown(test_hostile, begin, end),
		cmocka_unit_test_setup_teardown(test_too_many, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
