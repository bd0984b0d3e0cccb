/*
 * user/go/image/elf/dwarfimg.c - debug sections, found, checked, inflated and laid out anew.
 *
 * libdw loads and inflates every debug section of a file it is given. A Go binary's line and range
 * tables are most of its DWARF and say nothing of structs, so libdw is shown an ELF image in memory
 * that holds the few sections that are wanted, inflated by us within bounds.
 */
#include "go/image/elf/dwarfimg.h"

#include <gelf.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/limits.h"

enum {
	/* No Go linker's DWARF exceeds this; a lying header must not make us reserve more. */
	DWARF_SECTION_MAX = 1 << 30,
	/* zlib cannot compress better than about 1032 to 1. */
	ZLIB_RATIO_MAX = 1040,
};

/* Names without their dot. */
struct want {
	const char *const *names;
	size_t n;
};

/* One debug section as it lies in the file. */
struct section {
	uint64_t off, size; /* of the stored bytes, compression header left out */
	uint64_t full;	    /* bytes once inflated; 0: the section is not there */
	bool packed;
	bool narrow, big_endian; /* as the file is */
};

static void elf_endp(Elf **elf)
{
	if (*elf)
		elf_end(*elf);
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

static uint64_t number(const struct section *s, const uint8_t *at, size_t n)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		v = v << 8 | at[s->big_endian ? i : n - 1 - i];
	return v;
}

