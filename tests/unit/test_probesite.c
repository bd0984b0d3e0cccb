/*
 * tests/unit/test_probesite.c - the places of probes, in functions made by hand.
 *
 * The binary is a fake: the few gobin functions that go/sites/probesite.c calls are below.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/limits.h"
#include "go/sites/probesite.h"
#include "go/sites/probesite_priv.h"

enum { TEXT = 0x401000, FUNC_BYTES = 256, FUNCS = 32, FILE_BIAS = 0x400000 };

/* ---- the fake binary ------------------------------------------------------------------------- */

struct gobin {
	struct mem mem; /* first */
	struct gobin_info info;
	uint8_t text[FUNC_BYTES * FUNCS];
	const char *names[FUNCS];
	size_t n;
};

static struct gobin bin;

const struct gobin_info *gobin_info(const struct gobin *b)
{
	return &b->info;
}

struct mem *gobin_mem(struct gobin *b)
{
	return &b->mem;
}

static int fake_read(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	struct gobin *b = (struct gobin *)m;

	if (addr < TEXT || addr - TEXT > sizeof(b->text) || n > sizeof(b->text) - (addr - TEXT))
		return err_set(e, -EFAULT, "no text at 0x%llx", (unsigned long long)addr);
	memcpy(buf, b->text + (addr - TEXT), n);
	return 0;
}

static struct gofunc fake_func(size_t i)
{
	return (struct gofunc){ .entry = TEXT + i * FUNC_BYTES,
				.end = TEXT + (i + 1) * FUNC_BYTES };
}

int gobin_funcs_named(struct gobin *b, const char *const *names, size_t n, struct gofunc *out,
		      struct err *e)
{
	int found = 0;

	(void)e;
	memset(out, 0, n * sizeof(*out));
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < b->n; k++)
			if (!strcmp(names[i], b->names[k])) {
				out[i] = fake_func(k);
				found++;
			}
	return found;
}

int gobin_file_offset(struct gobin *b, uint64_t vaddr, uint64_t *off, struct err *e)
{
	(void)b;
	if (vaddr < TEXT)
		return err_set(e, -ENOENT, "no segment");
	*off = vaddr - FILE_BIAS;
	return 0;
}

/* A function of the usual shape; its body is @body, the rest is int3. */
static void add_func(const char *name, const uint8_t *body, size_t n)
{
	static const uint8_t check[] = { 0x49, 0x3b, 0x66, 0x10, 0x76, 0x7a };
	uint8_t *at = bin.text + bin.n * FUNC_BYTES;

	assert_true(bin.n < FUNCS && n + sizeof(check) < 0x80);
	memset(at, 0xcc, FUNC_BYTES);
	memcpy(at, check, sizeof(check));
	if (n)
		memcpy(at + sizeof(check), body, n);
	bin.names[bin.n++] = name;
}

/*
 * A mallocgc that calls those functions added before that are in @mask, and takes the address of
 * those in @lea.
 */
static void add_mallocgc(uint32_t mask, uint32_t lea)
{
	size_t self = bin.n, at = 6, n = bin.n;
	uint8_t body[120] = { 0 };
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		bool is_lea = lea & 1U << i;
		size_t insn = is_lea ? 7 : 5;
		int32_t rel = (int32_t)((int64_t)(i - self) * FUNC_BYTES) -
			      (int32_t)(at + len + insn);

		if (!is_lea && !(mask & 1U << i))
			continue;
		if (is_lea)
			memcpy(body + len, (const uint8_t[]){ 0x48, 0x8d, 0x05 }, 3);
		else
			body[len] = 0xe8;
		memcpy(body + len + insn - 4, &rel, 4);
		len += insn;
	}
	add_func("runtime.mallocgc", body, len);
}

static void add_leaves(void)
{
	add_func("runtime.mallocgcTiny", NULL, 0);
	add_func("runtime.mallocgcSmallNoscan", NULL, 0);
	add_func("runtime.mallocgcSmallScanNoHeader", NULL, 0);
	add_func("runtime.mallocgcSmallScanHeader", NULL, 0);
	add_func("runtime.mallocgcLarge", NULL, 0);
}

static int setup(void **state)
{
	(void)state;
	memset(&bin, 0, sizeof(bin));
	bin.mem.read = fake_read;
	bin.info.arch = ARCH_AMD64;
	return 0;
}

