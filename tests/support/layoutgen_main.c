/*
 * tests/support/layoutgen_main.c - prints user/go/layout/layout_tab.c, or checks what is in it.
 *
 * On stdin one line per binary: MINOR PATCH ARCH CLASSES SUM PATH, sorted by arch, minor and
 * patch; CLASSES are the slot sizes that the toolchain's own source names ("0,8,16,..."), SUM
 * the toolchain's checksum. tests/support/layoutgen.sh builds the binaries and writes the
 * lines.
 *
 *	layoutgen		the table
 *	layoutgen --check	nothing, when for each binary the table that was built in says what
 *				the binary's DWARF says
 *	layoutgen --code	the same of layout_check_code(): it agrees with every binary's true
 *				offsets, and does not agree with an offset that is 8 bytes off
 */
#include <fcntl.h>
#include <gelf.h>
#include <unistd.h>

#include "go/layout/layout_check.h"
#include "go/layout/layout_priv.h"

enum { ROWS_MAX = 250, TABLE_COLUMNS = 100 };

struct row {
	struct layout_row r;
	char arch[16];
	char sum[64];
};

static struct row rows[ROWS_MAX];
static size_t nrows;
static int32_t offsets[ROWS_MAX][LAYOUT_COUNT];
static size_t noffsets;
static struct sizeclasses classes[ROWS_MAX];
static size_t nclasses;

static _Noreturn void die(const char *path, const char *why)
{
	fprintf(stderr, "layoutgen: %s: %s\n", path, why);
	exit(1);
}

static bool is_class_symbol(const char *name)
{
	return name && (!strcmp(name, "runtime.class_to_size") ||
			!strcmp(name, "internal/runtime/gc.SizeClassToSize"));
}

static bool find_symbol(Elf *elf, GElf_Sym *out)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;

	while ((scn = elf_nextscn(elf, scn))) {
		Elf_Data *d;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_SYMTAB || !sh.sh_entsize)
			continue;
		d = elf_getdata(scn, NULL);
		for (int i = 0; d && i < (int)(sh.sh_size / sh.sh_entsize); i++)
			if (gelf_getsym(d, i, out) &&
			    is_class_symbol(elf_strptr(elf, sh.sh_link, out->st_name)))
				return true;
	}
	return false;
}

static uint64_t file_offset(Elf *elf, uint64_t addr, const char *path)
{
	GElf_Phdr ph;
	size_t n;

	elf_getphdrnum(elf, &n);
	for (size_t i = 0; i < n; i++)
		if (gelf_getphdr(elf, (int)i, &ph) && ph.p_type == PT_LOAD && addr >= ph.p_vaddr &&
		    addr - ph.p_vaddr < ph.p_filesz)
			return addr - ph.p_vaddr + ph.p_offset;
	die(path, "the size classes are in no segment");
}

