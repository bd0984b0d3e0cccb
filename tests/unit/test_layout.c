/*
 * tests/unit/test_layout.c - offsets of runtime structs: from DWARF, from the table, guessed.
 *
 * The binary is a fake: the few gobin functions that go/layout/layout.c asks are below.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <elf.h>
#include <sys/resource.h>
#include <sys/mman.h>

#include "go/layout/layout_priv.h"
#include "mkdwarf.h"

struct gobin {
	struct gobin_info info;
	int fd;
};

const struct gobin_info *gobin_info(const struct gobin *b)
{
	return &b->info;
}

int gobin_fd(const struct gobin *b)
{
	return b->fd;
}

static int file_of(const void *bytes, size_t n)
{
	int fd = memfd_create("test_layout", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), (ssize_t)n);
	return fd;
}

static int dwarf_file(const struct mkdwarf *how)
{
	uint8_t bytes[MKDWARF_MAX];

	return file_of(bytes, mkdwarf(how, bytes));
}

static struct gobin stripped(int minor, int patch, enum arch_id arch)
{
	return (struct gobin){ .fd = -1,
			       .info = { .version = "go of the test",
					 .experiments = "",
					 .minor = minor,
					 .patch = patch,
					 .arch = arch } };
}

/* ---- DWARF ----------------------------------------------------------------------------------- */

static void assert_read(const struct mkdwarf *how)
{
	int fd CLEANUP(closep) = dwarf_file(how);
	int32_t off[LAYOUT_COUNT];
	uint32_t header_over;
	struct err e = { "" };

	if (layout_dwarf_read(fd, off, &header_over, &e))
		fail_msg("%s", e.msg);
	assert_int_equal(off[LAYOUT_g_stack_lo], 16);
	assert_int_equal(off[LAYOUT_g_stack_hi], 24);
	assert_int_equal(off[LAYOUT_g_m], 48);
	assert_int_equal(off[LAYOUT_g_labels], -1);
	assert_int_equal(off[LAYOUT_m_curg], 300);
	assert_int_equal(off[LAYOUT_bucket_size], 32);
	assert_int_equal(off[LAYOUT_bucket_sizeof], 48);
	assert_int_equal(off[LAYOUT_memrecord_sizeof], -1);
	assert_int_equal(off[LAYOUT_type_ptrdata], 8);
	assert_int_equal(off[LAYOUT_sudog_elem], how->old_sudog ? 24 : 32);
	assert_int_equal(header_over, 512);
}

static void every_form_of_dwarf(void **state)
{
	(void)state;
	for (int version = 4; version <= 5; version++)
		for (int packing = MKDWARF_PLAIN; packing <= MKDWARF_ZDEBUG; packing++)
			assert_read(&(struct mkdwarf){ .version = version,
						       .packing = (enum mkdwarf_packing)packing });
	assert_read(&(struct mkdwarf){ .version = 4, .location_expression = 1 });
	assert_read(&(struct mkdwarf){ .version = 4, .old_sudog = 1 });
}

static void the_child_says_the_same(void **state)
{
	int fd CLEANUP(closep) = dwarf_file(&(struct mkdwarf){ .version = 5 });
	int none CLEANUP(closep) = file_of("no ELF", 6);
	int32_t here[LAYOUT_COUNT], there[LAYOUT_COUNT];
	uint32_t over_here, over_there;
	struct err e = { "" };

	(void)state;
	assert_int_equal(layout_dwarf_read(fd, here, &over_here, NULL), 0);
	assert_int_equal(layout_dwarf_apart(fd, there, &over_there, NULL), 0);
	assert_memory_equal(here, there, sizeof(here));
	assert_int_equal(over_here, over_there);
	assert_int_equal(layout_dwarf_apart(none, there, &over_there, &e), -EBADMSG);
	assert_true(e.msg[0]);
}

/* Sections that are small enough each, and holes in the file: together they are too much. */
static int fat_dwarf(void)
{
	static uint8_t bytes[MKDWARF_MAX];
	size_t n = mkdwarf(&(struct mkdwarf){ .version = 5 }, bytes);
	int fd = file_of(bytes, n);
	Elf64_Ehdr eh;

	memcpy(&eh, bytes, sizeof(eh));
	for (unsigned i = 1; i < eh.e_shnum; i++) {
		uint64_t at = eh.e_shoff + i * sizeof(Elf64_Shdr), size = 300ull << 20;
		Elf64_Shdr sh;

		assert_int_equal(pread(fd, &sh, sizeof(sh), (off_t)at), sizeof(sh));
		if (i == eh.e_shstrndx || sh.sh_type != SHT_PROGBITS)
			continue;
		sh.sh_size = size;
		assert_int_equal(pwrite(fd, &sh, sizeof(sh), (off_t)at), sizeof(sh));
	}
	assert_int_equal(ftruncate(fd, 301 << 20), 0);
	return fd;
}