static const struct alloc_entry *entry_of(const struct alloc_entry *e, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(e[i].name, name))
			return &e[i];
	return NULL;
}

/* ---- the site -------------------------------------------------------------------------------- */

static int site(const uint8_t *code, size_t n, size_t size, enum site_kind *kind, uint64_t *addr,
		struct err *e)
{
	struct arch *a CLEANUP(arch_freep) = NULL;

	assert_int_equal(arch_open(ARCH_AMD64, &a, NULL), 0);
	return probesite_decode(a, code, n, TEXT, size, kind, addr, e);
}

/* Not whole: the function is twice as long as the bytes. */
#define SITE(whole, kind, addr, e, ...)                                                  \
	site((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }), \
	     ((whole) ? 1 : 2) * sizeof((const uint8_t[]){ __VA_ARGS__ }), kind, addr, e)

static void branch_of_the_check(void **state)
{
	enum site_kind kind;
	uint64_t addr;

	(void)state;
	assert_int_equal(SITE(true, &kind, &addr, NULL, 0x49, 0x3b, 0x66, 0x10, 0x76, 0x04, 0x55,
			      0x5d, 0xc3, 0x90, 0xeb, 0xf4),
			 0);
	assert_int_equal(kind, SITE_STACK_BRANCH);
	assert_int_equal(addr, TEXT + 4);
}

/*
 * A long function: its call of morestack lies behind the bytes that were read, but not behind its
 * end.
 */
static void branch_beyond_what_was_read(void **state)
{
	enum site_kind kind;
	uint64_t addr;

	(void)state;
	assert_int_equal(SITE(false, &kind, &addr, NULL, 0x49, 0x3b, 0x66, 0x10, 0x76, 0x06, 0x55,
			      0x5d),
			 0);
	assert_int_equal(kind, SITE_STACK_BRANCH);
	assert_int_equal(addr, TEXT + 4);
	assert_int_equal(SITE(false, &kind, &addr, NULL, 0x49, 0x3b, 0x66, 0x10, 0x76, 0x12, 0x55,
			      0x5d),
			 -ENOTSUP);
}

/* The last branch of a huge frame's check: both branches go to the same place. */
static void huge_frame(void **state)
{
	enum site_kind kind;
	uint64_t addr;

	(void)state;
	assert_int_equal(SITE(true, &kind, &addr, NULL, 0x49, 0x89, 0xe4, 0x49, 0x81, 0xec, 0x40,
			      0x86, 1, 0, 0x72, 0x08, 0x4d, 0x3b, 0x66, 0x10, 0x76, 0x02, 0x55,
			      0xc3, 0xeb, 0xea),
			 0);
	assert_int_equal(kind, SITE_STACK_BRANCH);
	assert_int_equal(addr, TEXT + 16);
}

/* A jump before the check leads elsewhere, so not every call would pass the check. */
static void jump_before_check(void **state)
{
	enum site_kind kind;
	uint64_t addr;
	struct err e = { "" };

	(void)state;
	/* test %rax,%rax; je +6; cmp 0x10(%r14),%rsp; jbe +1; ret; ret */
	assert_int_equal(SITE(true, &kind, &addr, &e, 0x48, 0x85, 0xc0, 0x74, 0x06, 0x49, 0x3b,
			      0x66, 0x10, 0x76, 0x01, 0xc3, 0xc3),
			 -ENOTSUP);
	assert_non_null(strstr(e.msg, "0x401005"));
	/* call before the check */
	assert_int_equal(SITE(true, &kind, &addr, &e, 0xe8, 0, 0, 0, 0, 0x49, 0x3b, 0x66, 0x10,
			      0x76, 0x01, 0xc3, 0xc3),
			 -ENOTSUP);
}

/* Go never writes a check whose branch leaves the function. */
static void check_that_leaves(void **state)
{
	enum site_kind kind;
	uint64_t addr;

	(void)state;
	assert_int_equal(SITE(true, &kind, &addr, NULL, 0x49, 0x3b, 0x66, 0x10, 0x76, 0x40, 0xc3),
			 -ENOTSUP);
}

