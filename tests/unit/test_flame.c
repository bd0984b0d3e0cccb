/* tests/unit/test_flame.c - the data of a flame graph's page, read back; and the page around it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <jansson.h>

#include "output/format.h"
#include "profile/utf8.h"

static struct err e;

static struct prof *new_profile(size_t ntypes)
{
	static const char *const types[][2] = { { "samples", "count" }, { "cpu", "nanoseconds" } };
	struct prof *p = NULL;

	assert_int_equal(prof_new(&p, &e), 0);
	for (size_t i = 0; i < ntypes; i++)
		assert_int_equal(prof_add_type(p, types[i][0], types[i][1], &e), 0);
	return p;
}

static uint32_t location(struct prof *p, int mapping, uint64_t address,
			 const struct prof_line *lines, size_t n)
{
	int id = prof_location(p, mapping, address, lines, n, &e);

	assert_true(id > 0);
	return (uint32_t)id;
}

static void sample(struct prof *p, const uint32_t *locs, size_t n, int64_t a, int64_t b,
		   const struct prof_label *labels, size_t nlabels)
{
	const int64_t values[] = { a, b };

	assert_int_equal(prof_sample(p, locs, n, values, labels, nlabels, &e), 0);
}

static char *page_of(struct prof *p)
{
	char *buf = NULL;
	size_t n;
	FILE *f = open_memstream(&buf, &n);

	assert_non_null(f);
	if (flame_write(p, f, &e))
		fail_msg("%s", e.msg);
	fclose(f);
	assert_int_equal(strlen(buf), n);
	return buf;
}

/* The text of the data element, cut out of @page. */
static char *data_in(const char *page)
{
	const char *at = strstr(page, "id=\"data\">"), *end;

	assert_non_null(at);
	at += strlen("id=\"data\">");
	end = strstr(at, "</script>");
	assert_non_null(end);
	return strndup(at, (size_t)(end - at));
}

static json_t *data_of(struct prof *p)
{
	CLEANUP(freep) char *page = page_of(p);
	CLEANUP(freep) char *data = data_in(page);
	json_error_t why;
	json_t *d = json_loads(data, JSON_REJECT_DUPLICATES, &why);

	if (!d)
		fail_msg("%s at %d: %.60s", why.text, why.position, data + why.position);
	return d;
}

static json_int_t num(const json_t *array, size_t i)
{
	const json_t *v = json_array_get(array, i);

	assert_true(json_is_integer(v));
	return json_integer_value(v);
}

static const char *str(const json_t *d, json_int_t id)
{
	const char *s =
		json_string_value(json_array_get(json_object_get(d, "strings"), (size_t)id));

	assert_non_null(s);
	return s;
}

/* ---- the tree as the page reads it: "a;b;c:12 v0 v1 {key=value}" lines ---- */

struct nodes {
	size_t n;
	json_int_t *frame;
	long *parent;
};

static struct nodes read_tree(const json_t *d)
{
	const json_t *tree = json_object_get(d, "tree");
	size_t tokens = json_array_size(tree);
	struct nodes t = { 0, calloc(tokens + 1, sizeof(*t.frame)),
			   calloc(tokens + 1, sizeof(*t.parent)) };
	long cur = -1;

	assert_non_null(t.frame);
	assert_non_null(t.parent);
	for (size_t i = 0; i < tokens; i++) {
		json_int_t v = num(tree, i);

		for (; v < 0; v++) {
			assert_true(cur >= 0);
			cur = t.parent[cur];
			if (v == -1)
				break;
		}
		if (v < 0)
			continue;
		t.frame[t.n] = v;
		t.parent[t.n] = cur;
		cur = (long)t.n++;
	}
	return t;
}

static void put_path(const json_t *d, const struct nodes *t, long node, FILE *f)
{
	long path[64];
	size_t n = 0;

	for (; node >= 0 && n < 64; node = t->parent[node])
		path[n++] = node;
	while (n-- > 0) {
		size_t fr = (size_t)t->frame[path[n]] * 2;
		json_int_t fn = num(json_object_get(d, "frames"), fr) * 2;
		json_int_t line = num(json_object_get(d, "frames"), fr + 1);

		fputs(str(d, num(json_object_get(d, "funcs"), (size_t)fn)), f);
		if (line < 0)
			fprintf(f, "@%s", str(d, -line));
		else
			fprintf(f, ":%lld", (long long)line);
		fputs(n ? ";" : " ", f);
	}
}

