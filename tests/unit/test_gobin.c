/* tests/unit/test_gobin.c - a small executable made by hand, understood, spoiled and cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/limits.h"
#include "go/image/gobin.h"
#include "mkgobin.h"

static struct mkgobin g;

static int open_bytes(size_t n, struct mem *live, uint64_t bias, struct gobin **out, struct err *e,
		      int *fd)
{
	*fd = mkgobin_fd(g.b, n);
	return gobin_open(*fd, "hand.elf", live, bias, out, e);
}

static void expect_frame(const struct goframe *f, const char *func, const char *file, uint32_t line,
			 uint32_t start)
{
	assert_string_equal(f->func, func);
	assert_string_equal(f->file, file);
	assert_int_equal(f->line, line);
	assert_int_equal(f->start_line, start);
}

static void expect_frames(struct gobin *b, int minor)
{
	uint32_t start = minor >= 20;
	struct goframe f[8];

	assert_int_equal(gobin_frames(b, MK_TEXT + 0x40, f, 8, NULL), 1);
	expect_frame(&f[0], "main.main", "a.go", 10, start * 6);
	assert_int_equal(f[0].parent_pc, 0);
	assert_int_equal(gobin_frames(b, MK_TEXT + 0x5f, f, 8, NULL), 3);
	expect_frame(&f[0], "main.leaf", "b.go", 11, start * 21);
	expect_frame(&f[1], "main.mid[...]", "a.go", 12, start * 20);
	expect_frame(&f[2], "main.main", "a.go", 10, start * 6);
	assert_int_equal(f[0].parent_pc, MK_TEXT + 0x60);
	assert_int_equal(f[1].parent_pc, MK_TEXT + 0x48);
	assert_int_equal(gobin_frames(b, MK_TEXT + 0x60, f, 8, NULL), 2);
	assert_int_equal(gobin_frames(b, MK_TEXT + 0x60, f, 1, NULL), 1);
	/* Where the tables end before the function does, the runtime says "?", and so do we. */
	assert_int_equal(gobin_frames(b, MK_TEXT + 0x3f, f, 8, NULL), 1);
	expect_frame(&f[0], "runtime.text0", "?", 0, start * 5);
	assert_int_equal(gobin_frames(b, MK_ETEXT, f, 8, NULL), -ENOENT);
	assert_int_equal(gobin_frames(b, MK_TEXT - 1, f, 8, NULL), -ENOENT);
}

static void expect_funcs(struct gobin *b)
{
	static const char *const names[] = { "main.main", "nowhere", "runtime.last", "main.main",
					     "main.mai" };
	struct gofunc f[5], at;
	int32_t delta;

	assert_int_equal(gobin_funcs_named(b, names, 5, f, NULL), 3);
	assert_int_equal(f[0].entry, MK_TEXT + 0x40); /* the larger of two */
	assert_int_equal(f[0].end, MK_TEXT + 0xc0);
	assert_int_equal(f[1].entry, 0);
	assert_int_equal(f[2].entry, MK_TEXT + 0xd0);
	assert_int_equal(f[3].entry, f[0].entry);
	assert_int_equal(f[4].entry, 0);
	assert_string_equal(gobin_func_name(b, &f[2]), "runtime.last");
	assert_int_equal(gobin_nfuncs(b), 4);
	assert_int_equal(gobin_func_index(b, 2, &at, NULL), 0);
	assert_int_equal(at.id, FUNC_WRAPPER);
	assert_int_equal(gobin_func_index(b, 4, &at, NULL), -ENOENT);
	assert_int_equal(gobin_func_at(b, MK_ETEXT - 1, &at, NULL), 0);
	assert_int_equal(at.entry, f[2].entry);
	assert_int_equal(gobin_spdelta(b, MK_TEXT + 0x43, &delta, NULL), 0);
	assert_int_equal(delta, 0);
	assert_int_equal(gobin_spdelta(b, MK_TEXT + 0x44, &delta, NULL), 0);
	assert_int_equal(delta, 8);
	assert_int_equal(gobin_spdelta(b, MK_TEXT + 0x3f, &delta, NULL), -ENOENT);
}

