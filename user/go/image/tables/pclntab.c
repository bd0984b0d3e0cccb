/* user/go/image/tables/pclntab.c - the table of functions. */
#include "go/image/tables/pclntab.h"

#include "base/cur.h"
#include "base/limits.h"
#include "go/image/tables/funcid.h"
#include "go/image/tables/pcval.h"

enum {
	MAGIC_116 = 0xfffffffa,
	MAGIC_118 = 0xfffffff0,
	MAGIC_120 = 0xfffffff1,
	HEADER_MAX = 72,
	REC_FIXED_MAX = 44,
	HOLE = UINT32_MAX,
};

/* The differences between the shapes of the table. */
static const struct shape {
	/* bytes: of the header, of an entry, of a funcdata word */
	uint32_t header, entry_size, ptr;
	uint32_t rec; /* fixed part of a record */
} shapes[] = {
	[PCLN_116] = { 64, 8, 8, 44 },
	[PCLN_118] = { 72, 4, 4, 40 },
	[PCLN_120] = { 72, 4, 4, 44 },
};

static int magic_shape(uint32_t magic)
{
	switch (magic) {
	case MAGIC_116:
		return PCLN_116;
	case MAGIC_118:
		return PCLN_118;
	case MAGIC_120:
		return PCLN_120;
	}
	return -1;
}

bool pclntab_looks(const uint8_t prefix[PCLN_PREFIX])
{
	uint32_t magic;

	if (prefix[4] || prefix[5] || (prefix[6] != 1 && prefix[6] != 4) || prefix[7] != 8)
		return false;
	memcpy(&magic, prefix, sizeof(magic));
	return magic_shape(magic) >= 0;
}

/* Turns the five offsets into addresses: they must ascend inside of the table. */
static int place(struct pclntab *t, struct cur *c, struct err *e)
{
	static const char *const names[] = { "funcnametab", "cutab", "filetab", "pctab",
					     "functab" };
	uint64_t *const out[] = { &t->funcname, &t->cu, &t->filetab, &t->pctab, &t->pcln };
	uint64_t last = shapes[t->shape].header, off = 0;

	for (size_t i = 0; i < ARRAY_LEN(out); i++) {
		if (!cur_u64(c, names[i], &off))
			return cur_fail(c, e);
		if (off < last || off > t->end - t->addr)
			return err_set(e, -EBADMSG,
				       "pclntab at 0x%llx: offset 0x%llx of %s is not in "
				       "0x%llx..0x%llx",
				       (unsigned long long)t->addr, (unsigned long long)off,
				       names[i], (unsigned long long)last,
				       (unsigned long long)(t->end - t->addr));
		*out[i] = t->addr + off;
		last = off;
	}
	return 0;
}

static int check_count(const struct pclntab *t, struct err *e)
{
	uint64_t size = shapes[t->shape].entry_size;

	if (t->nfunc > LIMIT_FUNCS)
		return err_set(e, -E2BIG, "pclntab at 0x%llx: %llu functions (limit %d)",
			       (unsigned long long)t->addr, (unsigned long long)t->nfunc,
			       LIMIT_FUNCS);
	if (t->nfunc * 2 * size + size > t->end - t->pcln)
		return err_set(e, -EBADMSG,
			       "pclntab at 0x%llx: %llu functions do not fit in the 0x%llx bytes "
			       "of functab",
			       (unsigned long long)t->addr, (unsigned long long)t->nfunc,
			       (unsigned long long)(t->end - t->pcln));
	return 0;
}

int pclntab_parse(struct mem *m, uint64_t addr, uint64_t end, struct pclntab *out, struct err *e)
{
	struct pclntab t = { .m = m, .addr = addr, .end = end, .minor = -1 };
	uint8_t buf[HEADER_MAX];
	struct cur c;
	uint32_t magic;
	uint64_t files;
	int ret, shape;

	if (end < addr || end - addr < sizeof(buf))
		return err_set(e, -EBADMSG, "pclntab at 0x%llx: no room for its header",
			       (unsigned long long)addr);
	ret = mem_read(m, addr, buf, sizeof(buf), e);
	if (ret)
		return ret;
	memcpy(&magic, buf, sizeof(magic));
	shape = magic_shape(magic);
	if (shape < 0 || !pclntab_looks(buf))
		return err_set(e, -ENOTSUP,
			       "pclntab at 0x%llx: magic 0x%x, minimum instruction %u, pointer "
			       "size %u: not a table of Go 1.16 or newer",
			       (unsigned long long)addr, magic, buf[6], buf[7]);
	t.shape = (enum pcln_shape)shape;
	t.quantum = buf[6];
	c = cur_of("pclntab", buf, shapes[shape].header);
	cur_skip(&c, "magic", PCLN_PREFIX);
	cur_u64(&c, "nfunc", &t.nfunc);
	cur_u64(&c, "nfiles", &files);
	if (t.shape != PCLN_116)
		cur_u64(&c, "textStart", &t.text_start);
	ret = place(&t, &c, e);
	if (!ret)
		ret = check_count(&t, e);
	if (!ret)
		*out = t;
	return ret;
}

