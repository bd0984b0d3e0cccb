/*
 * tests/unit/test_heap_sites.c - which instructions of a program tell where objects are and when a GC cycle ends, and what of
 * them may be missing. The program is a list of functions; what reads code is replaced by functions of these names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/heap/window/heap_sites.h"
#include "go/sites/probesite.h"
#include "goprof_abi.h"

enum { BIAS = 0x1000000, FILE_BIAS = 0x400000 };

#define MALLOCGC "runtime.mallocgc"
#define LARGE	 "runtime.(*mcache).allocLarge"
#define REFILL	 "runtime.(*mcache).refill"
#define ASSIST	 "runtime.gcAssistAlloc"
#define SWEEP	 "runtime.gcSweep"

/* ---- a program ---- */

struct function {
	const char *name;
	uint64_t entry;
	int returns; /* their number; negative: they cannot be followed */
	bool stepped;
	enum site_kind site;
};

static struct function functions[8];
static size_t nfunctions;
static bool unreadable;
static const struct image image = { .bias = BIAS };

int gobin_funcs_named(struct gobin *b, const char *const *names, size_t n, struct gofunc *out,
		      struct err *e)
{
	(void)b;
	assert_int_equal(n, 1);
	*out = (struct gofunc){ 0 };
	if (unreadable)
		return err_set(e, -EBADMSG, "the table of functions is cut");
	for (size_t i = 0; i < nfunctions; i++) {
		if (strcmp(functions[i].name, names[0]))
			continue;
		out->entry = functions[i].entry;
		out->end = out->entry + 0x100;
		return 1;
	}
	return 0;
}

static const struct function *at_entry(const struct gofunc *f)
{
	for (size_t i = 0; i < nfunctions; i++)
		if (functions[i].entry == f->entry)
			return &functions[i];
	fail_msg("no function at 0x%llx", (unsigned long long)f->entry);
	return NULL;
}

static struct probesite site_at(uint64_t addr, enum site_kind kind, bool stepped)
{
	return (struct probesite){
		.kind = kind, .addr = addr, .file_off = addr - FILE_BIAS, .stepped = stepped
	};
}

/* A function returns at its entry + 1, + 2, and so on. */
int probesite_returns(struct gobin *b, const struct gofunc *f, struct probesite *out, size_t cap,
		      struct err *e)
{
	const struct function *is = at_entry(f);

	(void)b;
	if (is->returns < 0)
		return err_set(e, is->returns, "a jump through a table");
	if ((size_t)is->returns > cap)
		return err_set(e, -ENOTSUP, "more than %zu returns", cap);
	for (int i = 0; i < is->returns; i++)
		out[i] = site_at(f->entry + 1 + (uint64_t)i, SITE_STACK_BRANCH, is->stepped);
	return is->returns;
}

int probesite_find(struct gobin *b, const struct gofunc *f, struct probesite *out, struct err *e)
{
	const struct function *is = at_entry(f);

	(void)b;
	if (is->returns < 0)
		return err_set(e, is->returns, "no stack check");
	*out = site_at(f->entry + 8, is->site, is->stepped);
	return 0;
}

static struct function *add(const char *name, int returns)
{
	struct function *f = &functions[nfunctions++];

	*f = (struct function){ .name = name,
				.entry = 0x400000 + 0x100 * nfunctions,
				.returns = returns };
	return f;
}

static struct heap_sites sites;

static int set_up(void **state)
{
	(void)state;
	nfunctions = 0;
	unreadable = false;
	sites = (struct heap_sites){ 0 };
	return 0;
}

static int find(struct err *e)
{
	return heap_sites_find(&image, &sites, e);
}

/* How many of the sites have this cookie. */
static size_t count(uint64_t cookie)
{
	size_t n = 0;

	for (size_t i = 0; i < sites.n; i++)
		n += sites.at[i].cookie == cookie;
	return n;
}

/* ---- where objects get their places ---- */

/* There are no flags of a stack check to look at where a function returns: a hit counts as one at an entry. */
static void sites_are_where_three_functions_return(void **state)
{
	(void)state;
	add(MALLOCGC, 1);
	add(LARGE, 2);
	add(REFILL, 3)->stepped = true;
	add(ASSIST, 4);
	assert_int_equal(find(NULL), 0);
	assert_int_equal(sites.n, 9);
	assert_int_equal(count(GPB_ALLOC_PLACED | GPB_COOKIE_ENTRY), 2);
	assert_int_equal(count(GPB_ALLOC_REFILLED | GPB_COOKIE_ENTRY | GPB_COOKIE_STEPPED), 3);
	assert_int_equal(count(GPB_ALLOC_ASSISTED | GPB_COOKIE_ENTRY), 4);
}

/* The kernel is told the place in the file, and a kernel without cookies finds them by live addresses. */
static void sites_have_a_place_in_the_file_and_one_in_the_process(void **state)
{
	(void)state;
	add(MALLOCGC, 1);
	add(LARGE, 2); /* the second function, at 0x400200 */
	assert_int_equal(find(NULL), 0);
	assert_int_equal(sites.n, 2);
	assert_int_equal(sites.at[0].file_off, 0x201);
	assert_int_equal(sites.at[1].file_off, 0x202);
	assert_int_equal(sites.at[0].addr, 0x1400201);
	assert_int_equal(sites.at[1].addr, 0x1400202);
}

