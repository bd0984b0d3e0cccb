/*
 * user/go/image/elf/elftab.c - the tables of an ELF image: symbols, relative relocations, build id.
 *
 * All tables are streamed. A symbol is found by its name's offset: first .strtab is searched for
 * the names, then .symtab for their offsets. So neither table is held, and no name is read per
 * symbol.
 */
#include <elf.h>

#include "base/cur.h"
#include "base/limits.h"
#include "go/image/elf/elfimg_priv.h"
#include "go/image/elf/scan.h"

enum {
	NAMES_MAX = 64,
	OFFSETS_MAX = 512, /* places in .strtab where the names stand */
	DYN_MAX = 4096,
	NOTE_MAX = 1 << 16,
	FIND_BYTES_NS = 8, /* bytes that are searched for one name in a ns */
};

/*
 * Where a name stands. Linkers share the tails of strings, so one name may stand in several
 * places.
 */
struct strpos {
	uint64_t off;
	uint32_t name; /* index into the names asked for */
};

struct strpos_set {
	struct strpos at[OFFSETS_MAX];
	size_t n;
};

static void find_in_chunk(const struct scan *s, uint64_t base, const char *name, uint32_t idx,
			  struct strpos_set *set)
{
	size_t len = strlen(name) + 1, from = 0;

	while (from < s->n && set->n < OFFSETS_MAX) {
		const uint8_t *p = memmem(s->buf + from, s->n - from, name, len);

		if (!p)
			return;
		from = (size_t)(p - s->buf) + 1;
		set->at[set->n++] = (struct strpos){ s->at + (uint64_t)(p - s->buf) - base, idx };
	}
}

static int find_names(struct elfimg *img, const struct elf_sec *str, const char *const *names,
		      size_t n, struct strpos_set *set, struct err *e)
{
	CLEANUP(scan_fini) struct scan s = { 0 };
	size_t keep = 0;
	int ret;

	for (size_t i = 0; i < n; i++)
		if (strlen(names[i]) > keep)
			keep = strlen(names[i]);
	ret = scan_init(&s, elfimg_file(img), str->off, str->size, keep, e);
	if (ret)
		return ret;
	while ((ret = scan_next(&s, e)) == 1) {
		ret = elfimg_work(img, n * s.n / FIND_BYTES_NS, e);
		if (ret)
			return ret;
		for (size_t i = 0; i < n; i++)
			find_in_chunk(&s, str->off, names[i], (uint32_t)i, set);
	}
	return ret;
}

static uint64_t number(const struct elfimg *img, const uint8_t *at, size_t n)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		v = v << 8 | at[img->big_endian ? i : n - 1 - i];
	return v;
}

/* Of another class or byte order than ours. */
static Elf64_Sym foreign_symbol(const struct elfimg *img, const uint8_t *at)
{
	bool narrow = img->narrow;

	return (Elf64_Sym){ .st_name = (Elf64_Word)number(img, at, 4),
			    .st_info = at[narrow ? 12 : 4],
			    .st_shndx = (Elf64_Half)number(img, at + (narrow ? 14 : 6), 2),
			    .st_value = number(img, at + (narrow ? 4 : 8), narrow ? 4 : 8),
			    .st_size = number(img, at + (narrow ? 8 : 16), narrow ? 4 : 8) };
}

static void match_symbol(const Elf64_Sym *sym, const struct strpos_set *set, struct elf_sym *out)
{
	for (size_t i = 0; i < set->n; i++) {
		struct elf_sym *o = &out[set->at[i].name];

		if (set->at[i].off != sym->st_name || o->found || sym->st_shndx == SHN_UNDEF)
			continue;
		*o = (struct elf_sym){ .value = sym->st_value,
				       .size = sym->st_size,
				       .type = ELF64_ST_TYPE(sym->st_info),
				       .found = true };
	}
}

/*
 * A Bloom filter with one bit for the hash of each offset: it refuses nearly all symbols cheaply.
 */
static uint64_t bloom_bit(uint64_t off)
{
	return 1ull << (off * 0x9e3779b97f4a7c15ull >> 58);
}

static int match_symbols(struct elfimg *img, const struct elf_sec *tab,
			 const struct strpos_set *set, struct elf_sym *out, struct err *e)
{
	CLEANUP(scan_fini) struct scan s = { 0 };
	size_t size = img->narrow ? sizeof(Elf32_Sym) : sizeof(Elf64_Sym);
	uint64_t bloom = 0, work = 0;
	int ret;

	/*
	 * SCAN_CHUNK is not a multiple of 24: what remains of a chunk is read again with the next
	 * one.
	 */
	_Static_assert(sizeof(Elf64_Sym) == 24 && sizeof(Elf32_Sym) == 16, "symbol sizes");
	for (size_t i = 0; i < set->n; i++)
		bloom |= bloom_bit(set->at[i].off);
	ret = scan_init(&s, elfimg_file(img), tab->off, tab->size, size - 1, e);
	if (ret)
		return ret;
	while ((ret = scan_next(&s, e)) == 1) {
		size_t skew = (size_t)((s.at - tab->off) % size);
		size_t i = skew ? size - skew : 0;

		for (; i + size <= s.n; i += size) {
			Elf64_Sym sym;

			if (img->narrow || img->big_endian)
				sym = foreign_symbol(img, s.buf + i);
			else
				memcpy(&sym, s.buf + i, sizeof(sym));
			if (bloom & bloom_bit(sym.st_name)) {
				match_symbol(&sym, set, out);
				work += set->n;
			}
		}
		ret = elfimg_work(img, work + s.n / size, e);
		if (ret)
			return ret;
		work = 0;
	}
	return ret;
}

