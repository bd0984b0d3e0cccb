/*
 * user/go/image/gobin_names.c - finds functions by name.
 *
 * Names are searched once in the table of names, as bytes. A name that is found becomes an
 * offset, and then one pass over the records compares numbers.
 */
#include "base/map.h"
#include "go/image/gobin_priv.h"
#include "go/image/elf/scan.h"

enum {
	NAME_MAX_LEN = 1024, /* longest name that can be asked for */
	NAMES_MAX = 4096,
	COMPARE_NS = 4,
};

/* The names that are asked for, chained by length. */
struct wanted {
	const char *const *names;
	size_t n;
	uint64_t compared;		 /* how often a name was compared with the file's bytes */
	uint16_t head[NAME_MAX_LEN + 1]; /* index + 1 */
	uint16_t next[NAMES_MAX];
};

static void wanted_init(struct wanted *w, const char *const *names, size_t n)
{
	w->names = names;
	w->n = n;
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(names[i]);

		if (len > NAME_MAX_LEN)
			continue;
		w->next[i] = w->head[len];
		w->head[len] = (uint16_t)(i + 1);
	}
}

/* Index of the first name that equals these bytes; -1 when none does. */
static int wanted_find(struct wanted *w, const uint8_t *s, size_t len)
{
	int found = -1;

	if (len > NAME_MAX_LEN)
		return -1;
	w->compared++;
	for (uint16_t i = w->head[len]; i; i = w->next[i - 1], w->compared++)
		if (!memcmp(w->names[i - 1], s, len))
			found = i - 1;
	return found;
}

static int names_scan(struct gobin *b, struct scan *s, size_t keep, uint64_t *base, struct err *e)
{
	uint64_t size = b->pcln.cu - b->pcln.funcname, left;
	int ret = elfimg_offset(b->img, b->pcln.funcname, base, &left, e);

	if (ret)
		return ret;
	if (size > left)
		return err_set(e, -EBADMSG, "the names of functions leave their segment");
	return scan_init(s, elfimg_file(b->img), *base, size, keep, e);
}

/* Offsets of the names into @offs: offset -> index. */
static int find_offsets(struct gobin *b, struct wanted *w, struct map *offs, struct err *e)
{
	CLEANUP(scan_fini) struct scan s = { 0 };
	uint64_t base = 0, start; /* start: where the current string begins in the file */
	int ret;

	ret = names_scan(b, &s, NAME_MAX_LEN + 1, &base, e);
	if (ret)
		return ret;
	start = base;
	while (!ret && (ret = scan_next(&s, e)) == 1) {
		while (start < s.at + s.n) {
			size_t from = start > s.at ? (size_t)(start - s.at) : 0;
			const uint8_t *p = s.buf + from, *nul = memchr(p, 0, s.n - from);
			int i;

			if (!nul)
				break;
			/* A string that began before this chunk is longer than any name. */
			i = start >= s.at ? wanted_find(w, p, (size_t)(nul - p)) : -1;
			if (i >= 0 && !map_put(offs, start - base, (uint64_t)i))
				return err_set(e, -ENOMEM, "no memory for function names");
			start = s.at + (uint64_t)(nul - s.buf) + 1;
		}
		ret = elfimg_work(b->img, w->compared * COMPARE_NS, e);
		w->compared = 0;
	}
	return ret;
}

static int take(struct gobin *b, uint64_t func, struct gofunc *out, struct err *e)
{
	struct gofunc f;
	int ret = gobin_func_index(b, (size_t)func, &f, e);

	if (!ret && f.end - f.entry > out->end - out->entry)
		*out = f;
	return ret;
}

static int match_records(struct gobin *b, const struct map *offs, struct gofunc *out, struct err *e)
{
	uint64_t idx;
	int ret = 0;

	for (uint64_t i = 0; i < b->pcln.nfunc && !ret; i++) {
		uint32_t off;

		ret = pclntab_nameoff(&b->pcln, i, &off, e);
		if (!ret && map_get(offs, off, &idx))
			ret = take(b, i, &out[idx], e);
		if (ret == -ENOENT)
			ret = 0; /* a hole between functions */
	}
	return ret;
}

int gobin_funcs_named(struct gobin *b, const char *const *names, size_t n, struct gofunc *out,
		      struct err *e)
{
	CLEANUP(freep) struct wanted *w = calloc(1, sizeof(*w));
	CLEANUP(map_fini) struct map offs = { 0 };
	int ret, found = 0;

	if (!w)
		return err_set(e, -ENOMEM, "no memory for a search by name");
	if (n > NAMES_MAX)
		return err_set(e, -E2BIG, "%zu names (limit %d)", n, NAMES_MAX);
	memset(out, 0, n * sizeof(*out));
	wanted_init(w, names, n);
	ret = find_offsets(b, w, &offs, e);
	if (!ret && offs.n)
		ret = match_records(b, &offs, out, e);
	if (ret)
		return ret;
	for (size_t i = 0; i < n; i++) {
		int first = wanted_find(w, (const uint8_t *)names[i], strlen(names[i]));

		if (first >= 0)
			out[i] = out[first];
		found += out[i].entry != 0;
	}
	return found;
}

int gobin_has_prefix(struct gobin *b, const char *prefix, struct err *e)
{
	CLEANUP(scan_fini) struct scan s = { 0 };
	size_t len = strlen(prefix);
	char want[64];
	uint64_t base;
	int ret;

	BUG_ON(len + 1 > sizeof(want));
	want[0] = 0; /* the end of the name before it */
	memcpy(want + 1, prefix, len);
	ret = names_scan(b, &s, len, &base, e);
	if (ret)
		return ret;
	while ((ret = scan_next(&s, e)) == 1)
		if (memmem(s.buf, s.n, want, len + 1))
			return 1;
	return ret;
}