static void memory_is_bounded(void **state)
{
	int fd CLEANUP(closep) = fat_dwarf();
	int32_t off[LAYOUT_COUNT];
	uint32_t header_over;
	struct err e = { "" };
	struct rusage u;

	(void)state;
	assert_int_equal(layout_dwarf_apart(fd, off, &header_over, &e), -E2BIG);
	assert_non_null(strstr(e.msg, "MiB, more than the 512 that are read"));
	getrusage(RUSAGE_CHILDREN, &u);
	assert_true(u.ru_maxrss < 500 << 10); /* KiB */
}

/* Units that are a header and a null entry each: a few bytes here, but libdw keeps some hundreds. */
static int many_units(size_t n)
{
	static const uint8_t unit[] = { 8, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 0 }, abbrev[] = { 0 };
	static const char names[] = "\0.debug_info\0.debug_abbrev\0.shstrtab";
	struct {
		Elf64_Ehdr eh;
		Elf64_Shdr sh[4];
	} h = {
		.eh = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				     EV_CURRENT },
			.e_type = ET_EXEC,
			.e_machine = EM_X86_64,
			.e_version = EV_CURRENT,
			.e_ehsize = sizeof(Elf64_Ehdr),
			.e_shoff = sizeof(Elf64_Ehdr),
			.e_shentsize = sizeof(Elf64_Shdr),
			.e_shnum = 4,
			.e_shstrndx = 3 },
	};
	int fd = file_of(&h, sizeof(h));

	h.sh[1] = (Elf64_Shdr){ 1, SHT_PROGBITS, .sh_size = n * sizeof(unit), .sh_addralign = 1 };
	h.sh[2] = (Elf64_Shdr){ 13, SHT_PROGBITS, .sh_size = sizeof(abbrev), .sh_addralign = 1 };
	h.sh[3] = (Elf64_Shdr){ 27, SHT_STRTAB, .sh_size = sizeof(names), .sh_addralign = 1 };
	h.sh[3].sh_offset = sizeof(h);
	h.sh[2].sh_offset = h.sh[3].sh_offset + sizeof(names);
	h.sh[1].sh_offset = h.sh[2].sh_offset + sizeof(abbrev);
	assert_int_equal(pwrite(fd, &h, sizeof(h), 0), sizeof(h));
	assert_int_equal(write(fd, names, sizeof(names)), sizeof(names));
	assert_int_equal(write(fd, abbrev, sizeof(abbrev)), sizeof(abbrev));
	for (size_t i = 0; i < n; i++)
		assert_int_equal(write(fd, unit, sizeof(unit)), sizeof(unit));
	return fd;
}

/* What fits into the image is bounded as well: the reader's process may not grow without end. */
static void the_child_may_not_grow(void **state)
{
	int fd CLEANUP(closep) = many_units(100000);
	int32_t off[LAYOUT_COUNT];
	uint32_t header_over;
	struct err e = { "" };

	(void)state;
	assert_int_equal(layout_dwarf_apart(fd, off, &header_over, &e), -ENOENT);
/* The sanitizer's allocator has taken its address space at the start. */
#ifndef __SANITIZE_ADDRESS__
	assert_int_equal(layout_dwarf_within(fd, 16 << 20, off, &header_over, &e), -ENOMEM);
	assert_string_equal(e.msg, "reading the DWARF takes more than 16 MiB");
#endif
}

static void dwarf_of_something_else(void **state)
{
	int fd CLEANUP(closep) = dwarf_file(&(struct mkdwarf){ .version = 4, .no_g = 1 });
	int32_t off[LAYOUT_COUNT];
	uint32_t header_over;
	struct err e = { "" };

	(void)state;
	assert_int_equal(layout_dwarf_read(fd, off, &header_over, &e), -ENOENT);
	assert_non_null(strstr(e.msg, "runtime.g"));
}

