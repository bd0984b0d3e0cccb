/*
 * tests/unit/test_waitsite.c - where changes of a goroutine's status are seen, in functions made
 * by hand.
 *
 * The binary is a fake: the few gobin functions that go/sites/probesite.c and go/sites/waitsite.c call are
 * below.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "go/sites/waitsite.h"

enum { TEXT = 0x401000, FUNC_BYTES = 128, FUNCS = 16, FILE_BIAS = 0x400000, STATUS_OFF = 0x90 };

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

static uint64_t at_of(size_t i)
{
	return TEXT + i * FUNC_BYTES;
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
				out[i] = (struct gofunc){ .entry = at_of(k), .end = at_of(k + 1) };
				found++;
			}
	return found;
}

int gobin_file_offset(struct gobin *b, uint64_t vaddr, uint64_t *off, struct err *e)
{
	(void)b;
	(void)e;
	*off = vaddr - FILE_BIAS;
	return 0;
}

static void add(const char *name, const uint8_t *body, size_t n)
{
	uint8_t *to = bin.text + bin.n * FUNC_BYTES;

	assert_true(bin.n < FUNCS && n < FUNC_BYTES);
	memset(to, 0x90, FUNC_BYTES);
	memcpy(to, body, n);
	to[FUNC_BYTES - 1] = 0xc3;
	bin.names[bin.n++] = name;
}

/* push %rbp; mov %rsp,%rbp */
static const uint8_t newer[] = { 0x55, 0x48, 0x89, 0xe5 };

/* sub, mov, lea: the frame is set up; mov %rax,0x48(%rsp); bt $12,%ebx; jb; */
static const uint8_t older[] = { 0x48, 0x83, 0xec, 0x40, 0x48, 0x89, 0x6c, 0x24, 0x38,
				 0x48, 0x8d, 0x6c, 0x24, 0x38, 0x48, 0x89, 0x44, 0x24,
				 0x48, 0x0f, 0xba, 0xe3, 0x0c, 0x72, 0x01 };
enum { OLDER_BRANCH = 23 };

static void put_call(uint8_t *at, uint64_t addr, uint64_t to)
{
	int32_t rel = (int32_t)(to - (addr + 5));

	at[0] = 0xe8;
	memcpy(at + 1, &rel, 4);
}

/* An ordinary caller: a stack check, then @n calls of the function @callee. */
static void add_caller(const char *name, int n, size_t callee)
{
	uint8_t body[32] = { 0x49, 0x3b, 0x66, 0x10, 0x76, 0x70 };
	size_t len = 6;

	for (int i = 0; i < n; i++, len += 5)
		put_call(body + len, at_of(bin.n) + len, at_of(callee));
	add(name, body, len);
}

/* The function of a system call: nosplit; it names g.atomicstatus and calls. */
static void add_quick(const char *name)
{
	uint8_t body[32] = { 0x55, 0x48, 0x89, 0xe5, 0x49, 0x8d, 0x8e, STATUS_OFF, 0, 0, 0 };

	put_call(body + 11, at_of(bin.n) + 11, TEXT);
	add(name, body, 16);
}

static const char *const callers[] = { "runtime.ready",		 "runtime.execute",
				       "runtime.goschedImpl",	 "runtime.park_m",
				       "runtime.reentersyscall", "runtime.entersyscall",
				       "runtime.exitsyscall",	 "runtime.injectglist" };

/* Makes all functions as they should be, except that @odd does not call, and @none is missing. */
static void make(const uint8_t *change, size_t n, const char *odd, const char *none)
{
	memset(&bin, 0, sizeof(bin));
	bin.mem.read = fake_read;
	bin.info.arch = ARCH_AMD64;
	add("runtime.casgstatus", change, n);
	for (size_t i = 0; i < ARRAY_LEN(callers); i++)
		if (!none || strcmp(none, callers[i]))
			add_caller(callers[i], odd && !strcmp(odd, callers[i]) ? 0 : 2, 0);
}

static int find(struct waitsite out[WAITSITES_MAX], struct err *e)
{
	return waitsites_find(&bin, STATUS_OFF, out, e);
}

static void one_site(void **state)
{
	struct waitsite at[WAITSITES_MAX];
	struct err e = { "" };

	(void)state;
	make(newer, sizeof(newer), NULL, NULL);
	if (find(at, &e) != 1)
		fail_msg("%s", e.msg);
	assert_int_equal(at[0].who, WAITSITE_ARGS);
	assert_int_equal(at[0].site.kind, SITE_NOSPLIT_ENTRY);
	assert_int_equal(at[0].site.addr, TEXT);
	assert_int_equal(at[0].site.file_off, TEXT - FILE_BIAS);
}

/* The kernel would single-step sub, but it emulates the branch. */
static void branch_behind_the_frame(void **state)
{
	struct waitsite at[WAITSITES_MAX];

	(void)state;
	make(older, sizeof(older), NULL, NULL);
	assert_int_equal(find(at, NULL), 1);
	assert_int_equal(at[0].site.kind, SITE_FRAMED_BRANCH);
	assert_int_equal(at[0].site.addr, TEXT + OLDER_BRANCH);
}