static void check_missing(void **state)
{
	enum site_kind kind;
	uint64_t addr;
	struct err e = { "" };

	(void)state;
	/* lea (%rax,%rax,2),%rax; ret */
	assert_int_equal(SITE(true, &kind, &addr, &e, 0x48, 0x8d, 0x04, 0x40, 0xc3), 0);
	assert_int_equal(kind, SITE_NOSPLIT_ENTRY);
	assert_int_equal(addr, TEXT);
	/* The same, but its end was not seen. */
	assert_int_equal(SITE(false, &kind, &addr, &e, 0x48, 0x8d, 0x04, 0x40, 0xc3), -ENOTSUP);
	assert_non_null(strstr(e.msg, "no stack check"));
}

/* A loop whose head is the entry passes it more than once. */
static void loop_at_the_entry(void **state)
{
	enum site_kind kind;
	uint64_t addr;
	struct err e = { "" };

	(void)state;
	/* dec %rax; jne entry; ret */
	assert_int_equal(SITE(true, &kind, &addr, &e, 0x48, 0xff, 0xc8, 0x75, 0xfb, 0xc3),
			 -ENOTSUP);
	assert_non_null(strstr(e.msg, "back to the entry"));
}

/* A jump over eight bytes is never probed (user/arch/amd64.c); one over seven may be. */
static void jump_like_a_kernels_own(void **state)
{
	enum site_kind kind;
	uint64_t addr;
	struct err e = { "" };

	(void)state;
	assert_int_equal(SITE(true, &kind, &addr, &e, 0xeb, 0x08, 0x90, 0x90, 0x90, 0x90, 0x90,
			      0x90, 0x90, 0x90, 0xc3),
			 -ENOTSUP);
	assert_non_null(strstr(e.msg, "what is at 0x401000"));
	assert_int_equal(SITE(true, &kind, &addr, &e, 0xeb, 0x07, 0x90, 0x90, 0x90, 0x90, 0x90,
			      0x90, 0x90, 0xc3),
			 0);
	assert_int_equal(kind, SITE_NOSPLIT_ENTRY);
	assert_int_equal(addr, TEXT);
	/* Elsewhere it does not matter. */
	assert_int_equal(SITE(true, &kind, &addr, &e, 0x90, 0xeb, 0x08, 0x90, 0x90, 0x90, 0x90,
			      0x90, 0x90, 0x90, 0x90, 0xc3),
			 0);
	assert_int_equal(addr, TEXT);
}

static void garbage(void **state)
{
	enum site_kind kind;
	uint64_t addr;
	struct err e = { "" };

	(void)state;
	assert_int_equal(SITE(true, &kind, &addr, &e, 0x90, 0x06, 0x49, 0x3b, 0x66, 0x10, 0x76, 0),
			 -ENOTSUP);
	assert_non_null(strstr(e.msg, "0x401001"));
	/* Garbage behind a straight line without a check. */
	assert_int_equal(SITE(true, &kind, &addr, &e, 0xc3, 0x06), -ENOTSUP);
}

/*
 * Every truncation of a good function is refused before the branch, and names the same site after
 * it.
 */
static void truncated_function(void **state)
{
	static const uint8_t good[] = { 0x4c, 0x8d, 0xa4, 0x24, 0x78, 0xfc, 0xff, 0xff,
					0x4d, 0x3b, 0x66, 0x10, 0x0f, 0x86, 0x02, 0,
					0,    0,    0x55, 0xc3, 0xeb, 0xea };
	enum site_kind kind;
	uint64_t addr;

	(void)state;
	for (size_t n = 0; n < sizeof(good); n++) {
		int rc = site(good, n, sizeof(good), &kind, &addr, NULL);

		assert_int_equal(rc, n >= 18 ? 0 : -ENOTSUP);
		assert_true(rc || addr == TEXT + 12);
	}
}

static void site_in_a_file(void **state)
{
	struct gofunc f;
	struct probesite s;

	(void)state;
	add_func("main.f", NULL, 0);
	f = fake_func(0);
	assert_int_equal(probesite_find(&bin, &f, &s, NULL), 0);
	assert_int_equal(s.addr, TEXT + 4);
	assert_int_equal(s.file_off, TEXT + 4 - FILE_BIAS);
}

static void function_that_lies(void **state)
{
	struct gofunc empty = { .entry = TEXT, .end = TEXT };
	struct gofunc outside = { .entry = TEXT + sizeof(bin.text) - 4, .end = UINT64_MAX };
	struct probesite s;
	struct err e = { "" };

	(void)state;
	assert_int_equal(probesite_find(&bin, &empty, &s, &e), -EBADMSG);
	assert_int_equal(probesite_find(&bin, &outside, &s, &e), -EFAULT);
}

