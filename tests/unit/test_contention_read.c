/*
 * tests/unit/test_contention_read.c - block and mutex buckets become the samples that the program's own /debug/pprof would
 * have at that moment. Buckets, variables, names and the clock are this file's.
 *
 * What Go does: BlockProfile and MutexProfile in runtime/mprof.go, printCountCycleProfile in runtime/pprof/pprof.go.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "collect/waits/contention/contention_read.h"
#include "subject/verify.h"
#include "symbolize/subject_logical.h"
#include "target/environ.h"

enum { BUCKETS_AT = 0x601000, RATE_AT = 0x602000, EXPANDED = 0x10000000 };

/* ---- a process ---- */

static struct {
	struct mem mem; /* first */
	int minor;
	uint64_t rate;
	enum rtvar missing; /* RTVAR_COUNT: none is */
	int implausible, unsure,
		torn; /* why values, buckets and a reading are refused; 0: they are not */
	enum bucket_kind verified;
	const char *godebug;
	struct rtcontentions buckets;
	int finis, logicals;
	size_t depth; /* of the last stack that was expanded; 0: none was */
} p;

static int read_rate(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	assert_ptr_equal(m, &p.mem);
	if (addr != RATE_AT || n != sizeof(p.rate))
		return err_set(e, -EFAULT, "nothing at 0x%llx", (unsigned long long)addr);
	memcpy(buf, &p.rate, n);
	return 0;
}

const struct gobin_info *gobin_info(const struct gobin *b)
{
	static struct gobin_info info;

	(void)b;
	info.minor = p.minor;
	return &info;
}

int subject_rtvar(struct subject *s, enum rtvar v, uint64_t *addr, struct err *e)
{
	(void)s;
	if (v == p.missing)
		return err_set(e, -ENOENT, "it is nowhere");
	switch (v) {
	case RTVAR_BBUCKETS:
		*addr = BUCKETS_AT;
		return 0;
	case RTVAR_XBUCKETS:
		*addr = BUCKETS_AT + 8;
		return 0;
	case RTVAR_BLOCKPROFILERATE:
		*addr = RATE_AT;
		return 0;
	case RTVAR_MUTEXPROFILERATE:
		*addr = RATE_AT + 8;
		return 0;
	default:
		fail_msg("variable %d", v);
		return -ENOENT;
	}
}

int rtvar_plausible(struct mem *live, const struct golayout *l, int minor, enum rtvar v,
		    uint64_t addr, struct err *e)
{
	(void)l;
	assert_ptr_equal(live, &p.mem);
	assert_int_equal(minor, p.minor);
	assert_int_equal(v, addr == RATE_AT ? RTVAR_BLOCKPROFILERATE : RTVAR_MUTEXPROFILERATE);
	return p.implausible ? err_set(e, p.implausible, "no rate is like that") : 0;
}

int verify_contention(struct subject *s, enum bucket_kind kind, uint64_t buckets, struct err *e)
{
	(void)s;
	assert_int_equal(buckets, kind == BUCKET_BLOCK ? BUCKETS_AT : BUCKETS_AT + 8);
	p.verified = kind;
	return p.unsure ? err_set(e, p.unsure, "buckets are not known") : 0;
}

int rtcontentions_read(struct mem *m, const struct golayout *l, const struct rtcontention_vars *v,
		       struct rtcontentions *out, struct err *e)
{
	(void)l;
	assert_ptr_equal(m, &p.mem);
	assert_int_equal(p.verified, v->kind); /* before they are read */
	if (p.torn)
		return err_set(e, p.torn, "no list");
	*out = p.buckets;
	return 0;
}

void rtcontentions_fini(struct rtcontentions *b)
{
	(void)b;
	p.finis++;
}

int target_environ(struct target *t, const char *name, char *value, size_t cap)
{
	(void)t;
	assert_string_equal(name, "GODEBUG");
	if (!p.godebug)
		return -ENOENT;
	return snprintf(value, cap, "%s", p.godebug) < (int)cap ? 0 : -E2BIG;
}

struct ticks ticks_of(struct subject *s, double measured)
{
	(void)s;
	return (struct ticks){ .how = TICKS_MEASURED, .per_second = measured };
}

