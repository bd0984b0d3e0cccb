/*
 * tests/unit/test_heap_read.c - a profile of the runtime's own buckets is the one that the program itself would write. Estimates
 * are numbers that Go printed (test_scale.c). The buckets, and the program that they are of, are made by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/heap/heap_read.h"
#include "subject/verify.h"
#include "symbolize/subject_logical.h"

enum { RATE = 524288, MBUCKETS = 0x1000, RATE_AT = 0x2000, CYCLE_AT = 0x3000 };

/* ---- a program ---- */

static struct {
	struct rtbuckets buckets;
	int64_t rate;
	enum rtvar missing; /* RTVAR_COUNT: none */
	bool implausible, no_rate;
	int verify_fails, read_fails, mapping_fails;
	uint64_t verified; /* the address that was verified last */
	unsigned finis;
} w;

static int read_rate(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	(void)m;
	if (w.no_rate || addr != RATE_AT || n != sizeof(w.rate))
		return err_set(e, -EFAULT, "nothing at 0x%llx", (unsigned long long)addr);
	memcpy(buf, &w.rate, n);
	return 0;
}

static struct mem mem = { .read = read_rate };
static struct gobin_info info;
static struct target target = { .pid = 77, .mem = &mem };
static struct subject subject = { .target = &target };

const struct gobin_info *gobin_info(const struct gobin *b)
{
	(void)b;
	return &info;
}

int subject_rtvar(struct subject *s, enum rtvar v, uint64_t *addr, struct err *e)
{
	assert_ptr_equal(s, &subject);
	if (v == w.missing)
		return err_set(e, -ENOENT, "variable %d is not there", v);
	*addr = v == RTVAR_MBUCKETS ? MBUCKETS : v == RTVAR_MEMPROFILERATE ? RATE_AT : CYCLE_AT;
	return 0;
}

int rtvar_plausible(struct mem *live, const struct golayout *l, int minor, enum rtvar v,
		    uint64_t addr, struct err *e)
{
	assert_true(live == &mem && l == &subject.layout && minor == info.minor);
	assert_true(v == RTVAR_MEMPROFILERATE && addr == RATE_AT);
	return w.implausible ? err_set(e, -EBADMSG, "that is no rate") : 0;
}

int verify_buckets(struct subject *s, uint64_t mbuckets, struct err *e)
{
	(void)s;
	w.verified = mbuckets;
	return w.verify_fails ? err_set(e, w.verify_fails, "these are no buckets") : 0;
}

int rtbuckets_read(struct mem *m, const struct golayout *l, const struct rtbucket_vars *v,
		   struct rtbuckets *out, struct err *e)
{
	assert_true(m == &mem && l == &subject.layout && v->mbuckets == MBUCKETS);
	if (w.read_fails)
		return err_set(e, w.read_fails, "the list goes in circles");
	*out = w.buckets;
	return 0;
}

void rtbuckets_fini(struct rtbuckets *b)
{
	w.finis += b->n > 0;
}

bool frame_elided(enum func_id id, enum func_id callee)
{
	(void)id;
	(void)callee;
	return false;
}

/* ---- its functions ---- */

enum { F = 0x1001, G = 0x1101, MAKESLICE = 0x2001, MAPS = 0x2101, GOEXIT = 0x2301 };

static const struct {
	uint64_t lo, hi;
	const char *name;
} functions[] = {
	{ 0x1000, 0x1100, "main.f" },
	{ 0x1100, 0x1200, "main.g" },
	{ 0x2000, 0x2100, "runtime.makeslice" },
	{ 0x2100, 0x2200, "internal/runtime/maps.New" },
	{ 0x2300, 0x2310, "runtime.goexit" },
};

