/* user/go/runtime/rtlabels.c - reads a goroutine's labels in both shapes that they have had. */
#include "go/runtime/rtlabels.h"

#include "base/limits.h"

enum {
	PAIR = 32,    /* bytes of {key, value} */
	BUCKET = 272, /* bmap: tophash [8]uint8, 8 keys, 8 values, overflow */
	SLOTS = 8,
	KEYS = 8,
	VALUES = KEYS + SLOTS * 16,
	OVERFLOW = VALUES + SLOTS * 16,
	MIN_TOPHASH = 5, /* smaller values mark an empty or evacuated slot */
	MAX_B = 8,	 /* 256 buckets: 1,664 labels before they split */
	CHAIN_MAX = 64,
	SAME_SIZE_GROW = 8, /* hmap.flags */
};

struct walk {
	struct mem *m;
	struct rtlabels *l;
	struct rtlabel_set *out;
	size_t bytes; /* of this set */
};

void rtlabels_fini(struct rtlabels *l)
{
	vec_fini(&l->at);
	vec_fini(&l->text);
}

void rtlabels_clear(struct rtlabels *l)
{
	l->at.n = l->text.n = 0;
}

static int no_memory(struct err *e)
{
	return err_set(e, -ENOMEM, "no memory for labels");
}

/* Does this error end the walk? Any other costs one label only. */
static bool fatal(int ret)
{
	return ret == -ENOMEM || ret == -ESRCH;
}

/* Adds the string at {ptr, len}, with a NUL. Returns 1 when it was left out. */
static int add_text(struct walk *w, const uint64_t *s, uint32_t *at, struct err *e)
{
	size_t n = w->l->text.n;
	int ret;

	if (s[1] > LIMIT_LABEL_BYTES - w->bytes)
		return 1;
	if (n + s[1] + 1 > w->l->text.cap) {
		size_t cap = 2 * w->l->text.cap + s[1] + 4096;
		char *p = realloc(w->l->text.at, cap);

		if (!p)
			return no_memory(e);
		w->l->text.at = p;
		w->l->text.cap = cap;
	}
	ret = s[1] ? mem_read(w->m, s[0], w->l->text.at + n, s[1], e) : 0;
	if (ret)
		return fatal(ret) ? ret : 1;
	w->l->text.at[n + s[1]] = 0;
	w->l->text.n = n + s[1] + 1;
	w->bytes += s[1];
	*at = (uint32_t)n;
	return 0;
}

/* @key and @value have Go's form: {ptr, len}. */
static int add(struct walk *w, const uint64_t *key, const uint64_t *value, struct err *e)
{
	struct rtlabel lab = { 0 }, *slot;
	int ret;

	if (w->out->n >= LIMIT_LABELS || w->l->text.n > LIMIT_LABELS_TEXT) {
		w->out->cut = true;
		return 0;
	}
	ret = add_text(w, key, &lab.key, e);
	if (!ret)
		ret = add_text(w, value, &lab.value, e);
	if (ret > 0)
		w->out->cut = true;
	if (ret)
		return ret > 0 ? 0 : ret;
	slot = vec_add(&w->l->at, UINT32_MAX);
	if (!slot)
		return no_memory(e);
	*slot = lab;
	w->out->n++;
	return 0;
}

static int read_slice(struct walk *w, uint64_t addr, struct err *e)
{
	uint64_t head[2], pair[PAIR / 8];
	int ret = mem_read(w->m, addr, head, sizeof(head), e);

	for (uint64_t i = 0; !ret && i < head[1] && i <= LIMIT_LABELS; i++) {
		ret = mem_read(w->m, head[0] + i * PAIR, pair, sizeof(pair), e);
		if (!ret)
			ret = add(w, pair, pair + 2, e);
	}
	return ret;
}

static int read_bucket(struct walk *w, const uint8_t *b, struct err *e)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < SLOTS; i++) {
		uint64_t key[2], value[2];

		if (b[i] < MIN_TOPHASH)
			continue;
		memcpy(key, b + KEYS + 16 * i, sizeof(key));
		memcpy(value, b + VALUES + 16 * i, sizeof(value));
		ret = add(w, key, value, e);
	}
	return ret;
}

/* Reads @n buckets in a row, each with its overflow chain. */
static int read_buckets(struct walk *w, uint64_t addr, size_t n, struct err *e)
{
	int ret = 0;

	for (size_t i = 0; !ret && addr && i < n; i++) {
		uint64_t at = addr + i * BUCKET;

		for (int k = 0; !ret && at && k < CHAIN_MAX; k++) {
			uint8_t b[BUCKET];

			ret = mem_read(w->m, at, b, sizeof(b), e);
			if (!ret)
				ret = read_bucket(w, b, e);
			memcpy(&at, b + OVERFLOW, sizeof(at));
			w->out->cut |= !ret && at && k + 1 == CHAIN_MAX;
		}
	}
	return ret;
}

/* Reads all buckets and, where the map was growing, the old ones that were not moved yet. */
static int read_map(struct walk *w, uint64_t addr, struct err *e)
{
	uint64_t hmap, head[4];
	unsigned b, old;
	int ret = mem_u64(w->m, addr, &hmap, e);

	if (ret || !hmap)
		return ret;
	ret = mem_read(w->m, hmap, head, sizeof(head), e);
	if (ret)
		return ret;
	b = head[1] >> 8 & 0xff;
	if (b > MAX_B)
		return err_set(e, -EBADMSG, "a label map of 2^%u buckets", b);
	old = b && !(head[1] & SAME_SIZE_GROW) ? b - 1 : b;
	ret = read_buckets(w, head[2], (size_t)1 << b, e);
	return ret ? ret : read_buckets(w, head[3], (size_t)1 << old, e);
}

int rtlabels_read(struct mem *m, int minor, uint64_t labels, struct rtlabels *l,
		  struct rtlabel_set *out, struct err *e)
{
	struct rtlabel_set set = { .first = (uint32_t)l->at.n };
	struct walk w = { .m = m, .l = l, .out = &set };
	int ret = 0;

	if (labels)
		ret = minor >= 0 && minor < 24 ? read_map(&w, labels, e) :
						 read_slice(&w, labels, e);
	if (fatal(ret))
		return ret;
	set.cut |= ret != 0;
	*out = set;
	return 0;
}