static char *stacks_in(const json_t *d)
{
	const json_t *self = json_object_get(d, "self");
	size_t ntypes = json_array_size(json_object_get(d, "types")), at = 0, n;
	struct nodes t = read_tree(d);
	long node = 0;
	char *buf = NULL;
	FILE *f = open_memstream(&buf, &n);

	assert_non_null(f);
	while (at < json_array_size(self)) {
		const json_t *labels;

		node += (long)num(self, at++);
		assert_in_range(node, 0, t.n - 1);
		labels = json_array_get(json_object_get(d, "labels"), (size_t)num(self, at++));
		put_path(d, &t, node, f);
		for (size_t i = 0; i < ntypes; i++)
			fprintf(f, "%lld ", (long long)num(self, at++));
		for (size_t i = 0; i < json_array_size(labels); i += 2)
			fprintf(f, "{%s=%s}", str(d, num(labels, i)), str(d, num(labels, i + 1)));
		putc('\n', f);
	}
	fclose(f);
	free(t.frame);
	free(t.parent);
	return buf;
}

static bool has_line(const char *text, const char *line)
{
	const char *at = strstr(text, line);

	return at && (at == text || at[-1] == '\n') && at[strlen(line)] == '\n';
}

#define ASSERT_LINE(text, line)                                      \
	do {                                                         \
		if (!has_line(text, line))                           \
			fail_msg("no line '%s' in\n%s", line, text); \
	} while (0)

/* ---- tests ---- */

static const struct prof_line leaf[] = { { "a", "leaf.go", 30, 20 }, { "outer", "out.go", 7, 5 } };
static const struct prof_line root = { "main.main", "main.go", 3, 1 };
static const struct prof_line root4 = { "main.main", "main.go", 4, 1 };
static const struct prof_mapping lib = {
	.start = 0x400000, .limit = 0x500000, .filename = "/lib/libx.so", .build_id = ""
};

static void stacks_and_sums(void **state)
{
	CLEANUP(prof_freep) struct prof *p = new_profile(2);
	struct prof_label why = { .key = "reason", .str = "sleep" };
	struct prof_label size = { .key = "bytes", .num = 64, .num_unit = "bytes" };
	CLEANUP(freep) char *got = NULL;
	uint32_t at[4], again;
	json_t *d;

	(void)state;
	at[0] = location(p, 0, 0x10, leaf, 2);
	at[1] = location(p, 0, 0x20, &root, 1);
	again = location(p, 0, 0x24, &root, 1);
	at[2] = location(p, 0, 0x30, &root4, 1);
	at[3] = location(p, prof_mapping(p, &lib, &e), 0x400300, NULL, 0);
	sample(p, at, 2, 3, 30, NULL, 0);
	sample(p, (uint32_t[]){ at[0], again }, 2, 1, 10, NULL,
	       0);						   /* another pc, the same frames */
	sample(p, (uint32_t[]){ at[0], at[2] }, 2, 1, 5, NULL, 0); /* another line */
	sample(p, at + 1, 1, 2, 20, &why, 1);
	sample(p, at + 1, 1, 4, 40, &size, 1);
	sample(p, at + 3, 1, 0, 7, NULL, 0);
	sample(p, NULL, 0, 1, 1, NULL, 0);
	sample(p, at, 1, 0, 0, NULL, 0); /* nothing */
	d = data_of(p);
	got = stacks_in(d);
	ASSERT_LINE(got, "main.main:3;outer:7;a:30 4 40 ");
	ASSERT_LINE(got, "main.main:4;outer:7;a:30 1 5 ");
	ASSERT_LINE(got, "main.main:3 2 20 {reason=sleep}");
	ASSERT_LINE(got, "main.main:3 4 40 {bytes=64 bytes}");
	ASSERT_LINE(got, "[libx.so]@0x400300 0 7 ");
	ASSERT_LINE(got, "[no stack]:0 1 1 ");
	assert_int_equal(num(json_object_get(d, "total"), 0), 12);
	assert_int_equal(num(json_object_get(d, "total"), 1), 113);
	assert_int_equal(json_integer_value(json_object_get(d, "main")), 1);
	json_decref(d);
}

