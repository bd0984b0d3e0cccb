/* tests/support/mkgobin.c - a small Go executable made by hand. */
#include "mkgobin.h"

#include <elf.h>
#include <sys/mman.h>

enum {
	OFF_PCLN = 0x400, /* of the file: text is below, data above */
	OFF_DATA = 0x1000,
	OFF_MODULE = OFF_DATA + 0x100,
	OFF_DYN = OFF_DATA + 0x500,
	OFF_STR = OFF_DATA + 0x600,
	OFF_SYM = OFF_DATA + 0x700,
	OFF_SHSTR = OFF_DATA + 0x800,
	OFF_SH = OFF_DATA + 0x900,
	N_FUNCS = 4,
};

/* Offsets in the table, the same in all shapes: room is left between the parts. */
enum {
	T_NAMES = 0x60,
	T_CU = 0x100,
	T_FILES = 0x120,
	T_PCTAB = 0x140,
	T_PCLN = 0x200,
	T_RECS = 0x260, /* of the records, from the table's start; 0x60 each */
	T_GOFUNC = 0x400,
	T_END = 0x480,
	REC = 0x60,
};

static const uint32_t starts[N_FUNCS + 1] = { 0, 0x40, 0xc0, 0xd0, 0x100 };

static void put(struct mkgobin *g, size_t at, uint64_t v, size_t n)
{
	memcpy(g->b + at, &v, n);
}

static uint32_t name(struct mkgobin *g, uint32_t *at, const char *s)
{
	uint32_t off = *at;

	memcpy(g->b + g->names + off, s, strlen(s) + 1);
	*at += (uint32_t)strlen(s) + 1;
	return off;
}

/* Runs {value, bytes}, ended by a length of 0, as a pc-value table. Small numbers only. */
static uint32_t pcvals(struct mkgobin *g, uint32_t *at, const int (*runs)[2])
{
	uint32_t off = *at;
	int val = -1;

	for (; (*runs)[1]; runs++) {
		int d = (*runs)[0] - val, len = (*runs)[1];

		g->b[g->pcln + T_PCTAB + (*at)++] = (uint8_t)(d < 0 ? -d * 2 - 1 : d * 2);
		if (len >= 0x80) {
			g->b[g->pcln + T_PCTAB + (*at)++] = (uint8_t)((len & 0x7f) | 0x80);
			len >>= 7;
		}
		g->b[g->pcln + T_PCTAB + (*at)++] = (uint8_t)len;
		val = (*runs)[0];
	}
	g->b[g->pcln + T_PCTAB + (*at)++] = 0;
	return off;
}

static void header(struct mkgobin *g, const struct mkopt *o)
{
	static const uint32_t offs[] = { T_NAMES, T_CU, T_FILES, T_PCTAB, T_PCLN };
	uint32_t magic = o->minor < 18 ? 0xfffffffa : o->minor < 20 ? 0xfffffff0 : 0xfffffff1;
	size_t at = g->pcln + 24;

	put(g, g->pcln, magic, 4);
	g->b[g->pcln + 6] = 1;
	g->b[g->pcln + 7] = 8;
	g->nfunc = g->pcln + 8;
	put(g, g->nfunc, N_FUNCS, 8);
	put(g, g->pcln + 16, 2, 8);
	if (o->minor >= 18) {
		put(g, at, o->minor < 26 && !o->pie ? MK_TEXT : 0, 8);
		at += 8;
	}
	for (size_t i = 0; i < ARRAY_LEN(offs); i++, at += 8)
		put(g, at, offs[i], 8);
}

static uint8_t wrapper_id(int minor)
{
	return minor >= 25 ? 23 : minor >= 18 && minor < 22 ? 21 : 22;
}

struct tables {
	uint32_t names[3], leaf, mid; /* names: text0, main, last */
	uint32_t sp0, sp8, files, lines, index, flat;
};