/* A header that promises more than zlib can give must not make us reserve that much. */
static void inflated_size_that_lies(void **state)
{
	static const struct {
		uint64_t claim;
		int rc;
	} cases[] = {
		{ 1ULL << 40, -E2BIG }, { 1 << 29, -E2BIG }, { 4000, -EBADMSG }, { 5, -EBADMSG }
	};
	int32_t off[LAYOUT_COUNT];
	uint32_t header_over;

	(void)state;
	for (int packing = MKDWARF_COMPRESSED; packing <= MKDWARF_ZDEBUG; packing++)
		for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
			int fd CLEANUP(closep) = dwarf_file(
				&(struct mkdwarf){ .version = 4,
						   .packing = (enum mkdwarf_packing)packing,
						   .claim = cases[i].claim });
			struct err e = { "" };

			assert_int_equal(layout_dwarf_read(fd, off, &header_over, &e), cases[i].rc);
			assert_true(e.msg[0]);
		}
}

/* Found by fuzzing: a plain section that is longer than its file was reserved whole. */
static void section_beyond_the_file(void **state)
{
	uint8_t bytes[MKDWARF_MAX];
	size_t n = mkdwarf(&(struct mkdwarf){ .version = 4 }, bytes);
	/* sh_size of section 1. */
	uint64_t huge = 1 << 29;
	int32_t off[LAYOUT_COUNT];
	uint32_t header_over;
	struct err e = { "" };
	int fd CLEANUP(closep) = -1;

	(void)state;
	memcpy(bytes + 64 + 64 + 32, &huge, sizeof(huge));
	fd = file_of(bytes, n);
	assert_int_equal(layout_dwarf_read(fd, off, &header_over, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "536870912"));
}

/*
 * With the file cut anywhere or any byte flipped, the result is an answer or an error, and
 * nothing else.
 */
static void every_cut_and_flip(void **state)
{
	uint8_t bytes[MKDWARF_MAX];
	size_t n = mkdwarf(&(struct mkdwarf){ .version = 4, .packing = MKDWARF_COMPRESSED }, bytes);
	int32_t off[LAYOUT_COUNT];
	uint32_t header_over;

	(void)state;
	for (size_t cut = 0; cut < n; cut++) {
		int fd CLEANUP(closep) = file_of(bytes, cut);

		assert_true(layout_dwarf_read(fd, off, &header_over, NULL) < 0 || cut > n - 80);
	}
	n = mkdwarf(&(struct mkdwarf){ .version = 5 }, bytes);
	for (size_t i = 0; i < n; i++) {
		bytes[i] ^= 0xff;
		int fd CLEANUP(closep) = file_of(bytes, n);

		layout_dwarf_read(fd, off, &header_over, NULL);
		bytes[i] ^= 0xff;
	}
}

/* ---- the table ------------------------------------------------------------------------------- */

static void table_is_sorted(void **state)
{
	(void)state;
	assert_true(layout_nrows > 0);
	for (size_t i = 1; i < layout_nrows; i++) {
		const struct layout_row *a = &layout_rows[i - 1], *b = &layout_rows[i];

		assert_true((a->arch << 16 | a->minor << 8 | a->patch) <
			    (b->arch << 16 | b->minor << 8 | b->patch));
	}
}

/* The minor version that introduced the field. */
static int since_minor(int f)
{
	switch (f) {
	case LAYOUT_g_trackingseq:
	case LAYOUT_heapdelta_tinyalloccount:
	case LAYOUT_sched_timetorun:
		return 17;
	case LAYOUT_mspan_countbeforecache:
		return 19;
	case LAYOUT_timehist_overflow:
		return 20;
	case LAYOUT_g_parentgoid:
		return 21;
	case LAYOUT_sudog_waiters:
	case LAYOUT_mspan_largetype:
		return 22;
	case LAYOUT_g_syscallbp:
		return 23;
	case LAYOUT_g_runningcleanups:
	case LAYOUT_g_bubble:
	case LAYOUT_bubble_id:
		return 25;
	default:
		return 0;
	}
}

