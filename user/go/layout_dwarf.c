/*
 * user/go/layout_dwarf.c - struct offsets from a binary's DWARF, through libdw.
 *
 * libdw loads and inflates every debug section of a file it is given. A Go binary's line,
 * location and range tables are most of its DWARF and say nothing of structs, so libdw is
 * shown an ELF image in memory that holds the few sections it needs, inflated by us within
 * bounds. The linker puts all types into the unit of package runtime
 * (Source: cmd/link/internal/ld/dwarf.go, Go 1.16-1.27), which is thus looked at first.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/limits.h"
#include "base/vec.h"
#include "go/layout_priv.h"

enum {
	/* No Go linker's DWARF exceeds this; a lying header must not make us reserve more. */
	DWARF_SECTION_MAX = 1 << 30,
	/* zlib cannot compress better than about 1032 to 1. */
	ZLIB_RATIO_MAX = 1040,
	TYPEDEF_DEPTH = 8,
	UNITS_MAX = 1 << 20,
	/* No offset that is asked for is larger: heapArena is 2 MiB (go1.16), mheap 80 KiB. */
	OFFSET_MAX = 1 << 24,
};

static const char *const wanted[] = { "debug_info", "debug_abbrev", "debug_str", "debug_line_str",
				      "debug_str_offsets" };
enum { WANTED = ARRAY_LEN(wanted) };

/* One debug section as it lies in the file. */
struct section {
	uint64_t off, size; /* of the stored bytes, compression header left out */
	uint64_t full;	    /* bytes once inflated; 0: the section is not there */
	bool packed;
};

struct image {
	uint8_t *bytes;
	size_t len;
};

static void elf_endp(Elf **elf)
{
	if (*elf)
		elf_end(*elf);
}

static void dwarf_endp(Dwarf **dw)
{
	if (*dw)
		dwarf_end(*dw);
}

static int read_exact(int fd, void *buf, size_t n, uint64_t off, struct err *e)
{
	uint8_t *to = buf;

	while (n) {
		ssize_t got = pread(fd, to, n, (off_t)off);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(e, "reading the debug data at 0x%llx",
				       (unsigned long long)off);
		if (got == 0)
			return err_set(e, -EBADMSG,
				       "the debug data ends at 0x%llx, %zu bytes early",
				       (unsigned long long)off, n);
		to += got;
		off += (uint64_t)got;
		n -= (size_t)got;
	}
	return 0;
}

/* ".zdebug_x": "ZLIB", then the inflated size, big endian. Source: binutils; Go to 1.18. */
static int old_style_header(int fd, struct section *s, struct err *e)
{
	uint8_t h[12];
	int rc;

	if (s->size < sizeof(h))
		return err_set(e, -EBADMSG, "a .zdebug section of %llu bytes has no header",
			       (unsigned long long)s->size);
	rc = read_exact(fd, h, sizeof(h), s->off, e);
	if (rc < 0)
		return rc;
	if (memcmp(h, "ZLIB", 4))
		return err_set(e, -EBADMSG, "a .zdebug section does not begin with ZLIB");
	s->full = 0;
	for (int i = 4; i < 12; i++)
		s->full = s->full << 8 | h[i];
	s->off += sizeof(h);
	s->size -= sizeof(h);
	s->packed = true;
	return 0;
}

static int elf_header(int fd, struct section *s, struct err *e)
{
	Elf64_Chdr h;
	int rc;

	if (s->size < sizeof(h))
		return err_set(e, -EBADMSG,
			       "a compressed debug section of %llu bytes has no header",
			       (unsigned long long)s->size);
	rc = read_exact(fd, &h, sizeof(h), s->off, e);
	if (rc < 0)
		return rc;
	if (h.ch_type != ELFCOMPRESS_ZLIB)
		return err_set(e, -ENOTSUP, "debug data compressed by method %u, not zlib",
			       h.ch_type);
	s->full = h.ch_size;
	s->off += sizeof(h);
	s->size -= sizeof(h);
	s->packed = true;
	return 0;
}

static int section_sizes(int fd, uint64_t file, bool old_style, uint64_t flags, struct section *s,
			 struct err *e)
{
	int rc = 0;

	if (s->size > file || s->off > file - s->size)
		return err_set(e, -EBADMSG, "debug data at 0x%llx + %llu in a file of %llu bytes",
			       (unsigned long long)s->off, (unsigned long long)s->size,
			       (unsigned long long)file);
	if (old_style)
		rc = old_style_header(fd, s, e);
	else if (flags & SHF_COMPRESSED)
		rc = elf_header(fd, s, e);
	else
		s->full = s->size;
	if (rc < 0)
		return rc;
	if (s->full > DWARF_SECTION_MAX || (s->packed && s->full / ZLIB_RATIO_MAX > s->size))
		return err_set(e, -E2BIG, "a debug section claims %llu bytes out of %llu",
			       (unsigned long long)s->full, (unsigned long long)s->size);
	return 0;
}

