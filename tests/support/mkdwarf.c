/* tests/support/mkdwarf.c - see mkdwarf.h. */
#include "mkdwarf.h"

#include <elf.h>
#include <string.h>
#include <zlib.h>

struct buf {
	uint8_t at[2048];
	size_t n;
};

static void put(struct buf *b, const void *p, size_t n)
{
	memcpy(b->at + b->n, p, n);
	b->n += n;
}

static void put8(struct buf *b, uint8_t v)
{
	put(b, &v, 1);
}

static void put32(struct buf *b, uint32_t v)
{
	put(b, &v, 4);
}

static void put_name(struct buf *b, const char *s)
{
	put(b, s, strlen(s) + 1);
}

static void put_uleb(struct buf *b, uint64_t v)
{
	do {
		put8(b, (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0)));
		v >>= 7;
	} while (v);
}

enum { UNIT = 1, STRUCT, MEMBER, TYPEDEF, BASE };

/* Abbreviations: code, tag, children, pairs of attribute and form. */
static void abbrevs(const struct mkdwarf *how, struct buf *b)
{
	uint8_t location = how->location_expression ? 0x18 : 0x0f; /* exprloc : udata */
	const uint8_t all[] = { UNIT, 0x11, 1,	      0x03, 0x08, 0, 0,	     STRUCT,  0x13, 1,
				0x03, 0x08, 0x0b,     0x0f, 0,	  0, MEMBER, 0x0d,    0,    0x03,
				0x08, 0x38, location, 0x49, 0x10, 0, 0,	     TYPEDEF, 0x16, 0,
				0x03, 0x08, 0x49,     0x10, 0,	  0, BASE,   0x24,    0,    0x03,
				0x08, 0x0b, 0x0f,     0,    0,	  0 };

	put(b, all, sizeof(all));
}

static void open_struct(struct buf *b, const char *name, uint64_t size)
{
	put8(b, STRUCT);
	put_name(b, name);
	put_uleb(b, size);
}

static void member(const struct mkdwarf *how, struct buf *b, const char *name, uint64_t off,
		   size_t type)
{
	put8(b, MEMBER);
	put_name(b, name);
	if (how->location_expression) {
		struct buf e = { .n = 0 };

		put8(&e, 0x23); /* DW_OP_plus_uconst */
		put_uleb(&e, off);
		put_uleb(b, e.n);
		put(b, e.at, e.n);
	} else {
		put_uleb(b, off);
	}
	put32(b, (uint32_t)type);
}

static void close_struct(struct buf *b)
{
	put8(b, 0);
}

static void unit_header(const struct mkdwarf *how, struct buf *b)
{
	put32(b, 0); /* length: see info() */
	put(b, &(uint16_t){ (uint16_t)how->version }, 2);
	if (how->version >= 5) {
		put8(b, 1); /* DW_UT_compile */
		put8(b, 8);
		put32(b, 0);
	} else {
		put32(b, 0);
		put8(b, 8);
	}
	put8(b, UNIT);
	put_name(b, "runtime");
}