static void table_makes_sense(void **state)
{
	(void)state;
	for (size_t i = 0; i < layout_nrows; i++) {
		const int32_t *off = layout_offsets[layout_rows[i].offsets];
		const struct sizeclasses *c = &layout_classes[layout_rows[i].classes];
		int minor = layout_rows[i].minor;

		for (int f = 0; f < LAYOUT_COUNT; f++)
			if (f != LAYOUT_mspan_freeindexforscan && since_minor(f) <= minor)
				assert_true(off[f] >= 0);
			else if (f != LAYOUT_mspan_freeindexforscan)
				assert_int_equal(off[f], -1);
		/* The word that always holds the address. */
		assert_int_equal(off[LAYOUT_sudog_elem], minor >= 26 ? 32 : 24);
		assert_int_equal(off[LAYOUT_bucket_sizeof], 48);
		/* go/runtime/vars/rtvar_tab.c finds memstats by this part of it. */
		assert_int_equal(off[LAYOUT_mstats_heapstats], minor < 17 ? 6024 :
							       minor < 19 ? 5960 :
									    0);
		assert_true(c->n > 0 && c->n <= SIZECLASS_MAX && c->size[0] == 8);
		for (uint32_t k = 1; k < c->n; k++)
			assert_true(c->size[k] > c->size[k - 1] && c->size[k] % 8 == 0);
		assert_int_equal(c->size[c->n - 1], 32768);
		assert_int_equal(c->page, 8192);
		assert_int_equal(c->header_over, layout_rows[i].minor >= 22 ? 512 : 0);
	}
}

static void assert_row(int minor, int patch, enum layout_how how, int got_minor, int got_patch)
{
	enum layout_how h;
	const struct layout_row *r = layout_row_find(ARCH_AMD64, minor, patch, &h);

	assert_non_null(r);
	assert_int_equal(h, how);
	assert_int_equal(r->minor, got_minor);
	assert_int_equal(r->patch, got_patch);
}

static void which_row(void **state)
{
	enum layout_how how;
	const struct layout_row *last = &layout_rows[0];

	(void)state;
	for (size_t i = 0; i < layout_nrows; i++)
		if (layout_rows[i].arch == ARCH_AMD64)
			last = &layout_rows[i];
	assert_row(22, 12, LAYOUT_TABLE, 22, 12);
	/* Between two releases that agree, nothing has changed. */
	assert_row(22, 2, LAYOUT_TABLE, 22, 0);
	assert_row(24, 7, LAYOUT_TABLE, 24, 6);
	assert_row(24, 4, LAYOUT_TABLE, 24, 0);
	/* Beyond the last release, and in the gap of a change. */
	assert_row(22, 99, LAYOUT_NEAREST, 22, 12);
	assert_row(18, 9, LAYOUT_NEAREST, 18, 8);
	assert_row(19, 3, LAYOUT_NEAREST, 19, 2);
	assert_row(200, 0, LAYOUT_GUESSED, last->minor, last->patch);
	assert_row(-1, -1, LAYOUT_GUESSED, last->minor, last->patch);
	assert_null(layout_row_find(ARCH_AMD64, 15, 15, &how));
	assert_null(layout_row_find((enum arch_id)9, 22, 12, &how));
}

/* A change inside a minor version, at the release that made it. */
static void drift_inside_a_minor(void **state)
{
	static const struct {
		int minor, patch; /* of the release before */
		int to;		  /* the first after it that can be had */
		enum layout_field f;
		int by; /* 0: the field is new */
	} drift[] = {
		{ 16, 3, 4, LAYOUT_m_vdsosp, 8 },
		{ 18, 8, 10, LAYOUT_mspan_freeindexforscan, 0 },
		{ 19, 2, 4, LAYOUT_mspan_freeindexforscan, 0 },
		{ 23, 11, 12, LAYOUT_m_ncgo, 24 },
		{ 24, 5, 6, LAYOUT_m_ncgo, 24 },
	};

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_LEN(drift); i++) {
		size_t k = i / 2;
		enum arch_id arch = i % 2 ? ARCH_ARM64 : ARCH_AMD64;
		struct gobin a = stripped(drift[k].minor, drift[k].patch, arch);
		struct gobin b = stripped(drift[k].minor, drift[k].to, arch);
		struct golayout la, lb;

		assert_int_equal(layout_find(&a, &la, NULL), 0);
		assert_int_equal(layout_find(&b, &lb, NULL), 0);
		assert_int_equal(la.how, LAYOUT_TABLE);
		assert_int_equal(lb.how, LAYOUT_TABLE);
		assert_int_equal(lb.off[LAYOUT_m_curg], la.off[LAYOUT_m_curg]);
		if (drift[k].by) {
			assert_int_equal(lb.off[drift[k].f] - la.off[drift[k].f], drift[k].by);
		} else {
			assert_int_equal(la.off[drift[k].f], -1);
			assert_true(lb.off[drift[k].f] > 0);
		}
	}
}