static void expect_all(const struct mkopt *o, struct mem *live, uint64_t bias)
{
	CLEANUP(gobin_freep) struct gobin *b = NULL;
	CLEANUP(closep) int fd = -1;
	struct err e = { 0 };

	if (open_bytes(g.n, live, bias, &b, &e, &fd))
		fail_msg("go1.%d: %s", o->minor, e.msg);
	assert_int_equal(gobin_info(b)->minor, o->minor);
	assert_int_equal(gobin_info(b)->patch, 3);
	assert_int_equal(gobin_info(b)->text, MK_TEXT);
	assert_int_equal(gobin_info(b)->etext, MK_ETEXT);
	assert_int_equal(gobin_info(b)->pie, o->pie);
	assert_int_equal(gobin_info(b)->tls_g, -8);
	assert_int_equal(gobin_module(b)->addr, MK_BASE + g.module);
	assert_int_equal(gobin_module(b)->gofunc, o->minor < 18 ? 0 : MK_BASE + g.gofunc);
	assert_int_equal(gobin_module(b)->etypes, g.words[o->minor < 20 ? 36 :
							  o->minor < 27 ? 38 :
									  39]);
	expect_frames(b, o->minor);
	expect_funcs(b);
}

static const int minors[] = { 16, 17, 18, 19, 20, 21, 22, 25, 26, 27 };

static void every_version(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(minors); i++) {
		struct mkopt o = { .minor = minors[i] };

		mkgobin(&g, &o);
		expect_all(&o, NULL, 0);
	}
}

static void without_section_headers(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(minors); i++) {
		struct mkopt o = { .minor = minors[i], .no_sections = true };

		mkgobin(&g, &o);
		expect_all(&o, NULL, 0);
	}
}

/* A foreign linker leaves zeros in the file and relocations beside them. */
static void pie_by_relocations(void **state)
{
	struct mkopt o = { .minor = 22, .pie = true, .no_module = true, .rela = true };

	(void)state;
	mkgobin(&g, &o);
	expect_all(&o, NULL, 0);
	o.minor = 27;
	mkgobin(&g, &o);
	expect_all(&o, NULL, 0);
	o.by_symbol = true; /* as in a plugin */
	mkgobin(&g, &o);
	expect_all(&o, NULL, 0);
}

/* Without relocations the running process is read: its words have the bias added. */
static void pie_by_the_live_process(void **state)
{
	enum { BIAS = 0x7f0000000000 };
	struct mkopt o = { .minor = 24, .pie = true, .no_module = true };
	static uint8_t image[MK_BYTES + 0x1000];
	struct bytemem live;

	(void)state;
	mkgobin(&g, &o);
	memcpy(image, g.b, g.n);
	for (size_t i = 0; i < ARRAY_LEN(g.words); i++) {
		uint64_t w = g.words[i] && i != 17 ? g.words[i] + BIAS : g.words[i];

		memcpy(image + g.module + 8 * i, &w, 8);
	}
	live = bytemem_of(MK_BASE + (uint64_t)BIAS, image, sizeof(image));
	expect_all(&o, &live.mem, BIAS);
}

static void no_moduledata_at_all(void **state)
{
	CLEANUP(gobin_freep) struct gobin *b = NULL;
	CLEANUP(closep) int fd = -1;
	struct goframe f[8];

	(void)state;
	mkgobin(&g, &(struct mkopt){ .minor = 26, .no_module = true });
	assert_int_equal(open_bytes(g.n, NULL, 0, &b, NULL, &fd), 0);
	assert_int_equal(gobin_info(b)->text, MK_TEXT); /* .text */
	assert_int_equal(gobin_module(b)->addr, 0);
	/* It is unknown where inline trees are, so only the physical function is left. */
	assert_int_equal(gobin_frames(b, MK_TEXT + 0x5f, f, 8, NULL), 1);
	expect_frame(&f[0], "main.main", "b.go", 11, 6);
}