int elfimg_symbols(struct elfimg *img, const char *const *names, size_t n, struct elf_sym *out,
		   struct err *e)
{
	CLEANUP(freep) struct strpos_set *set = calloc(1, sizeof(*set));
	const struct elf_sec *tab = elfimg_sec(img, ".symtab");
	int ret, found = 0;

	BUG_ON(n > NAMES_MAX);
	if (!set)
		return err_set(e, -ENOMEM, "no memory for a symbol search");
	memset(out, 0, n * sizeof(*out));
	if (!tab || tab->type != SHT_SYMTAB)
		return 0;
	if (tab->link >= img->nsecs || img->secs[tab->link].type != SHT_STRTAB)
		return err_set(e, -EBADMSG,
			       "%s: .symtab's names are section %u, which is no "
			       "string table",
			       img->path, tab->link);
	if (tab->size / (img->narrow ? sizeof(Elf32_Sym) : sizeof(Elf64_Sym)) > LIMIT_SYMBOLS)
		return err_set(e, -E2BIG, "%s: .symtab has more than %d symbols", img->path,
			       LIMIT_SYMBOLS);
	ret = find_names(img, &img->secs[tab->link], names, n, set, e);
	if (!ret && set->n)
		ret = match_symbols(img, tab, set, out, e);
	if (ret)
		return ret;
	for (size_t i = 0; i < n; i++)
		found += out[i].found;
	return found;
}

int elftab_find_rela(struct elfimg *img, struct err *e)
{
	const struct elf_seg *dyn = elfimg_seg(img, PT_DYNAMIC);
	uint64_t addr = 0, size = 0, count = UINT64_MAX, off, left;
	Elf64_Dyn d;
	int ret;

	if (!dyn || !elfimg_is_dyn(img))
		return 0;
	for (size_t i = 0; i < DYN_MAX && (i + 1) * sizeof(d) <= dyn->filesz; i++) {
		ret = mem_read(memcache_mem(img->cache), dyn->off + i * sizeof(d), &d, sizeof(d),
			       e);
		if (ret)
			return ret;
		if (d.d_tag == DT_NULL)
			break;
		if (d.d_tag == DT_RELA)
			addr = d.d_un.d_ptr;
		if (d.d_tag == DT_RELASZ)
			size = d.d_un.d_val;
		if (d.d_tag == DT_RELACOUNT)
			count = d.d_un.d_val;
	}
	if (!addr || !size)
		return 0;
	if (elfimg_offset(img, addr, &off, &left, NULL) || size > left)
		return err_set(e, -EBADMSG, "%s: DT_RELA 0x%llx+0x%llx is in no segment", img->path,
			       (unsigned long long)addr, (unsigned long long)size);
	img->rela = addr;
	img->nrela = size / sizeof(Elf64_Rela);
	img->nrel = count < img->nrela ? count : img->nrela;
	return 0;
}

static bool is_relative(const struct elfimg *img, const Elf64_Rela *r)
{
	return ELF64_R_TYPE(r->r_info) ==
	       (img->machine == EM_X86_64 ? R_X86_64_RELATIVE : R_AARCH64_RELATIVE);
}

/*
 * The index of the first relative entry whose place is at or after @addr, in a table that is
 * sorted by place, as GNU ld and lld write them. Relative entries come first, as many as
 * DT_RELACOUNT says; those by symbol, of which a plugin has thousands, come after them in another
 * order. Go's own linker does not sort, but leaves the addend in the content as well.
 */