/* ---- which source ---------------------------------------------------------------------------- */

static void dwarf_before_the_table(void **state)
{
	int fd CLEANUP(closep) = dwarf_file(&(struct mkdwarf){ .version = 5 });
	struct gobin b = stripped(22, 12, ARCH_AMD64);
	struct golayout l;

	(void)state;
	b.fd = fd;
	b.info.has_dwarf = true;
	assert_int_equal(layout_find(&b, &l, NULL), 0);
	assert_int_equal(l.how, LAYOUT_DWARF);
	assert_string_equal(l.from, "DWARF");
	assert_int_equal(l.off[LAYOUT_m_curg], 300);
}

static void bad_dwarf_then_the_table(void **state)
{
	int fd CLEANUP(closep) = dwarf_file(&(struct mkdwarf){ .version = 5, .no_g = 1 });
	struct gobin b = stripped(22, 13, ARCH_AMD64);
	struct golayout l;

	(void)state;
	b.fd = fd;
	b.info.has_dwarf = true;
	assert_int_equal(layout_find(&b, &l, NULL), 0);
	assert_int_equal(l.how, LAYOUT_NEAREST);
	assert_non_null(strstr(l.from, "1.22.12"));
}

static void the_table_and_nothing(void **state)
{
	struct gobin known = stripped(27, 4, ARCH_ARM64), newer = stripped(99, 0, ARCH_AMD64);
	struct gobin old = stripped(12, 1, ARCH_AMD64), odd = stripped(22, 12, ARCH_AMD64);
	char newest[LAYOUT_RELEASE];
	struct golayout l;
	struct err e = { "" };

	(void)state;
	assert_int_equal(layout_find(&known, &l, NULL), 0);
	assert_int_equal(l.how, LAYOUT_TABLE);
	assert_string_equal(l.from, "table go1.27.4 arm64");
	assert_false(l.newer);
	layout_newest(newest);
	assert_string_equal(newest, "go1.27.4");
	assert_int_equal(layout_find(&newer, &l, NULL), 0);
	assert_int_equal(l.how, LAYOUT_GUESSED);
	assert_true(l.newer);
	odd.info.experiments = "arenas";
	assert_int_equal(layout_find(&odd, &l, NULL), 0);
	assert_int_equal(l.how, LAYOUT_GUESSED);
	assert_int_equal(layout_find(&old, &l, &e), -ENOTSUP);
	assert_non_null(strstr(e.msg, "go of the test"));
}

static void slot_sizes(void **state)
{
	struct gobin b = stripped(22, 12, ARCH_AMD64), old = stripped(16, 15, ARCH_AMD64);
	struct gobin bare = stripped(22, 12, ARCH_AMD64), none = stripped(3, 0, ARCH_AMD64);
	struct sizeclasses c;

	(void)state;
	assert_int_equal(layout_sizeclasses(&b, &c, NULL), 0);
	assert_int_equal(c.n, 67);
	assert_int_equal(c.size[2], 24);
	assert_int_equal(c.header_over, 512);
	assert_int_equal(layout_sizeclasses(&old, &c, NULL), 0);
	assert_int_equal(c.header_over, 0);
	bare.info.experiments = "noallocheaders";
	assert_int_equal(layout_sizeclasses(&bare, &c, NULL), 0);
	assert_int_equal(c.header_over, 0);
	assert_int_equal(layout_sizeclasses(&none, &c, NULL), -ENOTSUP);
}

static void names(void **state)
{
	(void)state;
	assert_string_equal(layout_field_name(LAYOUT_g_m), "g_m");
	assert_string_equal(layout_field_name(LAYOUT_COUNT), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_of_dwarf),
		cmocka_unit_test(the_child_says_the_same),
		cmocka_unit_test(memory_is_bounded),
		cmocka_unit_test(the_child_may_not_grow),
		cmocka_unit_test(dwarf_of_something_else),
		cmocka_unit_test(inflated_size_that_lies),
		cmocka_unit_test(section_beyond_the_file),
		cmocka_unit_test(every_cut_and_flip),
		cmocka_unit_test(table_is_sorted),
		cmocka_unit_test(table_makes_sense),
		cmocka_unit_test(which_row),
		cmocka_unit_test(drift_inside_a_minor),
		cmocka_unit_test(dwarf_before_the_table),
		cmocka_unit_test(bad_dwarf_then_the_table),
		cmocka_unit_test(the_table_and_nothing),
		cmocka_unit_test(slot_sizes),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
