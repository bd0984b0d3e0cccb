/* tests/unit/test_buildinfo.c - build info in both formats, cut and lying; version numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "go/buildinfo.h"
#include "mkgobin.h"

enum { BLOCK = 0x100 };

static struct mkgobin g;

static int parse(size_t n, struct buildinfo *bi, struct err *e)
{
	struct bytemem m = bytemem_of(MK_BASE + g.info, g.b + g.info, n);

	return buildinfo_at(&m.mem, MK_BASE + g.info, bi, e);
}

static void in_place(void **state)
{
	struct buildinfo bi;

	(void)state;
	mkgobin(&g, &(struct mkopt){ .minor = 22 });
	assert_int_equal(parse(BLOCK, &bi, NULL), 0);
	assert_string_equal(bi.version, "go1.22.3");
	assert_string_equal(bi.path, "cmd/x");
	assert_int_equal(bi.cgo, 0);
}

static void by_pointers(void **state)
{
	struct buildinfo bi;

	(void)state;
	mkgobin(&g, &(struct mkopt){ .minor = 17 });
	assert_int_equal(parse(BLOCK, &bi, NULL), 0);
	assert_string_equal(bi.version, "go1.17.3");
	assert_string_equal(bi.path, "");
	assert_int_equal(bi.cgo, -1);
}

static void every_truncation_is_refused(void **state)
{
	static const int minors[] = { 17, 22 };
	static const size_t ends[] = { 0x58, 32 + 1 + 8 + 1 + 63 - 16 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(minors); i++) {
		mkgobin(&g, &(struct mkopt){ .minor = minors[i] });
		for (size_t n = 0; n < ends[i]; n++) {
			struct buildinfo bi;
			struct err e = { 0 };

			assert_int_equal(parse(n, &bi, &e), -EFAULT);
			assert_true(e.msg[0]);
		}
	}
}

static void lies_are_refused(void **state)
{
	struct buildinfo bi;
	struct err e = { 0 };

	(void)state;
	mkgobin(&g, &(struct mkopt){ .minor = 22 });
	g.b[g.info + 32] = 0xff; /* a version of 16,383 bytes */
	g.b[g.info + 33] = 0x7f;
	assert_int_equal(parse(BLOCK, &bi, &e), -EBADMSG);
	memset(g.b + g.info + 32, 0xff, 10); /* a length that never ends */
	assert_int_equal(parse(BLOCK, &bi, &e), -EBADMSG);
	mkgobin(&g, &(struct mkopt){ .minor = 22, .version = "go1.22\n.3" });
	assert_int_equal(parse(BLOCK, &bi, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "not text"));
	mkgobin(&g, &(struct mkopt){ .minor = 17 });
	g.b[g.info + 14] = 4;
	assert_int_equal(parse(BLOCK, &bi, &e), -ENOTSUP);
	g.b[g.info + 14] = 8;
	memset(g.b + g.info + 16, 0xff, 8);
	assert_int_equal(parse(BLOCK, &bi, &e), -EFAULT);
	g.b[g.info] = 0;
	assert_int_equal(parse(BLOCK, &bi, &e), -EBADMSG);
}

static void versions(void **state)
{
	static const struct {
		const char *text, *experiments;
		int minor, patch;
	} all[] = {
		{ "go1.22.12", "", 22, 12 },
		{ "go1.21", "", 21, 0 },
		{ "go1.23rc1", "", 23, 0 },
		{ "go1.25.1 X:nodwarf5,greenteagc", "nodwarf5,greenteagc", 25, 1 },
		{ "go1.26.7-X:jsonv2", "jsonv2", 26, 7 },
		{ "devel go1.27-abcdef Mon", "", 27, 0 },
		{ "devel +abcdef", "", -1, -1 },
		{ "go2.1", "", -1, -1 },
		{ "go1.", "", -1, -1 },
		{ "", "", -1, -1 },
		{ "go1.99999999999999999999.1", "", 999999, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		int minor, patch;

		assert_string_equal(buildinfo_version(all[i].text, &minor, &patch),
				    all[i].experiments);
		assert_int_equal(minor, all[i].minor);
		assert_int_equal(patch, all[i].patch);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_place),
		cmocka_unit_test(by_pointers),
		cmocka_unit_test(every_truncation_is_refused),
		cmocka_unit_test(lies_are_refused),
		cmocka_unit_test(versions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