/* A value that cannot be drawn is counted, for the type that has it. */
static void values_below_zero(void **state)
{
	CLEANUP(prof_freep) struct prof *p = new_profile(2);
	uint32_t at = location(p, 0, 0x20, &root, 1);
	uint32_t other = location(p, 0, 0x30, &root4, 1);
	CLEANUP(freep) char *got = NULL;
	json_t *d;

	(void)state;
	sample(p, &at, 1, -3, 30, NULL, 0);
	sample(p, &other, 1, -1, -1, NULL, 0);
	d = data_of(p);
	got = stacks_in(d);
	assert_string_equal(got, "main.main:3 0 30 \n");
	assert_int_equal(num(json_object_get(d, "negative"), 0), 2);
	assert_int_equal(num(json_object_get(d, "negative"), 1), 1);
	json_decref(d);
}

static void sums_do_not_wrap(void **state)
{
	CLEANUP(prof_freep) struct prof *p = new_profile(1);
	uint32_t a = location(p, 0, 0x20, &root, 1), b = location(p, 0, 0x24, &root, 1);
	json_t *d;

	(void)state;
	sample(p, &a, 1, INT64_MAX, 0, NULL, 0);
	sample(p, &b, 1, INT64_MAX, 0, NULL, 0);
	d = data_of(p);
	assert_true(num(json_object_get(d, "total"), 0) == INT64_MAX);
	assert_true(num(json_object_get(d, "self"), 2) == INT64_MAX);
	json_decref(d);
}

static void empty_profiles(void **state)
{
	(void)state;
	for (size_t ntypes = 0; ntypes <= 2; ntypes++) {
		CLEANUP(prof_freep) struct prof *p = new_profile(ntypes);
		json_t *d = data_of(p);

		assert_int_equal(json_array_size(json_object_get(d, "types")), ntypes);
		assert_int_equal(json_array_size(json_object_get(d, "total")), ntypes);
		assert_int_equal(json_array_size(json_object_get(d, "tree")), 0);
		assert_int_equal(json_array_size(json_object_get(d, "self")), 0);
		json_decref(d);
	}
}

static const char *const hostile[] = {
	"</script><script>document.title='pwned'</script>",
	"<!--<script>",
	"]]>--></style><img src=x onerror=alert(1)>",
	"quote\" back\\ slash 'single' &amp; \x01\x1f\x7f\n\r\t",
	"line\xe2\x80\xa8 and\xe2\x80\xa9 paragraph",
	"cut \xe2\x80",
	"bad \xff\xc0\xaf\xed\xa0\x80 bytes",
	"\xe2\x80\xae-dlrow \xf0\x9f\x94\xa5",
	"{{DATA}}{{NONCE}}",
	"constructor",
	"__proto__",
};

static void check_bytes(const char *data)
{
	assert_true(utf8_valid(data, strlen(data)));
	for (const char *s = data; *s; s++)
		if (strchr("<>&'\x7f", *s) || ((unsigned char)*s < 0x20 && *s != '\n'))
			fail_msg("a byte 0x%02x in the data", (unsigned char)*s);
	assert_null(strstr(data, "\xe2\x80\xa8"));
	assert_null(strstr(data, "\xe2\x80\xa9"));
}