int ticks_comment(const struct ticks *t, struct prof *prof, struct err *e)
{
	return prof_comment(prof, e, "clock: %.0f", t->per_second);
}

/* ---- stacks: each pc is a location ---- */

int subject_logical(struct subject *s, struct prof *prof, struct logical **out, struct err *e)
{
	(void)s;
	(void)e;
	p.logicals++;
	*out = (struct logical *)prof;
	return 0;
}

void logical_free(struct logical *l)
{
	p.logicals -= l != NULL;
}

/* An inlined call behind each pc. */
int logical_callers(struct logical *l, const uint64_t *pcs, size_t n, size_t max,
		    const uint64_t **out, size_t *nout, struct err *e)
{
	static uint64_t to[4096];

	(void)l;
	(void)e;
	p.depth = max;
	*nout = 0;
	for (size_t i = 0; i < 2 * n && i < max; i++)
		to[(*nout)++] = pcs[i / 2] + i % 2 * EXPANDED;
	*out = to;
	return 0;
}

int logical_locations(struct logical *l, const uint64_t *pcs, size_t n, const uint32_t **locs,
		      size_t *nlocs, struct err *e)
{
	static uint32_t to[4096];

	for (size_t i = 0; i < n; i++)
		to[i] = (uint32_t)prof_location((struct prof *)l, 0, pcs[i], NULL, 0, e);
	*locs = to;
	*nlocs = n;
	return 0;
}

/* ---- one reading ---- */

static struct target target = { .pid = 4711, .mem = &p.mem };
static struct subject subject = { .target = &target };
static struct rtcontention buckets[8];
static uint64_t pcs[8];
static struct prof *prof;
static const struct ticks clock_of = { .per_second = 2.5e9 }; /* 400 ps a tick */