/* Index into wanted, or -1. */
static int wanted_index(const char *name, bool *old_style)
{
	*old_style = !strncmp(name, ".z", 2);
	name += *old_style ? 2 : 1;
	for (size_t i = 0; i < WANTED; i++)
		if (!strcmp(name, wanted[i]))
			return (int)i;
	return -1;
}

static int find_sections(int fd, struct section out[WANTED], struct err *e)
{
	Elf *elf CLEANUP(elf_endp) = NULL;
	Elf_Scn *scn = NULL;
	size_t names, seen = 0;
	struct stat st;

	memset(out, 0, sizeof(*out) * WANTED);
	if (fstat(fd, &st) < 0)
		return err_sys(e, "the file with the debug data");
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf || elf_kind(elf) != ELF_K_ELF || gelf_getclass(elf) != ELFCLASS64 ||
	    elf_getshdrstrndx(elf, &names) < 0)
		return err_set(e, -EBADMSG, "no readable section table: %s", elf_errmsg(-1));
	while ((scn = elf_nextscn(elf, scn)) && seen++ < LIMIT_SECTIONS) {
		const char *name;
		GElf_Shdr sh;
		bool old_style;
		int i, rc;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type == SHT_NOBITS)
			continue;
		name = elf_strptr(elf, names, sh.sh_name);
		i = name && name[0] == '.' ? wanted_index(name, &old_style) : -1;
		if (i < 0 || out[i].full)
			continue;
		out[i].off = sh.sh_offset;
		out[i].size = sh.sh_size;
		rc = section_sizes(fd, (uint64_t)st.st_size, old_style, sh.sh_flags, &out[i], e);
		if (rc < 0)
			return err_wrap(e, rc, "%s", name);
	}
	return 0;
}

static int inflate_section(int fd, const struct section *s, uint8_t *to, struct err *e)
{
	uint8_t in[16384];
	uint64_t off = s->off, left = s->size;
	z_stream z = { .next_out = to, .avail_out = (uInt)s->full };
	int zrc = Z_OK, rc = 0;

	if (inflateInit(&z) != Z_OK)
		return err_set(e, -ENOMEM, "no memory to inflate debug data");
	while (zrc == Z_OK && left && !rc) {
		size_t n = left < sizeof(in) ? (size_t)left : sizeof(in);

		rc = read_exact(fd, in, n, off, e);
		if (rc < 0)
			break;
		z.next_in = in;
		z.avail_in = (uInt)n;
		zrc = inflate(&z, Z_NO_FLUSH);
		off += n;
		left -= n;
	}
	inflateEnd(&z);
	if (!rc && (zrc != Z_STREAM_END || z.total_out != s->full))
		rc = err_set(e, -EBADMSG, "debug data inflates to %lu bytes, not %llu", z.total_out,
			     (unsigned long long)s->full);
	return rc;
}

/*
 * Lays the image out: ELF header, section headers, names, sections. Names are those of wanted[].
 */
static int image_build(int fd, const struct section sec[WANTED], struct image *im, struct err *e)
{
	enum { NSH = WANTED + 2, NAMES = 128 };
	Elf64_Ehdr eh = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT },
			  .e_type = ET_EXEC,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_ehsize = sizeof(eh),
			  .e_shentsize = sizeof(Elf64_Shdr),
			  .e_shnum = NSH,
			  .e_shstrndx = NSH - 1,
			  .e_shoff = sizeof(eh) };
	Elf64_Shdr sh[NSH] = { { 0 } };
	char names[NAMES] = "";
	size_t at = sizeof(eh) + sizeof(sh), name = 1;
	int rc;

	sh[NSH - 1] = (Elf64_Shdr){
		.sh_type = SHT_STRTAB, .sh_offset = at, .sh_size = NAMES, .sh_addralign = 1
	};
	at += NAMES;
	im->len = at;
	for (size_t i = 0; i < WANTED; i++)
		im->len += sec[i].full; /* each is at most DWARF_SECTION_MAX */
	if (im->len - at > LIMIT_DWARF_IMAGE)
		return err_set(e, -E2BIG, "the DWARF has %zu MiB, more than the %d that are read",
			       (im->len - at) >> 20, LIMIT_DWARF_IMAGE >> 20);
	im->bytes = malloc(im->len);
	if (!im->bytes)
		return err_set(e, -ENOMEM, "no memory for %zu bytes of debug data", im->len);
	for (size_t i = 0; i < WANTED; i++) {
		sh[i + 1] = (Elf64_Shdr){ .sh_name = (Elf64_Word)name,
					  .sh_type = SHT_PROGBITS,
					  .sh_offset = at,
					  .sh_size = sec[i].full,
					  .sh_addralign = 1 };
		/* Absent sections keep a name that libdw does not know. */
		name += 1 + (size_t)snprintf(names + name, NAMES - name, "%s%s",
					     sec[i].full ? "." : "-", wanted[i]);
		rc = sec[i].packed ? inflate_section(fd, &sec[i], im->bytes + at, e) :
				     read_exact(fd, im->bytes + at, sec[i].full, sec[i].off, e);
		if (rc < 0)
			return rc;
		at += sec[i].full;
	}
	memcpy(im->bytes, &eh, sizeof(eh));
	memcpy(im->bytes + sizeof(eh), sh, sizeof(sh));
	memcpy(im->bytes + sizeof(eh) + sizeof(sh), names, NAMES);
	return 0;
}