/* The record of function @i, with its pcdata and funcdata. Returns nothing: room is fixed. */
static void record(struct mkgobin *g, const struct mkopt *o, size_t i, const struct tables *t)
{
	size_t word = o->minor < 18 ? 8 : 4, at = g->pcln + T_RECS + i * REC;
	bool main = i == 1;
	uint32_t nm = t->names[i == 0 ? 0 : i == 3 ? 2 : 1];
	uint32_t f[] = { nm,
			 0,
			 0,
			 main ? t->sp8 : t->sp0,
			 main ? t->files : t->flat,
			 main ? t->lines : t->flat,
			 main ? 3 : 0,
			 0 };

	g->rec[i] = at;
	put(g, at, starts[i] + (o->minor < 18 ? MK_TEXT : 0), word);
	at += word;
	for (size_t k = 0; k < ARRAY_LEN(f); k++, at += 4)
		put(g, at, f[k], 4);
	if (o->minor >= 20) {
		put(g, at, 5 + i, 4);
		at += 4;
	}
	g->b[at] = i == 2 ? wrapper_id(o->minor) : 0;
	g->b[at + 3] = main ? 4 : 0;
	at += 4;
	if (!main)
		return;
	put(g, at + 8, t->index, 4);
	at += 12;
	if (o->minor < 18) {
		at = (at + 7) & ~(size_t)7;
		put(g, at + 24, MK_BASE + g->inl_tree, 8);
	} else {
		put(g, at, UINT64_MAX, 8);
		put(g, at + 8, UINT32_MAX, 4);
		put(g, at + 12, g->inl_tree - g->gofunc, 4);
	}
}

/* Entry 0 is mid, called at +0x8 of main; entry 1 is leaf, called at +0x20, which lies in mid. */
static void inline_tree(struct mkgobin *g, const struct mkopt *o, const struct tables *t)
{
	uint32_t nm[] = { t->mid, t->leaf }, parent[] = { 0x8, 0x20 };

	for (size_t i = 0; i < 2; i++) {
		size_t at = g->inl_tree + i * (o->minor < 20 ? 20 : 16);

		if (o->minor < 20) {
			put(g, at + 12, nm[i], 4);
			put(g, at + 16, parent[i], 4);
		} else {
			put(g, at + 4, nm[i], 4);
			put(g, at + 8, parent[i], 4);
			put(g, at + 12, 20 + i, 4);
		}
	}
}

static struct tables tables(struct mkgobin *g)
{
	static const int sp8[][2] = { { 0, 4 }, { 8, 0x7c }, { 0, 0 } };
	static const int files[][2] = { { 0, 0x10 }, { 1, 0x10 }, { 0, 0x60 }, { 0, 0 } };
	static const int lines[][2] = {
		{ 10, 0x10 }, { 11, 0x10 }, { 12, 0x10 }, { 13, 0x50 }, { 0, 0 }
	};
	static const int index[][2] = {
		{ -1, 0x10 }, { 1, 0x10 }, { 0, 0x10 }, { -1, 0x50 }, { 0, 0 }
	};
	static const int flat[][2] = { { 0, 0x10 }, { 0, 0 } };
	uint32_t at = 1; /* offset 0 means: none */
	struct tables t;

	t.sp0 = t.flat = pcvals(g, &at, flat); /* of the shortest function */
	t.sp8 = pcvals(g, &at, sp8);
	g->pcsp = g->pcln + T_PCTAB + t.sp8;
	t.files = pcvals(g, &at, files);
	t.lines = pcvals(g, &at, lines);
	t.index = pcvals(g, &at, index);
	g->inl_index = g->pcln + T_PCTAB + t.index;
	at = 1;
	g->b[g->names] = 0;
	t.names[0] = name(g, &at, "runtime.text0");
	t.names[1] = name(g, &at, "main.main");
	t.leaf = name(g, &at, "main.leaf");
	t.mid = name(g, &at, "main.mid[...]");
	t.names[2] = name(g, &at, "runtime.last");
	return t;
}

static void pclntab(struct mkgobin *g, const struct mkopt *o)
{
	size_t word = o->minor < 18 ? 8 : 4;
	struct tables t;

	header(g, o);
	g->names = g->pcln + T_NAMES;
	g->functab = g->pcln + T_PCLN;
	g->gofunc = g->pcln + T_GOFUNC;
	g->inl_tree = g->gofunc + 0x10;
	t = tables(g);
	put(g, g->pcln + T_CU, 0, 4);
	put(g, g->pcln + T_CU + 4, 5, 4);
	memcpy(g->b + g->pcln + T_FILES, "a.go\0b.go", 10);
	for (size_t i = 0; i <= N_FUNCS; i++) {
		put(g, g->functab + 2 * i * word, starts[i] + (word == 8 ? MK_TEXT : 0), word);
		if (i == N_FUNCS)
			break;
		put(g, g->functab + (2 * i + 1) * word, T_RECS - T_PCLN + i * REC, word);
		record(g, o, i, &t);
	}
	inline_tree(g, o, &t);
}