static int rela_lower(struct elfimg *img, uint64_t addr, uint64_t *idx, struct err *e)
{
	uint64_t lo = 0, hi = img->nrel, place;
	int ret;

	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;

		ret = mem_u64(&img->mem.mem, img->rela + mid * sizeof(Elf64_Rela), &place, e);
		if (ret)
			return ret;
		if (place < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	*idx = lo;
	return 0;
}

/*
 * Writes the part of the 8 bytes @word at @place that lies in [@addr, @addr + @n) into the
 * buffer.
 */
static void patch(uint64_t place, uint64_t word, uint64_t addr, uint8_t *buf, size_t n)
{
	const uint8_t *w = (const uint8_t *)&word;

	for (unsigned i = 0; i < sizeof(word); i++)
		if (place + i >= addr && place + i - addr < n)
			buf[place + i - addr] = w[i];
}

int elftab_read_rel(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	struct elfimg *img = ((struct vmem *)m)->img;
	uint64_t from = addr < 7 ? 0 : addr - 7, idx;
	Elf64_Rela r;
	int ret;

	ret = mem_read(&img->mem.mem, addr, buf, n, e);
	if (ret || !img->nrel)
		return ret;
	ret = rela_lower(img, from, &idx, e);
	/*
	 * At most one relocation is used for each byte, so that an unsorted or lying table cannot
	 * keep us busy.
	 */
	for (size_t i = 0; !ret && i < n + 8 && idx < img->nrel; i++, idx++) {
		ret = mem_read(&img->mem.mem, img->rela + idx * sizeof(r), &r, sizeof(r), e);
		if (ret || r.r_offset < from || r.r_offset >= addr + n)
			break;
		if (is_relative(img, &r))
			patch(r.r_offset, (uint64_t)r.r_addend, addr, buf, n);
	}
	return ret;
}

/* The addresses that those entries of DT_RELA patch that @want accepts. */
static int relocs(struct elfimg *img,
		  bool (*want)(const struct elfimg *img, const Elf64_Rela *r, uint64_t arg),
		  uint64_t arg, uint64_t *at, size_t cap, struct err *e)
{
	CLEANUP(scan_fini) struct scan s = { 0 };
	uint64_t off, left;
	size_t found = 0;
	int ret;

	if (!img->nrela || elfimg_offset(img, img->rela, &off, &left, NULL))
		return 0;
	ret = scan_init(&s, elfimg_file(img), off, img->nrela * sizeof(Elf64_Rela),
			sizeof(Elf64_Rela) - 1, e);
	if (ret)
		return ret;
	while (found < cap && (ret = scan_next(&s, e)) == 1) {
		size_t skew = (size_t)((s.at - off) % sizeof(Elf64_Rela));
		size_t i = skew ? sizeof(Elf64_Rela) - skew : 0;

		for (; i + sizeof(Elf64_Rela) <= s.n && found < cap; i += sizeof(Elf64_Rela)) {
			Elf64_Rela r;

			memcpy(&r, s.buf + i, sizeof(r));
			if (want(img, &r, arg))
				at[found++] = r.r_offset;
		}
	}
	return ret < 0 ? ret : (int)found;
}

static bool puts_address(const struct elfimg *img, const Elf64_Rela *r, uint64_t value)
{
	return (uint64_t)r->r_addend == value && is_relative(img, r);
}

static bool has_type(const struct elfimg *img, const Elf64_Rela *r, uint64_t type)
{
	(void)img;
	return ELF64_R_TYPE(r->r_info) == type;
}

int elfimg_relocs_to(struct elfimg *img, uint64_t value, uint64_t *at, size_t cap, struct err *e)
{
	return relocs(img, puts_address, value, at, cap, e);
}

int elfimg_relocs_of(struct elfimg *img, uint32_t type, uint64_t *at, size_t cap, struct err *e)
{
	return relocs(img, has_type, type, at, cap, e);
}

/* The GNU build id among the notes of one segment; 0 bytes when it is not there. */
static size_t build_id_in(const uint8_t *p, size_t n, const uint8_t **id)
{
	struct cur c = cur_of("notes", p, n);
	const uint8_t *name, *desc;
	uint32_t namesz, descsz, type;

	while (cur_left(&c) >= 12) {
		cur_u32(&c, "namesz", &namesz);
		cur_u32(&c, "descsz", &descsz);
		cur_u32(&c, "type", &type);
		if (!cur_take(&c, "name", ((size_t)namesz + 3) & ~(size_t)3, &name) ||
		    !cur_take(&c, "desc", descsz, &desc))
			return 0;
		if (type == NT_GNU_BUILD_ID && namesz == 4 && !memcmp(name, "GNU", 4)) {
			*id = desc;
			return descsz;
		}
		if (!cur_skip(&c, "padding", -(size_t)descsz & 3))
			return 0;
	}
	return 0;
}

static int note_build_id(struct elfimg *img, uint64_t off, uint64_t size, char out[65],
			 struct err *e)
{
	CLEANUP(freep) uint8_t *buf = NULL;
	const uint8_t *id = NULL;
	size_t n;
	int ret;

	if (!size || size > NOTE_MAX)
		return 0;
	buf = malloc(size);
	if (!buf)
		return err_set(e, -ENOMEM, "no memory for notes");
	ret = mem_read(elfimg_file(img), off, buf, size, e);
	if (ret)
		return ret;
	n = build_id_in(buf, size, &id);
	for (size_t i = 0; i < n && i < 32; i++)
		snprintf(out + 2 * i, 3, "%02x", id[i]);
	return 0;
}

int elfimg_build_id(struct elfimg *img, char out[65], struct err *e)
{
	const struct elf_sec *sec = elfimg_sec(img, ".note.gnu.build-id");
	int ret = 0;

	out[0] = 0;
	if (sec && sec->type == SHT_NOTE)
		ret = note_build_id(img, sec->off, sec->size, out, e);
	for (size_t i = 0; !ret && !out[0] && i < img->nsegs; i++)
		if (img->segs[i].type == PT_NOTE)
			ret = note_build_id(img, img->segs[i].off, img->segs[i].filesz, out, e);
	return ret;
}
