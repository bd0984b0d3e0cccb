/* user/base/strtab.c - interning through an open-addressed index over chunked storage. */
#include "base/strtab.h"

#include "base/hash.h"
#include "base/limits.h"
#include "base/vec.h"

/* Each is twice the one before it: many profiles have a few strings only. */
enum { CHUNK_FIRST = 4 * 1024, CHUNK = 64 * 1024 };

struct str {
	const char *s;
	uint32_t len;
	uint32_t hash;
};

struct chunk {
	struct chunk *next;
	size_t used, cap;
	char data[];
};

struct strtab {
	VEC(struct str) strs;
	uint32_t *index; /* id + 1, or 0 */
	size_t nindex;	 /* a power of two */
	struct chunk *chunks;
	size_t stored; /* bytes of all chunks */
};

static char *store(struct strtab *t, const void *s, size_t len)
{
	struct chunk *c = t->chunks;
	char *p;

	if (!c || c->cap - c->used < len + 1) {
		size_t usual = !c ? CHUNK_FIRST : c->cap < CHUNK / 2 ? 2 * c->cap : CHUNK;
		size_t cap = len + 1 > usual ? len + 1 : usual;

		c = malloc(sizeof(*c) + cap);
		if (!c)
			return NULL;
		*c = (struct chunk){ .next = t->chunks, .cap = cap };
		t->chunks = c;
		t->stored += sizeof(*c) + cap;
	}
	p = c->data + c->used;
	if (len)
		memcpy(p, s, len);
	p[len] = 0;
	c->used += len + 1;
	return p;
}

static bool reindex(struct strtab *t)
{
	size_t n = t->nindex ? t->nindex * 2 : 1024;
	uint32_t *index = calloc(n, sizeof(*index));

	if (!index)
		return false;
	for (size_t id = 0; id < t->strs.n; id++) {
		size_t i = t->strs.at[id].hash & (n - 1);

		while (index[i])
			i = (i + 1) & (n - 1);
		index[i] = (uint32_t)id + 1;
	}
	free(t->index);
	t->index = index;
	t->nindex = n;
	return true;
}

/* Where these bytes are in the index, or would be. */
static size_t find(const struct strtab *t, const void *s, size_t len, uint32_t hash)
{
	size_t i = hash & (t->nindex - 1);

	for (; t->index[i]; i = (i + 1) & (t->nindex - 1)) {
		const struct str *str = &t->strs.at[t->index[i] - 1];

		if (str->hash == hash && str->len == len && (!len || !memcmp(str->s, s, len)))
			break;
	}
	return i;
}

uint32_t strtab_find(const struct strtab *t, const void *s, size_t len)
{
	return t->index[find(t, s, len, (uint32_t)hash_bytes(s, len))] - 1;
}

uint32_t strtab_put(struct strtab *t, const void *s, size_t len)
{
	uint32_t hash = (uint32_t)hash_bytes(s, len);
	struct str *str;
	char *copy;
	size_t i;

	if (len > LIMIT_STRING || (t->strs.n * 2 >= t->nindex && !reindex(t)))
		return UINT32_MAX;
	i = find(t, s, len, hash);
	if (t->index[i])
		return t->index[i] - 1;
	copy = store(t, s, len);
	str = copy ? vec_add(&t->strs, LIMIT_STRINGS) : NULL;
	if (!str)
		return UINT32_MAX;
	*str = (struct str){ .s = copy, .len = (uint32_t)len, .hash = hash };
	t->index[i] = (uint32_t)t->strs.n;
	return (uint32_t)t->strs.n - 1;
}

uint32_t strtab_puts(struct strtab *t, const char *s)
{
	return strtab_put(t, s, strlen(s));
}

const char *strtab_get(const struct strtab *t, uint32_t id)
{
	BUG_ON(id >= t->strs.n);
	return t->strs.at[id].s;
}

size_t strtab_len(const struct strtab *t, uint32_t id)
{
	BUG_ON(id >= t->strs.n);
	return t->strs.at[id].len;
}

size_t strtab_count(const struct strtab *t)
{
	return t->strs.n;
}

size_t strtab_bytes(const struct strtab *t)
{
	return sizeof(*t) + t->stored + t->strs.cap * sizeof(*t->strs.at) +
	       t->nindex * sizeof(*t->index);
}

int strtab_new(struct strtab **out, struct err *e)
{
	CLEANUP(strtab_freep) struct strtab *t = calloc(1, sizeof(*t));

	if (!t || strtab_put(t, "", 0) != 0)
		return err_set(e, -ENOMEM, "no memory for a string table");
	*out = TAKE(t);
	return 0;
}

void strtab_free(struct strtab *t)
{
	if (!t)
		return;
	while (t->chunks) {
		struct chunk *next = t->chunks->next;

		free(t->chunks);
		t->chunks = next;
	}
	vec_fini(&t->strs);
	free(t->index);
	free(t);
}