/* ---- the allocator --------------------------------------------------------------------------- */

static void mallocgc_alone(void **state)
{
	struct alloc_entry e[ALLOC_ENTRIES_MAX];

	(void)state;
	add_mallocgc(0, 0);
	assert_int_equal(alloc_entries(&bin, e, NULL), 1);
	assert_string_equal(e[0].name, "runtime.mallocgc");
	assert_int_equal(e[0].kind, ALLOC_ANY);
	assert_int_equal(e[0].site.kind, SITE_STACK_BRANCH);
	assert_int_equal(e[0].not_from_hi, 0);
}

static void leaves(void **state)
{
	struct alloc_entry e[ALLOC_ENTRIES_MAX];
	int n;

	(void)state;
	add_leaves();
	add_mallocgc(0x1f, 0);
	n = alloc_entries(&bin, e, NULL);
	assert_int_equal(n, 5);
	assert_null(entry_of(e, n, "runtime.mallocgc"));
	assert_int_equal(entry_of(e, n, "runtime.mallocgcTiny")->kind, ALLOC_TINY);
	assert_int_equal(entry_of(e, n, "runtime.mallocgcSmallScanHeader")->kind,
			 ALLOC_SCAN_HEADER);
	for (int i = 0; i < n; i++)
		assert_int_equal(e[i].not_from_hi, 0);
}

/* go1.27: no mallocgcTiny; the compiler calls the size-specialised ones, mallocgc a table. */
static void size_specialised(void **state)
{
	struct alloc_entry e[ALLOC_ENTRIES_MAX];
	int n;

	(void)state;
	add_leaves();
	bin.names[0] = "runtime.mallocgcTinySC2";
	add_func("runtime.mallocgcSmallScanNoHeaderSC7", NULL, 0);
	add_func("runtime.mallocgcSmallNoScanSC2", NULL, 0);
	add_mallocgc(0x1f, 0);
	n = alloc_entries(&bin, e, NULL);
	assert_int_equal(n, 7);
	assert_int_equal(entry_of(e, n, "runtime.mallocgcSmallNoScanSC2")->kind, ALLOC_NOSCAN);
	assert_int_equal(entry_of(e, n, "runtime.mallocgcSmallScanNoHeaderSC7")->kind,
			 ALLOC_SCAN_NOHEADER);
	assert_int_equal(entry_of(e, n, "runtime.mallocgcTinySC2")->kind, ALLOC_TINY);
}

/* A profile-guided build copied a leaf into mallocgc: the leaf alone would miss those calls. */
static void leaf_copied_into_mallocgc(void **state)
{
	struct alloc_entry e[ALLOC_ENTRIES_MAX];

	(void)state;
	add_leaves();
	add_mallocgc(0x1d, 0);
	assert_int_equal(alloc_entries(&bin, e, NULL), 1);
	assert_string_equal(e[0].name, "runtime.mallocgc");
}

/* The same in go1.27, also when it shows only as the guard of a copied table entry. */
static void size_specialised_copied_into_mallocgc(void **state)
{
	struct alloc_entry e[ALLOC_ENTRIES_MAX];
	const struct alloc_entry *sc;
	int n;

	(void)state;
	add_leaves();
	bin.names[0] = "runtime.mallocgcTinySC2";
	add_func("runtime.mallocgcSmallNoScanSC7", NULL, 0);
	add_mallocgc(0x1f, 0x20);
	n = alloc_entries(&bin, e, NULL);
	assert_int_equal(n, 3);
	assert_non_null(entry_of(e, n, "runtime.mallocgc"));
	assert_int_equal(entry_of(e, n, "runtime.mallocgc")->not_from_hi, 0);
	sc = entry_of(e, n, "runtime.mallocgcSmallNoScanSC7");
	assert_int_equal(sc->not_from_lo, fake_func(6).entry);
	assert_int_equal(sc->not_from_hi, fake_func(6).end);
	assert_non_null(entry_of(e, n, "runtime.mallocgcTinySC2"));
}

static void no_allocator(void **state)
{
	struct alloc_entry e[ALLOC_ENTRIES_MAX];
	struct err err = { "" };

	(void)state;
	add_func("main.main", NULL, 0);
	assert_int_equal(alloc_entries(&bin, e, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "runtime.mallocgc"));
}