/* A plugin that allocates nothing has nothing to be probed, whatever else it has. */
static void without_an_allocator_there_are_no_sites(void **state)
{
	(void)state;
	add(LARGE, 2);
	assert_false(heap_sites_needed(&image));
	assert_int_equal(find(NULL), 0);
	assert_int_equal(sites.n, 0);
	add(MALLOCGC, 1);
	assert_true(heap_sites_needed(&image));
}

/* Nothing else tells the address of a large object. */
static void without_alloc_large_objects_cannot_be_followed(void **state)
{
	struct err e = {};

	(void)state;
	add(MALLOCGC, 1);
	add(REFILL, 1);
	assert_int_equal(find(&e), -ENOTSUP);
	assert_string_equal(e.msg, "the binary has no function " LARGE);
	assert_int_equal(sites.n, 0);
	add(LARGE, -EFAULT);
	assert_int_equal(find(&e), -EFAULT);
	assert_string_equal(e.msg, LARGE ": a jump through a table");
	assert_int_equal(sites.n, 0);
}

/* A profile-guided build may have copies of them elsewhere: then more objects become known late, which is counted. */
static void the_others_may_be_missing(void **state)
{
	(void)state;
	add(MALLOCGC, 1);
	add(LARGE, 2);
	assert_int_equal(find(NULL), 0);
	assert_int_equal(sites.n, 2);

	sites.n = 0;
	add(REFILL, -ENOTSUP);
	add(ASSIST, 3); /* one that cannot be followed is not the end of the search */
	assert_int_equal(find(NULL), 0);
	assert_int_equal(sites.n, 5);
	assert_int_equal(count(GPB_ALLOC_ASSISTED | GPB_COOKIE_ENTRY), 3);
}

/* Of a function either all returns are probed or none, and what finds no room leaves it to the next. */
static void there_is_room_for_so_many(void **state)
{
	(void)state;
	add(MALLOCGC, 1);
	add(LARGE, HEAP_LIVE_SITES - 2);
	add(REFILL, 3);
	add(ASSIST, 2);
	assert_int_equal(find(NULL), 0);
	assert_int_equal(sites.n, HEAP_LIVE_SITES);
	assert_int_equal(count(GPB_ALLOC_REFILLED | GPB_COOKIE_ENTRY), 0);
	assert_int_equal(count(GPB_ALLOC_ASSISTED | GPB_COOKIE_ENTRY), 2);
}

/* ---- where a cycle ends ---- */

static void a_cycle_ends_where_sweeping_begins(void **state)
{
	struct uprobe_site at;
	struct function *sweep;

	(void)state;
	add(MALLOCGC, 1);
	sweep = add(SWEEP, 1); /* the second function, at 0x400200 */
	sweep->site = SITE_STACK_BRANCH;
	assert_int_equal(heap_sites_cycle(&image, &at, NULL), 0);
	assert_int_equal(at.addr, 0x1400208);
	assert_int_equal(at.file_off, 0x208);
	assert_int_equal(at.cookie, 0);
	sweep->site = SITE_NOSPLIT_ENTRY; /* it has no stack check: each hit is a call */
	assert_int_equal(heap_sites_cycle(&image, &at, NULL), 0);
	assert_int_equal(at.cookie, GPB_COOKIE_ENTRY);
}

/* Then cycles are polled for, and nothing was written. */
static void where_a_cycle_ends_may_not_be_known(void **state)
{
	struct uprobe_site at = { .addr = 7 };
	struct err e = {};

	(void)state;
	assert_int_equal(heap_sites_cycle(&image, &at, &e), -ENOENT);
	assert_string_equal(e.msg, "no function " SWEEP);
	add(SWEEP, -ENOTSUP);
	assert_int_equal(heap_sites_cycle(&image, &at, &e), -ENOTSUP);
	assert_string_equal(e.msg, "no stack check");
	unreadable = true;
	assert_int_equal(heap_sites_cycle(&image, &at, &e), -EBADMSG);
	assert_string_equal(e.msg, "the table of functions is cut");
	assert_int_equal(at.addr, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(sites_are_where_three_functions_return, set_up),
		cmocka_unit_test_setup(sites_have_a_place_in_the_file_and_one_in_the_process,
				       set_up),
		cmocka_unit_test_setup(without_an_allocator_there_are_no_sites, set_up),
		cmocka_unit_test_setup(without_alloc_large_objects_cannot_be_followed, set_up),
		cmocka_unit_test_setup(the_others_may_be_missing, set_up),
		cmocka_unit_test_setup(there_is_room_for_so_many, set_up),
		cmocka_unit_test_setup(a_cycle_ends_where_sweeping_begins, set_up),
		cmocka_unit_test_setup(where_a_cycle_ends_may_not_be_known, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