static void no_branch_that_will_do(void **state)
{
	static const struct {
		size_t at, n;
		uint8_t bytes[8];
	} odd[] = {
		/* An argument is overwritten: mov (%rsp),%eax; nop; nop. */
		{ 14, 5, { 0x8b, 0x04, 0x24, 0x90, 0x90 } },
		/* There is no frame: lea 0x38(%rsp),%rdi. */
		{ 9, 5, { 0x48, 0x8d, 0x7c, 0x24, 0x38 } },
		/* A jump, and not a branch. */
		{ 23, 2, { 0xeb, 0x01 } },
		/* The code behind it jumps back to the branch. */
		{ 26, 2, { 0x72, 0xfb } },
		/* It calls before it branches. */
		{ 14, 5, { 0xe8, 0, 0, 0, 0 } },
	};
	struct waitsite at[WAITSITES_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
		uint8_t body[40];

		memset(body, 0x90, sizeof(body));
		memcpy(body, older, sizeof(older));
		memcpy(body + odd[i].at, odd[i].bytes, odd[i].n);
		make(body, sizeof(body), NULL, NULL);
		assert_int_equal(find(at, NULL), 1);
		if (at[0].site.kind != SITE_NOSPLIT_ENTRY || at[0].site.addr != TEXT)
			fail_msg("case %zu: a probe at 0x%llx", i,
				 (unsigned long long)at[0].site.addr);
	}
}

/* A copy of casgstatus in a caller: that caller is probed as well. */
static void copies(void **state)
{
	static const struct {
		const char *in;
		enum waitsite_who who;
		uint8_t old, new;
	} cases[] = {
		{ "runtime.ready", WAITSITE_ARG0, 4, 1 },
		{ "runtime.execute", WAITSITE_ARG0, 1, 2 },
		{ "runtime.goschedImpl", WAITSITE_ARG0, 2, 1 },
		{ "runtime.park_m", WAITSITE_ARG0, 2, 4 },
		{ "runtime.reentersyscall", WAITSITE_CURRENT, 2, 3 },
		{ "runtime.exitsyscall", WAITSITE_CURRENT, 3, 2 },
	};
	struct waitsite at[WAITSITES_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		make(newer, sizeof(newer), cases[i].in, NULL);
		assert_int_equal(find(at, NULL), 2);
		assert_string_equal(at[1].name, cases[i].in);
		assert_int_equal(at[1].who, cases[i].who);
		assert_int_equal(at[1].old, cases[i].old);
		assert_int_equal(at[1].new, cases[i].new);
		assert_int_equal(at[1].site.kind, SITE_STACK_BRANCH);
	}
}

/* One of park_m's two calls is a copy, and nobody knows which. */
static void half_a_copy(void **state)
{
	struct waitsite at[WAITSITES_MAX];

	(void)state;
	make(newer, sizeof(newer), NULL, "runtime.park_m");
	add_caller("runtime.park_m", 1, 0);
	assert_int_equal(find(at, NULL), 2);
	assert_string_equal(at[1].name, "runtime.park_m");
}

static void through_another(void **state)
{
	struct waitsite at[WAITSITES_MAX];

	(void)state;
	make(newer, sizeof(newer), NULL, "runtime.park_m");
	add_caller("runtime.casGToWaiting", 1, 0);
	add_caller("runtime.park_m", 2, bin.n - 1);
	assert_int_equal(find(at, NULL), 1);
	make(newer, sizeof(newer), NULL, "runtime.entersyscall");
	add_caller("runtime.entersyscall", 1, 5); /* reentersyscall */
	assert_string_equal(bin.names[5], "runtime.reentersyscall");
	assert_int_equal(find(at, NULL), 1);
}

/* From Go 1.26 on the status is changed in place; the call is for the case that this fails. */
static void system_calls_change_it_themselves(void **state)
{
	struct waitsite at[WAITSITES_MAX];

	(void)state;
	make(newer, sizeof(newer), NULL, "runtime.reentersyscall");
	add_quick("runtime.reentersyscall");
	assert_int_equal(find(at, NULL), 2);
	assert_string_equal(at[1].name, "runtime.reentersyscall");
	assert_int_equal(at[1].site.kind, SITE_NOSPLIT_ENTRY);
	make(newer, sizeof(newer), NULL, "runtime.exitsyscall");
	add_quick("runtime.exitsyscall");
	assert_int_equal(find(at, NULL), 2);
	assert_int_equal(at[1].old, 3);
	assert_int_equal(at[1].new, 2);
}

static void refused(const char *odd, const char *none, int rc, const char *says)
{
	struct waitsite at[WAITSITES_MAX];
	struct err e = { "" };

	make(newer, sizeof(newer), odd, none);
	assert_int_equal(find(at, &e), rc);
	if (!strstr(e.msg, says))
		fail_msg("%s", e.msg);
}

static void what_nobody_could_tell(void **state)
{
	(void)state;
	refused("runtime.injectglist", NULL, -ENOTSUP, "injectglist");
	refused(NULL, "runtime.ready", -ENOENT, "runtime.ready");
	refused(NULL, "runtime.execute", -ENOENT, "runtime.execute");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_site),
		cmocka_unit_test(branch_behind_the_frame),
		cmocka_unit_test(no_branch_that_will_do),
		cmocka_unit_test(copies),
		cmocka_unit_test(half_a_copy),
		cmocka_unit_test(through_another),
		cmocka_unit_test(system_calls_change_it_themselves),
		cmocka_unit_test(what_nobody_could_tell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