/* @word: 2 * i for an entry, 2 * i + 1 for the offset of its record. */
static int functab_word(const struct pclntab *t, uint64_t word, uint64_t *v, struct err *e)
{
	uint32_t v32 = 0;
	int ret;

	if (t->shape == PCLN_116)
		return mem_u64(t->m, t->pcln + word * 8, v, e);
	ret = mem_u32(t->m, t->pcln + word * 4, &v32, e);
	*v = v32;
	return ret;
}

int pclntab_entry(const struct pclntab *t, uint64_t i, uint64_t *entry, struct err *e)
{
	int ret;

	BUG_ON(i > t->nfunc);
	ret = functab_word(t, 2 * i, entry, e);
	if (t->shape != PCLN_116)
		*entry += t->text;
	return ret;
}

static int parse_record(const struct pclntab *t, const uint8_t *rec, struct pclnfunc *f)
{
	struct cur c = cur_of("_func", rec, shapes[t->shape].rec);
	uint32_t skip;

	cur_skip(&c, "entry", shapes[t->shape].entry_size);
	cur_u32(&c, "nameOff", &f->name);
	cur_u32(&c, "args", &skip);
	cur_u32(&c, "deferreturn", &skip);
	cur_u32(&c, "pcsp", &f->pcsp);
	cur_u32(&c, "pcfile", &f->pcfile);
	cur_u32(&c, "pcln", &f->pcln);
	cur_u32(&c, "npcdata", &f->npcdata);
	cur_u32(&c, "cuOffset", &f->cu);
	f->start_line = 0;
	if (t->shape == PCLN_120)
		cur_u32(&c, "startLine", &f->start_line);
	cur_u8(&c, "funcID", &f->raw_id);
	cur_u8(&c, "flag", &f->flags);
	cur_skip(&c, "pad", 1);
	cur_u8(&c, "nfuncdata", &f->nfuncdata);
	return c.bad ? -EBADMSG : 0;
}

int pclntab_record(const struct pclntab *t, uint64_t addr, struct pclnfunc *out, struct err *e)
{
	uint8_t buf[REC_FIXED_MAX];
	uint32_t n = shapes[t->shape].rec;
	int ret;

	if (addr < t->pcln || addr > t->end || t->end - addr < n)
		return err_set(e, -EBADMSG, "function record at 0x%llx is not in functab",
			       (unsigned long long)addr);
	ret = mem_read(t->m, addr, buf, n, e);
	if (ret)
		return ret;
	out->addr = addr;
	BUG_ON(parse_record(t, buf, out));
	if (out->npcdata > (t->end - addr - n) / 4)
		return err_set(e, -EBADMSG, "function record at 0x%llx: %u pcdata tables",
			       (unsigned long long)addr, out->npcdata);
	return 0;
}

/* Address of the @i-th record. */
static int record_addr(const struct pclntab *t, uint64_t i, uint64_t *addr, struct err *e)
{
	uint64_t off = 0;
	int ret = functab_word(t, 2 * i + 1, &off, e);

	if (ret)
		return ret;
	if (off == (t->shape == PCLN_116 ? UINT64_MAX : HOLE))
		return err_set(e, -ENOENT, "function %llu is a hole of the function table",
			       (unsigned long long)i);
	if (off > t->end - t->pcln || t->end - t->pcln - off < shapes[t->shape].rec)
		return err_set(e, -EBADMSG, "function %llu: record offset 0x%llx leaves functab",
			       (unsigned long long)i, (unsigned long long)off);
	*addr = t->pcln + off;
	return 0;
}

int pclntab_nameoff(const struct pclntab *t, uint64_t i, uint32_t *off, struct err *e)
{
	uint64_t addr = 0;
	int ret;

	BUG_ON(i >= t->nfunc);
	ret = record_addr(t, i, &addr, e);
	return ret ? ret : mem_u32(t->m, addr + shapes[t->shape].entry_size, off, e);
}

int pclntab_func(const struct pclntab *t, uint64_t i, struct pclnfunc *out, struct err *e)
{
	struct pclnfunc f = { 0 };
	uint64_t addr = 0;
	int ret;

	BUG_ON(i >= t->nfunc);
	ret = pclntab_entry(t, i, &f.entry, e);
	if (!ret)
		ret = pclntab_entry(t, i + 1, &f.end, e);
	if (!ret)
		ret = record_addr(t, i, &addr, e);
	if (ret)
		return ret;
	if (f.end < f.entry)
		return err_set(e, -EBADMSG,
			       "function table is not sorted: function %llu at 0x%llx ends at "
			       "0x%llx",
			       (unsigned long long)i, (unsigned long long)f.entry,
			       (unsigned long long)f.end);
	ret = pclntab_record(t, addr, &f, e);
	if (!ret)
		*out = f;
	return ret;
}