/* Whatever names the target uses, they stay text, and the same text. */
static void hostile_names(void **state)
{
	CLEANUP(prof_freep) struct prof *p = new_profile(1);
	CLEANUP(freep) char *page = NULL, *data = NULL;
	json_t *d;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
		struct prof_line l = { hostile[i], hostile[i], 1, 1 };
		struct prof_label label = { .key = hostile[i], .str = hostile[i] };
		uint32_t at = location(p, 0, 0x100 + i, &l, 1);

		sample(p, &at, 1, 1, 0, &label, 1);
		assert_int_equal(prof_comment(p, &e, "%s", hostile[i]), 0);
	}
	page = page_of(p);
	data = data_in(page);
	check_bytes(data);
	d = json_loads(data, 0, NULL);
	assert_non_null(d);
	for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
		char fixed[512];

		utf8_fix(hostile[i], strlen(hostile[i]), fixed);
		assert_string_equal(str(d, (json_int_t)i + 1), fixed);
		assert_string_equal(json_string_value(
					    json_array_get(json_object_get(d, "comments"), i)),
				    strtab_get(prof_strings(p), prof_header(p).comments[i]));
	}
	json_decref(d);
}

/* Deeper than any C stack could bear if it were walked by recursion. */
static void deep_stacks(void **state)
{
	enum { DEEP = 200000 };
	CLEANUP(prof_freep) struct prof *p = new_profile(1);
	uint32_t *at = calloc(DEEP, sizeof(*at));
	json_t *d;

	(void)state;
	assert_non_null(at);
	at[0] = location(p, 0, 0x20, &root, 1);
	for (size_t i = 1; i < DEEP; i++)
		at[i] = at[0];
	sample(p, at, DEEP, 5, 0, NULL, 0);
	sample(p, at, 1, 2, 0, NULL, 0);
	d = data_of(p);
	assert_int_equal(json_array_size(json_object_get(d, "tree")), DEEP);
	assert_int_equal(json_array_size(json_object_get(d, "self")), 6);
	json_decref(d);
	free(at);
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

/*
 * The page is alone in its file, and only scripts and styles with this writing's own nonce run in
 * it.
 */
static void the_page(void **state)
{
	CLEANUP(prof_freep) struct prof *p = new_profile(1);
	CLEANUP(freep) char *page = page_of(p), *again = page_of(p);
	const char *policy = strstr(page, "script-src 'nonce-");
	char nonce[64];

	(void)state;
	assert_non_null(strstr(page, "default-src 'none';"));
	assert_non_null(policy);
	snprintf(nonce, sizeof(nonce), "nonce=\"%.32s\"", policy + strlen("script-src 'nonce-"));
	assert_int_equal(strspn(nonce + 7, "0123456789abcdef"), 32);
	assert_int_equal(count(page, nonce), 3); /* style, style without scripts, script */
	assert_int_equal(count(again, nonce), 0);
	assert_int_equal(count(page, "<script"), 2);
	assert_null(strstr(page, "http:"));
	assert_null(strstr(page, "https:"));
	assert_null(strstr(page, "innerHTML"));
	assert_null(strstr(page, "eval("));
	assert_null(strstr(page, " src="));
	assert_null(strstr(page, "{{"));
}

static void the_header(void **state)
{
	CLEANUP(prof_freep) struct prof *p = new_profile(2);
	json_t *d;

	(void)state;
	prof_set_kind(p, "heap");
	prof_set_time(p, 1700000000123456789, 2500000000);
	assert_int_equal(prof_set_default_type(p, "samples", &e), 0);
	prof_loss(p)->n[LOSS_STACKS_CUT] = 4;
	d = data_of(p);
	assert_string_equal(json_string_value(json_object_get(d, "kind")), "heap");
	assert_int_equal(json_integer_value(json_object_get(d, "time_ms")), 1700000000123);
	assert_int_equal(json_integer_value(json_object_get(d, "duration_ns")), 2500000000);
	assert_int_equal(json_integer_value(json_object_get(d, "main")), 0);
	assert_string_equal(json_string_value(json_array_get(json_object_get(d, "losses"), 0)),
			    "loss: 4 stacks deeper than the limit, cut at the root");
	json_decref(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_and_sums),  cmocka_unit_test(values_below_zero),
		cmocka_unit_test(sums_do_not_wrap), cmocka_unit_test(empty_profiles),
		cmocka_unit_test(hostile_names),    cmocka_unit_test(deep_stacks),
		cmocka_unit_test(the_page),	    cmocka_unit_test(the_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
