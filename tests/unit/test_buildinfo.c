/* tests/unit/test_buildinfo.c - build info in both formats, cut and lying; version numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <elf.h>
#include <sys/stat.h>
#include <time.h>

#include "base/loop/cancel.h"
#include "base/limits.h"
#include "go/image/buildinfo.h"
#include "go/image/elf/elfimg_priv.h"
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

/* ---- files with hardly anything in them that are very large ---- */

static const uint64_t huge = 8ull << 40;

struct hollow {
	Elf64_Ehdr eh;
	Elf64_Phdr ph;
	Elf64_Shdr sh[4];
	char names[32];
	Elf64_Sym sym;
};

/*
 * Executables whose data, and whose symbols' names, are 8 TB of nothing. -1: this file system has
 * no such files.
 */
static int hollow_file(void)
{
	struct hollow h = {
		.eh = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				     EV_CURRENT },
			.e_type = ET_EXEC,
			.e_machine = EM_X86_64,
			.e_phoff = offsetof(struct hollow, ph),
			.e_phentsize = sizeof(Elf64_Phdr),
			.e_phnum = 1,
			.e_shoff = offsetof(struct hollow, sh),
			.e_shentsize = sizeof(Elf64_Shdr),
			.e_shnum = 4,
			.e_shstrndx = 3 },
		.ph = { .p_type = PT_LOAD,
			.p_flags = PF_R | PF_W,
			.p_vaddr = 0x400000,
			.p_filesz = huge,
			.p_memsz = huge },
		.sh = { { 0 },
			{ .sh_name = 1,
			  .sh_type = SHT_SYMTAB,
			  .sh_link = 2,
			  .sh_offset = offsetof(struct hollow, sym),
			  .sh_size = sizeof(Elf64_Sym) },
			{ .sh_name = 9, .sh_type = SHT_STRTAB, .sh_size = huge },
			{ .sh_name = 17,
			  .sh_type = SHT_STRTAB,
			  .sh_offset = offsetof(struct hollow, names),
			  .sh_size = sizeof(h.names) } },
		.names = "\0.symtab\0.strtab\0.shstrtab",
	};
	char path[] = "/tmp/goprof-hollow-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(pwrite(fd, &h, sizeof(h), 0), sizeof(h));
	if (!ftruncate(fd, (off_t)huge))
		return fd;
	close(fd);
	return -1;
}

static void searching_has_an_end(void **state)
{
	static const char *const name = "runtime.text";
	int fd = hollow_file(), ret = 0;
	struct timespec a, b;
	struct elfimg *img;
	struct buildinfo bi;
	struct elf_sym sym;
	struct err e = { 0 };

	(void)state;
	if (fd < 0)
		skip();
	assert_int_equal(elfimg_open(fd, "hollow", 4, &img, &e), 0);
	clock_gettime(CLOCK_MONOTONIC, &a);
	assert_int_equal(elfimg_symbols(img, &name, 1, &sym, &e), -E2BIG);
	/* A GiB each time, until all that is read of one file is used up. */
	for (int i = 0; i < 20 && !strstr(e.msg, "GiB of it would have to be read"); i++) {
		ret = buildinfo_find(img, &bi, &e);
		assert_true(ret == -E2BIG || ret == -ENOENT);
	}
	assert_int_equal(ret, -E2BIG);
	clock_gettime(CLOCK_MONOTONIC, &b);
	assert_true(b.tv_sec - a.tv_sec < 2 * LIMIT_STREAM_MS / 1000);
	assert_non_null(strstr(e.msg, "GiB of it would have to be read"));
	elfimg_free(img);
	close(fd);
}

/* Slow disks, and file systems of users: all reading of one file ends in time, too. */
static void searching_ends_in_time(void **state)
{
	const uint64_t most_ns = LIMIT_STREAM_MS * 1000000ull;
	int fd = hollow_file();
	struct elfimg *img;
	struct buildinfo bi;
	struct err e = { 0 };

	(void)state;
	if (fd < 0)
		skip();
	assert_int_equal(elfimg_open(fd, "hollow", 4, &img, &e), 0);
	/* One nanosecond is left, which the first read uses up. */
	img->stream_ns = most_ns - 1;
	assert_int_equal(buildinfo_find(img, &bi, &e), -ETIMEDOUT);
	assert_string_equal(e.msg, "hollow: reading it took more than 20 s");
	assert_true(img->stream_ns > most_ns && img->streamed > 0);
	elfimg_free(img);
	close(fd);
}

static int looks;

static uint64_t after_ten(void)
{
	return ++looks > 10;
}

static void searching_ends_when_asked(void **state)
{
	int fd = hollow_file();
	struct elfimg *img;
	struct buildinfo bi;
	struct err e = { 0 };

	(void)state;
	if (fd < 0)
		skip();
	assert_int_equal(elfimg_open(fd, "hollow", 4, &img, &e), 0);
	cancel_when(after_ten);
	assert_int_equal(buildinfo_find(img, &bi, &e), -ECANCELED);
	assert_int_equal(looks, 11);
	cancel_when(NULL);
	elfimg_free(img);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_place),
		cmocka_unit_test(by_pointers),
		cmocka_unit_test(every_truncation_is_refused),
		cmocka_unit_test(lies_are_refused),
		cmocka_unit_test(versions),
		cmocka_unit_test(searching_has_an_end),
		cmocka_unit_test(searching_ends_in_time),
		cmocka_unit_test(searching_ends_when_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