/* The index of the first function that starts after @pc. */
static int upper(const struct pclntab *t, uint64_t pc, uint64_t *idx, struct err *e)
{
	uint64_t lo = 0, hi = t->nfunc, entry;

	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;
		int ret = pclntab_entry(t, mid, &entry, e);

		if (ret)
			return ret;
		if (entry <= pc)
			lo = mid + 1;
		else
			hi = mid;
	}
	*idx = lo;
	return 0;
}

int pclntab_find(const struct pclntab *t, uint64_t pc, struct pclnfunc *out, struct err *e)
{
	uint64_t i = 0, end = 0;
	int ret;

	ret = upper(t, pc, &i, e);
	if (!ret)
		ret = pclntab_entry(t, t->nfunc, &end, e);
	if (ret)
		return ret;
	if (!i || (i == t->nfunc && pc >= end))
		return err_set(e, -ENOENT, "0x%llx is not in Go code", (unsigned long long)pc);
	ret = pclntab_func(t, i - 1, out, e);
	if (ret)
		return ret;
	if (pc < out->entry || pc >= out->end)
		return err_set(e, -EBADMSG, "function table is not sorted around 0x%llx",
			       (unsigned long long)pc);
	return 0;
}

enum func_id pclntab_id(const struct pclntab *t, uint8_t raw_id)
{
	static const int newest[] = { [PCLN_116] = 17, [PCLN_118] = 19, [PCLN_120] = 27 };

	return funcid_of(t->minor >= 0 ? t->minor : newest[t->shape], raw_id);
}

int pclntab_name(const struct pclntab *t, uint32_t off, bool inlined, char *buf, struct err *e)
{
	buf[0] = 0;
	if (!off && !(inlined && t->minor < 21))
		return 0; /* the runtime has the name "" for it */
	if (off >= t->cu - t->funcname)
		return err_set(e, -EBADMSG, "function name at 0x%x of 0x%llx bytes of names", off,
			       (unsigned long long)(t->cu - t->funcname));
	return mem_cstr(t->m, t->funcname + off, buf, LIMIT_NAME, e);
}

int pclntab_value(const struct pclntab *t, const struct pclnfunc *f, uint32_t off, uint64_t pc,
		  int32_t *val, struct err *e)
{
	int ret;

	*val = -1;
	if (!off)
		return 0;
	ret = pcval_at(t->m, t->pctab + off, t->pcln, f->entry, f->end, t->quantum, pc, val, e);
	return ret < 0 ? ret : 0;
}

static int file_name(const struct pclntab *t, const struct pclnfunc *f, int32_t fileno, char *buf,
		     struct err *e)
{
	uint64_t i = (uint64_t)f->cu + (uint32_t)fileno;
	uint32_t off;
	int ret;

	if (i >= (t->filetab - t->cu) / 4)
		return err_set(e, -EBADMSG, "file %d of unit 0x%x is not in cutab", fileno, f->cu);
	ret = mem_u32(t->m, t->cu + i * 4, &off, e);
	if (ret || off == UINT32_MAX)
		return ret;
	if (off >= t->pctab - t->filetab)
		return err_set(e, -EBADMSG, "file name at 0x%x of 0x%llx bytes of names", off,
			       (unsigned long long)(t->pctab - t->filetab));
	return mem_cstr(t->m, t->filetab + off, buf, LIMIT_NAME, e);
}

int pclntab_fileline(const struct pclntab *t, const struct pclnfunc *f, uint64_t pc, char *file,
		     uint32_t *line, struct err *e)
{
	int32_t fileno, val;
	int ret;

	memcpy(file, "?", 2);
	*line = 0;
	ret = pclntab_value(t, f, f->pcfile, pc, &fileno, e);
	if (!ret)
		ret = pclntab_value(t, f, f->pcln, pc, &val, e);
	if (ret || fileno < 0 || val == -1)
		return ret;
	*line = (uint32_t)val;
	return file_name(t, f, fileno, file, e);
}

int pclntab_pcdata(const struct pclntab *t, const struct pclnfunc *f, uint32_t i, uint32_t *off,
		   struct err *e)
{
	*off = 0;
	if (i >= f->npcdata)
		return 0;
	return mem_u32(t->m, f->addr + shapes[t->shape].rec + 4 * (uint64_t)i, off, e);
}

int pclntab_funcdata(const struct pclntab *t, const struct pclnfunc *f, uint32_t i, uint64_t *addr,
		     struct err *e)
{
	uint64_t at = f->addr + shapes[t->shape].rec + 4 * (uint64_t)f->npcdata;
	uint32_t off;
	int ret;

	*addr = 0;
	if (i >= f->nfuncdata)
		return 0;
	if (t->shape == PCLN_116) {
		at = (at + 7) & ~7ull;
		return mem_u64(t->m, at + 8 * (uint64_t)i, addr, e);
	}
	ret = mem_u32(t->m, at + 4 * (uint64_t)i, &off, e);
	if (!ret && off != UINT32_MAX && t->gofunc)
		*addr = t->gofunc + off;
	return ret;
}