/* ---- the fields ------------------------------------------------------------------------------ */

struct field {
	const char *strct, *name; /* name NULL: the size of the struct */
};

static const struct field fields[LAYOUT_COUNT] = {
#define LAYOUT_FIELD(id, s, f) { s, f },
	LAYOUT_FIELDS(LAYOUT_FIELD)
#undef LAYOUT_FIELD
};

/*
 * What a field was called elsewhere. Source: runtime/type.go to 1.20, internal/abi/type.go;
 * sudog.elem is a pointer to Go 1.25, then a maybeTraceablePtr, whose second word is the one
 * that always holds the address (runtime2.go, "source of truth").
 */
static const struct {
	enum layout_field id;
	struct field also;
} renamed[] = {
	{ LAYOUT_type_size, { "internal/abi.Type", "Size_" } },
	{ LAYOUT_type_ptrdata, { "internal/abi.Type", "PtrBytes" } },
	{ LAYOUT_type_tflag, { "internal/abi.Type", "TFlag" } },
	{ LAYOUT_type_kind, { "internal/abi.Type", "Kind_" } },
	{ LAYOUT_type_str, { "internal/abi.Type", "Str" } },
	{ LAYOUT_type_sizeof, { "internal/abi.Type", NULL } },
	{ LAYOUT_uncommon_pkgpath, { "internal/abi.UncommonType", "PkgPath" } },
	{ LAYOUT_sudog_elem, { "runtime.sudog", "elem" } },
};

struct search {
	int32_t *off;
	uint32_t *header_over;
	bool found[LAYOUT_COUNT]; /* the struct was seen */
	bool span_found;
	size_t left;
};

static bool peel(Dwarf_Die *die, Dwarf_Die *type)
{
	Dwarf_Attribute at;

	if (!dwarf_attr(die, DW_AT_type, &at) || !dwarf_formref_die(&at, type))
		return false;
	for (int i = 0; i < TYPEDEF_DEPTH && dwarf_tag(type) == DW_TAG_typedef; i++) {
		Dwarf_Die next;

		if (!dwarf_attr(type, DW_AT_type, &at) || !dwarf_formref_die(&at, &next))
			return false;
		*type = next;
	}
	return dwarf_tag(type) == DW_TAG_structure_type;
}

static bool member_offset(Dwarf_Die *m, uint64_t *off)
{
	Dwarf_Attribute at;
	Dwarf_Word v;
	Dwarf_Op *op;
	size_t n;

	if (!dwarf_attr(m, DW_AT_data_member_location, &at))
		return false;
	if (!dwarf_formudata(&at, &v)) {
		*off = v;
		return true;
	}
	if (dwarf_getlocation(&at, &op, &n) || n != 1 || op[0].atom != DW_OP_plus_uconst)
		return false;
	*off = op[0].number;
	return true;
}

static bool find_member(Dwarf_Die *strct, const char *name, size_t len, Dwarf_Die *out)
{
	int n = 0;

	if (dwarf_child(strct, out))
		return false;
	do {
		const char *have = dwarf_tag(out) == DW_TAG_member ? dwarf_diename(out) : NULL;

		if (have && !strncmp(have, name, len) && !have[len])
			return true;
	} while (++n < LIMIT_NAME && !dwarf_siblingof(out, out));
	return false;
}

/* Offset of the dotted @path in @strct, -1 when there is no such field. */
static int32_t path_offset(const Dwarf_Die *strct, const char *path)
{
	Dwarf_Die die = *strct, m;
	uint64_t sum = 0, off;

	for (;;) {
		size_t len = strcspn(path, ".");

		if (!find_member(&die, path, len, &m) || !member_offset(&m, &off) ||
		    off > OFFSET_MAX)
			return -1;
		sum += off;
		if (sum > OFFSET_MAX)
			return -1;
		if (!path[len])
			return (int32_t)sum;
		path += len + 1;
		if (!peel(&m, &die))
			return -1;
	}
}