/* An entry that cannot be probed is an error: without it the counts would be too low. */
static void unprobeable_entry(void **state)
{
	struct alloc_entry e[ALLOC_ENTRIES_MAX];
	struct err err = { "" };

	(void)state;
	add_leaves();
	add_mallocgc(0x1f, 0);
	bin.text[FUNC_BYTES] = 0x06;
	assert_int_equal(alloc_entries(&bin, e, &err), -ENOTSUP);
	assert_non_null(strstr(err.msg, "mallocgcSmallNoscan"));
}

/* ---- where it returns ------------------------------------------------------------------------ */

static int flow(const uint8_t *code, size_t n, uint64_t *at, size_t cap)
{
	struct arch *a CLEANUP(arch_freep) = NULL;

	assert_int_equal(arch_open(ARCH_AMD64, &a, NULL), 0);
	return probesite_flow(a, code, n, TEXT, at, cap, NULL);
}

static void returns_that_control_reaches(void **state)
{
	/* test %eax,%eax; je +1; ret; cmp $1,%ecx; jne -8; ret; bytes nobody reaches, a ret inside */
	static const uint8_t code[] = { 0x85, 0xc0, 0x74, 0x01, 0xc3, 0x83, 0xf9, 0x01,
					0x75, 0xf6, 0xc3, 0xb8, 0xc3, 0xc3, 0xc3 };
	uint64_t at[4];

	(void)state;
	assert_int_equal(flow(code, sizeof(code), at, 4), 2);
	assert_true((at[0] == TEXT + 4 && at[1] == TEXT + 10) ||
		    (at[0] == TEXT + 10 && at[1] == TEXT + 4));
	assert_int_equal(flow(code, sizeof(code), at, 1), -ENOTSUP);
}

static void returns_that_cannot_be_followed(void **state)
{
	static const uint8_t indirect[] = { 0xff, 0xe0, 0xc3 };	 /* jmp *%rax; ret */
	static const uint8_t leaves[] = { 0xeb, 0x40, 0xc3 };	 /* jmp +64; ret */
	static const uint8_t bad[] = { 0x75, 0x01, 0x06, 0xc3 }; /* jne +1; no instruction */
	static const uint8_t forever[] = { 0xeb, 0xfe, 0xc3 };	 /* jmp itself; ret */
	static const uint8_t panics[] = { 0xe8, 0, 0, 0, 0, 0x0f, 0x0b }; /* call; ud2 */
	uint64_t at[4];

	(void)state;
	assert_int_equal(flow(indirect, sizeof(indirect), at, 4), -ENOTSUP);
	assert_int_equal(flow(leaves, sizeof(leaves), at, 4), -ENOTSUP);
	assert_int_equal(flow(bad, sizeof(bad), at, 4), -ENOTSUP);
	assert_int_equal(flow(forever, sizeof(forever), at, 4), -ENOTSUP);
	assert_int_equal(flow(panics, sizeof(panics), at, 4), -ENOTSUP);
	assert_int_equal(flow(panics, 0, at, 4), -ENOTSUP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(branch_of_the_check),
		cmocka_unit_test(branch_beyond_what_was_read),
		cmocka_unit_test(huge_frame),
		cmocka_unit_test(jump_before_check),
		cmocka_unit_test(check_that_leaves),
		cmocka_unit_test(check_missing),
		cmocka_unit_test(loop_at_the_entry),
		cmocka_unit_test(jump_like_a_kernels_own),
		cmocka_unit_test(garbage),
		cmocka_unit_test(truncated_function),
		cmocka_unit_test(returns_that_control_reaches),
		cmocka_unit_test(returns_that_cannot_be_followed),
		cmocka_unit_test_setup(site_in_a_file, setup),
		cmocka_unit_test_setup(function_that_lies, setup),
		cmocka_unit_test_setup(mallocgc_alone, setup),
		cmocka_unit_test_setup(leaves, setup),
		cmocka_unit_test_setup(size_specialised, setup),
		cmocka_unit_test_setup(leaf_copied_into_mallocgc, setup),
		cmocka_unit_test_setup(size_specialised_copied_into_mallocgc, setup),
		cmocka_unit_test_setup(no_allocator, setup),
		cmocka_unit_test_setup(unprobeable_entry, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