static void no_build_info(void **state)
{
	CLEANUP(gobin_freep) struct gobin *b = NULL;
	CLEANUP(closep) int fd = -1;

	(void)state;
	mkgobin(&g, &(struct mkopt){ .minor = 22, .no_info = true });
	assert_int_equal(open_bytes(g.n, NULL, 0, &b, NULL, &fd), 0);
	assert_string_equal(gobin_info(b)->version, "unknown");
	assert_int_equal(gobin_info(b)->minor, -1);
}

static void symbols(void **state)
{
	CLEANUP(gobin_freep) struct gobin *b = NULL;
	CLEANUP(closep) int fd = -1;
	uint64_t addr, size;

	(void)state;
	mkgobin(&g, &(struct mkopt){ .minor = 22 });
	assert_int_equal(open_bytes(g.n, NULL, 0, &b, NULL, &fd), 0);
	assert_int_equal(gobin_symbol(b, "one", &addr, &size, NULL), 0);
	assert_int_equal(addr, 0x1111);
	assert_int_equal(size, 5);
	assert_int_equal(gobin_symbol(b, "tail", &addr, &size, NULL), 0);
	assert_int_equal(addr, 0x2222);
	assert_int_equal(gobin_symbol(b, "longtail", &addr, &size, NULL), -ENOENT);
	assert_int_equal(gobin_symbol(b, "undefined", &addr, &size, NULL), -ENOENT);
	assert_int_equal(gobin_file_offset(b, MK_TEXT, &addr, NULL), 0);
	assert_int_equal(addr, 0x200);
	assert_int_equal(gobin_file_offset(b, 0x10, &addr, NULL), -ENOENT);
}

static void every_truncation_is_refused_or_read(void **state)
{
	struct mkopt o = { .minor = 22 };
	size_t refused = 0;

	(void)state;
	mkgobin(&g, &o);
	for (size_t n = 0; n < g.n; n += 7) {
		CLEANUP(gobin_freep) struct gobin *b = NULL;
		CLEANUP(closep) int fd = -1;
		struct err e = { 0 };

		if (open_bytes(n, NULL, 0, &b, &e, &fd)) {
			refused++;
			assert_non_null(strstr(e.msg, "hand.elf"));
		}
	}
	/* The last segment reaches to the end of the file, so no cut file is complete. */
	assert_int_equal(refused, (g.n + 6) / 7);
}

static int reopen(struct gobin **b, int *fd, struct err *e)
{
	gobin_freep(b);
	closep(fd);
	*b = NULL;
	return open_bytes(g.n, NULL, 0, b, e, fd);
}

static void poke(size_t at, uint64_t v, size_t n)
{
	memcpy(g.b + at, &v, n);
}