static int elf_header(int fd, struct section *s, struct err *e)
{
	size_t n = s->narrow ? sizeof(Elf32_Chdr) : sizeof(Elf64_Chdr);
	uint8_t h[sizeof(Elf64_Chdr)];
	uint64_t method;
	int rc;

	if (s->size < n)
		return err_set(e, -EBADMSG,
			       "a compressed debug section of %llu bytes has no header",
			       (unsigned long long)s->size);
	rc = read_exact(fd, h, n, s->off, e);
	if (rc < 0)
		return rc;
	method = number(s, h, 4);
	if (method != ELFCOMPRESS_ZLIB)
		return err_set(e, -ENOTSUP, "debug data compressed by method %llu, not zlib",
			       (unsigned long long)method);
	s->full = s->narrow ? number(s, h + offsetof(Elf32_Chdr, ch_size), 4) :
			      number(s, h + offsetof(Elf64_Chdr, ch_size), 8);
	s->off += n;
	s->size -= n;
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

/* Index into the wanted ones, or -1. */
static int wanted_index(const struct want *w, const char *name, bool *old_style)
{
	*old_style = !strncmp(name, ".z", 2);
	name += *old_style ? 2 : 1;
	for (size_t i = 0; i < w->n; i++)
		if (!strcmp(name, w->names[i]))
			return (int)i;
	return -1;
}

static int find_sections(int fd, const struct want *w, struct section *out, struct err *e)
{
	Elf *elf CLEANUP(elf_endp) = NULL;
	Elf_Scn *scn = NULL;
	const char *ident = NULL;
	size_t names, seen = 0;
	struct stat st;

	memset(out, 0, sizeof(*out) * w->n);
	if (fstat(fd, &st) < 0)
		return err_sys(e, "the file with the debug data");
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf || elf_kind(elf) != ELF_K_ELF || !(ident = elf_getident(elf, NULL)) ||
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
		i = name && name[0] == '.' ? wanted_index(w, name, &old_style) : -1;
		if (i < 0 || out[i].full)
			continue;
		out[i] = (struct section){ .off = sh.sh_offset,
					   .size = sh.sh_size,
					   .narrow = ident[EI_CLASS] == ELFCLASS32,
					   .big_endian = ident[EI_DATA] == ELFDATA2MSB };
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
	if (!rc && zrc != Z_STREAM_END && zrc != Z_OK)
		rc = err_set(e, -EBADMSG,
			     "debug data in the file from 0x%llx on cannot be inflated (zlib: %s)",
			     (unsigned long long)s->off, zError(zrc));
	else if (!rc && (zrc != Z_STREAM_END || z.total_out != s->full))
		rc = err_set(e, -EBADMSG,
			     "debug data in the file from 0x%llx on inflates to %lu bytes%s, where "
			     "its header says %llu",
			     (unsigned long long)s->off, z.total_out,
			     zrc == Z_STREAM_END ? "" : " before it breaks off",
			     (unsigned long long)s->full);
	return rc;
}

/* Headers as the file's byte order has them. */
static int write_headers(const struct section *sec, Elf64_Ehdr *eh, Elf64_Shdr *sh, size_t nsh,
			 uint8_t *to, struct err *e)
{
	unsigned order = sec->big_endian ? ELFDATA2MSB : ELFDATA2LSB;
	Elf_Data from = {
		.d_buf = eh, .d_type = ELF_T_EHDR, .d_size = sizeof(*eh), .d_version = EV_CURRENT
	};
	Elf_Data out = { .d_buf = to, .d_size = sizeof(*eh), .d_version = EV_CURRENT };

	eh->e_ident[EI_DATA] = (unsigned char)order;
	if (!elf64_xlatetof(&out, &from, order))
		return err_set(e, -EBADMSG, "headers of debug data: %s", elf_errmsg(-1));
	from = (Elf_Data){ .d_buf = sh,
			   .d_type = ELF_T_SHDR,
			   .d_size = nsh * sizeof(*sh),
			   .d_version = EV_CURRENT };
	out.d_buf = to + sizeof(*eh);
	out.d_size = from.d_size;
	if (!elf64_xlatetof(&out, &from, order))
		return err_set(e, -EBADMSG, "headers of debug data: %s", elf_errmsg(-1));
	return 0;
}

/*
 * Lays the image out: ELF header, section headers, names, sections. It is one of 64 bits for all: the
 * debug data says itself how long its addresses are.
 */
static int image_build(int fd, const struct want *w, const struct section *sec, struct dwarfimg *im,
		       struct err *e)
{
	enum { MOST = DWARFIMG_SECTIONS + 2, NAMES = 32 * DWARFIMG_SECTIONS };
	size_t nsh = w->n + 2;
	Elf64_Ehdr eh = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT },
			  .e_type = ET_EXEC,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_ehsize = sizeof(eh),
			  .e_shentsize = sizeof(Elf64_Shdr),
			  .e_shnum = (Elf64_Half)nsh,
			  .e_shstrndx = (Elf64_Half)(nsh - 1),
			  .e_shoff = sizeof(eh) };
	Elf64_Shdr sh[MOST] = { { 0 } };
	char names[NAMES] = "";
	size_t at = sizeof(eh) + sizeof(sh), name = 1;
	int rc;

	sh[nsh - 1] = (Elf64_Shdr){
		.sh_type = SHT_STRTAB, .sh_offset = at, .sh_size = NAMES, .sh_addralign = 1
	};
	at += NAMES;
	im->len = at;
	for (size_t i = 0; i < w->n; i++)
		im->len += sec[i].full; /* each is at most DWARF_SECTION_MAX */
	if (im->len - at > LIMIT_DWARF_IMAGE)
		return err_set(e, -E2BIG, "the DWARF has %zu MiB, more than the %d that are read",
			       (im->len - at) >> 20, LIMIT_DWARF_IMAGE >> 20);
	im->bytes = malloc(im->len);
	if (!im->bytes)
		return err_set(e, -ENOMEM, "no memory for %zu bytes of debug data", im->len);
	for (size_t i = 0; i < w->n; i++) {
		sh[i + 1] = (Elf64_Shdr){ .sh_name = (Elf64_Word)name,
					  .sh_type = SHT_PROGBITS,
					  .sh_offset = at,
					  .sh_size = sec[i].full,
					  .sh_addralign = 1 };
		/* Absent sections keep a name that libdw does not know. */
		name += 1 + (size_t)snprintf(names + name, NAMES - name, "%s%s",
					     sec[i].full ? "." : "-", w->names[i]);
		rc = sec[i].packed ? inflate_section(fd, &sec[i], im->bytes + at, e) :
				     read_exact(fd, im->bytes + at, sec[i].full, sec[i].off, e);
		if (rc < 0)
			return rc;
		at += sec[i].full;
	}
	memcpy(im->bytes + sizeof(eh) + sizeof(sh), names, NAMES);
	return write_headers(&sec[0], &eh, sh, MOST, im->bytes, e);
}

int dwarfimg_bytes(int fd, uint64_t *bytes, struct err *e)
{
	static const char *const info[] = { "debug_info" };
	const struct want w = { info, 1 };
	struct section sec[1];
	int rc = find_sections(fd, &w, sec, e);

	if (rc < 0)
		return rc;
	*bytes = sec[0].full;
	return 0;
}

int dwarfimg_read(int fd, const char *const *names, size_t n, struct dwarfimg *out, struct err *e)
{
	const struct want w = { names, n };
	struct section sec[DWARFIMG_SECTIONS];
	int rc;

	BUG_ON(n > DWARFIMG_SECTIONS);
	rc = find_sections(fd, &w, sec, e);
	if (rc < 0)
		return rc;
	if (!sec[0].full || !sec[1].full)
		return err_set(e, -ENOENT, "no DWARF");
	*out = (struct dwarfimg){};
	rc = image_build(fd, &w, sec, out, e);
	if (rc < 0)
		dwarfimg_fini(out);
	return rc;
}

void dwarfimg_fini(struct dwarfimg *im)
{
	free(im->bytes);
	*im = (struct dwarfimg){};
}
