/*
 * tests/support/mkprofile_main.c - writes a made-up profile, for the tests of the formats.
 *
 * 	mkprofile KIND FORMAT PATH	or one that is read from a file:
 * 	mkprofile FILE FORMAT PATH
 *
 * KIND: heap, cpu, hostile (bytes that are not text, extreme values), empty, plain (no mapping,
 * no lines), big (many samples).
 */
#include <inttypes.h>

#include "output/output.h"
#include "readprofile.h"

#define OK(call)                    \
	do {                        \
		int ok_ = (call);   \
		if (ok_ < 0)        \
			return ok_; \
	} while (0)

static const struct prof_mapping exe = {
	.start = 0x400000, .limit = 0x800000, .filename = "/srv/bin/server", .build_id = "c0ffee"
};
static const struct prof_mapping vdso = {
	.start = 0x7ffff000, .limit = 0x80001000, .filename = "[vdso]", .build_id = ""
};

static int add(struct prof *p, int mapping, uint64_t address, const struct prof_line *lines,
	       size_t n, uint32_t *id, struct err *e)
{
	int r = prof_location(p, mapping, address, lines, n, e);

	*id = r < 0 ? 0 : (uint32_t)r;
	return r;
}

static int heap(struct prof *p, struct err *e)
{
	static const struct prof_line leaf[] = {
		{ "bytes.growSlice", "bytes/buffer.go", 240, 230 },
		{ "bytes.(*Buffer).grow", "bytes/buffer.go", 150, 120 },
	};
	static const struct prof_line handler[] = { { "main.handle[...]", "/src/main.go", 40,
						      33 } };
	static const struct prof_line root[] = { { "main.main", "/src/main.go", 12, 9 } };
	static const int64_t a[] = { 1024, 524288, 512, 262144 };
	static const int64_t b[] = { 3, 3 << 20, 0, 0 };
	static const struct prof_label small = { .key = "bytes", .num = 512 };
	static const struct prof_label large = { .key = "bytes", .num = 1 << 20 };
	uint32_t locs[3];
	int m = prof_mapping(p, &exe, e);

	OK(m);
	OK(prof_add_type(p, "alloc_objects", "count", e));
	OK(prof_add_type(p, "alloc_space", "bytes", e));
	OK(prof_add_type(p, "inuse_objects", "count", e));
	OK(prof_add_type(p, "inuse_space", "bytes", e));
	OK(prof_set_period(p, "space", "bytes", 524288, e));
	prof_set_time(p, 1700000000123456789, 0);
	OK(prof_comment(p, e, "source: %s", "read"));
	prof_loss(p)->n[LOSS_BUCKETS_TORN] = 2;
	OK(add(p, m, 0x401234, leaf, 2, &locs[0], e));
	OK(add(p, m, 0x402345, handler, 1, &locs[1], e));
	OK(add(p, m, 0x403456, root, 1, &locs[2], e));
	OK(prof_sample(p, locs, 3, a, &small, 1, e));
	OK(prof_sample(p, locs, 3, b, &large, 1, e));
	return prof_sample(p, locs + 1, 2, a, &small, 1, e);
}

static int cpu(struct prof *p, struct err *e)
{
	static const struct prof_line spin[] = { { "main.spin", "/src/main.go", 80, 70 } };
	static const struct prof_line again[] = { { "main.recurse", "/src/main.go", 60, 55 } };
	static const struct prof_label labels[] = { { .key = "tenant", .str = "b" },
						    { .key = "handler", .str = "/x" },
						    { .key = "goid", .num = 17 } };
	uint32_t locs[3];
	int m = prof_mapping(p, &exe, e), v = prof_mapping(p, &vdso, e);

	OK(m);
	OK(v);
	OK(prof_add_type(p, "samples", "count", e));
	OK(prof_add_type(p, "cpu", "nanoseconds", e));
	OK(prof_set_period(p, "cpu", "nanoseconds", 10000000, e));
	OK(prof_set_default_type(p, "cpu", e));
	prof_set_time(p, 1700000000000000000, 10000000000);
	OK(add(p, v, 0x7ffff800, NULL, 0, &locs[0], e));
	OK(add(p, m, 0x401000, spin, 1, &locs[1], e));
	OK(add(p, m, 0x402000, again, 1, &locs[2], e));
	for (size_t i = 0; i < 3; i++) {
		int64_t n = 1 + 40 * (int64_t)i;
		const int64_t values[] = { n, n * 10000000 };

		OK(prof_sample(p, locs + i, 3 - i, values, labels, i, e));
	}
	locs[1] = locs[2]; /* recursion counts once */
	return prof_sample(p, locs + 1, 2, (int64_t[]){ 7, 70000000 }, labels, 3, e);
}

