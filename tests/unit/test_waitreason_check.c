/*
 * tests/unit/test_waitreason_check.c - does a Go that nobody knows spell its wait reasons as we
 * do?
 *
 * The binary and the process are fakes: (waitReason).String names a table, which is live.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "go/runtime/waitreason.h"

enum { TEXT = 0x401000, BIAS = 0x10000, TABLE = 0x500000, STRINGS = 0x501000, BYTES = 0x2000 };

struct gobin {
	struct mem mem; /* first */
	struct gobin_info info;
	uint8_t code[32];
	int functions;
};

const struct gobin_info *gobin_info(const struct gobin *b)
{
	return &b->info;
}

struct mem *gobin_mem(struct gobin *b)
{
	return &b->mem;
}

int gobin_funcs_named(struct gobin *b, const char *const *names, size_t n, struct gofunc *out,
		      struct err *e)
{
	(void)e;
	assert_int_equal(n, 1);
	assert_string_equal(names[0], "runtime.waitReason.String");
	if (b->functions)
		*out = (struct gofunc){ .entry = TEXT, .end = TEXT + sizeof(b->code) };
	return b->functions;
}

static int read_code(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	struct gobin *b = (struct gobin *)m;

	(void)e;
	assert_int_equal(addr, TEXT);
	memcpy(buf, b->code, n);
	return 0;
}

/* lea of the text for numbers beyond the table; lea of the table. */
static struct gobin binary(void)
{
	struct gobin b = { .mem.read = read_code,
			   .info = { .arch = ARCH_AMD64, .minor = -1 },
			   .code = { 0x48, 0x8d, 0x05, 0, 0, 0, 0, 0x48, 0x8d, 0x15 },
			   .functions = 1 };
	int32_t rel = TABLE - (TEXT + 14);

	memset(b.code + 14, 0x90, sizeof(b.code) - 14);
	memcpy(b.code + 10, &rel, 4);
	return b;
}

struct process {
	struct mem mem; /* first */
	uint8_t bytes[BYTES];
};

static int read_live(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	struct process *p = (struct process *)m;

	addr -= TABLE + BIAS;
	if (addr > BYTES || n > BYTES - addr)
		return err_set(e, -EFAULT, "nothing there");
	memcpy(buf, p->bytes + addr, n);
	return 0;
}

static void put(struct process *p, unsigned int v, const char *text)
{
	uint64_t at = STRINGS - TABLE + 40ull * v, len = strlen(text);
	uint64_t str[2] = { at + TABLE + BIAS, len };

	assert_true(len < 40 && at + 40 <= BYTES);
	memcpy(p->bytes + 16ull * v, str, sizeof(str));
	memcpy(p->bytes + at, text, len);
}

static unsigned int fill(struct process *p)
{
	unsigned int v = 0;

	memset(p, 0, sizeof(*p));
	p->mem.read = read_live;
	for (const char *t; (t = waitreason_spelt(-1, v)); v++)
		put(p, v, t);
	return v;
}

static void the_same(void **state)
{
	struct gobin b = binary();
	struct process p;
	struct err e = { "" };
	unsigned int n = fill(&p);

	(void)state;
	if (waitreason_check(&b, &p.mem, BIAS, &e))
		fail_msg("%s", e.msg);
	/* One more reason at the end does no harm. */
	put(&p, n, "something new");
	assert_int_equal(waitreason_check(&b, &p.mem, BIAS, NULL), 0);
}

static void another_in_between(void **state)
{
	struct gobin b = binary();
	struct process p;
	struct err e = { "" };

	(void)state;
	fill(&p);
	for (unsigned int v = 20; waitreason_spelt(-1, v); v++)
		put(&p, v, waitreason_spelt(-1, v - 1));
	assert_int_equal(waitreason_check(&b, &p.mem, BIAS, &e), -ENOTSUP);
	assert_non_null(strstr(e.msg, "reason 20"));
	assert_non_null(strstr(e.msg, waitreason_spelt(-1, 20)));
	fill(&p);
	put(&p, 5, "renamed");
	assert_int_equal(waitreason_check(&b, &p.mem, BIAS, &e), -ENOTSUP);
	assert_non_null(strstr(e.msg, "reason 5"));
}

static void no_table(void **state)
{
	struct gobin b = binary();
	struct process p;
	struct err e = { "" };

	(void)state;
	fill(&p);
	assert_int_equal(waitreason_check(&b, &p.mem, BIAS + 8, &e), -ENOTSUP);
	b.functions = 0;
	assert_int_equal(waitreason_check(&b, &p.mem, BIAS, &e), -ENOTSUP);
	assert_non_null(strstr(e.msg, "runtime.waitReason.String"));
	b.functions = 1;
	memset(b.code, 0x90, sizeof(b.code));
	assert_int_equal(waitreason_check(&b, &p.mem, BIAS, &e), -ENOTSUP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same),
		cmocka_unit_test(another_in_between),
		cmocka_unit_test(no_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