static int frames(void *arg, uint64_t addr, struct goframe *f, size_t cap, uint64_t *entry)
{
	(void)arg;
	(void)cap;
	for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
		if (addr < functions[i].lo || addr >= functions[i].hi)
			continue;
		*entry = functions[i].lo;
		f[0] = (struct goframe){ .func = functions[i].name, .file = "f.go" };
		return 1;
	}
	return -ENOENT;
}

static int mapping(void *arg, struct prof *p, uint64_t addr, struct err *e)
{
	(void)arg;
	(void)p;
	(void)addr;
	return w.mapping_fails ? err_set(e, w.mapping_fails, "no mappings today") : 0;
}

int subject_logical(struct subject *s, struct prof *p, struct logical **out, struct err *e)
{
	const struct logical_source src = {
		.frames = frames, .mapping = mapping, .prof = p, .minor = gobin_info(s->bin)->minor
	};

	return logical_new(&src, out, e);
}

/* ---- its buckets ---- */

static struct rtbucket at[8];
static uint64_t pcs[64];
static const struct rtbucket_vars vars = { MBUCKETS, RATE_AT, CYCLE_AT, 27 };
static struct prof *p;

/* Up to Go 1.26 buckets count bytes; from 1.27 on their objects have a size. */
static void is_go(int minor)
{
	info.minor = minor;
	subject.layout.off[LAYOUT_memcycle_sizeof] = minor >= 27 ? 16 : 32;
}

