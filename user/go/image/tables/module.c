/* user/go/image/tables/module.c - where the function table and moduledata are. */
#include "go/image/tables/module.h"

#include <elf.h>

#include "go/image/elf/scan.h"

enum {
	CANDIDATES = 64,   /* words that hold the table's address; real binaries have a handful */
	MODULE_WORDS = 46, /* up to and with epclntab */
};

/* Indexes of moduledata's words. Those up to enoptrbss are the same from Go 1.16 to 1.27. */
enum {
	W_PCHEADER = 0,
	W_FUNCNAMETAB = 1,
	W_FTAB_LEN = 17,
	W_MINPC = 20,
	W_MAXPC = 21,
	W_TEXT = 22,
	W_ETEXT = 23,
	W_NOPTRDATA = 24,
	W_ENOPTRDATA = 25,
	W_DATA = 26,
	W_EDATA = 27,
	W_BSS = 28,
	W_EBSS = 29,
	W_NOPTRBSS = 30,
	W_ENOPTRBSS = 31,
};

/*
 * Where types, etypes and gofunc are: Go 1.18 added gofunc, 1.20 the coverage counters before
 * them, 1.27 typedesclen, itaboffset and itabsize between them.
 */
struct tail {
	int types, etypes, gofunc; /* word indexes; gofunc -1: none */
};

struct search {
	struct elfimg *img;
	const struct pclntab *t;
	struct mem *m; /* where candidates are read, at their address + bias */
	uint64_t bias;
	uint64_t at[CANDIDATES];
	size_t n;
};

/* Does a table at @addr parse, and does its first record agree with its functab? */
static int try_table(struct elfimg *img, uint64_t addr, uint64_t end, struct pclntab *out,
		     struct err *e)
{
	struct mem *m = elfimg_mem(img);
	struct pclntab t;
	struct pclnfunc f;
	uint8_t prefix[PCLN_PREFIX];
	int ret;

	ret = mem_read(m, addr, prefix, sizeof(prefix), e);
	if (ret)
		return ret;
	/* Go 1.16 and 1.17 have addresses in the table, and these need relocation in a PIE. */
	if (elfimg_is_dyn(img))
		m = elfimg_relmem(img);
	ret = pclntab_parse(m, addr, end, &t, e);
	if (ret)
		return ret;
	if (t.shape != PCLN_116)
		t.m = elfimg_mem(img);
	if (t.nfunc)
		ret = pclntab_func(&t, 0, &f, e);
	if (ret && ret != -ENOENT)
		return ret;
	*out = t;
	return 0;
}

static int table_in(struct elfimg *img, uint64_t addr, uint64_t size, struct pclntab *out,
		    struct err *e)
{
	CLEANUP(scan_fini) struct scan s = { 0 };
	uint64_t off, left;
	int ret;

	if (elfimg_offset(img, addr, &off, &left, NULL))
		return -ENOENT;
	if (size > left)
		size = left;
	ret = scan_init(&s, elfimg_file(img), off, size, 0, e);
	if (ret)
		return ret;
	while ((ret = scan_next(&s, e)) == 1) {
		uint64_t base = addr + (s.at - off);

		for (size_t i = (size_t)(-base & 7); i + PCLN_PREFIX <= s.n; i += 8)
			if (pclntab_looks(s.buf + i) &&
			    !try_table(img, base + i, addr + size, out, NULL))
				return 0;
	}
	return ret ? ret : -ENOENT;
}

int module_find_pclntab(struct elfimg *img, struct pclntab *out, struct err *e)
{
	static const char *const exact[] = { ".gopclntab", ".data.rel.ro.gopclntab" };
	const struct elf_sec *sec;
	const struct elf_seg *segs;
	size_t n;
	int ret;

	for (size_t i = 0; i < ARRAY_LEN(exact); i++) {
		sec = elfimg_sec(img, exact[i]);
		if (sec && sec->type == SHT_PROGBITS && sec->addr)
			return try_table(img, sec->addr, sec->addr + sec->size, out, e);
	}
	/* Externally linked PIE up to Go 1.25. */
	sec = elfimg_sec(img, ".data.rel.ro");
	if (sec && sec->type == SHT_PROGBITS && !table_in(img, sec->addr, sec->size, out, NULL))
		return 0;
	segs = elfimg_segs(img, &n);
	for (size_t i = 0; i < n; i++) {
		if (segs[i].type != PT_LOAD || (segs[i].flags & PF_X) || !segs[i].filesz)
			continue;
		ret = table_in(img, segs[i].vaddr, segs[i].filesz, out, e);
		if (ret != -ENOENT)
			return ret;
	}
	return err_set(e, -ENOENT, "no Go function table (pclntab)");
}

static bool held(const struct elfimg *img, uint64_t addr)
{
	const struct elf_seg *s;
	size_t n;

	s = elfimg_segs(img, &n);
	for (size_t i = 0; i < n; i++)
		if (s[i].type == PT_LOAD && addr >= s[i].vaddr && addr - s[i].vaddr <= s[i].memsz)
			return true;
	return false;
}

/*
 * The shape is recognized by content and not by version: etypes is an address above types,
 * typedesclen is a length.
 */
static struct tail tail_of(const struct search *s, const uint64_t *w)
{
	static const struct tail go116 = { 35, 36, -1 }, go118 = { 35, 36, 38 },
				 go120 = { 37, 38, 40 }, go127 = { 37, 39, 43 };

	if (s->t->shape == PCLN_116)
		return go116;
	if (s->t->shape == PCLN_118)
		return go118;
	return w[38] >= w[37] ? go120 : go127;
}