/* The binary's own table, which must agree with the toolchain's source. */
static void read_classes(int fd, const char *path, const char *source, struct sizeclasses *out)
{
	uint16_t raw[SIZECLASS_MAX + 1];
	char text[SIZECLASS_MAX * 8] = "";
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	GElf_Sym sym;
	size_t n, at = 0;

	if (!elf || !find_symbol(elf, &sym) || sym.st_size > sizeof(raw) || sym.st_size < 4)
		die(path, "no symbol for the size classes");
	if (pread(fd, raw, sym.st_size, (off_t)file_offset(elf, sym.st_value, path)) !=
	    (ssize_t)sym.st_size)
		die(path, "cannot read the size classes");
	n = sym.st_size / 2;
	for (size_t i = 0; i < n; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%u", i ? "," : "", raw[i]);
	if (strcmp(text, source))
		die(path, "the size classes differ from the toolchain's source");
	out->n = (uint32_t)n - 1; /* class 0 is for large objects */
	for (size_t i = 1; i < n; i++)
		out->size[i - 1] = raw[i];
	out->page = 8192;
	elf_end(elf);
}

static uint8_t same_offsets(const int32_t off[LAYOUT_COUNT])
{
	size_t i;

	for (i = 0; i < noffsets; i++)
		if (!memcmp(offsets[i], off, sizeof(offsets[i])))
			return (uint8_t)i;
	memcpy(offsets[noffsets++], off, sizeof(offsets[i]));
	return (uint8_t)i;
}

static uint8_t same_classes(const struct sizeclasses *c)
{
	size_t i;

	for (i = 0; i < nclasses; i++)
		if (!memcmp(&classes[i], c, sizeof(*c)))
			return (uint8_t)i;
	classes[nclasses++] = *c;
	return (uint8_t)i;
}

struct line {
	unsigned int minor, patch;
	char arch[16], classes[1024], sum[64], path[2048];
};

static void add(const struct line *in)
{
	const char *path = in->path;
	struct row *w = &rows[nrows];
	struct sizeclasses c = { 0 };
	int32_t off[LAYOUT_COUNT];
	struct err e = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (nrows == ROWS_MAX || in->minor > 255 || in->patch > 255)
		die(path, "does not fit the table");
	if (fd < 0 || layout_dwarf_read(fd, off, &c.header_over, &e) < 0)
		die(path, fd < 0 ? "cannot open" : e.msg);
	read_classes(fd, path, in->classes, &c);
	close(fd);
	w->r.arch = !strcmp(in->arch, "amd64") ? ARCH_AMD64 : ARCH_ARM64;
	w->r.minor = (uint8_t)in->minor;
	w->r.patch = (uint8_t)in->patch;
	w->r.offsets = same_offsets(off);
	w->r.classes = same_classes(&c);
	snprintf(w->arch, sizeof(w->arch), "%s", in->arch);
	snprintf(w->sum, sizeof(w->sum), "%s", in->sum);
	nrows++;
}

/* "1.20" is the first release of its minor, "1.21.0" that of a later one. */
static const char *release(const struct layout_row *r, char *to, size_t n)
{
	if (r->minor < 21 && !r->patch)
		snprintf(to, n, "go1.%u", r->minor);
	else
		snprintf(to, n, "go1.%u.%u", r->minor, r->patch);
	return to;
}

static void print_rows(void)
{
	char name[32];

	puts("const struct layout_row layout_rows[] = {");
	for (size_t i = 0; i < nrows; i++) {
		const struct layout_row *r = &rows[i].r;

		printf("\t{ GOARCH_%s, %u, %u, %u, %u }, /* %s linux/%s %s */\n",
		       r->arch == ARCH_AMD64 ? "AMD64" : "ARM64", r->minor, r->patch, r->offsets,
		       r->classes, release(r, name, sizeof(name)), rows[i].arch, rows[i].sum);
	}
	puts("};\nconst size_t layout_nrows = ARRAY_LEN(layout_rows);\n");
}

/* Puts as many on a line as fit. */
static void print_set(const int32_t off[LAYOUT_COUNT])
{
	int col = TABLE_COLUMNS;

	for (size_t f = 0; f < LAYOUT_COUNT; f++) {
		char item[64];
		int n = snprintf(item, sizeof(item), "[LAYOUT_%s] = %d,",
				 layout_field_name((enum layout_field)f), off[f]);

		col += 1 + n;
		if (col > TABLE_COLUMNS) {
			printf("\n\t\t");
			col = 16 + n;
		} else {
			printf(" ");
		}
		printf("%s", item);
	}
}

static void print_offsets(void)
{
	puts("const int32_t layout_offsets[][LAYOUT_COUNT] = {");
	for (size_t i = 0; i < noffsets; i++) {
		printf("\t{\n\t\t/* %zu */", i);
		print_set(offsets[i]);
		puts("\n\t},");
	}
	puts("};\n");
}

static void print_classes(void)
{
	puts("const struct sizeclasses layout_classes[] = {");
	for (size_t i = 0; i < nclasses; i++) {
		printf("\t{\n\t\t/* %zu */\n\t\t.n = %u, .header_over = %u, .page = %u,\n"
		       "\t\t.size = {",
		       i, classes[i].n, classes[i].header_over, classes[i].page);
		for (uint32_t k = 0; k < classes[i].n; k++)
			printf("%s%u,", k % 12 ? " " : "\n\t\t\t", classes[i].size[k]);
		puts("\n\t\t},\n\t},");
	}
	puts("};\n/* clang-format on */");
}

static void print_table(void)
{
	puts("/*\n * user/go/layout/layout_tab.c - GENERATED by tests/support/layoutgen.sh; do not edit.\n"
	     " *\n * Offsets of runtime structs per Go release, read from the DWARF of a program\n"
	     " * that the official toolchain of that release built; its checksum in the module\n"
	     " * checksum database stands beside it. Releases that agree share a set. A row: arch,\n"
	     " * minor, patch, set of offsets, set of slot sizes.\n */\n"
	     "#include \"go/layout/layout_priv.h\"\n\n/* clang-format off */");
	print_rows();
	print_offsets();
	print_classes();
}

/* ---- checks ---------------------------------------------------------------------------------- */

static const unsigned int uses = LAYOUT_USE_PROBE | LAYOUT_USE_WAITS | LAYOUT_USE_GOROUTINES;
static int wrong;
static unsigned int tried, answered;

static void say(const struct line *in, const char *what, const char *of)
{
	printf("go1.%u.%u %s: %s%s\n", in->minor, in->patch, in->arch, what, of);
	wrong = 1;
}

/* Compares the last binary that was added with the table that is built in. */
static void check_row(const struct line *in)
{
	const struct layout_row *mine = &rows[nrows - 1].r, *r;
	enum layout_how how;

	r = layout_row_find((enum arch_id)mine->arch, (int)in->minor, (int)in->patch, &how);
	if (!r || how != LAYOUT_TABLE) {
		say(in, "the table does not know this release", "");
		return;
	}
	for (size_t f = 0; f < LAYOUT_COUNT; f++)
		if (layout_offsets[r->offsets][f] != offsets[mine->offsets][f])
			say(in, "the table is wrong of ", layout_field_name((enum layout_field)f));
	if (memcmp(&layout_classes[r->classes], &classes[mine->classes], sizeof(classes[0])))
		say(in, "the table is wrong of the slot sizes", "");
}

static const char *struct_of(size_t f)
{
	static const char *const structs[LAYOUT_COUNT] = {
#define STRUCT(id, s, f) s,
		LAYOUT_FIELDS(STRUCT)
#undef STRUCT
	};

	return structs[f];
}

/*
 * Moves offsets as if a word or more had been added or removed before the field @from: all fields
 * behind it move.
 */
static void move_tail(struct golayout *l, size_t from, int by)
{
	int32_t at = l->off[from];

	for (size_t f = 0; f < LAYOUT_COUNT; f++)
		if (!strcmp(struct_of(f), struct_of(from)) && l->off[f] >= at)
			l->off[f] += by;
}

/*
 * Is this a field that the live process decides: layout_check_goroutines(), layout_check_tiny()?
 */
static bool is_live(size_t f)
{
	return f == LAYOUT_g_sched_bp || f == LAYOUT_mcache_tiny || f == LAYOUT_mcache_tinyoffset;
}

/* What is derived from wrong offsets must be right, or be refused. */
static void check_derived(const struct line *in, struct gobin *b, const struct golayout *truth,
			  const struct golayout *wrong_one, const char *which)
{
	struct golayout l = *wrong_one;
	char what[128];
	struct err e = { 0 };
	int rc = layout_check_code(b, &l, uses, &e);

	tried++;
	if (rc) {
		if (getenv("VERBOSE"))
			printf("%u.%u from %s: %s\n", in->minor, in->patch, which, e.msg);
		return;
	}
	answered++;
	for (size_t f = 0; f < LAYOUT_COUNT; f++) {
		if (!layout_code_uses((enum layout_field)f) || is_live(f) ||
		    l.off[f] == truth->off[f])
			continue;
		snprintf(what, sizeof(what), "from %s not noticed: %d, not %d, is ", which,
			 l.off[f], truth->off[f]);
		say(in, what, layout_field_name((enum layout_field)f));
	}
}

/* The first fields of a struct stay, because nothing was ever put before them. */
static void check_moved(const struct line *in, struct gobin *b, const struct golayout *l,
			size_t from)
{
	char which[64];

	for (int by = -8; by <= 32; by += 8) {
		struct golayout moved = *l;

		move_tail(&moved, from, by);
		snprintf(which, sizeof(which), "%s and all behind it %d off",
			 layout_field_name((enum layout_field)from), by);
		if (by)
			check_derived(in, b, l, &moved, which);
	}
}

/* Tries every older release's offsets, as a program would that does not know this release yet. */
static void check_others(const struct line *in, struct gobin *b, const struct golayout *l)
{
	for (size_t i = 0; i < layout_nrows; i++) {
		const struct layout_row *r = &layout_rows[i];
		struct golayout other = *l;
		char which[32];

		if (r->arch != rows[nrows - 1].r.arch || r->minor >= in->minor)
			continue;
		for (size_t f = 0; f < LAYOUT_COUNT; f++)
			other.off[f] = layout_offsets[r->offsets][f];
		snprintf(which, sizeof(which), "go1.%u.%u", r->minor, r->patch);
		check_derived(in, b, l, &other, which);
	}
}

static void check_code(const struct line *in)
{
	/* The fields behind these are not used, or (ncgo) only by programs with cgo. */
	static const enum layout_field from[] = { LAYOUT_g_m,	     LAYOUT_g_sched_sp,
						  LAYOUT_g_sched_bp, LAYOUT_m_curg,
						  LAYOUT_m_p,	     LAYOUT_m_preemptoff,
						  LAYOUT_m_vdsosp };
	struct golayout l = { .from = "its DWARF" }, same;
	struct sizeclasses c = classes[rows[nrows - 1].r.classes];
	struct gobin *b = NULL;
	struct err e = { 0 };
	int fd = open(in->path, O_RDONLY | O_CLOEXEC);

	memcpy(l.off, offsets[rows[nrows - 1].r.offsets], sizeof(l.off));
	if (fd < 0 || gobin_open(fd, in->path, NULL, 0, &b, &e) < 0)
		die(in->path, e.msg);
	same = l;
	if (layout_check_code(b, &same, uses, &e) < 0)
		say(in, "", e.msg);
	for (size_t i = 0; i < ARRAY_LEN(from); i++)
		check_moved(in, b, &l, from[i]);
	check_others(in, b, &l);
	if (layout_check_sizeclasses(b, &c, &e) < 0)
		say(in, "", e.msg);
	c.size[5] += 8;
	if (!layout_check_sizeclasses(b, &c, NULL))
		say(in, "not noticed: another slot size", "");
	gobin_free(b);
	close(fd);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	struct line in;

	elf_version(EV_CURRENT);
	while (scanf("%u %u %15s %1023s %63s %2047s", &in.minor, &in.patch, in.arch, in.classes,
		     in.sum, in.path) == 6) {
		add(&in);
		if (!strcmp(mode, "--check"))
			check_row(&in);
		if (!strcmp(mode, "--code"))
			check_code(&in);
	}
	if (!nrows || ferror(stdin) || !feof(stdin))
		die("stdin", "no rows, or a line that is not MINOR PATCH ARCH CLASSES SUM PATH");
	if (!*mode)
		print_table();
	if (!strcmp(mode, "--code"))
		fprintf(stderr, "%u wrong sets of offsets tried, %u of them set right\n", tried,
			answered);
	return fflush(stdout) || ferror(stdout) || wrong;
}