static int set_up(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.missing = RTVAR_COUNT;
	w.rate = RATE;
	w.buckets = (struct rtbuckets){ .at = at, .pcs = pcs, .rate = RATE, .cycle = 5 };
	is_go(27);
	return prof_new(&p, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	prof_free(p);
	return 0;
}

/* A bucket with such a stack, leaf first, up to a 0. */
static void add(struct rtbucket b, const uint64_t *stack)
{
	b.stk = (uint32_t)w.buckets.npcs;
	for (; stack[b.nstk]; b.nstk++)
		pcs[w.buckets.npcs++] = stack[b.nstk];
	at[w.buckets.n++] = b;
}

#define STACK(...) ((const uint64_t[]){ __VA_ARGS__, 0 })

static void read_profile(void)
{
	struct err e = {};

	if (heap_read_profile(&subject, &vars, p, &e))
		fail_msg("%s", e.msg);
}

static const char *text(uint32_t id)
{
	return strtab_get(prof_strings(p), id);
}

static bool says(const char *what)
{
	struct prof_header_view v = prof_header(p);

	for (size_t i = 0; i < v.ncomments; i++)
		if (strstr(text(v.comments[i]), what))
			return true;
	return false;
}

static struct prof_sample_view sample_at(size_t i)
{
	assert_true(i < prof_nsamples(p));
	return prof_sample_at(p, i);
}

/* The functions of a sample, leaf first. */
static const char *stack_of(size_t sample)
{
	static char got[256];
	struct prof_sample_view s = sample_at(sample);
	size_t n = 0;

	got[0] = 0;
	for (size_t i = 0; i < s.nlocs; i++) {
		struct prof_location_view l = prof_location_at(p, s.locs[i] - 1);

		n += (size_t)snprintf(got + n, sizeof(got) - n, "%s%s", i ? " " : "",
				      text(prof_function_at(p, l.func[0] - 1).name));
	}
	return got;
}

static void expect_values(size_t sample, int64_t allocs, int64_t alloc_bytes, int64_t inuse,
			  int64_t inuse_bytes)
{
	const int64_t *v = sample_at(sample).values;

	assert_int_equal(v[0], allocs);
	assert_int_equal(v[1], alloc_bytes);
	assert_int_equal(v[2], inuse);
	assert_int_equal(v[3], inuse_bytes);
}

/* ---- numbers ---- */

/* Its bytes are ignored. */
static void new_buckets_are_scaled_by_their_size(void **state)
{
	(void)state;
	add((struct rtbucket){ .size = 16,
			       .allocs = 1000000,
			       .frees = 999999,
			       .alloc_bytes = 5,
			       .free_bytes = 5 },
	    STACK(F));
	read_profile();
	expect_values(0, 32768500002, 524296000040, 32768, 524296);
}

/* Three objects of 100 bytes in all, of which one of 16 bytes is left. */
static void old_buckets_are_scaled_by_their_mean(void **state)
{
	(void)state;
	is_go(26);
	add(
		(struct rtbucket){
			.size = 16, .allocs = 3, .frees = 2, .alloc_bytes = 100, .free_bytes = 84 },
		STACK(F));
	read_profile();
	expect_values(0, 47187, 1572914, 32768, 524296);
}

/* With such a rate every allocation is recorded. */
static void a_rate_of_one_scales_nothing(void **state)
{
	(void)state;
	w.buckets.rate = 1;
	add((struct rtbucket){ .size = 100, .allocs = 7, .frees = 3 }, STACK(F));
	read_profile();
	expect_values(0, 7, 700, 4, 400);
}

/* What a bucket stands for, where somebody else counts its objects. */
static void a_part_of_a_bucket_is_scaled_like_all_of_it(void **state)
{
	const struct rtbucket b = { .size = 16, .allocs = 99 };
	struct scaled one;

	(void)state;
	for (int minor = 26; minor <= 27; minor++) {
		is_go(minor);
		one = heap_read_scale(&subject, &b, 1, RATE);
		assert_true(one.objects == 32768 && one.bytes == 524296);
	}
	one = heap_read_scale(&subject, &b, 1000000, RATE);
	assert_true(one.objects == 32768500002 && one.bytes == 524296000040);
}

/* ---- labels ---- */

/* The size of the label "bytes", NO_LABEL when there is none. */
enum { NO_LABEL = -1 };

static int64_t label_of(size_t sample)
{
	struct prof_sample_view s = sample_at(sample);

	if (!s.nlabels)
		return NO_LABEL;
	assert_int_equal(s.nlabels, 1);
	assert_string_equal(text(s.labels[0].key), "bytes");
	assert_int_equal(s.labels[0].str, UINT32_MAX);
	return s.labels[0].num;
}

static void samples_have_their_objects_size(void **state)
{
	(void)state;
	add((struct rtbucket){ .size = 48, .allocs = 3, .alloc_bytes = 100 }, STACK(F));
	read_profile();
	assert_int_equal(label_of(0), 48);
}

/* It is the mean, cut to whole bytes; of nothing there is none. */
static void old_samples_have_their_mean_size(void **state)
{
	(void)state;
	is_go(26);
	add((struct rtbucket){ .size = 48, .allocs = 3, .alloc_bytes = 100 }, STACK(F));
	add((struct rtbucket){ .size = 48 }, STACK(G));
	add((struct rtbucket){ .size = 48, .allocs = 3, .alloc_bytes = 2 }, STACK(F, G));
	read_profile();
	assert_int_equal(label_of(0), 33);
	assert_int_equal(label_of(1), NO_LABEL);
	assert_int_equal(label_of(2), NO_LABEL);
}

/* Buckets differ in what the profile does not show: what the allocator called, say. */
static void equal_samples_are_one(void **state)
{
	(void)state;
	w.buckets.rate = 1;
	add((struct rtbucket){ .size = 16, .allocs = 2 }, STACK(MAKESLICE, F));
	add((struct rtbucket){ .size = 16, .allocs = 3 }, STACK(F));
	add((struct rtbucket){ .size = 32, .allocs = 5 }, STACK(F));
	read_profile();
	assert_int_equal(prof_nsamples(p), 2);
	expect_values(0, 5, 80, 5, 80);
	expect_values(1, 5, 160, 5, 160);
}

/* ---- stacks ---- */

static void the_runtime_is_hidden_at_the_leaf_only(void **state)
{
	(void)state;
	add((struct rtbucket){ .size = 16 }, STACK(MAKESLICE, MAPS, F, MAKESLICE, G));
	read_profile();
	assert_string_equal(stack_of(0), "main.f runtime.makeslice main.g");
}

/* What only the runtime has allocated is shown with all of its frames, but for goexit, where every goroutine begins. */
static void a_stack_of_the_runtime_is_shown(void **state)
{
	(void)state;
	add((struct rtbucket){ .size = 16 }, STACK(MAKESLICE, MAPS, GOEXIT));
	read_profile();
	assert_string_equal(stack_of(0), "runtime.makeslice internal/runtime/maps.New");
}

/* Stacks of all buckets lie one behind the other. */
static void each_bucket_has_its_own_stack(void **state)
{
	(void)state;
	add((struct rtbucket){ .size = 16 }, STACK(F, G));
	add((struct rtbucket){ .size = 16 }, STACK(G));
	read_profile();
	assert_string_equal(stack_of(0), "main.f main.g");
	assert_string_equal(stack_of(1), "main.g");
}

/* ---- the profile ---- */

static void expect_type(size_t i, const char *type, const char *unit)
{
	struct prof_header_view v = prof_header(p);

	assert_string_equal(text(v.types[i].type), type);
	assert_string_equal(text(v.types[i].unit), unit);
}

/* As net/http/pprof would write it; a target that never sampled has no samples, and that is no error. */
static void the_header_is_gos(void **state)
{
	struct prof_header_view v;

	(void)state;
	read_profile();
	v = prof_header(p);
	assert_int_equal(v.ntypes, 4);
	expect_type(0, "alloc_objects", "count");
	expect_type(1, "alloc_space", "bytes");
	expect_type(2, "inuse_objects", "count");
	expect_type(3, "inuse_space", "bytes");
	assert_string_equal(text(v.period_type.type), "space");
	assert_string_equal(text(v.period_type.unit), "bytes");
	assert_int_equal(v.period, RATE);
	assert_int_equal(prof_nsamples(p), 0);
	assert_int_equal(loss_total(prof_loss(p)), 0);
	assert_int_equal(w.verified, MBUCKETS);
}

static void comments_tell_what_was_read(void **state)
{
	(void)state;
	add((struct rtbucket){ .size = 16 }, STACK(F));
	add((struct rtbucket){ .size = 16 }, STACK(F)); /* it adds to the first, and is a bucket */
	read_profile();
	assert_true(says("since the program started, as of its GC cycle 5"));
	assert_true(says("one sample in 524288 bytes, by the program itself"));
	assert_true(says("hits: 2 buckets"));
	assert_int_equal(w.finis, 1);
}

static void before_the_first_gc_comments_say_so(void **state)
{
	(void)state;
	w.buckets.before_first_gc = true;
	w.buckets.cycle = 0;
	read_profile();
	assert_true(says("since the program started, before its first GC; GC cycle 0"));
}

static void losses_of_the_reading_are_the_profiles(void **state)
{
	(void)state;
	prof_loss(p)->n[LOSS_BUCKETS_TORN] = 100;
	w.buckets.skipped = 3;
	w.buckets.torn = 4;
	read_profile();
	assert_int_equal(prof_loss(p)->n[LOSS_BUCKETS_SKIPPED], 3);
	assert_int_equal(prof_loss(p)->n[LOSS_BUCKETS_TORN], 104);
}

/* ---- what does not work ---- */

static void expect_failure(int code, const char *why)
{
	struct err e = {};

	assert_int_equal(heap_read_profile(&subject, &vars, p, &e), code);
	assert_string_equal(e.msg, why);
}

/* Offsets that are wrong make no profile. */
static void unverified_buckets_are_not_read(void **state)
{
	(void)state;
	w.verify_fails = -ENOTSUP;
	w.read_fails = -EBADMSG;
	expect_failure(-ENOTSUP, "these are no buckets");
	assert_int_equal(prof_header(p).ntypes, 0);
}

static void a_reading_that_fails_names_the_process(void **state)
{
	(void)state;
	w.read_fails = -EBADMSG;
	expect_failure(-EBADMSG, "pid 77: the list goes in circles");
	assert_int_equal(prof_header(p).ntypes, 0);
}

static void stacks_that_fail_are_an_error(void **state)
{
	(void)state;
	w.mapping_fails = -ESRCH;
	add((struct rtbucket){ .size = 16 }, STACK(F));
	expect_failure(-ESRCH, "no mappings today");
	assert_int_equal(prof_nsamples(p), 0);
	assert_int_equal(w.finis, 1);
}

/* ---- finding ---- */

static void variables_are_found_once(void **state)
{
	struct rtbucket_vars v;

	(void)state;
	assert_int_equal(heap_read_find(&subject, &v, NULL), 0);
	assert_true(v.mbuckets == MBUCKETS && v.memprofilerate == RATE_AT);
	assert_true(v.mprofcycle == CYCLE_AT && v.minor == 27);
	assert_int_equal(w.verified, MBUCKETS);
}

static void without_a_variable_nothing_is_found(void **state)
{
	static const enum rtvar needed[] = { RTVAR_MBUCKETS, RTVAR_MEMPROFILERATE,
					     RTVAR_MPROFCYCLE };
	struct rtbucket_vars v = { .minor = -7 };
	struct err e = {};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(needed); i++) {
		w.missing = needed[i];
		assert_int_equal(heap_read_find(&subject, &v, &e), -ENOENT);
		assert_non_null(strstr(e.msg, "pid 77: heap profile: variable"));
	}
	w.missing = RTVAR_COUNT;
	w.verify_fails = -EBADMSG;
	assert_int_equal(heap_read_find(&subject, &v, &e), -EBADMSG);
	assert_int_equal(v.minor, -7); /* it is as it was */
}