static int32_t field_value(Dwarf_Die *strct, const char *path)
{
	int size;

	if (path)
		return path_offset(strct, path);
	size = dwarf_bytesize(strct);
	return size >= 0 && size <= OFFSET_MAX ? size : -1;
}

static void take_struct(struct search *s, Dwarf_Die *die, const char *name)
{
	for (size_t i = 0; i < LAYOUT_COUNT; i++) {
		if (s->found[i] || strcmp(fields[i].strct, name))
			continue;
		s->found[i] = true;
		s->left--;
		s->off[i] = field_value(die, fields[i].name);
	}
	for (size_t i = 0; i < ARRAY_LEN(renamed); i++) {
		enum layout_field id = renamed[i].id;

		if (s->off[id] >= 0 || strcmp(renamed[i].also.strct, name))
			continue;
		s->left -= !s->found[id];
		s->found[id] = true;
		s->off[id] = field_value(die, renamed[i].also.name);
	}
	if (!s->span_found && !strcmp(name, "runtime.mspan")) {
		s->span_found = true;
		/*
		 * The type of a large object moved into its span when malloc headers came, in
		 * go1.22.
		 */
		*s->header_over = path_offset(die, "largeType") >= 0 ? 512 : 0;
	}
}

static bool complete(const struct search *s)
{
	return !s->left && s->span_found;
}

static void search_unit(struct search *s, Dwarf_Die *unit)
{
	Dwarf_Die die;
	const char *name;

	if (dwarf_child(unit, &die))
		return;
	do {
		if (dwarf_tag(&die) != DW_TAG_structure_type)
			continue;
		name = dwarf_diename(&die);
		if (name && (!strncmp(name, "runtime.", 8) || !strncmp(name, "internal/abi.", 13)))
			take_struct(s, &die, name);
	} while (!complete(s) && !dwarf_siblingof(&die, &die));
}

/* Searches all units: either the ones of package runtime or all others. */
static void search_units(struct search *s, Dwarf *dw, bool runtime)
{
	Dwarf_Off off = 0, next;
	size_t head;
	int n = 0;

	while (!complete(s) && n++ < UNITS_MAX &&
	       !dwarf_nextcu(dw, off, &next, &head, NULL, NULL, NULL)) {
		Dwarf_Die unit;
		const char *name;

		if (dwarf_offdie(dw, off + head, &unit)) {
			name = dwarf_diename(&unit);
			if (runtime == (name && !strcmp(name, "runtime")))
				search_unit(s, &unit);
		}
		off = next;
	}
}

/* libdw's own handler would write to stderr. */
__attribute__((noreturn)) static void out_of_memory(void)
{
	_exit(LAYOUT_EXIT_NO_MEMORY);
}

static int search_image(const struct image *im, int32_t *off, uint32_t *header_over, struct err *e)
{
	struct search s = { .off = off, .header_over = header_over, .left = LAYOUT_COUNT };
	Elf *elf CLEANUP(elf_endp) = elf_memory((char *)im->bytes, im->len);
	Dwarf *dw CLEANUP(dwarf_endp) = elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;

	if (!dw)
		return err_set(e, -EBADMSG, "unreadable DWARF: %s",
			       elf ? dwarf_errmsg(-1) : elf_errmsg(-1));
	dwarf_new_oom_handler(dw, out_of_memory);
	search_units(&s, dw, true);
	search_units(&s, dw, false);
	if (off[LAYOUT_g_m] < 0 || off[LAYOUT_m_curg] < 0 || off[LAYOUT_bucket_sizeof] < 0)
		return err_set(e, -ENOENT, "the DWARF does not describe runtime.%s",
			       off[LAYOUT_g_m] < 0    ? "g" :
			       off[LAYOUT_m_curg] < 0 ? "m" :
							"bucket");
	return 0;
}

int layout_dwarf_bytes(int fd, uint64_t *bytes, struct err *e)
{
	struct section sec[WANTED];
	int rc = find_sections(fd, sec, e);

	if (rc < 0)
		return rc;
	*bytes = sec[0].full;
	return 0;
}

int layout_dwarf_read(int fd, int32_t off[LAYOUT_COUNT], uint32_t *header_over, struct err *e)
{
	struct section sec[WANTED];
	struct image im = { 0 };
	int rc = find_sections(fd, sec, e);

	if (rc < 0)
		return rc;
	if (!sec[0].full || !sec[1].full)
		return err_set(e, -ENOENT, "no DWARF");
	for (size_t i = 0; i < LAYOUT_COUNT; i++)
		off[i] = -1;
	*header_over = 0;
	rc = image_build(fd, sec, &im, e);
	if (!rc)
		rc = search_image(&im, off, header_over, e);
	free(im.bytes);
	return rc;
}