static void fill(const struct search *s, uint64_t addr, const uint64_t *w, struct gomodule *out)
{
	struct tail tail = tail_of(s, w);

	*out = (struct gomodule){
		.addr = addr,
		.text = w[W_TEXT],
		.etext = w[W_ETEXT],
		.noptrdata = w[W_NOPTRDATA],
		.enoptrdata = w[W_ENOPTRDATA],
		.data = w[W_DATA],
		.edata = w[W_EDATA],
		.bss = w[W_BSS],
		.ebss = w[W_EBSS],
		.noptrbss = w[W_NOPTRBSS],
		.enoptrbss = w[W_ENOPTRBSS],
		.types = w[tail.types],
		.etypes = w[tail.etypes],
	};
	if (tail.gofunc >= 0 && held(s->img, w[tail.gofunc]))
		out->gofunc = w[tail.gofunc];
}

static bool agrees(const struct search *s, const uint64_t *w)
{
	struct pclntab t = *s->t;
	uint64_t first;

	t.text = w[W_TEXT];
	return w[W_PCHEADER] == t.addr && w[W_FUNCNAMETAB] == t.funcname &&
	       w[W_FTAB_LEN] == t.nfunc + 1 && w[W_TEXT] <= w[W_MINPC] && w[W_MINPC] < w[W_MAXPC] &&
	       w[W_TEXT] < w[W_ETEXT] && !pclntab_entry(&t, 0, &first, NULL) &&
	       first == w[W_MINPC] && w[W_DATA] <= w[W_EDATA] && w[W_BSS] <= w[W_EBSS] &&
	       w[W_NOPTRDATA] <= w[W_ENOPTRDATA] && w[W_NOPTRBSS] <= w[W_ENOPTRBSS];
}

/*
 * Lengths are not addresses, but subtracting the bias and adding it again leaves them as they
 * are.
 */
static bool try_module(const struct search *s, uint64_t addr, struct gomodule *out)
{
	uint64_t w[MODULE_WORDS];

	if (mem_read(s->m, addr + s->bias, w, sizeof(w), NULL))
		return false;
	for (size_t i = 0; i < MODULE_WORDS; i++)
		if (i != W_FTAB_LEN)
			w[i] -= s->bias;
	if (!agrees(s, w))
		return false;
	fill(s, addr, w, out);
	return true;
}

static bool try_all(const struct search *s, struct gomodule *out)
{
	for (size_t i = 0; i < s->n; i++)
		if (try_module(s, s->at[i], out))
			return true;
	return false;
}

/* Finds aligned words in [@addr, @addr + @size) of @m that hold the table's (biased) address. */
static int words_in(struct search *s, struct mem *m, uint64_t addr, uint64_t size, uint64_t vaddr,
		    struct err *e)
{
	CLEANUP(scan_fini) struct scan sc = { 0 };
	uint64_t want = s->t->addr + s->bias, w;
	int ret;

	ret = scan_init(&sc, m, addr, size, 0, e);
	if (ret)
		return ret;
	s->n = 0;
	while ((ret = scan_next(&sc, e)) == 1) {
		uint64_t base = vaddr + (sc.at - addr);

		for (size_t i = (size_t)(-base & 7); i + 8 <= sc.n && s->n < CANDIDATES; i += 8) {
			memcpy(&w, sc.buf + i, sizeof(w));
			if (w == want)
				s->at[s->n++] = base + i;
		}
	}
	return ret;
}

static bool in_section(struct search *s, const char *name, struct gomodule *out)
{
	const struct elf_sec *sec = elfimg_sec(s->img, name);

	return sec && sec->type == SHT_PROGBITS && sec->addr &&
	       !words_in(s, elfimg_file(s->img), sec->off, sec->size, sec->addr, NULL) &&
	       try_all(s, out);
}

static bool in_segments(struct search *s, struct mem *m, struct gomodule *out)
{
	const struct elf_seg *seg;
	size_t n;

	seg = elfimg_segs(s->img, &n);
	for (size_t i = 0; i < n; i++, seg++) {
		bool file = m == elfimg_file(s->img);
		uint64_t at = file ? seg->off : seg->vaddr + s->bias;

		if (seg->type == PT_LOAD && (seg->flags & PF_W) &&
		    !words_in(s, m, at, seg->filesz, seg->vaddr, NULL) && try_all(s, out))
			return true;
	}
	return false;
}

static bool in_relocs(struct search *s, struct gomodule *out)
{
	int n = elfimg_relocs_to(s->img, s->t->addr, s->at, CANDIDATES, NULL);

	s->n = n > 0 ? (size_t)n : 0;
	return try_all(s, out);
}

int module_find(struct elfimg *img, const struct pclntab *t, struct mem *live, uint64_t bias,
		struct gomodule *out, struct err *e)
{
	const struct elf_sec *own = elfimg_sec(img, ".go.module");
	struct search s = { .img = img, .t = t, .m = elfimg_relmem(img) };

	if (own && try_module(&s, own->addr, out))
		return 0;
	if (in_section(&s, ".noptrdata", out) || in_section(&s, ".data", out) ||
	    in_relocs(&s, out) || in_segments(&s, elfimg_file(img), out))
		return 0;
	if (!live)
		return err_set(e, -ENOENT, "no moduledata for the function table at 0x%llx",
			       (unsigned long long)t->addr);
	s.m = live;
	s.bias = bias;
	if ((own && try_module(&s, own->addr, out)) || in_segments(&s, live, out))
		return 0;
	return err_set(e, -ENOENT,
		       "no moduledata for the function table at 0x%llx, neither in "
		       "the file nor in the process",
		       (unsigned long long)t->addr);
}