static void the_rate_is_read_when_it_can_be_one(void **state)
{
	int64_t rate = -7;
	struct err e = {};

	(void)state;
	w.rate = 0; /* it does not profile its heap */
	assert_int_equal(heap_read_rate(&subject, &vars, &rate, NULL), 0);
	assert_int_equal(rate, 0);
	w.rate = 4096;
	w.implausible = true;
	assert_int_equal(heap_read_rate(&subject, &vars, &rate, &e), -EBADMSG);
	assert_string_equal(e.msg, "that is no rate");
	w.implausible = false;
	w.no_rate = true; /* the target has just gone */
	assert_int_equal(heap_read_rate(&subject, &vars, &rate, NULL), -EFAULT);
	assert_int_equal(rate, 0);
	w.no_rate = false;
	assert_int_equal(heap_read_rate(&subject, &vars, &rate, NULL), 0);
	assert_int_equal(rate, 4096);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(new_buckets_are_scaled_by_their_size),
		TEST(old_buckets_are_scaled_by_their_mean),
		TEST(a_rate_of_one_scales_nothing),
		TEST(a_part_of_a_bucket_is_scaled_like_all_of_it),
		TEST(samples_have_their_objects_size),
		TEST(old_samples_have_their_mean_size),
		TEST(equal_samples_are_one),
		TEST(the_runtime_is_hidden_at_the_leaf_only),
		TEST(a_stack_of_the_runtime_is_shown),
		TEST(each_bucket_has_its_own_stack),
		TEST(the_header_is_gos),
		TEST(comments_tell_what_was_read),
		TEST(before_the_first_gc_comments_say_so),
		TEST(losses_of_the_reading_are_the_profiles),
		TEST(unverified_buckets_are_not_read),
		TEST(a_reading_that_fails_names_the_process),
		TEST(stacks_that_fail_are_an_error),
		TEST(variables_are_found_once),
		TEST(without_a_variable_nothing_is_found),
		TEST(the_rate_is_read_when_it_can_be_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