static void module(struct mkgobin *g, const struct mkopt *o)
{
	uint64_t *w = g->words, data = MK_BASE + OFF_DATA;

	w[0] = MK_BASE + g->pcln;
	w[1] = MK_BASE + g->names;
	w[17] = N_FUNCS + 1;
	w[20] = w[22] = MK_TEXT;
	w[21] = w[23] = MK_ETEXT;
	w[24] = w[26] = data;
	w[25] = w[27] = data + 0x600;
	w[28] = w[30] = data + 0x800;
	w[29] = w[31] = data + 0x1000;
	w[o->minor < 20 ? 35 : 37] = MK_BASE + g->pcln; /* types */
	w[o->minor < 20 ? 36 : o->minor < 27 ? 38 : 39] = MK_BASE + g->pcln + T_END;
	if (o->minor >= 27)
		w[38] = 8; /* typedesclen */
	if (o->minor >= 18)
		w[o->minor < 20 ? 38 : o->minor < 27 ? 40 : 43] = MK_BASE + g->gofunc;
	if (!o->no_module)
		memcpy(g->b + g->module, w, sizeof(g->words));
}

static void buildinfo(struct mkgobin *g, const struct mkopt *o)
{
	static const char head[] = "\xff Go buildinf:\x08";
	static const char mods[] = "0123456789abcdefpath\tcmd/x\nbuild\tCGO_ENABLED=0\n"
				   "0123456789abcdef";
	char version[32];
	const char *v = o->version ? o->version : version;
	size_t at = g->info;

	snprintf(version, sizeof(version), "go1.%d.3", o->minor);
	memcpy(g->b + at, head, 15);
	if (o->minor < 18) {
		put(g, at + 16, MK_BASE + at + 0x40, 8);
		put(g, at + 0x40, MK_BASE + at + 0x50, 8);
		put(g, at + 0x48, strlen(v), 8);
		memcpy(g->b + at + 0x50, v, strlen(v));
		return;
	}
	g->b[at + 15] = 2;
	at += 32;
	g->b[at++] = (uint8_t)strlen(v);
	memcpy(g->b + at, v, strlen(v));
	at += strlen(v);
	g->b[at++] = sizeof(mods) - 1;
	memcpy(g->b + at, mods, sizeof(mods) - 1);
}

static void relocations(struct mkgobin *g, const struct mkopt *o)
{
	size_t n = 0, max = (MK_BYTES - OFF_SH) / sizeof(Elf64_Rela);
	Elf64_Dyn dyn[] = { { DT_RELA, { 0 } },
			    { DT_RELASZ, { 0 } },
			    { o->by_symbol ? DT_RELACOUNT : DT_NULL, { 0 } },
			    { DT_NULL, { 0 } } };

	for (size_t i = 0; i < ARRAY_LEN(g->words); i++) {
		Elf64_Rela r = { MK_BASE + g->module + 8 * i, R_X86_64_RELATIVE,
				 (Elf64_Sxword)g->words[i] };

		if (!g->words[i] || i == 17)
			continue;
		memcpy(g->b + OFF_SH + n++ * sizeof(r), &r, sizeof(r));
	}
	dyn[2].d_un.d_val = n;
	for (size_t i = 0; o->by_symbol && n < max; i++) {
		Elf64_Rela r = { MK_BASE + 8 * i, ELF64_R_INFO(1, R_X86_64_64), 0 };

		memcpy(g->b + OFF_SH + n++ * sizeof(r), &r, sizeof(r));
	}
	dyn[0].d_un.d_ptr = MK_BASE + OFF_SH;
	dyn[1].d_un.d_val = n * sizeof(Elf64_Rela);
	memcpy(g->b + OFF_DYN, dyn, sizeof(dyn));
	put(g, g->module + 17 * 8, g->words[17], 8); /* a length, not an address */
	g->rela = OFF_SH;
}