static int set_up(void **state)
{
	(void)state;
	memset(&p, 0, sizeof(p));
	p.mem.read = read_rate;
	p.minor = 27;
	p.missing = RTVAR_COUNT;
	p.verified = BUCKET_KINDS;
	p.buckets = (struct rtcontentions){ .at = buckets, .pcs = pcs, .rate = 1 };
	return prof_new(&prof, NULL) || contention_add_types(prof, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	prof_free(prof);
	assert_int_equal(p.logicals, 0);
	return 0;
}

/* Its stack is one pc. */
static void bucket(double count, int64_t cycles, uint64_t pc)
{
	size_t i = p.buckets.n++;

	pcs[i] = pc;
	p.buckets.npcs = p.buckets.n;
	buckets[i] = (struct rtcontention){
		.count = count, .cycles = cycles, .nstk = 1, .stk = (uint32_t)i
	};
}

static struct rtcontention_vars vars(enum bucket_kind kind, int minor)
{
	return (struct rtcontention_vars){
		.kind = kind,
		.buckets = kind == BUCKET_BLOCK ? BUCKETS_AT : BUCKETS_AT + 8,
		.rate = RATE_AT,
		.minor = minor,
	};
}

static void add_samples(enum bucket_kind kind, int minor)
{
	struct rtcontention_vars v = vars(kind, minor);

	assert_int_equal(contention_add_samples(&subject, &v, &p.buckets, &clock_of, prof, NULL),
			 0);
}

static void sample_is(size_t i, uint64_t pc, int64_t count, int64_t ns)
{
	struct prof_sample_view v = prof_sample_at(prof, i);

	assert_int_equal(prof_location_at(prof, v.locs[0] - 1).address, pc);
	assert_int_equal(v.values[0], count);
	assert_int_equal(v.values[1], ns);
}

/* What one bucket is shown as. */
static void shown(enum bucket_kind kind, int minor, double count, int64_t cycles,
		  int64_t shown_count, int64_t shown_ns)
{
	size_t i = prof_nsamples(prof);
	uint64_t pc = 0x1000 + 16 * i;

	p.buckets.n = 0;
	bucket(count, cycles, pc);
	add_samples(kind, minor);
	sample_is(i, pc, shown_count, shown_ns);
}

static const char *comment(size_t i)
{
	struct prof_header_view h = prof_header(prof);

	return i < h.ncomments ? strtab_get(prof_strings(prof), h.comments[i]) : NULL;
}

static bool says(const char *what)
{
	for (size_t i = 0; comment(i); i++)
		if (strstr(comment(i), what))
			return true;
	return false;
}

/* ---- values ---- */

/* int64() of a count and of a delay drops what is behind the point. */
static void values_are_cut_as_go_cuts_them(void **state)
{
	(void)state;
	shown(BUCKET_BLOCK, 27, 2.9, 1001, 2, 400); /* 400.4 ns */
	shown(BUCKET_BLOCK, 17, 7, 2, 7, 0);	    /* 0.8 ns */
	shown(BUCKET_MUTEX, 27, 2.9, 1004, 2, 401);
	shown(BUCKET_BLOCK, 16, 3, 2500, 3, 1000);
}

/* A sampled wait that is shorter than the rate may stand for less than one in a bucket that is just being made. */
static void a_block_bucket_has_at_least_one(void **state)
{
	(void)state;
	shown(BUCKET_BLOCK, 27, 0.4, 100, 1, 40);
	shown(BUCKET_BLOCK, 17, 0, 100, 1, 40);
	shown(BUCKET_BLOCK, -1, 0, 100, 1, 40); /* newer than any known */
	shown(BUCKET_BLOCK, 16, 0, 100, 0, 40); /* it was a whole number then */
	shown(BUCKET_MUTEX, 27, 0.4, 100, 0, 40);
}

/* Up to 1.19 a mutex profile was multiplied when it was written. The count was cut before, the delay after. */
static void old_mutex_profiles_are_multiplied(void **state)
{
	(void)state;
	p.buckets.rate = 5;
	shown(BUCKET_MUTEX, 19, 3, 1001, 15, 2002); /* 5 * 400.4 */
	shown(BUCKET_MUTEX, 16, 3, 1001, 15, 2002);
	shown(BUCKET_MUTEX, 20, 3, 1001, 3, 400);
	shown(BUCKET_MUTEX, -1, 3, 1001, 3, 400);
	shown(BUCKET_BLOCK, 19, 3, 1001, 3, 400);
}

static void what_does_not_fit_is_the_largest(void **state)
{
	(void)state;
	p.buckets.rate = 1000;
	shown(BUCKET_MUTEX, 19, 0x1p62, INT64_MAX, INT64_MAX, INT64_MAX);
	shown(BUCKET_BLOCK, 27, 0x1p62, 25, 1ll << 62, 10);
}

static void versions_that_multiply_are_known(void **state)
{
	static const struct {
		enum bucket_kind kind;
		int minor;
		bool at_read;
	} cases[] = { { BUCKET_MUTEX, 16, true },  { BUCKET_MUTEX, 19, true },
		      { BUCKET_MUTEX, 20, false }, { BUCKET_MUTEX, 27, false },
		      { BUCKET_MUTEX, -1, false }, { BUCKET_BLOCK, 16, false } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct rtcontention_vars v = vars(cases[i].kind, cases[i].minor);

		assert_int_equal(contention_scales_at_read(&v), cases[i].at_read);
	}
}

/* ---- samples ---- */

static void those_who_waited_longest_come_first(void **state)
{
	(void)state;
	bucket(1, 2500, 0x1000);
	bucket(2, 7500, 0x2000);
	bucket(3, 5000, 0x3000);
	bucket(4, 6500000000, 0x4000); /* more than an int tells apart */
	add_samples(BUCKET_BLOCK, 27);
	sample_is(0, 0x4000, 4, 2600000000);
	sample_is(1, 0x2000, 2, 3000);
	sample_is(2, 0x3000, 3, 2000);
	sample_is(3, 0x1000, 1, 1000);
}

/* The order is of one profile: that of the reading stays. */
static void stacks_that_are_shown_alike_are_added_up(void **state)
{
	(void)state;
	bucket(1, 2500, 0x1000);
	bucket(2.5, 5000, 0x1000);
	add_samples(BUCKET_BLOCK, 27);
	assert_int_equal(prof_nsamples(prof), 1);
	sample_is(0, 0x1000, 3, 3000); /* each is cut alone */
	assert_true(buckets[0].count == 1);
}

static void what_could_not_be_read_is_a_loss(void **state)
{
	(void)state;
	bucket(1, 2500, 0x1000);
	p.buckets.skipped = 3;
	p.buckets.torn = 4;
	add_samples(BUCKET_BLOCK, 27);
	add_samples(BUCKET_MUTEX, 27);
	assert_int_equal(prof_loss(prof)->n[LOSS_BUCKETS_SKIPPED], 2 * 3);
	assert_int_equal(prof_loss(prof)->n[LOSS_BUCKETS_TORN], 2 * 4);
}

/* ---- stacks ---- */

static size_t frames_at(enum bucket_kind kind, int minor)
{
	p.buckets.n = 0;
	p.depth = 0;
	bucket(1, 100, 0x1000 + 16 * prof_nsamples(prof));
	add_samples(kind, minor);
	return prof_sample_at(prof, prof_last(prof)).nlocs;
}

/* From 1.23 on the runtime unwinds by frame pointers, which skip inlined calls. */
static void physical_pcs_are_expanded(void **state)
{
	(void)state;
	assert_int_equal(frames_at(BUCKET_BLOCK, 22), 1);
	assert_int_equal(p.depth, 0);
	assert_int_equal(frames_at(BUCKET_BLOCK, 23), 2);
	assert_int_equal(frames_at(BUCKET_MUTEX, 23), 2);
	assert_int_equal(frames_at(BUCKET_MUTEX, -1), 2);
	assert_int_equal(p.depth, 128);
}

/* Source: parsegodebug and parseRuntimeDebugVars in runtime/runtime1.go: the last setting is the one. */
static void stacks_are_as_deep_as_the_program_asked_for(void **state)
{
	static const struct {
		const char *godebug;
		size_t depth;
	} cases[] = {
		{ "profstackdepth=64", 64 },
		{ "gctrace=1,profstackdepth=64,schedtrace=1000", 64 },
		{ "profstackdepth=64,profstackdepth=16", 16 },
		{ "profstackdepth=5000", 1024 },
		{ "", 128 },
		{ "gctrace=1", 128 },
		{ "xprofstackdepth=64", 128 },
		{ "gctrace=1,", 128 },
		/* no numbers to the runtime, which ignores them */
		{ "profstackdepth=", 128 },
		{ "profstackdepth=64x", 128 },
		{ "profstackdepth= 64", 128 },
		{ "profstackdepth=99999999999", 128 },
		{ "profstackdepth=64,profstackdepth=,gctrace=1", 64 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		p.godebug = cases[i].godebug;
		frames_at(BUCKET_BLOCK, 27);
		if (p.depth != cases[i].depth)
			fail_msg("GODEBUG=%s: %zu", cases[i].godebug, p.depth);
	}
}

static void no_more_frames_are_shown_than_that(void **state)
{
	(void)state;
	p.godebug = "profstackdepth=1";
	assert_int_equal(frames_at(BUCKET_BLOCK, 27), 1);
}

/* ---- where it is ---- */

static void each_kind_has_variables_of_its_own(void **state)
{
	struct rtcontention_vars v;

	(void)state;
	assert_int_equal(contention_read_find(&subject, CONTENTION_BLOCK, &v, NULL), 0);
	assert_true(v.kind == BUCKET_BLOCK && v.minor == 27);
	assert_true(v.buckets == BUCKETS_AT && v.rate == RATE_AT);
	p.minor = 16;
	assert_int_equal(contention_read_find(&subject, CONTENTION_MUTEX, &v, NULL), 0);
	assert_true(v.kind == BUCKET_MUTEX && v.minor == 16);
	assert_true(v.buckets == BUCKETS_AT + 8 && v.rate == RATE_AT + 8);
	assert_int_equal(p.verified, BUCKET_MUTEX);
	assert_string_equal(contention_name(CONTENTION_BLOCK), "block");
	assert_string_equal(contention_name(CONTENTION_MUTEX), "mutex");
	assert_string_equal(contention_rate_name(CONTENTION_BLOCK), "runtime.blockprofilerate");
	assert_string_equal(contention_rate_name(CONTENTION_MUTEX), "runtime.mutexprofilerate");
	assert_int_equal(contention_rate_var(CONTENTION_BLOCK), RTVAR_BLOCKPROFILERATE);
	assert_int_equal(contention_rate_var(CONTENTION_MUTEX), RTVAR_MUTEXPROFILERATE);
}

static void not_found(enum contention c, int rc, const char *says_so)
{
	struct rtcontention_vars v = { .minor = 99 };
	struct err e = { "" };

	assert_int_equal(contention_read_find(&subject, c, &v, &e), rc);
	if (!strstr(e.msg, says_so))
		fail_msg("\"%s\" not in \"%s\"", says_so, e.msg);
	assert_int_equal(v.minor, 99);
}

static void what_is_not_found_is_said(void **state)
{
	(void)state;
	p.missing = RTVAR_XBUCKETS;
	not_found(CONTENTION_MUTEX, -ENOENT, "pid 4711: mutex profile: it is nowhere");
	p.missing = RTVAR_BLOCKPROFILERATE;
	not_found(CONTENTION_BLOCK, -ENOENT, "pid 4711: block profile: it is nowhere");
	p.missing = RTVAR_COUNT;
	p.unsure = -ENOTSUP;
	not_found(CONTENTION_BLOCK, -ENOTSUP, "buckets are not known");
}

static void a_rate_is_believed_if_it_can_be_one(void **state)
{
	struct rtcontention_vars v = vars(BUCKET_BLOCK, 27);
	uint64_t rate = 99;
	struct err e = { "" };

	(void)state;
	p.rate = 25000;
	assert_int_equal(contention_read_rate(&subject, &v, &rate, NULL), 0);
	assert_int_equal(rate, 25000);
	p.rate = 26000;
	p.implausible = -EBADMSG;
	assert_int_equal(contention_read_rate(&subject, &v, &rate, &e), -EBADMSG);
	assert_string_equal(e.msg, "no rate is like that");
	assert_int_equal(rate, 25000);
	p.implausible = 0;
	v = vars(BUCKET_MUTEX, 27);
	v.rate = RATE_AT + 8; /* which is not there any more */
	assert_int_equal(contention_read_rate(&subject, &v, &rate, &e), -EFAULT);
}

static void buckets_are_verified_before_each_reading(void **state)
{
	struct rtcontention_vars v = vars(BUCKET_MUTEX, 27);
	struct rtcontentions b = { .n = 99 };
	struct err e = { "" };

	(void)state;
	p.unsure = -ENOTSUP;
	assert_int_equal(contention_read_buckets(&subject, &v, &b, &e), -ENOTSUP);
	p.unsure = 0;
	p.torn = -EFAULT;
	assert_int_equal(contention_read_buckets(&subject, &v, &b, &e), -EFAULT);
	assert_string_equal(e.msg, "pid 4711: no list");
	assert_int_equal(b.n, 99);
	p.torn = 0;
	bucket(1, 100, 0x1000);
	assert_int_equal(contention_read_buckets(&subject, &v, &b, &e), 0);
	assert_int_equal(b.n, 1);
}

/* ---- what is said ---- */

static void rate_is(enum contention c, uint64_t rate, const char *text)
{
	char out[CONTENTION_RATE_TEXT];

	contention_rate_text(c, rate, &clock_of, out);
	assert_string_equal(out, text);
}

static void rates_in_words(void **state)
{
	(void)state;
	rate_is(CONTENTION_BLOCK, 0, "none (runtime.blockprofilerate is 0)");
	rate_is(CONTENTION_MUTEX, 0, "none (runtime.mutexprofilerate is 0)");
	rate_is(CONTENTION_BLOCK, 1, "every contention");
	rate_is(CONTENTION_MUTEX, 1, "every contention");
	rate_is(CONTENTION_MUTEX, 100, "one contention in 100");
	rate_is(CONTENTION_BLOCK, 25000,
		"waits of 10000 ns (25000 ticks), shorter ones in proportion");
}

static bool biased(enum bucket_kind kind, int minor, uint64_t rate)
{
	struct rtcontention_vars v = vars(kind, minor);
	size_t before = prof_header(prof).ncomments;

	assert_int_equal(contention_comment_bias(&v, rate, prof, NULL), 0);
	return prof_header(prof).ncomments > before;
}

/* A rate of 1 leaves out nothing. */
static void block_profiles_to_go116_are_biased(void **state)
{
	(void)state;
	assert_true(biased(BUCKET_BLOCK, 16, 25000));
	assert_true(says("Go 1.16 does not make up for waits"));
	assert_false(biased(BUCKET_BLOCK, 16, 1));
	assert_false(biased(BUCKET_BLOCK, 17, 25000));
	assert_false(biased(BUCKET_BLOCK, -1, 25000));
	assert_false(biased(BUCKET_MUTEX, 16, 25000));
}

static int profile(enum bucket_kind kind, int minor, struct err *e)
{
	struct rtcontention_vars v = vars(kind, minor);

	prof_free(prof);
	assert_int_equal(prof_new(&prof, NULL), 0); /* without types */
	return contention_read_profile(&subject, &v, 2.5e9, prof, e);
}

static void types_are(const char *first, const char *second)
{
	struct prof_header_view h = prof_header(prof);
	const struct strtab *t = prof_strings(prof);

	assert_int_equal(h.ntypes, 2);
	assert_string_equal(strtab_get(t, h.types[0].type), first);
	assert_string_equal(strtab_get(t, h.types[0].unit), "count");
	assert_string_equal(strtab_get(t, h.types[1].type), second);
	assert_string_equal(strtab_get(t, h.types[1].unit), "nanoseconds");
	assert_string_equal(strtab_get(t, h.period_type.type), first);
	assert_string_equal(strtab_get(t, h.period_type.unit), "count");
	assert_int_equal(h.period, 1);
}

static void a_profile_says_where_it_comes_from(void **state)
{
	(void)state;
	bucket(2, 1000, 0x1000);
	bucket(1, 2000, 0x2000);
	p.buckets.rate = 25000;
	assert_int_equal(profile(BUCKET_BLOCK, 16, NULL), 0);
	types_are("contentions", "delay");
	sample_is(0, 0x2000, 1, 800);
	sample_is(1, 0x1000, 2, 400);
	assert_string_equal(comment(0), "window: since the program started");
	assert_string_equal(comment(1), "rate: waits of 10000 ns (25000 ticks), shorter ones in "
					"proportion, by the program itself");
	assert_non_null(strstr(comment(2), "Go 1.16 does not make up"));
	assert_string_equal(comment(3), "clock: 2500000000");
	assert_string_equal(comment(4), "hits: 2 buckets");
	assert_null(comment(5));
	assert_int_equal(p.finis, 1);
}

static void one_that_records_no_more_has_a_past(void **state)
{
	(void)state;
	bucket(2, 1000, 0x1000);
	p.buckets.rate = 0;
	assert_int_equal(profile(BUCKET_MUTEX, 27, NULL), 0);
	assert_string_equal(comment(1), "rate: none (runtime.mutexprofilerate is 0) now; what is "
					"here was recorded before");
	sample_is(0, 0x1000, 2, 400);
}

static void without_buckets_there_is_no_profile(void **state)
{
	struct err e = { "" };

	(void)state;
	p.torn = -ESRCH;
	assert_int_equal(profile(BUCKET_MUTEX, 27, &e), -ESRCH);
	assert_int_equal(prof_header(prof).ntypes, 0);
	assert_null(comment(0));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(values_are_cut_as_go_cuts_them),
		TEST(a_block_bucket_has_at_least_one),
		TEST(old_mutex_profiles_are_multiplied),
		TEST(what_does_not_fit_is_the_largest),
		TEST(versions_that_multiply_are_known),
		TEST(those_who_waited_longest_come_first),
		TEST(stacks_that_are_shown_alike_are_added_up),
		TEST(what_could_not_be_read_is_a_loss),
		TEST(physical_pcs_are_expanded),
		TEST(stacks_are_as_deep_as_the_program_asked_for),
		TEST(no_more_frames_are_shown_than_that),
		TEST(each_kind_has_variables_of_its_own),
		TEST(what_is_not_found_is_said),
		TEST(a_rate_is_believed_if_it_can_be_one),
		TEST(buckets_are_verified_before_each_reading),
		TEST(rates_in_words),
		TEST(block_profiles_to_go116_are_biased),
		TEST(a_profile_says_where_it_comes_from),
		TEST(one_that_records_no_more_has_a_past),
		TEST(without_buckets_there_is_no_profile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
