/* user/go/image/tables/pclntab12.c - the table is read as a whole: such programs are small. */
#include "go/image/tables/pclntab12.h"

#include <string.h>

#include "base/limits.h"
#include "go/image/elf/elfimg.h"

enum { MAGIC_12 = 0xfffffffb, HEADER = 8, CACHE_BLOCKS = 16, TABLE_MAX = 256 << 20 };

struct pclntab12 {
	const uint8_t *at;
	size_t n;
	uint8_t *owned; /* the same, or NULL */
	bool big_endian;
	unsigned word, quantum; /* bytes of a pointer, of the shortest instruction */
	uint64_t nfunc, files;	/* files: offset of the table of files */
};

/* ---- numbers ---- */

/* Of @size bytes at @off; 0, *bad: they are not there. */
static uint64_t number(const struct pclntab12 *t, uint64_t off, unsigned size, bool *bad)
{
	uint64_t v = 0;

	if (off > t->n || size > t->n - off) {
		*bad = true;
		return 0;
	}
	for (unsigned i = 0; i < size; i++)
		v |= (uint64_t)t->at[off + i] << 8 * (t->big_endian ? size - 1 - i : i);
	return v;
}

static uint64_t varint(const struct pclntab12 *t, uint64_t *off, bool *bad)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint64_t byte = number(t, (*off)++, 1, bad);

		v |= (byte & 0x7f) << shift;
		if (byte < 0x80 || *bad)
			return v;
	}
	*bad = true;
	return 0;
}

static const char *string(const struct pclntab12 *t, uint64_t off)
{
	if (!off || off >= t->n || !memchr(t->at + off, 0, t->n - off))
		return NULL;
	return (const char *)t->at + off;
}

/* ---- functions ---- */

/* A row is where a function begins, and where what is known of it is; behind the last one its end. */
static uint64_t row(const struct pclntab12 *t, uint64_t i, unsigned column, bool *bad)
{
	return number(t, HEADER + t->word * (1 + 2 * i + column), t->word, bad);
}

/* The last one that begins at @pc or before it. */
static bool function_at(const struct pclntab12 *t, uint64_t pc, uint64_t *i)
{
	uint64_t low = 0, high = t->nfunc;
	bool bad = false;

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (row(t, mid, 0, &bad) <= pc)
			low = mid + 1;
		else
			high = mid;
	}
	*i = low - 1;
	return low && pc < row(t, low, 0, &bad) && !bad;
}

/* The value of a table of steps, each of which adds to the value and to the address up to which it holds. */
static bool value_at(const struct pclntab12 *t, uint64_t off, uint64_t entry, uint64_t pc,
		     int32_t *out)
{
	uint64_t at = entry;
	int64_t value = -1;
	bool bad = !off;

	for (unsigned i = 0; i < LIMIT_PCVALUE_STEPS && !bad; i++) {
		uint64_t step = varint(t, &off, &bad);

		/* Go's have 32 bits. */
		if ((!step && i) || step > UINT32_MAX)
			return false;
		value += step & 1 ? ~(int64_t)(step >> 1) : (int64_t)(step >> 1);
		at += varint(t, &off, &bad) * t->quantum;
		if (value < -1 || value > INT32_MAX)
			return false;
		*out = (int32_t)value;
		if (pc < at && !bad)
			return true;
	}
	return false;
}

bool pclntab12_find(const struct pclntab12 *t, uint64_t pc, struct pcline *out)
{
	enum { NAME = 0, FILES = 16, LINES = 20 }; /* behind the function's address */
	uint64_t i, entry, record;
	int32_t value;
	bool bad = false;

	*out = (struct pcline){ NULL, NULL, 0 };
	if (!function_at(t, pc, &i))
		return false;
	entry = row(t, i, 0, &bad);
	record = row(t, i, 1, &bad);
	if (record > t->n)
		return false;
	record += t->word;
	out->func = string(t, number(t, record + NAME, 4, &bad));
	if (value_at(t, number(t, record + FILES, 4, &bad), entry, pc, &value) && value > 0)
		out->file = string(t, number(t, t->files + 4 * (uint64_t)value, 4, &bad));
	if (value_at(t, number(t, record + LINES, 4, &bad), entry, pc, &value) && value > 0)
		out->line = (uint32_t)value;
	return out->func;
}

/* ---- the table ---- */

static int bad_table(struct err *e)
{
	return err_set(e, -EBADMSG, "its table of functions is damaged");
}

static int parse(struct pclntab12 *t, struct err *e)
{
	bool bad = false;
	uint64_t magic = number(t, 0, 4, &bad);

	if (bad || magic != MAGIC_12)
		return err_set(e, -ENOENT, "no table of functions as Go 1.2 to 1.15 have it");
	t->quantum = (unsigned)number(t, 6, 1, &bad);
	t->word = (unsigned)number(t, 7, 1, &bad);
	if (bad || (t->word != 4 && t->word != 8) ||
	    (t->quantum != 1 && t->quantum != 2 && t->quantum != 4))
		return bad_table(e);
	t->nfunc = number(t, HEADER, t->word, &bad);
	if (bad || !t->nfunc || t->nfunc > t->n / (2 * t->word))
		return bad_table(e);
	t->files = number(t, HEADER + t->word * (2 + 2 * t->nfunc), 4, &bad);
	return bad ? bad_table(e) : 0;
}

int pclntab12_of(const uint8_t *bytes, size_t n, bool big_endian, struct pclntab12 **out,
		 struct err *e)
{
	CLEANUP(pclntab12_freep) struct pclntab12 *t = calloc(1, sizeof(*t));
	int ret;

	if (!t)
		return err_set(e, -ENOMEM, "no memory");
	*t = (struct pclntab12){ .at = bytes, .n = n, .big_endian = big_endian };
	ret = parse(t, e);
	if (!ret)
		*out = TAKE(t);
	return ret;
}

void pclntab12_free(struct pclntab12 *t)
{
	if (!t)
		return;
	free(t->owned);
	free(t);
}

static int read_table(struct elfimg *img, struct pclntab12 **out, struct err *e)
{
	CLEANUP(freep) uint8_t *bytes = NULL;
	const struct elf_sec *s = elfimg_sec(img, ".gopclntab");
	int ret;

	if (!s)
		s = elfimg_sec(img, ".data.rel.ro.gopclntab");
	if (!s)
		return err_set(e, -ENOENT, "no section .gopclntab");
	if (s->size > TABLE_MAX)
		return bad_table(e);
	bytes = malloc(s->size + 1);
	if (!bytes)
		return err_set(e, -ENOMEM, "no memory");
	ret = mem_read(elfimg_file(img), s->off, bytes, s->size, e);
	if (!ret)
		ret = pclntab12_of(bytes, s->size, elfimg_big_endian(img), out, e);
	if (!ret)
		(*out)->owned = TAKE(bytes);
	return ret;
}

int pclntab12_open(int fd, const char *path, struct pclntab12 **out, struct err *e)
{
	CLEANUP(elfimg_freep) struct elfimg *img = NULL;
	int ret = elfimg_open_any(fd, path, CACHE_BLOCKS, &img, e);

	return ret ? ret : read_table(img, out, e);
}