static void info(const struct mkdwarf *how, struct buf *b)
{
	size_t word, stack, alias, pair;
	uint32_t length;

	unit_header(how, b);
	word = b->n;
	put8(b, BASE);
	put_name(b, "uintptr");
	put_uleb(b, 8);
	stack = b->n;
	open_struct(b, "runtime.stack", 16);
	member(how, b, "lo", 0, word);
	member(how, b, "hi", 8, word);
	close_struct(b);
	alias = b->n;
	put8(b, TYPEDEF);
	put_name(b, "runtime.stackAlias");
	put32(b, (uint32_t)stack);
	if (!how->no_g) {
		open_struct(b, "runtime.g", 400);
		member(how, b, "stack", 16, alias);
		member(how, b, "m", 48, word);
		member(how, b, "mark", 56, word); /* begins like m */
		close_struct(b);
	}
	open_struct(b, "runtime.m", 900);
	member(how, b, "curg", 300, word);
	close_struct(b);
	open_struct(b, "runtime.bucket", 48);
	member(how, b, "size", 32, word);
	close_struct(b);
	pair = b->n;
	open_struct(b, "runtime.maybeTraceablePtr", 16);
	member(how, b, "vp", 0, word);
	member(how, b, "vu", 8, word);
	close_struct(b);
	open_struct(b, "runtime.sudog", 104);
	member(how, b, "elem", 24, how->old_sudog ? word : pair);
	close_struct(b);
	open_struct(b, "internal/abi.Type", 48);
	member(how, b, "PtrBytes", 8, word);
	close_struct(b);
	open_struct(b, "runtime.mspan", 200);
	member(how, b, "largeType", 120, word);
	close_struct(b);
	put8(b, 0); /* end of the unit's children */
	length = (uint32_t)b->n - 4;
	memcpy(b->at, &length, 4);
}

static void packed(const struct mkdwarf *how, const struct buf *in, uint64_t claim, struct buf *out)
{
	uint64_t size = claim ? claim : in->n;
	uLongf left;

	if (how->packing == MKDWARF_PLAIN) {
		put(out, in->at, in->n);
		return;
	}
	if (how->packing == MKDWARF_ZDEBUG) {
		put(out, "ZLIB", 4);
		for (int i = 7; i >= 0; i--)
			put8(out, (uint8_t)(size >> (8 * i)));
	} else {
		Elf64_Chdr h = { .ch_type = ELFCOMPRESS_ZLIB, .ch_size = size, .ch_addralign = 1 };

		put(out, &h, sizeof(h));
	}
	left = sizeof(out->at) - out->n;
	compress(out->at + out->n, &left, in->at, in->n);
	out->n += left;
}

size_t mkdwarf(const struct mkdwarf *how, uint8_t out[MKDWARF_MAX])
{
	static const char names[] =
		"\0.debug_info\0.zdebug_info\0.debug_abbrev\0.zdebug_abbrev\0.names";
	struct buf raw[2] = { { .n = 0 }, { .n = 0 } }, sec[2] = { { .n = 0 }, { .n = 0 } };
	int z = how->packing == MKDWARF_ZDEBUG;
	Elf64_Ehdr eh = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			  .e_type = ET_EXEC,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_shoff = sizeof(eh),
			  .e_ehsize = sizeof(eh),
			  .e_shentsize = sizeof(Elf64_Shdr),
			  .e_shnum = 4,
			  .e_shstrndx = 3 };
	Elf64_Shdr sh[4] = { { 0 } };
	size_t at = sizeof(eh) + sizeof(sh);

	info(how, &raw[0]);
	abbrevs(how, &raw[1]);
	for (int i = 0; i < 2; i++) {
		packed(how, &raw[i], i ? 0 : how->claim, &sec[i]);
		sh[i + 1] = (Elf64_Shdr){ .sh_name = (i ? 26 : 1) + (z ? (i ? 14 : 12) : 0),
					  .sh_type = SHT_PROGBITS,
					  .sh_offset = at,
					  .sh_flags = how->packing == MKDWARF_COMPRESSED ?
							      SHF_COMPRESSED :
							      0,
					  .sh_size = sec[i].n,
					  .sh_addralign = 1 };
		memcpy(out + at, sec[i].at, sec[i].n);
		at += sec[i].n;
	}
	sh[3] = (Elf64_Shdr){ .sh_name = 55,
			      .sh_type = SHT_STRTAB,
			      .sh_offset = at,
			      .sh_size = sizeof(names),
			      .sh_addralign = 1 };
	memcpy(out + at, names, sizeof(names));
	at += sizeof(names);
	memcpy(out, &eh, sizeof(eh));
	memcpy(out + sizeof(eh), sh, sizeof(sh));
	return at;
}