static void segments(struct mkgobin *g, const struct mkopt *o)
{
	uint64_t b = MK_BASE;
	Elf64_Phdr p[] = {
		{ PT_LOAD, PF_R | PF_X, 0, b, b, OFF_PCLN, OFF_PCLN, 0x1000 },
		{ PT_LOAD, PF_R, OFF_PCLN, b + OFF_PCLN, b, OFF_DATA - OFF_PCLN,
		  OFF_DATA - OFF_PCLN, 0x1000 },
		{ PT_LOAD, PF_R | PF_W, OFF_DATA, b + OFF_DATA, b, MK_BYTES - OFF_DATA, 0x2000,
		  0x1000 },
		{ PT_DYNAMIC, PF_R, OFF_DYN, b + OFF_DYN, b, 0x40, 0x40, 8 },
	};
	Elf64_Ehdr h = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			 .e_type = o->pie ? ET_DYN : ET_EXEC,
			 .e_machine = EM_X86_64,
			 .e_version = EV_CURRENT,
			 .e_phoff = sizeof(h),
			 .e_ehsize = sizeof(h),
			 .e_phentsize = sizeof(p[0]),
			 .e_phnum = o->rela ? 4 : 3,
			 .e_shentsize = sizeof(Elf64_Shdr) };

	if (!o->no_sections && !o->rela) {
		h.e_shoff = OFF_SH;
		h.e_shnum = 7;
		h.e_shstrndx = 6;
	}
	memcpy(g->b, &h, sizeof(h));
	memcpy(g->b + sizeof(h), p, sizeof(p));
}

/* "one" is at address 0x1111, "tail" shares the end of "longtail". */
static void sections(struct mkgobin *g)
{
	static const char names[] =
		"\0.text\0.gopclntab\0.go.buildinfo\0.symtab\0.strtab\0.shstrtab";
	static const char strs[] = "\0one\0longtail\0undefined";
	uint64_t b = MK_BASE;
	Elf64_Sym sym[] = { { 0 },
			    { 1, STT_FUNC, 0, 1, 0x1111, 5 },
			    { 9, STT_OBJECT, 0, 1, 0x2222, 6 },
			    { 14, STT_FUNC, 0, SHN_UNDEF, 0x3333, 7 } };
	Elf64_Shdr s[] = {
		{ 0 },
		{ 1, SHT_PROGBITS, 6, MK_TEXT, 0x200, 0x100, 0, 0, 1, 0 },
		{ 7, SHT_PROGBITS, 2, b + OFF_PCLN, OFF_PCLN, T_END, 0, 0, 1, 0 },
		{ 18, SHT_PROGBITS, 3, b + OFF_DATA, OFF_DATA, 0x100, 0, 0, 1, 0 },
		{ 32, SHT_SYMTAB, 0, 0, OFF_SYM, sizeof(sym), 5, 0, 8, sizeof(sym[0]) },
		{ 40, SHT_STRTAB, 0, 0, OFF_STR, sizeof(strs), 0, 0, 1, 0 },
		{ 48, SHT_STRTAB, 0, 0, OFF_SHSTR, sizeof(names), 0, 0, 1, 0 },
	};

	memcpy(g->b + OFF_SHSTR, names, sizeof(names));
	memcpy(g->b + OFF_STR, strs, sizeof(strs));
	memcpy(g->b + OFF_SYM, sym, sizeof(sym));
	memcpy(g->b + OFF_SH, s, sizeof(s));
	if (!g->b[g->info]) /* no build info */
		put(g, OFF_SH + 3 * sizeof(s[0]), 1, 4);
}

void mkgobin(struct mkgobin *g, const struct mkopt *o)
{
	*g = (struct mkgobin){
		.n = MK_BYTES, .info = OFF_DATA, .module = OFF_MODULE, .pcln = OFF_PCLN
	};
	pclntab(g, o);
	module(g, o);
	if (!o->no_info)
		buildinfo(g, o);
	segments(g, o);
	if (o->rela)
		relocations(g, o);
	else if (!o->no_sections)
		sections(g);
}

int mkgobin_fd(const void *bytes, size_t n)
{
	int fd = memfd_create("gobin", MFD_CLOEXEC);

	BUG_ON(fd < 0 || (n && write(fd, bytes, n) != (ssize_t)n));
	return fd;
}

static int byte_read(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	struct bytemem *b = (struct bytemem *)m;

	if (addr < b->base || addr - b->base > b->n || n > b->n - (addr - b->base))
		return err_set(e, -EFAULT, "0x%llx is not readable", (unsigned long long)addr);
	memcpy(buf, b->at + (addr - b->base), n);
	return 0;
}

struct bytemem bytemem_of(uint64_t base, const void *at, size_t n)
{
	return (struct bytemem){ .mem = { .read = byte_read }, .base = base, .at = at, .n = n };
}