static void lying_headers_are_refused(void **state)
{
	/* File offset, value, size, what is said about it. */
	static const struct {
		size_t off, n;
		uint64_t v;
		const char *says;
	} lies[] = {
		{ 4, 1, 1, "class" },
		{ 16, 2, 1, "ELF type" },
		{ 18, 2, 40, "machine" },
		{ 64 + 8, 8, 1ull << 40, "beyond the file" },
		{ 64 + 32, 8, UINT64_MAX, "beyond the file" },
		{ 64 + 40, 8, 8, "segment 0" },
		{ 0x28, 8, 1ull << 40, "section" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
		CLEANUP(gobin_freep) struct gobin *b = NULL;
		CLEANUP(closep) int fd = -1;
		struct err e = { 0 };

		mkgobin(&g, &(struct mkopt){ .minor = 22 });
		poke(lies[i].off, lies[i].v, lies[i].n);
		reopen(&b, &fd, &e);
		if (!strstr(e.msg, lies[i].says))
			fail_msg("%s: said \"%s\"", lies[i].says, e.msg);
	}
}

static void lying_tables_are_refused(void **state)
{
	CLEANUP(gobin_freep) struct gobin *b = NULL;
	CLEANUP(closep) int fd = -1;
	struct err e = { 0 };

	(void)state;
	mkgobin(&g, &(struct mkopt){ .minor = 22 });
	poke(g.nfunc, 1ull << 40, 8);
	assert_int_equal(reopen(&b, &fd, &e), -E2BIG);
	poke(g.nfunc, 0x1000, 8);
	assert_int_equal(reopen(&b, &fd, &e), -EBADMSG);
	poke(g.nfunc, 0, 8);
	assert_int_equal(reopen(&b, &fd, &e), -EBADMSG);
	poke(g.nfunc, 4, 8);
	for (size_t i = 0; i < 5; i++) { /* the header's offsets */
		size_t at = g.pcln + 32 + 8 * i;
		uint64_t was;

		memcpy(&was, g.b + at, 8);
		poke(at, 0x100000, 8);
		assert_int_equal(reopen(&b, &fd, &e), -EBADMSG);
		poke(at, 1, 8);
		assert_int_equal(reopen(&b, &fd, &e), -EBADMSG);
		poke(at, was, 8);
	}
	assert_int_equal(reopen(&b, &fd, &e), 0);
	poke(g.pcln, 0xfffffffb, 4); /* Go 1.15 and older */
	assert_int_equal(reopen(&b, &fd, &e), -ENOTSUP);
	assert_non_null(strstr(e.msg, "go1.22.3"));
}

static void unsorted_functab(void **state)
{
	CLEANUP(gobin_freep) struct gobin *b = NULL;
	CLEANUP(closep) int fd = -1;
	struct err e = { 0 };
	struct gofunc f;

	(void)state;
	mkgobin(&g, &(struct mkopt){ .minor = 22 });
	poke(g.functab + 16, 0x20, 4); /* the third starts before the second */
	assert_int_equal(reopen(&b, &fd, &e), 0);
	for (uint64_t pc = MK_TEXT; pc < MK_ETEXT; pc++) {
		int ret = gobin_func_at(b, pc, &f, &e);

		assert_true(ret == -EBADMSG || (!ret && f.entry <= pc && pc < f.end));
	}
	assert_int_equal(gobin_func_index(b, 1, &f, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "not sorted"));
}

/* Each of the two inlined calls says that the other one is its caller. */
static void inline_tree_that_never_ends(void **state)
{
	CLEANUP(gobin_freep) struct gobin *b = NULL;
	CLEANUP(closep) int fd = -1;
	static struct goframe f[LIMIT_INLINE_DEPTH + 8];
	struct err e = { 0 };

	(void)state;
	mkgobin(&g, &(struct mkopt){ .minor = 22 });
	poke(g.inl_tree + 8, 0x10, 4);
	assert_int_equal(reopen(&b, &fd, &e), 0);
	assert_int_equal(gobin_frames(b, MK_TEXT + 0x50, f, ARRAY_LEN(f), &e), 3);
	assert_string_equal(f[0].func, "main.leaf");
	assert_string_equal(f[1].func, "main.mid[...]");
	expect_frame(&f[2], "main.main", "b.go", 11, 6);
	assert_int_equal(f[2].parent_pc, 0);
	poke(g.inl_tree + 8, 0x20, 4); /* its own caller */
	assert_int_equal(reopen(&b, &fd, &e), 0);
	assert_int_equal(gobin_frames(b, MK_TEXT + 0x60, f, ARRAY_LEN(f), &e), 2);
	assert_string_equal(f[1].func, "main.main");
	poke(g.inl_tree + 8, 0x8000, 4);
	assert_int_equal(reopen(&b, &fd, &e), 0);
	assert_int_equal(gobin_frames(b, MK_TEXT + 0x50, f, 4, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "leaves the function"));
}

static void lying_records(void **state)
{
	CLEANUP(gobin_freep) struct gobin *b = NULL;
	CLEANUP(closep) int fd = -1;
	struct goframe f[8];
	struct err e = { 0 };

	(void)state;
	mkgobin(&g, &(struct mkopt){ .minor = 22 });
	poke(g.rec[1] + 4, 0x7fffffff, 4); /* name */
	assert_int_equal(reopen(&b, &fd, &e), 0);
	assert_int_equal(gobin_frames(b, MK_TEXT + 0x40, f, 8, &e), -EBADMSG);
	mkgobin(&g, &(struct mkopt){ .minor = 22 });
	poke(g.rec[1] + 24, 0xfffff, 4); /* line table */
	assert_int_equal(reopen(&b, &fd, &e), 0);
	assert_int_equal(gobin_frames(b, MK_TEXT + 0x40, f, 8, &e), -EBADMSG);
	mkgobin(&g, &(struct mkopt){ .minor = 22 });
	poke(g.rec[1] + 32, 0xffff, 4); /* unit */
	assert_int_equal(reopen(&b, &fd, &e), 0);
	assert_int_equal(gobin_frames(b, MK_TEXT + 0x40, f, 8, &e), -EBADMSG);
	poke(g.rec[1] + 28, UINT32_MAX, 4); /* pcdata tables */
	assert_int_equal(reopen(&b, &fd, &e), 0);
	assert_int_equal(gobin_frames(b, MK_TEXT + 0x40, f, 8, &e), -EBADMSG);
	poke(g.functab + 12, 0xfffff0, 4); /* record */
	assert_int_equal(reopen(&b, &fd, &e), 0);
	assert_int_equal(gobin_frames(b, MK_TEXT + 0x40, f, 8, &e), -EBADMSG);
	poke(g.functab + 12, UINT32_MAX, 4); /* a hole */
	assert_int_equal(reopen(&b, &fd, &e), 0);
	assert_int_equal(gobin_frames(b, MK_TEXT + 0x40, f, 8, &e), -ENOENT);
}

static void other_files(void **state)
{
	CLEANUP(gobin_freep) struct gobin *b = NULL;
	CLEANUP(closep) int fd = -1;
	struct err e = { 0 };

	(void)state;
	memset(&g, 'x', sizeof(g));
	assert_int_equal(open_bytes(4000, NULL, 0, &b, &e, &fd), -ENOENT);
	assert_non_null(strstr(e.msg, "not an ELF file"));
	mkgobin(&g, &(struct mkopt){ .minor = 22, .no_info = true, .no_sections = true });
	memset(g.b + g.pcln, 0, 8);
	closep(&fd);
	assert_int_equal(open_bytes(g.n, NULL, 0, &b, &e, &fd), -ENOENT);
	assert_non_null(strstr(e.msg, "not a Go binary"));
}

/* 4,096 segments over the same bytes would turn each search of the file into 4,096 searches. */
static void segments_that_overlap_in_the_file(void **state)
{
	CLEANUP(gobin_freep) struct gobin *b = NULL;
	CLEANUP(closep) int fd = -1;
	struct err e = { 0 };

	(void)state;
	mkgobin(&g, &(struct mkopt){ .minor = 22, .no_sections = true });
	for (size_t i = 3; i < 8; i++) {
		memcpy(g.b + 64 + 56 * i, g.b + 64, 56);
		poke(64 + 56 * i + 32, MK_BYTES, 8);
		poke(64 + 56 * i + 40, MK_BYTES, 8);
	}
	poke(56, 8, 2);
	assert_int_equal(open_bytes(g.n, NULL, 0, &b, &e, &fd), -EBADMSG);
	assert_non_null(strstr(e.msg, "overlap"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_version),
		cmocka_unit_test(without_section_headers),
		cmocka_unit_test(pie_by_relocations),
		cmocka_unit_test(pie_by_the_live_process),
		cmocka_unit_test(no_moduledata_at_all),
		cmocka_unit_test(no_build_info),
		cmocka_unit_test(symbols),
		cmocka_unit_test(every_truncation_is_refused_or_read),
		cmocka_unit_test(lying_headers_are_refused),
		cmocka_unit_test(lying_tables_are_refused),
		cmocka_unit_test(unsorted_functab),
		cmocka_unit_test(inline_tree_that_never_ends),
		cmocka_unit_test(lying_records),
		cmocka_unit_test(other_files),
		cmocka_unit_test(segments_that_overlap_in_the_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