static int hostile(struct prof *p, struct err *e)
{
	static const struct prof_line bad[] = {
		{ "evil;\xff\x1b[31m\n\xc2\x9b", "\xed\xa0\x80.go", INT64_MAX, -1 },
		{ "", "", 0, 0 },
		{ "</script><script>document.title='pwned'</script>\xe2\x80\xa8\xe2\x80\xaegnp",
		  "<b>\"'&", 7, 1 },
	};
	static const struct prof_label labels[] = { { .key = "\xc0\xaf", .str = "\xf5\x80" },
						    { .key = "", .str = "" } };
	uint32_t loc;
	int m = prof_mapping(p, &exe, e);

	OK(m);
	OK(prof_add_type(p, "cpu", "nanoseconds", e));
	OK(prof_comment(p, e, "%s", "comment \xfe\nwith a break"));
	OK(add(p, m, 0x7fffff, bad, 3, &loc, e));
	OK(prof_sample(p, &loc, 1, (int64_t[]){ INT64_MAX }, labels, 2, e));
	OK(prof_sample(p, &loc, 1, (int64_t[]){ INT64_MAX }, labels, 2, e));
	return prof_sample(p, NULL, 0, (int64_t[]){ 0 }, NULL, 0, e);
}

static int empty(struct prof *p, struct err *e)
{
	return prof_add_type(p, "cpu", "nanoseconds", e);
}

static int plain(struct prof *p, struct err *e)
{
	uint32_t loc;

	OK(prof_add_type(p, "samples", "count", e));
	OK(add(p, 0, 0xffffffff81000000, NULL, 0, &loc, e));
	return prof_sample(p, &loc, 1, (int64_t[]){ 5 }, NULL, 0, e);
}

static int big(struct prof *p, struct err *e)
{
	enum { FUNCS = 5000, SAMPLES = 200000, DEPTH = 24 };
	uint32_t locs[DEPTH], state = 1;
	int m = prof_mapping(p, &exe, e);
	char name[64];

	OK(m);
	OK(prof_add_type(p, "samples", "count", e));
	for (uint32_t i = 0; i < FUNCS; i++) {
		struct prof_line l = { name, "/src/f.go", i + 1, i };

		snprintf(name, sizeof(name), "pkg%" PRIu32 ".f%" PRIu32, i % 97, i);
		OK(add(p, m, 0x400000 + i, &l, 1, &locs[0], e));
	}
	for (size_t i = 0; i < SAMPLES; i++) {
		for (size_t k = 0; k < DEPTH; k++) {
			state = state * 1664525 + 1013904223;
			locs[k] = 1 + (state >> 8) % FUNCS;
		}
		OK(prof_sample(p, locs, DEPTH, (int64_t[]){ 1 }, NULL, 0, e));
	}
	return 0;
}

static const struct kind {
	const char *name;
	int (*make)(struct prof *p, struct err *e);
} kinds[] = {
	{ "heap", heap },   { "cpu", cpu },	{ "hostile", hostile },
	{ "empty", empty }, { "plain", plain }, { "big", big },
};

static int make(const char *what, struct prof **p, struct err *e)
{
	if (strchr(what, '/'))
		return readprofile(what, p, e);
	OK(prof_new(p, e));
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (!strcmp(kinds[i].name, what))
			return kinds[i].make(*p, e);
	return err_set(e, -ENOENT, "no such kind");
}

int main(int argc, char **argv)
{
	const struct output_format *fmt = argc == 4 ? output_find(argv[2]) : NULL;
	CLEANUP(prof_freep) struct prof *p = NULL;
	struct err e = {};
	int r;

	if (!fmt) {
		fprintf(stderr, "usage: mkprofile KIND|FILE FORMAT PATH\n");
		return 2;
	}
	r = make(argv[1], &p, &e);
	if (r >= 0)
		r = output_to_file(p, fmt, argv[3], NULL, &e);
	if (r < 0)
		fprintf(stderr, "mkprofile: %s: %s\n", argv[1], e.msg);
	return r < 0;
}
